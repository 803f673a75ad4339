# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Rates of packed keys and values on a GPU: ``python bench_kv.py [--device cpu] [--quick]``.

For shapes of a layer and a number of sequences and tokens: bits a value, time to pack and to unpack, time of
attention of one token a sequence on packed pages, on plain pages by the same kernel, and by torch's own
scaled_dot_product_attention on a plain cache. Medians over rotating copies larger than the L2 cache. Keys are Gaussian
with channels of different size, values Gaussian. With ``--device cpu`` the script itself is rehearsed.
"""

import argparse
import time

import torch
import torch.nn.functional as F  # noqa: N812
from bench_decode import L2_NBYTES, copy_rate, median_ms
from check_kv import plain_store

from glyd_gpu import _kv_attention
from glyd_gpu._kv_store import PagedTensor

# name: heads, key heads, channels
SHAPES = {"8B": (32, 8, 128), "32B": (64, 8, 128), "SmolLM2": (9, 3, 64), "Gemma 3 4B": (8, 4, 256)}


def cpu_ms(calls, n=3):
    times = []
    for i in range(n):
        start = time.perf_counter()
        calls[i % len(calls)]()
        times.append(1000 * (time.perf_counter() - start))
    return sorted(times)[n // 2]


def run(name, sequences, n, device, timed):
    heads, key_heads, channels = SHAPES[name]
    shape = (sequences, key_heads, n, channels)
    k, v = (torch.randn(shape, device=device) for _ in range(2))
    k *= torch.exp2(torch.randint(-2, 3, (1, key_heads, 1, channels), device=device).float())
    k, v = k.to(torch.bfloat16), v.to(torch.bfloat16)
    q = torch.randn((sequences, heads, channels), device=device).to(torch.bfloat16)
    copies = 1 if device.type == "cpu" else max(1, min(8, L2_NBYTES // (k.nbytes + v.nbytes)))
    packed, plain, tensors = [], [], []
    for _ in range(copies):
        stores = PagedTensor.empty(k), PagedTensor.empty(v)
        for store, x in zip(stores, (k, v), strict=True):
            store.append(x)
        packed.append(stores)
        plain.append((plain_store(k), plain_store(v)))
        tensors.append((k.clone(), v.clone()))
    nbytes = sum(store.nbytes for store in packed[0])
    scale = channels**-0.5
    whole = k[:, :, : n // 128 * 128].reshape(-1, 128, channels).contiguous()
    pages, places = torch.ops.glyd.kv_pack(whole)
    ms = {
        "pack": timed([lambda: torch.ops.glyd.kv_pack(whole)]),
        "unpack": timed([lambda: torch.ops.glyd.kv_unpack(pages, places[:-1], channels)]),
        "packed": timed([lambda s=s: _kv_attention.attend(q, *s, None, scale) for s in packed]),
        "plain pages": timed([lambda s=s: _kv_attention.attend(q, *s, None, scale) for s in plain]),
        "sdpa": timed(
            [lambda t=t: F.scaled_dot_product_attention(q.unsqueeze(2), *t, enable_gqa=True) for t in tensors]
        ),
    }
    moved = 2 * k.nbytes
    best = min(ms["plain pages"], ms["sdpa"])
    print(
        f"| {name} | {sequences} × {n} | {8 * nbytes / (k.numel() + v.numel()):.3f} "
        f"| {whole.nbytes / ms['pack'] / 1e6:.0f} | {whole.nbytes / ms['unpack'] / 1e6:.0f} "
        f"| {ms['packed']:.3f} | {ms['plain pages']:.3f} | {ms['sdpa']:.3f} "
        f"| {ms['packed'] / best:.2f} | {nbytes / ms['packed'] / 1e6:.0f} | {moved / best / 1e6:.0f} |",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    device = torch.device(options.device)
    torch.manual_seed(1)
    if device.type == "cuda":
        print(f"{torch.cuda.get_device_name()}: copy {copy_rate():.0f} GB/s")
    print(
        "| shape | sequences × tokens | bits | pack GB/s of bf16 | unpack | packed ms | plain pages ms | sdpa ms "
        "| packed / best plain | GB/s packed | GB/s plain |"
    )
    print("| --- " * 11 + "|")
    timed = median_ms if device.type == "cuda" else cpu_ms
    sizes = [(2, 300)] if device.type == "cpu" else [(1, 8192), (16, 8192)]
    if not options.quick and device.type == "cuda":
        sizes = [
            (1, 1024),
            (1, 8192),
            (1, 32768),
            (1, 131072),
            (8, 1024),
            (8, 8192),
            (16, 32768),
            (64, 1024),
            (64, 8192),
        ]
    for name in SHAPES:
        for sequences, n in sizes:
            run(name, sequences, n, device, timed)


if __name__ == "__main__":
    main()

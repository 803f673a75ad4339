# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Rates of unpacking, packing and row look-up on a GPU: ``python bench_decode.py``.

Medians of replays over rotating copies larger than the L2 cache. Bytes are what
must move: the pack once and the matrix once; the ceiling is a copy by torch of
as many bytes in the same run.
"""

import torch

import glyd_gpu

SHAPES = ((4096, 4096), (6144, 4096), (24576, 4096), (4096, 12288), (151936, 4096))
L2_NBYTES = 128 << 20


def median_ms(calls, n=21):
    """Time calls in turn with events."""
    for call in calls:
        call()
    times = []
    for i in range(n):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        # a long kernel ahead hides the launch of what is timed
        torch.cuda._sleep(200_000)
        start.record()
        calls[i % len(calls)]()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return sorted(times)[n // 2]


def copy_rate():
    """Return bytes read and written a second by a copy, in GB/s."""
    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda").random_()
    target = torch.empty_like(source)
    return 2 * source.numel() / median_ms([lambda: target.copy_(source)]) / 1e6


def main():
    ops = torch.ops.glyd
    torch.manual_seed(1)
    ceiling = copy_rate()
    print(f"{torch.cuda.get_device_name()}: copy {ceiling:.0f} GB/s")
    print(
        "| matrix | layout | bits | unpack GB/s moved | of copy | bf16 GB/s | pack GB/s of bf16 | 8192 rows looked up µs |"
    )
    print("| --- " * 8 + "|")
    for rows, cols in SHAPES:
        weight = (torch.randn(rows, cols, device="cuda") * 0.02).to(torch.bfloat16)
        n = max(1, L2_NBYTES // weight.nbytes)
        for layout, number in glyd_gpu.LAYOUTS.items():
            pack = ops.pack(weight, number)
            meta = glyd_gpu.PackedMeta.from_tensor(pack)
            known = meta.as_list()
            packs = [pack] + [pack.clone() for _ in range(n - 1)]
            ms = median_ms([lambda p=p: ops.unpack(p, known) for p in packs])
            moved = (pack.numel() + weight.nbytes) / ms / 1e6
            pack_ms = median_ms([lambda: ops.pack(weight, number)], 9)
            ids = torch.randint(0, rows, (8192,), device="cuda")
            ids_ms = median_ms([lambda: ops.embedding(ids, pack, known)], 9)
            print(
                f"| {rows}×{cols} | {layout} | {meta.bits_per_weight:.3f} | {moved:.0f} | {moved / ceiling:.0%} "
                f"| {weight.nbytes / ms / 1e6:.0f} | {weight.nbytes / pack_ms / 1e6:.0f} | {ids_ms * 1e3:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

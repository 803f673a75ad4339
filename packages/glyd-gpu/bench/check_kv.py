# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Check the kernels of pages on a GPU: ``python check_kv.py [--device cpu]``.

Pages are the codec's, bit for bit; unpacking gives every bit back; attention on packed pages has the bits of the same
kernel on plain pages, the same again when repeated, and lies within 2% of float64; a model generates the tokens of a
plain cache. A line a check; exits with 1 when one fails. With ``--device cpu`` the script itself is rehearsed.
"""

import argparse
import sys

import torch
import transformers

import glyd_codec
from glyd_gpu import GlydKVCache, _kv_attention, _kv_cuda, kv_cache
from glyd_gpu._kv_store import PagedTensor
from glyd_gpu._matrices import bits

FAILED = []


def report(name, ok, text=""):
    print(f"{'ok    ' if ok else 'FAILED'} {name} {text}", flush=True)
    if not ok:
        FAILED.append(name)


def values(shape, kind, device):
    """Return keys or values [pages, 128, channels]."""
    scale = torch.exp2(torch.randint(-3, 4, (shape[0], 1, shape[2])).float())
    x = (torch.randn(shape) * scale).to(torch.bfloat16)
    flat = x.view(-1)
    if kind == "special":
        places = torch.randint(0, flat.numel(), (flat.numel() // 100,))
        flat[places] = torch.randint(-(1 << 15), 1 << 15, places.shape, dtype=torch.int16).view(torch.bfloat16)
        x[:, :, 3] = 0.0
        x[:, ::2, 5] = -0.0
        x[:, :, 7] = 1e-40
    elif kind == "noise":
        x = torch.randint(-(1 << 15), 1 << 15, shape, dtype=torch.int16).view(torch.bfloat16)
    return x.to(device)


def check_pages(channels, kind, n, device):
    x = values((n, 128, channels), kind, device)
    pages, places = torch.ops.glyd.kv_pack(x)
    expected = glyd_codec.pack_kv_pages(bits(x.cpu()).numpy(), channels)
    name = f"{n} pages of {channels} channels, {kind}:"
    report(
        f"{name} bytes of the codec",
        bytes(pages.cpu().numpy()) == expected,
        f"{8 * pages.numel() / x.numel():.3f} bits",
    )
    order = torch.randperm(n)
    back = torch.ops.glyd.kv_unpack(pages, places[:-1][order], channels)
    report(f"{name} every bit", torch.equal(bits(back), bits(x[order.to(device)])))


def plain_store(x):
    """Return a store whose pages are in plain form."""
    store = PagedTensor.empty(x)
    batch, heads, n, channels = x.shape
    pages, rest = divmod(n, 128)
    nbytes = glyd_codec.kv_page_bound(channels)
    chunk = torch.zeros((batch * heads * pages, nbytes), dtype=torch.uint8)
    chunk[:, :12] = torch.tensor(
        [0x9D, 0x4B, 3, 0, channels & 255, channels >> 8, 128, 0, nbytes & 255, nbytes >> 8 & 255, nbytes >> 16, 0],
        dtype=torch.uint8,
    )
    whole = x[:, :, : pages * 128].reshape(-1, 128 * channels).contiguous().cpu()
    chunk[:, 32 : 32 + 256 * channels] = whole.view(torch.uint8)
    store.chunks = {0: chunk.view(-1).to(x.device)} if pages else {}
    store.table = (torch.arange(batch * heads * pages) * nbytes).view(batch, heads, pages)
    store.tail = x[:, :, pages * 128 :].clone() if rest else store.tail
    return store


def check_attention(channels, heads, key_heads, sequences, n, starts, device):
    generator = torch.Generator().manual_seed(n)
    scale = torch.exp2(torch.randint(-2, 3, (1, 1, 1, channels)).float())
    shape = (sequences, key_heads, n, channels)
    k, v = ((torch.randn(shape, generator=generator) * scale).to(torch.bfloat16).to(device) for _ in range(2))
    v[:, :, min(3, n - 1)] *= 2.0**9
    q = (torch.randn((sequences, heads, channels), generator=generator) / scale.view(1, 1, -1)).to(torch.bfloat16)
    q = q.to(device)
    first = torch.tensor(starts, dtype=torch.int32, device=device) if starts else None
    packed = [PagedTensor.empty(k), PagedTensor.empty(v)]
    for store, x in zip(packed, (k, v), strict=True):
        store.append(x)
    plain = [plain_store(k), plain_store(v)]
    factor = channels**-0.5
    out = _kv_attention.attend(q, *packed, first, factor)
    name = f"attention {channels} channels, {heads}/{key_heads} heads, {sequences} × {n} tokens:"
    same = _kv_attention.attend(q, *plain, first, factor)
    report(f"{name} packed is plain", torch.equal(bits(out), bits(same)))
    again = [_kv_attention.attend(q, *packed, first, factor) for _ in range(3)]
    report(f"{name} again", all(torch.equal(bits(out), bits(x)) for x in again))
    groups = heads // key_heads
    scores = (q.double().unsqueeze(2) @ k.double().repeat_interleave(groups, 1).transpose(2, 3)).squeeze(2) * factor
    if first is not None:
        hidden = torch.arange(n, device=device) < first.view(-1, 1, 1)
        scores = scores.masked_fill(hidden, float("-inf"))
    expected = (scores.softmax(-1).unsqueeze(2) @ v.double().repeat_interleave(groups, 1)).squeeze(2)
    error = float(((out.double() - expected).abs().amax((0, 1)) / expected.abs().amax()).max())
    report(f"{name} float64", error < 0.02, f"{error:.2e}")
    if device.type == "cuda":
        pages = packed[0].addresses(), packed[1].addresses()
        tails = packed[0].tail, packed[1].tail
        for splits in (1, 2, 7):
            found = _kv_cuda.attention(q, pages, tails, first, factor, splits)
            other = _kv_cuda.attention(
                q, (plain[0].addresses(), plain[1].addresses()), (plain[0].tail, plain[1].tail), first, factor, splits
            )
            error = float(((found.double() - expected).abs().amax((0, 1)) / expected.abs().amax()).max())
            report(f"{name} {splits} splits", torch.equal(bits(found), bits(other)) and error < 0.02, f"{error:.2e}")


def check_model(device):
    config = transformers.Qwen3Config(
        hidden_size=512, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=2, head_dim=128,
        intermediate_size=512, vocab_size=2000, eos_token_id=None,
    )  # fmt: skip
    torch.manual_seed(2)
    model = transformers.AutoModelForCausalLM.from_config(config).to(torch.bfloat16).to(device).eval()
    n, n_new = (700, 80) if device.type == "cuda" else (140, 3)
    ids = torch.randint(2, 1999, (3, n), device=device)
    mask = torch.ones_like(ids)
    mask[1, : n // 2] = 0
    arguments = {"attention_mask": mask, "max_new_tokens": n_new, "do_sample": False, "pad_token_id": 0}
    plain = model.generate(ids, **arguments)
    kv_cache.install(model)
    report(
        "generation: decoded pages give the plain cache's tokens", torch.equal(plain, model.generate(ids, **arguments))
    )
    _kv_attention.register(model)
    direct = model.generate(ids, past_key_values=GlydKVCache(config, direct=True), **arguments)
    share = float((direct == plain)[:, n:].float().mean())
    report(
        "generation: steps on pages", True, f"{100 * share:.1f}% of tokens are those of sdpa (another order of sums)"
    )
    beams = model.generate(ids, num_beams=3, past_key_values=GlydKVCache(config, direct=True), **arguments)
    report("generation: beams on pages run", beams.shape == plain.shape)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--long", action="store_true", help="contexts of up to 128K tokens")
    options = parser.parse_args()
    device = torch.device(options.device)
    torch.manual_seed(1)
    if device.type == "cpu":
        torch.set_num_threads(1)
    for channels in _kv_cuda.CHANNELS:
        for kind in ("plain", "special", "noise"):
            check_pages(channels, kind, 1 if device.type == "cpu" else 333, device)
    for shape in (
        (64, 9, 3, 2, 300, None), (64, 4, 4, 3, 128, [0, 5, 127]), (96, 32, 2, 2, 511, [200, 0]),
        (128, 32, 8, 4, 1000, [0, 1, 999, 500]), (128, 20, 1, 1, 77, None), (256, 4, 1, 3, 640, [130, 0, 3]),
    ):  # fmt: skip
        check_attention(*shape, device)
    if options.long:
        check_attention(128, 32, 8, 1, 131072 + 5, None, device)
        check_attention(128, 32, 8, 16, 32768, list(range(0, 32000, 2000)), device)
    check_model(device)
    print(f"{len(FAILED)} failed")
    return bool(FAILED)


if __name__ == "__main__":
    sys.exit(main())

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Bits a value of keys and values, by candidate codes and as real pages.

``kv_sizes.py MODEL TEXT [TOKENS [GGUF]]``: MODEL is a directory that transformers loads (with GGUF the name of a
file in it), run in bf16 over the first TOKENS tokens (4,096) of the file TEXT. Codes are computed, with a base a
channel, a token or a page, bases included; pages are packed, unpacked and compared. Needs torch, transformers,
glyd_codec.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import torch

import glyd_codec

TOKENS = 128


def fixed3(d: int) -> int:
    """Seven exponents in 3 bits, others 8 bits more."""
    return 3 if 0 <= d <= 6 else 11


def two_three(d: int) -> int:
    """Three in 2 bits, eight more in 3, others 16 more."""
    return 2 if 0 <= d <= 2 else 5 if -4 <= d <= 4 else 21


def two_four(d: int) -> int:
    """Three in 2 bits, sixteen more in 4, others 16 more."""
    return 2 if 0 <= d <= 2 else 6 if -10 <= d <= 6 else 22


def tiered(d: int) -> int:
    """The code of packed weights; others 24 more."""
    return 2 if 0 <= d <= 2 else 4 if d in {-1, 3, -2} else 8 if -9 <= d <= 4 else 32


# name → bits of an exponent minus its base, bits of zero
CODES: dict[str, tuple[Callable[[int], int], int]] = {
    "3, 8": (fixed3, 11),
    "2+3": (two_three, 21),
    "2+4": (two_four, 6),
    "2+2+4": (tiered, 8),
}


def costs(code: Callable[[int], int], zero: int) -> torch.Tensor:
    """Return the bits of every exponent with every base, [256, 256]."""
    table = torch.tensor([[code(e - b) for b in range(256)] for e in range(256)], dtype=torch.float)
    table[0] = zero
    return table


def study(x: torch.Tensor, tables: dict[str, torch.Tensor]) -> dict[str, float]:
    """Return bits a value of keys or values [heads, tokens, channels]."""
    heads, n, channels = x.shape
    pages = n // TOKENS
    e = (x.view(torch.int16).int() >> 7 & 255)[:, : pages * TOKENS].view(heads * pages, TOKENS, channels)
    out = {}
    for axis, groups in (
        ("channel", e.transpose(1, 2).reshape(-1, TOKENS)),
        ("token", e.reshape(-1, channels)),
        ("page", e.flatten(1)),
    ):
        counts = torch.zeros(groups.shape[0], 256).scatter_add_(1, groups.long(), torch.ones(groups.shape))
        for name, table in tables.items():
            least = (counts @ table).min(1).values.sum().item()
            out[f"{name} {axis}"] = 8 + (least + 8 * groups.shape[0]) / e.numel()
    p = torch.bincount(e.flatten(), minlength=256) / e.numel()
    out["entropy"] = 8 - float((p[p > 0] * p[p > 0].log2()).sum())
    values = x[:, : pages * TOKENS].reshape(-1, TOKENS, channels).contiguous().view(torch.int16).numpy()
    packed = glyd_codec.pack_kv_pages(values, channels)
    if glyd_codec.unpack_kv_pages(packed, channels) != values.tobytes():
        raise AssertionError("pages do not give their values back")
    out["pages"] = 8 * len(packed) / e.numel()
    return out


def main() -> int:
    """Print a table for a model."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache  # noqa: PLC0415 - seconds

    model_path, text = sys.argv[1], Path(sys.argv[2]).read_text(encoding="utf-8")
    n = int(sys.argv[3]) if len(sys.argv) > 3 else 4096
    more = {"gguf_file": sys.argv[4]} if len(sys.argv) > 4 else {}
    tokenizer = AutoTokenizer.from_pretrained(model_path, **more)
    model = AutoModelForCausalLM.from_pretrained(model_path, dtype=torch.bfloat16, **more)
    ids = tokenizer(text, return_tensors="pt").input_ids[:, :n]
    cache = DynamicCache(config=model.config)
    with torch.no_grad():
        loss = model(ids[:, :512], labels=ids[:, :512]).loss
        model(ids, past_key_values=cache, logits_to_keep=1)
    sys.stdout.write(f"{ids.shape[1]} tokens, loss of the first 512: {float(loss):.2f}\n")
    tables = {name: costs(*code) for name, code in CODES.items()}
    for kind in ("keys", "values"):
        found = [study(getattr(layer, kind)[0], tables) for layer in cache.layers]
        for name in found[0]:
            bits = [layer[name] for layer in found]
            sys.stdout.write(f"{kind:7} {name:14} {sum(bits) / len(bits):.3f}, worst layer {max(bits):.3f}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

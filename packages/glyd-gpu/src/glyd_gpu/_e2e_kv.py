# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What ``e2e --kv packed`` measures: prompts and steps of a model with a plain and with a packed cache."""

from __future__ import annotations

import argparse
import inspect
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch

from glyd_gpu._kv_attention import register
from glyd_gpu.kv_cache import GlydKVCache

PIECE = 2048  # tokens of a prompt at a time


@dataclass
class KvSide:
    """A cache of one kind.

    Attributes
    ----------
    nbytes
        Bytes of the cache at the end.
    prompt_ms, step_ms
        Time of all prompts, and of a step.
    tokens_s
        Tokens a second of all sequences.
    peak_nbytes
        Most memory of the device; 0 on the CPU.
    """

    nbytes: int
    prompt_ms: float
    step_ms: float
    tokens_s: float
    peak_nbytes: int


def _run(model: Any, cache: Any, prompt: torch.Tensor, n_new: int) -> tuple[KvSide, torch.Tensor]:
    """Go through a prompt and greedy steps; return measures and tokens."""
    device = prompt.device
    cuda = device.type == "cuda"
    name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"

    def sync() -> float:
        if cuda:
            torch.cuda.synchronize(device)
        return time.perf_counter()

    def forward(ids: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = model(ids, use_cache=True, logits_to_keep=1, **{name: cache}).logits
        return logits[:, -1].argmax(-1, keepdim=True)

    if cuda:
        torch.cuda.reset_peak_memory_stats(device)
    started = sync()
    for first in range(0, prompt.shape[1], PIECE):
        ids = forward(prompt[:, first : first + PIECE])
    prompt_s, started = sync() - started, sync()
    tokens = [ids]
    for _ in range(n_new - 1):
        ids = forward(ids)
        tokens.append(ids)
    seconds = sync() - started
    steps = max(n_new - 1, 1)
    if isinstance(cache, GlydKVCache):
        nbytes = cache.report().nbytes
    else:
        nbytes = sum(t.numel() * t.element_size() for layer in cache.layers for t in (layer.keys, layer.values))
    peak = torch.cuda.max_memory_allocated(device) if cuda else 0
    side = KvSide(nbytes, prompt_s * 1e3, seconds * 1e3 / steps, prompt.shape[0] * steps / seconds, peak)
    return side, torch.cat(tokens, 1).cpu()


@torch.no_grad()
def measure(model: Any, prompt: torch.Tensor, n_new: int) -> dict[str, Any]:
    """Run a batch of prompts with both kinds of cache.

    Parameters
    ----------
    model
        A causal language model of transformers, in bf16.
    prompt
        Tokens [sequences, tokens].
    n_new
        Tokens to generate.
    """
    from transformers import DynamicCache  # noqa: PLC0415

    direct = prompt.device.type == "cuda"
    before = model.config._attn_implementation
    try:
        model.set_attn_implementation("sdpa")
        plain, expected = _run(model, DynamicCache(config=model.config), prompt, n_new)
        if direct:
            register(model)
        packed, tokens = _run(model, GlydKVCache(model.config, direct=direct), prompt, n_new)
    finally:
        model.set_attn_implementation(before)
    same = f"{int((tokens == expected).sum())} of {tokens.numel()}"
    return {"plain": asdict(plain), "packed": asdict(packed), "identical": same}


def text(batch: int, n: int, found: dict[str, Any]) -> str:
    """Return the line of a batch."""
    plain, packed = found["plain"], found["packed"]
    line = (
        f"cache, batch {batch} × {n} tokens: {packed['nbytes'] / 1e9:.3f} GB packed, {plain['nbytes'] / 1e9:.3f} plain "
        f"({100 * packed['nbytes'] / plain['nbytes']:.1f}%); {packed['step_ms']:.3f} ms a step, plain "
        f"{plain['step_ms']:.3f} ({packed['step_ms'] / plain['step_ms']:.3f} ×); prompts {packed['prompt_ms']:.1f} ms, "
        f"plain {plain['prompt_ms']:.1f}; tokens identical {found['identical']}"
    )
    if packed["peak_nbytes"]:
        line += f"; peak {packed['peak_nbytes'] / 1e9:.2f} GB, plain {plain['peak_nbytes'] / 1e9:.2f}"
    return line


def run(model: Any, options: argparse.Namespace, say: Callable[[str], None]) -> dict[int, Any]:
    """Measure the model as it is with both kinds of cache, for every batch; say a line of each."""
    found = {}
    for batch in options.batch:
        generator = torch.Generator().manual_seed(options.prompt)
        words = model.config.get_text_config().vocab_size
        prompt = torch.randint(0, words, (batch, options.prompt), generator=generator)
        found[batch] = measure(model, prompt.to(model.device), options.new)
        say(text(batch, options.prompt, found[batch]))
    return found

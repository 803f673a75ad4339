# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Steps of a model on the CPU with a packed cache beside a plain one: ``python bench_kv_cache.py [--tokens 2048,8192]``.

A model of SmolLM2-135M's shape with random weights; the caches are filled with the same Gaussian keys and values,
then steps of one token are taken with both in turn. A line a length: medians, bytes of the caches, and whether the
tokens are the same. ``--memory plain|packed`` runs one cache alone and prints what its steps had resident at most
beside the model (Linux).
"""

import argparse
import statistics
import time
from pathlib import Path

import torch
import transformers
from transformers import DynamicCache

from glyd_gpu import GlydKVCache

CONFIG = {
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "vocab_size": 49152,
    "max_position_embeddings": 8192 + 512,
    "tie_word_embeddings": True,
}


def filled(cache, config, n):
    """Put the same n tokens into any cache, a piece at a time as prompts are."""
    generator = torch.Generator().manual_seed(n)
    shape = (1, config.num_key_value_heads, 512, config.hidden_size // config.num_attention_heads)
    for first in range(0, n, 512):
        for layer in range(config.num_hidden_layers):
            states = [torch.randn(shape, generator=generator).to(torch.bfloat16) for _ in range(2)]
            cache.update(*(s[:, :, : n - first] for s in states), layer)
    return cache


def nbytes(cache):
    if isinstance(cache, GlydKVCache):
        return cache.report().nbytes
    return sum(t.nbytes for layer in cache.layers for t in (layer.keys, layer.values))


def resident(name):
    """Return VmRSS or VmHWM in MiB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (line,) = (line for line in lines if line.startswith(name + ":"))
    return int(line.split()[1]) / 1024


def forget_most():
    """Let VmHWM begin anew."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", default="2048,4096,8000")
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--memory", choices=("plain", "packed"))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    config = transformers.LlamaConfig(**CONFIG)
    torch.set_default_dtype(torch.bfloat16)
    model = transformers.LlamaForCausalLM(config).eval()
    torch.set_default_dtype(torch.float32)
    for n in map(int, options.tokens.split(",")):
        caches = {"plain": DynamicCache(config=config), "packed": GlydKVCache(config)}
        if options.memory:
            caches = {options.memory: caches[options.memory]}
        times = {name: [] for name in caches}
        said = {name: [] for name in caches}
        if options.memory:
            model(torch.tensor([[7]]))
            before = resident("VmRSS")
            forget_most()
        for cache in caches.values():
            filled(cache, config, n)
        for _ in range(options.steps):
            for name, cache in caches.items():
                ids = torch.tensor([said[name][-1:] or [7]])
                start = time.perf_counter()
                logits = model(ids, past_key_values=cache, use_cache=True).logits
                times[name].append(time.perf_counter() - start)
                said[name].append(int(logits[0, -1].argmax()))
        ms = {name: 1000 * statistics.median(one[1:]) for name, one in times.items()}
        if options.memory:
            (cache,) = caches.values()
            line = f"{options.memory} {ms[options.memory]:.1f} ms a step, cache {nbytes(cache) / 1e6:.1f} MB"
            print(f"{n} tokens: {line}, {resident('VmHWM') - before:.0f} MiB resident at most", flush=True)
            continue
        ratio = statistics.median(a / b for a, b in zip(times["packed"][1:], times["plain"][1:], strict=True))
        print(
            f"{n} tokens: packed {ms['packed']:.1f} ms a step, plain {ms['plain']:.1f} ({ratio:.2f} x); cache "
            f"{nbytes(caches['packed']) / 1e6:.1f} MB, plain {nbytes(caches['plain']) / 1e6:.1f}; "
            f"tokens the same: {said['packed'] == said['plain']}",
            flush=True,
        )


if __name__ == "__main__":
    main()

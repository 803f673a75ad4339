# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""A model in vLLM, bf16 or packed: room of the KV cache, steps, first tokens, requests a second, and whether answers are the same.

``python bench_vllm.py DIR --layout bf16|mma12|tiered``. DIR is a checkpoint, or
holds ``config.json`` alone: weights are then drawn (normal, σ 0.02). One engine a
call; runs of several layouts are compared by hand, on the same machine and with
the same options. ``--compare`` starts several in turn instead, the first in bf16,
and compares their tokens and log-probabilities bit for bit.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import statistics
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")  # no time between processes is measured
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")

import torch
from vllm import LLM, SamplingParams
from vllm.distributed import cleanup_dist_env_and_memory
from vllm.model_executor.model_loader import dummy_loader, weight_utils

SIGMA = 0.02
FEW, MANY = 5, 37  # tokens of the two runs whose difference is steps alone


def draw_weights() -> None:
    """Let vLLM's dummy weights be normal, as packed sizes and speeds depend on what is packed."""

    def draw(param: torch.Tensor, *_: Any, seed: int = 1234, **__: Any) -> None:
        if param.device.type == "meta" or not torch.is_floating_point(param):
            return
        if param.dim() < 2:
            param.data.fill_(1.0)
            return
        param.data.normal_(0, SIGMA, generator=torch.Generator(device=param.device).manual_seed(seed))

    for module in (weight_utils, dummy_loader):  # newer versions look it up in the second
        module.initialize_single_dummy_weight = draw


def start(args: argparse.Namespace, layout: str, **glyd: Any) -> Any:
    """Return an engine."""
    options: dict[str, Any] = {"max_model_len": args.context, "max_num_seqs": args.slots, "enforce_eager": args.eager}
    if not list(Path(args.model).glob("*.safetensors")):
        draw_weights()
        options["load_format"] = "dummy"
    if args.layers:
        options["hf_overrides"] = {"num_hidden_layers": args.layers}
    if layout != "bf16":
        options |= {"quantization": "glyd", "additional_config": {"glyd": {"layout": layout} | glyd}}
    if args.kv_gb:
        options["kv_cache_memory_bytes"] = int(args.kv_gb * 1e9)
    else:
        options["gpu_memory_utilization"] = args.share
    begun = time.perf_counter()
    engine = LLM(
        model=args.model,
        skip_tokenizer_init=True,
        enable_prefix_caching=False,
        tensor_parallel_size=args.gpus,
        **options,
    )
    cache = engine.llm_engine.vllm_config.cache_config
    print(
        f"{layout}: started in {time.perf_counter() - begun:.1f} s, KV cache of "
        f"{cache.num_gpu_blocks * cache.block_size} tokens",
        flush=True,
    )
    return engine


def prompts(args: argparse.Namespace, n: int, length: int) -> list[dict[str, list[int]]]:
    """Return prompts of random tokens, the same for the same numbers."""
    draw = random.Random(f"{n} {length}")
    return [{"prompt_token_ids": [draw.randrange(10, args.words) for _ in range(length)]} for _ in range(n)]


def seconds(engine: Any, asked: list[dict[str, list[int]]], n_tokens: int) -> float:
    """Return the time of answers of n tokens each."""
    sampling = SamplingParams(temperature=0, max_tokens=n_tokens, ignore_eos=True, detokenize=False)
    begun = time.perf_counter()
    engine.generate(asked, sampling, use_tqdm=False)
    return time.perf_counter() - begun


def measure(args: argparse.Namespace) -> None:
    """Measure one engine."""
    engine = start(args, args.layout)
    for batch in args.batches:
        asked = prompts(args, batch, args.prompt // 16)
        seconds(engine, asked, 2)
        step = (seconds(engine, asked, MANY) - seconds(engine, asked, FEW)) / (MANY - FEW)
        print(f"{args.layout}: {batch} sequences: {step * 1e3:.3f} ms a step", flush=True)
    asked = prompts(args, 1, args.prompt)
    first = statistics.median([seconds(engine, asked, 1) for _ in range(9)][2:])
    token = (seconds(engine, asked, args.answer) - first) / (args.answer - 1)
    print(f"{args.layout}: first token of {args.prompt} after {first * 1e3:.1f} ms, then {token * 1e3:.3f} ms each")
    if args.requests:
        took = seconds(engine, prompts(args, args.requests, args.prompt), args.answer)
        print(
            f"{args.layout}: {args.requests} requests of {args.prompt} and {args.answer} tokens at once: {took:.2f} s, "
            f"{args.requests / took:.2f} a second"
        )


def answers(args: argparse.Namespace, layout: str, **glyd: Any) -> list[tuple[list[int], list[float]]]:
    """Return tokens and log-probabilities of four answers."""
    engine = start(args, layout, **glyd)
    sampling = SamplingParams(temperature=0, max_tokens=24, ignore_eos=True, detokenize=False, logprobs=1)
    found = engine.generate(prompts(args, 4, 64), sampling, use_tqdm=False)
    del engine
    gc.collect()
    cleanup_dist_env_and_memory()
    return [
        (list(o.outputs[0].token_ids), [next(iter(d.values())).logprob for d in o.outputs[0].logprobs]) for o in found
    ]


def compare(args: argparse.Namespace) -> None:
    """Compare layouts with bf16, each exact with every matrix verified, and fast."""
    plain = answers(args, "bf16")
    for layout in ("mma12", "tiered"):
        for glyd in ({"exact": True, "verify": True}, {}):
            found = answers(args, layout, **glyd)
            same = [sum(a == b for a, b in zip(x[0], y[0], strict=True)) for x, y in zip(plain, found, strict=True)]
            off = max(abs(a - b) for x, y in zip(plain, found, strict=True) for a, b in zip(x[1], y[1], strict=True))
            print(f"{layout} {glyd or 'fast'}: {same} of 24 tokens the same, log-probabilities differ by at most {off}")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="DIR")
    parser.add_argument("--layout", choices=["bf16", "mma12", "tiered"], default="mma12")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--share", type=float, default=0.9, help="of the GPU's memory (default %(default)s)")
    parser.add_argument("--kv-gb", type=float, help="of the KV cache, instead of --share")
    parser.add_argument("--batches", type=lambda text: [int(n) for n in text.split(",")], default=[1, 8, 32, 128, 256])
    parser.add_argument("--prompt", type=int, default=1024)
    parser.add_argument("--answer", type=int, default=256)
    parser.add_argument("--requests", type=int, default=224, help="sent at once; 0: none (default %(default)s)")
    parser.add_argument("--slots", type=int, default=256)
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--words", type=int, default=100_000, help="tokens of prompts are below it")
    parser.add_argument("--layers", type=int, help="instead of the model's")
    parser.add_argument("--gpus", type=int, default=1, help="tensor parallel")
    parser.add_argument("--eager", action="store_true", help="nothing compiled, no graphs")
    args = parser.parse_args()
    if args.compare:
        compare(args)
    else:
        measure(args)


if __name__ == "__main__":
    main()

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Tokens a second of the engine behind ``glyd serve``, as bf16 and packed, on the same weights in one process.

python bench_serving.py CONFIG [--layouts bf16,mma12,tiered] [--concurrent 1,8,32,128] [--prompt 128] [--new 64]
                        [--no-graphs] [--kv packed] [--profile 1,128]

CONFIG is a directory with a config.json: the weights are drawn at random where they run. All requests of a
row start at once; a row is the tokens made, over the time until the last one. ``first`` is the median time to
the first token of a request. The tokens of one request are compared with those of an engine without CUDA graphs and
packed keys and values, of the same weights. Layers that read the same input are one product, in bf16 too. ``--profile`` prints
what kernels take the time of a row.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import statistics
import time
import traceback

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.profiler import ProfilerActivity, profile

from glyd_cli.serve import ServeOptions
from glyd_cli.serving.engine import Sampling
from glyd_cli.serving.loading import make_engine
from glyd_cli.serving.transformers_engine import describe_model
from glyd_gpu._merge import merge_modules
from glyd_gpu._merge_plain import merge_plain
from glyd_gpu._pack_live import pack_modules
from glyd_gpu._random_weights import random_model

START = time.perf_counter()


def say(*words):
    """Print with the time since the start, at once."""
    print(f"[{time.perf_counter() - START:6.1f}]", *words, flush=True)


def tokenizer_for(_config):
    """Return any tokenizer: requests are token ids."""
    words = {f"w{i}": i for i in range(256)}
    inner = Tokenizer(models.WordLevel(words, unk_token="w0"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="w0", eos_token="w1")


async def one(engine, prompt, n_new):
    """Return when each token came, and the tokens."""
    times, tokens = [], []
    async for step in engine.generate(prompt, Sampling(max_tokens=n_new, temperature=0.0, ignore_eos=True)):
        times.append(time.perf_counter())
        tokens.append(step.token)
    return times, tokens


async def row(engine, n, n_prompt, n_new):
    """Run ``n`` requests at once; return tokens a second in all, while all write, and the time to the first token."""
    rng = random.Random(n)
    prompts = [[rng.randrange(2, 100_000) for _ in range(n_prompt)] for _ in range(n)]
    start = time.perf_counter()
    done = await asyncio.gather(*(one(engine, p, n_new) for p in prompts))
    seconds = time.perf_counter() - start
    n_made = sum(len(tokens) for _, tokens in done)
    begin, end = max(times[0] for times, _ in done), min(times[-1] for times, _ in done)
    n_between = sum(begin < t <= end for times, _ in done for t in times)
    writing = n_between / (end - begin) if end > begin else 0.0
    return n_made / seconds, writing, statistics.median(times[0] - start for times, _ in done)


async def same_twice(engine, n_prompt, n_new):
    """Say whether a request gets the same tokens from steps that run and from steps that are replayed.

    It is shorter than a page of the cache: pages that are found again would be other computations.
    """
    prompt = [random.Random(0).randrange(2, 100_000) for _ in range(n_prompt)]
    first = (await one(engine, prompt, n_new))[1]
    return first == (await one(engine, prompt, n_new))[1]


def tokens_alone(model, options, n_prompt):
    """Return the tokens that an engine makes for one request."""
    engine = make_engine(options, model, tokenizer_for(model.config))
    engine.start()
    try:
        draw = random.Random(1)
        return asyncio.run(one(engine, [draw.randrange(2, 100_000) for _ in range(n_prompt)], 40))[1]
    finally:
        engine.stop()


def compare(model, options, arguments, name):
    """Say whether graphs, or packed keys and values, change a token."""
    usual = ServeOptions(model=options.model, slots=options.slots, context=options.context, graphs=False)
    expected = tokens_alone(model, usual, arguments.prompt)
    found = tokens_alone(model, options, arguments.prompt)
    same = sum(a == b for a, b in zip(expected, found, strict=True))
    what = "packed KV" if options.kv == "packed" else "graphs"
    say(f"{name}: with {what} {same} of {len(expected)} tokens are those without")


def measure(model, options, arguments, name):
    """Print the rows of one form of the weights; return tokens a second by concurrency."""
    if (options.graphs is not False and torch.cuda.is_available()) or options.kv == "packed":
        compare(model, options, arguments, name)
    engine = make_engine(options, model, tokenizer_for(model.config))
    engine.start()
    info = engine.info
    say(f"{name}: window {info.context}, KV {engine._kv_tokens} tokens")
    speeds = {}
    try:
        say(f"{name}: same tokens twice: {asyncio.run(same_twice(engine, 30, 24))}")
        for n in arguments.concurrent:
            asyncio.run(row(engine, n, arguments.prompt, 6))  # graphs and allocators
            speeds[n], writing, first = asyncio.run(row(engine, n, arguments.prompt, arguments.new))
            rates = f"{speeds[n]:.1f} tokens/s, {writing:.1f} while all write"
            say(f"{name}: {n} at once: {rates}, first {1000 * first:.0f} ms")
            if options.kv == "packed":
                held = engine.kv()
                say(f"{name}: KV {held.nbytes / 1e6:.1f} MB, plain {held.plain_nbytes / 1e6:.1f}")
        for n in arguments.profile:
            kinds = [ProfilerActivity.CUDA] if torch.cuda.is_available() else [ProfilerActivity.CPU]
            with profile(activities=kinds) as seen:
                asyncio.run(row(engine, n, arguments.prompt, 12))
            by = "cuda_time_total" if torch.cuda.is_available() else "cpu_time_total"
            say(f"{name}: {n} at once, 12 steps:")
            for event in sorted(seen.key_averages(), key=lambda e: -getattr(e, by.replace("cuda", "device")))[:16]:
                ms = getattr(event, by.replace("cuda", "device")) / 1000
                print(f"    {ms:9.2f} ms {event.count:6} {event.key[:100]}", flush=True)
    finally:
        engine.stop()
    if torch.cuda.is_available():
        say(f"{name}: peak {torch.cuda.max_memory_allocated() / 1e9:.1f} GB")
    return speeds


def numbers(text):
    """Return comma-separated numbers."""
    return [int(n) for n in text.split(",")]


def main():
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("--layouts", default="bf16,mma12")
    parser.add_argument("--concurrent", type=numbers, default=[1, 8, 32, 128])
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--new", type=int, default=64)
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--graphs", action=argparse.BooleanOptionalAction, default=None, help="CUDA graphs")
    parser.add_argument("--kv", choices=("plain", "packed"), default="plain")
    parser.add_argument("--profile", type=numbers, default=[])
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    torch.set_grad_enabled(False)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config = transformers.AutoConfig.from_pretrained(arguments.config)
    options = ServeOptions(model=arguments.config, slots=max(arguments.concurrent), context=arguments.context)
    options.graphs = arguments.graphs
    options.kv = arguments.kv
    results = {}
    for layout in arguments.layouts.split(","):
        try:
            model = random_model(config, device)
            if layout != "bf16":
                packed = pack_modules(model, layout)
                if device.type == "cuda":
                    merge_modules(model)
                say(f"{layout}: {packed.n_matrices} matrices packed in {packed.seconds:.1f} s, wrong {packed.wrong}")
            say(f"{layout}: weights {describe_model(model, layout).weight_nbytes / 1e9:.2f} GB")
            if layout == "bf16" and device.type == "cuda":
                merge_plain(model)
            results[layout] = measure(model, options, arguments, layout)
        except Exception:
            traceback.print_exc()
        model = None
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
    base = results.get("bf16", {})
    for layout, speeds in results.items():
        say(layout, {n: f"{v:.1f}" + (f" ({v / base[n]:.2f}x)" if n in base else "") for n, v in speeds.items()})
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(results, file)


if __name__ == "__main__":
    main()

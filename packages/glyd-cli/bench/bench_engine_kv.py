# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Steps of the engine with plain and with packed keys and values: python bench_engine_kv.py CONFIG [--tokens 2000,4000]

CONFIG is a directory with a config.json: the weights are drawn at random. One request writes tokens after a prompt of so
many, by both engines in turns in one process, on one thread. A row is the median step of each, and the bytes held.
"""

import argparse
import asyncio
import statistics
import time

import torch
import transformers
from bench_serving import numbers, tokenizer_for

from glyd_cli.serve import ServeOptions
from glyd_cli.serving.engine import Sampling
from glyd_cli.serving.loading import make_engine
from glyd_gpu._random_weights import random_model


async def seconds(engine, prompt, n):
    """Return the time that an answer of n tokens takes, and the tokens."""
    start = time.perf_counter()
    rules = Sampling(max_tokens=n, temperature=0.0, ignore_eos=True)
    tokens = [step.token async for step in engine.generate(prompt, rules)]
    return time.perf_counter() - start, tokens


def row(model, config, n, options):
    """Measure one number of tokens, and print it."""
    engines = {}
    for kv in ("plain", "packed"):
        given = ServeOptions(model="model", slots=2, context=n + 400, kv=kv)
        engines[kv] = make_engine(given, model, tokenizer_for(config))
        engines[kv].start()
    prompt = [(i * 7919) % 40_000 + 5 for i in range(n)]
    steps = {kv: [] for kv in engines}
    tokens = {kv: [] for kv in engines}
    try:
        for engine in engines.values():
            asyncio.run(seconds(engine, prompt, 2))
        for _ in range(options.rounds):
            for kv, engine in engines.items():
                short, _ = asyncio.run(seconds(engine, prompt, 2))
                long, made = asyncio.run(seconds(engine, prompt, 2 + options.steps))
                steps[kv].append(1000 * (long - short) / options.steps)
                tokens[kv].append(made)
        held = engines["packed"].kv()
    finally:
        for engine in engines.values():
            engine.stop()
    plain, packed = (statistics.median(steps[kv]) for kv in ("plain", "packed"))
    same = "the same" if tokens["plain"] == tokens["packed"] else "OTHER"
    print(
        f"{n} tokens: {plain:.1f} ms a step plain, {packed:.1f} packed ({packed / plain:.2f} x), "
        f"{held.nbytes / 1e6:.1f} of {held.plain_nbytes / 1e6:.1f} MB, {same} tokens",
        flush=True,
    )


def main():
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("--tokens", type=numbers, default=[2000, 4000])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    config = transformers.AutoConfig.from_pretrained(options.config)
    model = random_model(config, torch.device("cpu"))
    for n in options.tokens:
        row(model, config, n, options)


if __name__ == "__main__":
    main()

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Are the tokens of the engine those of the model alone? On a GPU, with CUDA graphs and without: python check_engine.py

A random model of a few layers answers prompts of one token up to more than a step holds, many at once. Every token
must be the likeliest, or as good as that, by the model alone on all that came before it.
"""

import asyncio
import gc
import random
import sys
import time

import torch
import transformers
from bench_serving import tokenizer_for

from glyd_cli.serving.engine import Sampling
from glyd_cli.serving.transformers_engine import TransformersEngine, describe_model
from glyd_gpu._pack_live import pack_modules
from glyd_gpu._random_weights import random_model

SHAPES = [  # heads, key heads, channels, window of every layer but the last (0: none)
    (8, 2, 128, 0),
    (8, 1, 64, 0),
    (6, 2, 80, 0),
    (4, 4, 96, 0),
    (2, 1, 256, 0),
    (8, 2, 128, 100),
    (2, 1, 256, 1024),
]
SIZES = [(1, 150), (300, 60), (5000, 20), (64, 5), (63, 3), (129, 70), *((10 + i, 40) for i in range(20))]


def model_of(heads, key_heads, channels, window, device):
    """Return a random model."""
    kinds = ["sliding_attention" if window else "full_attention"] * 2 + ["full_attention"]
    config = transformers.Qwen3Config(
        vocab_size=4096, hidden_size=512, intermediate_size=1024, num_hidden_layers=3, num_attention_heads=heads,
        num_key_value_heads=key_heads, head_dim=channels, max_position_embeddings=8192, tie_word_embeddings=False,
        initializer_range=0.2, eos_token_id=1, bos_token_id=None, layer_types=kinds, use_sliding_window=window > 0,
        sliding_window=window or None,
    )  # fmt: skip
    return random_model(config, device)


async def ask(engine, prompt, n):
    """Return the steps of an answer."""
    given = Sampling(max_tokens=n, temperature=0.0, ignore_eos=True, n_logprobs=0)
    return [step async for step in engine.generate(prompt, given)]


def answers_of(model, prompts, *, graphs):
    """Return the answers of an engine, each prompt twice, all at once."""
    info = describe_model(model, "x", context=8192)
    sizes = {"n_slots": 24, "kv_tokens": 40_000}
    engine = TransformersEngine(model, tokenizer_for(None), info, **sizes, paged=True, graphs=graphs, parts=graphs)
    engine.start()

    async def all_of_them():
        return await asyncio.gather(*(ask(engine, p, m) for p, (_, m) in zip(prompts, SIZES, strict=True)))

    try:
        return [pair for _ in range(2) for pair in zip(prompts, asyncio.run(all_of_them()), strict=True)]
    finally:
        engine.stop()


def worst_of(model, prompt, steps):
    """Return how far log-probabilities, and the choice of the likeliest, are from those of the model alone."""
    tokens = torch.tensor([prompt + [s.token for s in steps]], device=model.device)
    table = model(tokens).logits[0, len(prompt) - 1 : -1].float().log_softmax(-1)
    chosen = torch.tensor([s.token for s in steps], device=model.device)
    of_chosen = table.gather(1, chosen.unsqueeze(1)).squeeze(1)
    told = torch.tensor([s.logprob for s in steps], device=model.device)
    return (of_chosen - told).abs().max().item(), (table.amax(-1) - of_chosen).max().item()


def main():
    """Check every shape."""
    torch.set_grad_enabled(False)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    draw = random.Random(7)
    failed = 0
    for shape in SHAPES:
        model = model_of(*shape, device)
        if shape == SHAPES[0] and device.type == "cuda":
            pack_modules(model, "mma12")
        prompts = [[draw.randrange(3, 4000) for _ in range(n)] for n, _ in SIZES]
        for graphs in (False, True) if device.type == "cuda" else (False,):
            start = time.perf_counter()
            found = answers_of(model, prompts, graphs=graphs)
            lengths = [len(steps) for _, steps in found] == 2 * [m for _, m in SIZES]
            worst = [worst_of(model, prompt, steps) for prompt, steps in found]
            off, margin = (max(column) for column in zip(*worst, strict=True))
            bad = not lengths or off > 0.35 or margin > 0.35
            failed += bad
            print(
                f"{'FAIL' if bad else 'ok'} {shape} graphs {graphs}: {len(found)} answers, log-probabilities {off:.3f} "
                f"off at most, likeliest by {margin:.3f}, {time.perf_counter() - start:.1f} s",
                flush=True,
            )
        del model
        gc.collect()
    print(f"{failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

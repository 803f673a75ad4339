# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""A model with a plain and with a packed cache: prompts, steps, memory. A line each, at once.

python bench_kv_model.py CONFIG [--batch 16] [--prompt 32768] [--new 32] [--kinds plain,packed,decoded]

CONFIG is a directory with a config.json; the weights are drawn at random where they run. ``packed`` attends on the
pages (on CUDA), ``decoded`` decodes them for the installed attention, and so makes the tokens of ``plain``.
"""

import argparse
import gc
import time
import traceback

import torch
import transformers
from transformers import DynamicCache

from glyd_gpu import GlydKVCache
from glyd_gpu._e2e_kv import _run
from glyd_gpu._kv_attention import register
from glyd_gpu._random_weights import random_model

START = time.perf_counter()


def say(*words):
    """Print with the time since the start, at once."""
    print(f"[{time.perf_counter() - START:6.1f}]", *words, flush=True)


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--prompt", type=int, default=32768)
    parser.add_argument("--new", type=int, default=32)
    parser.add_argument("--kinds", default="plain,packed,decoded")
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = random_model(transformers.AutoConfig.from_pretrained(options.config), device)
    say(f"model {sum(p.nbytes for p in model.parameters()) / 1e9:.2f} GB on {device}")
    generator = torch.Generator().manual_seed(1)
    words = model.config.get_text_config().vocab_size
    prompt = torch.randint(0, words, (options.batch, options.prompt), generator=generator).to(device)
    expected = plain = None
    for kind in options.kinds.split(","):
        try:
            model.set_attn_implementation("sdpa")
            if kind == "packed":
                register(model)
            cache = DynamicCache(config=model.config)
            if kind != "plain":
                cache = GlydKVCache(model.config, direct=kind == "packed")
            side, tokens = _run(model, cache, prompt, options.new)
            line = (
                f"{options.batch} x {options.prompt} tokens, {kind}: cache {side.nbytes / 1e9:.3f} GB, prompts "
                f"{side.prompt_ms:.0f} ms, {side.step_ms:.3f} ms a step, {side.tokens_s:.1f} tokens/s, "
                f"peak {side.peak_nbytes / 1e9:.2f} GB"
            )
            if kind == "plain":
                expected, plain = tokens, side
            elif plain is not None:
                same = int((tokens == expected).sum())
                line += (
                    f"; of plain: bytes {side.nbytes / plain.nbytes:.3f}, step {side.step_ms / plain.step_ms:.3f} x, "
                    f"prompts {side.prompt_ms / plain.prompt_ms:.3f} x, tokens identical {same} of {tokens.numel()}"
                )
            say(line)
        except Exception:  # noqa: BLE001 - the other kinds go on
            traceback.print_exc()
            say(f"{kind}: failed")
        cache = None
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()

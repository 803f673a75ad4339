# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""From a directory to the first token, and what was predicted of its memory. A line a result, at once.

python bench_start.py CONFIG FOLDER [--layout mma12] [--context 8192] [--only make,run,memory,doctor]

CONFIG is a directory with a config.json. FOLDER gets a bf16 checkpoint of random weights and the same packed; both
stay there and are used again. Then: ``glyd run PACKED -p …`` to its first token, twice in processes of their own;
``glyd fit`` beside what loading takes; and whether the window that is promised is served.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
import traceback
from pathlib import Path

import torch
import transformers
from bench_serving import say, tokenizer_for

import glyd
import glyd_gpu
from glyd_cli.serve import ServeOptions
from glyd_cli.serving.engine import Sampling
from glyd_cli.serving.loading import make_engine
from glyd_gpu._random_weights import random_model

GLYD = [sys.executable, "-m", "glyd_cli"]
CUDA = torch.cuda.is_available()


def step(work):
    """Do one part; a part that fails leaves the others."""
    try:
        work()
    except Exception:
        traceback.print_exc()
        say(f"{work.__name__}: failed")


def make(options, plain, packed):
    """Write the checkpoint and its packed form, unless they are there."""
    if not (packed / "glyd.json").is_file():
        config = transformers.AutoConfig.from_pretrained(options.config)
        start = time.perf_counter()
        model = random_model(config, torch.device("cuda" if CUDA else "cpu"))
        model.save_pretrained(plain)
        tokenizer_for(config).save_pretrained(plain)
        say(f"checkpoint: written in {time.perf_counter() - start:.1f} s")
        shutil.rmtree(packed, ignore_errors=True)
        start = time.perf_counter()
        glyd.pack_model(plain, packed, options.layout, threads=0)
        nbytes = sum(f.stat().st_size for f in packed.glob("*.safetensors"))
        say(f"packed: {nbytes / 1e9:.2f} GB in {time.perf_counter() - start:.1f} s")


def run_once(options, _plain, packed):
    """Run the command to its first token and to its end."""
    for number in (1, 2):
        command = [*GLYD, "run", packed, "-p", "w7 w8 w9", "--max-tokens", "2", "--context", str(options.context)]
        start = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
        )
        process.stdout.read(1)
        first = time.perf_counter() - start
        _, err = process.communicate(timeout=300)
        say(
            f"glyd run, {number}. time: first token after {first:.2f} s, exit {process.returncode} {err.decode()[-300:]}"
        )


def check_memory(options, _plain, packed):
    """Load, and compare with what was said before."""
    told = glyd.fit(packed, context=options.context)
    expected = told.weights[told.packed]
    say(
        f"fit: weights {expected.nbytes / 1e9:.3f} GB, KV {told.kv_nbytes / 1e9:.3f} GB at {options.context} tokens, "
        f"in all {expected.total_nbytes / 1e9:.2f} GB"
    )
    before = torch.cuda.mem_get_info()[0] if CUDA else 0
    start = time.perf_counter()
    model = glyd_gpu.from_pretrained(packed, device="cuda" if CUDA else "cpu")
    if CUDA:
        torch.cuda.synchronize()
    say(f"loaded in {time.perf_counter() - start:.2f} s")
    tokenizer = transformers.AutoTokenizer.from_pretrained(packed)
    given = ServeOptions(model=str(packed), context=options.context, slots=1)
    engine = make_engine(given, model, tokenizer)
    off = (engine.info.weight_nbytes - expected.nbytes) / 2**30
    say(f"weights held {engine.info.weight_nbytes / 1e9:.3f} GB: {off:+.3f} GiB off (0.1 are allowed)")
    engine.start()
    try:
        prompt = [2 + i % 250 for i in range(options.context - 4)]

        async def answer():
            rules = Sampling(max_tokens=4, temperature=0.0, ignore_eos=True)
            return [s.token async for s in engine.generate(prompt, rules)]

        start = time.perf_counter()
        n = len(asyncio.run(answer()))
        say(f"window of {options.context} served: {n} of 4 tokens after {time.perf_counter() - start:.2f} s")
    finally:
        engine.stop()
    if CUDA:
        used = before - torch.cuda.mem_get_info()[0]
        say(f"GPU memory taken {used / 1e9:.2f} GB, at most {torch.cuda.max_memory_allocated() / 1e9:.2f} allocated")


def doctor(_options, _plain, _packed):
    """See what doctor says here."""
    start = time.perf_counter()
    done = subprocess.run([*GLYD, "doctor", "--json"], capture_output=True, check=False, text=True)
    found = json.loads(done.stdout)
    bad = [row for row in found["checks"] if row["state"] != "ok"]
    say(f"glyd doctor: exit {done.returncode} in {time.perf_counter() - start:.1f} s; not ok: {bad}")


def main():
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layout", default="mma12")
    parser.add_argument("--context", type=int, default=8192)
    parser.add_argument(
        "--only", default="make,run,memory,doctor", help="parts, of which the last three need the first"
    )
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    transformers.utils.logging.disable_progress_bar()
    plain, packed = options.folder / "bf16", options.folder / options.layout
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.only.split(","):

        def work(part=PARTS[name]):
            part(options, plain, packed)

        work.__name__ = name
        step(work)


PARTS = {"make": make, "run": run_once, "memory": check_memory, "doctor": doctor}

if __name__ == "__main__":
    main()

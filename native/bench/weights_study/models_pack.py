# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Pack, verify and unpack whole models: sizes, rates a core, peak memory, and that every byte comes back.

    python models_pack.py [--layers N] [--threads N] [MODEL ...]

Without MODEL: Gaussian models (σ 0.02) with the widths of known families, of few layers and 8,192 words,
made in a temporary folder. Needs glyd-codec and numpy. Each step runs in a process of its own.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

VOCAB = 8192
# hidden, intermediate, query and key-value rows, experts (0: none), merged projections
FAMILIES = {
    "Qwen3-8B": (4096, 12288, 4096, 1024, 0, False),
    "Llama-3.1-8B": (4096, 14336, 4096, 1024, 0, False),
    "Mistral-7B": (4096, 14336, 4096, 1024, 0, False),
    "Granite-3-8B": (4096, 12800, 4096, 1024, 0, False),
    "Gemma-3-4B": (2560, 10240, 2048, 1024, 0, False),
    "Phi-4-mini": (3072, 8192, 3072, 1024, 0, True),
    "SmolLM2-360M": (960, 2560, 960, 320, 0, False),
    "Qwen3-30B-A3B": (2048, 768, 4096, 512, 32, False),
}

STEP = """
import json, resource, sys, time, glyd
verb, threads, *paths = sys.argv[1:]
def memory():  # ru_maxrss would start at that of the process before exec
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) * 1024
base = memory()
call = {"verify": glyd.verify_model, "unpack": glyd.unpack_model}.get(verb)
extra = {} if call else {"layout": verb}
wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
report = (call or glyd.pack_model)(*paths, threads=int(threads), **extra)
wall, after = time.perf_counter() - wall, resource.getrusage(resource.RUSAGE_SELF)
user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
print(json.dumps({
    "wall": wall, "user": user, "cpu": user + system, "peak": memory() - base,
    "nbytes": report.original_nbytes, "bits": getattr(report, "bits_per_weight", 0),
    "entropy": getattr(report, "entropy_bits", 0), "ratio": report.nbytes / report.original_nbytes,
}))
"""


def gaussian(rng, shape):
    n = int(np.prod(shape))
    bits = (rng.standard_normal(n, dtype=np.float32) * np.float32(0.02)).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2").tobytes()


def family(name, layers):
    """Names and shapes of a model's tensors."""
    hidden, wide, query, key, experts, merged = FAMILIES[name]
    tensors = {"model.embed_tokens.weight": (VOCAB, hidden), "model.norm.weight": (hidden,)}
    for i in range(layers):
        p = f"model.layers.{i}."
        if merged:
            tensors |= {f"{p}self_attn.qkv_proj.weight": (query + 2 * key, hidden)}
            tensors |= {f"{p}mlp.gate_up_proj.weight": (2 * wide, hidden)}
        else:
            tensors |= {
                f"{p}self_attn.{n}_proj.weight": (rows, hidden)
                for n, rows in zip("qkv", (query, key, key), strict=True)
            }
        tensors |= {f"{p}self_attn.o_proj.weight": (hidden, query), f"{p}input_layernorm.weight": (hidden,)}
        for e in range(experts or 1):
            q = f"{p}mlp.experts.{e}." if experts else f"{p}mlp."
            if not merged:
                tensors |= {f"{q}gate_proj.weight": (wide, hidden), f"{q}up_proj.weight": (wide, hidden)}
            tensors |= {f"{q}down_proj.weight": (hidden, wide)}
    return tensors


def write(folder, tensors):
    folder.mkdir()
    rng = np.random.default_rng(1)
    header, at = {}, 0
    for name, shape in tensors.items():
        nbytes = 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + nbytes]}
        at += nbytes
    text = json.dumps(header).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for shape in tensors.values():
            file.write(gaussian(rng, shape))
    (folder / "config.json").write_text("{}")


def hashes(folder):
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            with path.open("rb") as file:
                found[name.as_posix()] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def step(verb, threads, *paths):
    command = [sys.executable, "-c", STEP, verb, str(threads), *map(str, paths)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(name, model, work, threads):
    original = hashes(model)
    for layout in ("mma12", "tiered"):
        packed, back = work / f"packed-{layout}", work / f"back-{layout}"
        p = step(layout, threads, model, packed)
        v = step("verify", threads, packed)
        u = step("unpack", threads, packed, back)
        same = hashes(back) == original
        rates = " | ".join(
            f"{s['nbytes'] / s['wall'] / 1e9:.2f}, {s['nbytes'] / s['cpu'] / 1e9:.2f}" for s in (p, v, u)
        )
        largest = f"{p['peak'] / 1e6:.0f} MB"
        print(
            f"| {name} | {p['nbytes'] / 1e6:.0f} | {layout} | {p['entropy']:.3f} | {p['bits']:.3f} "
            f"| {100 * p['ratio']:.1f}% | {rates} | {p['nbytes'] / p['user'] / 1e9:.2f} | {largest} | {'yes' if same else 'NO'} |",
            flush=True,
        )
        for folder in (packed, back):
            subprocess.run(["rm", "-r", str(folder)], check=True)
        if not same:
            sys.exit(f"{name}, {layout}: other bytes")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("models", nargs="*")
    options = parser.parse_args()
    print("GB of bf16 a second: by the clock, a second of CPU time; last of packing, without the system's time\n")
    print("| model | MB | layout | entropy | bits/weight | of it | pack | verify | unpack | pack, user | peak | same |")
    print("| --- |" + " --- |" * 11)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        work = Path(folder)
        for model in options.models:
            measure(Path(model).name, Path(model), work, options.threads)
        for name in () if options.models else FAMILIES:
            write(work / "model", family(name, options.layers))
            measure(name, work / "model", work, options.threads)
            subprocess.run(["rm", "-r", str(work / "model")], check=True)


if __name__ == "__main__":
    main()

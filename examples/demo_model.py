# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: Apache-2.0
"""The main job of glyd on a model: train a small one, pack it, run it packed, restore it.

``python demo_model.py REPOSITORY FOLDER [SECONDS]`` trains a Qwen3 of a few
million weights on this repository's own texts for some seconds, so nothing is
downloaded. Packing and restoring is done by the ``glyd`` command, running by
transformers on the CPU, with glyd-gpu. Every step is checked; the first one that
fails ends the demo with an exit code.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"  # whatever it looks for is here

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

import glyd

COMMAND = Path(sys.executable).with_name("glyd")
N_TOKENS, CONTEXT, BATCH = 4096, 128, 4
PROMPT = "A frame is cut into segments"


def step(number: int, text: str) -> None:
    """Print a headline."""
    print(f"\n{number}. {text}", flush=True)


def check(good: bool, what: str) -> None:
    """End the demo when something is not as it must be."""
    if not good:
        sys.exit(f"demo: {what}")


def run(*arguments: str | Path) -> str:
    """Run glyd and return its standard output; a failure ends the demo."""
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"glyd {arguments} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def make_tokenizer(text: str) -> PreTrainedTokenizerFast:
    """Train byte-level BPE on a text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=N_TOKENS, special_tokens=["<|end|>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(text.splitlines(keepends=True), trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|end|>")  # noqa: S106


def train(repository: Path, out: Path, seconds: float) -> None:
    """Train a model and save it as a bf16 checkpoint with its tokenizer."""
    paths = [p for name in ("docs", "packages", "native") for p in (repository / name).rglob("*.md")]
    text = "\n".join(p.read_text(encoding="utf-8") for p in sorted([*paths, *repository.glob("*.md")]))
    tokenizer = make_tokenizer(text)
    ids = torch.tensor(tokenizer(text)["input_ids"])
    config = Qwen3Config(
        vocab_size=N_TOKENS, hidden_size=256, intermediate_size=768, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, head_dim=64, max_position_embeddings=512, tie_word_embeddings=True,
        bos_token_id=None, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    torch.manual_seed(1)
    model = Qwen3ForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    start, n, losses = time.perf_counter(), 0, []
    while time.perf_counter() - start < seconds:
        places = torch.randint(0, len(ids) - CONTEXT, (BATCH, 1)) + torch.arange(CONTEXT)
        loss = model(ids[places], labels=ids[places]).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        n += 1
    model.to(torch.bfloat16).save_pretrained(out)
    tokenizer.save_pretrained(out)
    n_weights = sum(p.numel() for p in model.parameters())
    print(
        f"   {n_weights:,} weights, {n} steps of {BATCH * CONTEXT:,} tokens in {seconds:.0f} s: "
        f"loss {losses[0]:.2f} → {sum(losses[-10:]) / len(losses[-10:]):.2f}"
    )


def folder_nbytes(folder: Path) -> int:
    """Return the bytes of the weight files of a folder."""
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))


def compare(plain: Path, packed: Path) -> None:
    """Run both, compare logits and texts."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(packed)
    ids = tokenizer(PROMPT, return_tensors="pt")["input_ids"]
    answers, logits, seconds = {}, {}, {}
    for name, model in (
        ("bf16", AutoModelForCausalLM.from_pretrained(plain)),
        ("packed", glyd.from_pretrained(packed, device="cpu", exact=True)),
    ):
        with torch.no_grad():
            logits[name] = model(ids).logits
        start = time.perf_counter()
        answers[name] = model.generate(ids, max_new_tokens=24, do_sample=False, no_repeat_ngram_size=3)
        seconds[name] = time.perf_counter() - start
        memory = sum(p.numel() * p.element_size() for p in model.parameters())
        print(f"   {name:<7} {memory:>12,} bytes in memory, 24 tokens in {seconds[name]:.2f} s")
    check(torch.equal(logits["packed"], logits["bf16"]), "the logits of the packed model are not those of bf16")
    check(torch.equal(answers["packed"], answers["bf16"]), "the packed model writes another text")
    print(f"   all {logits['bf16'].numel():,} logits equal, bit for bit; both write:")
    print(f"   {tokenizer.decode(answers['packed'][0])!r}")


def restore(plain: Path, packed: Path, restored: Path) -> None:
    """Unpack, and compare every file with the original's hash."""
    run("verify", packed)
    run("unpack", packed, restored)
    names = sorted(path.name for path in plain.iterdir())
    check(names == sorted(path.name for path in restored.iterdir()), "files are missing or added")
    for name in names:
        one, other = (hashlib.sha256((folder / name).read_bytes()).hexdigest() for folder in (plain, restored))
        check(one == other, f"{name} differs")
    print(f"   {len(names)} files restored, SHA-256 of each equal to its original's")


def main() -> None:
    """Run the demo."""
    repository, folder = (Path(name).resolve() for name in sys.argv[1:3])
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 40.0
    transformers.utils.logging.disable_progress_bar()
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // 2))  # waiting for a core that others hold is slower than one
    start = time.perf_counter()
    work = folder / "demo-model"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    plain, restored = work / "model", work / "restored"

    step(1, "Train a small language model on this repository's texts; save it in bf16")
    train(repository, plain, seconds)

    step(2, "Pack it, in both layouts")
    for layout in ("tiered", "mma12"):
        text = run("pack", plain, work / layout, "--layout", layout)
        print("   " + text.strip().replace(f"{work}/", "").replace("\n", "\n   "))
        before, after = folder_nbytes(plain), folder_nbytes(work / layout)
        print(f"   weights on disk: {before:,} → {after:,} bytes, {after / before:.1%}")

    step(3, "Run it packed, on the CPU; compare with bf16")
    for layout in ("tiered", "mma12"):
        compare(plain, work / layout)

    step(4, "Restore it")
    restore(plain, work / "tiered", restored)

    print(f"\ndemo: passed, a model packed, run and restored in {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()

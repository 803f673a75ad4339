# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: Apache-2.0
"""Train a small chat model on what collect.py wrote: ``python train.py TALKS.jsonl OUT --seconds 90``.

A Qwen3 of six million weights with tied embeddings, saved in bf16 with
tokenizer and chat template. One large GPU needs about a minute and a half,
two CPU cores an hour or two. Needs torch, transformers and tokenizers.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

START, END, TEXT_END = "<|im_start|>", "<|im_end|>", "<|endoftext|>"
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CONTEXT = 512


def make_tokenizer(talks: list[list[dict[str, str]]], n_tokens: int) -> PreTrainedTokenizerFast:
    """Train byte-level BPE on the conversations."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=n_tokens, special_tokens=[TEXT_END, START, END], initial_alphabet=alphabet)
    tokenizer.train_from_iterator((m["content"] for talk in talks for m in talk), trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END, pad_token=TEXT_END, model_max_length=2 * CONTEXT,
        clean_up_tokenization_spaces=False,
    )  # fmt: skip
    fast.chat_template = TEMPLATE
    return fast


def make_rows(talks: list[list[dict[str, str]]], tokenizer: PreTrainedTokenizerFast, seed: int) -> torch.Tensor:
    """Return the conversations in a new order as rows of CONTEXT + 1 tokens, one after the other without gaps."""
    order = list(talks)
    random.Random(seed).shuffle(order)
    texts = [
        "".join(f"{START}{m['role']}\n{m['content']}{END}\n" for m in talk) + TEXT_END for talk in order
    ]  # the template, spelled out: thousands of times faster
    ids = [i for row in tokenizer(texts, add_special_tokens=False)["input_ids"] for i in row]
    n_rows = len(ids) // (CONTEXT + 1)
    return torch.tensor(ids[: n_rows * (CONTEXT + 1)]).view(n_rows, CONTEXT + 1)


def train(model: Qwen3ForCausalLM, talks: list[list[dict[str, str]]], tokenizer: PreTrainedTokenizerFast,
          seconds: float, batch: int, peak: float) -> None:  # fmt: skip
    """Train for a time; the learning rate falls to zero at its end."""
    device = model.device
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": 0.02}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=peak, betas=(0.9, 0.98), fused=device.type == "cuda")
    start, step, epoch, done = time.monotonic(), 0, 0, False
    while not done:
        rows = make_rows(talks, tokenizer, epoch).to(device)
        epoch += 1
        for at in range(0, len(rows) - batch + 1, batch):
            part = (time.monotonic() - start) / seconds
            if part >= 1:
                done = True
                break
            rate = peak * min(1.0, (step + 1) / 50) * 0.5 * (1 + math.cos(math.pi * part))
            for group in optimizer.param_groups:
                group["lr"] = rate
            block = rows[at : at + batch]
            with torch.autocast(device.type, torch.bfloat16):
                logits = model(input_ids=block[:, :-1]).logits
            loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), block[:, 1:].flatten())
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            if step % 100 == 0:
                print(f"step {step} epoch {epoch} loss {loss.item():.3f} {100 * part:.0f}%", flush=True)
            step += 1
    print(f"{step} steps, {epoch} epochs, {step * batch * CONTEXT / 1e6:.1f} M tokens")


def score(model: Qwen3ForCausalLM, talks: list[list[dict[str, str]]], tokenizer: PreTrainedTokenizerFast) -> None:
    """Print how many of 128 "What does X do?" are answered word for word."""
    asked = [t for t in talks if len(t) == 2 and t[0]["content"].startswith("What does ")][:128]
    prompts = [tokenizer.apply_chat_template(t[:1], tokenize=False, add_generation_prompt=True) for t in asked]
    tokenizer.padding_side = "left"
    inputs = tokenizer(prompts, return_tensors="pt", padding=True, add_special_tokens=False).to(model.device)
    inputs.pop("token_type_ids", None)
    made = model.generate(**inputs, max_new_tokens=120, do_sample=False)
    answers = tokenizer.batch_decode(made[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    right = sum(a.strip() == t[1]["content"].strip() for a, t in zip(answers, asked, strict=True))
    print(f"word for word: {right} of {len(asked)}")
    for answer, talk in list(zip(answers, asked, strict=True))[:3]:
        print(f"  {talk[0]['content']}\n    {answer.strip()[:200]}")


def main() -> None:
    """Train, save, score."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("talks", type=Path)
    options.add_argument("out", type=Path)
    options.add_argument("--seconds", type=float, default=90.0)
    options.add_argument("--batch", type=int, default=64, help="rows of 512 tokens")
    options.add_argument("--rate", type=float, default=3e-3, help="highest learning rate")
    options.add_argument("--compile", action="store_true")
    given = options.parse_args()
    talks = [json.loads(line) for line in given.talks.read_text(encoding="utf-8").splitlines()]
    torch.manual_seed(0)
    tokenizer = make_tokenizer(talks, 4096)
    config = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=256, intermediate_size=768, num_hidden_layers=6, num_attention_heads=4,
        num_key_value_heads=2, head_dim=64, max_position_embeddings=2 * CONTEXT, tie_word_embeddings=True,
        rope_theta=10000.0, bos_token_id=None, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Qwen3ForCausalLM(config).to(device)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} M weights on {device}")
    train(torch.compile(model) if given.compile else model, talks, tokenizer, given.seconds, given.batch, given.rate)
    model = model.to(torch.bfloat16).eval()
    model.generation_config.do_sample, model.generation_config.temperature = True, 0.2
    model.save_pretrained(given.out)
    tokenizer.save_pretrained(given.out)
    score(model, talks, tokenizer)


if __name__ == "__main__":
    main()

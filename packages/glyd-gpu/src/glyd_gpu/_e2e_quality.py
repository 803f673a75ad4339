# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Perplexity of a text and answers to multiple-choice questions, for `glyd_gpu.e2e`."""

from __future__ import annotations

import json
import os
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

from glyd_gpu._errors import ParameterError

WINDOW = 1024  # tokens that are predicted from one another
LETTERS = "ABCD"
MMLU = "cais/mmlu"


@torch.no_grad()
def perplexity(model: Any, tokenizer: Any, path: str) -> float:
    """Return exp of the mean loss a token of a text file, in windows of 1,024 tokens.

    Raises
    ------
    ParameterError
        The text has fewer than two tokens.
    """
    with open(path, encoding="utf-8") as file:
        ids = torch.tensor(tokenizer(file.read()).input_ids, device=model.device)
    if ids.numel() < 2:
        raise ParameterError(f"{path}: {ids.numel()} tokens; perplexity needs at least 2")
    loss, n = 0.0, 0
    for window in ids.split(WINDOW):
        if window.numel() > 1:
            logits = model(window.unsqueeze(0)).logits[0, :-1].float()
            loss += float(F.cross_entropy(logits, window[1:], reduction="sum").double())
            n += window.numel() - 1
    return float(torch.tensor(loss / n, dtype=torch.float64).exp())


def questions(what: str) -> list[dict[str, Any]]:
    """Return questions: of a file of JSON lines (question, four choices, answer 0 to 3), or so many of the hub's MMLU.

    Raises
    ------
    ParameterError
        The file has a line that is no question, or nothing reads the hub's files here.
    """
    if not what.isdecimal() or os.path.exists(what):
        found = []
        with open(what, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    item = json.loads(line)
                    if len(item["choices"]) != len(LETTERS) or not 0 <= int(item["answer"]) < len(LETTERS):
                        raise ValueError("four choices, and an answer from 0 to 3")
                    found.append(
                        {"question": str(item["question"]), "choices": item["choices"], "answer": item["answer"]}
                    )
                except (KeyError, TypeError, ValueError) as error:
                    raise ParameterError(f"{what}: line {number} is no question: {error}") from None
        if not found:
            raise ParameterError(f"{what}: no questions")
        return found
    try:
        from pyarrow import parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: PLC0415
    except ImportError:
        raise ParameterError(
            "--mmlu N reads the hub's MMLU with pyarrow: install it, or name a file of JSON lines"
        ) from None
    from huggingface_hub import hf_hub_download  # noqa: PLC0415

    path = hf_hub_download(MMLU, "all/test-00000-of-00001.parquet", repo_type="dataset")
    rows = parquet.read_table(path, columns=["question", "choices", "answer"]).to_pylist()
    step = max(1, len(rows) // int(what))  # of every subject: they follow one another
    return list(rows[::step][: int(what)])


@torch.no_grad()
def mmlu(model: Any, tokenizer: Any, what: str) -> dict[str, Any]:
    """Return the share of right answers in percent, and the answers: the likeliest of four letters.

    Raises
    ------
    ParameterError
        The tokenizer does not write each letter as a token of its own.
    """
    letters = []
    for letter in LETTERS:
        ids = tokenizer(f" {letter}", add_special_tokens=False).input_ids
        letters.append(ids[-1])
    if len(set(letters)) != len(LETTERS):
        raise ParameterError(f"the tokenizer has no token of their own for {', '.join(LETTERS)}")
    answers, right = "", 0
    asked = questions(what)
    for item in asked:
        lines = [item["question"], *(f"{a}. {b}" for a, b in zip(LETTERS, item["choices"], strict=True)), "Answer:"]
        ids = torch.tensor([tokenizer("\n".join(lines)).input_ids], device=model.device)
        best = int(model(ids, logits_to_keep=1).logits[0, -1, letters].argmax())
        answers += LETTERS[best]
        right += best == int(item["answer"])
    return {"mmlu_percent": 100 * right / len(asked), "mmlu_answers": answers}

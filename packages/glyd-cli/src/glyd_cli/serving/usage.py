# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Counts of tokens, and tokens with their log-probabilities as the API shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from glyd_cli.serving.engine import TokenStep


@dataclass
class Usage:
    """Tokens read and made."""

    n_prompt: int
    n_made: int = 0

    def body(self) -> dict[str, int]:
        """Return the API's form."""
        return {
            "prompt_tokens": self.n_prompt,
            "completion_tokens": self.n_made,
            "total_tokens": self.n_prompt + self.n_made,
        }


def token_text(tokenizer: Tokenizer, token: int) -> str:
    """Return the text of a token, special ones included."""
    return str(tokenizer.decode([token], skip_special_tokens=False))


def logprob_entry(tokenizer: Tokenizer, step: TokenStep) -> dict[str, Any]:
    """Return a token as the chat API shows it."""

    def entry(token: int, logprob: float | None) -> dict[str, Any]:
        text = token_text(tokenizer, token)
        return {"token": text, "logprob": logprob, "bytes": list(text.encode())}

    return {**entry(step.token, step.logprob), "top_logprobs": [entry(t, p) for t, p in step.top]}

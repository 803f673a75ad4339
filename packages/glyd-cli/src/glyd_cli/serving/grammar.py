# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Answers that must follow a JSON schema, a regular expression or a choice: llguidance does the work."""

from __future__ import annotations

import contextlib
import json
import math
import threading
from typing import TYPE_CHECKING, Any

import llguidance
import llguidance.hf
import llguidance.numpy  # that for torch imports its compiler, which takes longer than all else here
import torch

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class GrammarError(ValueError):
    """A schema or expression that cannot be followed."""


def for_json_schema(schema: dict[str, Any]) -> str:
    """Return the grammar of a JSON schema.

    Raises
    ------
    GrammarError
        The schema is invalid or uses what is not supported.
    """
    try:
        text = json.dumps(schema)
        # one form of white space: small models love to write nothing else
        return str(llguidance.LLMatcher.grammar_from_json_schema(text, overrides={"whitespace_flexible": False}))
    except ValueError as error:
        raise GrammarError(f"unsupported JSON schema: {error}") from error


class Grammars:
    """Makes matchers for one tokenizer.

    Parameters
    ----------
    tokenizer
        The model's; its vocabulary is read once.
    n_vocabulary
        Columns of the logits.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast, n_vocabulary: int) -> None:
        self._tokenizer = tokenizer
        self._n_vocabulary = n_vocabulary
        self._known: llguidance.LLTokenizer | None = None
        self._lock = threading.Lock()

    def prepare(self) -> None:
        """Read the vocabulary, which takes a second for a large one, before a request has to wait for it."""
        with contextlib.suppress(GrammarError):  # said to those who ask for a grammar
            self._tokens()

    def _tokens(self) -> llguidance.LLTokenizer:
        """Return the vocabulary as llguidance has it."""
        with self._lock:
            if self._known is None:
                n = max(self._n_vocabulary, len(self._tokenizer))
                try:
                    self._known = llguidance.hf.from_tokenizer(self._tokenizer, n_vocab=n)
                except ValueError as error:
                    raise GrammarError(f"the tokenizer of this model cannot follow schemas: {error}") from error
            return self._known

    def matcher(self, grammar: str) -> Matcher:
        """Return the state of a new answer.

        Raises
        ------
        GrammarError
            llguidance refuses the grammar, or cannot read this tokenizer.
        """
        tokens = self._tokens()
        inner = llguidance.LLMatcher(tokens, grammar, log_level=0)
        if inner.is_error():
            raise GrammarError(f"unsupported grammar: {inner.get_error()}")
        return Matcher(inner, tokens.vocab_size)


class Matcher:
    """How far an answer has come in its grammar."""

    def __init__(self, inner: llguidance.LLMatcher, n_tokens: int) -> None:
        self._inner = inner
        self._bits = llguidance.numpy.allocate_token_bitmask(1, n_tokens)

    @property
    def done(self) -> bool:
        """Whether nothing more may follow."""
        return bool(self._inner.is_stopped())

    def mask(self, logits: torch.Tensor) -> None:
        """Set the logits [vocabulary] of tokens that may not come next to minus infinity, in place."""
        llguidance.numpy.fill_next_token_bitmask(self._inner, self._bits, 0)
        words = torch.from_numpy(self._bits[0]).to(logits.device)
        allowed = (words.unsqueeze(1) >> torch.arange(32, device=logits.device, dtype=torch.int32)) & 1
        logits.masked_fill_(allowed.flatten()[: logits.shape[0]] == 0, -math.inf)

    def take(self, token: int) -> None:
        """Go on past a token."""
        if not self.done:
            self._inner.consume_token(token)

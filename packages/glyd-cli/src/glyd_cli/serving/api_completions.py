# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``/v1/completions``."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

from glyd_cli.serving.answer import Piece, answers
from glyd_cli.serving.grammar import for_json_schema
from glyd_cli.serving.streams import merged
from glyd_cli.serving.token_lists import token_lists
from glyd_cli.serving.usage import Usage, token_text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from transformers import PreTrainedTokenizerFast

    from glyd_cli.serving.api_types import CompletionRequest
    from glyd_cli.serving.engine import Engine, TokenStep

_MOST_PROMPTS = 64


class Completion:
    """One request with one prompt or several: checked when made, then answered whole or in chunks.

    Parameters
    ----------
    engine
        Runs the model.
    tokenizer
        Of the model.
    request
        The body.

    Raises
    ------
    ApiError
        The request cannot be answered.
    """

    def __init__(self, engine: Engine, tokenizer: PreTrainedTokenizerFast, request: CompletionRequest) -> None:
        self._engine = engine
        self._request = request
        self._prompts = self._token_ids(tokenizer)
        form = request.response_format
        schema = form.schema_wanted() if form is not None else None
        grammar = None if schema is None else for_json_schema(schema)
        self._sampling = [
            request.sampling(
                engine.info,
                n_prompt=len(prompt),
                n_logprobs=request.logprobs,
                grammar=grammar,
            )
            for prompt in self._prompts
        ]
        self.usage = Usage(n_prompt=sum(map(len, self._prompts)))
        self._id = f"cmpl-{uuid.uuid4().hex}"
        self._created = int(time.time())
        self._offsets = [0] * (len(self._prompts) * request.n)

    def _token_ids(self, tokenizer: PreTrainedTokenizerFast) -> list[list[int]]:
        return token_lists(
            self._request.prompt,
            lambda text: list(tokenizer.encode(text)),
            n_vocabulary=self._engine.info.n_vocabulary,
            most=_MOST_PROMPTS,
            name="prompt",
        )

    def _answers(self) -> AsyncGenerator[tuple[int, Piece], None]:
        sources = []
        for prompt, sampling in zip(self._prompts, self._sampling, strict=True):
            sources += answers(self._engine, self._request, prompt, sampling)
        return merged(sources)

    def _head(self) -> dict[str, Any]:
        return {"id": self._id, "object": "text_completion", "created": self._created, "model": self._engine.info.name}

    def _logprobs(self, number: int, steps: list[TokenStep]) -> dict[str, Any] | None:
        if self._request.logprobs is None:
            return None
        tokenizer = self._engine.tokenizer
        tokens = [token_text(tokenizer, s.token) for s in steps]
        offsets = []
        for text in tokens:
            offsets.append(self._offsets[number])
            self._offsets[number] += len(text)
        return {
            "tokens": tokens,
            "token_logprobs": [s.logprob for s in steps],
            "top_logprobs": [{token_text(tokenizer, t): p for t, p in s.top} for s in steps],
            "text_offset": offsets,
        }

    def _echo(self, number: int) -> str:
        if not self._request.echo:
            return ""
        prompt = self._prompts[number // self._request.n]
        return str(self._engine.tokenizer.decode(prompt, skip_special_tokens=self._request.skip_special_tokens))

    def _choice(self, number: int, text: str, steps: list[TokenStep], reason: str | None) -> dict[str, Any]:
        return {"index": number, "text": text, "logprobs": self._logprobs(number, steps), "finish_reason": reason}

    async def whole(self) -> dict[str, Any]:
        """Return all answers as one object."""
        n = len(self._offsets)
        texts = [self._echo(number) for number in range(n)]
        steps: list[list[TokenStep]] = [[] for _ in range(n)]
        reasons: list[str | None] = [None] * n
        async for number, piece in self._answers():
            texts[number] += piece.text
            steps[number] += piece.steps
            reasons[number] = piece.finish_reason
            self.usage.n_made += len(piece.steps)
        choices = [self._choice(i, texts[i], steps[i], reasons[i]) for i in range(n)]
        return {**self._head(), "choices": choices, "usage": self.usage.body()}

    async def chunks(self) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the answers as chunks; the last one carries the usage."""
        n = left = len(self._offsets)
        for number in range(n if self._request.echo else 0):
            yield {**self._head(), "choices": [self._choice(number, self._echo(number), [], None)]}
        async for number, piece in self._answers():
            self.usage.n_made += len(piece.steps)
            left -= piece.finish_reason is not None
            body = {**self._head(), "choices": [self._choice(number, piece.text, piece.steps, piece.finish_reason)]}
            if piece.finish_reason is not None and not left:
                body["usage"] = self.usage.body()
            yield body
        if self._request.stream_options is not None and self._request.stream_options.include_usage:
            yield {**self._head(), "choices": [], "usage": self.usage.body()}

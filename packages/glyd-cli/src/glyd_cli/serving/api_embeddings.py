# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``/v1/embeddings``."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from glyd_cli.serving.api_errors import ApiError
from glyd_cli.serving.token_lists import token_lists
from glyd_cli.serving.usage import Usage

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from glyd_cli.serving.api_types import EmbeddingRequest
    from glyd_cli.serving.embedding import EmbeddingEngine

_MOST_TEXTS = 2048


class Embedding:
    """One request with one text or several: checked when made.

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

    def __init__(self, engine: EmbeddingEngine, tokenizer: PreTrainedTokenizerFast, request: EmbeddingRequest) -> None:
        self._engine = engine
        self._request = request
        width = engine.width
        if request.dimensions is not None and request.dimensions > width:
            raise ApiError(400, f"dimensions: at most {width}, found {request.dimensions}", param="dimensions")
        prefix = engine.pooling.prefix
        self._texts = token_lists(
            request.input,
            lambda text: list(tokenizer.encode(prefix + text)) if text else [],
            n_vocabulary=engine.info.n_vocabulary,
            most=_MOST_TEXTS,
            name="input",
        )
        most = request.truncate_prompt_tokens
        if most is not None:
            most = engine.info.context if most == -1 else min(most, engine.info.context)
            self._texts = [_cut(text, most) for text in self._texts]
        self.usage = Usage(n_prompt=sum(map(len, self._texts)))

    async def whole(self) -> dict[str, Any]:
        """Return the answer."""
        found = (await self._engine.embed(self._texts, self._request.dimensions)).numpy()
        as_text = self._request.encoding_format == "base64"
        rows = [base64.b64encode(v.astype("<f4").tobytes()).decode() if as_text else v.tolist() for v in found]
        counts = self.usage.body()
        return {
            "object": "list",
            "model": self._engine.info.name,
            "data": [{"object": "embedding", "index": n, "embedding": row} for n, row in enumerate(rows)],
            "usage": {"prompt_tokens": counts["prompt_tokens"], "total_tokens": counts["total_tokens"]},
        }


def _cut(text: list[int], most: int) -> list[int]:
    """Keep the first tokens of a text and the one that ends it, as tokenizers do that cut themselves."""
    return text if len(text) <= most else [*text[: most - 1], text[-1]]

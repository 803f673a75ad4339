# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""One answer: from an engine's tokens to pieces of text, with its end, its reason and its log-probabilities."""

from __future__ import annotations

import dataclasses
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from glyd_cli.serving.text import Detokenizer, StopStrings

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from glyd_cli.serving.api_types import Request
    from glyd_cli.serving.engine import Engine, Sampling, TokenStep

FinishReason = Literal["stop", "length"]


@dataclass
class Piece:
    """What became known of an answer: text, the tokens made since the last piece, and, at the end, why it ended."""

    text: str = ""
    steps: list[TokenStep] = field(default_factory=list)
    finish_reason: FinishReason | None = None


def answers(
    engine: Engine, request: Request, prompt: list[int], sampling: Sampling, *, n_shared: int = 0
) -> list[AsyncGenerator[Piece, None]]:
    """Return the pieces of each of the ``n`` answers that a request asks for; a seed counts up."""
    return [
        pieces(
            engine,
            prompt,
            dataclasses.replace(sampling, seed=None if sampling.seed is None else sampling.seed + number),
            stops=request.stops,
            keep_stop=request.include_stop_str_in_output,
            skip_special=request.skip_special_tokens,
            n_shared=n_shared,
        )
        for number in range(request.n)
    ]


async def pieces(
    engine: Engine,
    prompt: list[int],
    sampling: Sampling,
    *,
    stops: Sequence[str] = (),
    keep_stop: bool = False,
    skip_special: bool = True,
    n_shared: int = 0,
) -> AsyncGenerator[Piece, None]:
    """Yield an answer piece by piece; the last piece has a finish reason.

    Parameters
    ----------
    engine
        What runs the model.
    prompt
        Token ids.
    sampling
        Rules of the answer.
    stops
        Strings that end it.
    keep_stop
        Leave the stop string in the text.
    skip_special
        Leave special tokens out of the text.
    n_shared
        First tokens of the prompt that others have too.
    """
    text = Detokenizer(engine.tokenizer, skip_special=skip_special)
    finder = StopStrings(stops, keep=keep_stop)
    ends = engine.info.ends(sampling)
    piece = Piece()
    reason: FinishReason = "length"
    async with aclosing(engine.generate(prompt, sampling, n_shared=n_shared)) as tokens:
        async for step in tokens:
            piece.steps.append(step)
            if step.token in ends:
                reason = "stop"
                break
            piece.text += finder.push(text.push(step.token))
            if finder.found is not None:
                reason = "stop"
                break
            if piece.text:
                yield piece
                piece = Piece()
    if finder.found is None:
        piece.text += finder.push(text.end())
        if finder.found is not None:
            reason = "stop"
        else:
            piece.text += finder.end()
    piece.finish_reason = reason
    yield piece

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``/v1/chat/completions``."""

from __future__ import annotations

import dataclasses
import time
import uuid
from typing import TYPE_CHECKING, Any

from glyd_cli.serving.answer import Piece, answers
from glyd_cli.serving.api_errors import ApiError
from glyd_cli.serving.chat import THINK_END, call_grammar, calls_in, n_shared, prompt_of, thinks
from glyd_cli.serving.grammar import for_json_schema
from glyd_cli.serving.streams import merged
from glyd_cli.serving.text import StopStrings
from glyd_cli.serving.usage import Usage, logprob_entry

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from transformers import PreTrainedTokenizerFast

    from glyd_cli.serving.api_types import ChatRequest
    from glyd_cli.serving.engine import Engine, TokenStep


class Split:
    """Parts a growing text into thought and answer at ``</think>``."""

    def __init__(self, *, thinking: bool) -> None:
        self._thinking = thinking
        self._finder = StopStrings([THINK_END])
        self._strip = False

    def push(self, text: str, *, end: bool = False) -> tuple[str, str]:
        """Return (thought, answer) of what came."""
        if not self._thinking:
            if self._strip:
                text = text.lstrip("\n")
                self._strip = not text
            return "", text
        whole = self._finder.held + text
        thought = self._finder.push(text)
        if self._finder.found is None:
            return thought + (self._finder.end() if end else ""), ""
        self._thinking, self._strip = False, True
        return thought, self.push(whole.partition(THINK_END)[2], end=end)[1]


@dataclasses.dataclass
class _Choice:
    """One answer as far as it came."""

    split: Split
    text: str = ""
    thought: str = ""
    steps: list[TokenStep] = dataclasses.field(default_factory=list)
    finish_reason: str | None = None
    started: bool = False


class ChatCompletion:
    """One request: checked when made, then answered whole or in chunks.

    Parameters
    ----------
    engine
        Runs the model.
    tokenizer
        With the chat template.
    request
        The body.

    Raises
    ------
    ApiError
        The request cannot be answered.
    """

    def __init__(self, engine: Engine, tokenizer: PreTrainedTokenizerFast, request: ChatRequest) -> None:
        self._engine = engine
        self._request = request
        tools = request.tools if request.tools and request.tool_choice != "none" else None
        if request.tool_choice == "required" and not tools:
            raise ApiError(400, "tool_choice needs tools", param="tool_choice")
        options = request.chat_template_kwargs
        self._prompt = prompt_of(tokenizer, request.messages, tools=tools, options=options)
        self._n_shared = 0
        if engine.shares:
            self._n_shared = n_shared(tokenizer, request.messages, self._prompt, tools=tools, options=options)
        if request.top_logprobs is not None and not request.logprobs:
            raise ApiError(400, "top_logprobs needs logprobs: true", param="top_logprobs")
        schema = call_grammar(tools or [], request.tool_choice)
        self._forced = schema is not None
        self._tools = bool(tools)
        form = request.response_format
        if schema is None and form is not None:
            schema = form.schema_wanted()
        grammar = None if schema is None else for_json_schema(schema)
        end = tokenizer.decode(self._prompt[-8:])
        self._thinking = grammar is None and thinks(request, end)
        self._sampling = request.sampling(
            engine.info,
            n_prompt=len(self._prompt),
            n_logprobs=(request.top_logprobs or 0) if request.logprobs else None,
            grammar=grammar,
        )
        self.usage = Usage(n_prompt=len(self._prompt))
        self._id = f"chatcmpl-{uuid.uuid4().hex}"
        self._created = int(time.time())

    def _answers(self) -> AsyncGenerator[tuple[int, Piece], None]:
        return merged(answers(self._engine, self._request, self._prompt, self._sampling, n_shared=self._n_shared))

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self._id, "object": kind, "created": self._created, "model": self._engine.info.name}

    def _new_choices(self) -> list[_Choice]:
        return [_Choice(Split(thinking=self._thinking)) for _ in range(self._request.n)]

    def _take(self, choice: _Choice, piece: Piece) -> tuple[str, str]:
        thought, text = choice.split.push(piece.text, end=piece.finish_reason is not None)
        choice.thought += thought
        choice.text += text
        choice.finish_reason = piece.finish_reason
        self.usage.n_made += len(piece.steps)
        return thought, text

    def _logprobs(self, steps: list[TokenStep]) -> dict[str, Any] | None:
        if not self._request.logprobs:
            return None
        return {"content": [logprob_entry(self._engine.tokenizer, s) for s in steps], "refusal": None}

    def _calls(self, choice: _Choice) -> list[dict[str, Any]]:
        """Move tool calls out of the text of a finished choice."""
        if not self._tools or (self._forced and choice.finish_reason != "stop"):
            return []
        choice.text, calls = calls_in(choice.text, bare=self._forced)
        if calls:
            choice.finish_reason = "tool_calls"
        return calls

    async def whole(self) -> dict[str, Any]:
        """Return the answer as one object."""
        choices = self._new_choices()
        async for number, piece in self._answers():
            self._take(choices[number], piece)
            choices[number].steps += piece.steps
        out = []
        for number, choice in enumerate(choices):
            calls = self._calls(choice)
            message: dict[str, Any] = {
                "role": "assistant",
                "content": choice.text or (None if calls else ""),
                "refusal": None,
            }
            if choice.thought:
                message["reasoning_content"] = choice.thought
            if calls:
                message["tool_calls"] = calls
            out.append(
                {
                    "index": number,
                    "message": message,
                    "logprobs": self._logprobs(choice.steps),
                    "finish_reason": choice.finish_reason,
                }
            )
        return {**self._head("chat.completion"), "choices": out, "usage": self.usage.body()}

    async def chunks(self) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the answer as chunks; the last one carries the usage."""
        choices = self._new_choices()
        left = len(choices)
        async for number, piece in self._answers():
            choice = choices[number]
            thought, text = self._take(choice, piece)
            done = piece.finish_reason is not None
            delta: dict[str, Any] = {}
            if not choice.started:
                delta["role"] = "assistant"
                choice.started = True
            if thought:
                delta["reasoning_content"] = thought
            if self._tools:
                # calls can only be told from text when the answer is complete
                text = ""
                if done:
                    calls = self._calls(choice)
                    text = choice.text
                    if calls:
                        delta["tool_calls"] = [{"index": i, **call} for i, call in enumerate(calls)]
            if text or (len(delta) == 1 and "role" in delta and not done):
                delta["content"] = text
            if not delta and not done and not self._request.logprobs:
                continue
            left -= done
            body = {
                **self._head("chat.completion.chunk"),
                "choices": [
                    {
                        "index": number,
                        "delta": delta,
                        "logprobs": self._logprobs(piece.steps),
                        "finish_reason": choice.finish_reason if done else None,
                    }
                ],
            }
            if done and not left:
                body["usage"] = self.usage.body()
            yield body
        if self._request.stream_options is not None and self._request.stream_options.include_usage:
            yield {**self._head("chat.completion.chunk"), "choices": [], "usage": self.usage.body()}

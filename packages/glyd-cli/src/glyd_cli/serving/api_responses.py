# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``/v1/responses``: another form of the chat. Nothing is stored: clients send the conversation."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from glyd_cli.serving.api_chat import ChatCompletion
from glyd_cli.serving.api_errors import ApiError, of_validation
from glyd_cli.serving.api_types import ChatRequest, JsonSchema, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from transformers import PreTrainedTokenizerFast

    from glyd_cli.serving.engine import Engine
    from glyd_cli.serving.usage import Usage

_TEXTS = {"input_text", "output_text", "text"}


class TextFormat(JsonSchema):
    """What an answer must be; a schema stands beside its type."""

    type: Literal["text", "json_object", "json_schema"] = "text"


class TextOptions(BaseModel):
    """Options of the text."""

    model_config = ConfigDict(extra="ignore")
    format: TextFormat = Field(default_factory=TextFormat)


class ResponseTool(BaseModel):
    """A function that the model may call; there are no tools of the server's own."""

    model_config = ConfigDict(extra="ignore")
    type: Literal["function"]
    name: Annotated[str, Field(min_length=1, max_length=256)]
    description: str | None = None
    parameters: dict[str, Any] | None = None


class ResponseToolChoice(BaseModel):
    """Name of the function that must be called."""

    type: Literal["function"] = "function"
    name: str


class ResponseRequest(BaseModel):
    """Body of ``/v1/responses``. Unknown fields are ignored, as other servers do."""

    model_config = ConfigDict(extra="ignore")
    model: str | None = None
    input: Text | Annotated[list[dict[str, Any]], Field(min_length=1, max_length=10_000)]
    instructions: Text | None = None
    max_output_tokens: Annotated[int, Field(ge=1, le=2**31)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | None = None
    stream: bool = False
    tools: Annotated[list[ResponseTool], Field(max_length=128)] | None = None
    tool_choice: Literal["none", "auto", "required"] | ResponseToolChoice | None = None
    text: TextOptions = Field(default_factory=TextOptions)
    previous_response_id: str | None = None
    background: bool = False
    metadata: dict[str, str] | None = None
    user: str | None = None


def _refuse(message: str, param: str = "input") -> ApiError:
    return ApiError(400, message, param=param, code="not_supported")


def _message(item: dict[str, Any], at: int) -> dict[str, Any] | None:
    """Return an item of the input as a message of a chat; None: it is of no use here.

    Raises
    ------
    ApiError
        It is of a kind that is not understood.
    """
    kind = item.get("type", "message")
    if kind == "message":
        content = item.get("content")
        if isinstance(content, list):
            for part in content:
                if not isinstance(part, dict) or part.get("type") not in _TEXTS:
                    found = part.get("type") if isinstance(part, dict) else part
                    raise _refuse(f"input.{at}: only parts of text are understood, found {found!r}")
            content = [{"type": "text", "text": part.get("text")} for part in content]
        return {"role": item.get("role"), "content": content}
    if kind == "function_call":
        call = {"name": item.get("name"), "arguments": item.get("arguments")}
        return {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": item.get("call_id"), "type": "function", "function": call}],
        }
    if kind == "function_call_output":
        return {"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")}
    if kind == "reasoning":
        return None
    raise _refuse(f"input.{at}: items are messages, function calls and their outputs, found {str(kind)[:80]!r}")


def chat_request(request: ResponseRequest) -> ChatRequest:
    """Return the same request of the chat.

    Raises
    ------
    ApiError
        It asks for something that is not there.
    """
    if request.previous_response_id is not None:
        raise _refuse("nothing is stored here: send the conversation as input", "previous_response_id")
    if request.background:
        raise _refuse("answers come with the request: background is not there", "background")
    items = [{"role": "user", "content": request.input}] if isinstance(request.input, str) else request.input
    messages = [m for m in (_message(item, at) for at, item in enumerate(items)) if m is not None]
    if request.instructions:
        messages.insert(0, {"role": "system", "content": request.instructions})
    body: dict[str, Any] = {
        "model": request.model,
        "messages": messages,
        "max_tokens": request.max_output_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "tools": [{"function": t.model_dump(exclude={"type"}, exclude_none=True)} for t in request.tools or []] or None,
        "tool_choice": request.tool_choice,
    }
    if isinstance(request.tool_choice, ResponseToolChoice):
        body["tool_choice"] = {"function": {"name": request.tool_choice.name}}
    form = request.text.format
    if form.type != "text":
        body["response_format"] = {"type": form.type}
        if form.type == "json_schema":
            body["response_format"]["json_schema"] = {"name": form.name, "schema": form.schema_}
    try:
        return ChatRequest.model_validate(body)
    except ValidationError as error:
        raise of_validation(error.errors()) from error


class Response:
    """One request: checked when made, then answered whole or in events.

    Parameters
    ----------
    engine, tokenizer
        What answers.
    request
        The body.

    Raises
    ------
    ApiError
        The request cannot be answered.
    """

    def __init__(self, engine: Engine, tokenizer: PreTrainedTokenizerFast, request: ResponseRequest) -> None:
        self._chat = ChatCompletion(engine, tokenizer, chat_request(request))
        self._request = request
        self._name = engine.info.name
        self._id = f"resp_{uuid.uuid4().hex}"
        self._created = int(time.time())

    @property
    def usage(self) -> Usage:
        """Tokens read and made."""
        return self._chat.usage

    def _body(self, output: list[dict[str, Any]], finish_reason: str | None) -> dict[str, Any]:
        request = self._request
        cut = finish_reason == "length"
        ended = finish_reason is not None
        usage = {
            "input_tokens": self.usage.n_prompt,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": self.usage.n_made,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": self.usage.n_prompt + self.usage.n_made,
        }
        choice = request.tool_choice
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": ("incomplete" if cut else "completed") if ended else "in_progress",
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "instructions": request.instructions,
            "max_output_tokens": request.max_output_tokens,
            "metadata": request.metadata or {},
            "model": self._name,
            "output": output,
            "parallel_tool_calls": True,
            "previous_response_id": None,
            "reasoning": {"effort": None, "summary": None},
            "store": False,
            "temperature": request.temperature,
            "text": {"format": request.text.format.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)
                     | {"type": request.text.format.type}},
            "tool_choice": choice.model_dump() if isinstance(choice, ResponseToolChoice) else choice or "auto",
            "tools": [{**t.model_dump(), "strict": None} for t in request.tools or []],
            "top_p": request.top_p,
            "truncation": "disabled",
            "usage": usage if ended else None,
            "user": request.user,
        }  # fmt: skip

    async def whole(self) -> dict[str, Any]:
        """Return the answer as one object."""
        found = await self._chat.whole()
        (choice,) = found["choices"]
        message, reason = choice["message"], choice["finish_reason"]
        output = []
        if message.get("reasoning_content"):
            output.append(_reasoning(message["reasoning_content"]))
        if message["content"] or not message.get("tool_calls"):
            output.append(_text(message["content"] or "", cut=reason == "length"))
        output += [_call(call) for call in message.get("tool_calls", [])]
        return self._body(output, reason)

    async def chunks(self) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the answer as events; the last one carries it whole."""
        events = _Events()
        for kind in ("response.created", "response.in_progress"):
            yield events.make(kind, response=self._body([], None))
        reason = "stop"
        async for chunk in self._chat.chunks():
            for choice in chunk["choices"]:
                delta = choice["delta"]
                for event in events.take(delta):
                    yield event
                reason = choice["finish_reason"] or reason
        for event in events.close(cut=reason == "length", anyway=not events.output):
            yield event
        end = "response.incomplete" if reason == "length" else "response.completed"
        yield events.make(end, response=self._body(events.output, reason))


class _Events:
    """Turns deltas of a chat into events, and keeps what they add up to."""

    def __init__(self) -> None:
        self.output: list[dict[str, Any]] = []
        self._open: dict[str, Any] | None = None  # the item that grows
        self._n = 0

    def make(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Return an event with its number."""
        self._n += 1
        return {"type": kind, "sequence_number": self._n - 1, **fields}

    def take(self, delta: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the events of a delta."""
        out = []
        for key, kind in (("reasoning_content", "reasoning"), ("content", "message")):
            if delta.get(key):
                out += self._grow(kind, delta[key])
        for call in delta.get("tool_calls", []):
            out += self.close(cut=False)
            item = _call(call)
            at = {"output_index": len(self.output), "item_id": item["id"]}
            out.append(self._added({**item, "arguments": "", "status": "in_progress"}))
            made = item["arguments"]
            out.append(self.make("response.function_call_arguments.delta", delta=made, **at))
            out.append(self.make("response.function_call_arguments.done", arguments=made, name=item["name"], **at))
            out.append(self._done(item))
        return out

    def _added(self, item: dict[str, Any]) -> dict[str, Any]:
        return self.make("response.output_item.added", output_index=len(self.output), item=item)

    def _done(self, item: dict[str, Any]) -> dict[str, Any]:
        self.output.append(item)
        return self.make("response.output_item.done", output_index=len(self.output) - 1, item=item)

    def _grow(self, kind: str, text: str) -> list[dict[str, Any]]:
        out = []
        if self._open is None or self._open["type"] != kind:
            out += self.close(cut=False)
            self._open = _text("", cut=False) if kind == "message" else _reasoning("")
            out.append(self._added({**self._open, "content": [], "status": "in_progress"}))
            out.append(self.make("response.content_part.added", part=dict(self._open["content"][0]), **self._place()))
        self._open["content"][0]["text"] += text
        out.append(self.make(f"response.{self._kind()}.delta", delta=text, **self._place(), **self._logprobs()))
        return out

    def _kind(self) -> str:
        return str(self._open["content"][0]["type"]) if self._open else ""

    def _logprobs(self) -> dict[str, Any]:
        return {"logprobs": []} if self._kind() == "output_text" else {}

    def _place(self) -> dict[str, Any]:
        item = "" if self._open is None else self._open["id"]
        return {"item_id": item, "output_index": len(self.output), "content_index": 0}

    def close(self, *, cut: bool, anyway: bool = False) -> list[dict[str, Any]]:
        """Return the events that end the open item; anyway: an answer without text has an item too."""
        out = []
        if self._open is None and anyway:
            self._open = _text("", cut=cut)
            out.append(self._added(self._open))
        if self._open is not None:
            part = self._open["content"][0]
            self._open["status"] = "incomplete" if cut else "completed"
            out.append(
                self.make(f"response.{self._kind()}.done", text=part["text"], **self._place(), **self._logprobs())
            )
            out.append(self.make("response.content_part.done", part=part, **self._place()))
            out.append(self._done(self._open))
            self._open = None
        return out


def _text(text: str, *, cut: bool) -> dict[str, Any]:
    return {
        "type": "message",
        "id": f"msg_{uuid.uuid4().hex}",
        "status": "incomplete" if cut else "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }


def _reasoning(text: str) -> dict[str, Any]:
    part = {"type": "reasoning_text", "text": text}
    return {
        "type": "reasoning",
        "id": f"rs_{uuid.uuid4().hex}",
        "summary": [],
        "content": [part],
        "status": "completed",
    }


def _call(call: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{uuid.uuid4().hex}",
        "call_id": call["id"],
        "name": call["function"]["name"],
        "arguments": call["function"]["arguments"],
        "status": "completed",
    }

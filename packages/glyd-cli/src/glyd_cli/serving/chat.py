# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""From messages to token ids by the model's template, and from its answer to thoughts, text and tool calls."""

from __future__ import annotations

import itertools
import json
import re
import uuid
from typing import TYPE_CHECKING, Any

from glyd_cli.serving.api_errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transformers import PreTrainedTokenizerFast

    from glyd_cli.serving.api_types import ChatRequest, Message, Tool, ToolChoice

_CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
THINK_END = "</think>"


def plain_text(message: Message) -> str | None:
    """Return the text of a message whose content may come in parts.

    Raises
    ------
    ApiError
        A part is no text.
    """
    if not isinstance(message.content, list):
        return message.content
    texts = []
    for part in message.content:
        if part.get("type") != "text" or not isinstance(part.get("text"), str):
            raise ApiError(400, f"only parts of type text are understood, found {part.get('type')!r}", param="messages")
        texts.append(part["text"])
    return "\n".join(texts)


def prompt_of(
    tokenizer: PreTrainedTokenizerFast,
    messages: Sequence[Message],
    *,
    tools: Sequence[Tool] | None = None,
    options: dict[str, Any] | None = None,
    add_generation_prompt: bool = True,
) -> list[int]:
    """Return the token ids of a chat.

    Raises
    ------
    ApiError
        The model has no template, or its template refuses these messages.
    """
    if not tokenizer.chat_template:
        raise ApiError(400, "this model has no chat template: use /v1/completions", param="messages")
    turns: list[dict[str, Any]] = []
    for message in messages:
        turn: dict[str, Any] = {"role": "system" if message.role == "developer" else message.role}
        turn["content"] = plain_text(message) or ""
        for name in ("name", "tool_calls", "tool_call_id"):
            if getattr(message, name) is not None:
                turn[name] = getattr(message, name)
        for call in turn.get("tool_calls", []):
            function = call.get("function")
            if isinstance(function, dict) and isinstance(function.get("arguments"), str):
                try:
                    function["arguments"] = json.loads(function["arguments"])
                except ValueError as error:
                    raise ApiError(400, f"arguments of a tool call are no JSON: {error}", param="messages") from error
        turns.append(turn)
    reserved = {"tokenize", "add_generation_prompt", "tools", "conversation", "chat_template", "return_dict"}
    extra = {k: v for k, v in (options or {}).items() if k not in reserved}
    try:
        text = tokenizer.apply_chat_template(
            turns,
            tools=[t.model_dump(exclude_none=True) for t in tools] if tools else None,
            tokenize=False,
            add_generation_prompt=add_generation_prompt,
            **extra,
        )
    except Exception as error:  # templates raise whatever they like
        raise ApiError(400, f"the model's chat template refuses these messages: {error}", param="messages") from error
    ids = list(tokenizer.encode(text, add_special_tokens=False))
    if not ids:
        raise ApiError(400, "the chat template makes an empty prompt of these messages", param="messages")
    return ids


def n_shared(
    tokenizer: PreTrainedTokenizerFast,
    messages: Sequence[Message],
    prompt: Sequence[int],
    *,
    tools: Sequence[Tool] | None = None,
    options: dict[str, Any] | None = None,
) -> int:
    """Return how many tokens of a prompt come of the system prompt and the tools alone; 0 without a system prompt.

    They are what the prompt has in common with one that goes on as no other does.
    """
    system = list(itertools.takewhile(lambda m: m.role in {"system", "developer"}, messages))
    if not system:
        return 0
    turns = [*system, system[0].model_copy(update={"role": "user", "content": "\N{SYMBOL FOR NULL}"})]
    other = prompt_of(tokenizer, turns, tools=tools, options=options)
    pairs = enumerate(zip(prompt, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(prompt), len(other)))


def call_grammar(tools: Sequence[Tool], choice: str | ToolChoice | None) -> dict[str, Any] | None:
    """Return the JSON schema of the one call that a request insists on, None when it does not.

    Raises
    ------
    ApiError
        The function asked for is not among the tools.
    """
    if choice is None or choice == "none" or choice == "auto":  # noqa: PLR1714 - models cannot be hashed
        return None
    named = None if isinstance(choice, str) else choice.function.name
    chosen = [t.function for t in tools if named is None or t.function.name == named]
    if not chosen:
        raise ApiError(400, f"tool_choice names {named!r}, which is not among the tools", param="tool_choice")
    options = [
        {
            "type": "object",
            "properties": {"name": {"const": f.name}, "arguments": f.parameters or {"type": "object"}},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for f in chosen
    ]
    return options[0] if len(options) == 1 else {"anyOf": options}


def calls_in(text: str, *, bare: bool) -> tuple[str, list[dict[str, Any]]]:
    """Return the text without its tool calls, and the calls.

    Parameters
    ----------
    text
        Of an answer.
    bare
        The whole text is one call, as `call_grammar` makes it.
    """
    found = [text] if bare else _CALL.findall(text)
    calls = []
    for one in found:
        try:
            call = json.loads(one)
            name, arguments = call["name"], call.get("arguments", {})
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # not a call after all: it stays in the text
        function = {"name": str(name), "arguments": json.dumps(arguments)}
        calls.append({"id": f"call_{uuid.uuid4().hex[:24]}", "type": "function", "function": function})
    if len(calls) != len(found):
        return text, []
    return ("" if bare else _CALL.sub("", text).strip()), calls


def thinks(request: ChatRequest, prompt_end: str) -> bool:
    """Say whether an answer begins inside a thought: the template opened one."""
    off = (request.chat_template_kwargs or {}).get("enable_thinking") is False
    return not off and prompt_end.rstrip().endswith("<think>")

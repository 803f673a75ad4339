# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The chat in the terminal, and single answers for scripts."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from typing import TYPE_CHECKING, Any

from glyd_cli.errors import Exit, UsageError
from glyd_cli.serving.api_chat import ChatCompletion
from glyd_cli.serving.api_completions import Completion
from glyd_cli.serving.api_errors import ApiError
from glyd_cli.serving.api_types import ChatRequest, CompletionRequest
from glyd_cli.serving.streams import api_error

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from transformers import PreTrainedTokenizerFast

    from glyd_cli.serve import ServeOptions
    from glyd_cli.serving.engine import Engine

_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"
_QUOTES = '"' * 3
_NEARLY_FULL = 0.85  # of the window
_COMMANDS = """\
/bye           leave (so does Ctrl-D)
/clear         forget the conversation
/again         answer the last message once more
/system TEXT   set the system prompt; without TEXT: show it
/think         let the model think first; /nothink: not
/save FILE     write the conversation to FILE as JSON
/load FILE     go on with a conversation that was saved
/help          this list
Lines between \"\"\" and \"\"\" are one message.
Ctrl-C stops an answer."""


def _clean(text: str) -> str:
    """Return text without the control characters that could move the cursor or change the terminal."""
    return "".join(c if c in "\n\t" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _write(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()


class Conversation:
    """Messages so far, and how the next answer is made.

    Parameters
    ----------
    engine, tokenizer
        What answers.
    options
        Of the command line.
    """

    def __init__(self, engine: Engine, tokenizer: PreTrainedTokenizerFast, options: ServeOptions) -> None:
        self._engine = engine
        self._tokenizer = tokenizer
        self._options = options
        self.think = options.think
        self.system = options.system
        self.messages: list[dict[str, str]] = []
        self.n_tokens = 0
        self.clear()

    def clear(self) -> None:
        """Forget all but the system prompt."""
        self.messages = [{"role": "system", "content": self.system}] if self.system else []
        self.n_tokens = 0

    def instruct(self, text: str) -> None:
        """Set the system prompt; what was said stays."""
        said = [m for m in self.messages if m["role"] != "system"]
        self.system = text
        self.clear()
        self.messages += said

    def take_back(self) -> str | None:
        """Forget the last message and its answer; return the message, None when there is none."""
        asked = [at for at, message in enumerate(self.messages) if message["role"] == "user"]
        if not asked:
            return None
        text = self.messages[asked[-1]]["content"]
        del self.messages[asked[-1] :]
        return text

    def restore(self, found: Any) -> None:
        """Take over a conversation that was saved.

        Raises
        ------
        ValueError
            It is none.
        """
        if not isinstance(found, list):
            raise ValueError("not a list of messages")  # noqa: TRY004 - of a file, not of an argument
        for at, message in enumerate(found):
            wrong = not isinstance(message, dict) or message.get("role") not in {"system", "user", "assistant"}
            if wrong or not isinstance(message.get("content"), str):
                raise ValueError(f"item {at} is no message with a role and a content")
        self.messages = [{"role": m["role"], "content": m["content"]} for m in found]
        self.system = next((m["content"] for m in self.messages if m["role"] == "system"), None)

    def _body(self) -> dict[str, Any]:
        options = self._options
        body: dict[str, Any] = {"stream": True, "temperature": options.temperature, "seed": options.seed}
        body["max_tokens"] = options.max_tokens
        return body

    async def answer(self, text: str) -> AsyncGenerator[tuple[str, str], None]:
        """Yield (thought, text) of the answer, and remember both sides.

        Raises
        ------
        ApiError
            The conversation does not fit, or the model failed.
        """
        said = ""
        self.messages.append({"role": "user", "content": text})
        try:
            async with contextlib.aclosing(self._chunks(text)) as chunks:
                async for chunk in chunks:
                    if "usage" in chunk:
                        self.n_tokens = chunk["usage"]["total_tokens"]
                    for choice in chunk["choices"]:
                        delta = choice.get("delta") or {"content": choice.get("text")}
                        said += delta.get("content") or ""
                        yield delta.get("reasoning_content") or "", delta.get("content") or ""
        except Exception as error:
            self.messages.pop()
            raise api_error(error) from error
        self.messages.append({"role": "assistant", "content": said})

    def _chunks(self, text: str) -> AsyncGenerator[dict[str, Any], None]:
        if not self._tokenizer.chat_template:  # a base model goes on with the text
            body = {**self._body(), "prompt": text, "max_tokens": self._options.max_tokens or 256}
            return Completion(self._engine, self._tokenizer, CompletionRequest.model_validate(body)).chunks()
        body = {**self._body(), "messages": self.messages}
        if not self.think:
            body["chat_template_kwargs"] = {"enable_thinking": False}
        return ChatCompletion(self._engine, self._tokenizer, ChatRequest.model_validate(body)).chunks()


async def answer_once(engine: Engine, tokenizer: PreTrainedTokenizerFast, options: ServeOptions, text: str) -> Exit:
    """Answer one prompt on standard output.

    Raises
    ------
    UsageError
        The prompt does not fit.
    """
    conversation = Conversation(engine, tokenizer, options)
    ends_line = True
    try:
        async with contextlib.aclosing(conversation.answer(text)) as parts:
            async for _, piece in parts:
                if piece:
                    shown = _clean(piece) if sys.stdout.isatty() else piece
                    ends_line = piece.endswith("\n")
                    _write(shown)
    except ApiError as error:
        raise UsageError(error.message) from error
    if not ends_line:
        _write("\n")
    return Exit.OK


async def chat(engine: Engine, tokenizer: PreTrainedTokenizerFast, options: ServeOptions) -> Exit:
    """Talk until the user leaves."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401, PLC0415 - editing and history of the prompt
    conversation = Conversation(engine, tokenizer, options)
    _write("Type a message; /help lists what else can be done, /bye leaves.\n")
    while True:
        try:
            line = await asyncio.to_thread(_read_message)
        except (EOFError, KeyboardInterrupt):
            _write("\n")
            return Exit.OK
        if not line:
            continue
        if line == "/again":
            line = conversation.take_back() or ""
            if not line:
                _write("(nothing was asked yet)\n")
                continue
        elif line.startswith("/") and "\n" not in line:
            if not _command(line, conversation):
                return Exit.OK
            continue
        await _show_answer(conversation, line, engine.info.context)


def _read_message() -> str:
    """Return what the user types: a line, or several between three quotes."""
    line = input(">>> ").strip()
    if not line.startswith(_QUOTES):
        return line
    lines = [line.removeprefix(_QUOTES)]
    while not lines[-1].rstrip().endswith(_QUOTES):
        lines.append(input("... "))
    lines[-1] = lines[-1].rstrip().removesuffix(_QUOTES)
    return "\n".join(lines).strip()


def _command(line: str, conversation: Conversation) -> bool:
    """Do what a line with a slash says; False ends the chat."""
    word, _, rest = line.partition(" ")
    if word in {"/bye", "/exit", "/quit"}:
        return False
    if word == "/clear":
        conversation.clear()
        _write("(forgotten)\n")
    elif word in {"/think", "/nothink"}:
        conversation.think = word == "/think"
        _write(f"(thinking {'on' if conversation.think else 'off'})\n")
    elif word == "/system":
        if rest.strip():
            conversation.instruct(rest.strip())
        _write(f"(system prompt: {_clean(conversation.system or 'none')})\n")
    elif word == "/load" and rest.strip():
        try:
            with open(rest.strip(), encoding="utf-8") as file:
                conversation.restore(json.load(file))
        except OSError as error:
            _write(f"not read: {error.strerror}\n")
        except (ValueError, RecursionError) as error:
            _write(f"not read: {error}\n")
        else:
            _write(f"({len(conversation.messages)} messages)\n")
    elif word == "/save" and rest.strip():
        try:
            with open(rest.strip(), "x", encoding="utf-8") as file:
                json.dump(conversation.messages, file, ensure_ascii=False, indent=1)
        except OSError as error:
            _write(f"not saved: {error.strerror}\n")
        else:
            _write(f"(saved to {rest.strip()})\n")
    else:
        _write(f"{_COMMANDS}\n")
    return True


async def _show_answer(conversation: Conversation, line: str, context: int) -> None:
    start = time.monotonic()
    first = 0.0
    n_pieces = 0
    thinking = False
    try:
        async with contextlib.aclosing(conversation.answer(line)) as parts:
            async for thought, text in parts:
                first = first or time.monotonic() - start
                n_pieces += 1
                if thought:
                    _write(f"{_DIM}{_clean(thought)}{_PLAIN}")
                    thinking = True
                if text:
                    _write(("\n" if thinking else "") + _clean(text))
                    thinking = False
    except ApiError as error:
        _write(f"{error.message}\n")
        return
    except (KeyboardInterrupt, asyncio.CancelledError):
        _write("\n(stopped)\n")
        return
    seconds = time.monotonic() - start
    speed = n_pieces / max(seconds - first, 1e-3)
    _write(f"\n{_DIM}({speed:.1f} tokens/s, first after {first:.2f} s){_PLAIN}\n")
    if conversation.n_tokens > _NEARLY_FULL * context:
        _write(f"({conversation.n_tokens} of {context} tokens of the window are used: /clear starts anew)\n")

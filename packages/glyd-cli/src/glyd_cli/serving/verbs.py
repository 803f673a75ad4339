# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Load a model, start its engine, and serve it or chat with it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import torch
import transformers
import uvicorn

import glyd_gpu
from glyd_cli.errors import Exit, FileError, UsageError
from glyd_cli.report import print_text, size_text
from glyd_cli.serving.app import make_app
from glyd_cli.serving.terminal import answer_once, chat
from glyd_cli.serving.transformers_engine import TransformersEngine, describe_model, kv_bytes_a_token

if TYPE_CHECKING:
    import socket

    from transformers import PreTrainedTokenizerFast

    from glyd_cli.report import Reporter
    from glyd_cli.serve import ServeOptions

_KV_SHARE = {"cpu": 0.25, "cuda": 0.8}  # of the memory that is free once the weights are there
_CONTEXT_MAX = 32768  # unless asked for: longer windows cost memory that most chats never use


def serve_model(options: ServeOptions, reporter: Reporter, listener: socket.socket | None, key: str | None) -> Exit:
    """Do what ``run`` or ``serve`` was told.

    Raises
    ------
    FileError, UsageError
        The model cannot be loaded; the message says why and what to do.
    """
    start = time.monotonic()
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    logging.getLogger("ContinuousBatchingLogger").setLevel(logging.CRITICAL)  # what users need to know is said here
    text = None
    if listener is None or (options.verb == "run" and not sys.stdin.isatty()):
        text = options.prompt if options.prompt is not None else sys.stdin.read()
        if not text.strip():
            raise UsageError("the prompt is empty")
    model, tokenizer = load(options)
    engine = make_engine(options, model, tokenizer)
    engine.start()
    info = engine.info
    reporter.stop()
    facts = (
        f"{info.name}: {info.layout} weights {size_text(info.weight_nbytes)}, window {info.context} tokens, "
        f"{options.slots} at once, on {model.device}, ready in {time.monotonic() - start:.1f} s"
    )
    try:
        if text is not None or listener is None:
            return asyncio.run(answer_once(engine, tokenizer, options, text or ""))
        any_host = listener.getsockname()[0] not in {"127.0.0.1", "::1"}
        app = make_app(engine, tokenizer, hosts=options.allow_host, any_host=any_host, api_key=key)
        config = uvicorn.Config(app, log_level="warning", timeout_keep_alive=30, h11_max_incomplete_event_size=1 << 16)
        server = uvicorn.Server(config)
        host, port = listener.getsockname()[:2]
        url = f"http://{'localhost' if host in {'127.0.0.1', '::1'} else host}:{port}"
        print_text(f"{facts}\n{url}/v1 is an OpenAI API{' (key from GLYD_API_KEY)' if key else ''}\n")
        if options.verb == "serve":
            server.run(sockets=[listener])
            return Exit.OK
        return asyncio.run(_serve_and_chat(server, listener, engine, tokenizer, options))
    finally:
        engine.stop()
        if listener is not None:
            listener.close()


async def _serve_and_chat(
    server: uvicorn.Server,
    listener: socket.socket,
    engine: TransformersEngine,
    tokenizer: PreTrainedTokenizerFast,
    options: ServeOptions,
) -> Exit:
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    task = asyncio.create_task(server._serve(sockets=[listener]))  # noqa: SLF001 - serve() takes over the signals
    try:
        return await chat(engine, tokenizer, options)
    finally:
        server.should_exit = True
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(task, timeout=5)


def load(options: ServeOptions) -> tuple[Any, PreTrainedTokenizerFast]:
    """Return model and tokenizer.

    Raises
    ------
    FileError, UsageError
        With cause and cure.
    """
    hub: dict[str, Any] = {"trust_remote_code": options.trust_remote_code}
    if options.revision is not None:
        hub["revision"] = options.revision
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(options.model, **hub)
        if getattr(tokenizer, "_tokenizer", None) is None:
            raise UsageError(f"{options.model} has no fast tokenizer (tokenizer.json): convert its tokenizer first")
        model = glyd_gpu.from_pretrained(
            options.model, device=options.device, layout=options.layout, exact=options.exact, **hub
        )
    except torch.OutOfMemoryError as error:
        raise UsageError(
            f"not enough GPU memory for {options.model}: glyd fit says what fits; --device cpu needs none"
        ) from error
    except (OSError, ValueError, RuntimeError) as error:
        raise _explained(options, error) from error
    if not model.can_generate():
        raise UsageError(f"{options.model} is no model that writes text ({type(model).__name__})")
    return model, tokenizer


def _explained(options: ServeOptions, error: Exception) -> Exception:
    """Return an error that says what to do, or the error itself when it says so already."""
    import glyd  # noqa: PLC0415

    if isinstance(error, glyd.GlydError):
        return error
    text = str(error)
    first = text.strip().partition("\n")[0]
    causes = (
        (
            ("gated repo", "awaiting a review", "401 Client"),
            "access to it must be asked for on the hub: log in with hf auth login",
        ),
        (
            ("trust_remote_code",),
            "it comes with code of its own: --trust-remote-code runs it, if you trust its authors",
        ),
        (
            ("couldn't connect", "offline mode", "Max retries", "Name or service not known", "LocalEntryNotFound"),
            "the hub cannot be reached and the model is not in the cache",
        ),
        (
            ("is not a local folder and is not a valid model", "404 Client", "RepositoryNotFound"),
            "no such model on the hub",
        ),
        (
            ("does not recognize this architecture", "model type"),
            "this version of transformers does not know its architecture: update it",
        ),
        (("No space left",), "the disk is full"),
    )
    for words, cause in causes:
        if any(w in text for w in words):
            return FileError(options.model, cause)
    return FileError(options.model, f"cannot be loaded: {first[:300] or type(error).__name__}")


def make_engine(options: ServeOptions, model: Any, tokenizer: PreTrainedTokenizerFast) -> TransformersEngine:
    """Return an engine whose window and KV cache fit into memory.

    Raises
    ------
    UsageError
        The window asked for does not fit, or the model has a smaller one.
    """
    name = options.name or (Path(options.model).resolve().name if os.path.isdir(options.model) else options.model)
    layouts = glyd_gpu.report(model).layouts
    layout = max(layouts, key=layouts.__getitem__) if layouts else "bf16"
    info = describe_model(model, name, context=options.context or _CONTEXT_MAX, layout=layout)
    if options.context is not None and options.context > info.context:
        raise UsageError(f"--context {options.context} is more than the model's window of {info.context} tokens")
    device = model.device.type
    free = torch.cuda.mem_get_info(model.device)[0] if device == "cuda" else psutil.virtual_memory().available
    room = int(free * _KV_SHARE.get(device, 0.25) / max(kv_bytes_a_token(model), 1))
    if room < (options.context or 64):
        need = (options.context or 64) * kv_bytes_a_token(model)
        raise UsageError(
            f"a window of {options.context or 64} tokens takes {size_text(need)} of memory, {size_text(free)} are free: "
            "name a smaller --context"
        )
    if options.context is None and room < info.context:
        info = describe_model(model, name, context=room, layout=info.layout)
    tokens = min(room, options.slots * info.context)
    return TransformersEngine(model, tokenizer, info, n_slots=options.slots, n_queue=options.queue, kv_tokens=tokens)

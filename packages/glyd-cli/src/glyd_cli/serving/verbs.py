# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Load a model, start its engine, and serve it or chat with it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import sys
import time
from typing import TYPE_CHECKING, cast

import transformers
import uvicorn

from glyd_cli.errors import Exit, UsageError
from glyd_cli.report import print_text, size_text
from glyd_cli.serving.app import make_app
from glyd_cli.serving.embedding import EmbeddingEngine
from glyd_cli.serving.loading import SLOTS, load, make_engine, model_name
from glyd_cli.serving.pool import Models, Served
from glyd_cli.serving.terminal import answer_once, chat

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from transformers import PreTrainedTokenizerFast

    from glyd_cli.report import Reporter
    from glyd_cli.serve import ServeOptions
    from glyd_cli.serving.engine import Engine

_CONNECTIONS = 4096  # at once; one more is told 503
_SHUTDOWN_S = 5  # for answers that run when the server is told to stop
_OWN_FILES = 256  # descriptors beside them


def serve_model(options: ServeOptions, reporter: Reporter, listener: socket.socket | None, keys: list[str]) -> Exit:
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
        text = options.prompt if options.prompt is not None else _read_prompt()
        if not text.strip():
            raise UsageError("the prompt is empty")
    first: Served
    if options.engine == "vllm":
        from glyd_cli.serving.vllm_start import start_vllm  # noqa: PLC0415 - of this engine alone

        engine, tokenizer, place, slots = start_vllm(options, reporter)
        engine.start()
        first = Served(engine, tokenizer)
        models = Models.of(engine, tokenizer)
    else:
        loaders = _loaders(options, reporter)
        name, load_first = loaders[0]
        first = load_first()
        place, slots = first.place, options.slots or SLOTS
        models = Models(
            [
                (name, load_first if options.verb == "serve" else None, first),
                *((other, later, None) for other, later in loaders[1:]),
            ],
            idle_s=options.idle_unload,
            n_waiting=options.queue,
            say=lambda text: reporter.say(f"glyd: {text}"),
        )
    try:
        models.also_call(options.alias)
    except ValueError as error:
        models.stop()
        raise UsageError(f"--alias: {error}") from error
    info = first.engine.info
    reporter.stop()
    facts = (
        f"{info.name}: {info.layout} weights {size_text(info.weight_nbytes)}, window {info.context} tokens, "
        f"{slots} at once, on {place}, ready in {time.monotonic() - start:.1f} s"
    )
    if options.kv == "packed":
        facts += "\nkeys and values are packed: about 30% fewer bytes, the same tokens, slower steps"
    if len(models.names) > 1:
        facts += f"\nalso, loaded when asked for: {', '.join(models.names[1:])}"
    try:
        if text is not None or listener is None:
            return asyncio.run(answer_once(cast("Engine", first.engine), first.tokenizer, options, text or ""))
        any_host = listener.getsockname()[0] not in {"127.0.0.1", "::1"}
        app = make_app(models, hosts=options.allow_host, any_host=any_host, api_key=keys)
        config = uvicorn.Config(
            app,
            log_level="warning",
            timeout_keep_alive=30,
            timeout_graceful_shutdown=_SHUTDOWN_S,
            h11_max_incomplete_event_size=1 << 16,
            limit_concurrency=_allow_connections(),
        )
        server = uvicorn.Server(config)
        host, port = listener.getsockname()[:2]
        url = f"http://{'localhost' if host in {'127.0.0.1', '::1'} else host}:{port}"
        print_text(f"{facts}\n{url}/v1 is an OpenAI API{' (with a key)' if keys else ''}\n")
        if options.verb == "serve":
            logging.basicConfig(format="%(message)s")
            logging.getLogger("glyd_cli.serving").setLevel(logging.INFO)
            server.run(sockets=[listener])
            return Exit.OK
        return asyncio.run(_serve_and_chat(server, listener, cast("Engine", first.engine), first.tokenizer, options))
    finally:
        models.stop()
        if listener is not None:
            listener.close()


def _read_prompt() -> str:
    """Return what standard input holds.

    Raises
    ------
    UsageError
        It is no text.
    """
    try:
        return sys.stdin.buffer.read().decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise UsageError(f"the prompt on standard input is no text in UTF-8: byte {error.start}") from error


def _loaders(options: ServeOptions, reporter: Reporter) -> list[tuple[str, Callable[[], Served]]]:
    """Return the models' names and how to load each.

    Raises
    ------
    UsageError
        Two have the same name.
    """

    def loader(one: ServeOptions) -> Callable[[], Served]:
        def load_one() -> Served:
            model, tokenizer, pooling = load(one, reporter)
            engine = make_engine(one, model, tokenizer, pooling, lambda text: reporter.say(f"glyd: {text}"))
            engine.start()
            if not isinstance(engine, EmbeddingEngine) and engine.restored[0]:
                n, seconds = engine.restored
                reporter.say(f"glyd: prefixes of {n} tokens put back in {seconds:.1f} s")
            return Served(engine, tokenizer, str(model.device))

        return load_one

    found: dict[str, ServeOptions] = {}
    for one in options.each():
        name = model_name(one)
        if name in found:
            raise UsageError(f"{found[name].model} and {one.model} would both be called {name!r} in the API")
        found[name] = one
    return [(name, loader(one)) for name, one in found.items()]


def _allow_connections() -> int:
    """Return how many connections are held at once, after asking for enough descriptors for them."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _CONNECTIONS + _OWN_FILES
    soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return min(_CONNECTIONS, max(soft - _OWN_FILES, 16))


async def _serve_and_chat(
    server: uvicorn.Server,
    listener: socket.socket,
    engine: Engine,
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

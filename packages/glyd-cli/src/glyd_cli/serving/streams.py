# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Several answers at once, and clients that go away."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.responses import StreamingResponse

from glyd_cli.serving.api_errors import ApiError
from glyd_cli.serving.engine import EngineError, QueueFullError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Sequence

    from starlette.requests import Request
    from starlette.types import Send

T = TypeVar("T")


class ClientGoneError(Exception):
    """Nobody waits for this answer any more."""


async def merged(sources: Sequence[AsyncGenerator[T, None]]) -> AsyncGenerator[tuple[int, T], None]:
    """Yield (number of the source, item) as items come; closing it closes all sources."""
    if len(sources) == 1:
        async with contextlib.aclosing(sources[0]) as only:
            async for one in only:
                yield 0, one
        return
    ready: asyncio.Queue[tuple[int, T] | BaseException | None] = asyncio.Queue(maxsize=4 * len(sources))

    async def pump(number: int, source: AsyncGenerator[T, None]) -> None:
        try:
            async with contextlib.aclosing(source) as items:
                async for item in items:
                    await ready.put((number, item))
        except Exception as error:  # noqa: BLE001 - goes on to the reader
            await ready.put(error)
        else:
            await ready.put(None)

    tasks = [asyncio.create_task(pump(number, source)) for number, source in enumerate(sources)]
    try:
        left = len(tasks)
        while left:
            item = await ready.get()
            if item is None:
                left -= 1
            elif isinstance(item, BaseException):
                raise item
            else:
                yield item
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return what work gives, or cancel it when the client closes the connection.

    Raises
    ------
    ClientGoneError
        The client went away first.
    """
    task = asyncio.create_task(work)

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    watcher = asyncio.create_task(watch())
    try:
        await asyncio.wait({task, watcher}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGoneError
        return task.result()
    finally:
        for one in (task, watcher):
            one.cancel()
        await asyncio.gather(task, watcher, return_exceptions=True)


def api_error(error: Exception) -> ApiError:
    """Return what the client is told of an exception of the engine."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, QueueFullError):
        return ApiError(429, f"{error}: try again later", code="queue_full")
    if isinstance(error, EngineError):
        return ApiError(500, f"the model failed: {error}")
    if isinstance(error, ValueError):
        return ApiError(400, str(error))
    return ApiError(500, f"internal error: {type(error).__name__}")


class _Events(StreamingResponse):
    """Closes what it sends from when the client is gone, not when the garbage is collected."""

    def __init__(
        self, events: AsyncGenerator[str, None], source: AsyncGenerator[Any, None], headers: dict[str, str]
    ) -> None:
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self._events = events
        self._source = source

    async def stream_response(self, send: Send) -> None:
        """Send all events."""
        async with contextlib.aclosing(self._source), contextlib.aclosing(self._events):
            await super().stream_response(send)


def _event(chunk: dict[str, Any]) -> str:
    """Return a chunk as an event, named where it has a type."""
    name = f"event: {chunk['type']}\n" if "type" in chunk else ""
    return f"{name}data: {json.dumps(chunk, ensure_ascii=False)}\n\n"


async def server_sent_events(chunks: AsyncGenerator[dict[str, Any], None]) -> StreamingResponse:
    """Return a streamed answer; an error before the first chunk is raised, a later one is an event.

    Raises
    ------
    Exception
        Whatever the first chunk raised.
    """
    first = await anext(chunks, None)

    async def events() -> AsyncGenerator[str, None]:
        async with contextlib.aclosing(chunks) as rest:
            try:
                if first is not None:
                    yield _event(first)
                async for chunk in rest:
                    yield _event(chunk)
            except Exception as error:  # noqa: BLE001 - becomes an event
                yield f"data: {json.dumps(api_error(error).body())}\n\n"
            yield "data: [DONE]\n\n"

    headers = {"cache-control": "no-cache", "x-accel-buffering": "no"}
    return _Events(events(), chunks, headers)

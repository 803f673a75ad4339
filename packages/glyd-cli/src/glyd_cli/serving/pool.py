# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The models behind one port: loaded when asked for, unloaded when idle or when another needs the room."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

import glyd
from glyd_cli.serving.api_errors import ApiError
from glyd_cli.serving.engine import Load, QueueFullError
from glyd_cli.serving.loading import NoRoomError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from transformers import PreTrainedTokenizerFast

    from glyd_cli.serving.embedding import EmbeddingEngine
    from glyd_cli.serving.engine import Engine


@dataclass(frozen=True)
class Served:
    """A model that is loaded, its engine started; place: on what."""

    engine: Engine | EmbeddingEngine
    tokenizer: PreTrainedTokenizerFast
    place: str = ""


@dataclass
class _Entry:
    name: str
    load: Callable[[], Served] | None
    served: Served | None = None
    created: int = field(default_factory=lambda: int(time.time()))
    n_users: int = 0  # requests that run on it or wait for it
    last_used: float = field(default_factory=time.monotonic)
    loading: asyncio.Task[None] | None = None

    def loaded(self, task: asyncio.Task[None]) -> None:
        """Note that loading ended, well or not; those who wait get the error."""
        self.loading = None
        if not task.cancelled():
            task.exception()


class Lease:
    """A model in use: it stays loaded until this is released."""

    def __init__(self, served: Served, release: Callable[[], None]) -> None:
        self.engine = served.engine
        self.tokenizer = served.tokenizer
        self._release: Callable[[], None] | None = release

    def release(self) -> None:
        """Let go; again does nothing."""
        if self._release is not None:
            self._release()
            self._release = None


class Models:
    """The models behind one port.

    Parameters
    ----------
    models
        Name, how to load it (None: it stays as it is), and what is loaded already; the first answers
        requests that name none.
    idle_s
        Seconds after which a model that nobody uses is unloaded; None: never.
    n_waiting
        Most requests that wait for models to load.
    say
        Told what is loaded and unloaded.
    """

    def __init__(
        self,
        models: Iterable[tuple[str, Callable[[], Served] | None, Served | None]],
        *,
        idle_s: float | None = None,
        n_waiting: int = 256,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._entries = {name: _Entry(name, load, served) for name, load, served in models}
        self._idle_s = idle_s
        self._most_waiting = n_waiting
        self._n_waiting = 0
        self._changing = asyncio.Lock()  # one model is loaded or unloaded at a time
        self._released = asyncio.Event()
        self._say = say
        self._aliases: dict[str, str] = {}

    def also_call(self, names: Iterable[str]) -> None:
        """Let the first model be found by other names too; a model's own name stays its own.

        Raises
        ------
        ValueError
            Another model has such a name.
        """
        first = next(iter(self._entries))
        for name in names:
            if name in self._entries and name != first:
                raise ValueError(f"{name!r} is the name of another model here")
            self._aliases[name] = first

    @classmethod
    def of(cls, engine: Engine | EmbeddingEngine, tokenizer: PreTrainedTokenizerFast) -> Models:
        """Return the one model that is loaded and stays."""
        return cls([(engine.info.name, None, Served(engine, tokenizer))])

    @property
    def names(self) -> list[str]:
        """The models' ids."""
        return list(self._entries)

    def loaded(self, name: str) -> Served | None:
        """Return a model if it is loaded."""
        return self._entries[name].served

    def created(self, name: str) -> int:
        """Return when a model came behind this port, in seconds since 1970."""
        return self._entries[name].created

    def load(self) -> Load:
        """Return how much runs and waits, of all models."""
        loads = [e.served.engine.load() for e in self._entries.values() if e.served is not None]
        return Load(
            n_running=sum(one.n_running for one in loads),
            n_waiting=sum(one.n_waiting for one in loads) + self._n_waiting,
        )

    def find(self, name: str | None) -> str:
        """Return the id of the model that a request names.

        Raises
        ------
        ApiError
            There is none of this name.
        """
        if name is None:
            return next(iter(self._entries))
        name = self._aliases.get(name, name)
        if name not in self._entries:
            known = ", ".join(map(repr, self._entries))
            text = f"the model {name[:200]!r} is not served here, only {known}"
            raise ApiError(404, text, param="model", code="model_not_found")
        return name

    async def lease(self, name: str | None) -> Lease:
        """Return a model to use, after loading it where that is needed.

        Raises
        ------
        ApiError
            There is none of this name, or it cannot be loaded.
        QueueFullError
            Too many requests wait for models.
        """
        entry = self._entries[self.find(name)]
        entry.n_users += 1  # from here on: what was loaded for a request is not unloaded before it begins
        try:
            while (served := entry.served) is None:
                await self._wait(entry)
        except BaseException:
            entry.n_users -= 1
            raise

        def release() -> None:
            entry.n_users -= 1
            entry.last_used = time.monotonic()
            self._released.set()

        return Lease(served, release)

    async def _wait(self, entry: _Entry) -> None:
        if self._n_waiting >= self._most_waiting:
            raise QueueFullError(f"{self._most_waiting} requests wait for models to load")
        if entry.loading is None:
            entry.loading = asyncio.create_task(self._load(entry))
            entry.loading.add_done_callback(entry.loaded)
        self._n_waiting += 1
        try:
            # a client that goes away does not stop it: others may wait, and half a model is of no use
            await asyncio.shield(entry.loading)
        finally:
            self._n_waiting -= 1

    async def _load(self, entry: _Entry) -> None:
        """Load a model, after unloading others where the room is needed."""
        if entry.load is None:
            raise ApiError(503, f"{entry.name!r} was stopped", code="model_not_loaded")
        start = time.monotonic()
        async with self._changing:
            while entry.served is None:
                self._released.clear()
                try:
                    entry.served = await asyncio.to_thread(entry.load)
                except NoRoomError as error:
                    await self._make_room(entry, error)
                except glyd.GlydError as error:
                    text = f"{entry.name!r} cannot be loaded: {error}"
                    raise ApiError(503, text, code="model_not_loaded") from error
            entry.last_used = time.monotonic()
        self._say(f"{entry.name} loaded in {entry.last_used - start:.1f} s")

    async def _make_room(self, entry: _Entry, error: NoRoomError) -> None:
        """Unload what was not used for longest, or wait until a model is not used any more."""
        others = [e for e in self._entries.values() if e.served is not None and e.load is not None]
        idle = sorted((e for e in others if not e.n_users), key=lambda e: e.last_used)
        if idle:
            await self._unload(idle[0], f"to make room for {entry.name}")
        elif others:
            await self._released.wait()
        else:
            raise ApiError(503, str(error), code="model_not_loaded") from error

    async def _unload(self, entry: _Entry, why: str) -> None:
        served, entry.served = entry.served, None
        if served is None:
            return
        await asyncio.to_thread(served.engine.stop)
        del served
        gc.collect()  # models and their caches hold each other
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        self._say(f"{entry.name} unloaded {why}")

    async def _unload_idle(self, idle_s: float) -> None:
        while True:
            await asyncio.sleep(min(max(idle_s / 4, 0.05), 15))
            async with self._changing:
                for entry in self._entries.values():
                    idle = time.monotonic() - entry.last_used
                    if entry.served is not None and entry.load is not None and not entry.n_users and idle >= idle_s:
                        await self._unload(entry, f"after {idle_s:g} s without a request")

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Unload what is idle, as long as this lasts."""
        task = asyncio.create_task(self._unload_idle(self._idle_s)) if self._idle_s is not None else None
        try:
            yield
        finally:
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    def stop(self) -> None:
        """Stop the engines of all models that are loaded."""
        for entry in self._entries.values():
            served, entry.served = entry.served, None
            if served is not None:
                served.engine.stop()

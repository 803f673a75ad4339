# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""SHA-256 beside other work: hashing takes as long as decoding does, so a second thread hides it."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future, ThreadPoolExecutor
    from types import TracebackType
    from typing import BinaryIO

    from typing_extensions import Self

PIECE_NBYTES = 1 << 20
"""Bytes that are in hand at a time: more leaves the cache, and memory of its own costs more than hashing."""


class Hasher:
    """SHA-256 of pieces, each hashed while the caller prepares the next one.

    Parameters
    ----------
    threads
        1: hash within `update`; else in a thread.

    Notes
    -----
    A piece must stay as it is until the next but one call of `update` returns.
    """

    def __init__(self, threads: int = 0) -> None:
        self._hash = hashlib.sha256()
        self._pool: ThreadPoolExecutor | None = None
        self._pending: Future[None] | None = None
        self._threads = threads or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0)
        self.nbytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def update(self, piece: bytes | memoryview) -> None:
        """Take the next piece."""
        self.nbytes += len(piece)
        if self._threads == 1 or len(piece) < PIECE_NBYTES:
            self._wait()
            self._hash.update(piece)
            return
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - costs 15 ms

            self._pool = ThreadPoolExecutor(1, "glyd-store-hash")
        self._wait()
        self._pending = self._pool.submit(self._hash.update, piece)

    def _wait(self) -> None:
        if self._pending is not None:
            self._pending.result()
            self._pending = None

    def digest(self) -> bytes:
        """Return the hash of all pieces."""
        self._wait()
        return self._hash.digest()


def read_pieces(read_into: Callable[[memoryview], int | None]) -> Iterator[memoryview]:
    """Yield what a function reads into memory, piece by piece; each is valid until the next but one."""
    buffers = [memoryview(bytearray(PIECE_NBYTES)) for _ in range(2)]
    turn = 0
    while True:
        view = buffers[turn]
        n = 0
        while n < len(view):
            more = read_into(view[n:])
            if not more:
                break
            n += more
        if n:
            yield view[:n]
        if n < len(view):
            return
        turn ^= 1


def file_pieces(file: BinaryIO) -> Iterator[memoryview]:
    """Yield the rest of a file, piece by piece; each is valid until the next but one."""
    read_into = getattr(file, "readinto", None)
    if read_into is not None:
        yield from read_pieces(read_into)
        return
    while piece := file.read(PIECE_NBYTES):
        yield memoryview(piece)

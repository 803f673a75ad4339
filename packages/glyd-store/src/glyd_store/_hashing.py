# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Hashes of contents: SHA-256, by which they are known, and the check, which is fast.

SHA-256 takes longer than decoding does, so a second thread hides it where there is one.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import glyd

if TYPE_CHECKING:
    import hashlib
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import BinaryIO

    from typing_extensions import Self

PIECE_NBYTES = 1 << 20
"""Bytes that are in hand at a time: more leaves the cache, and memory of its own costs more than hashing."""


def new_sha256(data: bytes | memoryview = b"") -> hashlib._Hash:
    """Return a SHA-256 of data, as ``hashlib`` has it: loading that takes 3 ms, and reads of large contents need none."""
    import hashlib  # noqa: PLC0415

    return hashlib.sha256(data)


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
        self._hash = new_sha256()
        self._thread: _HashingThread | None = None
        self._threads = threads or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0)
        self.nbytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the thread."""
        if self._thread is not None:
            self._thread.end()

    def update(self, piece: bytes | memoryview) -> None:
        """Take the next piece."""
        self.nbytes += len(piece)
        if self._threads == 1 or len(piece) < PIECE_NBYTES:
            self._wait()
            self._hash.update(piece)
            return
        if self._thread is None:
            self._thread = _HashingThread(self._hash)
        self._thread.wait()
        self._thread.submit(piece)

    def _wait(self) -> None:
        if self._thread is not None:
            self._thread.wait()

    def digest(self) -> bytes:
        """Return the hash of all pieces."""
        self._wait()
        return self._hash.digest()


class _HashingThread:
    """A thread that hashes one piece at a time: ``concurrent.futures`` takes 15 ms to load."""

    def __init__(self, total: hashlib._Hash) -> None:
        self._hash = total
        self._piece: bytes | memoryview | None = None
        self._given = threading.Semaphore(0)
        self._done = threading.Semaphore(1)  # nothing to wait for
        self._thread = threading.Thread(target=self._run, name="glyd-store-hash", daemon=True)
        self._thread.start()

    def submit(self, piece: bytes | memoryview) -> None:
        """Hash a piece; `wait` must have been called since the one before."""
        self._done.acquire()
        self._piece = piece
        self._given.release()

    def wait(self) -> None:
        """Return when nothing is being hashed."""
        with self._done:
            pass

    def end(self) -> None:
        """End the thread."""
        self._done.acquire()
        self._piece = None
        self._given.release()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._given.acquire()
            piece = self._piece
            if piece is None:
                return
            self._hash.update(piece)
            self._piece = None
            self._done.release()


class ContentCheck:
    """The check of a content: XXH3-128 over the XXH3-128s of its pieces of 1 MiB.

    Ten times as fast as SHA-256. It finds all damage that is no forgery, and is kept in the journal.
    """

    def __init__(self) -> None:
        self._hashes = bytearray()
        self._rest = b""
        self.nbytes = 0

    def update(self, piece: bytes | memoryview) -> None:
        """Take the next piece, of any size."""
        self.nbytes += len(piece)
        view = memoryview(piece)
        if self._rest:
            missing = PIECE_NBYTES - len(self._rest)
            self._rest += view[:missing]
            view = view[missing:]
            if len(self._rest) < PIECE_NBYTES:
                return
            self._hashes += glyd.checksum128(self._rest)
            self._rest = b""
        for start in range(0, len(view), PIECE_NBYTES):
            part = view[start : start + PIECE_NBYTES]
            if len(part) == PIECE_NBYTES:
                self._hashes += glyd.checksum128(part)
            else:
                self._rest = bytes(part)

    def digest(self) -> bytes:
        """Return the check of all pieces, 16 bytes."""
        last = glyd.checksum128(self._rest) if self._rest else b""
        return glyd.checksum128(bytes(self._hashes) + last)


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

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Reading and writing beside the coding: a thread on each side, a few buffers between."""

from __future__ import annotations

import contextlib
import io
import os
import queue
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import IO

    from _typeshed import WriteableBuffer
    from typing_extensions import Self

    from glyd_cli.sources import Source
    from glyd_cli.targets import Target

CHUNK_NBYTES = 4 << 20
"""Bytes of a buffer: the size of a segment, so that a full one is work for a thread."""

CLOSE_WAIT_S = 1.0
"""How long giving up waits for a read or write in progress that may never end."""

BUFFERS = 3
"""One being filled, one being used, one between them."""


def is_stop(kind: type[BaseException] | None) -> bool:
    """Return whether an exception ends the command at once, as a stop signal does."""
    return kind is not None and not issubclass(kind, Exception)


@contextlib.contextmanager
def seekable_file(source: Source) -> Iterator[IO[bytes]]:
    """Open a source as a file that can seek; a pipe is kept on disk for that, not in memory."""
    if source.is_regular:
        with os.fdopen(os.dup(source.fd), "rb", buffering=0) as file:
            yield file
        return
    import tempfile  # noqa: PLC0415  only pipes need it

    with tempfile.TemporaryFile() as spooled:
        chunk = memoryview(bytearray(CHUNK_NBYTES))
        while n := source.readinto(chunk):
            spooled.write(chunk[:n])
        spooled.seek(0)
        yield spooled


class ReadAhead:
    """Reads a source in a thread, up to two buffers ahead of whoever takes them.

    Parameters
    ----------
    source
        What to read.
    chunk_nbytes
        Size of a buffer.
    on_read
        Called in the thread of the user with the bytes of each chunk taken.
    """

    def __init__(self, source: Source, chunk_nbytes: int, on_read: Callable[[int], None]) -> None:
        self._source = source
        self._on_read = on_read
        self._free: queue.SimpleQueue[bytearray | None] = queue.SimpleQueue()
        self._full: queue.SimpleQueue[tuple[bytearray, int | BaseException]] = queue.SimpleQueue()
        self._current: bytearray | None = None
        self._at_end = False
        for _ in range(BUFFERS):
            self._free.put(bytearray(chunk_nbytes))
        self._is_closed = False
        # a daemon: it may sit in a read that never ends while the command gives up
        self._thread = threading.Thread(target=self._run, name="glyd-read", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (buffer := self._free.get()) is not None and not self._is_closed:
            try:
                n: int | BaseException = self._source.readinto(memoryview(buffer))
            except BaseException as error:  # noqa: BLE001 - handed to the thread that can report it
                n = error
            self._full.put((buffer, n))
            if not isinstance(n, int) or n < len(buffer):
                return

    def take(self) -> memoryview:
        """Return the next chunk, empty at the end; valid until the next call.

        Raises
        ------
        FileError
            What the reading thread met.
        """
        if self._current is not None:
            self._free.put(self._current)
            self._current = None
        if self._at_end:
            return memoryview(b"")
        buffer, n = self._full.get()
        if not isinstance(n, int):
            self._at_end = True
            raise n
        self._current = buffer
        self._at_end = n < len(buffer)
        if n:
            self._on_read(n)
        return memoryview(buffer)[:n]

    def close(self, *, is_stopped: bool = False) -> None:
        """End the thread.

        Parameters
        ----------
        is_stopped
            Whether the command ends right after this, so that there is nothing to wait for.

        Notes
        -----
        Only a read from a pipe that nothing comes from may outlast this: it keeps what it
        reads from, and finds the source closed afterwards. Any other read is waited for, or
        it could meet the next file under the number of this one.
        """
        self._is_closed = True
        self._free.put(None)
        if not is_stopped:
            self._thread.join(CLOSE_WAIT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(is_stopped=is_stop(kind))


class ChunkReader(io.RawIOBase):
    """A `ReadAhead` as a file object that cannot seek, for readers of file objects."""

    def __init__(self, ahead: ReadAhead) -> None:
        super().__init__()
        self._ahead = ahead
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def peek(self, n: int) -> bytes:
        """Return the next n bytes, fewer at the end, and leave them to be read."""
        while len(self._rest) < n and (more := self._ahead.take()):
            self._rest = memoryview(bytes(self._rest) + more)
        return bytes(self._rest[:n])

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Copy the next bytes into the buffer, and return how many."""
        if not self._rest:
            self._rest = self._ahead.take()
        out = memoryview(buffer).cast("B")
        n = min(len(out), len(self._rest))
        out[:n] = self._rest[:n]
        self._rest = self._rest[n:]
        return n


class WriteBehind:
    """Writes to a target in a thread, up to two buffers behind whoever fills them.

    A failed write is raised by the next `put` or by `finish`. Leaving the ``with`` block
    waits for the write in progress, so that nothing writes to a target that is aborted.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._queue: queue.Queue[memoryview | None] = queue.Queue(BUFFERS - 1)
        self._free: queue.SimpleQueue[bytearray] = queue.SimpleQueue()
        self._n_buffers = 0
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="glyd-write", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (data := self._queue.get()) is not None:
            if self._failure is None:
                try:
                    self._target.write(data)
                except BaseException as error:  # noqa: BLE001 - handed to the thread that can report it
                    self._failure = error
            if isinstance(data.obj, bytearray):
                self._free.put(data.obj)

    def buffer(self) -> memoryview:
        """Return a buffer of `CHUNK_NBYTES` to fill and to `put` (all or the first part of it)."""
        if self._n_buffers < BUFFERS:
            self._n_buffers += 1
            return memoryview(bytearray(CHUNK_NBYTES))
        return memoryview(self._free.get())

    def put(self, data: memoryview) -> None:
        """Hand over data, which must not change any more.

        Raises
        ------
        FileError, BrokenPipeError
            What the writing thread met before.
        """
        if self._failure is not None:
            raise self._failure
        self._queue.put(data)

    def finish(self) -> None:
        """Wait until everything is written.

        Raises
        ------
        FileError, BrokenPipeError
            What the writing thread met.
        """
        self._queue.put(None)
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or not self._thread.is_alive():
            return
        if not is_stop(kind):
            # What came before the failure is written, so that the output is the same however the threads run;
            # and no write may be left: the next file may get the descriptor of this one.
            self._queue.put(None)
            self._thread.join()
            return
        self._failure = self._failure or value  # writes nothing more
        # stopped by a signal: a pipe that nobody reads could hold us up for ever
        with contextlib.suppress(queue.Full):
            self._queue.put(None, timeout=CLOSE_WAIT_S)
            self._thread.join(CLOSE_WAIT_S)

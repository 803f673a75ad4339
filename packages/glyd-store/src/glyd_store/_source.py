# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What is put: bytes, files and pipes, each held in memory, or made readable twice."""

from __future__ import annotations

import io
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, cast

from glyd_store._cache import IN_MEMORY_NBYTES
from glyd_store._errors import StoreError
from glyd_store._hashing import PIECE_NBYTES, ContentCheck, Hasher, file_pieces, new_sha256
from glyd_store._resemblance import Sketch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from _typeshed import ReadableBuffer

    from glyd_store._cache import Memory

CHUNK_NBYTES = 4 << 20
_SPOOL_MEMORY_NBYTES = 16 << 20


class Source:
    """An input that was read once, and can be read again.

    Parameters
    ----------
    file
        A file that can seek.
    start
        Where the input starts in it.
    name
        For messages.
    data
        All of the input, where it is in memory.
    """

    def __init__(self, file: BinaryIO, start: int, name: str, data: bytes | memoryview | None = None) -> None:
        self.file = file
        self.data = data
        self.is_ours = isinstance(data, bytes)  # nobody else can change it
        self.start = start
        self.name = name
        self.size = 0
        self.sha256 = b""
        self.check: bytes | None = None
        self.fingerprints: tuple[int, ...] = ()
        self.head = b""
        self._room: memoryview | None = None

    def scan(self, *, small: int, threads: int = 0, progress: Callable[[int], None] | None = None) -> None:
        """Read it all: size, hashes, and, from `small` bytes on, the check and fingerprints."""
        sketch = Sketch()
        check = ContentCheck()
        with Hasher(threads) as total:
            for piece in self._all_pieces():
                if not total.nbytes:
                    self.head = bytes(piece)
                total.update(piece)
                check.update(piece)
                sketch.update(piece)
                if progress:
                    progress(len(piece))
            self.size, self.sha256 = total.nbytes, total.digest()
        if self.size >= small:
            self.fingerprints, self.check = sketch.finish(self.head), check.digest()

    def load(self, memory: Memory, most: int | None = None) -> None:
        """Let `scan` hold the input in memory, if it is not there yet and there is little enough of it.

        Parameters
        ----------
        memory
            Where it is held.
        most
            Bytes that are little enough; None: `IN_MEMORY_NBYTES`.
        """
        if self.data is not None:
            return
        self.file.seek(0, os.SEEK_END)
        n = self.file.tell() - self.start
        self.rewind()
        if not 0 < n <= (IN_MEMORY_NBYTES if most is None else most) or not hasattr(self.file, "readinto"):
            return
        with suppress(MemoryError):  # then it is read twice
            self._room = memory.lend(n)

    def _all_pieces(self) -> Iterator[bytes | memoryview]:
        if self.data is not None:
            view = memoryview(self.data)
            for start in range(0, len(view), PIECE_NBYTES):
                yield view[start : start + PIECE_NBYTES]
            return
        self.rewind()
        if self._room is not None:
            yield from self._load_pieces(self._room)
        yield from file_pieces(self.file)  # what has come since its size was looked at

    def _load_pieces(self, room: memoryview) -> Iterator[memoryview]:
        """Yield what is read into memory while it is in the caches of the processor."""
        at, self._room = 0, None
        while at < len(room):
            start, stop = at, min(at + PIECE_NBYTES, len(room))
            while at < stop and (read := self.file.readinto(room[at:stop])):  # type: ignore[attr-defined]
                at += read
            if at > start:
                yield room[start:at]
            if at < stop:
                return  # it has become shorter: as good as not in memory
        here = self.file.tell()
        if not self.file.read(1):
            self.data = room.toreadonly()
            self.is_ours = True
        self.file.seek(here)

    def rewind(self) -> None:
        """Go to the start of the input."""
        self.file.seek(self.start)

    def read_all(self) -> bytes:
        """Return all of a small input, which must be what was scanned."""
        data = b"".join(bytes(piece) for piece in self.pieces()) if self.data is None else bytes(self.data)
        if new_sha256(data).digest() != self.sha256:
            raise self.changed()
        return data

    def part(self, offset: int, n: int) -> bytes | memoryview:
        """Return up to n bytes of the input from an offset on."""
        if self.data is not None:
            return memoryview(self.data)[offset : offset + n]
        self.file.seek(self.start + offset)
        return self.file.read(min(n, max(self.size - offset, 0)))

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Yield the input as far as it was scanned; each piece is valid until the next but one."""
        if self.data is None:
            self.rewind()
        left = self.size
        for piece in file_pieces(self.file) if self.data is None else self._all_pieces():
            yield piece[:left]
            left -= min(left, len(piece))
            if not left:
                return
        if left:
            raise self.changed()

    def changed(self) -> StoreError:
        """Return the error for an input that is not what it was a moment ago."""
        return StoreError(f"{self.name} changed while it was read; nothing was stored")


@contextmanager
def open_source(data: ReadableBuffer | BinaryIO | os.PathLike[str], name: str) -> Iterator[Source]:
    """Yield an input as a `Source`; a file that is not ours stays open."""
    if isinstance(data, os.PathLike):
        with open(data, "rb", buffering=0) as file:
            yield from _from_file(file, os.fspath(data))
    elif hasattr(data, "read"):
        yield from _from_file(cast("BinaryIO", data), name)
    else:
        view = memoryview(data)
        raw = data if isinstance(data, bytes) else view.cast("B") if view.c_contiguous else view.tobytes()
        yield Source(io.BytesIO(raw), 0, name, raw)


def _from_file(file: BinaryIO, name: str) -> Iterator[Source]:
    try:
        start = file.tell() if file.seekable() else None
        if start is not None:
            file.seek(start)
    except (AttributeError, OSError):
        start = None
    if start is not None:
        yield Source(file, start, name)
        return
    import tempfile  # noqa: PLC0415 - costs 10 ms

    with tempfile.SpooledTemporaryFile(_SPOOL_MEMORY_NBYTES) as spool:
        while chunk := file.read(CHUNK_NBYTES):
            spool.write(chunk)
        yield Source(spool, 0, name)  # type: ignore[arg-type]

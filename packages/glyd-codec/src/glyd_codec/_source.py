# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Where frames are read from: files, file objects and buffers behind one interface."""

from __future__ import annotations

import builtins
import io
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import IO, Any, TypeAlias

    from _typeshed import ReadableBuffer

    Path: TypeAlias = "str | os.PathLike[str]"
    Source: TypeAlias = "BufferSource | FileSource"  # bytes with an end, readable at any offset


class BufferSource:
    """A buffer in memory as a source; nothing is copied but what is asked for."""

    def __init__(self, data: ReadableBuffer) -> None:
        self._data = memoryview(data).cast("B") if memoryview(data).nbytes else memoryview(b"")

    def read_at(self, offset: int, size: int) -> bytes:
        """Return the bytes from an offset on."""
        return bytes(self._data[offset : offset + size])

    def readinto_at(self, offset: int, out: memoryview) -> int:
        """Fill ``out`` from an offset on."""
        part = self._data[offset : offset + len(out)]
        out[: len(part)] = part
        return len(part)

    def end(self) -> int:
        """Return the number of bytes there are."""
        return len(self._data)


class FileSource:
    """A binary file object as a source; offset 0 is where it stood when first used.

    Works with objects that give fewer bytes than asked for. Reading on from
    the current place (`read_next`) needs nothing but ``read`` of them.
    """

    def __init__(self, fp: IO[bytes], *, owns: bool) -> None:
        self.fp = fp
        self._owns = owns
        self._can_seek = is_seekable(fp)
        self._start = fp.tell() if self._can_seek else 0

    @property
    def is_seekable(self) -> bool:
        """Say whether offsets can be reached."""
        return self._can_seek

    def read_next(self, size: int) -> bytes:
        """Return the next bytes, as many as come without waiting for more; none at the end."""
        read: Any = getattr(self.fp, "read1", None) or self.fp.read
        data = read(size)
        if data is None:
            raise BlockingIOError("the source has no data now: glyd reads blocking sources only")
        return bytes(data)

    def read_rest(self) -> bytes:
        """Return everything from the current place to the end."""
        parts = []
        read: Any = self.fp.read
        while True:
            data = read(-1)
            if data is None:
                raise BlockingIOError("the source has no data now: glyd reads blocking sources only")
            if not data:
                break
            parts.append(data)
        return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)

    def rewind(self) -> None:
        """Go back to offset 0."""
        self.fp.seek(self._start)

    def read_at(self, offset: int, size: int) -> bytes:
        """Return the bytes from an offset on."""
        out = bytearray(size)
        return bytes(memoryview(out)[: self.readinto_at(offset, memoryview(out))])

    def readinto_at(self, offset: int, out: memoryview) -> int:
        """Fill ``out`` from an offset on."""
        self.fp.seek(self._start + offset)
        readinto: Any = getattr(self.fp, "readinto", None)
        done = 0
        while done < len(out):
            if readinto is not None:
                n = readinto(out[done:])
            else:
                data: Any = self.fp.read(len(out) - done)
                n = None if data is None else len(data)
                if n and n <= len(out) - done:
                    out[done : done + n] = data
            if n is None:
                raise BlockingIOError("the source has no data now: glyd reads blocking sources only")
            if n == 0:
                break
            if not 0 < n <= len(out) - done:
                raise OSError(f"the source says that it read {n} bytes of {len(out) - done}")
            done += n
        return done

    def end(self) -> int:
        """Return the number of bytes there are."""
        return self.fp.seek(0, io.SEEK_END) - self._start

    def close(self) -> None:
        """Close the file if it was opened here."""
        if self._owns:
            self.fp.close()


def is_seekable(fp: Any) -> bool:
    """Say whether a file object can seek; objects that do not tell are asked to try."""
    seekable = getattr(fp, "seekable", None)
    if seekable is not None:
        return bool(seekable())
    return hasattr(fp, "seek") and hasattr(fp, "tell")


def is_path(file: object) -> bool:
    """Say whether an argument names a file."""
    return isinstance(file, (str, os.PathLike))


def open_source(file: Path | IO[bytes] | ReadableBuffer) -> BufferSource | FileSource:
    """Return the source for a path, a seekable binary file object or a buffer.

    Raises
    ------
    OSError
        When the file cannot be opened, or the object cannot seek (UnsupportedOperation).
    TypeError
        For anything else.
    """
    if is_path(file):
        return FileSource(builtins.open(file, "rb", buffering=0), owns=True)  # type: ignore[arg-type]  # noqa: PTH123
    if hasattr(file, "read") and hasattr(file, "seek"):
        source = FileSource(file, owns=False)  # type: ignore[arg-type]
        if not source.is_seekable:
            raise io.UnsupportedOperation("frames can only be listed in a source that can seek")
        return source
    return BufferSource(file)  # type: ignore[arg-type]

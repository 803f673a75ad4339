# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Bundles: many small objects in one file, of which each is read in about a millisecond.

A bundle is a frame with the objects one after the other, and behind it a skippable frame
with their sizes and names, which other readers pass over (docs/format.md, "Bundles").
"""

from __future__ import annotations

import bisect
import builtins
import io
import itertools
import operator
import os
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, overload

from glyd_codec._buffers import borrow
from glyd_codec._checksum import checksum
from glyd_codec._errors import (
    CorruptDataError,
    FormatError,
    LimitError,
    ParameterError,
    TruncatedError,
    limit_error,
)
from glyd_codec._file import GlydFile
from glyd_codec._limits import Limits
from glyd_codec._native import ffi, lib
from glyd_codec._oneshot import compress, decompress
from glyd_codec._source import is_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType
    from typing import IO

    from _typeshed import ReadableBuffer
    from typing_extensions import Self

    from glyd_codec._params import Level, Records
    from glyd_codec._source import Path

GROUP_SIZE = 1 << 20
_TAG = 0x4C444E42  # "BNDL"
_TAIL = 20  # size of the index, check, magic
_MAGIC = b"GLYDBNDL"
_SKIPPABLE_HEADER = 20
_INDEX_MAX = 1 << 32
_OBJECT_MEMORY = (56, 160)  # bytes that an object without, with a name takes beside its part of the index, at most


def _varints(values: Iterable[int]) -> bytes:
    out = bytearray()
    for value in values:
        rest = value
        while rest >= 128:
            out.append(rest & 127 | 128)
            rest >>= 7
        out.append(rest)
    return bytes(out)


def _read_varints(data: bytes, at: int, n: int) -> tuple[list[int], int]:
    """Return n varints from an offset on, and where they end."""
    values = []
    for _ in range(n):
        value = shift = 0
        while True:
            if at >= len(data) or shift > 63:
                raise CorruptDataError("the index of the bundle is damaged: a number does not end", offset=at)
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
        values.append(value)
    return values, at


def _index(sizes: list[int], names: list[str] | None) -> bytes:
    """Return the skippable frame that ends a bundle."""
    body = _varints([len(sizes), 0 if names is None else 1]) + _varints(sizes)
    if names is not None:
        encoded = [name.encode("utf-8", "surrogateescape") for name in names]
        body += _varints(len(name) for name in encoded) + b"".join(encoded)
    packed = compress(body, "max", threads=1, weights=False)
    tail = len(packed).to_bytes(8, "little") + (checksum(packed) & 0xFFFFFFFF).to_bytes(4, "little") + _MAGIC
    head = lib.GLYD_SKIPPABLE_MAGIC.to_bytes(4, "little") + _TAG.to_bytes(4, "little")
    head += (len(packed) + len(tail)).to_bytes(8, "little")
    return head + (checksum(head) & 0xFFFFFFFF).to_bytes(4, "little") + packed + tail


def pack_objects(
    objects: Mapping[str, ReadableBuffer] | Iterable[ReadableBuffer] | Iterable[tuple[str, ReadableBuffer]],
    file: Path | IO[bytes],
    *,
    level: Level = "max",
    group_size: int = GROUP_SIZE,
    records: Records = "auto",
    threads: int = 0,
) -> int:
    """Write many small objects into one bundle.

    Parameters
    ----------
    objects
        Pieces of content; pairs of name and content; or a mapping of names to content.
        Names must differ. Read one by one: memory does not grow with them, but for 8 bytes
        and the name of each.
    file
        Path, which is replaced once everything is written, or binary file object.
    level
        As for `compress`.
    group_size
        Bytes that are compressed, and later read, together: 2^10 … 2^30. Larger ones take
        fewer bytes and longer to read an object from.
    records
        As for `compress`.
    threads
        Threads to work with; 0: one a CPU, at most 8.

    Returns
    -------
    int
        Number of objects.

    Raises
    ------
    ParameterError
        For an argument outside its range, two objects of one name, or names for some only.
    TypeError, BufferError
        When content is no C-contiguous buffer.
    OSError
        When writing fails; a path then keeps what it held.

    See Also
    --------
    Bundle : reads them.
    """
    if is_path(file):
        path = os.fsdecode(file)  # type: ignore[arg-type]
        part = f"{path}.{secrets.token_hex(4)}.part"
        try:
            with builtins.open(part, "xb") as target:  # noqa: PTH123
                n = _write(objects, target, level, group_size, records, threads)
                target.flush()
                os.fsync(target.fileno())
            os.replace(part, path)  # noqa: PTH105
        except BaseException:
            if os.path.exists(part):  # noqa: PTH110
                os.unlink(part)  # noqa: PTH108
            raise
        return n
    return _write(objects, file, level, group_size, records, threads)  # type: ignore[arg-type]


def _write(
    objects: Mapping[str, ReadableBuffer] | Iterable[ReadableBuffer] | Iterable[tuple[str, ReadableBuffer]],
    target: IO[bytes],
    level: Level,
    group_size: int,
    records: Records,
    threads: int,
) -> int:
    items = objects.items() if isinstance(objects, Mapping) else objects
    sizes: list[int] = []
    names: dict[str, None] = {}
    has_names = isinstance(objects, Mapping)
    with GlydFile(
        target, "wb", level=level, segment_size=group_size, records=records, threads=threads, weights=False
    ) as frame:
        for item in items:
            named = isinstance(item, tuple)
            if not sizes:
                has_names = named
            if named != has_names:
                raise ParameterError(f"object {len(sizes)} has {'a' if named else 'no'} name, unlike those before it")
            content = item
            if isinstance(item, tuple):
                name, content = item
                if not isinstance(name, str):
                    raise TypeError(f"a name must be str, not {type(name).__name__}")
                if name in names:
                    raise ParameterError(f"two objects are called {name!r}")
                names[name] = None
            src = borrow(content)  # type: ignore[arg-type]
            sizes.append(len(src))
            frame.write(ffi.buffer(src))
            ffi.release(src)
    target.write(_index(sizes, list(names) if has_names and sizes else None))
    return len(sizes)


class _Part(io.RawIOBase):
    """The first bytes of a file, as a file."""

    def __init__(self, file: IO[bytes], start: int, size: int) -> None:
        self._file = file
        self._start = start
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, out: bytearray | memoryview) -> int:  # type: ignore[override]
        n = max(0, min(len(out), self._size - self._at))
        self._file.seek(self._start + self._at)
        data = self._file.read(n)
        out[: len(data)] = data
        self._at += len(data)
        return len(data)


class Bundle:
    """Many small objects in one file, each read by itself.

    Parameters
    ----------
    file
        Path, binary file object that can seek, or C-contiguous buffer.
    limits
        As for `open`; ``max_memory`` also bounds what the index may take.

    Raises
    ------
    FormatError
        When the file is no bundle, or its index is damaged.
    LimitError
        When the index takes more memory than ``max_memory``.
    OSError
        When the file cannot be read.

    Notes
    -----
    Use an object from one thread at a time. Reading an object decodes its group (two, if
    it lies across their border); neighbours are then read without decoding again.
    """

    def __init__(self, file: Path | IO[bytes] | ReadableBuffer, *, limits: Limits | None = None) -> None:
        self._owned: IO[bytes] | None = None
        if is_path(file):
            self._owned = stream = builtins.open(file, "rb")  # type: ignore[arg-type]  # noqa: PTH123, SIM115
        elif hasattr(file, "read"):
            stream = file  # type: ignore[assignment]
        else:
            self._owned = stream = io.BytesIO(file)  # type: ignore[arg-type]
        try:
            start = 0 if self._owned else stream.tell()
            frame_size, sizes, names = _read_index(stream, start, limits)
            self._starts = [0, *itertools.accumulate(sizes)]
            self._names = names
            self._places = {name: i for i, name in enumerate(names)} if names is not None else {}
            self._frame = GlydFile(io.BufferedReader(_Part(stream, start, frame_size)), limits=limits)
        except BaseException:
            if self._owned:
                self._owned.close()
            raise

    @property
    def names(self) -> list[str] | None:
        """Names of the objects in their order, or None when they have none."""
        return None if self._names is None else list(self._names)

    @property
    def nbytes(self) -> int:
        """Bytes of content of all objects."""
        return self._starts[-1]

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self._starts) - 1

    def __contains__(self, name: object) -> bool:
        """Say whether there is an object of this name."""
        return name in self._places

    @overload
    def __getitem__(self, key: int | str) -> bytes: ...
    @overload
    def __getitem__(self, key: slice) -> list[bytes]: ...
    def __getitem__(self, key: int | str | slice) -> bytes | list[bytes]:
        """Return the content of an object, by its place or name, or of several by their places.

        Raises
        ------
        IndexError, KeyError
            When there is no such object.
        FormatError
            When its group is damaged; objects of other groups can still be read.
        """
        if isinstance(key, slice):
            return [self[i] for i in range(*key.indices(len(self)))]
        if isinstance(key, str):
            if key not in self._places:
                raise KeyError(key)
            place = self._places[key]
        else:
            place = operator.index(key)
            if place < 0:
                place += len(self)
            if not 0 <= place < len(self):
                raise IndexError(f"object {key} of {len(self)}")
        start, end = self._starts[place], self._starts[place + 1]
        self._frame.seek(start)
        data = self._frame.read(end - start)
        if len(data) != end - start:
            raise TruncatedError(
                f"object {place} ends after {len(data)} of {end - start} bytes", expected=end - start, found=len(data)
            )
        return data

    def __iter__(self) -> Iterator[bytes]:
        """Give the content of each object, in their order."""
        return (self[i] for i in range(len(self)))

    def find(self, offset: int) -> int:
        """Return the place of the object that holds a byte of all objects' content."""
        if not 0 <= offset < self.nbytes:
            raise IndexError(f"byte {offset} of {self.nbytes}")
        return bisect.bisect_right(self._starts, offset) - 1

    def close(self) -> None:
        """Close the bundle, and the file if it was given as a path."""
        self._frame.close()
        if self._owned:
            self._owned.close()

    def __enter__(self) -> Self:
        """Return the bundle."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the bundle."""
        self.close()


def _read_index(stream: IO[bytes], start: int, limits: Limits | None) -> tuple[int, list[int], list[str] | None]:
    """Return the size of the frame, and sizes and names of the objects."""
    end = stream.seek(0, os.SEEK_END)
    if end - start < _SKIPPABLE_HEADER + _TAIL:
        raise FormatError(f"no bundle: {end - start} bytes are too few", found=end - start)
    stream.seek(end - _TAIL)
    tail = stream.read(_TAIL)
    if tail[12:] != _MAGIC:
        raise FormatError(f"no bundle: it ends with {tail[12:]!r}, not {_MAGIC!r}", offset=end - len(_MAGIC))
    size = int.from_bytes(tail[:8], "little")
    at = end - _TAIL - size
    if size > _INDEX_MAX or at < start + _SKIPPABLE_HEADER:
        raise CorruptDataError(f"the bundle says its index has {size} bytes", offset=end - _TAIL, found=size)
    stream.seek(at)
    packed = stream.read(size)
    found, stored = checksum(packed) & 0xFFFFFFFF, int.from_bytes(tail[8:12], "little")
    if found != stored:
        raise CorruptDataError(
            f"the index of the bundle is damaged (check {stored:#x}, found {found:#x})",
            offset=at,
            expected=stored,
            found=found,
        )
    most = (limits.max_memory if limits else None) or 2 << 30  # as of a segment
    try:  # a few bytes can say that they are gigabytes
        body = decompress(packed, limits=Limits(max_output=min(_INDEX_MAX, most)))
    except LimitError as error:
        raise limit_error("max_memory", most, error.found or most, offset=at) from error
    (n, has_names), at_sizes = _read_varints(body, 0, 2)
    if n > len(body) or has_names > 1:
        raise CorruptDataError(f"the index of the bundle is damaged: {n} objects in {len(body)} bytes", found=n)
    needed = len(body) + n * _OBJECT_MEMORY[has_names]
    if needed > most:
        raise limit_error("max_memory", most, needed, offset=at)
    sizes, at_names = _read_varints(body, at_sizes, n)
    names = None
    if has_names:
        lengths, at_text = _read_varints(body, at_names, n)
        ends = [at_text, *itertools.accumulate(lengths, initial=at_text)][1:]
        names = [body[a:b].decode("utf-8", "surrogateescape") for a, b in itertools.pairwise(ends)]
        at_names = ends[-1]
    if at_names != len(body) or sum(sizes) >= 1 << 63 or (names is not None and len(set(names)) != n):
        raise CorruptDataError("the index of the bundle is damaged: its parts do not fit", offset=at)
    return at - _SKIPPABLE_HEADER - start, sizes, names

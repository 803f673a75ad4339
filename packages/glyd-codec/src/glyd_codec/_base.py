# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Bases: older content that frames are stored against."""

from __future__ import annotations

import builtins
import itertools
import mmap
import os
import threading
from typing import TYPE_CHECKING

from glyd_codec._buffers import borrow, to_bytes
from glyd_codec._errors import ParameterError, status_error
from glyd_codec._native import ffi, lib
from glyd_codec._params import native_limits
from glyd_codec._source import is_path

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import IO, Any, TypeAlias

    from _typeshed import ReadableBuffer
    from typing_extensions import Self

    from glyd_codec._limits import Limits
    from glyd_codec._source import Path

    BaseSource: TypeAlias = "ReadableBuffer | Path | IO[bytes]"
    BaseLike: TypeAlias = "Base | BaseSource | Sequence[BaseSource]"


_JOINED_IN_MEMORY = 64 << 20
_ORDERED_MAX = 4  # sources: they have 64 orders


class Base:
    """Older content that frames are stored against, hashed once and used often.

    Wherever ``base=`` is taken, the content itself will do as well, or a list or tuple of
    several; it is then hashed (and for writing mapped) anew by each call.

    Parameters
    ----------
    source
        A C-contiguous buffer, a path, or a binary file object, of which everything from
        its current place on is the base. Buffers, and files of the system, are not
        copied: they must not change until `close`. Other file objects are read into memory.
    *more
        Further sources: the base is then what all of them hold, one after the other, and
        readers need the same ones in the same order. They are copied, into a temporary
        file where they are large.

    Raises
    ------
    OSError
        When the file cannot be read.
    TypeError, BufferError
        When source is none of these.
    MemoryError
        When there is not enough memory.

    Notes
    -----
    Writing maps the base first, which takes memory of a 24th of its size, at most
    256 MiB, kept until `close`. Threads may share an object and use it at the same time.
    """

    def __init__(self, source: BaseSource, *more: BaseSource) -> None:
        self._lock = threading.Lock()
        self._is_indexed = False
        memory, is_mapped, self._sizes = _load_all((source, *more))
        self._nbytes = len(memory)
        self._memory: Any = memory
        holder = ffi.new("glyd_base **")
        status = lib.glyd_base_create(holder, memory, self._nbytes, is_mapped, ffi.NULL)
        if status != lib.GLYD_OK:
            raise status_error(status)

        self._native: Any = _owned(holder[0], memory)
        number = ffi.new("uint8_t[16]")
        lib.glyd_base_get_id(self._native, number)
        self._id = to_bytes(number, 16)

    @classmethod
    def from_frames(
        cls,
        frames: ReadableBuffer | Path | IO[bytes],
        *,
        base: BaseLike | None = None,
        limits: Limits | None = None,
    ) -> Self:
        """Return the content of frames as a base that is decoded only as far as reads ask for.

        What was stored against the third version of something, which was stored against the
        second, and so on, is read through a chain of such bases without making any version
        but the one wanted, and a range of it without making all of that one.

        Parameters
        ----------
        frames
            Whole frames and nothing else: a buffer, a path, or a binary file object, as for `Base`.
        base
            What these frames were stored against, which may come from here as well.
        limits
            Limits for hostile input.

        Returns
        -------
        Base
            For reading alone, and without an `id` (zeros): whatever it is used for must have
            checksums, which say whether it was the right one (ChecksumError).

        Raises
        ------
        FormatError, MissingBaseError, WrongBaseError, LimitError
            As `decompress` does, for what can be seen without decoding segments.
        ParameterError
            For more than 64 such bases below each other.

        Notes
        -----
        Segments that were used last are kept, up to 128 MiB of each base. Reads that jump so much
        that the whole would have been decoded eight times raise LimitError: decode it then.
        """
        memory, is_mapped = _load(frames)
        below = native_base(base)
        holder = ffi.new("glyd_base **")
        error = ffi.new("glyd_error *")
        status = lib.glyd_base_create_frames(
            holder, memory, len(memory), is_mapped, below, native_limits(limits), ffi.NULL, error
        )
        if status != lib.GLYD_OK:
            raise status_error(status, error)

        self = cls.__new__(cls)
        self._lock = threading.Lock()
        self._is_indexed = False
        self._native = _owned(holder[0], memory, below)
        self._nbytes = int(lib.glyd_base_size(self._native))
        self._id = bytes(16)
        self._sizes, self._memory = [], None
        return self

    @property
    def id(self) -> bytes:
        """XXH3-128 of the content, 16 bytes: what frames name it by."""
        return self._id

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self._nbytes

    def find_order(self, base_id: bytes) -> tuple[int, ...] | None:
        """Find out how the sources of a base of several make the base that a frame names.

        Parameters
        ----------
        base_id
            ``base_id`` of `get_frame_info`, or its first bytes.

        Returns
        -------
        tuple of int or None
            Numbers of the sources, counted from 0, in the order in which all or some of
            them are that base; None: they are not, in whatever order.

        Raises
        ------
        ValueError
            After `close`; for more than 4 sources; for a base of frames.

        Notes
        -----
        Copies and hashes every order of every choice of the sources.
        """
        with self._lock:
            memory = self._memory
        if memory is None:
            raise ValueError("the base is closed" if self._sizes else "a base of frames has no order")
        if len(self._sizes) > _ORDERED_MAX:
            raise ValueError(f"a base of {len(self._sizes)} sources, at most {_ORDERED_MAX} expected")
        whole = ffi.buffer(memory)
        ends = itertools.accumulate(self._sizes)
        parts = [whole[end - size : end] for end, size in zip(ends, self._sizes, strict=True)]
        for n in range(len(parts), 0, -1):
            for order in itertools.permutations(range(len(parts)), n):
                with Base(b"".join(parts[i] for i in order)) as other:
                    if other.id.startswith(base_id):
                        return order
        return None

    def close(self) -> None:
        """Let go of the content and of the map, once nothing that was opened with it needs them any more."""
        with self._lock:
            self._native = None
            self._memory = None

    def __enter__(self) -> Self:
        """Return the object itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def native(self, *, for_writing: bool = False) -> Any:
        """Return the ``glyd_base *``; content and map live as long as this handle does.

        Raises
        ------
        ValueError
            After `close`.
        MemoryError
            When there is no memory for the map that writing needs.
        """
        with self._lock:
            if self._native is None:
                raise ValueError("the base is closed")
            if for_writing and not self._is_indexed:
                status = lib.glyd_base_index(self._native)
                if status != lib.GLYD_OK:
                    raise status_error(status)
                self._is_indexed = True
            return self._native


_held: dict[int, Any] = {}
_numbers = itertools.count()


def _owned(native: Any, *held: Any) -> Any:
    """Return a ``glyd_base *`` that is freed with the last use of it, until when what it refers to is held.

    It is held from here, not from the handle: a memoryview that only garbage in a cycle refers to
    is cleared by the collector while its memory is still lent out, and CPython crashes when it
    comes back (3.11: ``_memory_release`` after ``tp_clear``).
    """
    number = next(_numbers)
    _held[number] = held

    def free(native: Any, number: int = number, all_held: dict[int, Any] = _held) -> None:
        lib.glyd_base_free(native)
        all_held.pop(number, None)

    return ffi.gc(native, free)


def native_base(base: BaseLike | None, *, for_writing: bool = False) -> Any:
    """Return what was given as ``base=`` as a ``glyd_base *``, NULL for None; to be held as long as it is used."""
    if base is None:
        return ffi.NULL
    if isinstance(base, (list, tuple)):
        if not base:
            raise ParameterError("base is an empty list")
        return Base(*base).native(for_writing=for_writing)
    return (base if isinstance(base, Base) else Base(base)).native(for_writing=for_writing)  # type: ignore[arg-type]


def _load(source: BaseSource) -> tuple[Any, bool]:
    """Return the content as native memory, and whether that is a file mapped here."""
    if is_path(source):
        with builtins.open(source, "rb", buffering=0) as file:  # type: ignore[arg-type]  # noqa: PTH123
            return _load_file(file)
    if hasattr(source, "read"):
        return _load_file(source)  # type: ignore[arg-type]
    return borrow(source), False  # type: ignore[arg-type]


def _load_all(sources: Sequence[BaseSource]) -> tuple[Any, bool, list[int]]:
    """Return what `_load` does of one content or of several, one after the other, and the size of each."""
    parts = [_load(source) for source in sources]
    sizes = [len(memory) for memory, _ in parts]
    if len(parts) == 1:
        return (*parts[0], sizes)
    if sum(sizes) <= _JOINED_IN_MEMORY:
        return borrow(b"".join(ffi.buffer(memory) for memory, _ in parts)), False, sizes
    import tempfile  # noqa: PLC0415 - costs 10 ms

    with tempfile.TemporaryFile() as file:
        for memory, _ in parts:
            file.write(ffi.buffer(memory))
        file.seek(0)
        return (*_load_file(file), sizes)  # the mapping outlives the file


def _load_file(file: IO[bytes]) -> tuple[Any, bool]:
    """Map a file of the system, from its current place on; read what cannot be mapped."""
    try:
        descriptor = file.fileno()
        start = file.tell()
        size = os.fstat(descriptor).st_size - start
    except (OSError, AttributeError):
        size = 0
    if size > 0:
        try:
            mapped = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            pass  # it can still be read
        else:
            return borrow(memoryview(mapped)[start:]), True
    data = file.read()
    if data is None:
        raise BlockingIOError("the base has no data now: glyd reads blocking sources only")
    return borrow(data), False

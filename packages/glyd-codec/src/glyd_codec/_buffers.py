# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Memory that the native core reads from and writes to."""

from __future__ import annotations

import mmap
import sys
from typing import TYPE_CHECKING, cast

from glyd_codec._errors import ParameterError
from glyd_codec._native import ffi

if TYPE_CHECKING:
    from typing import Any

    from _typeshed import ReadableBuffer, WriteableBuffer

_DIRECT_MIN = 256  # below this a copy costs less than a second look at the object
_FRESH_MIN = 4 << 20  # from here on huge pages are worth the calls through ctypes
_CPYTHON = sys.implementation.name == "cpython"

_allocate = ffi.new_allocator(should_clear_after_alloc=False)


def scratch(size: int) -> Any:
    """Return ``char[size]`` of memory that nothing has cleared."""
    return _allocate("char[]", max(size, 1))


def borrow(data: ReadableBuffer) -> Any:
    """Return the bytes of a C-contiguous buffer as ``char[]``, not copied.

    Raises
    ------
    TypeError
        For objects without a buffer (str among them).
    BufferError
        For buffers that are not C-contiguous.
    """
    try:
        return ffi.from_buffer("char[]", data)
    except TypeError:
        raise TypeError(f"a bytes-like object is required, not {type(data).__name__}") from None


def borrow_writable(out: WriteableBuffer) -> Any:
    """Return the bytes of a writable C-contiguous buffer as ``char[]``, not copied.

    Raises
    ------
    TypeError
        For objects without a buffer.
    BufferError
        For buffers that are read-only or not C-contiguous.
    """
    try:
        return ffi.from_buffer("char[]", out, require_writable=True)
    except TypeError:
        raise TypeError(f"a writable bytes-like object is required, not {type(out).__name__}") from None


def check_apart(src: Any, dst: Any) -> None:
    """Refuse buffers that overlap: decoding would read what it has overwritten.

    Raises
    ------
    ParameterError
        They share memory.
    """
    first = int(ffi.cast("uintptr_t", src))
    second = int(ffi.cast("uintptr_t", dst))
    if len(src) and len(dst) and first < second + len(dst) and second < first + len(src):
        raise ParameterError("out shares memory with data")


def to_bytes(memory: Any, size: int) -> bytes:
    """Return a copy of the first ``size`` bytes of native memory."""
    return bytes(ffi.buffer(memory, size))


def _fresh_bytes(size: int) -> bytes:
    """Return a bytes object of ``size`` bytes that nothing has cleared.

    This is PyBytes_FromStringAndSize with NULL. On Linux the memory is asked for in huge
    pages: faulting 36 MB in by pages of 4 KiB took 10 ms of the 17 ms that decompressing
    them at level "turbo" took, and keeps a second thread from helping.
    """
    import ctypes  # noqa: PLC0415 - 10 ms of import that only large contents need

    # a function object of our own: the one in ctypes.pythonapi belongs to the whole process
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t)
    fresh = cast("bytes", prototype(("PyBytes_FromStringAndSize", ctypes.pythonapi))(None, size))
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with ffi.from_buffer("char[]", fresh) as memory:
            start = int(ffi.cast("uintptr_t", memory))
        first, end = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE, (start + size) // mmap.PAGESIZE * mmap.PAGESIZE
        madvise = ctypes.CDLL(None).madvise
        madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        madvise(first, end - first, mmap.MADV_HUGEPAGE)  # advice: a refusal changes nothing
    return fresh


class BytesOut:
    """A bytes object that native code fills in place.

    ``memory`` is to be written before `take` is called and not after. CPython hands
    out the bytes object itself: it is fresh, larger than any that the interpreter
    shares, and no one else has seen it, so this is what
    PyBytes_FromStringAndSize(NULL, n) allows in C. Other interpreters, and sizes up
    to ``clear_max``, get a copy.

    Parameters
    ----------
    size
        Bytes of room.
    clear_max
        Largest room for which a copy of what was written costs less than clearing the
        room, as a new bytes object is.
    """

    __slots__ = ("_object", "_size", "memory")

    def __init__(self, size: int, clear_max: int = _DIRECT_MIN) -> None:
        self._size = size
        self._object: bytes | None = None
        if _CPYTHON and size > clear_max:
            self._object = bytes(size) if size < _FRESH_MIN else _fresh_bytes(size)
            self.memory = ffi.from_buffer("char[]", self._object)
        else:
            self.memory = scratch(size)

    def take(self, size: int | None = None) -> bytes:
        """Return the bytes, or the first ``size`` of them."""
        if self._object is None or size not in {None, self._size}:
            return to_bytes(self.memory, self._size if size is None else size)
        ffi.release(self.memory)
        return self._object

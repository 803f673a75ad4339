# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Compress and decompress what is in memory, in one call."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from glyd_codec._buffers import BytesOut, borrow, borrow_writable, check_apart, scratch, to_bytes
from glyd_codec._errors import BufferTooSmallError, limit_error, status_error, truncated
from glyd_codec._native import ffi, lib
from glyd_codec._params import check_threads, native_limits, native_params
from glyd_codec._references import References

if TYPE_CHECKING:
    from typing import Any

    from _typeshed import ReadableBuffer, WriteableBuffer

    from glyd_codec._base import BaseLike
    from glyd_codec._dictionary import Dictionary
    from glyd_codec._limits import Limits
    from glyd_codec._params import Containers, Level, Records, Weights


_OBJECT_START = int(lib.GLYD_OBJECT_MAGIC).to_bytes(2, "little")


def compress(
    data: ReadableBuffer,
    level: Level = "max",
    *,
    base: BaseLike | None = None,
    dictionary: Dictionary | None = None,
    threads: int = 0,
    checksum: bool = True,
    long: bool = False,
    records: Records = False,
    segment_size: int | None = None,
    weights: Weights = "auto",
    containers: Containers = "auto",
) -> bytes:
    """Compress data into one frame.

    Parameters
    ----------
    data
        Any C-contiguous buffer; read in place. It must not change during the call.
    level
        "turbo", "fast", "default", "max", "high", "ultra" or "cold": trades bytes against time.
    base
        Older content to store data against: a buffer, path, binary file object or `Base`.
        What both have in common costs next to nothing, wherever it has moved; the frame
        can then be read with this base only.
    dictionary
        What content of this kind has in common, learned by `train_dictionary`: segments may copy
        from it, which the first kilobytes of each gain by. The frame can then be read with this
        dictionary only. Not with a base. Content of some kilobytes is smaller, and quicker to
        store and read, as an object (`Dictionary.compress`).
    threads
        Threads to work with; 0: one a CPU. The result does not depend on it.
    checksum
        Store a checksum of each segment (4 bytes of it for up to 64 KiB of content, else 8).
    long
        Look for repeats as far back as 128 MiB (levels "max" and up). Reading the frame
        then takes 256 MiB a thread.
    records
        Store tables and logs as columns: CSV and its kin, JSON, SQL dumps, where that takes
        fewer bytes. True: look at every segment; "auto": give it up when the first one is
        nothing of the kind; False: don't. Bytes that fit no table are kept as they are.
        A thread that writes takes about 15 times the segment size as memory, one that reads 6
        times; older versions of this library do not read such frames. A stream cannot be looked
        at beforehand: there "auto" is as True.
    segment_size
        Bytes of content that are coded, and later read, on their own: 2^10 … 2^30;
        None: at most 4 MiB (level "max": 8 MiB; "high", with a base or records: 16 MiB; "ultra": 32 MiB; "cold": 64 MiB; with ``long``: 128 MiB), in pieces of equal size.
    weights
        Split numbers into their fields: "auto" in content that starts like a model
        (safetensors, GGUF, a file of PyTorch or NumPy), True wherever it gains, False never.
    containers
        Open compressed content (gzip, zip and its kin such as wheels and docx, PNG, streams of
        zlib): store what is inside and how it was compressed, where the original can be made
        again bit for bit and that takes fewer bytes. True: wherever there is some; "auto": at
        levels "ultra" and "cold", if the first segment has some; False: never. Not with a base.
        Reading such frames takes more memory, and as much time as compressing with zlib;
        older versions of this library do not read them.

    Returns
    -------
    bytes
        The frame. The content alone decides it: not the machine, nor the number of threads.

    Raises
    ------
    ParameterError
        For an argument outside its range.
    TypeError, BufferError
        For data that is no C-contiguous buffer.
    MemoryError
        When memory for input, output and the tables of each thread runs out.

    Notes
    -----
    The GIL is released. Needs memory for the largest possible output, about the size of data.
    """
    number = check_threads(threads)
    references = References(base, dictionary, for_writing=True)
    params = native_params(
        level,
        number,
        checksum=checksum,
        long=long,
        records=records,
        segment_size=segment_size,
        references=references,
        weights=weights,
        containers=containers,
    )
    src = borrow(data)
    try:
        cap = int(lib.glyd_compress_bound(len(src), params))
        out = scratch(cap)
        out_len = ffi.new("size_t *")
        status = lib.glyd_compress(out, cap, src, len(src), params, out_len)
        if status != lib.GLYD_OK:
            raise status_error(status)
        return to_bytes(out, out_len[0])
    finally:
        ffi.release(src)


def _content_size(src: Any, limits: Any) -> int:
    """Return the bytes of content of all frames, found without decoding."""
    if len(src) == 0:
        raise truncated(0, "the first frame: 0 bytes are no frame")
    size = ffi.new("uint64_t *")
    error = ffi.new("glyd_error *")
    status = lib.glyd_content_size(src, len(src), limits, size, error)
    if status != lib.GLYD_OK:
        raise status_error(status, error)
    return int(size[0])


def _decode(out: Any, cap: int, src: Any, references: References, threads: int, limits: Any) -> int:
    """Decode all frames into memory; return the bytes written."""
    out_len = ffi.new("size_t *")
    error = ffi.new("glyd_error *")
    status = lib.glyd_decompress_references(
        out, cap, src, len(src), references.native, threads, limits, ffi.NULL, out_len, error
    )
    if status != lib.GLYD_OK:
        raise status_error(status, error)
    return int(out_len[0])


def decompress(
    data: ReadableBuffer,
    *,
    base: BaseLike | None = None,
    dictionary: Dictionary | None = None,
    max_size: int | None = None,
    threads: int = 0,
    limits: Limits | None = None,
) -> bytes:
    """Return the content of all frames in data, one after the other.

    Parameters
    ----------
    data
        One or more whole frames and nothing else, in any C-contiguous buffer; read in
        place. It must not change during the call.
    base
        What the frames were stored against, as for `compress`. It is checked before
        anything is decoded; frames that name no base do not use it.
    dictionary
        What they were stored with; checked in the same way. With it, data may be objects
        (`Dictionary.compress`) instead of frames.
    max_size
        Bytes that the content may have; None: no limit.
    threads
        Threads to work with; 0: one a CPU.
    limits
        Further limits; ``max_size`` goes before its ``max_output``.

    Returns
    -------
    bytes
        The content. Sizes are known and checked before anything of their size is allocated.

    Raises
    ------
    TruncatedError
        When data ends within a frame, or is empty.
    CorruptDataError, ChecksumError, UnsupportedVersionError, FormatError
        When data is not, or not only, what this version can read; the message says where.
    MissingBaseError, WrongBaseError
        When a frame needs a base or a dictionary and none, or another one, was given.
    LimitError
        When the content exceeds a limit.
    MemoryError
        When there is not enough memory.

    Notes
    -----
    The GIL is released. Any number of threads may call this at once.
    """
    if dictionary is not None and is_object(data):
        return dictionary.decompress(data, max_size=max_size, limits=limits)
    return decompress_against(data, References(base, dictionary), max_size=max_size, threads=threads, limits=limits)


def is_object(data: ReadableBuffer) -> bool:
    """Say whether data starts like an object of a dictionary, which frames do not."""
    src = borrow(data)
    try:
        return len(src) >= len(_OBJECT_START) and ffi.buffer(src, len(_OBJECT_START))[:] == _OBJECT_START
    finally:
        ffi.release(src)


def decompress_against(
    data: ReadableBuffer,
    references: References,
    *,
    max_size: int | None = None,
    threads: int = 0,
    limits: Limits | None = None,
) -> bytes:
    """Do what `decompress` does, with handles."""
    number = check_threads(threads)
    native = native_limits(limits)
    src = borrow(data)
    try:
        if max_size is not None and native:
            native.max_output = 0  # the narrower or wider limit of this call decides
        size = _content_size(src, native)
        if max_size is not None and size > operator.index(max_size):
            raise limit_error("max_size", max_size, size)
        out = BytesOut(size)
        _decode(out.memory, size, src, references, number, native)
        return out.take()
    finally:
        ffi.release(src)


def decompress_into(
    data: ReadableBuffer,
    out: WriteableBuffer,
    *,
    base: BaseLike | None = None,
    dictionary: Dictionary | None = None,
    threads: int = 0,
    limits: Limits | None = None,
) -> int:
    """Decompress all frames in data into a buffer of the caller.

    Parameters
    ----------
    data
        As for `decompress`.
    out
        Writable C-contiguous buffer with room for the content; it may be larger, and
        bytes past the content are not written. It must not overlap data or the base.
    base, dictionary
        As for `decompress`; data must be frames.
    threads
        Threads to work with; 0: one a CPU.
    limits
        Limits, as for `decompress`.

    Returns
    -------
    int
        Bytes written.

    Raises
    ------
    BufferTooSmallError
        When the content does not fit; ``expected`` of the exception is the room it needs.
    ParameterError
        When data and out share memory.
    FormatError, MissingBaseError, WrongBaseError, LimitError, MemoryError
        As for `decompress`. What out then holds is not specified.
    """
    number = check_threads(threads)
    native = native_limits(limits)
    src = borrow(data)
    try:
        dst = borrow_writable(out)
        try:
            check_apart(src, dst)
            size = _content_size(src, native)
            if size > len(dst):
                raise BufferTooSmallError(
                    f"content of {size} bytes does not fit a buffer of {len(dst)}", expected=size, found=len(dst)
                )
            return _decode(dst, len(dst), src, References(base, dictionary), number, native)
        finally:
            ffi.release(dst)
    finally:
        ffi.release(src)

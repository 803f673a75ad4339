# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Compress and decompress piece by piece, in the shape of Python's compression.zstd."""

from __future__ import annotations

import operator
import threading
from copy import copy
from typing import TYPE_CHECKING, ClassVar

from glyd_codec._buffers import BytesOut, borrow, to_bytes
from glyd_codec._errors import GlydError, ParameterError, status_error
from glyd_codec._native import ffi, lib
from glyd_codec._params import native_limits, native_params, stream_threads
from glyd_codec._references import References

if TYPE_CHECKING:
    from typing import Any

    from _typeshed import ReadableBuffer

    from glyd_codec._base import BaseLike
    from glyd_codec._dictionary import Dictionary
    from glyd_codec._limits import Limits
    from glyd_codec._params import Containers, Level, Records, Weights

_OUT_FIRST = 1 << 16  # most calls give little: start small,
_OUT_LAST = 1 << 22  # and grow to where the cost of a round no longer counts
_CONTENT_END = 1 << 63  # docs/format.md: the content size of a frame is below this


INTERRUPTED = GlydError("an earlier call was interrupted: what it had decoded is lost")


class _Output:
    """Native output that is collected piece by piece."""

    __slots__ = ("_left", "_parts", "_piece", "_room", "native")

    def __init__(self, max_length: int) -> None:
        self._left = max_length  # < 0: as much as there is
        self._parts: list[bytes] = []
        self._room = 0
        self.native = ffi.new("glyd_out *")
        self.next()

    def next(self) -> None:
        """Offer new room; the old one must have been collected."""
        room = min(max(self._room * 4, _OUT_FIRST), _OUT_LAST)
        if 0 <= self._left < room:
            room = self._left
        self._piece = BytesOut(room, clear_max=_OUT_FIRST)
        self._room = room
        self.native.data = self._piece.memory
        self.native.size = room
        self.native.pos = 0

    def collect(self) -> bool:
        """Keep what native code has written; say whether it has used all the room."""
        size = self.native.pos
        is_full = bool(size == self._room)
        if size:
            self._parts.append(self._piece.take(size))
            self._left -= size if self._left > 0 else 0
        self.native.size = self.native.pos = 0
        return is_full

    @property
    def is_done(self) -> bool:
        """Say whether max_length has been reached."""
        return self._left == 0

    def take(self) -> bytes:
        """Return everything."""
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)


class Compressor:
    """Compress a stream piece by piece.

    Parameters
    ----------
    level
        "turbo", "fast", "default", "max", "high", "ultra" or "cold".
    threads
        Segments to compress at once; 0: one a CPU, at most 8. Each takes twice the size
        of a segment and its tables as memory.
    base, dictionary
        What to store against or with, as for `compress`; kept in use as long as the object is.
    checksum, long, records, segment_size, weights, containers
        As for `compress`.

    Notes
    -----
    After a frame has been ended the next call starts another one. Threads may share an
    object: its methods run one at a time. No thread of its own outlives a call.
    """

    CONTINUE: ClassVar[int] = 0
    """Take data; output comes when a segment is full."""
    FLUSH_BLOCK: ClassVar[int] = 1
    """End the segment: everything so far can then be read from the output."""
    FLUSH_FRAME: ClassVar[int] = 2
    """End the frame."""

    def __init__(
        self,
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
    ) -> None:
        number = stream_threads(threads)
        self._references = References(base, dictionary, for_writing=True)
        params = native_params(
            level,
            number,
            checksum=checksum,
            long=long,
            records=records,
            segment_size=segment_size,
            references=self._references,
            weights=weights,
            containers=containers,
        )
        self._lock = threading.Lock()
        self._last_mode = self.FLUSH_FRAME
        self._is_broken = False
        self._pledged: int | None = None
        holder = ffi.new("glyd_cctx **")
        status = lib.glyd_cctx_create(holder, params)
        if status != lib.GLYD_OK:
            raise status_error(status)
        self._ctx = ffi.gc(holder[0], lib.glyd_cctx_free, int(lib.glyd_cctx_memory(params)))

    @property
    def last_mode(self) -> int:
        """The mode of the last call; FLUSH_FRAME says that the output ends with a whole frame."""
        return self._last_mode

    def compress(self, data: ReadableBuffer, mode: int = CONTINUE) -> bytes:
        """Take data and return what output there is.

        Parameters
        ----------
        data
            Any C-contiguous buffer; not kept.
        mode
            CONTINUE, FLUSH_BLOCK or FLUSH_FRAME.

        Returns
        -------
        bytes
            Next part of the stream, often empty.

        Raises
        ------
        ParameterError
            For another mode, or content that is not of the size announced.
        GlydError
            When an earlier call failed and left a stream that cannot go on.
        """
        if mode not in {self.CONTINUE, self.FLUSH_BLOCK, self.FLUSH_FRAME}:
            raise ParameterError(f"mode must be CONTINUE, FLUSH_BLOCK or FLUSH_FRAME, not {mode!r}")
        src = borrow(data)
        try:
            with self._lock:
                return self._run(src, len(src), mode)
        finally:
            ffi.release(src)

    def flush(self, mode: int = FLUSH_FRAME) -> bytes:
        """End the frame (or the segment) and return the rest of its bytes.

        Parameters
        ----------
        mode
            FLUSH_FRAME or FLUSH_BLOCK.

        Returns
        -------
        bytes
            Next part of the stream. Without data before, FLUSH_FRAME gives an empty frame.

        Raises
        ------
        ParameterError
            For another mode, or content that is not of the size announced.
        """
        if mode not in {self.FLUSH_BLOCK, self.FLUSH_FRAME}:
            raise ParameterError(f"mode must be FLUSH_BLOCK or FLUSH_FRAME, not {mode!r}")
        with self._lock:
            return self._run(ffi.NULL, 0, mode)

    def set_pledged_input_size(self, size: int | None) -> None:
        """Announce the size of the content of the next frame, so that its header says it.

        Parameters
        ----------
        size
            Bytes, exactly; None: unknown, which is the default of every frame.

        Raises
        ------
        ParameterError
            Within a frame, or for a negative size.
        """
        if size is not None and not 0 <= operator.index(size) < _CONTENT_END:
            raise ParameterError(f"size must be None or 0 … 2^63-1, not {size}", found=size)
        with self._lock:
            if self._last_mode != self.FLUSH_FRAME:
                raise ParameterError("a frame has been started: its size can no longer be set")
            self._pledge(size)

    def _pledge(self, size: int | None) -> None:
        status = lib.glyd_cctx_reset(self._ctx, lib.GLYD_SIZE_UNKNOWN if size is None else size)
        if status != lib.GLYD_OK:
            raise status_error(status)
        self._pledged = size

    def _run(self, data: Any, size: int, mode: int) -> bytes:
        if self._is_broken:
            raise GlydError("an earlier call failed: this compressor cannot go on")
        self._is_broken = True  # until this call is through
        source = ffi.new("glyd_in *", {"data": data, "size": size, "pos": 0})
        pending = ffi.new("size_t *")
        out = _Output(-1)
        while True:
            status = lib.glyd_compress_stream(self._ctx, out.native, source, mode, pending)
            if status == lib.GLYD_E_PARAMETER and self._pledged is not None:
                raise ParameterError(f"content is not of the size announced ({self._pledged} bytes)")
            if status != lib.GLYD_OK:
                raise status_error(status)
            is_full = out.collect()
            if source.pos == source.size and not is_full and (mode == self.CONTINUE or pending[0] == 0):
                break
            out.next()
        if size or mode != self.CONTINUE:
            self._last_mode = mode
        if mode == self.FLUSH_FRAME and self._pledged is not None:
            self._pledge(None)
        self._is_broken = False
        return out.take()


class Decompressor:
    """Decompress one frame piece by piece.

    Parameters
    ----------
    threads
        Segments to decode at once when the input at hand holds them; 0: one a CPU, at most 8.
    base, dictionary
        What the frame was stored against or with, as for `decompress`.
    limits
        Limits for hostile input.

    Notes
    -----
    One object reads one frame (or one skippable frame, which has no content). For the
    next frame take a new object and give it `unused_data` first, or use `open`, which
    reads all frames. Threads may share an object: its methods run one at a time.
    """

    def __init__(
        self,
        *,
        base: BaseLike | None = None,
        dictionary: Dictionary | None = None,
        threads: int = 0,
        limits: Limits | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._left = memoryview(b"")  # taken from the caller, not yet by the native core
        self._unused = b""
        self._eof = False
        self._needs_input = True
        self._has_started = False
        self._failure: Exception | None = None
        self._references = References(base, dictionary)
        self._ctx = create_dctx(stream_threads(threads), limits, self._references)

    @property
    def eof(self) -> bool:
        """True when the frame has been read to its end."""
        return self._eof

    @property
    def needs_input(self) -> bool:
        """False when `decompress` can give more without new data, or the frame has ended."""
        return self._needs_input

    @property
    def unused_data(self) -> bytes:
        """The data that followed the frame; empty before its end."""
        return self._unused

    def decompress(self, data: ReadableBuffer, max_length: int = -1) -> bytes:
        """Take data and return content.

        Parameters
        ----------
        data
            Next part of the frame, any C-contiguous buffer. What ``max_length`` keeps
            from being decoded is copied.
        max_length
            Bytes to return at most; negative: no limit. The rest comes with the next calls.

        Returns
        -------
        bytes
            Content, possibly empty.

        Raises
        ------
        EOFError
            When the frame has ended before.
        CorruptDataError, ChecksumError, UnsupportedVersionError, FormatError
            When data is no frame; every further call raises the same.
        MissingBaseError, WrongBaseError
            When the frame needs a base or a dictionary and none, or another one, was given.
        LimitError
            When the frame exceeds a limit.
        """
        wanted = operator.index(max_length)
        with self._lock:
            if self._eof:
                raise EOFError("the frame has ended; what followed it is in unused_data")
            if self._failure is not None:
                raise copy(self._failure)
            if self._left:
                if memoryview(data).nbytes:
                    self._left = memoryview(b"".join((self._left, data)))
                return self._run(self._left, wanted)
            return self._run(data, wanted)

    def _run(self, data: ReadableBuffer, max_length: int) -> bytes:
        src = borrow(data)
        self._failure = INTERRUPTED  # until this call is through
        try:
            source = ffi.new("glyd_in *", {"data": src, "size": len(src), "pos": 0})
            at_end = ffi.new("int *")
            out = _Output(max_length)
            while True:
                status = lib.glyd_decompress_stream(self._ctx, out.native, source, at_end)
                self._has_started |= source.pos > 0
                if status != lib.GLYD_OK:
                    self._failure = dctx_error(self._ctx, status)
                    raise copy(self._failure)
                is_full = out.collect()
                self._eof = bool(at_end[0]) and self._has_started
                if self._eof or not is_full or out.is_done:
                    break
                out.next()
            self._keep(data, src, source.pos)
        finally:
            ffi.release(src)
        self._needs_input = not self._eof and not is_full and not self._left
        self._failure = None
        return out.take()

    def _keep(self, data: ReadableBuffer, src: Any, pos: int) -> None:
        """Hold on to the input from ``pos`` on; nothing is copied twice however often we are called."""
        size = len(src) - pos
        if self._eof:
            self._unused = to_bytes(src + pos, size)
            self._left = memoryview(b"")
        elif data is self._left:
            self._left = self._left[pos:]
        elif isinstance(data, bytes):
            self._left = memoryview(data)[pos:]
        else:
            self._left = memoryview(to_bytes(src + pos, size))


def create_dctx(threads: int, limits: Limits | None, references: References) -> Any:
    """Return a new decompression context that frees itself; the caller holds the references."""
    holder = ffi.new("glyd_dctx **")
    status = lib.glyd_dctx_create(holder, threads, native_limits(limits), ffi.NULL)
    if status != lib.GLYD_OK:
        raise status_error(status)
    lib.glyd_dctx_set_base(holder[0], references.base)
    lib.glyd_dctx_set_dictionary(holder[0], references.dictionary)
    return ffi.gc(holder[0], lib.glyd_dctx_free)


def dctx_error(ctx: Any, status: int, *, shift: int = 0) -> Exception:
    """Return the exception for a failed call of a decompression context."""
    error = ffi.new("glyd_error *")
    lib.glyd_dctx_error(ctx, error)
    return status_error(status, error, shift=shift)

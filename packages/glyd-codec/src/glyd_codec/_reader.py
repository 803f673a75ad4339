# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""The reading side of `GlydFile`: content of a source as a raw stream with seek.

Reading starts as a stream, which needs nothing but ``read`` of the source. The
first seek to another place makes the index; from then on segments are fetched
as they are asked for, several at once when reads follow each other.
"""

from __future__ import annotations

import io
import threading
from copy import copy
from typing import TYPE_CHECKING

from glyd_codec._buffers import BytesOut, borrow, borrow_writable, scratch
from glyd_codec._errors import FormatError, truncated
from glyd_codec._index import Index, find_frames, trailing_error
from glyd_codec._native import ffi, lib
from glyd_codec._oneshot import decompress_against
from glyd_codec._params import stream_threads
from glyd_codec._segments import cut_run, decode_run
from glyd_codec._stream import INTERRUPTED, create_dctx, dctx_error

if TYPE_CHECKING:
    from typing import Any

    from _typeshed import WriteableBuffer

    from glyd_codec._limits import Limits
    from glyd_codec._references import References
    from glyd_codec._source import FileSource

_CHUNK_FIRST = 1 << 16
_CHUNK_PER_THREAD = 1 << 22  # enough input at once for each thread to have a segment
_RUN_NBYTES_MIN = 1 << 18  # small segments are fetched together as far as a read asks for them
_RUN_NBYTES_MAX = 1 << 26  # content decoded and kept, if it is more than one segment


class StreamDecoder:
    """Decode a source from its start to its end."""

    def __init__(self, source: FileSource, references: References, threads: int, limits: Limits | None) -> None:
        self._source = source
        self._references = references
        self._threads = threads
        self._limits = limits
        self._ctx: Any = None  # made by the first read that needs it
        self._chunk_max = _CHUNK_PER_THREAD * threads
        self.rewind()

    def rewind(self) -> None:
        """Forget everything; the source must be rewound by the caller."""
        if self._ctx is not None:
            lib.glyd_dctx_reset(self._ctx)
        self._data = b""  # kept for the native core
        self._input = ffi.new("glyd_in *")
        self._memory: Any = None  # keeps what _input points to
        self._chunk = _CHUNK_FIRST
        self._n_read = 0
        self._at_frame_end = False
        self._has_frame = False
        self._source_ended = False
        self._failure: BaseException | None = None

    def readinto(self, out: Any, size: int) -> int:
        """Decode into native memory; return the bytes written, 0 only at the end.

        Raises
        ------
        FormatError, LimitError
            When the source is no whole frames; again on every further call.
        """
        if self._failure is not None:
            raise copy(self._failure)
        if self._ctx is None:
            self._ctx = create_dctx(self._threads, self._limits, self._references)
        while True:
            if self._input.pos == self._input.size and not self._source_ended:
                self._fetch()  # may be interrupted: nothing has been lost then
            is_last = self._input.pos == self._input.size
            if is_last and self._at_frame_end:
                return 0
            self._failure = INTERRUPTED  # until the call is through
            try:
                n = self._decode(out, size)
                if n == 0 and is_last and not self._at_frame_end:
                    what = "a frame" if self._n_read else "the first frame: 0 bytes are no frame"
                    raise truncated(self._n_read, what)
            except Exception as error:
                self._failure = copy(error)
                raise
            self._failure = None
            if n:
                return n

    def _decode(self, out: Any, size: int) -> int:
        target = ffi.new("glyd_out *", {"data": out, "size": size, "pos": 0})
        at_end = ffi.new("int *")
        before = self._input.pos
        status = lib.glyd_decompress_stream(self._ctx, target, self._input, at_end)
        if status == lib.GLYD_E_MAGIC and self._has_frame:
            raise trailing_error(self._n_read - self._input.size + before)
        if status != lib.GLYD_OK:
            raise dctx_error(self._ctx, status)
        self._at_frame_end = bool(at_end[0]) and self._n_read > 0
        self._has_frame |= self._at_frame_end
        return int(target.pos)

    def read_rest(self) -> bytes | None:
        """Decode everything in one call, if nothing has been read yet; else return None.

        That is the way with the least memory (nothing is put together from parts) and
        the most parallel work. Only for sources that are known to end and begin like a
        frame, and without limits: the others would be read to their end before the first
        byte of them is checked.
        """
        if self._failure is not None or self._n_read or self._limits is not None:
            return None
        if not self._source.is_seekable or not self._starts_with_frame():
            return None
        try:
            data = self._source.read_rest()
            self._n_read = len(data)
            out = decompress_against(data, self._references, threads=self._threads, limits=self._limits)
        except FormatError as error:
            self._failure = copy(error)
            raise
        self._at_frame_end = self._source_ended = True
        return out

    def _starts_with_frame(self) -> bool:
        place = self._source.fp.tell()
        memory = borrow(self._source.read_next(_CHUNK_FIRST))
        self._source.fp.seek(place)
        info = ffi.new("glyd_frame_info *")
        return bool(lib.glyd_read_frame_header(memory, len(memory), info, ffi.NULL) == lib.GLYD_OK)

    def _fetch(self) -> None:
        self._data = self._source.read_next(self._chunk)
        self._chunk = min(self._chunk * 2, self._chunk_max)
        self._source_ended = not self._data
        self._n_read += len(self._data)
        self._memory = borrow(self._data)
        self._input.data = self._memory
        self._input.size = len(self._data)
        self._input.pos = 0


class RawReader(io.RawIOBase):
    """Content of all frames of a source as a raw stream.

    Parameters
    ----------
    source
        Where the frames are; closed with this object.
    references
        What they were stored against or with.
    threads
        Segments to decode at once; 0: one a CPU, at most 8.
    limits
        Limits for hostile input.
    """

    def __init__(self, source: FileSource, references: References, threads: int, limits: Limits | None) -> None:
        self._source = source
        self._references = references
        self._threads = stream_threads(threads)
        self._limits = limits
        self._lock = threading.RLock()
        self._pos = 0
        self._stream: StreamDecoder | None = StreamDecoder(source, references, self._threads, limits)
        self._index: Index | None = None
        self._runs: list[tuple[int, int, Any]] = []  # the last two: content start and end, memory; newest last
        self._next = -1  # segment behind the newest run: where reads follow each other
        self._n_following = 0  # runs that each began where the one before ended

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Say whether the source can seek."""
        return self._source.is_seekable

    def tell(self) -> int:
        """Return the place in the content."""
        return self._pos

    @property
    def index(self) -> Index:
        """Index of the source, made when first asked for."""
        with self._lock:
            self._check_open()
            if self._index is None:
                if not self._source.is_seekable:
                    raise io.UnsupportedOperation("the source cannot seek: its size is known at its end only")
                place = self._source.fp.tell()
                try:
                    max_segments = self._limits.max_segments if self._limits else None
                    self._index = Index(find_frames(self._source, max_segments), self._limits)
                finally:
                    self._source.fp.seek(place)  # a stream may go on
            return self._index

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place in the content; places behind its end read as nothing.

        Raises
        ------
        UnsupportedOperation
            When the source cannot seek.
        ValueError
            For negative places and unknown values of whence.
        """
        with self._lock:
            self._check_open()
            if whence == io.SEEK_CUR:
                offset += self._pos
            elif whence == io.SEEK_END:
                offset += self.index.content_nbytes
            elif whence != io.SEEK_SET:
                raise ValueError(f"whence must be 0, 1 or 2, not {whence}")
            if offset < 0:
                raise ValueError(f"negative seek position {offset}")
            if offset != self._pos:
                if not self._source.is_seekable:
                    raise io.UnsupportedOperation("the source cannot seek")
                if offset == 0 and self._index is None:
                    self._restart()
                else:
                    self.index  # noqa: B018  made now, so that errors of the source show here
                    self._stream = None
                self._pos = offset
            return offset

    def _restart(self) -> None:
        self._source.rewind()
        if self._stream is None:
            self._stream = StreamDecoder(self._source, self._references, self._threads, self._limits)
        else:
            self._stream.rewind()

    def readinto(self, out: WriteableBuffer) -> int:
        """Fill a buffer with the next content; return the bytes written, 0 only at the end."""
        with self._lock:
            self._check_open()
            memory = borrow_writable(out)
            try:
                if len(memory) == 0:
                    return 0
                if self._stream is not None:
                    n = self._stream.readinto(memory, len(memory))
                else:
                    n = self._read_indexed(memory, len(memory))
                self._pos += n
                return n
            finally:
                ffi.release(memory)

    def readall(self) -> bytes:
        """Return all content from here to the end."""
        with self._lock:
            self._check_open()
            if self._stream is not None:
                out = self._stream.read_rest()
                if out is None:
                    return self._read_stream(self._stream)
                self._pos += len(out)
                return out
            size = max(0, self.index.content_nbytes - self._pos)
            target = BytesOut(size)
            done = 0
            while done < size:
                n = self._read_indexed(target.memory + done, size - done)
                done += n
                self._pos += n
            return target.take()

    def _read_stream(self, stream: StreamDecoder) -> bytes:
        parts: list[bytes] = []
        size = 1 << 18
        while True:
            memory = scratch(size)
            n = stream.readinto(memory, size)
            if n == 0:
                return b"".join(parts)
            parts.append(bytes(ffi.buffer(memory, n)))
            self._pos += n
            size = min(size * 2, 1 << 24)

    def _read_indexed(self, out: Any, size: int) -> int:
        index = self.index
        if self._pos >= index.content_nbytes:
            return 0
        for begin, end, memory in reversed(self._runs):
            if begin <= self._pos < end:
                n: int = min(size, end - self._pos)
                ffi.memmove(out, memory + (self._pos - begin), n)
                return n
        first = index.segment_at(self._pos)
        self._n_following = self._n_following + 1 if first == self._next else 0
        begin = index.starts[first]
        if begin == self._pos and index.starts[first + 1] - begin <= size:
            return self._decode_direct(index, first, out, size)
        # the first that follows may be the rest of one read over a border: only then look ahead
        n_ahead = max(1, min(self._n_following, self._threads))
        ahead = cut_run(index, first, index.content_nbytes, n_ahead, _RUN_NBYTES_MAX)
        wanted = cut_run(index, first, self._pos + size, index.n_segments, _RUN_NBYTES_MIN)
        last = max(ahead, wanted)
        self._decode_kept(index, first, last)
        return self._read_indexed(out, size)

    def _decode_direct(self, index: Index, first: int, out: Any, size: int) -> int:
        """Decode whole segments into the memory of the caller."""
        last = cut_run(index, first, self._pos + size, self._threads * 2, size)
        self._next = self._decode(index, first, last, out)
        return index.starts[self._next] - index.starts[first]

    def _decode_kept(self, index: Index, first: int, last: int) -> None:
        """Decode segments into memory that is kept for the reads to come."""
        begin, end = index.starts[first], index.starts[last]
        if self._runs:
            before = self._runs[-1]
            fits = before[1] - before[0] + end - begin <= _RUN_NBYTES_MAX
            self._runs = [before] if fits else []
        memory = scratch(end - begin)
        self._next = self._decode(index, first, last, memory)
        self._runs.append((begin, index.starts[self._next], memory))

    def _decode(self, index: Index, first: int, last: int, out: Any) -> int:
        """Decode segments up to ``last``; return the end of what was decoded.

        A fault behind the first segment must not hide that one: what is good is read.
        """
        try:
            self._decode_run(index, first, last, out, self._threads)
        except FormatError:
            if last == first + 1:
                raise
            last = first + 1
            self._decode_run(index, first, last, out, 1)
        return last

    def _decode_run(self, index: Index, first: int, last: int, out: Any, threads: int) -> None:
        decode_run(
            self._source, index, first, last, out, references=self._references, threads=threads, limits=self._limits
        )

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on a closed file")

    def close(self) -> None:
        """Close the source, if it was opened here, and let go of all memory."""
        with self._lock:
            if not self.closed:
                self._runs = []
                self._stream = None
                try:
                    self._source.close()
                finally:
                    super().close()

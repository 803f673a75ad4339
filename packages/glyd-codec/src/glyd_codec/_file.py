# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""`GlydFile`: frames as a binary file object."""

from __future__ import annotations

import io
import threading
from typing import TYPE_CHECKING

from glyd_codec._errors import GlydError, ParameterError
from glyd_codec._reader import RawReader
from glyd_codec._references import References
from glyd_codec._source import FileSource, is_path
from glyd_codec._stream import Compressor

if TYPE_CHECKING:
    from types import TracebackType
    from typing import IO

    from _typeshed import ReadableBuffer, WriteableBuffer

    from glyd_codec._base import BaseLike
    from glyd_codec._dictionary import Dictionary
    from glyd_codec._limits import Limits
    from glyd_codec._params import Containers, Level, Records, Weights
    from glyd_codec._source import Path

_READ_BUFFER_NBYTES = 1 << 17
_SMALL_NBYTES = 1 << 14  # writes below this are gathered: a call costs as much as some 2 KB of content
_BINARY_MODES = {"r": "rb", "rb": "rb", "w": "wb", "wb": "wb", "x": "xb", "xb": "xb", "a": "ab", "ab": "ab"}


class GlydFile(io.BufferedIOBase):
    """A binary file object over the content of glyd frames.

    Parameters
    ----------
    file
        Path, or binary file object with ``read`` or ``write``. An object is used from where
        it stands, may give or take fewer bytes than asked for, and stays open on `close`.
    mode
        "rb"; "wb", "xb" (the file must be new) or "ab" (adds a frame to a file).
    base, dictionary
        What the frames are stored against or with, as for `compress` and `decompress`; kept in use
        until the object goes. `close` leaves a base open.
    level, checksum, long, records, segment_size, weights, containers
        For writing, as for `compress`.
    threads
        Segments to compress or decode at once; 0: one a CPU, at most 8.
    limits
        Limits for hostile input, for reading.

    Raises
    ------
    ParameterError
        For an unknown mode or an argument outside its range.
    TypeError
        When file is neither.
    OSError
        As the built-in open does.

    Notes
    -----
    Reading gives the content of all frames as one. In a source that can seek, `seek`
    goes to any place: it uses the index, and a read then fetches and decodes the
    segments that it touches and no others. Any fault of the source is raised, never
    taken for its end: TruncatedError when it stops within a frame, or is empty.

    Writing ends the frame on `close`. When a ``with`` block is left by an exception
    the frame is not ended, so that no reader takes what was written for whole.

    Threads may share an object: its methods run one at a time. No thread of its own
    outlives a call. A child process after a fork shares the place in the file, as
    with every file object.
    """

    def __init__(
        self,
        file: Path | IO[bytes],
        mode: str = "rb",
        *,
        base: BaseLike | None = None,
        dictionary: Dictionary | None = None,
        level: Level = "max",
        threads: int = 0,
        checksum: bool = True,
        long: bool = False,
        records: Records = False,
        segment_size: int | None = None,
        weights: Weights = "auto",
        containers: Containers = "auto",
        limits: Limits | None = None,
    ) -> None:
        if mode not in _BINARY_MODES:
            raise ParameterError(f"mode must be one of {', '.join(sorted(_BINARY_MODES))}; not {mode!r}")
        self._mode = _BINARY_MODES[mode]
        self._lock = threading.RLock()  # of writing and closing; BufferedReader has its own
        self._reader: io.BufferedReader | None = None
        self._compressor: Compressor | None = None
        self._n_written = 0  # bytes of content
        self._small = bytearray()  # of small writes, taken but not compressed yet
        self._n_put = 0  # bytes of frames
        self._has_failed = False  # bytes of the frame are lost: it must not be ended
        is_reading = self._mode == "rb"
        compressor = None
        if not is_reading:  # before the file is made: wrong arguments must not leave one
            compressor = Compressor(
                level,
                base=base,
                dictionary=dictionary,
                threads=threads,
                checksum=checksum,
                long=long,
                records=records,
                segment_size=segment_size,
                weights=weights,
                containers=containers,
            )
        self._owns = is_path(file)
        if self._owns:
            self._fp: IO[bytes] = open(file, self._mode, buffering=0 if is_reading else -1)  # type: ignore[arg-type]  # noqa: SIM115, PTH123
        elif hasattr(file, "read" if is_reading else "write"):
            self._fp = file  # type: ignore[assignment]
        else:
            needed = "read" if is_reading else "write"
            raise TypeError(f"file must be a path or a binary file object with {needed}(), not {type(file).__name__}")
        if is_reading:
            try:
                references = References(base, dictionary)
                self._raw = RawReader(FileSource(self._fp, owns=self._owns), references, threads, limits)
                self._reader = io.BufferedReader(self._raw, _READ_BUFFER_NBYTES)
            except BaseException:
                if self._owns:
                    self._fp.close()
                raise
        self._compressor = compressor

    @property
    def mode(self) -> str:
        """The mode: "rb", "wb", "xb" or "ab"."""
        return self._mode

    @property
    def name(self) -> str:
        """Name of the underlying file, empty where it has none."""
        name = getattr(self._fp, "name", "")
        return name if isinstance(name, str) else str(name)

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return self._reader is None and self._compressor is None

    @property
    def size(self) -> int:
        """Bytes of content of all frames, found without decoding.

        Raises
        ------
        UnsupportedOperation
            When writing, or when the source cannot seek.
        FormatError
            When the source is no whole frames.
        """
        self._reading()
        return self._raw.index.content_nbytes

    def fileno(self) -> int:
        """Return the descriptor of the underlying file."""
        self._check_open()
        return self._fp.fileno()

    def readable(self) -> bool:
        """Say whether the file was opened for reading."""
        self._check_open()
        return self._reader is not None

    def writable(self) -> bool:
        """Say whether the file was opened for writing."""
        self._check_open()
        return self._compressor is not None

    def seekable(self) -> bool:
        """Say whether `seek` works: when reading from a source that can seek."""
        self._check_open()
        return self._reader is not None and self._raw.seekable()

    def read(self, size: int | None = -1) -> bytes:
        """Return the next ``size`` bytes of content, fewer only at the end; negative or None: all."""
        return self._reading().read(size)

    def read1(self, size: int = -1) -> bytes:
        """Return some of the next content, up to ``size`` bytes; none only at the end."""
        return self._reading().read1(size)

    def readinto(self, out: WriteableBuffer) -> int:
        """Fill a buffer with content; return the bytes written, fewer than its size only at the end."""
        return self._reading().readinto(out)

    def readinto1(self, out: WriteableBuffer) -> int:
        """Fill a buffer with some of the next content; return the bytes written."""
        return self._reading().readinto1(out)

    def readline(self, size: int | None = -1) -> bytes:
        """Return the next line with its newline; of at most ``size`` bytes if that is not negative."""
        return self._reading().readline(-1 if size is None else size)

    def peek(self, size: int = 0) -> bytes:
        """Return some of the next content without going on; none only at the end."""
        return self._reading().peek(size)

    def __next__(self) -> bytes:
        """Return the next line."""
        line = self._reading().readline()
        if not line:
            raise StopIteration
        return line

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place in the content and return it.

        Parameters
        ----------
        offset
            Bytes from the start, the current place or the end.
        whence
            io.SEEK_SET, SEEK_CUR or SEEK_END.

        Raises
        ------
        UnsupportedOperation
            When writing, or when the source cannot seek.
        FormatError
            When the index cannot be made because the source is no whole frames.
        """
        return self._reading().seek(offset, whence)

    def tell(self) -> int:
        """Return the place in the content; when writing, the bytes of content written."""
        reader = self._reader
        if reader is not None:
            return reader.tell()
        self._check_open()
        return self._n_written

    def write(self, data: ReadableBuffer) -> int:
        """Compress data, any C-contiguous buffer; return its size in bytes."""
        with self._lock:
            compressor = self._writing()
            if type(data) is bytes and len(data) < _SMALL_NBYTES:
                size = len(data)
                self._small += data
                if len(self._small) >= _SMALL_NBYTES:
                    self._put_small(compressor)
            else:
                size = memoryview(data).nbytes
                self._put_small(compressor)
                self._put(compressor.compress(data))
            self._n_written += size
            return size

    def flush(self, mode: int = Compressor.FLUSH_BLOCK) -> None:
        """Write out everything so far, so that readers can decode it; nothing to do when reading.

        Parameters
        ----------
        mode
            Compressor.FLUSH_BLOCK ends the segment, FLUSH_FRAME the frame.
        """
        with self._lock:
            self._check_open()
            if self._compressor is not None:
                compressor = self._writing()
                self._put_small(compressor)
                if compressor.last_mode == Compressor.CONTINUE or mode != Compressor.FLUSH_BLOCK:
                    self._put(compressor.flush(mode))
                self._flush_fp()

    def close(self) -> None:
        """End the frame, write everything out and close the file if it was opened here."""
        with self._lock:
            if self._compressor is not None:
                compressor, self._compressor = self._compressor, None
                try:
                    if self._has_failed:
                        return  # whoever wrote has seen the error
                    self._put_small(compressor)
                    if compressor.last_mode != Compressor.FLUSH_FRAME or self._n_put == 0:
                        self._put(compressor.flush())
                    self._flush_fp()
                finally:
                    self._close_fp()
            elif self._reader is not None:
                # not the BufferedReader: its memory must stay while other threads are in it
                self._reader = None
                self._raw.close()

    def abort(self) -> None:
        """Close without ending the frame: readers of what was written see that it is not whole."""
        with self._lock:
            if self._compressor is not None:
                self._compressor = None
                self._close_fp()
            else:
                self.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close; after an exception without ending the frame."""
        if kind is None:
            self.close()
        else:
            self.abort()

    def _put_small(self, compressor: Compressor) -> None:
        """Compress what small writes have left."""
        if self._small:
            small, self._small = self._small, bytearray()
            self._put(compressor.compress(small))

    def _put(self, data: bytes) -> None:
        """Write all of data, also to objects that take less at a time."""
        if not data:
            return
        self._n_put += len(data)
        self._has_failed = True  # until everything is out
        rest = memoryview(data)
        while rest:
            n = self._fp.write(rest)
            if n is None:
                if isinstance(self._fp, io.RawIOBase):
                    raise BlockingIOError("the file takes no data now: glyd writes to blocking files only")
                break  # objects that return nothing have taken everything
            if not 0 < n <= len(rest):
                raise OSError(f"the file says that it took {n} bytes of {len(rest)}")
            rest = rest[n:]
        self._has_failed = False

    def _flush_fp(self) -> None:
        flush = getattr(self._fp, "flush", None)
        if flush is not None:
            flush()

    def _close_fp(self) -> None:
        if self._owns:
            self._fp.close()

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on a closed file")

    def _reading(self) -> io.BufferedReader:
        reader = self._reader
        if reader is None:
            self._check_open()
            raise io.UnsupportedOperation("the file was not opened for reading")
        return reader

    def _writing(self) -> Compressor:
        compressor = self._compressor
        if compressor is None:
            self._check_open()
            raise io.UnsupportedOperation("the file was not opened for writing")
        if self._has_failed:
            raise GlydError("an earlier write failed: the frame cannot go on")
        return compressor

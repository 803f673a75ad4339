# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""What is inside opened segments and opened content: the content of gzip, zip and PNG files."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from glyd_codec._buffers import BytesOut, borrow, scratch, to_bytes
from glyd_codec._errors import FormatError, ParameterError, limit_error, status_error
from glyd_codec._inspect import read_stored, walk_segments
from glyd_codec._native import ffi, lib
from glyd_codec._references import References
from glyd_codec._stream import create_dctx, dctx_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO, Any

    from _typeshed import ReadableBuffer

    from glyd_codec._inspect import SegmentInfo
    from glyd_codec._limits import Limits
    from glyd_codec._source import Path

_KINDS = {1: "gzip", 2: "zip", 3: "png", 4: "zlib"}
_OUTCOMES = {0: "opened", 1: "invalid", 2: "small", 3: "unlike"}
_SURVEY_FIRST = 1024


@dataclass(frozen=True, slots=True)
class OpenedInfo:
    """An opened segment.

    Attributes
    ----------
    segment
        Where it lies.
    n_streams
        Streams that were opened.
    is_cut
        One of them was opened in part: what is inside is not all that the streams hold.
    inside_nbytes
        Bytes that the streams decompress to.
    kept_nbytes
        Bytes of the segment's content that are no part of an opened stream: headers, names, and
        what stayed closed.
    description_nbytes
        Bytes that say how the streams were made.
    """

    segment: SegmentInfo
    n_streams: int
    is_cut: bool
    inside_nbytes: int
    kept_nbytes: int
    description_nbytes: int


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """What becomes of a compressed stream in some content.

    Attributes
    ----------
    kind
        "gzip", "zip", "png" or "zlib".
    outcome
        "opened"; "invalid": no stream, or one of an unusual form; "small": too short to gain; "unlike":
        made by an encoder so unlike zlib, or so slow, that opening it does not pay.
    offset
        Byte of the content at which it starts.
    stored_nbytes
        Bytes of it that are opened, or would be.
    content_nbytes
        Bytes that they decompress to.
    description_bits
        Bits that say how it was made.
    is_cut
        It is opened in part only.
    """

    kind: str
    outcome: str
    offset: int
    stored_nbytes: int
    content_nbytes: int
    description_bits: int
    is_cut: bool


def iter_opened(file: Path | IO[bytes] | ReadableBuffer) -> Iterator[OpenedInfo]:
    """Describe the opened segments of a file, in the order of their content.

    Parameters
    ----------
    file
        Path, binary file object that can seek, or buffer with the data.

    Yields
    ------
    OpenedInfo
        Of each segment of kind "opened".

    Raises
    ------
    FormatError
        When file is anything but whole frames, or the beginning of such a segment is damaged.
    OSError, TypeError
        When it cannot be read so.
    """
    for segment, source, _, frame in walk_segments(file):
        if segment.kind == "opened":
            yield _describe(segment, frame, read_stored(segment, source, segment.offset))


def iter_inside(file: Path | IO[bytes] | ReadableBuffer, *, limits: Limits | None = None) -> Iterator[bytes]:
    """Read what compressed streams in a file hold, decompressed.

    Parameters
    ----------
    file
        Path, binary file object that can seek, or buffer with frames, written with ``containers``.
    limits
        Limits for hostile input, for each opened segment.

    Yields
    ------
    bytes
        For each opened segment what its streams decompress to, one after the other. The streams are
        not made again: that is several times as fast as reading the original content and
        decompressing it. Other segments are passed over.

    Raises
    ------
    FormatError, LimitError
        As `decompress` does.
    OSError, TypeError
        When it cannot be read so.
    """
    context = create_dctx(1, limits, References())
    for segment, source, _, frame in walk_segments(file):
        if segment.kind != "opened":
            continue
        data = read_stored(segment, source, segment.offset)
        size = _describe(segment, frame, data).inside_nbytes
        out = scratch(size)
        out_len = ffi.new("size_t *")
        status = lib.glyd_decode_inside(context, frame, out, size, data, segment.stored_nbytes, out_len)
        if status != lib.GLYD_OK:
            raise dctx_error(context, status)
        yield to_bytes(out, out_len[0])


def survey_streams(data: ReadableBuffer) -> list[StreamInfo]:
    """Look for compressed streams in content and say what opening them gives.

    Parameters
    ----------
    data
        Any C-contiguous buffer: content of one segment.

    Returns
    -------
    list of StreamInfo
        In order of their places.

    Raises
    ------
    MemoryError
        When memory for what is inside runs out.

    Notes
    -----
    Takes as long as opening does. The GIL is released.
    """
    src = borrow(data)
    n = ffi.new("size_t *")
    cap = _SURVEY_FIRST
    try:
        while True:
            streams = ffi.new("glyd_stream_info[]", cap)
            status = lib.glyd_survey_streams(src, len(src), ffi.NULL, streams, cap, n)
            if status != lib.GLYD_OK:
                raise status_error(status)
            if n[0] <= cap:
                return [_stream(streams[i]) for i in range(n[0])]
            cap = n[0]
    finally:
        ffi.release(src)


def open_streams(data: ReadableBuffer, *, verify: bool = True) -> bytes | None:
    """Open the compressed streams in content, for what stores it next.

    Parameters
    ----------
    data
        Any C-contiguous buffer, of up to 256 MiB: gzip, zip, PNG and files with such streams in them.
    verify
        Make sure that `close_streams` gives data back; False: the caller does.

    Returns
    -------
    bytes or None
        What is inside the streams, as it is, and how they are made again (``native/src/deflate/spec.md``,
        "Opened content"): for compressing it, or finding what it has in common with another; `close_streams`
        gives data back. None: there is nothing that can be opened.

    Raises
    ------
    ParameterError
        For more bytes.
    TypeError, BufferError
        For data that is no C-contiguous buffer.
    MemoryError
        When memory for what is inside runs out.

    Notes
    -----
    Takes as long as finding out with which settings of zlib each stream was made, and as making all of them again
    to verify. The GIL is released.
    """
    src = borrow(data)
    try:
        if len(src) > lib.GLYD_OPENED_CONTENT_MAX:
            raise ParameterError(
                f"streams are opened in up to {lib.GLYD_OPENED_CONTENT_MAX} bytes of content, not in {len(src)}"
            )
        cap = int(lib.glyd_open_streams_bound(len(src)))
        out = scratch(cap)
        n = ffi.new("size_t *")
        status = lib.glyd_open_streams(src, len(src), ffi.NULL, out, cap, n)
        if status != lib.GLYD_OK:
            raise status_error(status)
        opened = to_bytes(out, n[0]) if n[0] else None
    finally:
        ffi.release(src)
    del out
    return opened if not verify or opened is None or _gives(opened, data) else None


def _gives(opened: bytes, data: ReadableBuffer) -> bool:
    try:
        return close_streams(opened) == bytes(memoryview(data))
    except FormatError:
        return False


def close_streams(opened: ReadableBuffer, *, max_size: int | None = None) -> bytes:
    """Return the content of which `open_streams` has opened the streams.

    Parameters
    ----------
    opened
        What it returned, in any C-contiguous buffer.
    max_size
        Bytes that the content may have; None: the 256 MiB that can be opened.

    Returns
    -------
    bytes
        The content. Only the form of what was opened is checked: keep a check of the content.

    Raises
    ------
    FormatError
        When it is anything else.
    LimitError
        When the content has more bytes.
    MemoryError
        When there is not enough memory.

    Notes
    -----
    The GIL is released.
    """
    src = borrow(opened)
    try:
        size = ffi.new("uint64_t *")
        status = lib.glyd_opened_content_size(src, len(src), size)
        if status != lib.GLYD_OK:
            raise status_error(status)
        if max_size is not None and size[0] > operator.index(max_size):
            raise limit_error("max_size", max_size, size[0])
        out = BytesOut(size[0])
        n = ffi.new("size_t *")
        status = lib.glyd_close_streams(src, len(src), ffi.NULL, out.memory, size[0], n)
        if status != lib.GLYD_OK:
            raise status_error(status)
        return out.take()
    finally:
        ffi.release(src)


def _stream(info: Any) -> StreamInfo:
    return StreamInfo(
        kind=_KINDS[info.kind],
        outcome=_OUTCOMES[info.outcome],
        offset=info.offset,
        stored_nbytes=info.stored_size,
        content_nbytes=info.content_size,
        description_bits=info.description_bits,
        is_cut=bool(info.is_cut),
    )


def _describe(segment: SegmentInfo, frame: Any, data: Any) -> OpenedInfo:
    info = ffi.new("glyd_opened_info *")
    status = lib.glyd_read_opened(frame, data, segment.stored_nbytes, info)
    if status != lib.GLYD_OK:
        raise status_error(status)
    return OpenedInfo(
        segment=segment,
        n_streams=info.n_streams,
        is_cut=bool(info.is_cut),
        inside_nbytes=info.inside_size,
        kept_nbytes=info.kept_size,
        description_nbytes=info.description_size,
    )

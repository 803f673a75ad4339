# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Look into frames without decoding them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from glyd_codec._buffers import scratch, to_bytes
from glyd_codec._errors import TruncatedError, truncated
from glyd_codec._index import Frame, Window, find_frames, read_header, read_segment, walk_frame
from glyd_codec._native import ffi, lib
from glyd_codec._params import LEVEL_NAMES
from glyd_codec._source import BufferSource, FileSource, open_source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO, Any

    from _typeshed import ReadableBuffer

    from glyd_codec._source import Path, Source

_CHECKS = {
    lib.GLYD_CHECK_NONE: "none",
    lib.GLYD_CHECK_XXH3_32: "xxh3-32",
    lib.GLYD_CHECK_XXH3_64: "xxh3-64",
}
_KINDS = {
    lib.GLYD_KIND_RAW: "raw",
    lib.GLYD_KIND_FILL: "fill",
    lib.GLYD_KIND_LZ: "lz",
    lib.GLYD_KIND_RECORD: "record",
    lib.GLYD_KIND_BASE: "base",
    lib.GLYD_KIND_WEIGHTS: "weights",
    lib.GLYD_KIND_COLD: "cold",
    lib.GLYD_KIND_FILTERED: "filtered",
    lib.GLYD_KIND_OPENED: "opened",
    lib.GLYD_KIND_DICTIONARY: "dictionary",
}


@dataclass(frozen=True, slots=True)
class FrameInfo:
    """What is known of a frame, or of a skippable frame, without decoding it.

    Attributes
    ----------
    offset
        Byte of the input at which the frame starts.
    is_skippable
        True for a skippable frame: data of some application, no content.
    version
        Version of the format; 0 for a skippable frame.
    level
        Name of the level it was written with; None: not known.
    content_size
        Bytes of content; None: not known from the bytes at hand.
    frame_nbytes
        Bytes from its start to its end; None: the frame is not whole.
    n_segments
        Number of segments; None: the frame is not whole.
    segment_nbytes
        Bytes of content that a segment holds at most.
    header_nbytes
        Bytes of its header.
    trailer_nbytes
        Bytes of its index; None: there is one, of unknown size.
    checksum
        Check of each segment: "none", "xxh3-32" or "xxh3-64".
    decoder_memory_nbytes
        Bytes of memory that decoding takes, a thread.
    skip_tag
        Tag of a skippable frame, else None.
    base_id
        XXH3-128 of the base that the frame was stored against, 16 bytes; None: it needs none.
    base_nbytes
        Size of that base; None without one.
    dictionary_id
        `Dictionary.id` of the dictionary that the frame was stored with; None: it needs none.
    """

    offset: int
    is_skippable: bool
    version: int
    level: str | None
    content_size: int | None
    frame_nbytes: int | None
    n_segments: int | None
    segment_nbytes: int
    header_nbytes: int
    trailer_nbytes: int | None
    checksum: str
    decoder_memory_nbytes: int
    skip_tag: int | None
    base_id: bytes | None = None
    base_nbytes: int | None = None
    dictionary_id: int | None = None


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """Where a segment lies.

    Attributes
    ----------
    index
        Number of the segment in its source, from 0.
    kind
        "raw", "fill", "lz", "record", "base", "weights", "cold", "filtered", "opened"
        or "dictionary".
    offset
        Byte of the input at which its header starts.
    stored_nbytes
        Bytes of header and payload.
    content_offset
        Place of its content in that of the whole source.
    content_nbytes
        Bytes of content.
    check
        Stored check of the content; None without checks.
    """

    index: int
    kind: str
    offset: int
    stored_nbytes: int
    content_offset: int
    content_nbytes: int
    check: int | None


def get_frame_info(data: ReadableBuffer) -> FrameInfo:
    """Describe the first frame of data.

    Parameters
    ----------
    data
        Start of a frame; the whole of its header at least (13 bytes, rarely more than
        27, up to 56 with a base). What only later bytes tell is None.

    Returns
    -------
    FrameInfo
        Of the first frame, which may be a skippable one.

    Raises
    ------
    TruncatedError
        When data ends within the header.
    CorruptDataError, UnsupportedVersionError, FormatError
        When data does not start with a frame that this version can read.
    """
    source = BufferSource(data)
    window = Window(source, source.end())
    if window.end == 0:
        raise truncated(0, "the first frame: 0 bytes are no frame")
    header, info = read_header(window, 0)
    try:
        return _describe(walk_frame(window, 0))
    except TruncatedError:
        return _describe_header(0, len(header), info)


def iter_frames(file: Path | IO[bytes] | ReadableBuffer) -> Iterator[FrameInfo]:
    """Describe all frames of a file one after the other, skippable ones among them.

    Parameters
    ----------
    file
        Path, binary file object that can seek, or buffer with the data.

    Yields
    ------
    FrameInfo
        With nothing unknown but perhaps the level.

    Raises
    ------
    FormatError
        When file is anything but whole frames.
    OSError, TypeError
        When it cannot be read so.

    Notes
    -----
    Fetches the indexes of frames that have one, and the headers of segments of others.
    """
    for frame in _find(file):
        yield _describe(frame)


def iter_segments(file: Path | IO[bytes] | ReadableBuffer) -> Iterator[SegmentInfo]:
    """Describe all segments of a file, in the order of their content.

    Parameters
    ----------
    file
        As for `iter_frames`.

    Yields
    ------
    SegmentInfo
        Read from the header of the segment itself.

    Raises
    ------
    FormatError, OSError, TypeError
        As `iter_frames` does.
    """
    for segment, _, _, _ in walk_segments(file):
        yield segment


def walk_segments(file: Path | IO[bytes] | ReadableBuffer) -> Iterator[tuple[SegmentInfo, Source, int, Any]]:
    """Yield each segment, where it is read from, the offset of its payload there, and its frame as a ``glyd_frame_info``."""
    source = open_source(file)
    try:
        window = Window(source, source.end())
        number = content_offset = 0
        for frame in find_frames(source):
            offset = frame.offset + len(frame.header)
            for stored in frame.stored:
                segment = read_segment(window, offset, frame.info)
                info = SegmentInfo(
                    index=number,
                    kind=_KINDS.get(segment.kind, str(segment.kind)),
                    offset=offset,
                    stored_nbytes=segment.header_size + segment.payload_size,
                    content_offset=content_offset,
                    content_nbytes=segment.content_size,
                    check=segment.check if frame.info.check != lib.GLYD_CHECK_NONE else None,
                )
                yield info, source, offset + segment.header_size, frame.info
                number += 1
                content_offset += segment.content_size
                offset += stored
    finally:
        if isinstance(source, FileSource):
            source.close()


def _find(file: Path | IO[bytes] | ReadableBuffer) -> list[Frame]:
    source = open_source(file)
    try:
        return find_frames(source)
    finally:
        if isinstance(source, FileSource):
            source.close()


def _describe_header(offset: int, header_nbytes: int, info: Any) -> FrameInfo:
    is_skippable = bool(info.is_skippable)
    is_sized = not is_skippable and info.content_size != lib.GLYD_SIZE_UNKNOWN
    return FrameInfo(
        offset=offset,
        is_skippable=is_skippable,
        version=0 if is_skippable else info.version,
        level=None if is_skippable else LEVEL_NAMES.get(info.level),
        content_size=0 if is_skippable else info.content_size if is_sized else None,
        frame_nbytes=header_nbytes + info.skip_size if is_skippable else None,
        n_segments=0 if is_skippable else None,
        segment_nbytes=0 if is_skippable else info.segment_size,
        header_nbytes=header_nbytes,
        trailer_nbytes=None if not is_skippable and info.has_trailer else 0,
        checksum="none" if is_skippable else _CHECKS.get(info.check, "none"),
        decoder_memory_nbytes=0 if is_skippable else info.decoder_memory,
        skip_tag=info.skip_tag if is_skippable else None,
        base_id=to_bytes(info.base_id, 16) if info.has_base else None,
        base_nbytes=info.base_size if info.has_base else None,
        dictionary_id=info.dictionary_id if info.has_dictionary else None,
    )


def _describe(frame: Frame) -> FrameInfo:
    known = _describe_header(frame.offset, len(frame.header), frame.info)
    if known.is_skippable:
        return known
    return FrameInfo(
        offset=known.offset,
        is_skippable=False,
        version=known.version,
        level=known.level,
        content_size=frame.content_nbytes,
        frame_nbytes=frame.nbytes,
        n_segments=len(frame.stored),
        segment_nbytes=known.segment_nbytes,
        header_nbytes=known.header_nbytes,
        trailer_nbytes=frame.trailer_nbytes,
        checksum=known.checksum,
        decoder_memory_nbytes=known.decoder_memory_nbytes,
        skip_tag=None,
        base_id=known.base_id,
        base_nbytes=known.base_nbytes,
        dictionary_id=known.dictionary_id,
    )


def read_stored(segment: SegmentInfo, source: Source, offset: int) -> Any:
    """Return the stored bytes of a segment from an offset in the source to its end, as C memory.

    Raises
    ------
    TruncatedError
        The source ends before.
    """
    size = segment.offset + segment.stored_nbytes - offset
    data = scratch(size)
    found = source.readinto_at(offset, memoryview(ffi.buffer(data, size)))
    if found != size:
        raise truncated(offset + found, "a segment")
    return data

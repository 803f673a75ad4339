# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Decode any run of segments of an indexed source, in parallel, fetching nothing else.

A segment needs nothing but the header of its frame, so a run of segments behind
a header with their own content size is a frame: the native one-call decoder
reads it with all its checks, straight into the memory of the caller.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from glyd_codec._buffers import borrow, scratch
from glyd_codec._errors import CorruptDataError, status_error, truncated
from glyd_codec._native import ffi, lib
from glyd_codec._params import native_limits

if TYPE_CHECKING:
    from typing import Any

    from glyd_codec._index import Index
    from glyd_codec._limits import Limits
    from glyd_codec._references import References
    from glyd_codec._source import Source

_VARINT_END = 0x80
_MEMORY_EXTRA = 1 << 20  # docs/format.md: memory code
_PAYLOAD_EXTRA = 4096
_RECORDS_EXTRA = 4 << 20
_COLD_EXTRA = 2 << 20
_DICTIONARY_EXTRA = 1 << 20  # the most that its content, and what follows that, may have
_OPENED_TIMES = 64  # native/src/deflate/spec.md
_OPENED_EXTRA = 1 << 20
_REBUILD_EXTRA = 8 << 20


def varint(value: int) -> bytes:
    """Return a number in 7-bit groups, the lowest first."""
    out = bytearray()
    while value >= _VARINT_END:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def cold_memory(content: int) -> int:
    """Return the bytes of the model of cold segments (native/src/cold/spec.md)."""
    log = min(max((content - 1).bit_length(), 12), 24)
    return _COLD_EXTRA + (8 << min(log - 2, 20)) + (12 << log)


def opened_area(content: int) -> int:
    """Return the most bytes that can be inside an opened segment (native/src/deflate/spec.md)."""
    return min(_OPENED_TIMES * content + _OPENED_EXTRA, int(lib.GLYD_OPENED_AREA_MAX))


def memory_code(
    segment_nbytes: int,
    content_nbytes: int,
    *,
    has_base: bool = False,
    has_dictionary: bool = False,
    has_records: bool = False,
    has_cold: bool = False,
    has_opened: bool = False,
) -> int:
    """Return the memory code of a frame of this content size (docs/format.md, Header)."""
    content = min(segment_nbytes, content_nbytes)
    needed = (3 if has_base else 2) * content + _PAYLOAD_EXTRA + _MEMORY_EXTRA
    most = content
    if has_opened:
        area = opened_area(content)
        needed += area + _REBUILD_EXTRA
        most = max(content, min(area, int(lib.GLYD_OPENED_INNER_MAX)))
    if has_records:
        needed += 3 * most + _RECORDS_EXTRA
    if has_dictionary:
        needed += 2 * _DICTIONARY_EXTRA
    if has_cold:
        after = min(content, _DICTIONARY_EXTRA) + _DICTIONARY_EXTRA if has_dictionary else 0
        needed += cold_memory(max(most, after))
    code = 0
    while (8 + code % 8) << (code // 8 + 10) < needed:
        code += 1
    return code


def run_header(
    header: bytes,
    segment_nbytes: int,
    content_nbytes: int,
    *,
    has_base: bool = False,
    has_dictionary: bool = False,
    has_records: bool = False,
    has_cold: bool = False,
    has_opened: bool = False,
) -> bytes:
    """Return the header of a frame that holds some of the segments of another one.

    Parameters
    ----------
    header
        Header of the frame that the segments come from; its checks were verified.
    segment_nbytes
        Most content bytes that a segment of it holds.
    content_nbytes
        Bytes of content of the segments.
    has_base
        It is stored against a base.
    has_dictionary
        It is stored with a dictionary.
    has_records
        Its segments may be records.
    has_cold
        Its segments may be cold.
    has_opened
        Its segments may be opened.
    """
    at = 9
    if header[5] & lib.GLYD_FLAG_CONTENT_SIZE:
        while header[at] >= _VARINT_END:
            at += 1
        at += 1
    extensions = header[at:-4]  # with their length; empty where there are none
    flags = header[5] & ~lib.GLYD_FLAG_TRAILER | lib.GLYD_FLAG_CONTENT_SIZE
    code = memory_code(
        segment_nbytes,
        content_nbytes,
        has_base=has_base,
        has_dictionary=has_dictionary,
        has_records=has_records,
        has_cold=has_cold,
        has_opened=has_opened,
    )
    out = header[:5] + bytes([flags]) + header[6:8] + bytes([code]) + varint(content_nbytes) + extensions
    return out + (lib.glyd_checksum(borrow(out), len(out)) & 0xFFFFFFFF).to_bytes(4, "little")


def fetch_run(source: Source, index: Index, first: int, last: int) -> tuple[Any, int, int]:
    """Read the segments first … last - 1, which must be of one frame, and make them a frame.

    Returns
    -------
    tuple
        The frame as native memory, its size, and what to add to an offset in it to get
        one in the source.

    Raises
    ------
    CorruptDataError
        When a segment header disagrees with the index.
    TruncatedError
        When the source has become shorter.
    """
    frame, _ = index.frame_of(first)
    offset = index.offsets[first]
    stored = index.offsets[last - 1] + index.stored[last - 1] - offset
    content = index.starts[last] - index.starts[first]
    header = run_header(
        frame.header,
        frame.info.segment_size,
        content,
        has_base=bool(frame.info.has_base),
        has_dictionary=bool(frame.info.has_dictionary),
        has_records=bool(frame.info.has_records),
        has_cold=bool(frame.info.has_cold),
        has_opened=bool(frame.info.has_opened),
    )
    size = len(header) + stored
    memory = scratch(size)
    view = memoryview(ffi.buffer(memory, size))
    view[: len(header)] = header
    found = source.readinto_at(offset, view[len(header) :])
    if found != stored:
        raise truncated(offset + found, "a segment")
    segment = ffi.new("glyd_segment_info *")
    error = ffi.new("glyd_error *")
    at = len(header)
    for i in range(first, last):
        status = lib.glyd_read_segment_header(memory + at, size - at, frame.info, segment, error)
        if status != lib.GLYD_OK:
            raise status_error(status, error, shift=index.offsets[i])
        sizes = (segment.content_size, segment.header_size + segment.payload_size)
        wanted = (index.starts[i + 1] - index.starts[i], index.stored[i])
        if sizes != wanted:
            raise CorruptDataError(
                f"index disagrees with the segment at byte {index.offsets[i]} (sizes {wanted} and {sizes})",
                offset=index.offsets[i],
                expected=wanted[0],
                found=sizes[0],
            )
        at += index.stored[i]
    return memory, size, offset - len(header)


def decode_run(
    source: Source,
    index: Index,
    first: int,
    last: int,
    out: Any,
    *,
    references: References,
    threads: int,
    limits: Limits | None,
) -> None:
    """Decode the segments first … last - 1 into native memory of exactly their content size.

    Raises
    ------
    FormatError, MissingBaseError, WrongBaseError, LimitError, MemoryError
        As `decompress` does; offsets are those of the source.
    """
    memory, size, shift = fetch_run(source, index, first, last)
    content = index.starts[last] - index.starts[first]
    out_len = ffi.new("size_t *")
    error = ffi.new("glyd_error *")
    within = type(limits)(max_memory=limits.max_memory) if limits else None  # the index has checked the others
    status = lib.glyd_decompress_references(
        out, content, memory, size, references.native, threads, native_limits(within), ffi.NULL, out_len, error
    )
    if status != lib.GLYD_OK:
        raise status_error(status, error, shift=shift)


def cut_run(index: Index, first: int, content_end: int, n_max: int, nbytes_max: int) -> int:
    """Return the end of a run from ``first`` on: one frame, up to a content offset, bounded in number and size.

    One segment is always in it.
    """
    _, frame_last = index.frame_of(first)
    stop = min(frame_last, first + n_max)
    starts = index.starts
    n_begun = bisect_left(starts, content_end, first, stop)
    n_fitting = bisect_right(starts, starts[first] + nbytes_max, first, stop + 1) - 1
    return max(first + 1, min(n_begun, n_fitting))

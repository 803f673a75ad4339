# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Find the segments of all frames of a source without decoding them.

A frame with a trailer is found from its end: the tail gives its size, the
trailer its segments. Where there is no trailer the segment headers are hopped
over. A frame may hold another one as its content, so what looks like a tail
only counts if the frames found backwards and forwards meet; else everything is
walked forwards.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

from glyd_codec._buffers import borrow
from glyd_codec._errors import CorruptDataError, FormatError, limit_error, status_error, truncated
from glyd_codec._native import ffi, lib

if TYPE_CHECKING:
    from typing import Any

    from glyd_codec._limits import Limits
    from glyd_codec._source import Source

_HOP_NBYTES = 4096  # read at once when hopping: many small segments, or one header of a large one
_TAIL_NBYTES = 1 << 16  # read at once from the end: the index of up to some 10,000 segments


class Frame:  # no dataclass: importing that costs 6 ms, more than most reads
    """A frame, or skippable frame, of a source, with its segments."""

    __slots__ = ("content_nbytes", "contents", "header", "info", "nbytes", "offset", "stored", "trailer_nbytes")

    def __init__(
        self,
        offset: int,
        header: bytes,
        info: Any,
        contents: array[int],
        stored: array[int],
        content_nbytes: int = 0,
        nbytes: int = 0,
        trailer_nbytes: int = 0,
    ) -> None:
        self.offset = offset
        self.header = header
        self.info = info  # glyd_frame_info *
        self.contents = contents  # bytes of content of each segment
        self.stored = stored  # bytes of each segment with its header
        self.content_nbytes = content_nbytes
        self.nbytes = nbytes  # from the magic number to the end of the trailer
        self.trailer_nbytes = trailer_nbytes


class Window:
    """Small reads from a source, served from the block read last."""

    def __init__(self, source: Source, end: int) -> None:
        self.end = end
        self._source = source
        self._offset = 0
        self._block = b""

    def get(self, offset: int, size: int) -> bytes:
        """Return the bytes from an offset on, fewer only at the end."""
        at = offset - self._offset
        if at < 0 or at + size > len(self._block):
            self._load(offset, max(size, _HOP_NBYTES))
            at = 0
        return self._block[at : at + size]

    def load_tail(self, end: int) -> None:
        """Read the block before ``end``, unless it is at hand."""
        if not self._offset <= end - lib.GLYD_TAIL_SIZE < end <= self._offset + len(self._block):
            first = max(0, end - _TAIL_NBYTES)
            self._load(first, end - first)

    def _load(self, offset: int, size: int) -> None:
        self._block = self._source.read_at(offset, min(size, max(0, self.end - offset)))
        self._offset = offset


def read_header(window: Window, offset: int) -> tuple[bytes, Any]:
    """Return the header of the frame at an offset: its bytes and a ``glyd_frame_info *``.

    Raises
    ------
    FormatError
        When there is none; CorruptDataError if a frame went before.
    """
    info = ffi.new("glyd_frame_info *")
    error = ffi.new("glyd_error *")
    size = 64
    while True:
        data = window.get(offset, size)
        status = lib.glyd_read_frame_header(borrow(data), len(data), info, error)
        if status == lib.GLYD_OK:
            return data[: info.header_size], info
        if status == lib.GLYD_E_TRUNCATED:
            if len(data) < size:
                raise truncated(offset + len(data), "the header of a frame")
            size = min(max(2 * size, int(error.expected)), 2 * lib.GLYD_EXTENSIONS_MAX)
        elif status == lib.GLYD_E_MAGIC and offset:
            raise trailing_error(offset)
        else:
            raise status_error(status, error, shift=offset)


def trailing_error(offset: int) -> CorruptDataError:
    """Return the exception for bytes behind the last frame."""
    return CorruptDataError(f"bytes that are no frame follow the last frame, at byte {offset}", offset=offset)


def read_segment(window: Window, offset: int, info: Any) -> Any:
    """Return the ``glyd_segment_info *`` of the segment, or end of segments, at an offset."""
    segment = ffi.new("glyd_segment_info *")
    error = ffi.new("glyd_error *")
    data = window.get(offset, lib.GLYD_SEGMENT_HEADER_MAX)
    status = lib.glyd_read_segment_header(borrow(data), len(data), info, segment, error)
    if status == lib.GLYD_E_TRUNCATED:
        raise truncated(offset + len(data), "the header of a segment")
    if status != lib.GLYD_OK:
        raise status_error(status, error, shift=offset)
    return segment


def walk_frame(window: Window, offset: int, max_segments: int | None = None) -> Frame:
    """Return the frame at an offset, found by hopping over its segments.

    Raises
    ------
    FormatError
        When the frame is not whole or breaks a rule.
    """
    header, info = read_header(window, offset)
    frame = Frame(offset, header, info, array("Q"), array("Q"))
    at = offset + info.header_size
    if info.is_skippable:
        at += info.skip_size
        if at > window.end:
            raise truncated(window.end, "a skippable frame")
        frame.nbytes = at - offset
        return frame
    while frame.content_nbytes != info.content_size:
        segment = read_segment(window, at, info)
        if segment.kind == lib.GLYD_KIND_END:
            break
        stored = segment.header_size + segment.payload_size
        if at + stored > window.end:
            raise truncated(window.end, "a segment")
        frame.contents.append(segment.content_size)
        frame.stored.append(stored)
        frame.content_nbytes += segment.content_size
        if max_segments is not None and len(frame.stored) > max_segments:
            raise limit_error("max_segments", max_segments, len(frame.stored), offset=at)
        if frame.content_nbytes > info.content_size:
            raise _size_error(at, info.content_size, frame.content_nbytes)
        at += stored
    if info.content_size not in {lib.GLYD_SIZE_UNKNOWN, frame.content_nbytes}:
        raise _size_error(at, info.content_size, frame.content_nbytes)
    if info.has_trailer:
        frame.trailer_nbytes = _trailer_nbytes(window, at, len(frame.stored))
        contents, stored_sizes = _read_trailer(window.get(at, frame.trailer_nbytes), at, info)
        if (contents, stored_sizes) != (frame.contents, frame.stored):
            raise CorruptDataError(f"index at byte {at} disagrees with the segments", offset=at)
        _check_tail(window, frame, at + frame.trailer_nbytes)
        at += frame.trailer_nbytes
    frame.nbytes = at - offset
    return frame


def _size_error(offset: int, expected: int, found: int) -> CorruptDataError:
    return CorruptDataError(
        f"segments up to byte {offset} do not add up to the content size (expected {expected}, found {found})",
        offset=offset,
        expected=expected,
        found=found,
    )


def _check_tail(window: Window, frame: Frame, end: int) -> None:
    tail = ffi.new("glyd_tail *")
    data = window.get(end - lib.GLYD_TAIL_SIZE, lib.GLYD_TAIL_SIZE)
    status = lib.glyd_read_tail(borrow(data), len(data), tail)
    found = (tail.content_size, tail.frame_size, tail.trailer_size)
    wanted = (frame.content_nbytes, end - frame.offset, frame.trailer_nbytes)
    if status != lib.GLYD_OK or found != wanted:
        raise CorruptDataError(
            f"sizes at the end of the frame, byte {end}, are {found} instead of {wanted}", offset=end
        )


def _trailer_nbytes(window: Window, offset: int, n_segments: int) -> int:
    """Return the size of a trailer that is reached from its front: after 2n + 1 varints comes the tail."""
    n_left = 2 * n_segments + 1
    most = 10 * n_left
    data = window.get(offset + 1, most)
    for i, byte in enumerate(data):
        if byte < 0x80:
            n_left -= 1
            if n_left == 0:
                size = 1 + i + 1 + lib.GLYD_TAIL_SIZE
                if offset + size > window.end:
                    raise truncated(window.end, "the index")
                return size
    if len(data) < most:
        raise truncated(window.end, "the index")
    raise CorruptDataError(f"index at byte {offset} has numbers longer than 10 bytes", offset=offset)


def _read_trailer(data: bytes, offset: int, info: Any) -> tuple[array[int], array[int]]:
    """Return content and stored sizes of the segments from a trailer."""
    src = borrow(data)
    n = ffi.new("uint64_t *", 0)
    error = ffi.new("glyd_error *")
    status = lib.glyd_read_trailer(src, len(data), info, ffi.NULL, n, error)
    entries = None
    if status == lib.GLYD_E_BUFFER:
        if n[0] > len(data) // 2:  # each entry has two bytes at least
            raise CorruptDataError(f"index at byte {offset} of {len(data)} bytes names {n[0]} segments", offset=offset)
        entries = ffi.new("glyd_index_entry[]", int(n[0]))
        status = lib.glyd_read_trailer(src, len(data), info, entries, n, error)
    if status != lib.GLYD_OK:
        raise status_error(status, error, shift=offset)
    pairs = array("Q")
    if entries is not None:
        pairs.frombytes(ffi.buffer(entries))
    return pairs[0::2], pairs[1::2]


def frame_before(window: Window, end: int) -> Frame | None:
    """Return the frame whose trailer ends at ``end``; None if there is no such thing."""
    if end < lib.GLYD_HEADER_MIN + lib.GLYD_TAIL_SIZE:
        return None
    window.load_tail(end)
    tail = ffi.new("glyd_tail *")
    data = window.get(end - lib.GLYD_TAIL_SIZE, lib.GLYD_TAIL_SIZE)
    if lib.glyd_read_tail(borrow(data), len(data), tail) != lib.GLYD_OK:
        return None
    offset = end - tail.frame_size
    at = end - tail.trailer_size
    if offset < 0 or at < offset + lib.GLYD_HEADER_MIN:
        return None
    try:
        trailer = window.get(at, tail.trailer_size)  # before the header: it is in the block at hand
        header, info = read_header(window, offset)
        if info.is_skippable or not info.has_trailer:
            return None
        contents, stored = _read_trailer(trailer, at, info)
    except FormatError:
        return None
    frame = Frame(offset, header, info, contents, stored, sum(contents), tail.frame_size, tail.trailer_size)
    if frame.content_nbytes != tail.content_size or info.content_size not in {
        lib.GLYD_SIZE_UNKNOWN,
        frame.content_nbytes,
    }:
        return None
    if info.header_size + sum(stored) + tail.trailer_size != tail.frame_size:
        return None
    return frame


def find_frames(source: Source, max_segments: int | None = None) -> list[Frame]:
    """Return all frames of a source, skippable ones among them.

    Reads the last 64 KiB and a header per frame with a trailer, and one block of
    4 KiB per segment (or per several small ones) elsewhere.

    Raises
    ------
    FormatError
        When the source is empty or is not whole frames throughout.
    """
    end = source.end()
    if end == 0:
        raise truncated(0, "the first frame: 0 bytes are no frame")
    window = Window(source, end)
    behind: list[Frame] = []
    at = end
    while at > 0:
        found = frame_before(window, at)
        if found is None:
            break
        behind.append(found)
        at = found.offset
    behind.reverse()
    if behind:
        try:
            return _walk(Window(source, at), at, max_segments) + behind
        except FormatError:
            pass  # what looked like a frame was content of one: walk all of it
    return _walk(window, end, max_segments)


def _walk(window: Window, end: int, max_segments: int | None) -> list[Frame]:
    frames: list[Frame] = []
    at = 0
    while at < end:
        frames.append(walk_frame(window, at, max_segments))
        at += frames[-1].nbytes
    return frames


class Index:
    """Where each segment of a source lies, in the content and in the source.

    Attributes
    ----------
    frames
        All frames in order.
    content_nbytes
        Bytes of content of all of them.
    n_segments
        Number of segments of all of them.
    """

    def __init__(self, frames: list[Frame], limits: Limits | None) -> None:
        self.frames = frames
        self._first_segments = array("Q")  # of each frame: number of its first segment
        self.starts = array("Q", [0])  # content offset of each segment, then the content size
        self.offsets = array("Q")  # source offset of each segment
        self.stored = array("Q")  # bytes of each segment with its header
        for frame in frames:
            self._first_segments.append(len(self.stored))
            if not frame.stored:
                continue
            first = frame.offset + len(frame.header)
            self.offsets.extend(accumulate(frame.stored[:-1], initial=first))
            self.starts.extend(accumulate(frame.contents[1:], initial=self.starts[-1] + frame.contents[0]))
            self.stored.extend(frame.stored)
        self.content_nbytes = self.starts[-1]
        self.n_segments = len(self.stored)
        if limits is not None:
            if limits.max_output is not None and self.content_nbytes > limits.max_output:
                raise limit_error("max_output", limits.max_output, self.content_nbytes)
            if limits.max_segments is not None and self.n_segments > limits.max_segments:
                raise limit_error("max_segments", limits.max_segments, self.n_segments)

    def segment_at(self, content_offset: int) -> int:
        """Return the number of the segment that holds a content offset below ``content_nbytes``."""
        return bisect_right(self.starts, content_offset) - 1

    def frame_of(self, segment: int) -> tuple[Frame, int]:
        """Return the frame of a segment, and the number of the first segment behind that frame."""
        i = bisect_right(self._first_segments, segment) - 1
        is_last = i + 1 == len(self._first_segments)
        return self.frames[i], self.n_segments if is_last else self._first_segments[i + 1]

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""`get_frame_info`, `iter_frames` and `iter_segments`."""

from __future__ import annotations

import array
import dataclasses
import io

import pytest

import glyd


def test_whole_frames(text):
    for level in glyd.LEVELS:
        frame = glyd.compress(text, level, segment_size=1 << 16)
        info = glyd.get_frame_info(frame)
        assert info.level == level
        assert (info.offset, info.version, info.is_skippable, info.skip_tag) == (0, 1, False, None)
        assert info.content_size == len(text)
        assert info.frame_nbytes == len(frame)
        assert info.segment_nbytes == 1 << 16
        assert info.n_segments == -(-len(text) // (1 << 16))
        assert info.checksum == "xxh3-64"
        assert info.trailer_nbytes > 0
        most = 16 << 20 if level == "cold" else 2 << 20  # cold: the model that weighs contexts
        assert 2 * info.segment_nbytes < info.decoder_memory_nbytes < most
    assert glyd.get_frame_info(glyd.compress(b"x")).checksum == "xxh3-32"
    assert glyd.get_frame_info(glyd.compress(b"x")).trailer_nbytes == 0


def test_prefixes(text, tools):
    sized, streamed = glyd.compress(text), tools.stream(text)
    for frame in (sized, streamed):
        n_header = glyd.get_frame_info(frame).header_nbytes
        for size in (n_header, n_header + 1, 1000, len(frame) - 1):
            info = glyd.get_frame_info(frame[:size])
            assert (info.frame_nbytes, info.n_segments) == (None, None)
            assert info.content_size == (len(text) if frame is sized else None)
        for size in range(n_header):
            with pytest.raises(glyd.TruncatedError):
                glyd.get_frame_info(frame[:size])
    assert glyd.get_frame_info(streamed).content_size == len(text)


def test_only_the_first_frame_counts(joined, parts):
    info = glyd.get_frame_info(joined)
    assert info.content_size == len(parts[0])
    assert info.frame_nbytes < len(joined)
    assert glyd.get_frame_info(joined[: info.frame_nbytes] + b"garbage") == info


def test_skippable(tools):
    info = glyd.get_frame_info(tools.skippable(b"note" * 5, 0xDEADBEEF) + b"more")
    assert (info.is_skippable, info.skip_tag, info.frame_nbytes, info.content_size) == (True, 0xDEADBEEF, 40, 0)


def test_what_is_no_frame():
    for data in (b"", b"\x9d", b"\x9dGLY"):
        with pytest.raises(glyd.TruncatedError):
            glyd.get_frame_info(data)
    for data in (b"PK\x03\x04" * 9, bytes(100), b"\x28\xb5\x2f\xfd" * 9):
        with pytest.raises(glyd.FormatError):
            glyd.get_frame_info(data)
    with pytest.raises(glyd.UnsupportedVersionError):
        glyd.get_frame_info(b"\x9dGLY\x02" + bytes(50))


def test_all_frames(joined, parts, tmp_path, tools):
    path = tmp_path / "joined"
    path.write_bytes(joined)
    want = list(glyd.iter_frames(joined))
    assert [f.content_size for f in want if not f.is_skippable] == [len(p) for p in parts]
    assert [f.is_skippable for f in want] == [False, True, False, False, False, True, False, False]
    assert [f.offset for f in want] == [sum(f.frame_nbytes for f in want[:i]) for i in range(len(want))]
    assert sum(f.frame_nbytes for f in want) == len(joined)
    for source in (
        path,
        str(path),
        io.BytesIO(joined),
        tools.ShortReads(joined),
        memoryview(joined),
        bytearray(joined),
    ):
        assert list(glyd.iter_frames(source)) == want
    assert list(glyd.iter_frames(array.array("B", joined))) == want


def test_all_segments(joined, content, tmp_path):
    path = tmp_path / "joined"
    path.write_bytes(joined)
    segments = list(glyd.iter_segments(joined))
    assert list(glyd.iter_segments(path)) == segments
    at = 0
    for i, segment in enumerate(segments):
        assert (segment.index, segment.content_offset) == (i, at)
        assert segment.kind in {"raw", "fill", "lz"}
        at += segment.content_nbytes
    assert at == len(content)
    assert {s.kind for s in glyd.iter_segments(glyd.compress(bytes(100)))} == {"fill"}
    n_unchecked = sum(s.check is None for s in segments)
    assert n_unchecked == -(-150_000 // (1 << 12))


def test_faults(joined, tools):
    for data in (b"", joined[:-3], joined + b"x", joined[:3]):
        with pytest.raises(glyd.FormatError):
            print(list(glyd.iter_frames(data)))
        with pytest.raises(glyd.FormatError):
            print(list(glyd.iter_segments(data)))
    with pytest.raises(io.UnsupportedOperation):
        print(list(glyd.iter_frames(SlowWithSeek(tools.Slow(joined)))))
    for thing in ("/no/such/file", 5):
        with pytest.raises((OSError, TypeError)):
            print(list(glyd.iter_frames(thing)))


class SlowWithSeek:
    def __init__(self, source):
        self.read = source.read
        self.seek = source.seek
        self.seekable = source.seekable


def test_records_are_values(text):
    info = glyd.get_frame_info(glyd.compress(text))
    assert info == dataclasses.replace(info)
    assert hash(info) == hash(dataclasses.replace(info))
    with pytest.raises(AttributeError):
        info.level = "other"

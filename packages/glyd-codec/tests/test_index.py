# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Finding frames and segments: from the end, by hopping, and what either must not believe."""

from __future__ import annotations

import io
import random

import pytest

import glyd

MIB = 1 << 20


@pytest.fixture(scope="module")
def big(tools):
    """64 MiB of content that cannot be compressed away, in segments of 1 MiB."""
    block = random.Random(3).randbytes(MIB)
    data = b"".join(block[i * 1000 :] + block[: i * 1000] for i in range(64))
    return data, glyd.compress(data, "turbo", segment_size=MIB)


def test_a_read_fetches_two_segments_at_most(big, tools):
    data, frame = big
    source = tools.Counting(frame)
    f = glyd.open(source, threads=4)
    assert source.n_bytes == 0
    f.seek(0, io.SEEK_END)
    assert source.n_bytes < 100_000  # the tail, its index and the header
    rng = random.Random(4)
    for _ in range(50):
        at = rng.randrange(len(data) - 65_536)
        source.reset()
        f.seek(at)
        assert f.read(65_536) == data[at : at + 65_536]
        n_touched = (at + 65_535) // MIB - at // MIB + 1
        assert source.n_bytes <= n_touched * (MIB + 40)
        assert source.n_reads <= n_touched


def test_near_reads_fetch_nothing(big, tools):
    data, frame = big
    source = tools.Counting(frame)
    f = glyd.open(source)
    f.seek(5 * MIB - 1000)
    assert f.read(2000) == data[5 * MIB - 1000 : 5 * MIB + 1000]
    source.reset()
    for at in (5 * MIB - 900_000, 5 * MIB + 900_000, 5 * MIB - 10, 5 * MIB + 10):
        f.seek(at)
        assert f.read(100) == data[at : at + 100]
    assert source.n_bytes == 0  # two segments are kept


def test_whole_reads_fetch_everything_once(big, tools):
    data, frame = big
    for step in (100_000, MIB, 10 * MIB, -1):
        source = tools.Counting(frame)
        f = glyd.open(source, threads=3)
        f.seek(1)
        source.reset()
        out = b"".join(iter(lambda f=f, step=step: f.read(step), b""))
        assert out == data[1:]
        assert source.n_bytes <= len(frame) + 100_000


def test_index_is_small(big):
    _, frame = big
    info = glyd.get_frame_info(frame)
    assert info.n_segments == 64
    assert info.trailer_nbytes <= len(frame) / 1000


def test_many_frames_are_found_from_the_end(tools):
    frames = [tools.stream(bytes([i]) * 1000 * i) for i in range(200)]
    source = tools.Counting(b"".join(frames))
    f = glyd.open(source)
    assert f.size == 1000 * sum(range(200))
    for i in (0, 1, 5, 77, 199):
        f.seek(1000 * sum(range(i)))
        assert f.read(1) == (bytes([i]) if i else b"\x01")


def test_frames_within_frames(noise, tools):
    """The last bytes of a frame without a trailer may be a whole frame, stored raw."""
    inner = tools.stream(noise[:50_000], segment_size=1 << 12)
    outer = glyd.compress(inner)
    assert outer.endswith(inner)
    other = tools.stream(noise[50_000:100_000], segment_size=1 << 12)
    outermost = glyd.compress(outer + other)
    assert outermost.endswith(other)
    for data, want in ((outer, inner), (outermost, outer + other), (inner + outer, noise[:50_000] + inner)):
        f = glyd.open(io.BytesIO(data))
        assert f.size == len(want)
        f.seek(-7, io.SEEK_END)
        assert f.read() == want[-7:]
        assert sum(i.content_size for i in glyd.iter_frames(data)) == len(want)


def test_skippable_frames_at_the_end(frames, parts, tools):
    for note in (b"", b"note" * 50, frames[2]):
        data = frames[2] + tools.skippable(note)
        f = glyd.open(io.BytesIO(data))
        assert f.size == len(parts[2])
        f.seek(100)
        assert f.read() == parts[2][100:]
    with pytest.raises(glyd.TruncatedError):
        print(glyd.open(io.BytesIO((frames[2] + tools.skippable(b"note"))[:-1])).size)


def test_only_skippable_frames(tools):
    data = tools.skippable(b"abc")
    assert glyd.decompress(data) == b""
    f = glyd.open(io.BytesIO(data))
    assert f.size == 0
    assert f.read() == b""


def test_an_index_that_lies(noise):
    """Two segments are swapped behind the back of the index: its own check still holds."""
    data = noise[:4096] + noise[5000:5500] + noise[:4096]
    c = glyd.Compressor(segment_size=4096, checksum=False)
    frame = c.compress(data[:4096]) + c.flush(c.FLUSH_BLOCK) + c.compress(data[4096:4596]) + c.flush(c.FLUSH_BLOCK)
    frame += c.compress(data[4596:]) + c.flush()
    first, second, third = (s.offset for s in glyd.iter_segments(frame))
    swapped = frame[:first] + frame[second:third] + frame[first:second] + frame[third:]
    f = glyd.open(io.BytesIO(swapped))
    assert f.size == len(data)
    for at in (0, 10, 4200):
        f.seek(at)
        with pytest.raises(glyd.FormatError):
            f.read(10)
    f.seek(5000)
    assert f.read(10) == data[5000:5010]
    with pytest.raises(glyd.FormatError):
        glyd.decompress(swapped)


def test_sources_that_shrink(noise):
    source = io.BytesIO(glyd.compress(noise, segment_size=1 << 14))
    f = glyd.open(source)
    f.seek(290_000)
    assert f.read(10) == noise[290_000:290_010]
    source.truncate(100_000)
    f.seek(150_000)
    with pytest.raises(glyd.TruncatedError):
        f.read(10)
    f.seek(20_000)
    assert f.read(10) == noise[20_000:20_010]


def test_faults_of_a_segment_name_its_place(noise):
    frame = bytearray(glyd.compress(noise, segment_size=1 << 14))
    segments = list(glyd.iter_segments(frame))
    bad = segments[7]
    frame[bad.offset + bad.stored_nbytes - 5] ^= 1
    f = glyd.open(io.BytesIO(frame))
    f.seek(bad.content_offset + 5)
    with pytest.raises(glyd.ChecksumError) as caught:
        f.read(1)
    assert caught.value.offset == bad.offset
    f = glyd.open(io.BytesIO(frame))  # nothing decoded before
    f.seek(bad.content_offset - 5)
    assert f.read(5) == noise[bad.content_offset - 5 : bad.content_offset]


def test_small_segments_are_fetched_together(noise, tools):
    frame = glyd.compress(noise, segment_size=1024)
    source = tools.Counting(frame)
    f = glyd.open(source)
    f.seek(100_000)
    source.reset()
    assert f.read(65_536) == noise[100_000:165_536]
    assert source.n_reads == 1
    assert source.n_bytes < 150_000


def test_memory_code_of_a_run():
    """A run of segments is decoded as a frame of its own: its header must be what a writer writes."""
    from glyd_codec._segments import memory_code, run_header

    for size in (1, 100, 1023, 1024, 1025, 5000, 123_456, 4 << 20, (4 << 20) + 1, 9 << 20):
        for segment_size in (None, 1024, 1 << 16):
            frame = glyd.compress(bytes(size), segment_size=segment_size)
            info = glyd.get_frame_info(frame)
            assert frame[8] == memory_code(info.segment_nbytes, size)
            header = run_header(frame[: info.header_nbytes], info.segment_nbytes, size)
            again = glyd.get_frame_info(header)
            assert (again.content_size, again.segment_nbytes, again.checksum) == (
                size,
                info.segment_nbytes,
                info.checksum,
            )
            assert header == run_header(header, info.segment_nbytes, size)

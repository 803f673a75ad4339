# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""`compress`, `decompress` and `decompress_into`."""

from __future__ import annotations

import array
import ctypes
import mmap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glyd

SIZES = [0, 1, 2, 3, 15, 64, 255, 256, 257, 1000, 4096, 65_535, 65_536, 65_537, 250_000]


@pytest.mark.parametrize("level", glyd.LEVELS)
@pytest.mark.parametrize("size", SIZES)
def test_round_trip(level, size, text, noise):
    for data in (text[:size], noise[:size], bytes(size), (b"ab" * size)[:size], noise[: size // 2] * 2):
        frame = glyd.compress(data, level)
        assert isinstance(frame, bytes)
        assert glyd.decompress(frame) == data
        assert len(frame) <= len(data) + 64


def test_levels_differ_and_save(text):
    sizes = {level: len(glyd.compress(text, level)) for level in glyd.LEVELS}
    assert sizes["max"] < sizes["default"] < len(text) / 2
    assert sizes["turbo"] < len(text)
    assert len(glyd.compress(bytes(10**7))) < 100


@pytest.mark.parametrize("level", glyd.LEVELS)
def test_threads_do_not_change_the_frame(level, text):
    frames = {glyd.compress(text, level, threads=n, segment_size=1 << 15) for n in (0, 1, 2, 3, 8)}
    assert len(frames) == 1
    (frame,) = frames
    for n in (0, 1, 2, 3, 8):
        assert glyd.decompress(frame, threads=n) == text


@given(
    data=st.lists(st.binary(max_size=60), max_size=40).map(lambda parts: b"".join(parts * 3)),
    level=st.sampled_from(glyd.LEVELS),
    checksum=st.booleans(),
    segment_size=st.sampled_from([None, 1024, 1500, 4096]),
)
@settings(max_examples=150, deadline=None)
def test_any_data(data, level, checksum, segment_size):
    frame = glyd.compress(data, level, checksum=checksum, segment_size=segment_size, threads=1)
    assert glyd.decompress(frame) == data
    assert glyd.decompress(frame + frame) == data + data


@pytest.fixture(scope="module")
def far(noise):
    """Repeats from 8 MB back: beyond a plain segment."""
    return noise + bytes(range(256)) * 30_000 + noise


def test_long_saves(far, noise):
    assert len(glyd.compress(far, long=True)) < len(glyd.compress(far)) - len(noise) // 2


def test_long(far):
    long = glyd.compress(far, long=True)
    assert glyd.decompress(long) == far
    assert glyd.get_frame_info(long).n_segments == 1
    assert glyd.decompress(glyd.compress(b"short", long=True)) == b"short"
    with pytest.raises(glyd.ParameterError, match="long needs level 'max' or above"):
        glyd.compress(far, "fast", long=True)


def test_buffers_of_every_kind(tmp_path):
    numbers = array.array("d", range(5000))
    data = numbers.tobytes()
    frame = glyd.compress(data)
    path = tmp_path / "data"
    path.write_bytes(data)
    with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        for kind in (data, bytearray(data), memoryview(data), numbers, memoryview(numbers), mapped):
            assert glyd.compress(kind) == frame
    for kind in (bytearray(frame), memoryview(frame), (ctypes.c_char * len(frame))(*frame)):
        assert glyd.decompress(kind) == data
    assert glyd.compress(memoryview(data).cast("B", [100, 400])) == frame


def test_buffers_are_given_back():
    data = bytearray(b"abc" * 1000)
    frame = bytearray(glyd.compress(data))
    data.append(1)  # BufferError if something still held it
    glyd.decompress(frame)
    frame.append(1)
    with pytest.raises(glyd.CorruptDataError):
        glyd.decompress(frame)
    frame.append(1)
    out = bytearray(3000)
    glyd.decompress_into(frame[:-2], out)
    out.append(1)


def test_what_is_no_buffer():
    for call in (glyd.compress, glyd.decompress, glyd.Compressor().compress, glyd.Decompressor().decompress):
        for thing in ("text", None, 5, [1, 2]):
            with pytest.raises(TypeError, match="bytes-like"):
                call(thing)
        with pytest.raises(BufferError):
            call(memoryview(b"abcdef")[::2])


@pytest.mark.parametrize(
    "options",
    [
        {"level": "best"},
        {"level": ""},
        {"level": "Max"},
        {"level": 3},
        {"threads": -1},
        {"threads": 10**6},
        {"segment_size": 0},
        {"segment_size": 1023},
        {"segment_size": (1 << 30) + 1},
        {"segment_size": -5},
    ],
)
def test_parameters_out_of_range(options):
    for call in (lambda: glyd.compress(b"x", **options), lambda: glyd.Compressor(**options)):
        with pytest.raises(glyd.ParameterError) as caught:
            call()
        assert isinstance(caught.value, ValueError)
        assert str(next(iter(options.values()))) in str(caught.value)
    with pytest.raises(TypeError):
        glyd.compress(b"x", threads=1.5)


def test_checksum_off_is_smaller_and_unchecked(noise):
    data = noise[:50_000]
    plain, bare = glyd.compress(data), glyd.compress(data, checksum=False)
    assert len(bare) == len(plain) - 4
    assert glyd.get_frame_info(bare).checksum == "none"
    assert glyd.decompress(bare) == data
    flipped = bytearray(bare)
    flipped[-5] ^= 1
    assert glyd.decompress(flipped) != data  # that is what "off" means
    flipped = bytearray(plain)
    flipped[-5] ^= 1
    with pytest.raises(glyd.ChecksumError):
        glyd.decompress(flipped)


def test_small_results_are_not_shared():
    for i in range(256):
        assert glyd.decompress(glyd.compress(bytes([i]))) == bytes([i])
    assert [bytes([i])[0] for i in range(256)] == list(range(256))
    assert glyd.decompress(glyd.compress(b"")) == b""
    assert bytes(300) == b"\0" * 300


class TestInto:
    def test_exact_and_larger(self, text):
        frame = glyd.compress(text, segment_size=1 << 16)
        for extra in (0, 1, 1000):
            out = bytearray(b"\xee" * (len(text) + extra))
            assert glyd.decompress_into(frame, out, threads=2) == len(text)
            assert out == text + b"\xee" * extra

    def test_typed_buffers(self):
        numbers = array.array("I", range(1000))
        out = array.array("I", bytes(4000))
        assert glyd.decompress_into(glyd.compress(numbers), out) == 4000
        assert out == numbers
        view = memoryview(bytearray(5000))[500:4500]
        assert glyd.decompress_into(glyd.compress(numbers), view) == 4000
        assert view == numbers.tobytes()

    def test_too_small(self):
        frame = glyd.compress(b"x" * 1000) * 2
        for size in (0, 1, 999, 1000, 1999):
            with pytest.raises(glyd.BufferTooSmallError) as caught:
                glyd.decompress_into(frame, bytearray(size))
            assert (caught.value.expected, caught.value.found) == (2000, size)

    def test_empty(self):
        assert glyd.decompress_into(glyd.compress(b""), bytearray()) == 0
        with pytest.raises(glyd.TruncatedError):
            glyd.decompress_into(b"", bytearray(9))

    def test_read_only(self):
        with pytest.raises(BufferError):
            glyd.decompress_into(glyd.compress(b"x"), b"1")
        with pytest.raises(TypeError):
            glyd.decompress_into(glyd.compress(b"x"), "1")

    def test_overlap(self):
        memory = bytearray(glyd.compress(b"y" * 500))
        size = len(memory)
        memory += bytes(1000)
        view = memoryview(memory)
        with pytest.raises(glyd.ParameterError, match="shares memory"):
            glyd.decompress_into(view[:size], view[size - 1 :])
        assert glyd.decompress_into(view[:size], view[size:]) == 500


class TestLimits:
    def test_max_size(self):
        frame = glyd.compress(b"x" * 1000)
        assert glyd.decompress(frame, max_size=1000) == b"x" * 1000
        assert glyd.decompress(glyd.compress(b""), max_size=0) == b""
        for size in (0, 1, 999):
            with pytest.raises(glyd.LimitError, match="max_size") as caught:
                glyd.decompress(frame, max_size=size)
            assert (caught.value.expected, caught.value.found, caught.value.limit) == (size, 1000, "max_size")
        limits = glyd.Limits(max_output=10)
        assert len(glyd.decompress(frame, max_size=1000, limits=limits)) == 1000

    def test_each_limit_is_named(self, text):
        frame = glyd.compress(text, segment_size=1 << 14)
        n_segments = -(-len(text) // (1 << 14))
        for limits, name in (
            (glyd.Limits(max_output=len(text) - 1), "max_output"),
            (glyd.Limits(max_memory=1 << 16), "max_memory"),
            (glyd.Limits(max_segments=n_segments - 1), "max_segments"),
        ):
            for call in (
                lambda limits=limits: glyd.decompress(frame, limits=limits),
                lambda limits=limits: glyd.decompress_into(frame, bytearray(len(text)), limits=limits),
                lambda limits=limits: glyd.Decompressor(limits=limits).decompress(frame),
            ):
                with pytest.raises(glyd.LimitError, match=name) as caught:
                    call()
                assert caught.value.limit == name
                assert caught.value.expected < caught.value.found
        wide = glyd.Limits(max_output=len(text), max_memory=1 << 24, max_segments=n_segments)
        assert glyd.decompress(frame, limits=wide) == text

    def test_limits_that_are_none(self):
        for value in (0, -1, 1 << 64):
            with pytest.raises(glyd.ParameterError):
                glyd.Limits(max_output=value)
        with pytest.raises(AttributeError):
            glyd.Limits().max_output = 5

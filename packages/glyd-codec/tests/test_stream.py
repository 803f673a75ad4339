# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""`Compressor` and `Decompressor`: the semantics of Python's compression.zstd."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glyd


@pytest.mark.parametrize("level", glyd.LEVELS)
@pytest.mark.parametrize("step", [1, 13, 4096, 10**6])
def test_round_trip(level, step, text, tools):
    data = text[:5000] if step == 1 else text[:200_000]
    frame = tools.stream(data, step, level=level, segment_size=1 << 14)
    assert glyd.decompress(frame) == data
    decompressor = glyd.Decompressor()
    out = b"".join(decompressor.decompress(frame[i : i + step]) for i in range(0, len(frame), step))
    assert out == data
    assert decompressor.eof
    assert decompressor.unused_data == b""


def test_threads_and_pieces_do_not_change_the_frame(text, tools):
    frames = {
        tools.stream(text, step, threads=threads, segment_size=1 << 14)
        for step in (999, 50_000, 10**6)
        for threads in (0, 1, 2, 5)
    }
    assert len(frames) == 1


class TestCompressor:
    def test_modes(self):
        c = glyd.Compressor()
        assert c.last_mode == c.FLUSH_FRAME
        assert (c.CONTINUE, c.FLUSH_BLOCK, c.FLUSH_FRAME) == (0, 1, 2)
        out = c.compress(b"abc")
        assert c.last_mode == c.CONTINUE
        out += c.flush(c.FLUSH_BLOCK)
        assert c.last_mode == c.FLUSH_BLOCK
        assert glyd.Decompressor().decompress(out) == b"abc"
        out += c.compress(b"def", c.FLUSH_BLOCK)
        assert glyd.Decompressor().decompress(out) == b"abcdef"
        out += c.compress(b"ghi", c.FLUSH_FRAME)
        assert c.last_mode == c.FLUSH_FRAME
        assert glyd.decompress(out) == b"abcdefghi"

    def test_several_frames(self):
        c = glyd.Compressor()
        out = c.compress(b"one", c.FLUSH_FRAME) + c.flush() + c.compress(b"two") + c.flush()
        assert glyd.decompress(out) == b"onetwo"
        assert [f.content_size for f in glyd.iter_frames(out)] == [3, 0, 3]

    def test_empty(self):
        assert glyd.decompress(glyd.Compressor().flush()) == b""
        c = glyd.Compressor()
        assert glyd.decompress(c.compress(b"") + c.flush()) == b""

    def test_flush_without_data_adds_no_content(self):
        c = glyd.Compressor()
        out = b"".join(c.flush(c.FLUSH_BLOCK) for _ in range(5))
        out += c.compress(b"x") + b"".join(c.flush(c.FLUSH_BLOCK) for _ in range(5)) + c.flush()
        assert glyd.decompress(out) == b"x"

    @pytest.mark.parametrize("mode", [-1, 3, None, "frame"])
    def test_unknown_modes(self, mode):
        c = glyd.Compressor()
        with pytest.raises(glyd.ParameterError):
            c.compress(b"", mode)
        with pytest.raises(glyd.ParameterError):
            c.flush(mode)
        with pytest.raises(glyd.ParameterError):
            c.flush(c.CONTINUE)
        assert glyd.decompress(c.compress(b"still fine", c.FLUSH_FRAME)) == b"still fine"

    def test_pledged_size(self, text):
        c = glyd.Compressor()
        c.set_pledged_input_size(len(text))
        frame = c.compress(text) + c.flush()
        assert glyd.get_frame_info(frame[:30]).content_size == len(text)
        assert glyd.decompress(frame) == text
        assert frame == glyd.compress(text)
        other = c.compress(b"abc") + c.flush()  # it was for one frame
        assert glyd.get_frame_info(other[:30]).content_size is None
        c.set_pledged_input_size(7)
        c.set_pledged_input_size(None)
        assert glyd.decompress(c.compress(b"abc", c.FLUSH_FRAME)) == b"abc"

    def test_wrong_pledged_size(self):
        for data in (b"12345", b"1234567"):
            c = glyd.Compressor()
            c.set_pledged_input_size(6)
            with pytest.raises(glyd.ParameterError):
                c.compress(data, c.FLUSH_FRAME)
            with pytest.raises(glyd.GlydError):  # and never a frame that looks whole
                c.flush()

    def test_pledge_in_the_middle(self):
        c = glyd.Compressor()
        with pytest.raises(glyd.ParameterError):
            c.set_pledged_input_size(-1)
        c.compress(b"x")
        with pytest.raises(glyd.ParameterError, match="has been started"):
            c.set_pledged_input_size(5)

    def test_large_pieces_of_output(self, noise):
        data = noise * 40  # 12 MB of output in one call
        c = glyd.Compressor("turbo", segment_size=1 << 17)
        assert glyd.decompress(c.compress(data) + c.flush()) == data


class TestDecompressor:
    def test_one_frame(self, frames, parts):
        rest = b"".join(frames)
        for frame, part in zip(frames, parts, strict=True):
            d = glyd.Decompressor()
            assert not d.eof
            assert d.needs_input
            assert d.unused_data == b""
            assert d.decompress(rest) == part
            assert d.eof
            assert not d.needs_input
            assert d.unused_data == rest[len(frame) :]
            with pytest.raises(EOFError) as caught:
                d.decompress(b"")
            assert not isinstance(caught.value, glyd.GlydError)
            rest = d.unused_data
        assert rest == b""

    @pytest.mark.parametrize("step", [1, 13, 4096])
    def test_frame_after_frame(self, joined, content, step):
        out, rest = [], joined
        while rest:
            d, i = glyd.Decompressor(), 0
            while not d.eof:
                assert i < len(rest)
                out.append(d.decompress(rest[i : i + step]))
                i += step
            rest = d.unused_data + rest[i:]
        assert b"".join(out) == content

    @pytest.mark.parametrize("threads", [1, 3])
    @pytest.mark.parametrize("max_length", [1, 100, 5000, 70_000])
    def test_max_length(self, text, max_length, threads):
        data = text[: 2000 * max_length]
        frame = glyd.compress(data, segment_size=1 << 14)
        d = glyd.Decompressor(threads=threads)
        out = [d.decompress(frame + b"tail", max_length)]
        while not d.eof:
            assert not d.needs_input
            out.append(d.decompress(b"", max_length))
        assert b"".join(out) == data
        assert max(map(len, out)) == min(max_length, len(data))
        assert d.unused_data == b"tail"

    def test_max_length_with_more_input(self, text):
        frame = glyd.compress(text, segment_size=1 << 14)
        d, out, i = glyd.Decompressor(), b"", 0
        while not d.eof:  # feeds on although it was not asked for: nothing may be lost
            out += d.decompress(bytearray(frame[i : i + 3000]), 20_000)
            i += 3000
        assert out == text

    def test_max_length_zero(self):
        d = glyd.Decompressor()
        frame = glyd.compress(b"abc")
        assert d.decompress(frame, 0) == b""
        assert d.decompress(b"") == b"abc"
        assert d.eof

    def test_input_is_asked_for(self, text):
        frame = glyd.compress(text, segment_size=1 << 14)
        d = glyd.Decompressor()
        d.decompress(frame[:-5])
        assert d.needs_input
        assert not d.eof
        d.decompress(frame[-5:])
        assert d.eof

    def test_segments_come_as_soon_as_they_are_whole(self, text):
        for threads in (1, 2, 4):
            c, d = glyd.Compressor(threads=threads), glyd.Decompressor(threads=threads)
            for i in range(0, 50_000, 5000):
                piece = text[i : i + 5000]
                assert d.decompress(c.compress(piece, c.FLUSH_BLOCK)) == piece

    def test_faults_stay(self, text):
        frame = bytearray(glyd.compress(text, segment_size=1 << 14))
        frame[len(frame) // 2] ^= 4
        d = glyd.Decompressor()
        with pytest.raises(glyd.FormatError) as first:
            d.decompress(frame)
        with pytest.raises(glyd.FormatError) as second:
            d.decompress(b"more")
        assert type(first.value) is type(second.value)
        assert str(first.value) == str(second.value)
        assert first.value.offset == second.value.offset
        assert not d.eof

    def test_garbage(self):
        with pytest.raises(glyd.FormatError):
            glyd.Decompressor().decompress(b"no frame at all")
        with pytest.raises(glyd.FormatError):
            glyd.Decompressor().decompress(b"no")  # known at the first byte


@given(
    pieces=st.lists(st.tuples(st.binary(max_size=80), st.sampled_from([0, 0, 0, 1, 2])), max_size=30),
    level=st.sampled_from(glyd.LEVELS),
    threads=st.integers(1, 3),
    step=st.integers(1, 60),
)
@settings(max_examples=120, deadline=None)
def test_any_pieces(pieces, level, threads, step):
    c = glyd.Compressor(level, threads=threads, segment_size=1024)
    stream = b"".join(c.compress(data * 9, mode) for data, mode in pieces)
    if c.last_mode != c.FLUSH_FRAME or not stream:
        stream += c.flush()
    want = b"".join(data * 9 for data, _ in pieces)
    assert glyd.decompress(stream) == want
    out, rest = [], stream
    while rest:
        d, i = glyd.Decompressor(threads=threads), 0
        while not d.eof:
            out.append(d.decompress(rest[i : i + step], 50))
            i += step
            while not d.needs_input and not d.eof:
                out.append(d.decompress(b"", 50))
        rest = d.unused_data + rest[i:]
    assert b"".join(out) == want

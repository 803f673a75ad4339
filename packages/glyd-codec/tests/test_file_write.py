# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Writing with `open` and `GlydFile`."""

from __future__ import annotations

import gc
import io
import os

import pytest

import glyd


@pytest.mark.parametrize("level", glyd.LEVELS)
@pytest.mark.parametrize("step", [1, 100, 5000, 10**6])
def test_round_trip(tmp_path, level, step, text):
    path = tmp_path / "x.glyd"
    data = text[: 300 * step]
    with glyd.open(path, "wb", level=level, segment_size=1 << 14) as f:
        for i in range(0, len(data), step):
            assert f.write(data[i : i + step]) == len(data[i : i + step])
        assert f.tell() == len(data)
    assert glyd.decompress(path.read_bytes()) == data
    with glyd.open(path) as f:
        assert f.read() == data


def test_nothing_written_is_an_empty_frame(tmp_path):
    path = tmp_path / "x.glyd"
    glyd.open(path, "wb").close()
    assert glyd.decompress(path.read_bytes()) == b""
    with glyd.open(path, "ab"):
        pass
    assert [f.content_size for f in glyd.iter_frames(path)] == [0, 0]


def test_modes(tmp_path):
    path = tmp_path / "x.glyd"
    with glyd.open(path, "xb") as f:
        f.write(b"one ")
    with pytest.raises(FileExistsError):
        glyd.open(path, "xb")
    with glyd.open(path, "ab") as f:
        f.write(b"two ")
    with glyd.open(path, "at", encoding="utf-8") as f:
        f.write("three")
    assert glyd.open(path).read() == b"one two three"
    with glyd.open(path, "w") as f:
        assert f.mode == "wb"
        f.write(b"new")
    assert glyd.open(path).read() == b"new"
    assert glyd.open(str(path), "rt").read() == "new"


def test_wrong_arguments_leave_no_file(tmp_path):
    path = tmp_path / "x.glyd"
    for options in ({"level": "none"}, {"segment_size": 3}, {"threads": -1}, {"level": "fast", "long": True}):
        with pytest.raises(glyd.ParameterError):
            glyd.open(path, "wb", **options)
        assert not path.exists()


class TestExceptions:
    def test_in_a_with_block(self, tmp_path, text):
        path = tmp_path / "x.glyd"

        def write(mode, data):
            with glyd.open(path, mode) as f:
                f.write(data)
                raise KeyError("stop")

        for data in (b"", b"short", text):
            with pytest.raises(KeyError):
                write("wb", data)
            with pytest.raises(glyd.TruncatedError):
                glyd.open(path).read()
        with pytest.raises(KeyError):
            write("wt", "some text")
        with pytest.raises(glyd.TruncatedError):
            glyd.open(path).read()

    def test_whole_frames_stay_whole(self, tmp_path):
        path = tmp_path / "x.glyd"
        with glyd.open(path, "wb") as f:
            f.write(b"kept")
        for n in (0, 10):
            with pytest.raises(KeyError), glyd.open(path, "ab") as f:
                f.write(b"lost" * n)
                raise KeyError
            assert glyd.open(path).read() == b"kept"  # nothing had left the buffers
        with pytest.raises(KeyError), glyd.open(path, "ab") as f:
            f.write(b"lost" * 10)
            f.flush()
            raise KeyError
        f = glyd.open(path)
        assert f.read(4) == b"kept"
        with pytest.raises(glyd.TruncatedError):
            f.read()

    def test_abort(self, tmp_path):
        path = tmp_path / "x.glyd"
        f = glyd.open(path, "wb")
        f.write(b"abc")
        f.abort()
        assert f.closed
        f.close()
        f.abort()
        with pytest.raises(glyd.TruncatedError):
            glyd.open(path).read()
        f = glyd.open(io.BytesIO(glyd.compress(b"abc")))
        f.abort()
        assert f.closed

    def test_while_writing(self):
        class Full(io.RawIOBase):
            room = 20

            def writable(self):
                return True

            def write(self, data):
                if self.room < len(data):
                    raise OSError(28, "No space left on device")
                self.room -= len(data)
                return len(data)

        for end in ("close", "flush"):
            f = glyd.open(Full(), "wb")
            f.write(b"x" * 1000)
            with pytest.raises(OSError, match="No space"):
                getattr(f, end)()
            assert f.closed == (end == "close")
            f.abort()
            assert f.closed

    def test_a_frame_with_lost_bytes_is_never_ended(self, noise):
        class Once(io.BytesIO):
            has_failed = False

            def write(self, data):
                if len(data) > 1000 and not self.has_failed:
                    self.has_failed = True
                    raise OSError(28, "No space left on device")
                return super().write(data)

        sink = Once()
        f = glyd.open(sink, "wb", segment_size=1 << 14, threads=1)
        with pytest.raises(OSError, match="No space"):
            f.write(noise)
        for call in (lambda: f.write(b"x"), f.flush):
            with pytest.raises(glyd.GlydError, match="earlier write failed"):
                call()
        f.close()
        with pytest.raises(glyd.FormatError):
            glyd.decompress(sink.getvalue())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_device(noise):
    with pytest.raises(OSError, match="No space"), glyd.open("/dev/full", "wb", segment_size=1 << 16) as f:
        f.write(noise)


def test_flush(tmp_path, text):
    path = tmp_path / "x.glyd"
    with glyd.open(path, "wb") as f:
        for i in range(0, 50_000, 10_000):
            f.write(text[i : i + 10_000])
            f.flush()
            reader = glyd.open(path)
            assert reader.read(i + 10_000) == text[: i + 10_000]
        size = path.stat().st_size
        f.flush()
        f.flush()
        assert path.stat().st_size == size  # nothing to flush costs nothing
        f.flush(glyd.Compressor.FLUSH_FRAME)
        assert glyd.open(path).read() == text[:50_000]
        f.write(b"next frame")
    assert glyd.open(path).read() == text[:50_000] + b"next frame"
    assert [f.content_size for f in glyd.iter_frames(path)] == [50_000, 10]


def test_close_after_flushed_frame_adds_nothing(tmp_path):
    path = tmp_path / "x.glyd"
    with glyd.open(path, "wb") as f:
        f.write(b"abc")
        f.flush(glyd.Compressor.FLUSH_FRAME)
    assert len(list(glyd.iter_frames(path))) == 1


def test_objects_that_take_little(text):
    class Little(io.RawIOBase):
        def __init__(self):
            self.taken = bytearray()

        def writable(self):
            return True

        def write(self, data):
            part = bytes(data[:100])
            self.taken += part
            return len(part)

    sink = Little()
    with glyd.open(sink, "wb") as f:
        f.write(text)
    assert not sink.closed
    assert glyd.decompress(sink.taken) == text


def test_objects_that_return_nothing(text):
    class Sink:
        def __init__(self):
            self.taken = bytearray()

        def write(self, data):
            self.taken += data

    sink = Sink()
    with glyd.open(sink, "wb") as f:
        f.write(text)
    assert glyd.decompress(sink.taken) == text


def test_object_that_takes_nothing_now():
    class NotNow(io.RawIOBase):
        def writable(self):
            return True

        def write(self, data):
            return None

    f = glyd.open(NotNow(), "wb")
    f.write(b"x")
    with pytest.raises(BlockingIOError):
        f.flush()
    f.abort()


def test_what_writing_files_do_not_do(tmp_path):
    f = glyd.open(tmp_path / "x.glyd", "wb")
    assert f.writable()
    assert not f.readable()
    assert not f.seekable()
    for call in (
        f.read,
        f.read1,
        lambda: f.readinto(bytearray(1)),
        f.readline,
        f.peek,
        lambda: f.seek(0),
        lambda: f.size,
    ):
        with pytest.raises(io.UnsupportedOperation):
            call()
    with pytest.raises(TypeError):
        f.write("text")
    with pytest.raises(BufferError):
        f.write(memoryview(b"abcdef")[::2])
    f.write(memoryview(b"abcdefgh").cast("I"))
    assert f.tell() == 8
    f.close()
    assert glyd.open(f.name).read() == b"abcdefgh"
    for call in (lambda: f.write(b""), f.flush, f.tell, f.writable):
        with pytest.raises(ValueError, match="closed"):
            call()
    with pytest.raises(TypeError, match="write"):
        glyd.open(object(), "wb")


def test_same_bytes_however_written(tmp_path, text):
    frames = set()
    for step in (777, 100_000):
        for threads in (1, 2, 7):
            sink = io.BytesIO()
            with glyd.open(sink, "wb", threads=threads, segment_size=1 << 14) as f:
                for i in range(0, len(text), step):
                    f.write(text[i : i + step])
            frames.add(sink.getvalue())
    assert len(frames) == 1


def test_unclosed_files_do_not_disturb(tmp_path):
    f = glyd.open(tmp_path / "x.glyd", "wb")
    f.write(b"abc")
    del f
    gc.collect()
    assert glyd.open(tmp_path / "x.glyd").read() == b"abc"
    with pytest.raises(glyd.ParameterError):
        glyd.GlydFile(tmp_path / "x.glyd", "rt")
    gc.collect()


@pytest.mark.parametrize("n_said", [0, -1, 1 << 20])
def test_file_that_miscounts_what_it_took(n_said):
    class Miscounting:
        def write(self, data):
            return n_said

    file = glyd.open(Miscounting(), "wb")
    with pytest.raises(OSError, match=f"took {n_said} bytes of "):
        file.write(bytes(5_000_000))
        file.flush()
    with pytest.raises(glyd.GlydError, match="earlier write failed"):
        file.write(b"more")
    file.abort()

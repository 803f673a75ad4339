# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Reading with `open` and `GlydFile`."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
import threading

import pytest

import glyd


def every_reader(data, tools):
    """Yield functions that give the content of data, each another way."""
    yield "read", lambda: glyd.open(io.BytesIO(data)).read()
    yield "read None", lambda: glyd.open(io.BytesIO(data)).read(None)
    yield "short reads", lambda: glyd.open(tools.ShortReads(data)).read()
    for step in (1000, 1 << 17, 10**6):
        yield f"read {step}", lambda s=step: read_by(glyd.open(io.BytesIO(data)).read, s)
        yield f"read1 {step}", lambda s=step: read_by(glyd.open(io.BytesIO(data)).read1, s)
        yield f"slow {step}", lambda s=step: read_by(glyd.open(tools.Slow(data)).read, s)
        yield f"into {step}", lambda s=step: read_into(glyd.open(io.BytesIO(data)), s)
        yield f"indexed {step}", lambda s=step: read_indexed(io.BytesIO(data), s)
        yield f"indexed short {step}", lambda s=step: read_indexed(tools.ShortReads(data), s)
    yield "lines", lambda: b"".join(glyd.open(io.BytesIO(data)))
    yield "after the first", lambda: read_one_and_rest(io.BytesIO(data))
    yield "all by index", lambda: read_rest_indexed(io.BytesIO(data))
    yield "one thread", lambda: glyd.open(io.BytesIO(data), threads=1).read()
    yield "eight threads", lambda: read_indexed(io.BytesIO(data), 5000, threads=8)


def read_by(read, step):
    return b"".join(iter(lambda: read(step), b""))


def read_one_and_rest(source):
    f = glyd.open(source)
    return f.read(1) + f.read()


def read_into(f, step):
    buffer, out = bytearray(step), []
    while n := f.readinto(buffer):
        out.append(buffer[:n])
        if n < step:
            assert f.read(1) == b""  # short only at the end
    return b"".join(out)


def read_indexed(source, step, **options):
    f = glyd.open(source, **options)
    f.seek(0, io.SEEK_END)
    f.seek(0)
    return read_by(f.read, step)


def read_rest_indexed(source):
    f = glyd.open(source)
    f.seek(0, io.SEEK_END)
    f.seek(0)
    return f.read()


def test_every_reader_gives_all_frames(joined, content, tools):
    for name, reader in every_reader(joined, tools):
        assert reader() == content, name


@pytest.mark.parametrize("i", range(6))
def test_every_reader_gives_each_frame(frames, parts, i, tools):
    for name, reader in every_reader(frames[i], tools):
        assert reader() == parts[i], name


def test_every_reader_sees_faults(frames, parts, joined, tools):
    cut = [joined[:-1], joined[: len(joined) // 2], frames[0] + frames[3][:-9], frames[0][:3], frames[2][:-30], b""]
    for data in cut:
        for name, reader in every_reader(data, tools):
            with pytest.raises(glyd.TruncatedError):
                print(name, len(reader()))
    for garbage in (b"yyy\n", b"y", bytes(512), random.Random(8).randbytes(8) + b"x" * 99):
        for name, reader in every_reader(frames[0] + garbage, tools):
            with pytest.raises(glyd.CorruptDataError) as caught:
                print(name, len(reader()))
            assert caught.value.offset == len(frames[0])
            assert str(len(frames[0])) in str(caught.value)
    flipped = bytearray(frames[3])
    flipped[len(flipped) // 2] ^= 8
    for name, reader in every_reader(frames[0] + flipped, tools):
        with pytest.raises((glyd.ChecksumError, glyd.CorruptDataError)):
            print(name, len(reader()))


def test_good_content_comes_before_the_fault(frames, parts):
    f = glyd.open(io.BytesIO(frames[0] + frames[3][:-9]))
    assert f.read1(5000) == parts[0][:5000]
    assert f.read(1000) == parts[0][5000:6000]
    for _ in range(3):  # and the fault does not turn into an end
        with pytest.raises(glyd.TruncatedError):
            f.read(1)
        with pytest.raises(glyd.TruncatedError):
            f.read()
    f.seek(0)
    assert f.read(6000) == parts[0]


class TestSeek:
    def test_around_every_border(self, joined, content, parts):
        f, edge = glyd.open(io.BytesIO(joined)), 0
        for part in parts:
            edge += len(part)
            for at in (edge - 1, edge, edge + 1):
                if 0 <= at <= len(content):
                    assert f.seek(at) == at
                    assert f.tell() == at
                    assert f.read(5) == content[at : at + 5]
                    assert f.tell() == min(at + 5, len(content))
        assert f.seek(0, io.SEEK_END) == len(content) == f.size
        assert f.read() == b""
        assert f.seek(0) == 0
        assert f.read(7) == content[:7]

    @pytest.mark.parametrize("source", ["memory", "short", "file"])
    def test_at_random(self, joined, content, tools, tmp_path, source):
        rng = random.Random(5)
        path = tmp_path / "joined.glyd"
        path.write_bytes(joined)
        place = {"memory": lambda: io.BytesIO(joined), "short": lambda: tools.ShortReads(joined), "file": lambda: path}
        with glyd.open(place[source]()) as f:
            for _ in range(300):
                size = rng.choice([1, 100, 5000, 70_000, 200_000])
                kind = rng.randrange(4)
                if kind == 0:
                    at = f.seek(rng.randrange(len(content) + 100))
                elif kind == 1:
                    at = f.seek(-rng.randrange(len(content)), io.SEEK_END)
                elif kind == 2:
                    at = f.seek(rng.randrange(-min(f.tell(), 9000), 9000), io.SEEK_CUR)
                else:
                    at = f.tell()
                assert f.tell() == at
                how = rng.randrange(4)
                want = content[at : at + size]
                if how == 0:
                    assert f.read(size) == want
                elif how == 1:
                    buffer = bytearray(size)
                    assert buffer[: f.readinto(buffer)] == want
                elif how == 2:
                    assert want.startswith(got := f.read1(size))
                    assert bool(got) == bool(want)
                else:
                    assert f.readline(size) == io.BytesIO(want).readline()

    def test_whence_and_negative(self, frames):
        f = glyd.open(io.BytesIO(frames[0]))
        for offset, whence in ((-1, 0), (-1, 1), (-(10**6), 2)):
            with pytest.raises(ValueError, match="negative"):
                f.seek(offset, whence)
        with pytest.raises(ValueError):
            f.seek(0, 9)
        assert f.seek(10**12) == 10**12
        assert f.read(10) == b""
        assert f.seek(2) == 2
        assert f.read(3) == b"rst"

    def test_sources_that_cannot(self, joined, content, tools):
        f = glyd.open(tools.Slow(joined))
        assert not f.seekable()
        assert f.read(5) == content[:5]
        assert f.tell() == 5
        for call in (lambda: f.seek(0), lambda: f.size, lambda: f.seek(0, 2)):
            with pytest.raises(io.UnsupportedOperation):
                call()
        assert f.read() == content[5:]

    def test_size_does_not_disturb_a_stream(self, joined, content):
        f = glyd.open(io.BytesIO(joined))
        assert f.read(5) == content[:5]
        assert f.size == len(content)
        assert f.read() == content[5:]
        assert f.size == len(content)

    def test_starts_where_the_object_stands(self, joined, content):
        source = io.BytesIO(b"header of another format" + joined)
        source.seek(24)
        f = glyd.open(source)
        assert f.size == len(content)
        assert f.read(100) == content[:100]
        f.seek(-100, io.SEEK_END)
        assert f.read() == content[-100:]
        f.seek(0)
        assert f.read() == content


def test_peek_and_lines(joined, content):
    f = glyd.open(io.BytesIO(joined))
    assert content.startswith(f.peek())
    assert content.startswith(f.peek(10))
    assert f.tell() == 0
    want = io.BytesIO(content)
    assert f.readline() == want.readline()
    assert f.readline(3) == want.readline(3)
    assert f.readline(0) == b""
    assert f.readlines(1000) == want.readlines(1000)
    assert next(f) == want.readline()
    assert list(f) == list(want)
    with pytest.raises(StopIteration):
        next(f)


def test_zero_reads(frames):
    f = glyd.open(io.BytesIO(frames[0]))
    assert f.read(0) == b""
    assert f.readinto(bytearray()) == 0
    assert f.read(5) == b"first"


def test_properties(frames, tmp_path):
    path = tmp_path / "x.glyd"
    path.write_bytes(frames[0])
    with glyd.open(path) as f:
        assert (f.mode, f.name, f.closed) == ("rb", str(path), False)
        assert f.readable()
        assert f.seekable()
        assert not f.writable()
        assert f.fileno() >= 0
        f.flush()
        with pytest.raises(io.UnsupportedOperation):
            f.write(b"x")
    assert f.closed
    f.close()
    for call in (f.read, f.readable, f.tell, f.fileno, lambda: f.seek(0), lambda: f.size, f.peek, lambda: next(f)):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_objects_stay_open(frames):
    source = io.BytesIO(frames[0])
    with glyd.open(source) as f:
        f.read()
    assert not source.closed


def test_text(tmp_path):
    path = tmp_path / "text.glyd"
    lines = [f"Zeile {i} äöü € \N{SNOWMAN}\n" for i in range(20_000)]
    with glyd.open(path, "wt", encoding="utf-8", newline="") as f:
        f.writelines(lines)
    with glyd.open(path, "rt", encoding="utf-8") as f:
        assert f.readline() == lines[0]
        place = f.tell()
        assert list(f) == lines[1:]
        f.seek(place)
        assert f.readline() == lines[1]
    with glyd.open(path, "rt", encoding="ascii", errors="replace") as f:
        assert f.readline().startswith("Zeile 0 \N{REPLACEMENT CHARACTER}")
    with glyd.open(path, "wt", newline="\r\n", encoding="utf-16") as f:
        f.write("a\nb\n")
    assert glyd.decompress(path.read_bytes()).decode("utf-16") == "a\r\nb\r\n"
    for name in ("encoding", "errors", "newline"):
        with pytest.raises(glyd.ParameterError, match=name):
            glyd.open(path, "rb", **{name: "utf-8"})


def test_pipes(joined, content):
    r, w = os.pipe()

    def feed():
        with open(w, "wb", buffering=0) as f:
            f.writelines(joined[i : i + 5000] for i in range(0, len(joined), 5000))

    thread = threading.Thread(target=feed)
    thread.start()
    with open(r, "rb") as source, glyd.open(source) as f:
        assert not f.seekable()
        assert f.read() == content
    thread.join()


def test_pipes_deliver_what_has_come(text):
    r, w = os.pipe()
    compressor = glyd.Compressor(threads=2)
    with open(r, "rb", buffering=0) as source, open(w, "wb", buffering=0) as sink:
        f = glyd.open(source)
        for i in range(0, 60_000, 6000):
            sink.write(compressor.compress(text[i : i + 6000], compressor.FLUSH_BLOCK))
            assert f.read(6000) == text[i : i + 6000]  # would hang if it waited for more


def test_standard_input(joined, content):
    code = "import sys, glyd; sys.stdout.buffer.write(glyd.open(sys.stdin.buffer).read())"
    out = subprocess.run([sys.executable, "-c", code], input=joined, stdout=subprocess.PIPE, check=True).stdout
    assert out == content


def test_sources_without_data_now(frames):
    class NotNow(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, out):
            return None

    for size in (5, -1):
        with pytest.raises(BlockingIOError):
            glyd.open(NotNow()).read(size)


def test_objects_with_read_only(joined, content):
    class Bare:
        def __init__(self):
            self.data = io.BytesIO(joined)

        def read(self, size=-1):
            return self.data.read(size)

    f = glyd.open(Bare())
    assert not f.seekable()
    assert f.read(100) + f.read() == content


def test_what_cannot_be_opened(tmp_path):
    with pytest.raises(FileNotFoundError):
        glyd.open(tmp_path / "missing")
    with pytest.raises(IsADirectoryError):
        glyd.open(tmp_path)
    for thing in (None, 5.5, b"path", object()):
        with pytest.raises(TypeError, match="path or a binary file object"):
            glyd.open(thing)
    for mode in ("", "rw", "r+", "br", "U", "rbt", "q"):
        with pytest.raises(glyd.ParameterError, match="mode"):
            glyd.open(tmp_path / "x", mode)


def test_limits(text):
    frame = glyd.compress(text, segment_size=1 << 14)
    for limits, name in (
        (glyd.Limits(max_output=1000), "max_output"),
        (glyd.Limits(max_memory=1000), "max_memory"),
        (glyd.Limits(max_segments=3), "max_segments"),
    ):
        for call in (lambda f: f.read(), lambda f: [*f], lambda f: (f.seek(400_000), f.read(1))):
            with pytest.raises(glyd.LimitError, match=name):
                call(glyd.open(io.BytesIO(frame), limits=limits))
    enough = glyd.Limits(max_output=len(text), max_memory=1 << 24, max_segments=99)
    assert glyd.open(io.BytesIO(frame), limits=enough).read() == text

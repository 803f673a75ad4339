# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Input that is cut, changed or made up: refused with an error of ours, at bounded cost."""

from __future__ import annotations

import contextlib
import io
import random
import resource
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glyd

MAGIC = b"\x9dGLY"


def readers():
    """Every way to the content of data."""
    return [
        glyd.decompress,
        lambda data: glyd.open(io.BytesIO(data)).read(),
        lambda data: b"".join(iter(lambda f=glyd.open(io.BytesIO(data)): f.read1(50), b"")),  # noqa: B008
        by_index,
        by_frames,
    ]


def by_index(data):
    f = glyd.open(io.BytesIO(data))
    f.seek(0, io.SEEK_END)
    f.seek(0)
    return f.read()


def by_frames(data):
    out = []
    while True:
        d = glyd.Decompressor()
        out.append(d.decompress(data))
        if not d.eof:
            raise glyd.TruncatedError("as the caller must see it")
        data = d.unused_data
        if not data:
            return b"".join(out)


@pytest.fixture(scope="module")
def small_frames(tools):
    text = tools.make_text(900)
    made = [
        glyd.compress(b""),
        glyd.compress(b"a"),
        glyd.compress(bytes(5000)),
        glyd.compress(random.Random(1).randbytes(100)),
        *(glyd.compress(text, level) for level in glyd.LEVELS),
        tools.stream(text, 400, segment_size=1024),
        glyd.compress(text * 3, segment_size=1024),
        tools.skippable(b"note") + glyd.compress(b"abc"),
    ]
    return [(frame, glyd.decompress(frame)) for frame in made]


def test_cut_anywhere(small_frames):
    for frame, _ in small_frames:
        whole = {0, len(frame)}
        if frame.startswith(b"\x9dGLS"):
            whole.add(24)  # the skippable frame alone is a stream, of no content
        for size in range(1, len(frame)):
            if size in whole:
                continue
            for reader in readers():
                with pytest.raises(glyd.TruncatedError) as caught:
                    reader(frame[:size])
                assert isinstance(caught.value, EOFError)


def test_any_bit_changed(small_frames):
    rng = random.Random(9)
    n_changed = n_equal = 0
    for frame, content in small_frames:
        for at in range(len(frame)):
            n_changed += len(readers())
            changed = bytearray(frame)
            changed[at] ^= 1 << rng.randrange(8)
            for reader in readers():
                try:
                    out = reader(bytes(changed))
                except (glyd.FormatError, glyd.LimitError):
                    continue
                # a few bits mean nothing: the data of skippable frames, padding of bit streams
                assert out == content
                n_equal += 1
    assert n_equal < n_changed / 20


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_garbage(data):
    for start in (b"", MAGIC, MAGIC + b"\x01"):
        for reader in readers():
            with pytest.raises(glyd.FormatError):
                print(reader(start + data))


@given(
    data=st.binary(min_size=1, max_size=3000),
    edits=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=5),
    level=st.sampled_from(glyd.LEVELS),
)
@settings(max_examples=150, deadline=None)
def test_never_wrong_content(data, edits, level):
    frame = bytearray(glyd.compress(data * 3, level, segment_size=1024))
    for where, value in edits:
        frame[int(where * (len(frame) - 1))] = value
    for reader in readers():
        with contextlib.suppress(glyd.FormatError, glyd.LimitError):
            assert reader(bytes(frame)) == data * 3


def header(tools, *, log=20, code=56, size=None, flags=0, extra=b""):
    """Make a frame header of any values."""
    flags |= (4 if size is not None else 0) | (0 if size is not None else 8)
    out = MAGIC + bytes([1, flags, 4, log, code])
    if size is not None:
        while size >= 128:
            out += bytes([size & 127 | 128])
            size >>= 7
        out += bytes([size])
    return tools.seal(out + extra)


def test_features_to_come(tools):
    good = header(tools, size=0, log=10, code=24)
    for flag in (0x20, 0x40, 0x80, 3):
        with pytest.raises(glyd.UnsupportedVersionError):
            glyd.decompress(header(tools, size=0, log=10, code=24, flags=flag))
    assert len(good) == 14
    frame = bytearray(glyd.compress(b"abc"))
    at = next(glyd.iter_segments(frame)).offset
    frame[at] = 100
    with pytest.raises(glyd.UnsupportedVersionError) as caught:
        glyd.decompress(frame)
    assert caught.value.found == 100


def test_known_extension_rules(tools):
    """Even types may be passed over, odd ones must be known."""
    frame = glyd.compress(b"abc" * 1000, segment_size=1024)
    info = glyd.get_frame_info(frame)
    head = frame[: info.header_nbytes - 4]
    for kind, is_fine in ((2, True), (3, False), (200, True), (201, False)):
        record = (bytes([kind]) if kind < 128 else bytes([kind & 127 | 128, kind >> 7])) + b"\x05hello"
        new = tools.seal(head[:5] + bytes([head[5] | 16]) + head[6:] + bytes([len(record)]) + record)
        frame2 = new + frame[info.header_nbytes : info.frame_nbytes - info.trailer_nbytes]
        tail = bytearray(frame[-info.trailer_nbytes : -4])
        tail[-12:-4] = (len(frame) + len(new) - info.header_nbytes).to_bytes(8, "little")
        frame2 += bytes(tail) + tools.checksum32(bytes(tail))
        for reader in readers():
            if is_fine:
                assert reader(frame2) == b"abc" * 1000
            else:
                with pytest.raises(glyd.UnsupportedVersionError):
                    reader(frame2)
        if is_fine:
            f = glyd.open(io.BytesIO(frame2))
            f.seek(2000)
            assert f.read(5) == (b"abc" * 1000)[2000:2005]


HUGE = """
import io, resource, sys
import glyd
data = bytes.fromhex(sys.argv[1])
limit = 400 << 20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for how in (glyd.decompress, lambda d: glyd.open(io.BytesIO(d)).read(1), lambda d: glyd.open(io.BytesIO(d)).seek(0, 2),
            lambda d: glyd.Decompressor().decompress(d, 1), lambda d: list(glyd.iter_frames(d)),
            lambda d: glyd.decompress_into(d, bytearray(10))):
    try:
        print("got", repr(how(data))[:50])
    except glyd.GlydError as error:
        print(type(error).__name__)
# not ru_maxrss: a child starts with its parent's
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print("peak", peak)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="measures memory the way Linux counts it")
def test_declared_sizes_allocate_nothing(tools):
    """Headers and segments that promise gigabytes, in a few bytes."""
    segment = b"\x03" + b"\x80\x80\x80\x80\x04" + b"\x80\x80\x80\x80\x04"  # LZ: 1 GiB from 1 GiB
    for data in (
        header(tools, log=30, code=151, size=1 << 60),
        header(tools, log=30, code=151, size=1 << 60) + segment + b"x" * 50,
        header(tools, log=30, code=151) + segment + b"x" * 50,
        header(tools, log=30, code=151) + b"\0" + b"\xff" * 9 + b"\x01" + b"x" * 50,
    ):
        run = subprocess.run([sys.executable, "-c", HUGE, data.hex()], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        lines = run.stdout.split("\n")
        assert int(lines[6].split()[1]) < 100_000, run.stdout  # KiB
        assert not any(line.startswith("got") for line in lines[:2] + lines[5:6]), run.stdout


def test_bombs_stop_at_the_limit():
    bomb = glyd.compress(bytes(1 << 26)) * 50  # 3 GiB in 3 KB
    assert len(bomb) < 20_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(glyd.LimitError):
        glyd.decompress(bomb, max_size=1 << 20)
    with pytest.raises(glyd.LimitError):
        print(len(glyd.open(io.BytesIO(bomb), limits=glyd.Limits(max_output=1 << 20)).read()))
    d = glyd.Decompressor()
    assert len(d.decompress(bomb, 1000)) == 1000
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 64 * (1 if sys.platform == "linux" else 1024) << 10


def test_zeros_after_a_frame_are_garbage(small_frames):
    for frame, _ in small_frames:
        for n in (1, 3, 4, 512):
            for reader in readers():
                with pytest.raises(glyd.FormatError):
                    reader(frame + bytes(n))


def test_random_bytes_behind_the_magic():
    rng = random.Random(30)
    for _ in range(300):
        with pytest.raises(glyd.FormatError):
            glyd.decompress(MAGIC + rng.randbytes(30))

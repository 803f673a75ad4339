# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Contents beyond 4 GiB, in bounded memory: repeated bytes make them cheap."""

from __future__ import annotations

import io
import random
import resource
import sys

import glyd

GIB = 1 << 30
SIZE = 5 * GIB + 12_345


def peak() -> int:
    """Return the largest memory of this process so far, in bytes."""
    n = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return n if sys.platform == "darwin" else n * 1024


def make_large(head: bytes, tail: bytes) -> bytes:
    c = glyd.Compressor("turbo", segment_size=32 << 20, threads=1)
    zeros = bytes(32 << 20)
    out, left = [c.compress(head)], SIZE - len(head) - len(tail)
    while left:
        n = min(left, len(zeros))
        out.append(c.compress(memoryview(zeros)[:n]))
        left -= n
    return b"".join([*out, c.compress(tail), c.flush()])


def test_beyond_4_gib(noise):
    before = peak()
    head, tail = noise[:1000], noise[1000:3000]
    frame = make_large(head, tail)
    assert len(frame) < 100_000
    info = glyd.get_frame_info(frame)
    assert info.content_size == SIZE
    f = glyd.open(io.BytesIO(frame), threads=2)
    assert f.size == SIZE
    rng = random.Random(3)
    for at in [*(rng.randrange(1000, SIZE - 3000) for _ in range(20)), 4 * GIB - 50, 2 * GIB - 50]:
        f.seek(at)
        assert f.read(100) == bytes(100)
    f.seek(-2000, io.SEEK_END)
    assert f.tell() == SIZE - 2000
    assert f.read() == tail
    f.seek(0)
    assert f.read(1005) == head + bytes(5)
    d = glyd.Decompressor(threads=1)
    n, last = 0, b""
    out = d.decompress(frame, 16 << 20)
    while out or not d.eof:
        n += len(out)
        last = (last + out[-3000:])[-3000:]
        out = b"" if d.eof else d.decompress(b"", 16 << 20)
    assert n == SIZE
    assert last[-2000:] == tail
    assert peak() - before < 400 << 20


def test_many_frames_beyond_4_gib():
    one = glyd.compress(bytes(256 << 20), "turbo")
    f = glyd.open(io.BytesIO(one * 17 + glyd.compress(b"end")))
    assert f.size == 17 * (256 << 20) + 3
    f.seek(-5, io.SEEK_END)
    assert f.read() == b"\0\0end"

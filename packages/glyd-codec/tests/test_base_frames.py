# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Bases that are given as frames: read as far as they are needed, never trusted."""

from __future__ import annotations

import gc
import io
import itertools
import random
import struct
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glyd
import glyd_codec._base

RNG = random.Random(11)
NOISE = RNG.randbytes(600_000)
LINES = b"".join(b"%06d a line of %s\n" % (i, RNG.randbytes(9).hex().encode()) for i in range(16_000))


def edited(data, seed):
    """Return data with pieces changed, put in, taken out and moved."""
    rng = random.Random(seed)
    out = bytearray(data)
    for _ in range(12):
        if not out:
            break
        at = rng.randrange(len(out))
        n = rng.choice((1, 5, 40, 700, 9000))
        what = rng.randrange(4)
        if what == 0:
            out[at : at + n] = rng.randbytes(len(out[at : at + n]))
        elif what == 1:
            out[at:at] = rng.randbytes(n) if n < 700 else LINES[at % 9999 :][:n]
        elif what == 2:
            del out[at : at + n]
        else:
            piece = bytes(out[at : at + n])
            del out[at : at + n]
            place = rng.randrange(len(out) + 1)
            out[place:place] = piece
    return bytes(out)


def chain_of(first, n, **options):
    """Return versions, and the frame of each against the one before."""
    versions, frames = [first], [glyd.compress(first, **options)]
    for i in range(n):
        versions.append(edited(versions[-1], i))
        frames.append(glyd.compress(versions[-1], base=versions[-2], **options))
    return versions, frames


def through(frames):
    base = None
    for frame in frames:
        base = glyd.Base.from_frames(frame, base=base)
    return base


@pytest.mark.parametrize("first", [NOISE, LINES, bytes(300_000), LINES[:20]], ids=["noise", "lines", "zeros", "tiny"])
def test_chains_of_versions(first):
    versions, frames = chain_of(first, 5, segment_size=1 << 16)
    for i in range(1, len(frames)):
        base = through(frames[:i])
        assert base.nbytes == len(versions[i - 1])
        for threads in (1, 4):
            assert glyd.decompress(frames[i], base=base, threads=threads) == versions[i]


def test_ranges_decode_what_they_touch():
    first = RNG.randbytes(8 << 20)
    versions, frames = chain_of(first, 4, segment_size=1 << 20)

    class Counting(io.BytesIO):
        n = 0

        def readinto(self, out):
            Counting.n += len(out)
            return super().readinto(out)

    with glyd.open(Counting(frames[-1]), base=through(frames[:-1])) as file:
        for start in (0, 1_000_000, 5_000_000, len(versions[-1]) - 1000):
            file.seek(start)
            assert file.read(4096) == versions[-1][start : start + 4096]
    # damage of the root where nothing was read does not matter, where something was read it does
    broken = bytearray(frames[0])
    broken[len(broken) // 2] ^= 1  # the segment of 1 MiB in the middle
    with glyd.open(io.BytesIO(frames[-1]), base=through([bytes(broken), *frames[1:-1]])) as file:
        assert file.read(4096) == versions[-1][:4096]
        file.seek(len(versions[-1]) // 2)
        with pytest.raises(glyd.ChecksumError):
            file.read(4096)


def test_weights_against_the_numbers_of_a_base():
    def model(scale):
        values = struct.pack("<60000f", *(0.01 * i % 3 + scale * (i % 7) for i in range(60_000)))
        header = b'{"w":{"dtype":"F32","shape":[60000],"data_offsets":[0,240000]}}'.ljust(64)
        return struct.pack("<Q", len(header)) + header + values

    versions = [model(scale) for scale in (0, 1e-6, 2e-6, 3e-6)]
    frames = [glyd.compress(versions[0])]
    frames += [glyd.compress(new, base=old) for old, new in itertools.pairwise(versions)]
    assert {s.kind for s in glyd.iter_segments(frames[-1])} == {"weights"}
    assert glyd.decompress(frames[-1], base=through(frames[:-1])) == versions[-1]


def test_another_base_is_found_out():
    versions, frames = chain_of(LINES, 2)
    same_size = LINES[::-1]
    with pytest.raises(glyd.ChecksumError):
        glyd.decompress(frames[1], base=glyd.Base.from_frames(glyd.compress(same_size)))
    with pytest.raises(glyd.WrongBaseError):
        glyd.decompress(frames[1], base=glyd.Base.from_frames(glyd.compress(LINES[1:])))
    with pytest.raises(glyd.MissingBaseError):
        glyd.Base.from_frames(frames[1])
    with pytest.raises(glyd.WrongBaseError):
        glyd.Base.from_frames(frames[1], base=b"another")
    unchecked = glyd.compress(versions[1], base=LINES, checksum=False)
    with pytest.raises(glyd.WrongBaseError):  # nothing would tell whether it was the right one
        glyd.decompress(unchecked, base=through(frames[:1]))
    with pytest.raises(glyd.TruncatedError):
        glyd.Base.from_frames(b"")


def test_damage_below_is_never_wrong_content():
    versions, frames = chain_of(LINES, 2, segment_size=1 << 16)
    for i in range(60):
        rng = random.Random(i)
        broken = [bytearray(frame) for frame in frames[:2]]
        part = broken[rng.randrange(2)]
        part[rng.randrange(len(part))] ^= 1 << rng.randrange(8)
        try:
            found = glyd.decompress(frames[2], base=through(map(bytes, broken)))
        except glyd.GlydError:
            continue
        assert found == versions[2]


def test_it_is_for_reading_alone():
    base = through([glyd.compress(LINES)])
    assert base.id == bytes(16)
    with pytest.raises(glyd.ParameterError):
        glyd.compress(LINES, base=base)
    assert glyd.decompress(glyd.compress(b"alone"), base=base) == b"alone"


def test_memory_of_garbage_in_a_cycle():
    """The collector clears views before what lends their memory: this ended the process."""

    class Node:
        pass

    data = glyd.compress(LINES)
    gc.collect()
    before = len(glyd_codec._base._held)
    for _ in range(10):
        node = Node()
        node.itself = node
        node.base = glyd.Base(memoryview(bytearray(LINES))[10:5000].toreadonly())
        node.frames = glyd.Base.from_frames(memoryview(data)[:])
        node.above = glyd.Base.from_frames(memoryview(glyd.compress(LINES, base=LINES))[:], base=node.frames)
        del node
        gc.collect()
    assert len(glyd_codec._base._held) == before


def test_there_is_an_end_to_depth():
    frame = glyd.compress(LINES[:5000])
    frames = [frame] + [glyd.compress(LINES[:5000], base=LINES[:5000])] * 64
    assert glyd.decompress(frames[-1], base=through(frames[:-1])) == LINES[:5000]
    with pytest.raises(glyd.ParameterError):
        through(frames)


def test_reads_that_jump_too_much_say_so():
    """Segments are kept, but not all of them: pieces in random order would decode the base again and again."""
    size, segment, piece = 192 << 20, 8 << 20, 300
    rng = random.Random(3)
    old = bytearray(size)
    marks = rng.sample(range(0, size - 4096, 4096), 12_000)
    for at in marks:
        old[at : at + piece] = rng.randbytes(piece)
    root = glyd.compress(old, "turbo", segment_size=segment)
    new = b"".join(old[at : at + piece] for at in marks)
    frame = glyd.compress(new, base=bytes(old))
    assert len(frame) < len(new) // 4
    with pytest.raises(glyd.LimitError):
        glyd.decompress(frame, base=through([root]))
    assert glyd.decompress(frame, base=glyd.decompress(root)) == new


def test_threads_share_it():
    versions, frames = chain_of(NOISE, 3, segment_size=1 << 15)
    base = through(frames[:-1])
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: glyd.decompress(frames[-1], base=base, threads=2), range(24)))
    assert all(result == versions[-1] for result in results)


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=3000), st.lists(st.integers(0, 10_000), min_size=1, max_size=6), st.integers(10, 14))
def test_any_versions(first, seeds, log):
    versions, frames = [first * 3], [glyd.compress(first * 3, segment_size=1 << log)]
    for seed in seeds:
        versions.append(edited(versions[-1] or b"?", seed))
        frames.append(glyd.compress(versions[-1], base=versions[-2], segment_size=1 << log))
    for i in range(1, len(frames)):
        assert glyd.decompress(frames[i], base=through(frames[:i])) == versions[i]

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Frames that are stored with a dictionary: every interface, what is missing, and the reference decoder."""

from __future__ import annotations

import importlib
import io
import random
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glyd

TOOLS = Path(__file__).resolve().parents[3] / "tools"
STATUS = {
    12: glyd.UnsupportedVersionError,
    13: glyd.CorruptDataError,
    20: glyd.CorruptDataError,
    33: glyd.WrongBaseError,
}


def lines(n: int, seed: int = 1) -> bytes:
    rng = random.Random(seed)
    words = (b"opened", b"closed by the client", b"timed out", b"refused", b"waits for a reply")
    return b"".join(
        b"2026-11-%02d connection %d %s after %d ms\n"
        % (rng.randrange(1, 31), rng.randrange(10**5), rng.choice(words), rng.randrange(3000))
        for _ in range(n)
    )


@pytest.fixture(scope="module")
def dictionary() -> glyd.Dictionary:
    return glyd.train_dictionary([lines(1, seed) for seed in range(1500)], size=4096)


@pytest.fixture(scope="module")
def reference():
    if not (TOOLS / "reference_decoder.py").is_file():
        pytest.skip(f"the reference decoder is in a checkout only, not in an sdist: no {TOOLS}")
    sys.path.insert(0, str(TOOLS))
    yield importlib.import_module("reference_decoder")
    sys.path.remove(str(TOOLS))


@pytest.mark.parametrize("level", glyd.LEVELS)
def test_every_level(dictionary, level):
    content = lines(20, seed=1 << 20)
    frame = glyd.compress(content, level, dictionary=dictionary)
    assert len(frame) < 0.85 * len(glyd.compress(content, level))
    assert glyd.decompress(frame, dictionary=dictionary) == content
    assert glyd.get_frame_info(frame).dictionary_id == dictionary.id
    assert glyd.get_frame_info(glyd.compress(content, level)).dictionary_id is None
    assert {segment.kind for segment in glyd.iter_segments(frame)} == {"dictionary"}
    out = bytearray(len(content))
    assert glyd.decompress_into(frame, out, dictionary=dictionary) == len(content)
    assert out == content


@given(data=st.binary(max_size=2000), level=st.sampled_from([name for name in glyd.LEVELS if name != "cold"]))
@settings(max_examples=60, deadline=None)
def test_anything_comes_back(dictionary, data, level):
    frame = glyd.compress(data, level, dictionary=dictionary)
    assert glyd.decompress(frame, dictionary=dictionary) == data


@given(
    parts=st.lists(st.integers(0, 1499) | st.binary(max_size=20), max_size=30),
    level=st.sampled_from([name for name in glyd.LEVELS if name != "cold"]),
    segment_size=st.sampled_from([None, 1024]),
    records=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_pieces_of_samples_come_back(dictionary, parts, level, segment_size, records):
    data = b"".join(lines(1, part) if isinstance(part, int) else part for part in parts)
    frame = glyd.compress(data, level, dictionary=dictionary, segment_size=segment_size, records=records)
    assert glyd.decompress(frame, dictionary=dictionary, threads=2) == data


def test_streams_and_files(dictionary, tmp_path):
    content = lines(2000, seed=7)
    compressor = glyd.Compressor("max", dictionary=dictionary, segment_size=16384)
    frame = b"".join(compressor.compress(content[i : i + 5000]) for i in range(0, len(content), 5000))
    frame += compressor.flush()
    reader = glyd.Decompressor(dictionary=dictionary)
    got = b"".join(reader.decompress(frame[i : i + 777]) for i in range(0, len(frame), 777))
    assert (got, reader.eof) == (content, True)
    path = tmp_path / "lines.glyd"
    with glyd.open(path, "wb", level="high", dictionary=dictionary, segment_size=16384) as file:
        file.write(content)
    with glyd.open(path, dictionary=dictionary) as file:
        assert file.read() == content
        for at in (70_000, 3, 100_000, len(content) - 10):
            file.seek(at)
            assert file.read(500) == content[at : at + 500]
    with glyd.open(path, "rt", dictionary=dictionary) as text:
        assert text.readline().encode() == content.split(b"\n")[0] + b"\n"
    plain = len(glyd.compress(content, "high", segment_size=16384))
    assert path.stat().st_size < 0.97 * plain  # each segment gains by it


def test_what_is_missing_is_named(dictionary):
    frame = glyd.compress(lines(10), dictionary=dictionary)
    other = glyd.train_dictionary([lines(1, seed) for seed in range(50)], size=4096)
    readers = (
        lambda d: glyd.decompress(frame, dictionary=d),
        lambda d: glyd.Decompressor(dictionary=d).decompress(frame),
        lambda d: glyd.open(io.BytesIO(frame), dictionary=d).read(),
        lambda d: glyd.decompress_into(frame, bytearray(10000), dictionary=d),
    )
    for read in readers:
        with pytest.raises(glyd.MissingBaseError, match=f"needs a dictionary.*{dictionary.id:#x}"):
            read(None)
        with pytest.raises(glyd.WrongBaseError, match=f"{dictionary.id:#x}, found {other.id:#x}"):
            read(other)
    with pytest.raises(TypeError, match=r"glyd\.Dictionary"):
        glyd.compress(b"", dictionary=dictionary.data)
    with pytest.raises(glyd.ParameterError, match="exclude each other"):
        glyd.compress(b"", base=b"old", dictionary=dictionary)
    with pytest.raises(glyd.MissingBaseError):
        glyd.Base.from_frames(frame)


def test_objects_and_frames_that_need_none(dictionary):
    content = lines(3)
    assert glyd.decompress(dictionary.compress(content), dictionary=dictionary) == content
    assert glyd.decompress(glyd.compress(content), dictionary=dictionary) == content
    both = glyd.compress(content) + glyd.compress(content, dictionary=dictionary)
    assert glyd.decompress(both, dictionary=dictionary) == 2 * content
    with pytest.raises(glyd.LimitError, match="max_size"):
        glyd.decompress(dictionary.compress(content), dictionary=dictionary, max_size=5)


def test_containers_are_opened_beside_it(dictionary):
    gzip = importlib.import_module("gzip")
    content = gzip.compress(lines(3000), mtime=0)
    frame = glyd.compress(content, "ultra", dictionary=dictionary)
    assert {segment.kind for segment in glyd.iter_segments(frame)} == {"opened"}
    assert glyd.decompress(frame, dictionary=dictionary) == content


@pytest.mark.parametrize("level", glyd.LEVELS)
def test_the_reference_decoder_reads_it(dictionary, reference, level):
    rng = random.Random(level)
    for n in (1,) if level == "cold" else (1, 3, 50, 400):
        content = lines(n, rng.randrange(10**6))
        records = n > 50 and level != "turbo"
        frame = glyd.compress(
            content, level, dictionary=dictionary, records=records, segment_size=rng.choice([None, 4096])
        )
        assert reference.decode(frame, None, dictionary.data) == content


def test_the_reference_decoder_reads_two_parts(dictionary, reference):
    content = lines(300, 5) * 65 + lines(100, 6)
    assert len(content) > 1 << 20
    for level in ("fast", "max"):
        frame = glyd.compress(content, level, dictionary=dictionary)
        assert glyd.decompress(frame, dictionary=dictionary) == content
        assert reference.decode(frame, None, dictionary.data) == content


def test_golden_files(reference):
    golden = TOOLS.parent / "native" / "tests" / "golden_dictionary"
    data = (golden / "dictionary.bin").read_bytes()
    dictionary = glyd.Dictionary(data)
    entries = [line.split() for line in (golden / "manifest.txt").read_text(encoding="utf-8").splitlines()]
    assert sorted(f"{name}.glyd" for name, *_ in entries) == sorted(path.name for path in golden.glob("*.glyd"))
    assert len(entries) > 30
    for name, status, size, check in entries:
        frame = (golden / f"{name}.glyd").read_bytes()
        if status != "0":
            with pytest.raises(STATUS[int(status)]):
                glyd.decompress(frame, dictionary=dictionary)
            with pytest.raises(reference.FormatError):
                reference.decode(frame, None, data)
            continue
        content = glyd.decompress(frame, dictionary=dictionary)
        assert (len(content), glyd.checksum(content)) == (int(size), int(check, 16))
        assert reference.decode(frame, None, data) == content


def test_damage_is_read_alike(dictionary, reference):
    """Without a check to see it: both read the same or refuse."""
    rng = random.Random(3)
    outcomes = set()
    for seed in range(120):
        level = rng.choice(["default", "max", "ultra"])
        frame = bytearray(glyd.compress(lines(4, seed), level, dictionary=dictionary, checksum=False))
        for _ in range(rng.randrange(1, 3)):
            frame[rng.randrange(27, len(frame))] ^= 1 << rng.randrange(8)
        try:
            want = reference.decode(bytes(frame), None, dictionary.data)
        except reference.FormatError:
            with pytest.raises(glyd.GlydError):
                glyd.decompress(frame, dictionary=dictionary)
            outcomes.add("refused")
        else:
            assert glyd.decompress(frame, dictionary=dictionary) == want
            outcomes.add("read")
    assert outcomes == {"read", "refused"}

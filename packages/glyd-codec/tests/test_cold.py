# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Level cold: round trips, against the slow reader, settings, seeking, memory."""

from __future__ import annotations

import importlib
import io
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glyd

TOOLS = Path(__file__).resolve().parents[3] / "tools"
WORDS = [
    "the",
    "model",
    "weighs",
    "what",
    "came",
    "after",
    "each",
    "context",
    "and",
    "codes",
    "a",
    "bit",
    "by",
    "its",
    "chance",
]


def text(size, seed=1):
    rng = random.Random(seed)
    return " ".join(rng.choice(WORDS) for _ in range(size // 4)).encode()[:size]


def rows(n):
    rng = random.Random(2)
    lines = (
        f"{i},2026-11-30 10:{i // 60 % 60:02}:{i % 60:02},{rng.choice(WORDS)},{rng.randrange(500)}\n" for i in range(n)
    )
    return "".join(lines).encode()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=40).map(b"".join), st.integers(1, 4))
def test_any_bytes_come_back(data, times):
    data *= times
    assert glyd.decompress(glyd.compress(data, "cold")) == data


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=40).map(b"".join), st.integers(1, 4), st.booleans())
def test_small_contents_are_never_larger_than_at_ultra(data, times, checksum):
    data *= times
    assert len(glyd.compress(data, "cold", checksum=checksum)) <= len(glyd.compress(data, "ultra", checksum=checksum))


@pytest.mark.parametrize("data", [b"", b"abc", b"0123456789abcdef" * 11, b"ab" * 9000, bytes(range(256)) * 256])
def test_tiny_and_even_contents_are_never_larger_than_at_ultra(data):
    for segment_size in (None, 1 << 12):
        sizes = [len(glyd.compress(data, level, segment_size=segment_size)) for level in ("cold", "ultra")]
        assert sizes[0] <= sizes[1]


def test_small_segments_of_streams_are_blocks_where_those_are_smaller():
    data = random.Random(1).randbytes(300) * 200
    writer = glyd.Compressor("cold")
    frame = writer.compress(data) + writer.flush()
    assert glyd.decompress(frame) == data
    assert [segment.kind for segment in glyd.iter_segments(frame)] == ["lz"]


def test_fewer_bytes_than_ultra():
    for data in (text(100_000), rows(2000), b"/usr/lib/python3/dist-packages\n" * 50):
        assert len(glyd.compress(data, "cold")) < len(glyd.compress(data, "ultra"))


@pytest.mark.skipif(not (TOOLS / "reference_cold.py").is_file(), reason=f"no {TOOLS}: the reader is in a checkout only")
def test_the_slow_reader_agrees(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    decode = importlib.import_module("reference_decoder").decode
    rng = random.Random(3)
    mixed = text(700) + rng.randbytes(100) + text(700) + rng.randbytes(3) + text(700)  # the gate opens, and fails
    for data in (text(1200), rows(30), rng.randbytes(40) * 20, mixed):
        assert decode(glyd.compress(data, "cold")) == data


def test_streams_and_threads_give_the_same_frame():
    data = text(150_000)
    frames = {bytes(glyd.compress(data, "cold", segment_size=1 << 15, threads=n)) for n in (1, 3)}
    assert len(frames) == 1
    writer = glyd.Compressor("cold", segment_size=1 << 15, threads=2)
    streamed = b"".join(writer.compress(data[i : i + 7000]) for i in range(0, len(data), 7000)) + writer.flush()
    assert glyd.decompress(streamed) == data
    reader = glyd.Decompressor()
    assert reader.decompress(frames.pop()) == data


def test_seeking_decodes_a_segment():
    data = rows(3000)
    with glyd.open(io.BytesIO(glyd.compress(data, "cold", segment_size=1 << 14))) as file:
        file.seek(50_000)
        assert file.read(1000) == data[50_000:51_000]


def test_the_header_states_the_memory():
    frame = glyd.compress(text(40_000), "cold")
    with pytest.raises(glyd.LimitError):
        glyd.decompress(frame, limits=glyd.Limits(max_memory=2 << 20))
    assert glyd.decompress(frame, limits=glyd.Limits(max_memory=32 << 20)) == text(40_000)


@pytest.mark.parametrize("setting", [{"long": True}, {"base": b"older"}, {"records": True}, {"segment_size": 1 << 27}])
def test_settings_that_it_does_not_go_with(setting):
    with pytest.raises(glyd.ParameterError, match="cold"):
        glyd.compress(b"x", "cold", **setting)


def test_damage_is_found():
    frame = bytearray(glyd.compress(text(3000), "cold"))
    rng = random.Random(4)
    for _ in range(60):
        broken = bytearray(frame)
        broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
        with pytest.raises(glyd.FormatError):
            glyd.decompress(bytes(broken))
    for cut in range(0, len(frame), 61):
        with pytest.raises(glyd.TruncatedError):
            glyd.decompress(bytes(frame[:cut]))

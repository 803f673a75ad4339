# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Filters of machine code and numbers: what is found by itself, and whatever a frame may hold, read as the reference does."""

from __future__ import annotations

import importlib
import random
import struct
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glyd

TOOLS = Path(__file__).resolve().parents[3] / "tools"
if not (TOOLS / "reference_decoder.py").is_file():
    pytest.skip(f"the reference decoder is in a checkout only, not in an sdist: no {TOOLS}", allow_module_level=True)

sys.path.insert(0, str(TOOLS))
reference = importlib.import_module("reference_decoder")
breaker = importlib.import_module("filter_breaker")
golden = importlib.import_module("make_golden")
sys.path.remove(str(TOOLS))

CODE = st.one_of(
    st.sampled_from([b"\xe8", b"\xe9", b"\x0f\x85", b"\x48\x8b\x05", b"\x4c\x8d\x1d", b"\x48", b"\x8b"]),
    st.binary(max_size=9),
    st.integers(-200, 200).map(lambda v: struct.pack(">i", v)),
    st.integers(0, 1 << 26).map(lambda v: struct.pack("<I", 0x94000000 | v)),
    st.integers(0, 1 << 24).map(lambda v: struct.pack("<I", 0x90000000 | v)),
)


@pytest.mark.parametrize("level", ["high", "ultra"])
@pytest.mark.parametrize("name", ["x86", "arm64", "delta"])
def test_filters_are_found(name, level):
    content = dict(golden.numbers_and_code())[name]
    frame = glyd.compress(content, level)
    assert [segment.kind for segment in glyd.iter_segments(frame)] == ["filtered"]
    assert len(frame) < 0.97 * len(glyd.compress(content, "max"))
    assert glyd.decompress(frame) == content
    assert reference.decode(frame) == content


def test_text_and_noise_have_no_filter():
    rng = random.Random(1)
    for content in (rng.randbytes(200_000), b"".join(b"%d is a number\n" % rng.randrange(10**6) for _ in range(9000))):
        frame = glyd.compress(content, "high")
        assert "filtered" not in [segment.kind for segment in glyd.iter_segments(frame)]
        assert glyd.decompress(frame) == content


@settings(max_examples=300, deadline=None)
@given(
    st.lists(CODE, min_size=1, max_size=80).map(b"".join).filter(bool),
    st.sampled_from([b"\1", b"\2", *(bytes([3, shape]) for shape in range(64) if shape & 3 != 3)]),
)
def test_any_content_is_changed_back_as_the_reference_does(changed, head):
    frame = breaker.filtered(head, changed)
    assert glyd.decompress(frame) == reference.decode(frame)


@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=True), st.sampled_from(["high", "ultra"]))
def test_any_code_comes_back(rng, level):
    starts = (b"\xe8", b"\xe9", b"\x0f\x85", b"\x48\x8b\x05", b"\x4c\x8d\x1d", b"\x48", b"\x8b", b"")
    content = b"".join(
        rng.choice(starts) + struct.pack("<i", rng.randrange(-5000, 5000)) for _ in range(rng.randrange(200, 2000))
    )
    assert glyd.decompress(glyd.compress(content, level)) == content

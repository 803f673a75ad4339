# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Fingerprints: as their definition says, wherever the content stands and however it is cut."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import glyd

MASK = (1 << 64) - 1


def mix(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


GEAR = [mix(((b + 1) * 0x9E3779B97F4A7C15) & MASK) for b in range(256)]


def reference(data):
    """The definition in native/src/match/match_sketch.h, word by word."""
    h, last, out = 0, None, []
    for i, b in enumerate(data):
        h = (2 * h + GEAR[b]) & MASK
        if h >> 52 == 0 and (last is None or i - last >= 64):
            out.append(mix(h))
            last = i
    return out


def fingerprints(*pieces):
    walker = glyd.Fingerprinter()
    return [value for piece in pieces for value in walker.update(piece)]


def noise(n, seed=1):
    return random.Random(seed).randbytes(n)


def runs():
    """A byte whose runs are full of marks, if there is one, and other runs."""
    return b"".join(bytes([b]) * 300 for b in range(256))


@pytest.mark.parametrize("data", [b"", b"a", noise(63), noise(300_000), runs(), noise(5000) * 20], ids=len)
def test_definition(data):
    assert fingerprints(data) == reference(data)


def test_known_values():
    """They are kept by those who compare them: another value is another format."""
    found = fingerprints(bytes(i * i * 7 % 251 for i in range(100_000)))
    assert found == reference(bytes(i * i * 7 % 251 for i in range(100_000)))
    assert fingerprints(noise(40_000, 3))[:2] == [0x71CB82AC959ACD4E, 0x09A23892705684EF]


@given(st.lists(st.binary(max_size=300), max_size=8), st.integers(0, 5))
def test_cuts_make_no_difference(pieces, seed):
    body = noise(30_000, seed)
    pieces = [body[:9000], *pieces, body[9000:]]
    assert fingerprints(*pieces) == fingerprints(b"".join(pieces))


def test_moved_content_keeps_them():
    body = noise(1_000_000, 2)
    own = set(fingerprints(body))
    assert 200 < len(own) < 300  # one in 4096
    moved = set(fingerprints(noise(12_345, 9) + body[:500_000] + b"inserted" + body[500_000:]))
    assert len(own & moved) >= 0.98 * len(own)
    assert not own & set(fingerprints(noise(1_000_000, 4)))


def test_pieces_of_one_call():
    body = noise((4 << 20) + 12_345, 5)
    assert fingerprints(body) == fingerprints(body[:100], body[100:])


def test_other_buffers():
    body = noise(100_000)
    assert fingerprints(bytearray(body)) == fingerprints(memoryview(body)) == fingerprints(body)
    with pytest.raises(TypeError):
        glyd.Fingerprinter().update("text")

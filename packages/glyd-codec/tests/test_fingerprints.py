# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Fingerprints: as their definition says, wherever the content stands and however it is cut."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

import glyd

MASK = (1 << 64) - 1


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def reference(data):
    """The definition in native/src/match/match_sketch.h, word by word."""
    last, out = None, []
    for p in range(len(data) - 63):
        low, high = struct.unpack_from("<II", data, p)
        if (low * 0x9E3779B1 + high * 0x85EBCA77 + (1 << 31)) % (1 << 32) < 1 << 20 and (
            last is None or p - last >= 64
        ):
            h = 0
            for w in struct.unpack_from("<8Q", data, p):
                h = mix((h + w) & MASK)
            out.append(h)
            last = p
    return out


def fingerprints(*pieces):
    walker = glyd.Fingerprinter()
    return [value for piece in pieces for value in walker.update(piece)]


def noise(n, seed=1):
    return random.Random(seed).randbytes(n)


def runs():
    """A run that is full of marks, and others."""
    marked = struct.pack("<II", 1 << 31, 0)
    assert len(reference(marked * 300)) > 30
    return marked * 300 + b"".join(bytes([b]) * 300 for b in range(256))


@pytest.mark.parametrize("data", [b"", b"a", noise(63), noise(300_000), runs(), noise(5000) * 20], ids=len)
def test_definition(data):
    assert fingerprints(data) == reference(data)


def test_known_values():
    """They are kept by those who compare them: another value is another format."""
    found = fingerprints(bytes(i * i * 7 % 251 for i in range(100_000)))
    assert found == reference(bytes(i * i * 7 % 251 for i in range(100_000)))
    assert fingerprints(noise(40_000, 3))[:2] == [0xBF4A3F0CDCD8E465, 0xDB693F717C5BC958]


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

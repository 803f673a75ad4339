# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Base segments of the reference decoder, in the order of native/src/base/spec.md, and the name of a base."""

from __future__ import annotations

from typing import Final, NamedTuple

from reference_blocks import decode_lz
from reference_bytes import Bytes, unzigzag
from reference_planes import Tables, read_plane
from reference_xxh3 import xxh3_128

GROUP: Final = 4096
COPY_MIN: Final = 16
REACH_MAX: Final = 20
MASK: Final = (1 << 64) - 1


class Copy(NamedTuple):
    """Some bytes of the base, after a gap."""

    gap: int
    place: int
    length: int


def base_id(base: bytes) -> bytes:
    """Return the 16 bytes that name a base."""
    return xxh3_128(base).to_bytes(16, "big")


def read_copies(payload: Bytes, n: int, content_size: int, base_size: int) -> list[Copy]:
    """Read the numbers of the copies."""
    copies: list[Copy] = []
    shifts = [0, 0, 0]
    content = 0
    last_tables: Tables = {}
    while len(copies) < n:
        m = min(GROUP, n - len(copies))
        parts = []
        for name, most in (("gaps", 5 * m), ("lengths", 5 * m), ("places", 10 * m)):
            parts.append(read_plane(payload, name, most, last_tables).content)
        gaps, lengths, places = parts
        for _ in range(m):
            gap, length, place = gaps.varint("gap"), lengths.varint("length") + COPY_MIN, places.varint("place")
            payload.require(content + gap + length <= content_size, f"copy of {length} bytes after {content + gap}")
            content += gap
            shift = shifts[place] if place < len(shifts) else (shifts[0] + unzigzag(place - 2)) & MASK
            if shift in shifts:
                shifts.remove(shift)
            shifts = [shift, *shifts][:3]
            start = (content + shift) & MASK
            payload.require(start + length <= base_size, f"copy of {length} bytes at {start} of a base of {base_size}")
            copies.append(Copy(gap, start, length))
            content += length
        for part in parts:
            part.require(part.left == 0, f"{part.left} bytes after the last number of a group")
    return copies


def make_excerpts(copies: list[Copy], last_gap: int, around: int, whole: int, base: bytes) -> bytes:
    """Return the excerpts."""
    limit = sum(copy.length for copy in copies)
    out = b""
    last = range(0)

    def add(start: int, end: int) -> None:
        nonlocal out, last
        start, end = max(start, 0), min(end, len(base))
        if start in last:
            start = last.stop
        end = min(end, start + limit - len(out))
        if start < end:
            out += base[start:end]
            last = range(start, end)

    for i in range(len(copies) + 1):
        gap = copies[i].gap if i < len(copies) else last_gap
        if gap == 0:
            continue
        left = copies[i - 1].place + copies[i - 1].length if i else None
        right = copies[i].place if i < len(copies) else None
        if left is not None and right is not None and 0 <= right - left <= whole:
            add(left - around, right + around)
            continue
        if left is not None:
            add(left - around, left + gap + around)
        if right is not None:
            add(right - gap - around, right + around)
    return out


def decode_base(payload: Bytes, content_size: int, base: bytes) -> bytes:
    """Decode the payload of a base segment."""
    n = payload.varint("number of copies")
    payload.require(1 <= n <= content_size // COPY_MIN, f"{n} copies for {content_size} bytes")
    around, whole = payload.number(1, "log of the bytes around a gap"), payload.number(1, "log of the longest gap")
    payload.require(max(around, whole) <= REACH_MAX, f"logs {around} and {whole}")
    copies = read_copies(payload, n, content_size, len(base))
    rest_size = content_size - sum(copy.length for copy in copies)
    last_gap = rest_size - sum(copy.gap for copy in copies)
    rest = b""
    if rest_size:
        rest = decode_lz(payload, rest_size, make_excerpts(copies, last_gap, 1 << around, 1 << whole, base))
    payload.require(payload.left == 0, f"{payload.left} bytes after the rest")
    out = bytearray()
    at = 0
    for copy in copies:
        out += rest[at : at + copy.gap] + base[copy.place : copy.place + copy.length]
        at += copy.gap
    return bytes(out + rest[at:])

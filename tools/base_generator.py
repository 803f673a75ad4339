# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Make valid frames against a base that no encoder would write, and some whose base record breaks a rule."""

from __future__ import annotations

from random import Random
from typing import Final

import frame_writer as w
from frame_generator import lz_segment, pick_literals
from reference_base import MASK, Copy, base_id, make_excerpts

RECORD: Final = 1
BASE_KIND: Final = 5


def record(base: bytes, *, size: int | None = None, data: bytes | None = None) -> bytes:
    """Return the base record of a base; data replaces what is in it."""
    own = base_id(base) + w.varint(len(base) if size is None else size)
    return w.extension(RECORD, own if data is None else data)


def versions(rng: Random) -> tuple[bytes, bytes]:
    """Return two contents with much in common."""
    words = [pick_literals(rng, rng.randint(1, 40)) for _ in range(12)]
    base = b"".join(rng.choices(words, k=rng.randint(1, 300)))
    new = bytearray(base)
    for _ in range(rng.randint(0, 12)):
        at, size = rng.randrange(len(new) + 1), rng.randint(0, 200)
        edit = rng.randrange(3)
        new[at : at + size] = b"" if edit == 0 else rng.choice(words) if edit == 1 else new[size : 2 * size]
    return base, bytes(new)


def numbers(copies: list[Copy], rng: Random) -> bytes:
    """Return the groups of numbers of copies, slots used where they can be and rng says so."""
    out = b""
    shifts = [0, 0, 0]
    content = 0
    for first in range(0, len(copies), 4096):
        planes = [b"", b"", b""]
        for copy in copies[first : first + 4096]:
            content += copy.gap
            shift = (copy.place - content) & MASK
            if shift in shifts and rng.random() < 0.8:
                place = shifts.index(shift)
            else:
                difference = (shift - shifts[0]) & MASK
                place = ((difference << 1) ^ -(difference >> 63)) & MASK
                place += 2
                if not 3 <= place <= MASK:
                    place = shifts.index(shift)
            if shift in shifts:
                shifts.remove(shift)
            shifts = [shift, *shifts][:3]
            content += copy.length
            for i, number in enumerate((copy.gap, copy.length - 16, place)):
                planes[i] += w.varint(number)
        out += b"".join(w.plane(plane) for plane in planes)
    return out


def base_segment(rng: Random, base: bytes, most: int) -> w.Segment:
    """Return a base segment of random copies, with a rest that copies from the excerpts."""
    copies: list[Copy] = []
    total = 0
    for _ in range(rng.choice((1, 2, 5, 30))):
        gap = rng.choice((0, 0, 1, 7, 40))
        length = rng.randint(16, max(16, min(len(base), rng.choice((16, 40, 500)))))
        place = rng.randint(0, len(base) - length)
        if total + gap + length > most:
            break
        copies.append(Copy(gap, place, length))
        total += gap + length
    last_gap = min(rng.choice((0, 0, 9, 300)), most - total)
    around, whole = rng.choice((0, 4, 8, 20)), rng.choice((0, 6, 20))
    rest_size = sum(copy.gap for copy in copies) + last_gap
    excerpts = make_excerpts(copies, last_gap, 1 << around, 1 << whole, base)
    head = w.varint(len(copies)) + bytes([around, whole]) + numbers(copies, rng)
    rest = b""
    blocks = b""
    while len(rest) < rest_size:
        size = rest_size - len(rest)
        before = excerpts + rest
        offset = rng.randint(1, min(len(before), 60_000)) if before else 0
        if size < 4 or not offset or rng.random() < 0.3:
            size = min(size, rng.randint(1, 50))
            content = pick_literals(rng, size)
            blocks += w.block(0, 0, size, content)
        else:  # a plain block of one match, and nothing else
            size = min(size, rng.randint(1, 200))
            copied = bytearray(before)
            for _ in range(size):
                copied.append(copied[-offset])
            content = bytes(copied[-size:])
            body = w.varint(1) + w.varint(0) * 2 + w.varint(1) + w.varint(0) * 2 + bytes([size])
            body += offset.to_bytes(2, "little") + b"\0"
            blocks += w.block(2, 0, size, body)
        rest += content
    out = b""
    at = 0
    for copy in copies:
        out += rest[at : at + copy.gap] + base[copy.place : copy.place + copy.length]
        at += copy.gap
    out += rest[at:]
    payload = head + blocks
    return w.Segment(BASE_KIND, out, payload) if len(payload) <= len(out) + 4096 else w.raw(out)


def valid_frame(rng: Random, check_kind: int = 1) -> tuple[bytes, bytes, bytes]:
    """Return a frame, its base and its content."""
    base = pick_literals(rng, rng.choice((16, 17, 100, 3000)))
    segments = [
        base_segment(rng, base, 4096) if rng.random() < 0.8 else lz_segment(rng, 4096) for _ in range(rng.randint(1, 4))
    ]
    data = w.frame(
        segments,
        known_size=rng.random() < 0.5,
        check_kind=check_kind,
        segment_log=12,
        extensions=w.extension(2, b"other") * rng.randint(0, 1) + record(base),
        has_base=True,
    )
    return data, base, b"".join(segment.content for segment in segments)


def broken_headers() -> dict[str, tuple[bytes, bytes, str]]:
    """Return frames whose base record or use of a base breaks a rule: data, base and category."""
    base = bytes(range(64))
    copy = w.Segment(BASE_KIND, base, w.varint(1) + b"\4\4" + numbers([Copy(0, 0, 64)], Random(0)))  # noqa: S311 -- test data

    def one(extensions: bytes, memory: int | None = None) -> bytes:
        return w.frame([copy], known_size=True, extensions=extensions, has_base=True, memory=memory)

    own = base_id(base)
    return {
        "no-record": (one(b""), base, "corrupt"),
        "record-twice": (one(record(base) * 2), base, "header"),
        "record-empty": (one(record(base, data=b"")), base, "header"),
        "record-id-only": (one(record(base, data=own)), base, "header"),
        "record-short": (one(record(base, data=own[:9])), base, "header"),
        "record-long": (one(record(base, data=own + b"\x40\0")), base, "header"),
        "record-very-long": (one(record(base, data=own + b"\x40" + bytes(90))), base, "header"),
        "record-size-not-canonical": (one(record(base, data=own + b"\xc0\0")), base, "header"),
        "record-size-2^63": (one(record(base, size=1 << 63)), base, "header"),
        "record-size-other": (one(record(base, size=65)), base, "base wrong"),
        "record-id-other": (one(record(base[::-1])), base, "base wrong"),
        "record-other-memory-code": (one(record(base), w.memory_code(16, 64, has_base=True) + 1), base, "header"),
    }

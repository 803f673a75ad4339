# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Make valid frames against a base that no encoder would write, and some whose base record breaks a rule."""

from __future__ import annotations

import json
import struct
from random import Random
from typing import Final

import frame_writer as w
from frame_generator import CodedState, lz_segment, pick_literals
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


def group_body(rng: Random, numbers: list[int], size: int, group: int, state: CodedState) -> bytes:
    """Return a group of differences, with or without its zeros, in any number of planes that can hold them."""

    def planes(what: str, numbers: list[int], count: int) -> bytes:
        return b"".join(
            state.write_plane(rng, f"{group} {what} {j}", bytes(number >> 8 * j & 255 for number in numbers))
            for j in range(count)
        )

    m = rng.randint(1, size)
    head, bits = m, b""
    if rng.random() < 0.5:
        head |= 128
        packed = sum((number > 0) << i for i, number in enumerate(numbers)).to_bytes((len(numbers) + 7) // 8, "little")
        bits = state.write_plane(rng, f"{group} bits", packed)
        numbers = [number - 1 for number in numbers if number]
    if not numbers:
        return bytes([head]) + bits
    if m == size:
        return bytes([head]) + bits + planes("byte", numbers, m)
    shift = 8 * (m - 1)
    escapes = [(number >> shift) - 255 for number in numbers if number >> shift >= 255]
    numbers = [min(number >> shift, 255) << shift | number & ((1 << shift) - 1) for number in numbers]
    return bytes([head]) + bits + planes("byte", numbers, m) + planes("escape", escapes, size - m + 1)


def difference_piece(rng: Random, base: bytes, most: int) -> tuple[bytes, bytes]:
    """Return a difference piece, of any numbers in any groups, and its content."""
    size = rng.choice((1, 2, 2, 2, 4, 4, 8))
    while size > min(most, len(base)):
        size //= 2
    length = rng.randint(1, min(most, len(base)) // size) * size
    place = rng.randint(0, len(base) - length)
    bounds = sorted(rng.sample(range(1, 256), rng.randint(0, 3))) if size in {2, 4} else []
    body = w.varint(place) + bytes([size, len(bounds) + 1, *bounds])
    limits = [1 << rng.randint(0, 8 * size) for _ in range(3)]
    zeros = rng.choice((0, 0.5, 0.95, 1))
    out = bytearray()
    state = CodedState()
    for start in range(0, length, 1 << 17):
        groups: list[list[int]] = [[] for _ in range(4)]
        for i in range(place + start, place + min(length, start + (1 << 17)), size):
            older = int.from_bytes(base[i : i + size], "little")
            number = 0 if rng.random() < zeros else rng.randrange(rng.choice(limits))
            kind = older >> (8 * size - 9) & 255 if bounds else 0
            groups[sum(kind >= bound for bound in bounds)].append(number)
            out += ((older + (number >> 1 ^ -(number & 1))) % (1 << 8 * size)).to_bytes(size, "little")
        for group, numbers in enumerate(groups):
            body += group_body(rng, numbers, size, group, state) if numbers else b""
    return w.piece(3, length, body), bytes(out)


def trained(rng: Random, kind: str, n: int, share: float) -> tuple[bytes, bytes]:
    """Return a safetensors file of n numbers, and the same with a share of them trained further."""
    values = [rng.gauss(0, 0.03) for _ in range(n)]
    later = [value + rng.gauss(0, 3e-4) if rng.random() < share else value for value in values]
    files = []
    for numbers in (values, later):
        if kind == "bf16":
            data = b"".join(struct.pack("<f", value)[2:] for value in numbers)
        else:
            data = struct.pack(f"<{n}{'f' if kind == 'fp32' else 'e'}", *numbers)
        tensor = {"dtype": {"bf16": "BF16", "fp16": "F16", "fp32": "F32"}[kind], "shape": [n]}
        header = json.dumps({"w": {**tensor, "data_offsets": [0, len(data)]}}, separators=(",", ":")).encode()
        header += b" " * (-len(header) % 8)
        files.append(len(header).to_bytes(8, "little") + header + data)
    return files[0], files[1]


def valid_difference_frame(rng: Random, most: int = 4096, check_kind: int = 1) -> tuple[bytes, bytes, bytes]:
    """Return a frame of weights segments with differences, its base and its content."""
    base = pick_literals(rng, rng.choice((1, 7, 100, most, 3 * most)))
    if rng.random() < 0.5:  # numbers around 0, whose exponents are alike
        base = b"".join(rng.randint(0x3C00, 0x3FFF).to_bytes(2, "little") for _ in range(len(base) // 2 + 1))
    segments = []
    for _ in range(rng.randint(1, 3)):
        pieces = [difference_piece(rng, base, most // 2) for _ in range(rng.randint(1, 2))]
        payload, content = (b"".join(parts) for parts in zip(*pieces, strict=True))
        fits = len(payload) <= len(content) + 4096
        segments.append(w.Segment(w.WEIGHTS, content, payload) if fits else w.raw(content))
    log = max(12, (most - 1).bit_length())
    data = w.frame(segments, check_kind=check_kind, segment_log=log, extensions=record(base), has_base=True)
    return data, base, b"".join(segment.content for segment in segments)


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

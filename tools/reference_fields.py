# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Weights segments of the reference decoder, in the order of native/src/fields/spec.md."""

from __future__ import annotations

from typing import Final

from reference_blocks import decode_lz
from reference_bytes import Bytes, unzigzag
from reference_planes import Tables, read_plane

BLOCK_LOG: Final = 18
DIFFERENCE_BLOCK: Final = 1 << 17


def move_sign_back(element: bytearray) -> None:
    """Rotate the last two bytes, a little-endian number, by one bit to the right."""
    high = int.from_bytes(element[-2:], "little")
    element[-2:] = (high >> 1 | (high & 1) << 15).to_bytes(2, "little")


def decode_fields(body: Bytes, content_size: int) -> bytes:
    """Decode the body of a fields piece."""
    head = body.number(1, "runs and flags")
    body.require(head < 128, f"flags {head:#x} of a fields piece")
    runs = body.take((head & 15) + 1, "runs")
    body.require(min(runs) >= 1, "run of 0 bytes")
    period, sign_moved = sum(runs), bool(head & 16)
    body.require(not sign_moved or (max(runs) == 1 and period in {2, 4, 8}), f"sign moved in runs {list(runs)}")
    body.require(content_size % period == 0, f"{content_size} bytes of elements of {period}")
    per_block = (1 << (BLOCK_LOG - (head >> 5 & 3))) // period
    last_tables: Tables = {}
    out = bytearray()
    left = content_size // period
    while left:
        n = min(left, per_block)
        planes = []
        for j, run in enumerate(runs):
            plane = read_plane(body, f"run {j}", n * run, last_tables).rest()
            body.require(len(plane) == n * run, f"plane of {len(plane)} bytes, {n * run} expected")
            planes.append(plane)
        for i in range(n):
            element = bytearray()
            for run, plane in zip(runs, planes, strict=True):
                element += plane[i * run : (i + 1) * run]
            if sign_moved:
                move_sign_back(element)
            out += element
        left -= n
    body.require(body.left == 0, f"{body.left} bytes after the last block")
    return bytes(out)


def read_numbers(body: Bytes, n: int, size: int, m: int, group: int, last_tables: Tables) -> list[int]:
    """Read n numbers of so many bytes, m of which have planes with all of them."""

    def planes(what: str, count: int, each: int) -> list[int]:
        numbers = [0] * each
        for j in range(count):
            plane = read_plane(body, f"group {group} {what} {j}", each, last_tables).rest()
            body.require(len(plane) == each, f"plane of {len(plane)} bytes, {each} expected")
            numbers = [number | byte << 8 * j for number, byte in zip(numbers, plane, strict=True)]
        return numbers

    numbers = planes("byte", m, n)
    if m < size:
        shift = 8 * (m - 1)
        escaped = [i for i, number in enumerate(numbers) if number >> shift == 255]
        for i, more in zip(escaped, planes("escape", size - m + 1, len(escaped)), strict=True):
            numbers[i] += more << shift
            body.require(numbers[i] < 1 << 8 * size, f"difference {numbers[i]:#x} of {size} bytes")
    return numbers


def read_group(body: Bytes, n: int, size: int, group: int, last_tables: Tables) -> list[int]:
    """Read the n numbers of a group."""
    head = body.number(1, "head of a group")
    m = head & 127
    body.require(1 <= m <= size, f"{m} bytes of {size} in all numbers")
    if head < 128:
        return read_numbers(body, n, size, m, group, last_tables)
    bits = read_plane(body, f"group {group} bits", (n + 7) // 8, last_tables).rest()
    body.require(len(bits) == (n + 7) // 8, f"plane of {len(bits)} bytes for {n} bits")
    is_there = [i for i in range(8 * len(bits)) if bits[i // 8] >> i % 8 & 1]
    body.require(not is_there or is_there[-1] < n, "a bit after the last number")
    found = read_numbers(body, len(is_there), size, m, group, last_tables) if is_there else []
    out = [0] * n
    for i, number in zip(is_there, found, strict=True):
        body.require(number + 1 < 1 << 8 * size, f"difference {number + 1:#x} of {size} bytes")
        out[i] = number + 1
    return out


def decode_difference(body: Bytes, content_size: int, base: bytes) -> bytes:
    """Decode the body of a difference piece."""
    place = body.varint("place in the base")
    body.require(place + content_size <= len(base), f"{content_size} bytes at {place} of a base of {len(base)}")
    size = body.number(1, "bytes of a number")
    body.require(size in {1, 2, 4, 8}, f"numbers of {size} bytes")
    body.require(content_size % size == 0, f"{content_size} bytes of numbers of {size}")
    groups = body.number(1, "groups")
    body.require(1 <= groups <= (4 if size in {2, 4} else 1), f"{groups} groups of numbers of {size} bytes")
    bounds = list(body.take(groups - 1, "bounds"))
    body.require(bounds == sorted(set(bounds) - {0}), f"bounds {bounds}")
    last_tables: Tables = {}
    out = bytearray()
    for start in range(0, content_size, DIFFERENCE_BLOCK):
        end = min(start + DIFFERENCE_BLOCK, content_size)
        older = [int.from_bytes(base[place + i : place + i + size], "little") for i in range(start, end, size)]
        group_of = [
            sum((number >> (8 * size - 9) & 255) >= bound for bound in bounds) if bounds else 0 for number in older
        ]
        numbers = []
        for group in range(groups):
            n = group_of.count(group)
            numbers.append(iter(read_group(body, n, size, group, last_tables) if n else []))
        for number, group in zip(older, group_of, strict=True):
            out += ((number + unzigzag(next(numbers[group]))) % (1 << 8 * size)).to_bytes(size, "little")
    body.require(body.left == 0, f"{body.left} bytes after the last block")
    return bytes(out)


def decode_weights(payload: Bytes, content_size: int, base: bytes | None = None) -> bytes:
    """Decode the payload of a weights segment."""
    out = bytearray()
    while len(out) < content_size:
        piece_type = payload.number(1, "piece type")
        payload.require(piece_type <= (2 if base is None else 3), f"piece type {piece_type}")
        size = payload.varint("piece content size")
        payload.require(1 <= size <= content_size - len(out), f"piece of {size} bytes, {content_size - len(out)} left")
        body_size = payload.varint("piece body size")
        body = payload.part(body_size, "piece body")
        if piece_type == 0:
            payload.require(body_size == size, f"raw piece: {body_size} bytes for {size}")
            out += body.take(size, "raw piece")
        elif piece_type == 1:
            out += decode_lz(body, size)
        elif piece_type == 2:
            out += decode_fields(body, size)
        else:
            out += decode_difference(body, size, base or b"")
    payload.require(payload.left == 0, f"{payload.left} bytes after the last piece")
    return bytes(out)

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""LZ segments of the reference decoder, in the order of native/src/block/spec.md."""

from __future__ import annotations

import itertools
from typing import Final

from reference_bytes import Bits, Bytes
from reference_fine import ContextTables, read_fine_plane
from reference_planes import Plane, Tables, read_plane

BLOCK_MAX: Final = 1 << 18
SEQUENCES_MAX: Final = 1 << 16
LONG_LENGTHS_MAX: Final = 1028


def copy_literals(out: bytearray, literals: bytes, block_end: int, body: Bytes) -> None:
    """Append literals."""
    body.require(len(out) + len(literals) <= block_end, "literals past the end of the block")
    out += literals


def copy_match(out: bytearray, length: int, offset: int, block_end: int, body: Bytes) -> None:
    """Append a match: out holds the segment so far."""
    body.require(1 <= offset <= len(out), f"offset {offset}, {len(out)} bytes before")
    body.require(len(out) + length <= block_end, "match past the end of the block")
    for _ in range(length):
        out.append(out[-offset])


def decode_plain(body: Bytes, flags: int, out: bytearray, block_end: int) -> None:
    """Decode a plain block."""
    body.require(flags < 4, f"flags {flags << 2} of a plain block")
    own_lengths, repeat_form = bool(flags & 1), bool(flags & 2)
    n = body.varint("n")
    n_ll, n_ml, n_off, n_far, n_long = [body.varint(name) for name in ("n_ll", "n_ml", "n_off", "n_far", "n_long")]
    base = body.number(1, "match base")
    body.require(1 <= n <= SEQUENCES_MAX, f"{n} sequences")
    body.require(n_ll <= n and n_ml <= n, f"{n_ll} and {n_ml} escapes of {n} sequences")
    body.require(n_off <= n if repeat_form else n_off == n, f"{n_off} offsets of {n} sequences")
    body.require(n_far <= n_off, f"{n_far} third bytes of {n_off} offsets")
    body.require(n_long <= 6 * n, f"{n_long} bytes of long lengths, {n} sequences")
    body.require(base >= 1, "match base 0")
    lengths = body.take(15, "match lengths") if own_lengths else bytes(min(255, base + c) for c in range(15))
    body.require(min(lengths) >= 1, "match length 0")
    escape_base = base if own_lengths else base + 15

    def plane(name: str, size: int) -> Plane:
        return Plane(name, body.take(size, name), body)

    offsets = plane("offsets", 2 * n_off)
    tokens = plane("tokens", n)
    ll_escapes = plane("literal-length escapes", n_ll)
    ml_escapes = plane("match-length escapes", n_ml)
    thirds = plane("third bytes", n_far)
    longs = plane("long lengths", n_long)
    literals = plane("literals", body.left)

    def add_long(length: int) -> int:
        if length < 255:
            return length
        more = longs.content.varint("long length")
        body.require(more <= BLOCK_MAX, f"long length {more}")
        return length + more

    offset = 1
    for _ in range(n):
        token = tokens.next()
        n_literals, code, f = token & 7, token >> 3 & 15, token >> 7
        n_literals = add_long(n_literals if n_literals < 7 else min(255, 7 + ll_escapes.next()))
        length = add_long(lengths[code] if code < 15 else min(255, escape_base + ml_escapes.next()))
        if not (repeat_form and f):
            offset = offsets.next() | offsets.next() << 8
            if repeat_form and offset >= 1 << 15:
                offset += (thirds.next() << 15) - (1 << 15)
            elif not repeat_form and f:
                offset += thirds.next() << 16
        copy_literals(out, literals.some(n_literals), block_end, body)
        copy_match(out, length, offset, block_end, body)
    copy_literals(out, literals.rest(), block_end, body)
    for used in (offsets, ll_escapes, ml_escapes, thirds, longs):
        used.check_used_up()


class Coded:
    """Decoder of coded blocks, with what they carry from one to the next in a segment."""

    def __init__(self) -> None:
        self.slots = [1, 4, 8]
        self.last_tables: Tables = {}
        self.last_contexts: dict[str, ContextTables] = {}

    def decode(self, body: Bytes, flags: int, out: bytearray, block_end: int) -> None:
        """Decode a coded block."""
        own_lengths, long_planes, low_plane, fine, near = (bool(flags >> i & 1) for i in range(5))
        body.require(flags < 32 and (fine or not near), f"flags {flags << 2} of a coded block")
        first, least = (3, 2) if fine else (4, 4)
        lengths = body.take(15, "match lengths") if own_lengths else bytes(range(first, first + 15))
        body.require(lengths[0] >= least and lengths[14] <= 254, f"match lengths {lengths[0]} to {lengths[14]}")
        body.require(all(a < b for a, b in itertools.pairwise(lengths)), "match lengths do not ascend")
        escape_base = least if own_lengths else first + 15

        def plane(name: str, most: int = SEQUENCES_MAX) -> Plane:
            return read_plane(body, name, most, self.last_tables)

        def fine_plane(name: str, most: int = SEQUENCES_MAX, contexts: bytes | None = None) -> Plane:
            if not fine:
                return plane(name, most)
            return read_fine_plane(body, name, most, self.last_tables, self.last_contexts, contexts)

        if not fine:
            literals = plane("literals", block_end - len(out))
        commands = fine_plane("commands")
        new = bytes(command & 63 for command in commands.content.data if command >= 192)
        ll_escapes = plane("literal-length escapes")
        ml_escapes = plane("match-length escapes")
        offset_codes = fine_plane("offset codes", contexts=new)
        lows = plane("low offset bytes") if low_plane else None
        parts = ("low", "middle", "high") if long_planes else ()
        longs = [plane(f"{part} bytes of long lengths", LONG_LENGTHS_MAX) for part in parts]
        n_longs = {long.content.left for long in longs}
        body.require(not longs or (len(n_longs) == 1 and min(n_longs) >= 1), f"long-length planes of {n_longs} bytes")

        def replace_long(length: int) -> int:
            if length < 255:
                return length
            body.require(bool(longs), "a long length, but no planes of them")
            value = sum(long.next() << (8 * i) for i, long in enumerate(longs))
            body.require(value >= 255, f"long length {value}")
            return value

        sequences = []
        runs = bytearray()  # what contexts of literals are given
        for command in commands.rest():
            n_literals, code = command & 3, command >> 2 & 15
            n_literals = replace_long(n_literals if n_literals < 3 else 3 + ll_escapes.next())
            length = replace_long(lengths[code] if code < 15 else escape_base + ml_escapes.next())
            body.require(len(runs) + n_literals <= block_end - len(out), f"{n_literals} literals, too many")
            runs += (bytes([command & 0xFB]) + bytes(n_literals - 1)) if n_literals else b""
            sequences.append((n_literals, length, command >> 6))
        if fine:
            literals = fine_plane("literals", block_end - len(out), bytes(runs))
        raw_bits = Bits(body)

        def new_offset() -> int:
            code = offset_codes.next()
            if near and 200 <= code < 254:
                return near_offset(code - 200)
            body.require(code < 200, f"offset code {code}")
            n_bits = code >> 3
            if lows is not None and n_bits >= 8:
                x = lows.next() | raw_bits.number(n_bits - 8) << 8
            else:
                x = raw_bits.number(n_bits)
            return ((8 + (code & 7)) << n_bits) + x - 7

        def near_offset(code: int) -> int:
            slot, below, power = self.slots[code // 18], code // 9 % 2, code % 9
            if power < 2:
                distance = 1 + power
            else:
                x = raw_bits.number(power - 1)
                distance = (1 << power) - x if below else (1 << power - 1) + 1 + x
            return slot - distance if below else slot + distance

        for n_literals, length, which in sequences:
            offset = self.slots.pop(which) if which < 3 else new_offset()
            self.slots = [offset, *self.slots][:3]
            copy_literals(out, literals.some(n_literals), block_end, body)
            copy_match(out, length, offset, block_end, body)
        copy_literals(out, literals.rest(), block_end, body)
        for used in (ll_escapes, ml_escapes, offset_codes, *([lows] if lows else []), *longs):
            used.check_used_up()
        body.require(body.left == 0, f"{body.left} bytes after the raw offset bits")


def decode_lz(payload: Bytes, content_size: int, before: bytes = b"") -> bytes:
    """Decode the payload of an LZ segment; before: what matches may copy from and is no content."""
    out = bytearray(before)
    content_size += len(before)
    coded = Coded()
    while len(out) < content_size:
        head = payload.number(1, "block type")
        size = payload.varint("block content size")
        payload.require(1 <= size <= BLOCK_MAX, f"block of {size} bytes")
        payload.require(size <= content_size - len(out), f"block of {size} bytes, {content_size - len(out)} left")
        body_size = payload.varint("block body size")
        body = payload.part(body_size, "block body")
        block_type, flags, block_end = head & 3, head >> 2, len(out) + size
        if block_type == 0:
            payload.require(flags == 0 and body_size == size, f"raw block: flags {flags}, {body_size} bytes for {size}")
            out += body.take(size, "raw block")
        elif block_type == 1:
            payload.require(flags == 0 and body_size == 1, f"fill block: flags {flags}, {body_size} bytes")
            out += body.take(1, "fill block") * size
        elif block_type == 2:
            decode_plain(body, flags, out, block_end)
        else:
            coded.decode(body, flags, out, block_end)
        payload.require(len(out) == block_end, f"block gives {len(out) - block_end + size} bytes of {size}")
    payload.require(payload.left == 0, f"{payload.left} bytes after the last block")
    return bytes(out[len(before) :])

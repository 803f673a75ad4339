# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Filtered segments of the reference decoder, in the order of native/src/filter/spec.md."""

from __future__ import annotations

from reference_blocks import decode_lz
from reference_bytes import Bytes


def x86_opcode(data: bytearray, i: int) -> int:
    """Return how many bytes an instruction at place i has before its address; 0: there is none."""
    a, b, c = (*data[i : i + 3], 0, 0, 0)[:3]
    if a in {0xE8, 0xE9}:
        return 1
    if a == 0x0F and 0x80 <= b <= 0x8F:
        return 2
    if a in {0x48, 0x4C} and b in {0x8B, 0x8D} and c & 0xC7 == 5:
        return 3
    return 0


def undo_x86(data: bytearray) -> None:
    """Make absolute addresses relative again."""
    n = len(data)
    i = 0
    while i < n:
        size = x86_opcode(data, i)
        p = i + size + 4
        if not size or p > n:
            i += 1
            continue
        a = int.from_bytes(data[p - 4 : p], "big", signed=True)
        v = a - p if 0 <= a < n else a + n if -p <= a < 0 else a
        data[p - 4 : p] = v.to_bytes(4, "little", signed=True)
        i = p


def undo_arm64(data: bytearray) -> None:
    """Make bl and adrp relative again."""
    for k in range(len(data) // 4):
        word = int.from_bytes(data[4 * k : 4 * k + 4], "little")
        if word >> 26 == 0b100101:
            word = word >> 26 << 26 | (word - k) % (1 << 26)
        elif word >> 31 and word >> 24 & 31 == 0b10000:
            number = (word >> 29 & 3 | (word >> 5 & (1 << 19) - 1) << 2) - k // 1024
            word = word & 0x9F00001F | (number & 3) << 29 | (number >> 2 & (1 << 19) - 1) << 5
        data[4 * k : 4 * k + 4] = word.to_bytes(4, "little")


def undo_delta(data: bytearray, width: int, stride: int) -> None:
    """Add up differences of numbers."""
    for i in range(stride, len(data) // width):
        number = sum(int.from_bytes(data[k * width : (k + 1) * width], "little") for k in (i, i - stride))
        data[i * width : (i + 1) * width] = (number % (1 << (8 * width))).to_bytes(width, "little")


def decode_filtered(payload: Bytes, content_size: int) -> bytes:
    """Decode the payload of a filtered segment."""
    kind = payload.number(1, "filter")
    payload.require(kind in {1, 2, 3}, f"filter {kind}")
    shape = payload.number(1, "elements") if kind == 3 else 0
    payload.require(shape < 64 and shape & 3 != 3, f"elements {shape:#x}")
    data = bytearray(decode_lz(payload, content_size))
    if kind == 1:
        undo_x86(data)
    elif kind == 2:
        undo_arm64(data)
    else:
        undo_delta(data, 1 << (shape & 3), (shape >> 2) + 1)
    return bytes(data)

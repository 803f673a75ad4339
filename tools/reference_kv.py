# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Decode pages of keys and values slowly and strictly, from native/src/kv/spec.md alone.

Tiles are read by reference_weights.py, as the specification refers to that of weights.

    python tools/reference_kv.py PAGE > VALUES
"""

from __future__ import annotations

import sys
from typing import Final

from reference_weights import ESCAPES_MAX, decode_file, read_tiered, refuse

MAGIC: Final = bytes.fromhex("9D4B")
TOKENS: Final = 128


class Group:
    """Up to 64 channels of a page, as the rows of a tile."""

    def __init__(self, at: int, bases: bytes) -> None:
        self.at = at
        self.bases = bases + bytes(64 - len(bases))
        self.values: dict[tuple[int, int], int] = {}
        for channel, base in enumerate(bases):
            if base and not 10 <= base <= 250:
                refuse("corrupt", at + channel, f"base {base}")

    def put(self, tile: int, row: int, col: int, value: int) -> None:
        """Note a value; a channel without a base has only zeros."""
        if self.bases[row] == 0 and value & 0x7FFF:
            refuse("corrupt", self.at, f"channel {row} of zeros of group {tile} has {value:#x}")
        self.values[row, col] = value


def read_header(data: bytes) -> tuple[int, int, int, list[int]]:
    """Return form, channels, exceptions, and where each group's escapes end."""
    if len(data) < 2:
        refuse("truncated", len(data), "no magic number")
    if data[:2] != MAGIC:
        refuse("magic", 0, data[:2].hex())
    if len(data) < 32:
        refuse("truncated", len(data), "no header")
    if data[2] != 1:
        refuse("version", 2, f"version {data[2]}")
    form = data[3]
    if form > 1:
        refuse("feature", 3, f"form {form}")
    channels, tokens = (int.from_bytes(data[at : at + 2], "little") for at in (4, 6))
    size, n_exceptions = (int.from_bytes(data[at : at + 4], "little") for at in (8, 12))
    if channels % 16 or not 16 <= channels <= 512 or tokens != TOKENS:
        refuse("header", 4, f"{channels} channels, {tokens} tokens")
    ends = [16 * int.from_bytes(data[at : at + 2], "little") for at in range(16, 32, 2)]
    n_groups = -(-channels // 64) if form else 0
    for here, following in zip([0, *ends], ends[:n_groups], strict=False):
        if not 16 <= following - here <= ESCAPES_MAX:
            refuse("header", 16, f"escapes end at {ends}")
    if any(ends[n_groups:]):
        refuse("header", 16, f"escapes of {n_groups} groups end at {ends}")
    plain = -(-(32 + 2 * TOKENS * channels) // 64) * 64
    end = ends[n_groups - 1] if form else 0
    expected = -(-(32 + 161 * channels + end + 4 * n_exceptions) // 64) * 64 if form else plain
    if size != expected or size > plain or (not form and n_exceptions):
        refuse("header", 8, f"{size} bytes with {n_exceptions} exceptions")
    if len(data) < size:
        refuse("truncated", len(data), f"{size} bytes expected")
    return form, channels, n_exceptions, ends[:n_groups]


def decode(data: bytes) -> bytes:
    """Return the values of a page, token by token."""
    form, channels, n_exceptions, ends = read_header(data)
    if not form:
        return data[32 : 32 + 2 * TOKENS * channels]
    values: dict[tuple[int, int], int] = {}
    strips_at, escapes_at = 32 + channels, 32 + 161 * channels
    bases = data[32:strips_at]
    for g, (first, end) in enumerate(zip([0, *ends], ends, strict=False)):
        group = Group(32 + 64 * g, bases[64 * g : 64 * g + 64])
        tile = bytearray(10240)
        for w in range(len(bases[64 * g : 64 * g + 64]) // 16):
            at = strips_at + 2560 * (4 * g + w)
            for part in range(5):
                to = 2048 * part + 512 * w
                tile[to : to + 512] = data[at + 512 * part : at + 512 * part + 512]
        read_tiered(group, g, bytes(tile), data[escapes_at + first : escapes_at + end])  # type: ignore[arg-type]
        values.update({(64 * g + row, col): value for (row, col), value in group.values.items()})
    at, least = escapes_at + ends[-1], 0
    for i in range(n_exceptions):
        place, value = (int.from_bytes(data[at + 2 * k :][:2], "little") for k in (i, n_exceptions + i))
        channel, token = divmod(place, TOKENS)
        if place < least or channel >= channels or bases[channel] == 0 or values[channel, token]:
            refuse("corrupt", at + 2 * i, f"exception at channel {channel}, token {token}")
        values[channel, token] = value
        least = place + 1
    return b"".join(values[c, t].to_bytes(2, "little") for t in range(TOKENS) for c in range(channels))


if __name__ == "__main__":
    sys.exit(decode_file(decode, "PAGE > VALUES"))

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Decode pages of keys and values slowly and strictly, from native/src/kv/spec.md alone.

python tools/reference_kv.py PAGE > VALUES
"""

from __future__ import annotations

import itertools
import sys
from typing import Final

from reference_weights import decode_file, refuse

MAGIC: Final = bytes.fromhex("9D4B")
TOKENS: Final = 128
STRIP: Final = 2752
COSTS: Final = (25, 8, 1, 0, 3, 6, 9, 13, 16, 20, 23)
QUADS: Final = [
    quad for quad in itertools.product(range(len(COSTS)), repeat=4) if sum(COSTS[distance] for distance in quad) <= 26
]


def number(data: bytes, at: int, n: int = 2) -> int:
    """Return the little-endian number of n bytes at a place."""
    return int.from_bytes(data[at : at + n], "little")


def read_header(data: bytes) -> tuple[int, int, int, list[int]]:
    """Return form, channels, exceptions, and where each strip's corrections end."""
    if len(data) < 2:
        refuse("truncated", len(data), "no magic number")
    if data[:2] != MAGIC:
        refuse("magic", 0, data[:2].hex())
    if len(data) < 32:
        refuse("truncated", len(data), "no header")
    if data[2] != 2:
        refuse("version", 2, f"version {data[2]}")
    form = data[3]
    if form > 1:
        refuse("feature", 3, f"form {form}")
    channels, tokens, size, n_exceptions = number(data, 4), number(data, 6), number(data, 8, 4), number(data, 12, 4)
    if channels % 16 or not 16 <= channels <= 512 or tokens != TOKENS:
        refuse("header", 4, f"{channels} channels, {tokens} tokens")
    n_strips = channels // 16 if form else 0
    bases_at = 16 + (-(-channels // 128) * 16 if form else 16)
    if len(data) < bases_at:
        refuse("truncated", len(data), "no ends of corrections")
    ends = [number(data, at) for at in range(16, bases_at, 2)]
    for here, following in itertools.pairwise([0, *ends[:n_strips]]):
        if not 0 <= following - here <= 16 * TOKENS:
            refuse("header", 16, f"corrections end at {ends}")
    if any(ends[n_strips:]):
        refuse("header", 16, f"corrections of {n_strips} strips end at {ends}")
    plain = -(-(32 + 2 * TOKENS * channels) // 64) * 64
    end = ends[n_strips - 1] if form else 0
    expected = plain
    if form:
        expected = -(-(bases_at + channels + n_strips * STRIP + 2 * end + 4 * n_exceptions) // 16) * 16
    if size != expected or size > plain or (not form and n_exceptions):
        refuse("header", 8, f"{size} bytes with {n_exceptions} exceptions")
    if len(data) < size:
        refuse("truncated", len(data), f"{size} bytes expected")
    return form, channels, n_exceptions, ends[:n_strips]


def read_channel(strip: bytes, at: int, channel: int, base: int) -> list[int]:
    """Return a channel's values as its codes say."""
    values = []
    for thread in (channel, channel + 16):
        kept = b"".join(strip[512 * part + 16 * thread :][:16] for part in range(4))
        codes = strip[2048 + 16 * thread :][:16] + strip[2560 + 4 * thread :][:4] + strip[2688 + 2 * thread :][:2]
        for i, byte in enumerate(kept):
            exponent = 0
            if base:
                code = int.from_bytes(codes, "little") >> (11 * (i // 4)) & 2047
                if code >= len(QUADS):
                    refuse("corrupt", at, f"code {code} of channel {channel}")
                exponent = base + 4 - QUADS[code][i % 4]
            elif byte & 127:
                refuse("corrupt", at, f"channel {channel} of zeros has {byte:#x}")
            values.append((byte & 128) << 8 | exponent << 7 | byte & 127)
    return values


def decode(data: bytes) -> bytes:
    """Return the values of a page, token by token."""
    form, channels, n_exceptions, ends = read_header(data)
    if not form:
        return data[32 : 32 + 2 * TOKENS * channels]
    bases_at = 16 + -(-channels // 128) * 16
    bases = data[bases_at : bases_at + channels]
    for channel, base in enumerate(bases):
        if base and not 10 <= base <= 250:
            refuse("corrupt", bases_at + channel, f"base {base}")
    values = []
    corrections_at = bases_at + channels + channels // 16 * STRIP
    for s, (first, end) in enumerate(itertools.pairwise([0, *ends])):
        at = bases_at + channels + s * STRIP
        strip = data[at : at + STRIP]
        values += [read_channel(strip, at, channel, bases[16 * s + channel]) for channel in range(16)]
        least = 0
        for at in range(corrections_at + 2 * first, corrections_at + 2 * end, 2):
            below, place = divmod(number(data, at), 2048)
            channel, token = 16 * s + place // TOKENS, place % TOKENS
            exponent = 0 if below == 31 else bases[channel] + 8 - below
            if place < least or not bases[channel] or exponent > 255 or (exponent < 1 and below != 31):
                refuse("corrupt", at, f"correction {below} at channel {channel}, token {token}")
            values[channel][token] = values[channel][token] & 0x807F | exponent << 7
            least = place + 1
    at, least = corrections_at + 2 * ends[-1], 0
    for i in range(n_exceptions):
        place, value = (number(data, at + 2 * k) for k in (i, n_exceptions + i))
        channel, token = divmod(place, TOKENS)
        if place < least or channel >= channels or not bases[channel]:
            refuse("corrupt", at + 2 * i, f"exception at channel {channel}, token {token}")
        if values[channel][token] != (bases[channel] + 1) << 7:
            refuse("corrupt", at + 2 * i, f"{values[channel][token]:#x} in place of an exception")
        values[channel][token] = value
        least = place + 1
    return b"".join(values[c][t].to_bytes(2, "little") for t in range(TOKENS) for c in range(channels))


if __name__ == "__main__":
    sys.exit(decode_file(decode, "PAGE > VALUES"))

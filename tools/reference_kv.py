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
CHOICES: Final = (2016, 1984, 1920, 1792)
COSTS: Final = (25, 8, 1, 0, 3, 6, 9, 13, 16, 20, 23)
QUADS: Final = sorted(
    (
        quad
        for quad in itertools.product(range(len(COSTS)), repeat=4)
        if sum(COSTS[distance] for distance in quad) <= 26
    ),
    key=lambda quad: (sum(COSTS[distance] for distance in quad), quad),
)
ZERO: Final = 100  # in place of a distance


def number(data: bytes, at: int, n: int = 2) -> int:
    """Return the little-endian number of n bytes at a place."""
    return int.from_bytes(data[at : at + n], "little")


def read_header(data: bytes) -> tuple[int, int, int, int, list[int]]:
    """Return form, channels, exceptions, codes, and where each list ends."""
    if len(data) < 2:
        refuse("truncated", len(data), "no magic number")
    if data[:2] != MAGIC:
        refuse("magic", 0, data[:2].hex())
    if len(data) < 32:
        refuse("truncated", len(data), "no header")
    if data[2] != 3:
        refuse("version", 2, f"version {data[2]}")
    form = data[3]
    if form > 1:
        refuse("feature", 3, f"form {form}")
    channels, tokens, size, n_exceptions = number(data, 4), number(data, 6), number(data, 8, 4), number(data, 12)
    n_codes = number(data, 14)
    if channels % 16 or not 16 <= channels <= 512 or tokens != TOKENS:
        refuse("header", 4, f"{channels} channels, {tokens} tokens")
    if n_codes not in (CHOICES if form else (0,)):
        refuse("header", 14, f"{n_codes} codes")
    n_lists = 4 * -(-channels // 64) if form else 0
    bases_at = bases_place(channels) if form else 32
    if len(data) < bases_at:
        refuse("truncated", len(data), "no ends of lists")
    ends = [number(data, at) for at in range(16, bases_at, 2)]
    for here, following in itertools.pairwise([0, *ends[:n_lists]]):
        if not 0 <= following - here <= 2048 - n_codes:
            refuse("header", 16, f"lists end at {ends}")
    if any(ends[n_lists:]):
        refuse("header", 16, f"{n_lists} lists end at {ends}")
    plain = -(-(32 + 2 * TOKENS * channels) // 64) * 64
    end = ends[n_lists - 1] if form else 0
    expected = plain
    if form:
        expected = -(-(bases_at + channels + 4 * slab_nbytes(channels) + 2 * end + 4 * n_exceptions) // 16) * 16
    if size != expected or size > plain or (not form and n_exceptions):
        refuse("header", 8, f"{size} bytes with {n_exceptions} exceptions")
    if len(data) < size:
        refuse("truncated", len(data), f"{size} bytes expected")
    return form, channels, n_exceptions, n_codes, ends[:n_lists]


def bases_place(channels: int) -> int:
    """Return where bases begin."""
    return 16 + -(-8 * -(-channels // 64) // 16) * 16


def slab_nbytes(channels: int) -> int:
    """Return the bytes of a slab."""
    return 32 * (channels + (11 * (channels // 16) + 1) // 2)


def place(piece: int, half: int) -> int:
    """Return where half a piece stands among those of the others."""
    return piece ^ piece // 16 * 4 ^ 6 * half


def read_codes(slab: bytes, channels: int, piece: int, half: int) -> list[int]:
    """Return the codes of half a piece, of two steps of each block."""
    blocks = channels // 16
    words, rest = divmod(22 * blocks, 32)
    rest_nbytes = -(-2 * rest // 8)
    at = 32 * channels
    bits = sum(
        number(slab, at + 4 * ((half * words + word) * 32 + place(piece, half)), 4) << 32 * word
        for word in range(words)
    )
    last = number(slab, at + 256 * words + rest_nbytes * piece, rest_nbytes) >> rest * half & ((1 << rest) - 1)
    bits |= last << 32 * words
    return [bits >> 11 * i & 2047 for i in range(2 * blocks)]


def read_spelled(at: int, words: list[int], index: int) -> tuple[list[int], int]:
    """Return the distances of a spelled quad, and the number of words."""
    if index >= len(words):
        refuse("corrupt", at, f"word {index} of {len(words)}")
    nibbles = [words[index] >> 4 * i & 15 for i in range(4)]
    n = 2 if 15 in nibbles else 1
    if index + n > len(words):
        refuse("corrupt", at, f"a distance in word {index + 1} of {len(words)}")
    far = words[index + 1] if n == 2 else 0
    distances = []
    for i, nibble in enumerate(nibbles):
        more = far >> 4 * i & 15
        if nibble < 15 and more:
            refuse("corrupt", at, f"word {index + 1} says {more} of a distance that is there")
        distances.append(ZERO if nibble == 14 else nibble if nibble < 14 else 14 + more if more < 12 else more - 16)
    return distances, n


def join(at: int, kept: int, distance: int, base: int) -> int:
    """Return a value from its parts."""
    sign, mantissa = (kept & 128) << 8, kept & 127
    if base == 0 or distance == ZERO:
        if mantissa or (base == 0 and distance != 3):
            refuse("corrupt", at, f"distance {distance}, {kept:#x} in place of zero")
        return sign
    exponent = base + 4 - distance
    if not 1 <= exponent <= 254:
        refuse("corrupt", at, f"exponent {exponent}")
    return sign | exponent << 7 | mantissa


def decode(data: bytes) -> bytes:
    """Return the values of a page, token by token."""
    form, channels, n_exceptions, n_codes, ends = read_header(data)
    if not form:
        return data[32 : 32 + 2 * TOKENS * channels]
    bases_at, blocks, groups = bases_place(channels), channels // 16, -(-channels // 64)
    stored = data[bases_at : bases_at + channels]
    for i, base in enumerate(stored):
        if base and not 10 <= base <= 250:
            refuse("corrupt", bases_at + i, f"base {base}")
    bases = [stored[c // 16 * 16 + c % 8 * 2 + c // 8 % 2] for c in range(channels)]
    lists_at = bases_at + channels + 4 * slab_nbytes(channels)
    values = [[0] * channels for _ in range(TOKENS)]
    for number_of_list, (first, end) in enumerate(itertools.pairwise([0, *ends])):
        slab, group = divmod(number_of_list, groups)
        at = bases_at + channels + slab * slab_nbytes(channels)
        held = data[at : at + slab_nbytes(channels)]
        words = [number(data, lists_at + 2 * i) for i in range(first, end)]
        expected = 0
        for piece in range(32):
            codes = [read_codes(held, channels, piece, half) for half in range(2)]
            for block, step, half in itertools.product(
                range(4 * group, min(4 * group + 4, blocks)), range(2), range(2)
            ):
                code = codes[half][2 * block + step]
                if code < n_codes:
                    distances = list(QUADS[code])
                else:
                    if code - n_codes != expected:
                        refuse("corrupt", at, f"word {code - n_codes}, {expected} expected")
                    distances, n = read_spelled(at, words, expected)
                    expected += n
                kept_at = 512 * block + 256 * half + 8 * place(piece, half) + 4 * step
                token = 32 * slab + 16 * step + piece % 4 * 4 + 2 * half
                for i in range(4):
                    channel = 16 * block + piece // 4 + 8 * (i % 2)
                    value = join(at + kept_at + i, held[kept_at + i], distances[i], bases[channel])
                    values[token + i // 2][channel] = value
        if expected != len(words):
            refuse("corrupt", at, f"{expected} words used of {len(words)}")
    at, least = lists_at + 2 * ends[-1], 0
    for i in range(n_exceptions):
        where, value = (number(data, at + 2 * k) for k in (i, n_exceptions + i))
        channel, token = divmod(where, TOKENS)
        if where < least or channel >= channels or not bases[channel]:
            refuse("corrupt", at + 2 * i, f"exception at channel {channel}, token {token}")
        if values[token][channel] != (bases[channel] + 1) << 7:
            refuse("corrupt", at + 2 * i, f"{values[token][channel]:#x} in place of an exception")
        values[token][channel] = value
        least = where + 1
    return b"".join(value.to_bytes(2, "little") for row in values for value in row)


if __name__ == "__main__":
    sys.exit(decode_file(decode, "PAGE > VALUES"))

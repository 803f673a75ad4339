# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Cold payloads for the reference decoder: what does not learn, and where in rows and words the content is."""

from __future__ import annotations

from functools import cache
from typing import Final

CONTENT_MAX: Final = 1 << 26
M32: Final = (1 << 32) - 1
CONTEXTS: Final = 13
LOGIT_MAX: Final = 2847
STEPS: Final = 16
STEP_SCALE: Final = 172  # of 2^-16 steps a logit
TEXT, BINARY, ROWS = range(3)
NEUTRAL: Final = (1 << 19, 0)  # probability of 20 bits, logit


def table_log(content: int) -> int:
    """Return the log of the bytes of a table of contexts."""
    return min(max((content - 1).bit_length(), 12), 24)


def match_log(content: int) -> int:
    """Return the log of the entries of a table of matches."""
    return min(table_log(content) - 2, 20)


def model_memory(content: int) -> int:
    """Return the bytes that the model takes."""
    return (2 << 20) + (8 << match_log(content)) + (12 << table_log(content))


def mix(h: int) -> int:
    """Spread a hash."""
    h ^= h >> 15
    h = h * 0x85EBCA6B & M32
    h ^= h >> 13
    h = h * 0xC2B2AE35 & M32
    return h ^ h >> 16


def join(a: int, b: int) -> int:
    """Make one value of two."""
    return ((a * 0x2F0B4C47 + b * 0x9E3779B1 + 0x3C6EF372) & M32) ^ a >> 15


def clamp(x: int, most: int = LOGIT_MAX) -> int:
    """Keep a number within -most … most."""
    return max(-most, min(most, x))


@cache
def curves() -> tuple[list[int], list[int]]:
    """Return squash, from -LOGIT_MAX on, and the exact inverse for all 16 bits."""
    squash = [0] * (2 * LOGIT_MAX + 1)
    t = 1 << 32
    for x in range(LOGIT_MAX + 1):
        p = max(1, (t << 16) // ((1 << 32) + t))
        squash[LOGIT_MAX - x], squash[LOGIT_MAX + x] = p, 65536 - p
        t = t * 2139111478 >> 31
    stretch, x = [], -LOGIT_MAX
    for p in range(1 << 16):
        while x < LOGIT_MAX and squash[x + LOGIT_MAX] < p:
            x += 1
        stretch.append(x)
    return squash, stretch


@cache
def states() -> tuple[list[list[int]], list[int]]:
    """Return the state after each state and bit, and the probability of 20 bits that each starts with."""
    most = (44, 16, 10, 6, 5)
    kept = (0, 1, 2, 3, 3, 4, 4, 4, 5, 5, 5, 5, 5)

    def allowed(a: int, b: int) -> bool:
        return min(a, b) < 5 and max(a, b) <= most[min(a, b)]

    all_states = [(n - h.bit_count(), h.bit_count(), h, n) for n in range(4) for h in range(1 << n)]
    all_states += [
        (total - ones, ones, last, 4)
        for total in range(4, 49)
        for ones in range(total + 1)
        for last in range(2)
        if allowed(total - ones, ones) and (ones if last else total - ones)
    ]
    number = {state: i for i, state in enumerate(all_states)}

    def after(state: tuple[int, int, int, int], bit: int) -> int:
        zeros, ones, bits, n = state
        if n < 3:
            return number[zeros + 1 - bit, ones + bit, bits << 1 | bit, n + 1]
        same, other = ((ones if bit else zeros) + 1, zeros if bit else ones)
        other = kept[other] if other < len(kept) else 6
        while not allowed(same, other):
            if allowed(same - 1, other) or other == 0:
                same -= 1
            else:
                other -= 1
        same = max(same, 4 - other)
        return number[(other, same, 1, 4) if bit else (same, other, 0, 4)]

    following = [[after(state, bit) for state in all_states] for bit in range(2)]
    first = [(5 * o + 2) * ((1 << 20) - 1) // (5 * (z + o) + 4) for z, o, _, _ in all_states]
    return following, first


def line_log(v: int) -> int:
    """Return the log2 of a number in 2^-23, by straight lines between powers of two."""
    log = v.bit_length() - 1
    return (log << 23) + (v << 23 - log) - (1 << 23)


def low_logit(p: int) -> int:
    """Return the logit of a probability of 20 bits, as maps hold it."""
    twice = 2 * p + 1
    return clamp((line_log(twice) - line_log((1 << 21) - twice) >> 11) * 177 >> 12, 2047)


def class_of(length: int) -> int:
    """Return the class of a length: exact below 16, then four a doubling."""
    if length < 16:
        return length
    log = length.bit_length() - 1
    return 16 + (log - 4) * 4 + (length >> (log - 2) & 3)


def near(stretch: list[int], p: int) -> int:
    """Return the logit of 16 bits: exact near both ends, by 16 and at most 2047 between."""
    if p < 1024 or p >= 65536 - 1024:
        return stretch[p]
    return clamp(stretch[p >> 4 << 4], 2047)


class Place:
    """Words, rows and fields."""

    def __init__(self) -> None:
        self.word = self.word1 = self.word2 = self.marks = 0
        self.line = self.line_before = self.column = 0
        self.field = self.field_column = self.field_hash = 0
        self.above = self.above_hash = self.parity = 0
        self.hash_of = [0] * 256
        self.start_of = [[0] * 256, [0] * 256]
        self.code = self.code_state = 0

    def advance(self, profile: int, data: bytearray) -> None:
        """Take the last byte of data."""
        byte = data[-1]
        lower = byte + 32 if 65 <= byte <= 90 else byte
        if 97 <= lower <= 122 or byte >= 128 or (profile == ROWS and 48 <= byte <= 57):
            self.word = join(self.word, lower)
        else:
            if self.word:
                self.word2, self.word1, self.word = self.word1, self.word, 0
            self.marks = (self.marks << 8 | byte) & M32
        if profile == ROWS:
            self.rows(byte, data)
        elif profile == BINARY:
            if byte in {0xE8, 0xE9}:
                self.code_state = 1
            elif self.code_state:
                self.code_state = (self.code_state + 1) % 5
            if not self.code_state:
                self.code = join(self.code & 0xFFFFFF, byte & 0xF8)
        else:
            if byte == 10:
                self.line_before, self.line, self.column = self.line, len(data), 0
            else:
                self.column += 1
            self.above = self.line_before + self.column
            if self.above >= self.line:
                self.above = 0

    def rows(self, byte: int, data: bytearray) -> None:
        """Follow rows and fields."""
        if byte not in b"\n,\t :|;":
            self.field_column += 1
            self.field_hash = join(self.field_hash, byte)
            self.above += self.above > 0
            return
        self.hash_of[self.field % 256] = self.field_hash
        self.field_hash = self.field_column = 0
        if byte == 10:
            self.field = 0
            self.parity ^= 1
        else:
            self.field += 1
        if self.field >= 256:
            self.above += self.above > 0
            return
        self.start_of[self.parity][self.field] = len(data)
        self.above = self.start_of[self.parity ^ 1][self.field]
        self.above_hash = 0
        if self.above:
            for other in data[self.above : self.above + 24]:
                if other in b"\n,\t :|;":
                    break
                self.above_hash = join(self.above_hash, other)

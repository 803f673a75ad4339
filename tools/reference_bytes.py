# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Bytes, bits and the error of the reference decoder (reference_decoder.py)."""

from __future__ import annotations

from typing import Final

CATEGORIES: Final = (
    "magic",
    "version",
    "feature",
    "header",
    "corrupt",
    "checksum",
    "truncated",
    "trailing",
    "base missing",
    "base wrong",
)


class FormatError(ValueError):
    """Input that is no valid stream: ``category`` says which kind of rule it breaks, ``offset`` where."""

    def __init__(self, category: str, offset: int, message: str) -> None:
        super().__init__(f"{category}, byte {offset}: {message}")
        self.category = category
        self.offset = offset


class Bytes:
    """A part of the input that is read from front to back.

    ``bad`` is the category of a malformed item, ``short`` that of a part that ends too early.
    """

    def __init__(self, data: bytes, start: int, end: int, *, bad: str, short: str) -> None:
        self.data = data
        self.at = start
        self.end = end
        self.bad = bad
        self.short = short

    @property
    def left(self) -> int:
        """Number of bytes not read yet."""
        return self.end - self.at

    def refuse(self, message: str) -> FormatError:
        """Make the error for a malformed item here."""
        return FormatError(self.bad, self.at, message)

    def require(self, ok: bool, message: str) -> None:
        """Raise unless ok."""
        if not ok:
            raise self.refuse(message)

    def take(self, size: int, what: str) -> bytes:
        """Read bytes."""
        if size > self.left:
            raise FormatError(self.short, self.at, f"{what}: {size} bytes expected, {self.left} found")
        self.at += size
        return self.data[self.at - size : self.at]

    def part(self, size: int, what: str) -> Bytes:
        """Read bytes as a part of its own, complete in itself."""
        start = self.at
        self.take(size, what)
        return Bytes(self.data, start, self.at, bad=self.bad, short=self.bad)

    def number(self, size: int, what: str) -> int:
        """Read a little-endian integer."""
        return int.from_bytes(self.take(size, what), "little")

    def varint(self, what: str) -> int:
        """Read a canonical varint."""
        value = 0
        for i in range(10):
            byte = self.number(1, what)
            value |= (byte & 0x7F) << (7 * i)
            if byte < 0x80:
                self.require(byte != 0 or i == 0, f"{what}: varint ends with a zero byte")
                self.require(value < 1 << 64, f"{what}: varint of 2^64 or more")
                return value
        raise self.refuse(f"{what}: varint of more than 10 bytes")


class Bits:
    """A string of bits, least significant first in each byte."""

    def __init__(self, source: Bytes) -> None:
        self.source = source
        self.start = source.at
        self.used = 0

    def bit(self) -> int:
        """Read one bit; the source moves to the end of the byte that holds it."""
        if self.used == 8 * (self.source.at - self.start):
            self.source.take(1, "bits")
        byte = self.source.data[self.start + self.used // 8]
        self.used += 1
        return (byte >> ((self.used - 1) % 8)) & 1

    def number(self, count: int) -> int:
        """Read an integer of so many bits."""
        return sum(self.bit() << i for i in range(count))

    def zeros(self, most: int, what: str) -> int:
        """Read zero bits and the one bit that ends them; return how many there were."""
        count = 0
        while self.bit() == 0:
            count += 1
            self.source.require(count <= most, f"{what}: more than {most} zero bits")
        return count

    def gamma(self, what: str) -> int:
        """Read an Elias gamma code."""
        k = self.zeros(8, what)  # counts of symbols: at most 256
        return (1 << k) + self.number(k)


def unzigzag(value: int) -> int:
    """Undo zigzag: 0, 1, 2, 3, … give 0, -1, 1, -2, … again."""
    return -(value + 1 >> 1) if value & 1 else value >> 1

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""A second, slow decoder of objects and dictionaries, written from native/src/object/spec.md alone.

python tools/reference_objects.py DICTIONARY OBJECT...    content to standard output
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final, NamedTuple

from reference_bytes import FormatError
from reference_xxh3 import xxh3_64

STEPS_AT: Final = 140
STEP: Final = 4
TABLE: Final = 129
CODES: Final = 128
BIAS: Final = 7


def refuse(message: str) -> FormatError:
    """Make the error for what breaks a rule."""
    return FormatError("corrupt", 0, message)


def nibbles(data: bytes) -> list[int]:
    """Return the halves of bytes, lower ones first."""
    return [half for byte in data for half in (byte & 15, byte >> 4)]


class Table:
    """A code of byte values: (length, code with its first bit on top) to value; one value may be the escape."""

    def __init__(self, data: bytes, *, longest: int, escape: int | None) -> None:
        self.escape = escape
        lengths = nibbles(data)
        self.lengths = lengths
        if max(lengths) > longest or sum(2.0**-n for n in lengths if n) != 1.0:
            raise refuse("code lengths")
        if escape is not None and lengths[escape] == 0:
            raise refuse("escape without a code")
        self.values: dict[tuple[int, int], int] = {}
        code = previous = 0
        for length, value in sorted((n, v) for v, n in enumerate(lengths) if n):
            code <<= length - previous
            self.values[length, code] = value
            code += 1
            previous = length


class Step(NamedTuple):
    """What a code of the table of steps stands for."""

    literals: int
    match: int
    literals_bits: int
    match_bits: int
    slot: int

    def check(self) -> None:
        """Refuse what cannot be."""
        longest = max(self.literals + (1 << self.literals_bits), self.match + (1 << self.match_bits))
        if max(self.literals_bits, self.match_bits) > 16 or longest > 65536 or self.match < 4 or self.slot > 3:
            raise refuse("step")


class Dictionary:
    """A dictionary's fields."""

    def __init__(self, data: bytes) -> None:
        n = int.from_bytes(data[8:12], "little")
        contexts, steps = data[5], data[6]
        if data[:5] != b"\x9dGLD\x03" or not 1 <= contexts <= 8 or n > 1 << 20:
            raise refuse("dictionary header")
        tables_at = STEPS_AT + STEP * steps
        codes_at = tables_at + (contexts + 1) * TABLE
        at = codes_at + CODES
        if len(data) != at + n + 4:
            raise refuse("dictionary size")
        self.id = int.from_bytes(data[-4:], "little")
        if xxh3_64(data[:-4]) & 0xFFFFFFFF != self.id:
            raise refuse("dictionary id")
        self.context = nibbles(data[12:140])
        if max(self.context) >= contexts:
            raise refuse("contexts")
        self.steps = [
            Step(data[i], data[i + 1], data[i + 2], data[i + 3] & 31, data[i + 3] >> 5)
            for i in range(STEPS_AT, tables_at, STEP)
        ]
        for step in self.steps:
            step.check()
        tables = [data[i : i + TABLE] for i in range(tables_at, codes_at, TABLE)]
        self.literals = [Table(table[1:], longest=9, escape=table[0]) for table in tables[:-1]]
        self.offsets = Table(tables[-1][1:], longest=10, escape=tables[-1][0])
        self.step_table = Table(data[codes_at:at], longest=10, escape=None)
        if any(self.step_table.lengths[steps:]):
            raise refuse("codes of steps")
        self.content = data[at : at + n]
        self.shift = 0
        while 112 << self.shift < n:
            self.shift += 1


class Bits:
    """The bits of a payload from one of its ends."""

    def __init__(self, bits: str) -> None:
        self.bits = bits
        self.at = 0

    def number(self, n: int) -> str:
        """Return the next n bits, in their order; zeros are past the end."""
        self.at += n
        return self.bits[self.at - n : self.at].ljust(n, "0")

    def low_first(self, n: int) -> int:
        """Return a number whose lowest bit comes first."""
        return int(self.number(n)[::-1] or "0", 2)

    def code(self, table: Table) -> int:
        """Return the value of the next code."""
        code = ""
        while (value := table.values.get((len(code), int(code or "0", 2)))) is None:
            code += self.number(1)
        return value

    def symbol(self, table: Table, *, low_first: bool = True) -> int:
        """Return the next symbol."""
        value = self.code(table)
        if value != table.escape:
            return value
        return self.low_first(8) if low_first else int(self.number(8), 2)


def decode_literals(back: Bits, n: int, d: Dictionary) -> bytes:
    """Decode half of the literals."""
    literals = bytearray()
    for _ in range(n):
        before = literals[-1] if literals else 0
        literals.append(back.symbol(d.literals[d.context[before]], low_first=False))
        if back.at > len(back.bits):
            raise refuse("literals beyond their half")
    return bytes(literals)


def compact(payload: bytes, size: int, d: Dictionary) -> bytes:
    """Decode a compact payload."""
    front = Bits("".join(f"{byte:08b}"[::-1] for byte in payload))
    n_literals = front.low_first(size.bit_length())
    split = front.low_first(size.bit_length())
    if n_literals > size or split > len(payload):
        raise refuse("number of literals, or bytes of the first half")
    offsets = Bits("".join(f"{byte:08b}"[::-1] for byte in payload[split:]))
    backs = [Bits("".join(f"{byte:08b}" for byte in reversed(half))) for half in (payload[split:], payload[:split])]
    first = (n_literals + 1) // 2
    literals = decode_literals(backs[0], first, d) + decode_literals(backs[1], n_literals - first, d)
    out = bytearray(d.content)
    start, end, taken = len(out), len(out) + size, 0
    repeats = [1, 4, 8]
    while end - len(out) > n_literals - taken:
        step = d.steps[front.code(d.step_table)]
        n = step.literals + front.low_first(step.literals_bits)
        m = step.match + front.low_first(step.match_bits)
        place = len(out) + n
        if step.slot == 3:
            s = offsets.symbol(d.offsets)
            if s < 144:
                distance = ((8 + (s & 7)) << (s >> 3)) + offsets.low_first(s >> 3) - BIAS
            else:
                distance = place - (((s - 144) << d.shift) + offsets.low_first(d.shift))
            repeats = [distance, *repeats[:2]]
        else:
            distance = repeats.pop(step.slot)
            repeats.insert(0, distance)
        if n > n_literals - taken or m > end - len(out) - (n_literals - taken) or not 0 < distance <= place:
            raise refuse("sequence")
        source = place - distance
        if source < start < source + m:
            raise refuse("match beyond the dictionary")
        out += literals[taken : taken + n]
        taken += n
        for i in range(m):
            out.append(out[source + i])
    halves = ((split, front.at + backs[1].at), (len(payload) - split, offsets.at + backs[0].at))
    if any(not 8 * (n - 1) < bits <= 8 * n for n, bits in halves):
        raise refuse("payload size")
    return bytes(out[start:] + literals[taken:])


def decode_object(data: bytes, d: Dictionary) -> bytes:
    """Return the content of the one object in data; objects of blocks are not for this tool."""
    flags = data[2]
    if data[:2] != b"\x9d\x4f" or flags >> 4 or flags & 3 == 3 or flags >> 2 == 3:
        raise refuse("object header")
    at, values = 7, []
    form, check = flags >> 2, 2 * (flags & 3)
    for _ in range(2 if form else 1):
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            shift += 7
            at += 1
            if data[at - 1] < 128:
                break
        values.append(value)
    size, stored = values[0], int.from_bytes(data[at : at + check], "little")
    payload = data[at + check :]
    if len(payload) != values[-1]:
        raise refuse("payload size")
    if form == 2:
        raise NotImplementedError("an object of blocks")
    if form and int.from_bytes(data[3:7], "little") != d.id:
        raise FormatError("base wrong", 3, "another dictionary")
    content = compact(payload, size, d) if form else payload
    if xxh3_64(content) & (1 << 8 * check) - 1 != stored:
        raise FormatError("checksum", 0, "content")
    return content


def main() -> int:
    """Decode the objects named."""
    dictionary = Dictionary(Path(sys.argv[1]).read_bytes())
    for name in sys.argv[2:]:
        sys.stdout.buffer.write(decode_object(Path(name).read_bytes(), dictionary))
    return 0


if __name__ == "__main__":
    sys.exit(main())

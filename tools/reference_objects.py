# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""A second, slow decoder of objects and dictionaries, written from native/src/object/spec.md alone.

python tools/reference_objects.py DICTIONARY OBJECT...    content to standard output
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from reference_bytes import FormatError
from reference_xxh3 import xxh3_64

TABLES_AT: Final = 155
TABLE: Final = 129
BIAS: Final = 7


def refuse(message: str) -> FormatError:
    """Make the error for what breaks a rule."""
    return FormatError("corrupt", 0, message)


def nibbles(data: bytes) -> list[int]:
    """Return the halves of bytes, lower ones first."""
    return [half for byte in data for half in (byte & 15, byte >> 4)]


class Table:
    """A code of byte values: (length, code with its first bit on top) to value; one value is the escape."""

    def __init__(self, data: bytes) -> None:
        self.escape = data[0]
        lengths = nibbles(data[1:])
        self.lengths = lengths
        if lengths[self.escape] == 0 or max(lengths) > 11 or sum(2.0**-n for n in lengths if n) != 1.0:
            raise refuse("code lengths")
        self.values: dict[tuple[int, int], int] = {}
        code = previous = 0
        for length, value in sorted((n, v) for v, n in enumerate(lengths) if n):
            code <<= length - previous
            self.values[length, code] = value
            code += 1
            previous = length


class Dictionary:
    """A dictionary's fields."""

    def __init__(self, data: bytes) -> None:
        n = int.from_bytes(data[8:12], "little")
        self.contexts = data[5]
        if data[:5] not in (b"\x9dGLD\x01", b"\x9dGLD\x02") or not 1 <= self.contexts <= 8 or n > 1 << 20:
            raise refuse("dictionary header")
        if data[4] == 1 and data[6:8] != b"\0\0":
            raise refuse("dictionary header")
        tables_at = TABLES_AT + 3 * data[6]
        n_tables = self.contexts + 4 + (data[6] > 0)
        at = tables_at + n_tables * TABLE
        if len(data) != at + n + 4:
            raise refuse("dictionary size")
        self.id = int.from_bytes(data[-4:], "little")
        if xxh3_64(data[:-4]) & 0xFFFFFFFF != self.id:
            raise refuse("dictionary id")
        self.lengths = list(data[12:27])
        if sorted(set(self.lengths)) != self.lengths or not 4 <= self.lengths[0] <= self.lengths[-1] <= 254:
            raise refuse("match lengths")
        self.context = nibbles(data[27:155])
        if max(self.context) >= self.contexts:
            raise refuse("contexts")
        self.steps = [(data[i], data[i + 1], data[i + 2]) for i in range(TABLES_AT, tables_at, 3)]
        if any(0 < m < 4 or slot > 3 for _, m, slot in self.steps):
            raise refuse("steps")
        tables = [Table(data[tables_at + t * TABLE :][:TABLE]) for t in range(n_tables)]
        self.literals, self.others = tables[: self.contexts], tables[self.contexts : self.contexts + 4]
        self.step_table = tables[-1] if self.steps else None
        if self.step_table:
            escape = self.step_table.escape
            if escape < len(self.steps) or any(
                n and v != escape for v, n in enumerate(self.step_table.lengths) if v >= len(self.steps)
            ):
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


def lengths_and_offset(front: Bits, d: Dictionary) -> tuple[int, int, int]:
    """Read number of literals, match length and offset of a sequence."""
    commands, literal_escapes, match_escapes, _ = d.others
    step = front.code(d.step_table) if d.step_table else -1
    if d.step_table and step != d.step_table.escape:
        n, m, slot = d.steps[step]
        code = 0 if m else 15
    else:
        command = front.symbol(commands)
        n, code, slot = command & 3, command >> 2 & 15, command >> 6
        m = d.lengths[code] if code < 15 else 0
        if n == 3:
            e = front.symbol(literal_escapes)
            n = 3 + e if e < 255 else front.low_first(16)
            if e == 255 and n < 258:
                raise refuse("literal length")
    if code == 15:
        e = front.symbol(match_escapes)
        m = 4 + e if e < 255 else front.low_first(16)
        if e == 255 and m < 259:
            raise refuse("match length")
    return n, m, slot


def compact(payload: bytes, size: int, d: Dictionary) -> bytes:
    """Decode a compact payload."""
    front = Bits("".join(f"{byte:08b}"[::-1] for byte in payload))
    back = Bits("".join(f"{byte:08b}" for byte in reversed(payload)))
    offsets = d.others[3]
    n_literals = front.low_first(size.bit_length())
    if n_literals > size:
        raise refuse("number of literals")
    literals = bytearray()
    for _ in range(n_literals):
        before = literals[-1] if literals else 0
        literals.append(back.symbol(d.literals[d.context[before]], low_first=False))
        if back.at > 8 * len(payload):
            raise refuse("literals beyond the payload")
    out = bytearray(d.content)
    start, end, taken = len(out), len(out) + size, 0
    repeats = [1, 4, 8]
    while end - len(out) > n_literals - taken:
        n, m, slot = lengths_and_offset(front, d)
        place = len(out) + n
        if slot == 3:
            s = front.symbol(offsets)
            if s < 144:
                distance = ((8 + (s & 7)) << (s >> 3)) + front.low_first(s >> 3) - BIAS
            else:
                distance = place - (((s - 144) << d.shift) + front.low_first(d.shift))
            repeats = [distance, *repeats[:2]]
        else:
            distance = repeats.pop(slot)
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
    if not 8 * (len(payload) - 1) < front.at + back.at <= 8 * len(payload):
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

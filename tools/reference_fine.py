# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Fine planes of the reference decoder, in the order of native/src/huffman/spec.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reference_bytes import Bits, Bytes
from reference_planes import (
    Plane,
    Tables,
    canonical_codes,
    lengths_of,
    read_code_lengths,
    read_differences,
    read_mode,
)

FINE_MIN: Final = 256
TABLES_MAX: Final = {"literals": 8, "commands": 6, "offset codes": 5}
GIVEN: Final = 64
# Contexts of literals that begin a run, as what is given for them: 256 more.
RUN: Final = 256
RUNS: Final = [command for command in range(256) if command & 3 and not command & 4]


@dataclass
class ContextTables:
    """Codes, each (bits, code) -> symbol or the one symbol that takes no bits, and context -> number of its code."""

    codes: list[dict[tuple[int, int], int] | int]
    numbers: dict[int, int]
    some_given: bool

    def read(self, bits: Bits, context: int) -> int:
        """Read one symbol."""
        codes = self.codes[self.numbers.get(context, 0)]
        if isinstance(codes, int):
            return codes
        length, code = 1, bits.bit()
        while (length, code) not in codes:
            length, code = length + 1, code << 1 | bits.bit()
        return codes[length, code]


def read_context_tables(source: Bytes, kind: str) -> ContextTables:
    """Read tables and map."""
    n, singles = source.number(1, "number of tables"), source.number(1, "tables of one symbol")
    some_given = kind == "literals" and n >= 128
    n -= 128 * some_given
    source.require(1 <= n <= TABLES_MAX[kind], f"{kind}: {n} tables")
    source.require(singles < 1 << n, f"{kind}: single tables {singles:#b} of {n}")
    codes: list[dict[tuple[int, int], int] | int] = []
    symbols = {0}
    for k in range(n):
        if singles >> k & 1:
            codes.append(source.number(1, "symbol"))
            symbols.add(source.data[source.at - 1])
        else:
            lengths = read_code_lengths(source)
            symbols |= lengths.keys()
            codes.append(canonical_codes(lengths))
    bits = Bits(source)
    numbers = {}
    listed = list(range(GIVEN)) if kind == "offset codes" else sorted(symbols)
    for context in listed + [RUN + given for given in RUNS if some_given]:
        numbers[context] = bits.number((n - 1).bit_length())
        source.require(numbers[context] < n, f"{kind}: table {numbers[context]} of {n}")
    return ContextTables(codes, numbers, some_given)


def read_changes(source: Bytes, kind: str, tables: ContextTables) -> None:
    """Read the tables that come instead of those before."""
    n = len(tables.codes)
    changed, singles = source.number(1, "changed tables"), source.number(1, "tables of one symbol")
    source.require(changed < 1 << n, f"{kind}: changed tables {changed:#b} of {n}")
    source.require(singles & ~changed == 0, f"{kind}: single tables {singles:#b} of changed ones {changed:#b}")
    for k in range(n):
        before = tables.codes[k]
        if singles >> k & 1:
            tables.codes[k] = source.number(1, "symbol")
        elif changed >> k & 1:
            lengths = (
                read_code_lengths(source) if isinstance(before, int) else read_differences(source, lengths_of(before))
            )
            tables.codes[k] = canonical_codes(lengths)


def read_fine_plane(
    source: Bytes,
    kind: str,
    most: int,
    last_tables: Tables,
    last_contexts: dict[str, ContextTables],
    contexts: bytes | None,
) -> Plane:
    """Read a fine plane.

    contexts: those of offset codes; of literals, what may be given for some, 0 for the others; None: the bytes before.
    """
    n, mode = divmod(source.varint(f"{kind}: size and mode"), 8)
    if mode < 4 or mode == 7:
        return read_mode(source, kind, n, mode, most, last_tables)
    source.require(FINE_MIN <= n <= most, f"{kind}: {n} bytes with contexts, at most {most}")
    source.require(kind != "offset codes" or n <= len(contexts or b""), f"{kind}: {n} bytes, fewer contexts")
    if mode == 4:
        last_contexts[kind] = read_context_tables(source, kind)
    source.require(kind in last_contexts, f"{kind}: no last tables")
    tables = last_contexts[kind]
    if mode == 6:
        read_changes(source, kind, tables)
    given = contexts if contexts and (kind == "offset codes" or tables.some_given) else b""
    sizes = [source.number(2, "stream size") for _ in range(7)]
    chunk = -(-n // 8)
    out = bytearray()
    for i in range(8):
        stream = source.part(sizes[i], "stream") if i < 7 else source
        bits = Bits(stream)
        for at in range(i * chunk, min(n, (i + 1) * chunk)):
            context = 0 if at == i * chunk else out[-1]
            if kind == "offset codes":
                context = given[at]
            elif at < len(given) and given[at]:
                context = RUN + given[at]
            out.append(tables.read(bits, context))
        stream.require(i == 7 or stream.left == 0, f"{stream.left} bytes left in stream {i}")
    return Plane(kind, bytes(out), source)

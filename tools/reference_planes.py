# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Huffman planes of the reference decoder, in the order of native/src/huffman/spec.md."""

from __future__ import annotations

from typing import Final

from reference_bytes import Bits, Bytes, unzigzag

CODE_BITS_MAX: Final = 11
CODE_BITS_START: Final = 7

Tables = dict[str, dict[tuple[int, int], int]]


class Plane:
    """Bytes of one kind, taken in the order of the sequences."""

    def __init__(self, name: str, content: bytes, source: Bytes) -> None:
        self.name = name
        self.content = Bytes(content, 0, len(content), bad=source.bad, short=source.bad)

    def next(self) -> int:
        """Take one byte."""
        return self.content.number(1, self.name)

    def some(self, size: int) -> bytes:
        """Take several."""
        return self.content.take(size, self.name)

    def rest(self) -> bytes:
        """Take what is left."""
        return self.content.take(self.content.left, self.name)

    def check_used_up(self) -> None:
        """Refuse what no sequence took."""
        self.content.require(self.content.left == 0, f"{self.name}: {self.content.left} bytes not used")


def read_code_lengths(source: Bytes) -> dict[int, int]:
    """Read the code lengths of a plane: symbol -> bits."""
    bits = Bits(source)
    lengths: dict[int, int] = {}
    previous = CODE_BITS_START
    symbol = bits.gamma("unused symbols") - 1
    kraft = 0
    while True:
        for _ in range(bits.gamma("used symbols")):
            source.require(symbol <= 255, f"code length of symbol {symbol}")
            previous += unzigzag(bits.zeros(2 * CODE_BITS_MAX, "code length"))
            source.require(1 <= previous <= CODE_BITS_MAX, f"code length {previous}")
            kraft += 1 << (CODE_BITS_MAX - previous)
            source.require(kraft <= 1 << CODE_BITS_MAX, "Kraft sum over 1")
            lengths[symbol] = previous
            symbol += 1
        if kraft == 1 << CODE_BITS_MAX:
            return lengths
        symbol += bits.gamma("unused symbols")


def read_differences(source: Bytes, before: dict[int, int]) -> dict[int, int]:
    """Read code lengths as differences from those before: symbol -> bits."""
    bits = Bits(source)
    lengths: dict[int, int] = {}
    for symbol, length in sorted(before.items()):
        now = length + unzigzag(bits.zeros(2 * CODE_BITS_MAX, "difference of code lengths"))
        source.require(1 <= now <= CODE_BITS_MAX + 1, f"code length {now}")
        if now <= CODE_BITS_MAX:
            lengths[symbol] = now
    others = iter([symbol for symbol in range(256) if symbol not in before])
    while (kraft := sum(1 << (CODE_BITS_MAX - length) for length in lengths.values())) < 1 << CODE_BITS_MAX:
        for _ in range(bits.gamma("symbols without a code")):
            symbol = next(others, 256)
        source.require(symbol <= 255, "code length of a symbol past 255")
        lengths[symbol] = CODE_BITS_MAX - bits.zeros(CODE_BITS_MAX - 1, "code length")
    source.require(kraft == 1 << CODE_BITS_MAX, "Kraft sum over 1")
    return lengths


def lengths_of(codes: dict[tuple[int, int], int]) -> dict[int, int]:
    """Return symbol -> bits."""
    return {symbol: length for (length, _), symbol in codes.items()}


def canonical_codes(lengths: dict[int, int]) -> dict[tuple[int, int], int]:
    """Assign codes by length, then symbol, counting up: (bits, code) -> symbol."""
    codes: dict[tuple[int, int], int] = {}
    code = 0
    before = 0
    for length, symbol in sorted((length, symbol) for symbol, length in lengths.items()):
        code <<= length - before
        before = length
        codes[length, code] = symbol
        code += 1
    return codes


def read_stream(source: Bytes, codes: dict[tuple[int, int], int], n: int) -> bytes:
    """Read n symbols; the source is then at the end of the byte that holds the last bit."""
    bits = Bits(source)
    out = bytearray()
    for _ in range(n):
        length, code = 1, bits.bit()
        while (length, code) not in codes:  # a complete code: ends within its longest length
            length, code = length + 1, code << 1 | bits.bit()
        out.append(codes[length, code])
    return bytes(out)


def read_streams(source: Bytes, codes: dict[tuple[int, int], int], n: int) -> bytes:
    """Read the symbols of a coded plane, dealt out over 1, 2 or 8 streams."""
    if n < 256:
        sizes = []
    elif n < 1024:
        sizes = [source.varint("stream size")]
    else:
        sizes = [source.number(2, "stream size") for _ in range(7)]
    n_streams = len(sizes) + 1
    out = bytearray(n)
    for i in range(n_streams):
        stream = source.part(sizes[i], "stream") if i < len(sizes) else source
        symbols = read_stream(stream, codes, len(range(i, n, n_streams)))
        stream.require(i == len(sizes) or stream.left == 0, f"{stream.left} bytes left in stream {i}")
        out[i::n_streams] = symbols
    return bytes(out)


def read_plane(source: Bytes, kind: str, most: int, last_tables: Tables) -> Plane:
    """Read a plane of at most so many bytes."""
    n, mode = divmod(source.varint(f"{kind}: size and mode"), 4)
    return read_mode(source, kind, n, mode, most, last_tables)


def read_mode(source: Bytes, kind: str, n: int, mode: int, most: int, last_tables: Tables) -> Plane:
    """Read what follows the head of a plane, in one of the modes without contexts (7 is one of fine planes alone)."""
    source.require(n <= most, f"{kind}: {n} bytes in a plane of at most {most}")
    if n == 0:
        source.require(mode == 0, f"{kind}: mode {mode} of an empty plane")
        return Plane(kind, b"", source)
    if mode == 0:
        return Plane(kind, source.take(n, kind), source)
    if mode == 1:
        return Plane(kind, source.take(1, kind) * n, source)
    if mode == 2:
        last_tables[kind] = canonical_codes(read_code_lengths(source))
    source.require(kind in last_tables, f"{kind}: no last table")
    if mode == 7:
        last_tables[kind] = canonical_codes(read_differences(source, lengths_of(last_tables[kind])))
    return Plane(kind, read_streams(source, last_tables[kind], n), source)

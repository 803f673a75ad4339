# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Decode packs of weights slowly and strictly: a second reader, written from native/src/weights/spec.md alone.

It takes one weight at a time, as the spec says where its parts lie, shares nothing with the library and
refuses whatever breaks a *must* that a reader can see. Tests hold the two against each other.

    python tools/reference_weights.py PACK > WEIGHTS
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from reference_bytes import FormatError

MAGIC: Final = bytes.fromhex("9D474C57")
MMA12: Final = 1
TIERED: Final = 2
TILE_COLS: Final = {MMA12: 64, TIERED: 128}
TILE_NBYTES: Final = {MMA12: 6144, TIERED: 10240}
BASES: Final = {MMA12: range(1, 120), TIERED: range(10, 251)}
TIER2: Final = (-1, 3, -2)
TIER3: Final = (-3, 4, -4, -5, -6, -7, -8, -9)
TIER3_ZERO: Final = 8
ESCAPES_MAX: Final = 6160


@dataclass(frozen=True)
class Pack:
    """A pack with its header read: shape, numbers, and where sections start."""

    data: bytes
    layout: int
    rows: int
    cols: int
    n_units: int
    n_exceptions: int
    tile_escape_max: int
    block_exc_max: int
    index_at: int
    tiles_at: int
    escapes_at: int
    places_at: int
    values_at: int

    @property
    def n_blocks(self) -> int:
        """Number of row blocks."""
        return -(-self.rows // 64)

    @property
    def n_tiles(self) -> int:
        """Number of tiles of a row block."""
        return -(-self.cols // TILE_COLS[self.layout])

    def number(self, at: int, size: int) -> int:
        """Return a little-endian integer."""
        return int.from_bytes(self.data[at : at + size], "little")


def aligned(n: int) -> int:
    """Return the next multiple of 128."""
    return -(-n // 128) * 128


def refuse(category: str, at: int, message: str) -> NoReturn:
    """Raise the error for a broken rule."""
    raise FormatError(category, at, message)


def read_header(data: bytes) -> Pack:
    """Read the header; the pack must be there whole."""
    if len(data) < 4:
        refuse("truncated", len(data), "no magic number")
    if data[:4] != MAGIC:
        refuse("magic", 0, data[:4].hex())
    if len(data) < 128:
        refuse("truncated", len(data), "no header")
    if data[4] != 1:
        refuse("version", 4, f"version {data[4]}")
    layout = data[5]
    if layout not in TILE_COLS:
        refuse("feature", 5, f"layout {layout}")
    rows, cols, size, n_units, n_exceptions = (int.from_bytes(data[at : at + 8], "little") for at in range(8, 48, 8))
    tile_escape_max, block_exc_max = (int.from_bytes(data[at : at + 4], "little") for at in (48, 52))
    if not (1 <= rows <= 1 << 36 and 1 <= cols < 1 << 26 and rows * cols <= 1 << 56):
        refuse("header", 8, f"{rows} rows, {cols} columns")
    n_blocks, n_tiles = -(-rows // 64), -(-cols // TILE_COLS[layout])
    index_at = 128 + 128 * n_blocks
    tiles_at = aligned(index_at + (4 * n_blocks * (n_tiles + 1) if layout == TIERED else 0))
    escapes_at = aligned(tiles_at + n_blocks * n_tiles * TILE_NBYTES[layout])
    places_at = aligned(escapes_at + 16 * n_units)
    values_at = aligned(places_at + 4 * n_exceptions)
    if size != aligned(values_at + 2 * n_exceptions):
        refuse("header", 24, f"{size} bytes")
    if any(data[6:8]) or any(data[56:128]):
        refuse("header", 6, "bytes that must be zero")
    if n_exceptions > rows * cols:  # their places are different ones
        refuse("header", 40, f"{n_exceptions} exceptions")
    if tile_escape_max > ESCAPES_MAX or tile_escape_max % 16 or 16 * n_units > n_blocks * n_tiles * ESCAPES_MAX:
        refuse("header", 48, f"escapes: {n_units} units, {tile_escape_max} bytes at most")
    if layout == MMA12 and (n_units or tile_escape_max):
        refuse("header", 32, "escapes in mma12")
    if len(data) < size:
        refuse("truncated", len(data), f"{size} bytes expected")
    return Pack(
        data, layout, rows, cols, n_units, n_exceptions, tile_escape_max, block_exc_max,
        index_at, tiles_at, escapes_at, places_at, values_at,
    )  # fmt: skip


class Block:
    """A row block while it is read."""

    def __init__(self, pack: Pack, number: int) -> None:
        self.pack = pack
        self.number = number
        at = 128 + 128 * number
        self.at = at
        self.used = min(64, pack.rows - 64 * number)
        if (pack.data[at], pack.data[at + 1], pack.number(at + 2, 2)) != (pack.layout, 1, self.used):
            refuse("corrupt", at, "layout, version or rows of a row block")
        if any(pack.data[at + 24 : at + 64]):
            refuse("corrupt", at + 24, "bytes that must be zero")
        self.n_exceptions = pack.number(at + 4, 4)
        self.first_exception = pack.number(at + 8, 8)
        self.first_unit = pack.number(at + 16, 8)
        last = number + 1 == pack.n_blocks
        next_exception = pack.n_exceptions if last else pack.number(at + 136, 8)
        self.end_unit = pack.n_units if last else pack.number(at + 144, 8)
        if self.first_exception + self.n_exceptions != next_exception or next_exception > pack.n_exceptions:
            refuse("corrupt", at + 4, "exceptions of row blocks leave gaps or go too far")
        if self.n_exceptions > pack.block_exc_max:
            refuse("corrupt", at + 4, f"{self.n_exceptions} exceptions, at most {pack.block_exc_max}")
        if number == 0 and (self.first_exception or self.first_unit):
            refuse("corrupt", at + 8, "the first row block does not start at 0")
        self.bases = pack.data[at + 64 : at + 128]
        for row, base in enumerate(self.bases):
            if base and (row >= self.used or base not in BASES[pack.layout]):
                refuse("corrupt", at + 64 + row, f"base {base}")
        if pack.layout == TIERED:
            self._read_index()
        elif self.first_unit:
            refuse("corrupt", at + 16, "escapes in mma12")
        self.weights: dict[tuple[int, int], int] = {}

    def _read_index(self) -> None:
        pack = self.pack
        at = pack.index_at + 4 * self.number * (pack.n_tiles + 1)
        self.index = [pack.number(at + 4 * t, 4) for t in range(pack.n_tiles + 1)]
        if self.index[0]:
            refuse("corrupt", at, "index does not start at 0")
        for here, following in zip(self.index, self.index[1:], strict=False):
            if not 0 < 16 * (following - here) <= pack.tile_escape_max:
                refuse("corrupt", at, "index")
        if self.first_unit + self.index[-1] != self.end_unit or self.end_unit > pack.n_units:
            refuse("corrupt", at, "escapes of row blocks leave gaps or go too far")

    def put(self, tile: int, row: int, col: int, weight: int) -> None:
        """Note a weight; a row without a base has only zeros, in its padding as well."""
        if self.bases[row] == 0 and weight & 0x7FFF:
            refuse("corrupt", self.at, f"row {row} of zeros has {weight:#x} in tile {tile}")
        self.weights[row, TILE_COLS[self.pack.layout] * tile + col] = weight

    def place_exceptions(self) -> None:
        """Put the exceptions in their places."""
        least = 0
        pack = self.pack
        for i in range(self.first_exception, self.first_exception + self.n_exceptions):
            place, value = pack.number(pack.places_at + 4 * i, 4), pack.number(pack.values_at + 2 * i, 2)
            col, row = divmod(place, 64)
            if place < least or col >= pack.cols or row >= self.used or self.bases[row] == 0:
                refuse("corrupt", pack.places_at + 4 * i, f"exception at row {row}, column {col}")
            if self.weights[row, col] != (self.bases[row] << 8 if pack.layout == MMA12 else 0):
                refuse("corrupt", pack.places_at + 4 * i, f"the place of an exception is not empty: {row}, {col}")
            self.weights[row, col] = value
            least = place + 1


def place_of(thread: int, j: int) -> tuple[int, int]:
    """Return row and column in the tile of a thread's weight."""
    w, g, q = thread // 32, thread // 4 % 8, thread % 4
    s, kh, h, p = j // 8, j // 4 % 2, j // 2 % 2, j % 2
    return 16 * w + 8 * h + g, 16 * s + 8 * kh + 2 * q + p


def read_mma12(block: Block, tile: int, data: bytes) -> None:
    """Read a tile of mma12."""
    for thread in range(128):
        for j in range(32):
            low = data[2048 * (j // 16) + 16 * thread + j % 16]
            word = int.from_bytes(data[4096 + 16 * thread + 4 * (j // 8) :][:4], "little")
            if j % 8 >= 4:
                word = (word << 4 | word >> 28) & 0xFFFFFFFF
            code = word >> (8 * (j % 4)) & 0x87
            row, col = place_of(thread, j)
            block.put(tile, row, col, code >> 7 << 15 | (block.bases[row] + (code & 7)) << 8 | low)


def read_tiered(block: Block, tile: int, data: bytes, escapes: bytes) -> None:
    """Read a tile of tiered."""
    codes = [data[8192 + 16 * (i // 64) + i % 64 // 4] >> (2 * (i % 4)) & 3 for i in range(8192)]
    n_digits = codes.count(3)
    start3 = (n_digits + 1) // 2  # of the tier 3 codes, in units of 4 bits
    room = escapes[16:] + bytes(ESCAPES_MAX)  # a length that is wrong shows at the end
    n2 = n3 = 0
    for i, code in enumerate(codes):
        thread, j = divmod(i, 64)
        if i % 2048 == 0:
            warp = i // 2048
            first2 = int.from_bytes(escapes[2 * warp :][:2], "little")
            first3 = int.from_bytes(escapes[8 + 2 * warp :][:2], "little")
            if (first2, first3) != (n2, start3 + n3):
                refuse("corrupt", block.at, f"tile {tile}, warp {warp}: escapes start at {first2}, {first3}")
        row, col = place_of(thread, j)
        sm = data[2048 * (j // 16) + 16 * thread + j % 16]
        exponent: int | None = block.bases[row] + code
        if code == 3:
            digit = room[n2 // 4] >> (2 * (n2 % 4)) & 3
            n2 += 1
            if digit < 3:
                exponent = block.bases[row] + TIER2[digit]
            else:
                third = room[(start3 + n3) // 2] >> (4 * ((start3 + n3) % 2)) & 15
                n3 += 1
                if third > TIER3_ZERO:
                    refuse("corrupt", block.at, f"tile {tile}: tier 3 code {third}")
                exponent = None if third == TIER3_ZERO else block.bases[row] + TIER3[third]
        if block.bases[row] == 0 and code:
            refuse("corrupt", block.at, f"tile {tile}: a code in a row of zeros")
        if exponent is None and sm & 0x7F:
            refuse("corrupt", block.at, f"tile {tile}: a zero with a mantissa")
        block.put(tile, row, col, sm >> 7 << 15 | (exponent or 0) << 7 | sm & 0x7F)
    nbytes = 16 + -(-(start3 + n3) // 2)
    if len(escapes) != -(-nbytes // 16) * 16:
        refuse("corrupt", block.at, f"tile {tile}: {len(escapes)} bytes of escapes for {nbytes}")


def decode(data: bytes) -> bytes:
    """Return the weights of a pack, row by row."""
    pack = read_header(data)
    out = bytearray()
    for b in range(pack.n_blocks):
        block = Block(pack, b)
        for t in range(pack.n_tiles):
            size = TILE_NBYTES[pack.layout]
            at = pack.tiles_at + (b * pack.n_tiles + t) * size
            if pack.layout == MMA12:
                read_mma12(block, t, data[at : at + size])
            else:
                first, end = (pack.escapes_at + 16 * (block.first_unit + block.index[i]) for i in (t, t + 1))
                read_tiered(block, t, data[at : at + size], data[first:end])
        block.place_exceptions()
        for row in range(block.used):
            for col in range(pack.cols):
                out += block.weights[row, col].to_bytes(2, "little")
    return bytes(out)


def decode_file(decoder: Callable[[bytes], bytes], names: str) -> int:
    """Decode the file that the command line names to standard output."""
    if len(sys.argv) != 2:
        sys.stderr.write(f"usage: {sys.argv[0]} {names}\n")
        return 2
    try:
        sys.stdout.buffer.write(decoder(Path(sys.argv[1]).read_bytes()))
    except FormatError as error:
        sys.stderr.write(f"{sys.argv[1]}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(decode_file(decode, "PACK > WEIGHTS"))

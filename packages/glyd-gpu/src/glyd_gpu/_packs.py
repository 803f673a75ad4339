# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Packs as tensors: cutting and joining them on any device.

A pack is a one-dimensional ``uint8`` tensor, bytes as the specification of
packed weights defines them. All functions here give valid packs whose header
fields are exact; rows are cut and joined to the very bytes that packing the cut
or joined matrix gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from glyd_codec import CorruptDataError, TruncatedError
from glyd_gpu._errors import ParameterError
from glyd_gpu._meta import BLOCK_HEADER, BLOCK_ROWS, HEADER, LAYOUTS, MAGIC, UNIT, VERSION, PackedMeta

_AT_EXC_COUNT, _AT_EXC_FIRST, _AT_ESCAPES = 4, 8, 16  # of a row block's header


@dataclass
class _Sections:
    """A pack taken apart: tensors of their own type, block headers and index on the host."""

    headers: torch.Tensor  # [row blocks, 128] uint8, host
    index: torch.Tensor  # [row blocks, tiles + 1] int64, host; empty in mma12
    tiles: torch.Tensor  # [row blocks, tiles, bytes] uint8
    escapes: torch.Tensor  # [units, 16] uint8
    places: torch.Tensor  # [exceptions] int32 that holds u32
    values: torch.Tensor  # [exceptions] int16

    def field(self, at: int, dtype: torch.dtype) -> torch.Tensor:
        """Return a field of all block headers as int64."""
        width = dtype.itemsize
        raw = self.headers[:, at : at + width].contiguous().view(dtype).reshape(-1).to(torch.int64)
        return raw & 0xFFFFFFFF if width == 4 else raw

    def set_field(self, at: int, values: torch.Tensor, dtype: torch.dtype) -> None:
        """Set a field of all block headers."""
        self.headers[:, at : at + dtype.itemsize] = values.to(dtype).reshape(-1, 1).view(torch.uint8)


def _take_apart(pack: torch.Tensor, meta: PackedMeta) -> _Sections:
    if pack.numel() < meta.nbytes:
        raise TruncatedError(
            f"the pack has {meta.nbytes} bytes, the tensor {pack.numel()}", expected=meta.nbytes, found=pack.numel()
        )

    def section(at: int, nbytes: int) -> torch.Tensor:
        return pack[at : at + nbytes]

    blocks, tiles = meta.row_blocks, meta.tiles
    headers = section(HEADER, blocks * BLOCK_HEADER).to("cpu", copy=True).view(blocks, BLOCK_HEADER)
    index = section(meta.index_at, meta.index_nbytes).to("cpu", copy=True).view(torch.int32).to(torch.int64)
    sections = _Sections(
        headers,
        (index & 0xFFFFFFFF).view(blocks, tiles + 1) if meta.index_nbytes else index,
        section(meta.tiles_at, blocks * tiles * meta.tile_nbytes).view(blocks, tiles, meta.tile_nbytes),
        section(meta.escapes_at, meta.n_escape_units * UNIT).view(-1, UNIT),
        section(meta.places_at, 4 * meta.n_exceptions).clone().view(torch.int32),
        section(meta.values_at, 2 * meta.n_exceptions).clone().view(torch.int16),
    )
    _check_starts(sections, meta)
    return sections


def _check_starts(sections: _Sections, meta: PackedMeta) -> None:
    """Refuse start fields that do not follow one another: cutting would read elsewhere."""
    counts = sections.field(_AT_EXC_COUNT, torch.int32)
    first = sections.field(_AT_EXC_FIRST, torch.int64)
    good = bool((first == counts.cumsum(0) - counts).all()) and int(counts.sum()) == meta.n_exceptions
    if meta.index_nbytes:
        units = sections.index[:, -1]
        starts = sections.field(_AT_ESCAPES, torch.int64)
        good = good and bool((sections.index.diff(dim=1) > 0).all() and (sections.index[:, 0] == 0).all())
        good = good and bool((starts == units.cumsum(0) - units).all()) and int(units.sum()) == meta.n_escape_units
    if not good:
        raise CorruptDataError("row blocks of the pack do not follow one another")


def _put_together(sections: _Sections, layout: int, rows: int, cols: int) -> tuple[torch.Tensor, PackedMeta]:
    """Make a pack of sections; sets starts, counts stay as the block headers have them."""
    counts = sections.field(_AT_EXC_COUNT, torch.int32)
    sections.set_field(_AT_EXC_FIRST, counts.cumsum(0) - counts, torch.int64)
    units, tile_max = 0, 0
    if layout == LAYOUTS["tiered"]:
        ends = sections.index[:, -1]
        sections.set_field(_AT_ESCAPES, ends.cumsum(0) - ends, torch.int64)
        units, tile_max = int(ends.sum()), int(sections.index.diff(dim=1).max()) * UNIT
    meta = PackedMeta(layout, rows, cols, units, int(counts.sum()), tile_max, int(counts.max()))
    meta.check()
    header = bytearray(HEADER)
    header[0:6] = MAGIC.to_bytes(4, "little") + bytes([VERSION, layout])
    for at, value in zip(range(8, 48, 8), (rows, cols, meta.nbytes, units, meta.n_exceptions), strict=True):
        header[at : at + 8] = value.to_bytes(8, "little")
    header[48:56] = tile_max.to_bytes(4, "little") + meta.block_exc_max.to_bytes(4, "little")
    out = torch.zeros(meta.nbytes, dtype=torch.uint8, device=sections.tiles.device)
    for at, part in (
        (0, torch.frombuffer(header, dtype=torch.uint8)),
        (HEADER, sections.headers),
        (meta.index_at, sections.index.to(torch.int32)),  # wraps to the same 32 bits
        (meta.tiles_at, sections.tiles),
        (meta.escapes_at, sections.escapes),
        (meta.places_at, sections.places),
        (meta.values_at, sections.values),
    ):
        if part.numel():
            flat = part.contiguous().reshape(-1).view(torch.uint8)
            out[at : at + flat.numel()] = flat.to(out.device)
    return out, meta


def slice_rows(pack: torch.Tensor, meta: PackedMeta, first_row: int, n_rows: int) -> tuple[torch.Tensor, PackedMeta]:
    """Cut rows out of a pack.

    Parameters
    ----------
    pack, meta
        The pack, on any device.
    first_row, n_rows
        Multiples of 64, but for a range that ends with the last row.

    Returns
    -------
    tuple
        A pack of its own and its meta: the bytes that packing these rows gives.

    Raises
    ------
    ParameterError
        The range is empty, not inside of the matrix or not at multiples of 64.
    FormatError
        The pack contradicts itself.
    """
    last = first_row + n_rows
    if (
        first_row < 0
        or n_rows < 1
        or last > meta.rows
        or first_row % BLOCK_ROWS
        or (n_rows % BLOCK_ROWS and last != meta.rows)
    ):
        raise ParameterError(
            f"rows {first_row} … {last} of {meta.rows} are no range of whole blocks of {BLOCK_ROWS} rows"
        )
    parts = _take_apart(pack, meta)
    a, b = first_row // BLOCK_ROWS, -(-last // BLOCK_ROWS)
    counts = parts.field(_AT_EXC_COUNT, torch.int32)
    exc = slice(int(counts[:a].sum()), int(counts[:b].sum()))
    tiered = meta.layout == LAYOUTS["tiered"]
    ends = parts.index[:, -1] if tiered else counts
    esc = slice(int(ends[:a].sum()), int(ends[:b].sum())) if tiered else slice(0, 0)
    cut = _Sections(
        parts.headers[a:b].clone(),
        parts.index[a:b] if tiered else parts.index,
        parts.tiles[a:b],
        parts.escapes[esc],
        parts.places[exc],
        parts.values[exc],
    )
    return _put_together(cut, meta.layout, n_rows, meta.cols)


def concat_rows(packs: Sequence[tuple[torch.Tensor, PackedMeta]]) -> tuple[torch.Tensor, PackedMeta]:
    """Stack packs of one layout and width: merged q, k, v; gate and up; experts.

    Parameters
    ----------
    packs
        Pairs of pack and meta, all on one device. Rows of all but the last are a multiple of 64.

    Returns
    -------
    tuple
        The pack of the stacked matrix, the bytes that packing it gives, and its meta.

    Raises
    ------
    ParameterError
        Nothing to stack, or packs that do not fit together.
    FormatError
        A pack contradicts itself.
    """
    if not packs:
        raise ParameterError("no packs to stack")
    first = packs[0][1]
    for number, (pack, meta) in enumerate(packs):
        if (meta.layout, meta.cols) != (first.layout, first.cols):
            raise ParameterError(
                f"pack {number} is {meta.layout_name} with {meta.cols} columns, the first {first.layout_name} with {first.cols}"
            )
        if pack.device != packs[0][0].device:
            raise ParameterError(f"pack {number} is on {pack.device}, the first on {packs[0][0].device}")
        if number < len(packs) - 1 and meta.rows % BLOCK_ROWS:
            raise ParameterError(f"pack {number} of {len(packs)} has {meta.rows} rows, not a multiple of {BLOCK_ROWS}")
    parts = [_take_apart(pack, meta) for pack, meta in packs]
    joined = _Sections(
        torch.cat([part.headers for part in parts]),
        torch.cat([part.index for part in parts]),
        torch.cat([part.tiles for part in parts]),
        torch.cat([part.escapes for part in parts]),
        torch.cat([part.places for part in parts]),
        torch.cat([part.values for part in parts]),
    )
    return _put_together(joined, first.layout, sum(meta.rows for _, meta in packs), first.cols)


def slice_cols(pack: torch.Tensor, meta: PackedMeta, first_col: int, n_cols: int) -> tuple[torch.Tensor, PackedMeta]:
    """Cut columns out of a pack, as tensor parallelism does with row-parallel layers.

    Bases stay those of whole rows, so the bytes are those of a valid pack, but
    not always the ones that packing the cut matrix gives.

    Parameters
    ----------
    pack, meta
        The pack, on any device.
    first_col, n_cols
        Multiples of the tile width (`PackedMeta.tile_cols`), but for a range that ends with the last column.

    Returns
    -------
    tuple
        A pack of its own and its meta.

    Raises
    ------
    ParameterError
        The range is empty, not inside of the matrix or not at tiles.
    FormatError
        The pack contradicts itself.
    """
    width, last = meta.tile_cols, first_col + n_cols
    if first_col < 0 or n_cols < 1 or last > meta.cols or first_col % width or (n_cols % width and last != meta.cols):
        raise ParameterError(
            f"columns {first_col} … {last} of {meta.cols} are no range of whole tiles of {width} columns"
        )
    parts = _take_apart(pack, meta)
    a, b = first_col // width, -(-last // width)
    index, escapes = parts.index, parts.escapes
    if meta.layout == LAYOUTS["tiered"]:
        starts = parts.field(_AT_ESCAPES, torch.int64)
        pieces = [
            parts.escapes[int(starts[i] + parts.index[i, a]) : int(starts[i] + parts.index[i, b])]
            for i in range(meta.row_blocks)
        ]
        index, escapes = parts.index[:, a : b + 1] - parts.index[:, a : a + 1], torch.cat(pieces)
    places = parts.places.to(torch.int64) & 0xFFFFFFFF
    kept = (places >= first_col * BLOCK_ROWS) & (places < last * BLOCK_ROWS)
    blocks = torch.arange(meta.row_blocks).repeat_interleave(parts.field(_AT_EXC_COUNT, torch.int32))
    counts = torch.bincount(blocks[kept.cpu()], minlength=meta.row_blocks)
    cut = _Sections(
        parts.headers,
        index,
        parts.tiles[:, a:b],
        escapes,
        (places[kept] - first_col * BLOCK_ROWS).to(torch.int32),
        parts.values[kept],
    )
    cut.set_field(_AT_EXC_COUNT, counts, torch.int32)
    return _put_together(cut, meta.layout, meta.rows, n_cols)

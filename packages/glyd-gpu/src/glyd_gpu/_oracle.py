# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Packs decoded with tensor operations of torch alone, on any device, as native/src/weights/spec.md describes them.

It shares nothing with the codec and the kernels but the header, and is held
against both. It trusts a pack: only what a packer made is given to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from glyd_gpu._meta import BLOCK_HEADER, BLOCK_ROWS, HEADER, LAYOUTS, UNIT, PackedMeta

_THREADS = 128
_TIER2 = (-1, 3, -2, 0)
_TIER3 = (-3, 4, -4, -5, -6, -7, -8, -9)
_TIER3_ZERO = 8


def unpack(pack: torch.Tensor, meta: Sequence[int]) -> torch.Tensor:
    """Return the bf16 matrix [rows, cols] of a pack.

    Parameters
    ----------
    pack
        [nbytes] uint8, as a packer made it.
    meta
        The seven integers of its header.
    """
    known = PackedMeta.from_list(meta)
    blocks = known.row_blocks
    headers = pack[HEADER : HEADER + blocks * BLOCK_HEADER].view(blocks, BLOCK_HEADER).long()
    tiles = pack[known.tiles_at : known.tiles_at + blocks * known.tiles * known.tile_nbytes]
    tiles = tiles.view(blocks, known.tiles, known.tile_nbytes)
    decode = _mma12 if known.layout == LAYOUTS["mma12"] else _tiered
    out = decode(pack, known, headers, tiles)[:, : known.cols].contiguous()  # rows of whole row blocks
    if known.n_exceptions:
        # a block's exceptions follow those of the block before
        block = torch.repeat_interleave(torch.arange(blocks, device=pack.device), _field(headers, 4, 4))
        place = _numbers(pack, known.places_at, known.n_exceptions, 4)
        row = block * BLOCK_ROWS + place % BLOCK_ROWS
        out[row, place // BLOCK_ROWS] = _numbers(pack, known.values_at, known.n_exceptions, 2)
    out = torch.where(out >= 1 << 15, out - (1 << 16), out).to(torch.int16)
    return out[: known.rows].contiguous().view(torch.bfloat16)


def _field(data: torch.Tensor, at: int, nbytes: int) -> torch.Tensor:
    """Return a little-endian number from the bytes at the end of every row."""
    return sum(
        (data[..., at + i].long() << (8 * i) for i in range(nbytes)), start=torch.zeros_like(data[..., 0]).long()
    )


def _numbers(pack: torch.Tensor, at: int, n: int, nbytes: int) -> torch.Tensor:
    return _field(pack[at : at + n * nbytes].view(n, nbytes), 0, nbytes)


def _matrix(values: torch.Tensor, steps: int) -> torch.Tensor:
    """Return rows and columns of values [blocks, tiles, threads, weights of a thread], in fragment order."""
    blocks, tiles = values.shape[:2]
    # thread 32 w + 4 g + q; weight 8 s + 4 kh + 2 h + p: row 16 w + 8 h + g, column 16 s + 8 kh + 2 q + p
    split = values.view(blocks, tiles, 4, 8, 4, steps, 2, 2, 2)
    return split.permute(0, 2, 7, 3, 1, 5, 6, 4, 8).reshape(blocks * BLOCK_ROWS, tiles * steps * 16)


def _bases(headers: torch.Tensor) -> torch.Tensor:
    """Return the base of every row, [rows, 1]."""
    return headers[:, BLOCK_HEADER - BLOCK_ROWS :].reshape(-1, 1)


def _mma12(pack: torch.Tensor, known: PackedMeta, headers: torch.Tensor, tiles: torch.Tensor) -> torch.Tensor:
    del pack
    shape = (known.row_blocks, known.tiles)
    low = tiles[..., :4096].view(*shape, 2, _THREADS, 16).transpose(2, 3).reshape(*shape, _THREADS, 32).long()
    words = _field(tiles[..., 4096:].view(*shape, _THREADS, 4, 4), 0, 4)
    second = (words << 4 | words >> 28) & 0xFFFFFFFF
    codes = torch.stack([(word >> (8 * i)) & 0x87 for word in (words, second) for i in range(4)], -1)
    codes = codes.view(*shape, _THREADS, 32)
    low, codes = _matrix(low, 4), _matrix(codes, 4)
    return (codes >> 7) << 15 | ((codes & 7) + _bases(headers)) << 8 | low


def _tiered(pack: torch.Tensor, known: PackedMeta, headers: torch.Tensor, tiles: torch.Tensor) -> torch.Tensor:
    shape = (known.row_blocks, known.tiles)
    kept = tiles[..., :8192].view(*shape, 4, _THREADS, 16).transpose(2, 3).reshape(*shape, _THREADS, 64).long()
    codes = tiles[..., 8192:].long()  # four of a thread in a byte
    codes = torch.stack([codes >> (2 * i) & 3 for i in range(4)], -1).view(*shape, -1)
    index = _numbers(pack, known.index_at, shape[0] * (shape[1] + 1), 4).view(shape[0], -1)[:, :-1]
    escapes = known.escapes_at + UNIT * (_field(headers, 16, 8).unsqueeze(1) + index)
    digits_at = (escapes + 16).unsqueeze(-1)
    data, last = pack.long(), pack.numel() - 1
    goes_on = codes == 3
    number = goes_on.long().cumsum(-1) - 1
    digits = data[(digits_at + number.clamp(0) // 4).clamp(max=last)] >> (2 * (number % 4)) & 3
    rare = goes_on & (digits == 3)
    number = (
        rare.long().cumsum(-1) - 1 + (goes_on.sum(-1, keepdim=True) + 1) // 2
    )  # units of 4 bits from the first digit
    thirds = data[(digits_at + number.clamp(0) // 2).clamp(max=last)] >> (4 * (number % 2)) & 15
    tables = [torch.tensor([*t, *[0] * (16 - len(t))], device=pack.device) for t in (_TIER2, _TIER3)]
    distance = torch.where(goes_on, torch.where(rare, tables[1][thirds], tables[0][digits]), codes)
    zero = _matrix((rare & (thirds == _TIER3_ZERO)).view(*shape, _THREADS, 64), 8)
    distance, kept = _matrix(distance.view(*shape, _THREADS, 64), 8), _matrix(kept, 8)
    exponents = torch.where(zero, 0, _bases(headers) + distance)
    return (kept & 0x80) << 8 | exponents << 7 | kept & 0x7F

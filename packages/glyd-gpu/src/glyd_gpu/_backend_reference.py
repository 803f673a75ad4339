# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The operators on the CPU: the codec's own packing and unpacking, and torch's product.

Every mode of ``linear`` gives the bits of the unpacked layer. This is what the
kernels are compared with; it is not fast, since a call decodes what it needs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Literal

import torch
import torch.nn.functional as F  # noqa: N812

import glyd_codec
from glyd_gpu._errors import CorruptDataError, ParameterError
from glyd_gpu._meta import BLOCK_ROWS, LAYOUTS, PackedMeta
from glyd_gpu._ops import check_embedding, check_experts, check_linear, check_pack, check_weight, library

_NAMES: dict[int, Literal["tiered", "mma12"]] = {1: "mma12", 2: "tiered"}


def bytes_of(tensor: torch.Tensor) -> memoryview:
    """Return the memory of a contiguous CPU tensor; the tensor must outlive it."""
    nbytes = tensor.numel() * tensor.element_size()
    if not nbytes:
        return memoryview(b"")
    array: Any = (ctypes.c_ubyte * nbytes).from_address(tensor.data_ptr())
    return memoryview(array).cast("B")


def _checked(pack: torch.Tensor, meta: Sequence[int]) -> tuple[memoryview, PackedMeta]:
    """Return the bytes of a pack whose header says what meta says."""
    expected = PackedMeta.from_list(meta)
    data = bytes_of(pack)
    found = PackedMeta.from_bytes(data)
    if found != expected:
        raise CorruptDataError(f"the pack is {found}, meta says {expected}")
    return data, found


def _unpack_rows(data: memoryview, meta: PackedMeta, first_row: int, n_rows: int) -> torch.Tensor:
    out = torch.empty((n_rows, meta.cols), dtype=torch.bfloat16)
    threads = torch.get_num_threads() if n_rows > BLOCK_ROWS else 1
    glyd_codec.unpack_weights(data, first_row=first_row, n_rows=n_rows, out=bytes_of(out), threads=threads)
    return out


def unpack(pack: torch.Tensor, meta: Sequence[int]) -> torch.Tensor:
    """Return the bf16 matrix [rows, cols] of a pack."""
    check_pack(pack, meta)
    data, known = _checked(pack, meta)
    return _unpack_rows(data, known, 0, known.rows)


def linear(
    x: torch.Tensor, pack: torch.Tensor, meta: Sequence[int], bias: torch.Tensor | None, mode: int
) -> torch.Tensor:
    """Return x · Wᵀ + bias [..., rows] of x [..., cols], all bf16."""
    check_linear(x, pack, meta, bias, mode)
    if not x.numel():
        return x.new_zeros((*x.shape[:-1], meta[1]))
    return F.linear(x, unpack(pack, meta), bias)


def linear_experts(
    x: torch.Tensor, experts: torch.Tensor, pack: torch.Tensor, meta: Sequence[int], size: int
) -> torch.Tensor:
    """Return row s of x [slots, cols] times the matrix of expert ``experts[s]``, [slots, size]; each is decoded once."""
    check_experts(x, experts, pack, meta, size)
    data, known = _checked(pack, meta)
    out = torch.empty((x.shape[0], size), dtype=torch.bfloat16)
    kept = experts.clamp(0, known.rows // size - 1)
    for expert in torch.unique(kept).tolist():
        mine = kept == expert
        out[mine] = F.linear(x[mine], _unpack_rows(data, known, expert * size, size))
    return out


def embedding(ids: torch.Tensor, pack: torch.Tensor, meta: Sequence[int]) -> torch.Tensor:
    """Return rows of a packed table [..., cols] for ids [...]; only their blocks of 64 rows are decoded.

    Raises
    ------
    IndexError
        An id is outside of the table.
    """
    check_embedding(ids, pack, meta)
    data, known = _checked(pack, meta)
    out = torch.empty((*ids.shape, known.cols), dtype=torch.bfloat16)
    flat = ids.reshape(-1).to(torch.int64)
    if not flat.numel():
        return out
    low, high = int(flat.min()), int(flat.max())
    if low < 0 or high >= known.rows:
        raise IndexError(f"ids are {low} … {high}, the table has rows 0 … {known.rows - 1}")
    rows, places = torch.unique(flat, return_inverse=True)
    table = torch.empty((rows.numel(), known.cols), dtype=torch.bfloat16)
    blocks = rows // BLOCK_ROWS
    for block in torch.unique(blocks).tolist():
        first = block * BLOCK_ROWS
        mine = blocks == block
        decoded = _unpack_rows(data, known, first, min(BLOCK_ROWS, known.rows - first))
        table[mine] = decoded[rows[mine] - first]
    return out.copy_(table[places].view_as(out))


def check_rules(pack: torch.Tensor, meta: Sequence[int]) -> torch.Tensor:
    """Return [128, first row block that the codec refuses], or zeros."""
    check_pack(pack, meta)
    data, known = _checked(pack, meta)
    for block in range(known.row_blocks):
        first = block * BLOCK_ROWS
        try:
            _unpack_rows(data, known, first, min(BLOCK_ROWS, known.rows - first))
        except CorruptDataError:
            return torch.tensor([128, block], dtype=torch.int32)
    return torch.zeros(2, dtype=torch.int32)


def pack(weight: torch.Tensor, layout: int) -> torch.Tensor:
    """Return the pack of a bf16 matrix, or an empty tensor when packing does not pay."""
    check_weight(weight)
    if layout not in _NAMES:
        raise ParameterError(f"layout is {layout}; there are {', '.join(f'{v} ({k})' for k, v in LAYOUTS.items())}")
    rows, cols = weight.shape
    if not weight.numel():
        return torch.empty(0, dtype=torch.uint8)
    source = weight.detach().contiguous()
    data = glyd_codec.pack_weights(bytes_of(source), rows, cols, layout=_NAMES[layout], threads=torch.get_num_threads())
    if data is None:
        return torch.empty(0, dtype=torch.uint8)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


library.impl("linear", linear, "CPU")
library.impl("linear_experts", linear_experts, "CPU")
library.impl("unpack", unpack, "CPU")
library.impl("embedding", embedding, "CPU")
library.impl("check_pack", check_rules, "CPU")
library.impl("pack", pack, "CPU")

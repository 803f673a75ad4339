# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Packed parameters: one buffer of bytes, and the pieces that the rows of a parameter consist of."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from glyd_gpu._errors import CorruptDataError, ShapeError
from glyd_gpu._meta import PackedMeta

SUFFIX = "_packed"


@dataclass(frozen=True)
class Piece:
    """Rows that one tensor of the checkpoint gives to a parameter.

    Attributes
    ----------
    offset, nbytes
        Its place in the buffer; offsets are multiples of 128.
    meta
        The seven integers of its pack; None for rows that are plain bf16, as packing them does not pay.
    rows
        Its rows.
    source, shape
        Name and shape of the tensor in the checkpoint.
    """

    offset: int
    nbytes: int
    meta: tuple[int, ...] | None
    rows: int
    source: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class PackedTensor:
    """A parameter in packed form: its shape, and the pieces that its rows consist of, in order."""

    shape: tuple[int, ...]
    pieces: tuple[Piece, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the buffer."""
        return max(piece.offset + piece.nbytes for piece in self.pieces)

    @property
    def cols(self) -> int:
        """Columns of every piece."""
        return self.shape[-1]


def decode(buffer: torch.Tensor, piece: Piece, cols: int) -> torch.Tensor:
    """Return the rows of a piece as bf16."""
    part = buffer.narrow(0, piece.offset, piece.nbytes)
    if piece.meta is None:
        return part.narrow(0, 0, piece.rows * cols * 2).view(torch.bfloat16).view(piece.rows, cols)
    unpacked: torch.Tensor = torch.ops.glyd.unpack(part, list(piece.meta))
    return unpacked


def reread(tensor: PackedTensor, data: torch.Tensor) -> PackedTensor:
    """Return the pieces of a buffer that holds the same parameter with other weights.

    Raises
    ------
    ShapeError
        The buffer is not bytes, or its packs have other shapes.
    FormatError
        A header is damaged.
    """
    if data.dtype != torch.uint8 or data.dim() != 1:
        raise ShapeError(f"packed weights are one-dimensional uint8, not {tuple(data.shape)} of {data.dtype}")
    at, pieces = 0, []
    for piece in tensor.pieces:
        nbytes, values = piece.nbytes, None
        if piece.meta is not None:
            meta = PackedMeta.from_tensor(data[at:])
            if (meta.rows, meta.cols) != (piece.rows, tensor.cols):
                raise ShapeError(
                    f"the pack at byte {at} is {meta.rows} × {meta.cols}, not {piece.rows} × {tensor.cols}"
                )
            nbytes, values = meta.nbytes, tuple(meta.as_list())
        pieces.append(Piece(at, nbytes, values, piece.rows, piece.source, piece.shape))
        at += nbytes
    if at != data.numel():
        raise CorruptDataError(f"the packs end at byte {at} of {data.numel()}", expected=at, found=data.numel())
    return PackedTensor(tensor.shape, tuple(pieces))

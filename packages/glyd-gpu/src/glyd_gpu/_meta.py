# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What the header of a pack says, and where its sections lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

import glyd_codec
from glyd_codec import CorruptDataError, TruncatedError
from glyd_gpu._errors import ParameterError, ShapeError

LAYOUTS = {"mma12": 1, "tiered": 2}
ALIGN = 128
BLOCK_ROWS = 64
HEADER = 128
BLOCK_HEADER = 128
MAGIC = 0x574C479D
VERSION = 1
UNIT = 16  # bytes of an escape unit


def _aligned(n: int) -> int:
    return -(-n // ALIGN) * ALIGN


@dataclass(frozen=True)
class PackedMeta:
    """What the header of a pack says, as the operators take it.

    Attributes
    ----------
    layout
        1 mma12, 2 tiered.
    rows, cols
        Output and input features.
    n_escape_units
        Units of 16 bytes; 0 in mma12.
    n_exceptions
        Weights that lie beside the tiles.
    tile_escape_max
        Bytes of the largest tile's escapes.
    block_exc_max
        Most exceptions of a block of 64 rows.
    """

    layout: int
    rows: int
    cols: int
    n_escape_units: int = 0
    n_exceptions: int = 0
    tile_escape_max: int = 0
    block_exc_max: int = 0

    @classmethod
    def from_bytes(cls, pack: bytes | bytearray | memoryview) -> PackedMeta:
        """Read and check the header of a pack.

        Raises
        ------
        FormatError
            The bytes are no pack, of another version, cut short or contradict themselves.
        """
        info = glyd_codec.read_weights_info(pack)
        return cls(
            LAYOUTS[info.layout],
            info.rows,
            info.cols,
            info.n_escape_units,
            info.n_exceptions,
            info.tile_escape_max,
            info.block_exc_max,
        )

    @classmethod
    def from_tensor(cls, pack: torch.Tensor) -> PackedMeta:
        """Read and check the header of a pack on any device; copies 128 bytes to the host.

        Raises
        ------
        FormatError
            As `from_bytes`.
        ShapeError
            The tensor is not one-dimensional uint8.
        """
        if pack.dtype != torch.uint8 or pack.dim() != 1:
            raise ShapeError(
                f"a pack is a one-dimensional tensor of torch.uint8, not {tuple(pack.shape)} of {pack.dtype}"
            )
        header = bytes(pack[:HEADER].tolist())
        if len(header) < HEADER:
            raise TruncatedError(
                f"a pack has a header of {HEADER} bytes, the tensor has {len(header)}",
                expected=HEADER,
                found=len(header),
            )
        field = int.from_bytes
        if field(header[0:4], "little") != MAGIC:
            raise glyd_codec.FormatError(f"not a pack: it starts with {header[:4].hex()}")
        if header[4] != VERSION:
            raise glyd_codec.UnsupportedVersionError(
                f"pack of version {header[4]}, not {VERSION}", expected=VERSION, found=header[4]
            )
        if header[5] not in LAYOUTS.values():
            raise glyd_codec.UnsupportedVersionError(f"pack of layout {header[5]}, which this version does not know")
        rows, cols, size, units, exceptions = (field(header[i : i + 8], "little") for i in range(8, 48, 8))
        meta = cls(
            header[5],
            rows,
            cols,
            units,
            exceptions,
            field(header[48:52], "little"),
            field(header[52:56], "little"),
        )
        meta.check()
        if any(header[6:8]) or any(header[56:]) or meta.nbytes != size:
            raise CorruptDataError(
                f"header of the pack contradicts itself: {size} bytes, its fields give {meta.nbytes}",
                expected=meta.nbytes,
                found=size,
            )
        if pack.numel() < size:
            raise TruncatedError(
                f"the pack has {size} bytes, the tensor {pack.numel()}", expected=size, found=pack.numel()
            )
        return meta

    @classmethod
    def from_list(cls, values: Sequence[int]) -> PackedMeta:
        """Return the meta of the seven integers that the operators take.

        Raises
        ------
        ParameterError
            Not seven, or a value out of its range.
        """
        if len(values) != 7:
            raise ParameterError(f"meta has 7 integers, not {len(values)}", expected=7, found=len(values))
        meta = cls(*map(int, values))
        meta.check()
        return meta

    def as_list(self) -> list[int]:
        """Return the seven integers that the operators take."""
        return [
            self.layout,
            self.rows,
            self.cols,
            self.n_escape_units,
            self.n_exceptions,
            self.tile_escape_max,
            self.block_exc_max,
        ]

    def check(self) -> None:
        """Check every range, so that sizes computed from the fields mean something.

        Raises
        ------
        CorruptDataError
            With the field that is wrong.
        """
        tiered = self.layout == LAYOUTS["tiered"]
        ranges = {
            "layout": (1, 2),
            "rows": (1, 1 << 36),
            "cols": (1, (1 << 26) - 1),
            "n_escape_units": (0, self.row_blocks * self.tiles * 385 if tiered else 0),
            "n_exceptions": (0, min(self.rows * self.cols, 1 << 56)),
            "tile_escape_max": (0, 6160 if tiered else 0),
            "block_exc_max": (0, (1 << 32) - 1),
        }
        for name, (low, high) in ranges.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise CorruptDataError(f"{name} of a pack is {value}, not {low} … {high}")
        if self.tile_escape_max % UNIT or self.rows * self.cols > 1 << 56:
            raise CorruptDataError(f"a pack cannot be {self}")

    @property
    def layout_name(self) -> str:
        """Name of the layout."""
        return {number: name for name, number in LAYOUTS.items()}[self.layout]

    @property
    def tile_cols(self) -> int:
        """Columns of a tile."""
        return 64 if self.layout == LAYOUTS["mma12"] else 128

    @property
    def tile_nbytes(self) -> int:
        """Bytes of the fixed part of a tile."""
        return 6144 if self.layout == LAYOUTS["mma12"] else 10240

    @property
    def row_blocks(self) -> int:
        """Blocks of 64 rows."""
        return -(-self.rows // BLOCK_ROWS)

    @property
    def tiles(self) -> int:
        """Tiles of a row block."""
        return -(-self.cols // self.tile_cols)

    @property
    def index_at(self) -> int:
        """Byte at which the index starts."""
        return HEADER + self.row_blocks * BLOCK_HEADER

    @property
    def index_nbytes(self) -> int:
        """Bytes of the index; 0 in mma12."""
        return 4 * self.row_blocks * (self.tiles + 1) if self.layout == LAYOUTS["tiered"] else 0

    @property
    def tiles_at(self) -> int:
        """Byte at which the tiles start."""
        return _aligned(self.index_at + self.index_nbytes)

    @property
    def escapes_at(self) -> int:
        """Byte at which the escapes start."""
        return _aligned(self.tiles_at + self.row_blocks * self.tiles * self.tile_nbytes)

    @property
    def places_at(self) -> int:
        """Byte at which the places of the exceptions start."""
        return _aligned(self.escapes_at + self.n_escape_units * UNIT)

    @property
    def values_at(self) -> int:
        """Byte at which the values of the exceptions start."""
        return _aligned(self.places_at + 4 * self.n_exceptions)

    @property
    def nbytes(self) -> int:
        """Bytes of the pack."""
        return _aligned(self.values_at + 2 * self.n_exceptions)

    @property
    def bits_per_weight(self) -> float:
        """Bits of the pack for each weight, all overhead included."""
        return self.nbytes * 8 / (self.rows * self.cols)

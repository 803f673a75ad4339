# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Headers of GGUF files, read strictly: counts, lengths and places are checked before they are used.

The layout is that of the GGUF specification, versions 2 and 3, little-endian.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from glyd_codec._errors import FormatError, TruncatedError, UnsupportedVersionError
from glyd_codec._models._safetensors import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

MAGIC = b"GGUF"

UNKNOWN = "?"
"""Type of tensors in formats that this version does not know."""

_CHUNK_NBYTES = 1 << 16
_NAME_MAX = 1 << 16
_DIMS_MAX = 8
_DEPTH_MAX = 8  # of arrays of arrays
_ALIGNMENT = "general.alignment"
_STRING, _ARRAY, _UINT32 = 8, 9, 4
_SCALARS = {0: "B", 1: "b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "?", 10: "<Q", 11: "<q", 12: "<d"}

_NUMBERS = {0: "F32", 1: "F16", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 30: "BF16"}
_BLOCKS = {  # name, elements and bytes of a block
    2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34),
    10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292), 16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50), 20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136), 29: ("IQ1_M", 256, 56), 34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17),
}  # fmt: skip
_WIDTHS = {"F32": 4, "F16": 2, "I8": 1, "I16": 2, "I32": 4, "I64": 8, "F64": 8, "BF16": 2}


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What a file holds.

    Attributes
    ----------
    data_start
        Byte of the file that the data starts at.
    tensors
        In the order of their data. Those of block formats are bytes: their last dimension is a row's.
    types
        From the names of those to the names of their formats.
    metadata
        The values that are texts, numbers or truths, as texts.
    """

    data_start: int
    tensors: tuple[Tensor, ...]
    types: dict[str, str]
    metadata: dict[str, str]


class _Cursor:
    """Bytes of a file from the start on, fetched in chunks."""

    def __init__(self, read: Callable[[int, int], bytes], nbytes: int, name: str) -> None:
        self._read = read
        self._nbytes = nbytes
        self.name = name
        self._start = 0
        self._chunk = b""
        self.at = 0

    @property
    def left(self) -> int:
        return self._nbytes - self.at

    def refuse(self, message: str) -> FormatError:
        return FormatError(f"{self.name}: {message} (byte {self.at})", offset=self.at)

    def need(self, size: int, what: str) -> None:
        """Refuse unless so many bytes are left."""
        if size > self.left:
            raise TruncatedError(
                f"{self.name}: {what} takes {size} bytes, {self.left} are left at byte {self.at}",
                offset=self.at,
                expected=size,
                found=self.left,
            )

    def take(self, size: int, what: str) -> bytes:
        self.need(size, what)
        begin = self.at - self._start
        if begin + size > len(self._chunk):
            wanted = min(self.left, max(size, _CHUNK_NBYTES))
            self._chunk = self._read(self.at, wanted)
            self._start, begin = self.at, 0
        self.at += size
        return self._chunk[begin : begin + size]

    def skip(self, size: int, what: str) -> None:
        self.need(size, what)
        self.at += size
        if self.at > self._start + len(self._chunk):
            self._start, self._chunk = self.at, b""

    def number(self, size: int, what: str) -> int:
        return int.from_bytes(self.take(size, what), "little")

    def text(self, what: str, most: int | None = None) -> str:
        size = self.number(8, what)
        if most is not None and size > most:
            raise self.refuse(f"{what} of {size} bytes, at most {most} expected")
        return self.take(size, what).decode("utf-8", "surrogateescape")


def _skip_array(cursor: _Cursor) -> None:
    """Pass over an array: its type has not been read yet."""
    counts = [1]  # arrays that are still to come, at each depth
    while counts:
        if counts[-1] == 0:
            counts.pop()
            continue
        counts[-1] -= 1
        kind = cursor.number(4, "type of an array")
        count = cursor.number(8, "size of an array")
        if kind in _SCALARS:
            cursor.skip(count * struct.calcsize(_SCALARS[kind]), "an array")
        elif kind == _STRING:
            cursor.need(8 * count, "an array of texts")
            for _ in range(count):
                cursor.skip(cursor.number(8, "a text"), "a text")
        elif kind == _ARRAY:
            cursor.need(12 * count, "an array of arrays")
            if len(counts) == _DEPTH_MAX:
                raise cursor.refuse(f"arrays inside of more than {_DEPTH_MAX} others")
            counts.append(count)
        else:
            raise cursor.refuse(f"an array of values of type {kind}, which is unknown")


def _read_values(cursor: _Cursor, count: int) -> tuple[dict[str, str], int]:
    """Return the values as texts, and the alignment."""
    metadata: dict[str, str] = {}
    alignment = 32
    cursor.need(13 * count, f"{count} values")
    for _ in range(count):
        key = cursor.text("a key", _NAME_MAX)
        kind = cursor.number(4, f"type of {key!r}")
        if kind == _ARRAY:
            _skip_array(cursor)
        elif kind == _STRING:
            metadata[key] = cursor.text(f"value of {key!r}")
        elif kind in _SCALARS:
            form = _SCALARS[kind]
            (value,) = struct.unpack(form, cursor.take(struct.calcsize(form), f"value of {key!r}"))
            metadata[key] = str(value)
            if key == _ALIGNMENT:
                if kind != _UINT32 or value < 8 or value & (value - 1) or value > 1 << 20:
                    raise cursor.refuse(f"{_ALIGNMENT} is {value}: a power of two from 8 to 2^20 is expected")
                alignment = value
        else:
            raise cursor.refuse(f"value of {key!r} has the type {kind}, which is unknown")
    return metadata, alignment


def _read_tensor(cursor: _Cursor, alignment: int) -> tuple[Tensor, str]:
    """Return a tensor, its place counted from the start of the data, and the name of its block format or ""."""
    name = cursor.text("name of a tensor", _NAME_MAX)
    n_dims = cursor.number(4, f"tensor {name!r}")
    if n_dims > _DIMS_MAX:
        raise cursor.refuse(f"tensor {name!r} has {n_dims} dimensions, at most {_DIMS_MAX} expected")
    shape = tuple(cursor.number(8, f"tensor {name!r}") for _ in range(n_dims))[::-1]
    kind = cursor.number(4, f"type of tensor {name!r}")
    begin = cursor.number(8, f"place of tensor {name!r}")
    if begin % alignment:
        raise cursor.refuse(f"tensor {name!r} starts at {begin}, which is no multiple of {alignment}")
    if kind in _NUMBERS:
        code = _NUMBERS[kind]
        return Tensor(name, code, shape, begin, begin + math.prod(shape) * _WIDTHS[code]), ""
    if kind not in _BLOCKS:  # newer than this table: the other tensors can be read all the same
        return Tensor(name, UNKNOWN, shape, begin, begin), f"type {kind}"
    format_name, elements, nbytes = _BLOCKS[kind]
    row = shape[-1] if shape else 1
    if row % elements:
        raise cursor.refuse(f"tensor {name!r}: rows of {row} are no blocks of {elements} ({format_name})")
    stored = (*shape[:-1], row // elements * nbytes)
    return Tensor(name, "U8", stored, begin, begin + math.prod(stored)), format_name


def parse_gguf(read: Callable[[int, int], bytes], nbytes: int, name: str) -> GgufHeader:
    """Check a header and return what it says.

    Parameters
    ----------
    read
        Gives the bytes from a place on, exactly as many as are asked for.
    nbytes
        Of the file.
    name
        Of the file, for messages.

    Raises
    ------
    FormatError
        A rule of the form is broken; the message says where.
    """
    cursor = _Cursor(read, nbytes, name)
    if cursor.take(4, "magic number") != MAGIC:
        raise cursor.refuse("no GGUF file")
    version = cursor.number(4, "version")
    if version not in {2, 3}:
        raise UnsupportedVersionError(f"{name}: GGUF version {version}, 2 or 3 expected", expected=3, found=version)
    n_tensors, n_values = cursor.number(8, "number of tensors"), cursor.number(8, "number of values")
    metadata, alignment = _read_values(cursor, n_values)
    cursor.need(24 * n_tensors, f"{n_tensors} tensors")
    tensors: dict[str, Tensor] = {}
    types: dict[str, str] = {}
    for _ in range(n_tensors):
        tensor, block_format = _read_tensor(cursor, alignment)
        if tensor.name in tensors:
            raise cursor.refuse(f"tensor {tensor.name!r} is there twice")
        tensors[tensor.name] = tensor
        if block_format:
            types[tensor.name] = block_format
    start = -(-cursor.at // alignment) * alignment
    ordered = sorted(tensors.values(), key=lambda t: (t.begin, t.end))
    for tensor in ordered:
        if start + tensor.end > nbytes:
            raise TruncatedError(
                f"{name}: tensor {tensor.name!r} ends at byte {start + tensor.end} of a file of {nbytes}",
                expected=start + tensor.end,
                found=nbytes,
            )
    return GgufHeader(start, tuple(ordered), types, metadata)

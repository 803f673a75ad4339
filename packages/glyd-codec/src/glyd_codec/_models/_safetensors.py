# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Headers of safetensors files, read strictly and kept as bytes.

The safetensors library gives neither the bytes of a header nor the order of the
tensors, and both have to come back when a model is unpacked.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from glyd_codec._errors import FormatError, TruncatedError

if TYPE_CHECKING:
    from typing import Any

HEADER_MAX = 1 << 29
"""Bytes of a header. Five times what the safetensors library takes: such files exist, and pack."""

BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8,
    "U16": 16, "I16": 16, "F16": 16, "BF16": 16,
    "U32": 32, "I32": 32, "F32": 32,
    "U64": 64, "I64": 64, "F64": 64, "C64": 64,
}  # fmt: skip
"""Bits of an element. Types that are not here are taken as they are: their sizes are not checked."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor as a header describes it; ``begin`` and ``end`` count from the start of the data."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def nbytes(self) -> int:
        """Bytes of its data."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class Header:
    """What a file holds.

    Attributes
    ----------
    raw
        Everything before the data: the length, the JSON text and its padding.
    tensors
        In the order of their data.
    metadata
        The object ``__metadata__``, or None.
    data_nbytes
        Bytes after ``raw``.
    """

    raw: bytes
    tensors: tuple[Tensor, ...]
    metadata: dict[str, str] | None
    data_nbytes: int


def json_object(raw: bytes, name: str) -> dict[str, Any]:
    """Return an object from JSON text that somebody else wrote.

    Raises
    ------
    FormatError
        It is no JSON, no object, or has a key twice; ``name`` says where.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise FormatError(f"{name}: {twice!r} is there twice")
        return found

    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=unique)
    except FormatError:
        raise
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{name}: no valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise FormatError(f"{name}: a JSON object is expected, not {type(value).__name__}")
    return value


def header_length(first: bytes, file_nbytes: int, name: str) -> int:
    """Return the bytes of the JSON text, from the first 8 bytes of a file.

    Raises
    ------
    FormatError
        The file is too short, or the length cannot be right.
    """
    if len(first) < 8:
        raise TruncatedError(f"{name}: {file_nbytes} bytes are no safetensors file", expected=8, found=file_nbytes)
    length = int.from_bytes(first, "little")
    if length > HEADER_MAX:
        raise FormatError(
            f"{name}: header of {length} bytes, more than {HEADER_MAX}: no safetensors file",
            expected=HEADER_MAX,
            found=length,
        )
    if 8 + length > file_nbytes:
        raise TruncatedError(
            f"{name}: header of {length} bytes in a file of {file_nbytes}", expected=8 + length, found=file_nbytes
        )
    return length


def parse(raw: bytes, data_nbytes: int | None, name: str) -> Header:
    """Check a header and return what it says.

    Parameters
    ----------
    raw
        Everything before the data.
    data_nbytes
        Bytes of data that the file has; None: not known.
    name
        Of the file, for messages.

    Raises
    ------
    FormatError
        A rule of the form is broken: the message names file and tensor.
    """
    if raw[8:9] != b"{":
        raise FormatError(f"{name}: the header does not start with '{{': no safetensors file")
    entries = json_object(raw[8:], name)
    metadata = entries.pop("__metadata__", None)
    if metadata is not None and not (
        isinstance(metadata, dict) and all(isinstance(value, str) for value in metadata.values())
    ):
        raise FormatError(f"{name}: __metadata__ must map names to texts")
    tensors = sorted((_tensor(key, entry, name) for key, entry in entries.items()), key=lambda t: (t.begin, t.end))
    at = 0
    for tensor in tensors:
        if tensor.begin != at:
            what = "overlaps the tensor before it" if tensor.begin < at else "leaves a gap before it"
            raise FormatError(
                f"{name}: tensor {tensor.name!r} {what} (starts at {tensor.begin}, not {at})",
                expected=at,
                found=tensor.begin,
            )
        at = tensor.end
    if data_nbytes is None:
        data_nbytes = at
    if at > data_nbytes:
        raise TruncatedError(
            f"{name}: {data_nbytes} bytes of data, but tensor {tensors[-1].name!r} ends at {at}",
            expected=at,
            found=data_nbytes,
        )
    if at < data_nbytes:
        raise FormatError(
            f"{name}: {data_nbytes - at} bytes behind the last tensor belong to none", expected=at, found=data_nbytes
        )
    return Header(raw, tuple(tensors), metadata, data_nbytes)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _tensor(key: str, entry: Any, name: str) -> Tensor:
    where = f"{name}: tensor {key!r}"
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise FormatError(f"{where}: needs dtype, shape and data_offsets, and nothing else")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str):
        raise FormatError(f"{where}: dtype must be a text")
    if not isinstance(shape, list) or len(shape) > 64 or not all(map(_is_count, shape)):
        raise FormatError(f"{where}: shape must be a list of sizes")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_count, offsets)):
        raise FormatError(f"{where}: data_offsets must be two places")
    begin, end = offsets
    if begin > end:
        raise FormatError(f"{where}: ends at {end}, before its start at {begin}", expected=begin, found=end)
    if dtype in BITS and math.prod(shape) * BITS[dtype] != 8 * (end - begin):
        size = math.prod(shape) * BITS[dtype] // 8
        raise FormatError(
            f"{where}: {dtype} of shape {shape} has {size} bytes, not {end - begin}", expected=size, found=end - begin
        )
    return Tensor(key, dtype, tuple(shape), begin, end)


def entry_text(tensor: Tensor) -> str:
    """Return a tensor's part of a header."""
    value = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": (tensor.begin, tensor.end)}
    return f"{json.dumps(tensor.name)}:{json.dumps(value, separators=(',', ':'))}"


def header_bytes(entries: list[str], metadata: dict[str, str] | None, size: int = 0, align: int = 128) -> bytes:
    """Return everything before the data, padded with spaces.

    Parameters
    ----------
    entries
        What `entry_text` returned for each tensor.
    metadata
        The object ``__metadata__``, or None.
    size
        Bytes to have at least.
    align
        The size is a multiple of it.
    """
    head = [] if metadata is None else [f'"__metadata__":{json.dumps(metadata, separators=(",", ":"))}']
    text = ("{" + ",".join(head + entries) + "}").encode()
    total = max(size, -(-(8 + len(text)) // align) * align)
    return (total - 8).to_bytes(8, "little") + text.ljust(total - 8)

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The tensors of a checkpoint: where they lie in its files, and which of them are packs."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from glyd_codec import FormatError
from glyd_gpu._errors import ParameterError, RoundingWarning
from glyd_gpu._meta import LAYOUTS, PackedMeta
from glyd_gpu._tensors import SUFFIX

MANIFEST = "glyd.json"

_HEADER_MAX = 100 << 20
_CHUNK = 1 << 24
_PAYS = 15 / 16  # of the bf16 size: what a pack may have at most


@dataclass(frozen=True)
class Source:
    """A tensor of the checkpoint.

    Attributes
    ----------
    key
        Its name in the file.
    name
        Its name before it was packed.
    path, offset, nbytes
        Where its bytes are.
    dtype
        As safetensors names it.
    shape
        Of the weights; a pack of unknown origin has two dimensions.
    meta
        Of a pack, else None.
    """

    key: str
    name: str
    path: str
    offset: int
    nbytes: int
    dtype: str
    shape: tuple[int, ...]
    meta: PackedMeta | None

    @property
    def rows(self) -> int:
        """Rows: all dimensions but the last."""
        return math.prod(self.shape[:-1])


def read_sources(paths: Iterable[str]) -> dict[str, Source]:
    """Return the tensors of safetensors files by their names in the files.

    Raises
    ------
    FormatError
        A file is no safetensors file, or a pack is damaged or cut; the message names both.
    """
    found: dict[str, Source] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for path in paths:
        with open(path, "rb") as file:
            entries, data_at = _read_header(file, path)
            content = np.memmap(path, mode="r")  # of which only headers are touched
        shapes |= _shapes(entries.pop("__metadata__", None))
        for key, value in entries.items():
            dtype, shape, begin, end = _entry(value, key, path, len(content) - data_at)
            meta = None
            if key.endswith(SUFFIX) and dtype == "U8" and len(shape) == 1:
                try:
                    meta = PackedMeta.from_bytes(memoryview(content[data_at + begin : data_at + end]))
                except FormatError as error:
                    raise type(error)(f"{path}: {key}: {error}") from None
                shape = (meta.rows, meta.cols)
            name = key.removesuffix(SUFFIX) if meta else key
            found[key] = Source(key, name, path, data_at + begin, end - begin, dtype, shape, meta)
    folder = os.path.dirname(next(iter(found.values())).path) if found else ""
    shapes |= _manifest_shapes(folder)
    return {key: _with_shape(source, shapes.get(source.name)) for key, source in found.items()}


def _read_header(file: Any, path: str) -> tuple[dict[str, Any], int]:
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if not 2 <= length <= min(_HEADER_MAX, size - 8):
        raise FormatError(f"{path}: no safetensors file: a header of {length} bytes in a file of {size}")
    try:
        entries = json.loads(file.read(length))
    except ValueError as error:
        raise FormatError(f"{path}: the header is no JSON: {error}") from None
    if not isinstance(entries, dict):
        raise FormatError(f"{path}: the header is no JSON object")
    return entries, 8 + length


def _entry(value: Any, key: str, path: str, data_nbytes: int) -> tuple[str, tuple[int, ...], int, int]:
    try:
        dtype, shape, (begin, end) = str(value["dtype"]), tuple(map(int, value["shape"])), value["data_offsets"]
        good = 0 <= begin <= end <= data_nbytes and all(n >= 0 for n in shape)
    except (KeyError, TypeError, ValueError):
        good = False
    if not good:
        raise FormatError(f"{path}: tensor {key!r} needs dtype, shape and data_offsets inside of the file")
    return dtype, shape, begin, end


def _shapes(metadata: Any) -> dict[str, tuple[int, ...]]:
    """Return shapes that a saved model notes beside its packs (stacks of experts)."""
    text = metadata.get("glyd_shapes") if isinstance(metadata, dict) else None
    try:
        return {} if text is None else {name: tuple(map(int, shape)) for name, shape in json.loads(text).items()}
    except (AttributeError, TypeError, ValueError):
        raise FormatError(f"glyd_shapes in the metadata is no object of names and shapes: {text!r:.100}") from None


def _manifest_shapes(folder: str) -> dict[str, tuple[int, ...]]:
    path = Path(folder, MANIFEST)
    if not path.is_file():
        return {}
    try:
        tensors = json.loads(path.read_bytes())["tensors"]
        return {name: tuple(map(int, entry["shape"])) for name, entry in tensors.items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{path} is damaged ({error!r:.100}): glyd verify says more") from None


def _with_shape(source: Source, shape: tuple[int, ...] | None) -> Source:
    if source.meta is None or shape is None or shape == source.shape:
        return source
    if len(shape) != 3 or (math.prod(shape[:-1]), shape[-1]) != source.shape:
        raise FormatError(f"{source.path}: {source.key} is a pack of {source.shape}, not of {shape}")
    return Source(source.key, source.name, source.path, source.offset, source.nbytes, source.dtype, shape, source.meta)


def estimated_nbytes(layout: str, rows: int, cols: int) -> int:
    """Return the bytes of a pack without any escapes or exceptions: no pack of the shape is smaller."""
    return PackedMeta(LAYOUTS[layout], rows, cols).nbytes


def is_packable(shape: Sequence[int], layout: str) -> bool:
    """Say whether tensors of a shape may be packed, as the packer of directories decides."""
    if len(shape) not in {2, 3} or math.prod(shape) == 0:
        return False
    rows, cols = math.prod(shape[:-1]), shape[-1]
    if rows > 1 << 36 or cols >= 1 << 26:
        return False
    return estimated_nbytes(layout, rows, cols) <= _PAYS * 2 * rows * cols


def check_dtypes(sources: Iterable[Source]) -> None:
    """Refuse checkpoints whose matrices are not bf16 values.

    Raises
    ------
    ParameterError
        The message says what the checkpoint is and what to do.
    """
    matrices = [s for s in sources if s.meta is None and len(s.shape) >= 2]
    kinds = {s.dtype for s in matrices}
    quantized = sorted(kinds - {"BF16", "F16", "F32", "F64", "I64", "I32", "BOOL"})
    if quantized:
        example = next(s for s in matrices if s.dtype == quantized[0])
        raise ParameterError(
            f"{example.path}: {example.key} is {example.dtype}: a quantized checkpoint. glyd packs bf16 weights: "
            "use the bf16 checkpoint that it was made from"
        )
    if "BF16" in kinds:
        warn_of_rounding(matrices)
        return
    if "F16" in kinds:
        example = next(s for s in matrices if s.dtype == "F16")
        raise ParameterError(
            f"{example.path}: {example.key} is fp16, and bf16 cannot hold all of its values. glyd packs bf16 weights: "
            "use a bf16 checkpoint, or convert and accept the rounding: model.to(torch.bfloat16).save_pretrained(...)"
        )
    if "F64" in kinds:
        example = next(s for s in matrices if s.dtype == "F64")
        raise ParameterError(
            f"{example.path}: {example.key} is fp64. glyd packs bf16 weights: use a bf16 checkpoint, or convert and "
            "accept the rounding: model.to(torch.bfloat16).save_pretrained(...)"
        )
    for source in matrices:
        if source.dtype == "F32":
            _check_is_bf16(source)


def warn_of_rounding(sources: Iterable[Source]) -> None:
    """Warn of fp32 matrices that a bf16 model rounds: transformers does so with ``dtype=torch.bfloat16``, unsaid."""
    for source in sources:
        if source.dtype == "F32" and len(source.shape) >= 2:
            value = _not_bf16(source)
            if value is not None:
                warnings.warn(
                    f"{source.path}: {source.key} is fp32 beside bf16 matrices, and is rounded to bf16, which does not have "
                    f"all of its values ({value!r}): as transformers loads it with dtype=torch.bfloat16",
                    RoundingWarning,
                    stacklevel=2,
                )


def _check_is_bf16(source: Source) -> None:
    """Refuse fp32 values that bf16 does not have."""
    value = _not_bf16(source)
    if value is not None:
        raise ParameterError(
            f"{source.path}: {source.key} is fp32 and has values that bf16 does not have ({value!r}). glyd packs "
            "bf16 weights: use a bf16 checkpoint, or convert and accept the rounding: "
            "model.to(torch.bfloat16).save_pretrained(...)"
        )


def _not_bf16(source: Source) -> Any:
    """Return the first fp32 value that bf16 does not have, one with a low half that is not zero; None: there is none."""
    left, at = source.nbytes, source.offset
    with open(source.path, "rb") as file:
        while left:
            words = np.fromfile(file, dtype="<u4", count=min(left, _CHUNK) // 4, offset=at - file.tell())
            if not words.size:
                raise FormatError(f"{source.path}: {source.key} is cut short")
            wrong = np.flatnonzero(words & 0xFFFF)
            if wrong.size:
                return words[wrong[0] : wrong[0] + 1].view("<f4")[0]
            left -= words.nbytes
            at += words.nbytes
    return None

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""A manifest for a directory of packs that another program saved."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import secrets
from typing import TYPE_CHECKING

from glyd_codec._errors import FormatError, ParameterError, TruncatedError
from glyd_codec._models._manifest import blob, manifest_bytes, parse_manifest
from glyd_codec._models._matrix import Engine, InFile, as_matrix, checksum_text
from glyd_codec._models._output import CHUNK_NBYTES, placed_file
from glyd_codec._models._safetensors import Tensor, entry_text, header_bytes, json_object
from glyd_codec._models._source import (
    CONFIG,
    CONFIG_MAX,
    INDEX_MAX,
    INDEX_SUFFIX,
    MANIFEST,
    read_file,
    read_header,
    walk_files,
    weight_files,
)
from glyd_codec._native import ffi, lib
from glyd_codec._weights import LAYOUTS, check_status

if TYPE_CHECKING:
    from typing import Any

    from glyd_codec._models._manifest import Manifest
    from glyd_codec._models._safetensors import Header

_SUFFIX = "_packed"
_SHAPES = "glyd_shapes"  # in __metadata__: JSON object of packs whose tensors have three dimensions
_NAMES = {number: name for name, number in LAYOUTS.items()}
_HEADER = int(lib.GLYD_WEIGHTS_HEADER)


def seal_directory(path: str, threads: int) -> Manifest:
    """Write the manifest of a directory; return what it says."""
    target = os.path.join(path, MANIFEST)
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, "is there already", target)
    with Engine(threads) as engine:
        text = _Seal(path, engine).manifest()
    manifest = parse_manifest(text)
    temporary = f".{MANIFEST}.{secrets.token_hex(6)}.glyd-tmp"
    try:
        with placed_file(os.path.join(path, temporary)) as file:
            file.put(0, text)
        os.rename(os.path.join(path, temporary), target)
    except BaseException:
        if os.path.lexists(os.path.join(path, temporary)):
            os.unlink(os.path.join(path, temporary))
        raise
    return manifest


def _shapes(text: str, name: str) -> dict[str, tuple[int, ...]]:
    """Return the shapes that a weight file notes beside its packs."""
    found = {}
    for tensor, shape in json_object(text.encode(), f"{name}: {_SHAPES}").items():
        if not isinstance(shape, list) or len(shape) > 8 or not all(type(side) is int and side > 0 for side in shape):
            raise FormatError(f"{name}: {_SHAPES}: {shape!r:.100} is no shape")
        found[tensor] = tuple(shape)
    return found


class _Seal:
    def __init__(self, path: str, engine: Engine) -> None:
        self._path = path
        self._engine = engine
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._original_nbytes = 0
        self._tensors: dict[str, dict[str, Any]] = {}
        self._layouts: set[str] = set()

    def manifest(self) -> bytes:
        """Look at all files; return the bytes of the manifest."""
        shards = weight_files(self._path)
        entries = [self._shard(number, name) for number, name in enumerate(shards)]
        if len(self._layouts) != 1:
            found = ", ".join(sorted(self._layouts)) or "none"
            raise ParameterError(f"{self._path}: packs of one layout are needed, and these are there: {found}")
        files = {name: self._file(name) for name in walk_files(self._path, []) if name not in shards}
        return manifest_bytes(self._layouts.pop(), {"repo": None, "revision": None}, entries, files, self._tensors)

    def _shard(self, number: int, name: str) -> dict[str, Any]:
        header = read_header(self._path, name)
        metadata = dict(header.metadata) if header.metadata is not None else None
        self._shapes = _shapes((metadata or {}).pop(_SHAPES, "{}"), name) if metadata else {}
        file = InFile(os.path.join(self._path, name))
        try:
            originals = [self._tensor(number, tensor, header, file) for tensor in header.tensors]
            file.check_same()
        finally:
            file.close()
        at = 0
        texts = []
        for tensor in originals:
            texts.append(entry_text(Tensor(tensor.name, tensor.dtype, tensor.shape, at, at + tensor.end)))
            at += tensor.end
        raw = header_bytes(texts, metadata, align=8)
        self._original_nbytes += at
        return {
            "file": name,
            "nbytes": file.nbytes,
            "header_sha256": hashlib.sha256(header.raw).hexdigest(),
            "original_nbytes": len(raw) + at,
            "original_header": blob(raw),
        }

    def _tensor(self, number: int, tensor: Tensor, header: Header, file: InFile) -> Tensor:
        """Enter a tensor; return the original, at place 0."""
        at = len(header.raw) + tensor.begin
        where = f"{file.name}: tensor {tensor.name!r}"
        found = self._pack_of(tensor, file, at)
        if found is None:
            name, dtype, shape, nbytes = tensor.name, tensor.dtype, tensor.shape, tensor.nbytes
            how = {"sha256": self._engine.sha256(file, at, nbytes), "layout": "verbatim", "reason": "dtype"}
            if dtype == "BF16":
                how["reason"] = "shape" if as_matrix(shape) is None else "size"
        else:
            layout, rows, cols = found
            name, dtype = tensor.name.removesuffix(_SUFFIX), "BF16"
            shape = self._shapes.get(name, (rows, cols))
            if as_matrix(shape) != (rows, cols):
                raise ParameterError(f"{where}: a pack of {rows} × {cols} is no tensor of shape {list(shape)}")
            nbytes = 2 * math.prod(shape)
            view = memoryview(ffi.buffer(self._engine.room("pack", tensor.nbytes), tensor.nbytes))
            file.read(at, view)
            check = checksum_text(view)
            try:
                weights = self._engine.unpack(file, at, tensor.nbytes, layout, rows, cols, check, "source")
            except FormatError as error:
                raise type(error)(f"{where}: {error}", expected=error.expected, found=error.found) from None
            self._layouts.add(layout)
            sha256 = hashlib.sha256(weights).hexdigest()
            how = {"sha256": sha256, "layout": layout, "packed": tensor.name, "packed_xxh3": check}
        if name in self._tensors:
            raise FormatError(f"{where}: {name!r} is there twice")
        self._tensors[name] = {"shard": number, "dtype": dtype, "shape": shape, **how}
        return Tensor(name, dtype, shape, 0, nbytes)

    def _pack_of(self, tensor: Tensor, file: InFile, at: int) -> tuple[str, int, int] | None:
        """Return layout, rows and columns of a tensor that is a pack."""
        is_pack = tensor.name.endswith(_SUFFIX) and tensor.dtype == "U8" and len(tensor.shape) == 1
        if not is_pack or tensor.nbytes < _HEADER:
            return None
        raw = bytearray(_HEADER)
        file.read(at, memoryview(raw))
        if int.from_bytes(raw[:4], "little") != lib.GLYD_WEIGHTS_MAGIC:
            return None
        info = ffi.new("glyd_weights_info *")
        status = lib.glyd_weights_read_info(ffi.from_buffer("char[]", raw), _HEADER, info)
        if status not in {lib.GLYD_OK, lib.GLYD_E_TRUNCATED}:
            check_status(status, f"{file.name}: tensor {tensor.name!r}")
        if info.size > tensor.nbytes:
            raise TruncatedError(
                f"{file.name}: tensor {tensor.name!r} has {tensor.nbytes} bytes for a pack of {info.size}",
                expected=int(info.size),
                found=tensor.nbytes,
            )
        return _NAMES[info.shape.layout], int(info.shape.rows), int(info.shape.cols)

    def _file(self, name: str) -> dict[str, Any]:
        """Return the entry of a file that holds no weights; of what names packs also the original."""
        path = os.path.join(self._path, name)
        total, nbytes = hashlib.sha256(), 0
        with open(path, "rb") as file:
            while data := file.read(CHUNK_NBYTES):
                total.update(data)
                nbytes += len(data)
        entry: dict[str, Any] = {"nbytes": nbytes, "sha256": total.hexdigest()}
        value: dict[str, Any] | None = None
        if name == CONFIG:
            value = json_object(read_file(path, CONFIG_MAX), name)
            value.pop("quantization_config", None)
        elif name.endswith(INDEX_SUFFIX) and "/" not in name:
            value = json_object(read_file(path, INDEX_MAX), name)
            names = {how.get("packed", tensor): tensor for tensor, how in self._tensors.items()}
            value["weight_map"] = {names.get(key, key): file for key, file in value["weight_map"].items()}
            if isinstance(value.get("metadata"), dict) and "total_size" in value["metadata"]:
                value["metadata"]["total_size"] = self._original_nbytes
        if value is not None:
            entry["original"] = blob((json.dumps(value, indent=2) + "\n").encode())
        return entry

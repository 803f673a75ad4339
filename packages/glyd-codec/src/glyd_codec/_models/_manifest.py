# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""The manifest ``glyd.json``: written, and read as something that may be hostile."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from glyd_codec._errors import CorruptDataError, FormatError, GlydError, UnsupportedVersionError
from glyd_codec._models._matrix import as_matrix, check_sha256, mismatch
from glyd_codec._models._safetensors import HEADER_MAX, json_object, parse
from glyd_codec._models._source import MANIFEST, is_file_name, read_file
from glyd_codec._oneshot import compress, decompress
from glyd_codec._version import __version__
from glyd_codec._weights import LAYOUTS

if TYPE_CHECKING:
    from typing import Any

    from glyd_codec._models._safetensors import Header

FORMAT = "glyd packed model"
VERSION = 1

MANIFEST_MAX = 1 << 31
_SHA256 = re.compile(r"[0-9a-f]{64}")
_XXH3 = re.compile(r"[0-9a-f]{16}")


def blob(data: bytes) -> dict[str, Any]:
    """Return bytes in the form that the manifest keeps them in."""
    return {
        "nbytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "frame": base64.b64encode(compress(data)).decode(),
    }


def manifest_bytes(
    layout: str,
    source: dict[str, Any],
    shards: list[dict[str, Any]],
    files: dict[str, Any],
    tensors: dict[str, Any],
) -> bytes:
    """Return the bytes of ``glyd.json``."""
    head = {
        "format": FORMAT, "version": VERSION, "layout": layout, "writer": f"glyd-codec {__version__}", "source": source,
    }  # fmt: skip
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    lines.append('"shards": [\n ' + ",\n ".join(map(json.dumps, shards)) + "\n]")
    for key, table in (("files", files), ("tensors", tensors)):
        rows = ",\n ".join(f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in table.items())
        lines.append(f"{json.dumps(key)}: {{\n {rows}\n}}")
    body = ("{\n" + ",\n".join(lines) + ",\n").encode()
    return body + _last_lines(body)


def _last_lines(body: bytes) -> bytes:
    return f'"sha256": "{hashlib.sha256(body).hexdigest()}"\n}}\n'.encode()


@dataclass(slots=True)
class Shard:
    """A weight file: ``header`` is the original's, which `original_header` gave."""

    file: str
    nbytes: int
    header_sha256: str
    header: Header


@dataclass(slots=True)
class Manifest:
    """What ``glyd.json`` says, checked.

    Attributes
    ----------
    shards
        In the order of the numbers that tensors name them by.
    files
        Entries by path; their ``original`` is bytes, or None for copies.
    tensors
        Entries by name; each agrees with the header of its shard.
    """

    layout: str
    shards: list[Shard]
    files: dict[str, dict[str, Any]]
    tensors: dict[str, dict[str, Any]]


def read_manifest(folder: str) -> Manifest:
    """Read and check the manifest of a packed model.

    Raises
    ------
    FormatError
        There is none, or it is damaged, of another version, or contradicts itself.
    """
    path = os.path.join(folder, MANIFEST)
    if os.path.isdir(folder) and not os.path.exists(path):
        raise FormatError(f"{folder} is no packed model: it has no {MANIFEST}")
    return parse_manifest(read_file(path, MANIFEST_MAX))


def parse_manifest(raw: bytes) -> Manifest:
    """Check the bytes of a manifest.

    Raises
    ------
    FormatError
        They are damaged, of another version, or contradict themselves.
    """
    cut = len(raw) - len(_last_lines(b""))
    value = json_object(raw, MANIFEST)
    if value.get("format") != FORMAT:
        raise FormatError(f"{MANIFEST}: not of a packed model")
    if value.get("version") != VERSION:
        raise UnsupportedVersionError(f"{MANIFEST}: version {value.get('version')!r} is not known, only {VERSION}")
    if raw[cut:] != _last_lines(raw[: max(cut, 0)]):
        stated = value.get("sha256")
        if isinstance(stated, str) and _SHA256.fullmatch(stated):
            raise mismatch(MANIFEST, stated, hashlib.sha256(raw[:cut]).hexdigest())
        raise CorruptDataError(f"{MANIFEST}: does not end with its SHA-256")
    try:
        return _understand(value)
    except (KeyError, TypeError, AttributeError) as error:
        raise CorruptDataError(f"{MANIFEST}: an entry is missing or of the wrong type ({error})") from None


def _understand(value: dict[str, Any]) -> Manifest:
    layout = value["layout"]
    _require(layout in LAYOUTS, f"layout {layout!r}")
    shards: list[Shard] = []
    for entry in value["shards"]:
        file = entry["file"]
        _require(isinstance(file, str) and is_file_name(file) and file.endswith(".safetensors"), f"file {file!r}")
        raw = _unblob(entry["original_header"], HEADER_MAX + 8, file)
        nbytes, original = entry["nbytes"], entry["original_nbytes"]
        _require(_is_size(nbytes) and _is_size(original) and original >= len(raw) >= 8, f"sizes of {file!r}")
        _require(int.from_bytes(raw[:8], "little") == len(raw) - 8, f"header of {file!r}")
        header = parse(raw, original - len(raw), file)
        shards.append(Shard(file, nbytes, _hash(entry["header_sha256"]), header))
    files: dict[str, dict[str, Any]] = {}
    for name, entry in value["files"].items():
        _require(_is_path(name), f"path {name!r}")
        _require(_is_size(entry["nbytes"]), f"size of {name!r}")
        original = _unblob(entry["original"], 1 << 30, name) if "original" in entry else None
        files[name] = {"nbytes": entry["nbytes"], "sha256": _hash(entry["sha256"]), "original": original}
    paths = [shard.file for shard in shards] + list(files)
    _require(len(set(paths)) == len(paths) and MANIFEST not in paths, "a file that is there twice")
    tensors: dict[str, dict[str, Any]] = dict(value["tensors"])
    n = 0
    for number, shard in enumerate(shards):
        for tensor in shard.header.tensors:
            entry = tensors.get(tensor.name)
            where = f"tensor {tensor.name!r} of {shard.file}"
            if entry is None:
                raise CorruptDataError(f"{MANIFEST}: {where}: not there")
            same = (entry["shard"], entry["dtype"], entry["shape"]) == (number, tensor.dtype, list(tensor.shape))
            _require(same, f"{where}: not as in the header")
            _hash(entry["sha256"])
            if entry["layout"] != "verbatim":
                _require(entry["layout"] in LAYOUTS and isinstance(entry["packed"], str), f"{where}: layout")
                _require(tensor.dtype == "BF16" and as_matrix(tensor.shape) is not None, f"{where}: cannot be packed")
                _require(bool(_XXH3.fullmatch(entry["packed_xxh3"])), f"{where}: packed_xxh3")
            n += 1
    _require(n == len(tensors), f"{len(tensors) - n} tensors that no header has")
    return Manifest(layout, shards, files, tensors)


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise CorruptDataError(f"{MANIFEST}: {what}")


def _is_size(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _is_path(name: str) -> bool:
    return len(name) <= 4096 and all(is_file_name(part) for part in name.split("/"))


def _hash(value: object) -> str:
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise CorruptDataError(f"{MANIFEST}: {value!r} is no SHA-256")
    return value


def _unblob(entry: dict[str, Any], limit: int, name: str) -> bytes:
    where = f"{MANIFEST}: original of {name}"
    _require(_is_size(entry["nbytes"]) and entry["nbytes"] <= limit, f"size of the original of {name!r}")
    try:
        data = decompress(base64.b64decode(entry["frame"], validate=True), max_size=max(entry["nbytes"], 1))
    except (binascii.Error, GlydError) as error:
        raise CorruptDataError(f"{where}: {error}") from None
    _require(len(data) == entry["nbytes"], f"original of {name!r} has {len(data)} bytes, not {entry['nbytes']}")
    check_sha256(data, _hash(entry["sha256"]), where)
    return data

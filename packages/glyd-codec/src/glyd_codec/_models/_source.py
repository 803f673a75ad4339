# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""What a checkpoint consists of: its weight files, checked against the index, and the rest."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from glyd_codec._errors import FormatError, ParameterError
from glyd_codec._models._safetensors import header_length, json_object, parse

if TYPE_CHECKING:
    from typing import Any

    from glyd_codec._models._safetensors import Header

MANIFEST = "glyd.json"
CONFIG = "config.json"
INDEX_SUFFIX = ".safetensors.index.json"

INDEX_MAX = 1 << 30
CONFIG_MAX = 1 << 26
_OTHER_WEIGHTS = frozenset(
    (
        ".bin", ".ckpt", ".gguf", ".ggml", ".h5", ".keras", ".msgpack", ".npz", ".onnx", ".onnx_data", ".ot", ".pb",
        ".pickle", ".pkl", ".pt", ".pth", ".tflite",
    )
)  # fmt: skip
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


@dataclass(slots=True)
class Source:
    """A checkpoint on disk.

    Attributes
    ----------
    path
        Its directory.
    shards
        Weight files in the order of their names, each with its header.
    index
        Name and bytes of the index, or None.
    config
        Bytes of config.json, or None.
    others
        Paths, relative to the directory, of the files to copy.
    ignored
        Paths of what is left out.
    """

    path: str
    shards: dict[str, Header] = field(default_factory=dict)
    index: tuple[str, bytes] | None = None
    config: bytes | None = None
    others: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)


def locate(
    source: str | os.PathLike[str], revision: str | None, token: str | bool | None
) -> tuple[str, dict[str, Any]]:
    """Return the directory of a checkpoint, fetched from the hub if need be, and where it is from.

    Raises
    ------
    FileNotFoundError
        Neither a directory nor a name that the hub may have.
    ParameterError
        A revision for a directory, or a hub name without huggingface_hub.
    """
    path = os.fspath(source)
    if os.path.lexists(path) or not HUB_ID.fullmatch(path):
        if revision is not None:
            raise ParameterError(f"revision {revision!r} goes with a model of the hub; {path} is a path")
        if not os.path.isdir(path):
            os.listdir(path)  # raises what fits
        return path, {"repo": None, "revision": None}
    try:
        from huggingface_hub import snapshot_download  # noqa: PLC0415 - not needed for directories
    except ImportError:
        raise ParameterError(
            f"{path} is no directory here, and fetching it from the hub takes: pip install 'glyd-codec[models]'"
        ) from None
    skip = [f"*{suffix}" for suffix in sorted(_OTHER_WEIGHTS)]
    try:
        folder = snapshot_download(path, revision=revision, token=token, ignore_patterns=skip)
    except ValueError as error:  # a name or revision that the hub cannot have
        raise ParameterError(f"{path}: {error}") from None
    return folder, {"repo": path, "revision": os.path.basename(folder)}


def read_source(path: str) -> Source:
    """Look at all files of a checkpoint; read and check every header and the index.

    Raises
    ------
    FormatError
        Files contradict each other or are no safetensors: the message names shard and tensor.
    ParameterError
        There is nothing that can be packed, and what to do.
    """
    found = Source(path)
    names = walk_files(path, found.ignored)
    if MANIFEST in names:
        raise ParameterError(f"{path} is a packed model already: it has {MANIFEST}")
    index_name = _find_index(path, names)
    weight_map: dict[str, str] | None = None
    if index_name is not None:
        raw = read_file(os.path.join(path, index_name), INDEX_MAX)
        found.index = (index_name, raw)
        weight_map = weight_map_of(raw, index_name)
    shards = _find_shards(path, names, index_name, weight_map)
    for name in shards:
        found.shards[name] = read_header(path, name)
    _check_tensors(found.shards, weight_map, index_name)
    if CONFIG in names:
        found.config = read_file(os.path.join(path, CONFIG), CONFIG_MAX)
        quantization = json_object(found.config, CONFIG).get("quantization_config")
        if quantization is not None:
            method = quantization.get("quant_method") if isinstance(quantization, dict) else quantization
            raise ParameterError(
                f"{path} is quantized already ({method}): pack the bf16 checkpoint that it was made from"
            )
    taken = {CONFIG, index_name, *shards}
    for name in names:
        if name in taken:
            continue
        is_weights = name.endswith(".safetensors") or os.path.splitext(name)[1].lower() in _OTHER_WEIGHTS
        is_index = name.endswith((INDEX_SUFFIX, ".bin.index.json"))
        (found.ignored if is_weights or is_index else found.others).append(name)
    found.ignored.sort()
    return found


def weight_files(path: str) -> list[str]:
    """Return the names of the weight files of a directory, which need not all be read.

    Raises
    ------
    FormatError, ParameterError
        As `read_source`.
    """
    names = walk_files(path, [])
    index_name = _find_index(path, names)
    weight_map: dict[str, str] | None = None
    if index_name is not None:
        weight_map = weight_map_of(read_file(os.path.join(path, index_name), INDEX_MAX), index_name)
    return _find_shards(path, names, index_name, weight_map)


def walk_files(path: str, ignored: list[str]) -> list[str]:
    """Return the paths of all files below a directory, sorted; note what is hidden or no file.

    Raises
    ------
    FormatError
        A link leads nowhere.
    """
    names: list[str] = []
    pending = [""]
    while pending:
        folder = pending.pop()
        with os.scandir(os.path.join(path, folder)) as entries:
            for entry in entries:
                name = f"{folder}/{entry.name}" if folder else entry.name
                if entry.name.startswith("."):
                    ignored.append(name)
                elif entry.is_dir(follow_symlinks=False):
                    pending.append(name)
                elif entry.is_file():  # a link to a file is how the hub's cache keeps it
                    names.append(name)
                elif entry.is_symlink() and not os.path.exists(entry.path):
                    raise FormatError(f"{name}: a link to {os.readlink(entry.path)}, which does not exist")
                else:
                    ignored.append(name)
    return sorted(names)


def _find_index(path: str, names: list[str]) -> str | None:
    candidates = [name for name in names if name.endswith(INDEX_SUFFIX) and "/" not in name]
    if "model" + INDEX_SUFFIX in candidates:
        return "model" + INDEX_SUFFIX
    if len(candidates) > 1:
        raise FormatError(f"{path}: several indexes ({', '.join(candidates)}): leave one")
    return candidates[0] if candidates else None


def weight_map_of(raw: bytes, name: str) -> dict[str, str]:
    """Return which file each tensor is in, from the bytes of an index.

    Raises
    ------
    FormatError
        It is no index, or names what is no weight file of the directory.
    """
    weight_map = json_object(raw, name).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise FormatError(f"{name}: weight_map must be an object of tensors and their files")
    for tensor, shard in weight_map.items():
        if not isinstance(shard, str) or not is_file_name(shard) or not shard.endswith(".safetensors"):
            raise FormatError(
                f"{name}: tensor {tensor!r} is said to be in {shard!r}, which is no name of a weight file"
            )
    return weight_map


def is_file_name(name: str) -> bool:
    """Say whether a name stays in its directory and is no hidden file."""
    return bool(name) and not name.startswith(".") and not set(name) & set("/\\\0") and len(name) <= 255


def _find_shards(path: str, names: list[str], index_name: str | None, weight_map: dict[str, str] | None) -> list[str]:
    here = [name for name in names if name.endswith(".safetensors") and "/" not in name]
    if weight_map is not None:
        shards = sorted(set(weight_map.values()))
        missing = [name for name in shards if name not in here]
        if missing:
            tensor = next(key for key, value in weight_map.items() if value == missing[0])
            raise FormatError(f"{missing[0]}: named by {index_name} (for {tensor!r}) and not there: download it again")
        if "model.safetensors" in here and "model.safetensors" not in shards:
            raise FormatError(f"model.safetensors is beside {index_name}, which does not name it: remove one of them")
        return shards
    if "model.safetensors" in here:
        return ["model.safetensors"]
    if len(here) == 1:
        return here
    if here:
        raise FormatError(
            f"{path}: {len(here)} .safetensors files and no index (*{INDEX_SUFFIX}) that says which belong"
        )
    other = next((name for name in names if os.path.splitext(name)[1].lower() in _OTHER_WEIGHTS), None)
    if other is not None:
        raise ParameterError(
            f"{path}: no .safetensors file, and {other} is not read, as such files can run code: "
            "load it where you trust it, and save_pretrained(..., safe_serialization=True)"
        )
    raise ParameterError(f"{path}: no .safetensors file, so no model that could be packed")


def _check_tensors(shards: dict[str, Header], weight_map: dict[str, str] | None, index_name: str | None) -> None:
    owner: dict[str, str] = {}
    for shard, header in shards.items():
        for tensor in header.tensors:
            if tensor.name in owner:
                raise FormatError(f"{shard}: tensor {tensor.name!r} is in {owner[tensor.name]} too")
            owner[tensor.name] = shard
    if weight_map is None:
        return
    missing = [name for name in weight_map if name not in owner]
    if missing:
        raise FormatError(f"{index_name}: {_listed(missing)} not in {weight_map[missing[0]]} or any other shard")
    extra = [name for name in owner if name not in weight_map]
    if extra:
        raise FormatError(f"{owner[extra[0]]}: {_listed(extra)} not in {index_name}")
    moved = [name for name, shard in weight_map.items() if owner[name] != shard]
    if moved:
        name = moved[0]
        raise FormatError(f"{index_name}: {_listed(moved)} said to be in {weight_map[name]}, but in {owner[name]}")


def _listed(names: list[str]) -> str:
    text = ", ".join(map(repr, names[:5]))
    return f"tensor {text} is" if len(names) == 1 else f"{len(names)} tensors ({text}{', …' * (len(names) > 5)}) are"


def read_header(folder: str, name: str) -> Header:
    """Return the checked header of a weight file.

    Raises
    ------
    FormatError
        It is no safetensors file, or a broken one.
    """
    with open(os.path.join(folder, name), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise FormatError(f"{name}: no regular file")
        first = file.read(8)
        length = header_length(first, status.st_size, name)
        raw = first + file.read(length)
    return parse(raw, status.st_size - 8 - length, name)


def read_file(path: str, limit: int) -> bytes:
    """Return the bytes of a small file.

    Raises
    ------
    FormatError
        It is larger than the limit.
    """
    with open(path, "rb") as file:
        raw = file.read(limit + 1)
    if len(raw) > limit:
        raise FormatError(f"{os.path.basename(path)}: more than {limit} bytes", expected=limit, found=len(raw))
    return raw

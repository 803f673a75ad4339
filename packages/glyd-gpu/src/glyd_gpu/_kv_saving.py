# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Packed caches in files: pages as they are, not decoded, with hashes; for a prefix that another process goes on with.

A safetensors file. For layer i and each of ``keys`` and ``values``: ``i.keys.pages`` (uint8, pages one behind the
other, each once), ``i.keys.table`` (int64 [sequences, heads, pages], numbers of pages), ``i.keys.tail`` (bf16, the
newest tokens); layers that are plain have the tail only. ``ids`` (int64 [sequences, tokens]) where they were given.
The metadata ``glyd_kv`` is JSON: version, the layers, and SHA-256 of each tensor's bytes.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import tempfile
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

import glyd_codec
from glyd_gpu._backend_reference import bytes_of
from glyd_gpu._errors import CorruptDataError, ParameterError, UnsupportedVersionError
from glyd_gpu._kv_cuda import check_device
from glyd_gpu._kv_ops import TOKENS
from glyd_gpu._kv_store import PagedTensor
from glyd_gpu.kv_cache import GlydKVCache, PackedLayer, PackedSlidingWindowLayer

VERSION = 1
_KEY = "glyd_kv"
_KINDS = ("keys", "values")


def _sha256(tensor: torch.Tensor) -> str:
    return hashlib.sha256(bytes_of(tensor)).hexdigest()


def save(cache: GlydKVCache, path: str | os.PathLike[str], ids: torch.Tensor | None) -> None:
    """Write a cache; see `GlydKVCache.save`."""
    tensors: dict[str, torch.Tensor] = {}
    layers: list[dict[str, Any]] = []
    for number, layer in enumerate(cache.layers):
        if type(layer) not in {PackedLayer, PackedSlidingWindowLayer, DynamicLayer, DynamicSlidingWindowLayer}:
            raise ParameterError(f"layer {number} is a {type(layer).__name__}, which files of caches do not hold")
        if not layer.is_initialized:
            raise ParameterError(f"layer {number} has no keys yet: there is nothing to save")
        entry: dict[str, Any] = {"kind": "packed" if isinstance(layer, PackedLayer) else "plain"}
        if isinstance(layer, DynamicSlidingWindowLayer):
            entry |= {"window": int(layer.sliding_window), "n_tokens": layer.get_seq_length()}
            if isinstance(layer, PackedSlidingWindowLayer):
                entry["n_shown"] = layer._shown()
        layers.append(entry)
        for which, kind in enumerate(_KINDS):
            name = f"{number}.{kind}"
            if not isinstance(layer, PackedLayer):
                tensors[f"{name}.tail"] = getattr(layer, kind)
                continue
            store = layer._of(which)
            tensors[f"{name}.pages"], tensors[f"{name}.table"] = store.gather()
            tensors[f"{name}.tail"] = store.tail
    if ids is not None:
        tensors["ids"] = ids.to(torch.int64)
    tensors = {name: tensor.detach().to("cpu").contiguous() for name, tensor in tensors.items()}
    tensors = {name: t.clone() if t.untyped_storage().nbytes() != t.nbytes else t for name, t in tensors.items()}
    manifest = {
        "version": VERSION,
        "layers": layers,
        "sha256": {name: _sha256(tensor) for name, tensor in tensors.items()},
    }
    target = os.path.abspath(os.fspath(path))
    parent, name = os.path.split(target)
    with tempfile.TemporaryDirectory(prefix=f".{name[:200]}.", suffix=".glyd-tmp", dir=parent) as folder:
        temporary = os.path.join(folder, "cache")
        try:
            save_file(tensors, temporary, {_KEY: json.dumps(manifest)})
        except SafetensorError as error:  # what the system says, a full disk for one, in a class of its own
            raise OSError(f"{target} cannot be written: {error}") from error
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        os.replace(temporary, target)


def _read(path: str) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Return manifest and tensors of a file, hashes compared.

    Raises
    ------
    CorruptDataError, UnsupportedVersionError
        With what is wrong.
    """
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            text = (file.metadata() or {}).get(_KEY)
            if text is None:
                raise CorruptDataError(f"{path} is no cache of glyd: a safetensors file without {_KEY!r}")
            manifest = json.loads(text)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except (SafetensorError, json.JSONDecodeError, RecursionError) as error:
        raise CorruptDataError(f"{path} is damaged: {error}") from error
    if not isinstance(manifest, dict) or not isinstance(manifest.get("version"), int):
        raise CorruptDataError(f"{path}: the manifest has no version")
    if manifest["version"] != VERSION:
        raise UnsupportedVersionError(
            f"{path} is of version {manifest['version']}, this program reads {VERSION}",
            expected=VERSION,
            found=manifest["version"],
        )
    hashes = manifest.get("sha256")
    if not isinstance(hashes, dict) or hashes.keys() != tensors.keys() or not isinstance(manifest.get("layers"), list):
        raise CorruptDataError(f"{path}: manifest and tensors are not about the same")
    for name, tensor in tensors.items():
        found = _sha256(tensor)
        if found != hashes[name]:
            raise CorruptDataError(f"{path}: {name} has SHA-256 {found}, not {hashes[name]}")
    return manifest, tensors


def _check(ok: bool, path: str, what: str) -> None:
    if not ok:
        raise CorruptDataError(f"{path}: {what}")


def _store(path: str, name: str, tensors: dict[str, torch.Tensor]) -> PagedTensor:
    """Return keys or values of a packed layer; everything that the file says is compared with its pages."""
    parts = [tensors.get(f"{name}.{part}") for part in ("pages", "table", "tail")]
    pages, table, tail = parts
    if pages is None or table is None or tail is None:
        raise CorruptDataError(f"{path}: {name} is not all there")
    _check(tail.dtype == torch.bfloat16 and tail.dim() == 4, path, f"{name}.tail is {tuple(tail.shape)}, {tail.dtype}")
    _check(tail.shape[2] < TOKENS, path, f"{name}.tail has {tail.shape[2]} tokens, {TOKENS - 1} at most")
    _check(
        pages.dtype == torch.uint8 and pages.dim() == 1, path, f"{name}.pages is {tuple(pages.shape)}, {pages.dtype}"
    )
    known = table.dtype == torch.int64 and table.dim() == 3 and table.shape[:2] == tail.shape[:2]
    _check(known, path, f"{name}.table is {tuple(table.shape)} of {table.dtype}, its tail {tuple(tail.shape)}")
    found = glyd_codec.read_kv_pages(bytes_of(pages))
    channels = tail.shape[3]
    _check(all(p.channels == channels for p in found), path, f"{name} has pages of other than {channels} channels")
    in_range = not table.numel() or bool((table.min() >= 0) & (table.max() < len(found)))
    _check(in_range, path, f"{name}.table names pages that are not among {len(found)}")
    places = torch.tensor([0, *itertools.accumulate(page.nbytes for page in found)], dtype=torch.int64)
    return PagedTensor.gathered(tail, pages, places[:-1], table)


def _number(path: str, entry: dict[str, Any], name: str) -> int:
    value = entry.get(name)
    _check(type(value) is int and 0 <= value < 1 << 40, path, f"{name} of a layer is {value!r}")
    return int(entry[name])


def _layer(path: str, number: int, entry: Any, tensors: dict[str, torch.Tensor]) -> Any:
    _check(isinstance(entry, dict) and entry.get("kind") in {"packed", "plain"}, path, f"layer {number} is of no kind")
    window = _number(path, entry, "window") if "window" in entry else None
    _check(window != 0, path, f"layer {number} has a window of 0 tokens")
    names = [f"{number}.{kind}" for kind in _KINDS]
    layer: Any
    if entry["kind"] == "plain":
        layer = DynamicLayer() if window is None else DynamicSlidingWindowLayer(window)
        keys, values = (tensors.get(f"{name}.tail") for name in names)
        if keys is None or values is None:
            raise CorruptDataError(f"{path}: layer {number} is not all there")
        _check(keys.dim() == values.dim() == 4, path, f"layer {number} has keys {tuple(keys.shape)}")
        layer.lazy_initialization(keys, values)
        layer.keys, layer.values = keys, values
        shape = keys.shape[:3], values.shape[:3]
        n_shown = keys.shape[2]
    else:
        layer = PackedLayer() if window is None else PackedSlidingWindowLayer(window)
        stores = _store(path, names[0], tensors), _store(path, names[1], tensors)
        layer.lazy_initialization(stores[0].tail, stores[1].tail)
        layer.stores = stores
        shape = tuple((*store.tail.shape[:2], store.n_tokens) for store in stores)  # type: ignore[assignment]
        n_shown = stores[0].n_tokens
        if window is not None:
            layer._n_shown = _number(path, entry, "n_shown")
            _check(layer._n_shown <= n_shown, path, f"layer {number} shows more tokens than it has")
            n_shown = layer._n_shown
    _check(shape[0] == shape[1], path, f"layer {number} has keys {shape[0]} and values {shape[1]}")
    if window is not None:
        layer.cumulative_length = _number(path, entry, "n_tokens")
        _check(layer.cumulative_length >= n_shown, path, f"layer {number} shows more tokens than there were")
    return layer


def load(
    path: str | os.PathLike[str], config: Any, device: str | torch.device, ids: torch.Tensor | None
) -> GlydKVCache:
    """Read a cache; see `GlydKVCache.load`."""
    name = os.fspath(path)
    target = torch.device(device)
    check_device(target)
    manifest, tensors = _read(name)
    layers = [_layer(name, number, entry, tensors) for number, entry in enumerate(manifest["layers"])]
    _check(bool(layers), name, "a cache without layers")
    lengths = {layer.get_seq_length() for layer in layers}
    _check(len(lengths) == 1, name, f"layers have {sorted(lengths)} tokens")
    cache = GlydKVCache(config)
    if config is not None:
        kinds = [(type(layer), getattr(layer, "sliding_window", None)) for layer in cache.layers]
        found = [(type(layer), getattr(layer, "sliding_window", None)) for layer in layers]
        if kinds != found:
            raise ParameterError(
                f"{name} is the cache of another model: {len(found)} layers, not {len(kinds)}, or of other kinds"
            )
        text = config.get_text_config(decoder=True)
        heads = getattr(text, "num_key_value_heads", None)
        stored = {layer._of().tail.shape[1] for layer in layers if isinstance(layer, PackedLayer)}
        if isinstance(heads, int) and stored - {heads}:
            raise ParameterError(f"{name} is the cache of another model: {sorted(stored)} heads, not {heads}")
    if ids is not None:
        kept = tensors.get("ids")
        if kept is None:
            raise ParameterError(f"{name} was saved without ids: they cannot be compared")
        if ids.shape[0] != kept.shape[0] or not torch.equal(ids[:, : kept.shape[1]].to("cpu", torch.int64), kept):
            raise ParameterError(f"{name} is the cache of other tokens than the first {kept.shape[1]} of these")
    cache.layers = layers
    cache.layer_class_to_replicate = None
    if target.type != "cpu":
        for layer in layers:
            layer.device = target
            layer.prefetch()
    return cache

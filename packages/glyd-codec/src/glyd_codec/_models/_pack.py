# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Packing: a checkpoint becomes a packed directory, tensor by tensor."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from glyd_codec._models._manifest import VERSION, blob, manifest_bytes
from glyd_codec._models._matrix import Engine, as_matrix, can_pay, read_exactly
from glyd_codec._models._output import CHUNK_NBYTES, copy_file, new_directory, placed_file, write_file
from glyd_codec._models._safetensors import BITS, Tensor, entry_text, header_bytes, json_object
from glyd_codec._models._source import CONFIG, MANIFEST, locate, read_source
from glyd_codec._weights import ALIGN, layout_id

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from glyd_codec._models._output import PlacedFile
    from glyd_codec._models._safetensors import Header
    from glyd_codec._models._source import Source

_SAMPLE_MIN, _SAMPLE_MAX, _SAMPLE_PART = 1 << 12, 1 << 16, 128


@dataclass(slots=True)
class Totals:
    """What `PackReport` is made of, while it grows."""

    n_packed: int = 0
    n_weights: int = 0
    packed_nbytes: int = 0
    entropy_bits: float = 0.0  # of all packed weights together
    verbatim: dict[str, list[int]] = field(default_factory=dict)


def pack_directory(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    layout: str,
    *,
    revision: str | None,
    token: str | bool | None,
    threads: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[Source, Totals, int]:
    """Pack a checkpoint; return what it was, the totals, and the bytes of the output's tensors and headers."""
    layout_id(layout)
    with Engine(threads) as engine:
        path, origin = locate(src, revision, token)
        source = read_source(path)
        with new_directory(dst, path) as folder:
            job = _Packing(engine, layout, source, folder, progress)
            for name, header in source.shards.items():
                job.shard(name, header)
            job.other_files()
            text = manifest_bytes(layout, origin, job.shards, job.files, job.tensors)
            write_file(folder, MANIFEST, text)
        return source, job.totals, sum(entry["nbytes"] for entry in job.shards)


class _Packing:
    def __init__(
        self,
        engine: Engine,
        layout: str,
        source: Source,
        folder: str,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self.shards: list[dict[str, Any]] = []
        self.files: dict[str, dict[str, Any]] = {}
        self.tensors: dict[str, dict[str, Any]] = {}
        self.totals = Totals()
        self._engine = engine
        self._layout = layout
        self._source = source
        self._folder = folder
        self._progress = progress
        self._done = 0
        self._total = sum(header.data_nbytes for header in source.shards.values())
        self._names = {tensor.name for header in source.shards.values() for tensor in header.tensors}
        self._weight_map: dict[str, str] = {}

    def shard(self, name: str, header: Header) -> None:
        """Pack one weight file."""
        path = os.path.join(self._source.path, name)
        candidates, verbatim = [], []
        for tensor in header.tensors:
            reason = self._reason(tensor)
            if reason is None:
                candidates.append(tensor)
            else:
                verbatim.append((tensor, reason))
        room = _header_room(header, candidates)
        entries: list[str] = []
        header_hash = ""
        with placed_file(os.path.join(self._folder, name)) as file:
            at = 0
            for tensor in candidates:
                packed = self._pack(tensor, path, len(header.raw), file, room + at)
                if packed is None:
                    verbatim.append((tensor, "size"))
                    continue
                entries.append(entry_text(replace(packed, begin=at, end=at + packed.nbytes)))
                self._weight_map[packed.name] = name
                at += packed.nbytes
            # larger elements first: all lie at multiples of their size
            verbatim.sort(key=lambda pair: (-BITS.get(pair[0].dtype, 0), pair[0].begin))
            with open(path, "rb") as original:
                for tensor, reason in verbatim:
                    self._copy(tensor, reason, original, len(header.raw), file, room + at)
                    entries.append(entry_text(replace(tensor, begin=at, end=at + tensor.nbytes)))
                    self._weight_map[tensor.name] = name
                    at += tensor.nbytes
            raw = header_bytes(entries, header.metadata, size=room)
            header_hash = hashlib.sha256(raw).hexdigest()
            file.put(0, raw)
        self.shards.append(
            {
                "file": name,
                "nbytes": room + at,
                "header_sha256": header_hash,
                "original_nbytes": len(header.raw) + header.data_nbytes,
                "original_header": blob(header.raw),
            }
        )

    def _reason(self, tensor: Tensor) -> str | None:
        """Return why a tensor stays as it is, or None when it may be packed."""
        if tensor.dtype != "BF16":
            return "dtype"
        matrix = as_matrix(tensor.shape)
        if matrix is None:
            return "shape"
        if f"{tensor.name}_packed" in self._names:
            return "name"
        return None if can_pay(self._layout, *matrix) else "size"

    def _pack(self, tensor: Tensor, path: str, data_at: int, file: PlacedFile, at: int) -> Tensor | None:
        rows, cols = as_matrix(tensor.shape) or (0, 0)
        entropy = 0.0

        def look(weights: memoryview) -> None:
            nonlocal entropy
            entropy = _entropy_bits(weights)

        result = self._engine.pack(path, data_at + tensor.begin, self._layout, rows, cols, look)
        if result is None:
            return None
        packed, sha256 = result
        packed_hash = hashlib.sha256()
        self._engine.run([lambda: packed_hash.update(packed), lambda: file.put(at, packed)])
        name = f"{tensor.name}_packed"
        self._enter(tensor, sha256, layout=self._layout, packed=name, packed_sha256=packed_hash.hexdigest())
        self.totals.n_packed += 1
        self.totals.n_weights += rows * cols
        self.totals.packed_nbytes += len(packed)
        self.totals.entropy_bits += entropy * rows * cols
        self._advance(tensor.nbytes)
        return Tensor(name, "U8", (len(packed),), 0, len(packed))

    def _copy(self, tensor: Tensor, reason: str, original: Any, data_at: int, file: PlacedFile, at: int) -> None:
        total = hashlib.sha256()
        original.seek(data_at + tensor.begin)
        left = tensor.nbytes
        while left:
            data = original.read(min(left, CHUNK_NBYTES))
            if not data:  # cut while it was being read: raises
                read_exactly(original.name, data_at + tensor.end - left, memoryview(bytearray(left)))
            total.update(data)
            file.put(at, data)
            at, left = at + len(data), left - len(data)
        self._enter(tensor, total.hexdigest(), layout="verbatim", reason=reason)
        count = self.totals.verbatim.setdefault(reason, [0, 0])
        count[0] += 1
        count[1] += tensor.nbytes
        self._advance(tensor.nbytes)

    def _enter(self, tensor: Tensor, sha256: str, **how: str) -> None:
        self.tensors[tensor.name] = {
            "shard": len(self.shards), "dtype": tensor.dtype, "shape": tensor.shape, "sha256": sha256, **how,
        }  # fmt: skip

    def _advance(self, nbytes: int) -> None:
        self._done += nbytes
        if self._progress is not None:
            self._progress(self._done, self._total)

    def other_files(self) -> None:
        """Write index and configuration, copy the rest."""
        if self._source.index is not None:
            name, raw = self._source.index
            index = json_object(raw, name)
            metadata = index.get("metadata")
            if isinstance(metadata, dict) and "total_size" in metadata:
                verbatim = sum(nbytes for _, nbytes in self.totals.verbatim.values())
                metadata["total_size"] = self.totals.packed_nbytes + verbatim
            index["weight_map"] = dict(sorted(self._weight_map.items()))
            self._rewritten(name, raw, index)
        if self._source.config is not None:
            config = json_object(self._source.config, CONFIG)
            config["quantization_config"] = {"quant_method": "glyd", "version": VERSION, "layout": self._layout}
            self._rewritten(CONFIG, self._source.config, config)
        for name in self._source.others:
            nbytes, sha256 = copy_file(os.path.join(self._source.path, name), self._folder, name)
            self.files[name] = {"nbytes": nbytes, "sha256": sha256}

    def _rewritten(self, name: str, original: bytes, value: dict[str, Any]) -> None:
        data = (json.dumps(value, indent=2) + "\n").encode()
        write_file(self._folder, name, data)
        sha256 = hashlib.sha256(data).hexdigest()
        self.files[name] = {"nbytes": len(data), "sha256": sha256, "original": blob(original)}


def _header_room(header: Header, candidates: list[Tensor]) -> int:
    """Return bytes that the header of the output needs at most: it is written last, with places known."""
    far = header.data_nbytes + ALIGN * len(candidates)
    may_pack = {tensor.name for tensor in candidates}
    entries = []
    for tensor in header.tensors:
        text = entry_text(replace(tensor, begin=far, end=far))
        if tensor.name in may_pack:
            text = max(text, entry_text(Tensor(f"{tensor.name}_packed", "U8", (far,), far, far)), key=len)
        entries.append(text)
    return len(header_bytes(entries, header.metadata, align=ALIGN))


def _entropy_bits(weights: memoryview) -> float:
    """Return 8 + the entropy of the exponents of a sample: what no code of single weights goes below."""
    n = len(weights) // 2
    size = max(1, min(n, max(_SAMPLE_MIN, min(_SAMPLE_MAX, n // _SAMPLE_PART))))
    pieces = 16 if n > 16 * size else 1
    step = n // pieces
    values: Counter[int] = Counter()
    words = weights.cast("H")
    for i in range(pieces):
        values.update(words[i * step : i * step + size // pieces])
    exponents: Counter[int] = Counter()
    for value, count in values.items():
        exponents[value >> 7 & 0xFF] += count
    total = sum(exponents.values())
    return 8 - sum(count / total * math.log2(count / total) for count in exponents.values())

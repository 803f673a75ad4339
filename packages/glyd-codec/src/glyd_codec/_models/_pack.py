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
from functools import partial
from typing import TYPE_CHECKING

from glyd_codec._models._ahead import AHEAD_MIN, HashesAhead, InFiles
from glyd_codec._models._manifest import VERSION, blob, manifest_bytes
from glyd_codec._models._matrix import STEP_NBYTES, Engine, InFile, as_matrix, can_pay, checksum_text
from glyd_codec._models._output import CHUNK_NBYTES, copy_file, placed_file, write_file
from glyd_codec._models._resume import resumable_directory
from glyd_codec._models._safetensors import BITS, Tensor, entry_text, header_bytes, json_object
from glyd_codec._models._source import CONFIG, MANIFEST, locate, read_source
from glyd_codec._native import ffi
from glyd_codec._params import check_threads
from glyd_codec._version import __version__
from glyd_codec._weights import ALIGN, layout_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from glyd_codec._models._output import PlacedFile
    from glyd_codec._models._resume import Workplace
    from glyd_codec._models._safetensors import Header
    from glyd_codec._models._source import Source

_SAMPLE_MIN, _SAMPLE_MAX, _SAMPLE_PART = 1 << 12, 1 << 14, 128


@dataclass(slots=True)
class Totals:
    """What `PackReport` is made of, while it grows."""

    n_packed: int = 0
    n_resumed: int = 0
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
    check_threads(threads)
    path, origin = locate(src, revision, token)
    source = read_source(path)
    with (
        resumable_directory(dst, path, _job(source, layout)) as place,
        InFiles(path) as files,
        Engine(threads) as engine,
    ):
        place.clean(set(source.shards))
        job = _Packing(engine, layout, source, place, files, progress)
        for name, header in source.shards.items():
            job.shard(name, header)
        job.other_files()
        text = manifest_bytes(layout, origin, job.shards, job.files, job.tensors)
        write_file(place.folder, MANIFEST, text)
    return source, job.totals, sum(entry["nbytes"] for entry in job.shards)


def _job(source: Source, layout: str) -> dict[str, Any]:
    """Return what decides the bytes of the output: a run that was stopped is continued by one of the same."""
    shards = {}
    for name, header in source.shards.items():
        status = os.stat(os.path.join(source.path, name))
        shards[name] = [status.st_size, status.st_mtime_ns, hashlib.sha256(header.raw).hexdigest()]
    path = os.path.realpath(source.path)
    return {"writer": __version__, "version": VERSION, "layout": layout, "source": path, "shards": shards}


def _verbatim_order(pair: tuple[Tensor, str]) -> tuple[int, int]:
    """Order of verbatim tensors: larger elements first, so that all lie at multiples of their size."""
    return -BITS.get(pair[0].dtype, 0), pair[0].begin


class _Packing:
    def __init__(
        self,
        engine: Engine,
        layout: str,
        source: Source,
        place: Workplace,
        files: InFiles,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self.shards: list[dict[str, Any]] = []
        self.files: dict[str, dict[str, Any]] = {}
        self.tensors: dict[str, dict[str, Any]] = {}
        self.totals = Totals()
        self._engine = engine
        self._layout = layout
        self._source = source
        self._place = place
        self._folder = place.folder
        self._sources = files
        self._progress = progress
        self._done = 0
        self._total = sum(header.data_nbytes for header in source.shards.values())
        self._names = {tensor.name for header in source.shards.values() for tensor in header.tensors}
        self._weight_map: dict[str, str] = {}
        self._hashes = HashesAhead(engine, files, self._worth_hashing_ahead())
        self._known: dict[str, str] = {}  # hashes of tensors that were not worth packing
        self._split = {name: self._split_tensors(header) for name, header in source.shards.items()}
        largest = max((t.nbytes for candidates, _ in self._split.values() for t in candidates), default=0)
        engine.room("source", largest)  # once: a buffer that grows costs its pages again
        engine.room("out", largest)

    def _ahead(self, tensor: Tensor) -> bool:
        large = self._engine.threads > 1 and tensor.nbytes >= AHEAD_MIN
        return large and tensor.name not in self._place.done

    def _worth_hashing_ahead(self) -> Iterator[tuple[str, int, Tensor]]:
        for shard, (candidates, verbatim) in self._split.items():
            for tensor in (*candidates, *(tensor for tensor, _ in sorted(verbatim, key=_verbatim_order))):
                if self._ahead(tensor):
                    yield shard, len(self._source.shards[shard].raw), tensor

    def _split_tensors(self, header: Header) -> tuple[list[Tensor], list[tuple[Tensor, str]]]:
        """Return the tensors that may be packed, and the others with their reasons."""
        candidates, verbatim = [], []
        for tensor in header.tensors:
            reason = self._reason(tensor)
            if reason is None:
                candidates.append(tensor)
            else:
                verbatim.append((tensor, reason))
        return candidates, verbatim

    def shard(self, name: str, header: Header) -> None:
        """Pack one weight file."""
        candidates, verbatim = self._split[name]
        original = self._sources.get(name)
        room = _header_room(header, candidates)
        entries: list[str] = []
        with placed_file(os.path.join(self._folder, name), keep=True) as file:
            at = 0
            for tensor in candidates:
                packed = self._pack(tensor, original, len(header.raw), file, room + at)
                if packed is None:
                    verbatim = [*verbatim, (tensor, "size")]
                    continue
                entries.append(entry_text(replace(packed, begin=at, end=at + packed.nbytes)))
                self._weight_map[packed.name] = name
                at += packed.nbytes
            for tensor, reason in sorted(verbatim, key=_verbatim_order):
                self._copy(tensor, reason, original, len(header.raw), file, room + at)
                entries.append(entry_text(replace(tensor, begin=at, end=at + tensor.nbytes)))
                self._weight_map[tensor.name] = name
                at += tensor.nbytes
            raw = header_bytes(entries, header.metadata, size=room)
            file.put(0, raw)
            file.end(room + at)
        self._place.flush()
        self._sources.done(name)
        self.shards.append(
            {
                "file": name,
                "nbytes": room + at,
                "header_sha256": hashlib.sha256(raw).hexdigest(),
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

    def _pack(self, tensor: Tensor, original: InFile, data_at: int, file: PlacedFile, at: int) -> Tensor | None:
        rows, cols = as_matrix(tensor.shape) or (0, 0)
        earlier = self._place.done.get(tensor.name)
        if earlier is not None and earlier["entry"]["layout"] == "verbatim":
            return None
        if earlier is not None and self._is_there(earlier, file, at):
            entry, entropy, nbytes = earlier["entry"], earlier["entropy"], earlier["nbytes"]
            self.totals.n_resumed += 1
        else:
            result = self._pack_anew(tensor, original, data_at, file, at)
            if result is None:
                return None
            entry, entropy, nbytes = result
            self._note(tensor, entry, file, at, nbytes, entropy)
        self._enter(tensor, entry)
        self.totals.n_packed += 1
        self.totals.n_weights += rows * cols
        self.totals.packed_nbytes += nbytes
        self.totals.entropy_bits += entropy * rows * cols
        return Tensor(entry["packed"], "U8", (nbytes,), 0, nbytes)

    def _pack_anew(
        self, tensor: Tensor, original: InFile, data_at: int, file: PlacedFile, at: int
    ) -> tuple[dict[str, Any], float, int] | None:
        """Pack a tensor and write the pack; return what the manifest says, the entropy, and the bytes."""
        rows, cols = as_matrix(tensor.shape) or (0, 0)
        ahead = self._hashes.take(tensor) if self._ahead(tensor) else None
        sha256, entropy = "", 0.0

        def look(weights: memoryview) -> None:
            nonlocal entropy
            entropy = _entropy_bits(weights)

        def hash_here(weights: memoryview) -> None:
            nonlocal sha256
            sha256 = hashlib.sha256(weights).hexdigest()

        calls = (hash_here, look) if ahead is None else (look,)
        packed = self._engine.pack(original, data_at + tensor.begin, self._layout, rows, cols, calls)
        if ahead is not None:
            sha256 = ahead.result()
        if packed is None:
            if ahead is not None:
                self._known[tensor.name] = sha256
            return None
        if len(packed) < STEP_NBYTES:
            file.put(at, packed)
        else:
            file.flush()
            steps = range(0, len(packed), STEP_NBYTES)
            self._engine.run(partial(file.write, at + i, packed[i : i + STEP_NBYTES]) for i in steps)
        how = {"layout": self._layout, "packed": f"{tensor.name}_packed", "packed_xxh3": checksum_text(packed)}
        return {"sha256": sha256, **how}, entropy, len(packed)

    def _copy(self, tensor: Tensor, reason: str, original: InFile, data_at: int, file: PlacedFile, at: int) -> None:
        earlier = self._place.done.get(tensor.name)
        if earlier is not None and self._is_there(earlier, file, at):
            entry = earlier["entry"]
            self.totals.n_resumed += 1
        else:
            sha256 = self._known.pop(tensor.name, None)
            if sha256 is None and self._ahead(tensor):
                sha256 = self._hashes.take(tensor).result()
            total = hashlib.sha256()
            step = min(CHUNK_NBYTES, tensor.nbytes)
            piece = memoryview(ffi.buffer(self._engine.room("piece", CHUNK_NBYTES), step))
            for done in range(0, tensor.nbytes, CHUNK_NBYTES):
                part = piece[: tensor.nbytes - done]
                original.read(data_at + tensor.begin + done, part)
                if sha256 is None:
                    total.update(part)
                file.put(at + done, part)
            entry = {"sha256": sha256 or total.hexdigest(), "layout": "verbatim", "reason": reason}
            self._note(tensor, entry, file, at, tensor.nbytes)
        self._enter(tensor, entry)
        count = self.totals.verbatim.setdefault(reason, [0, 0])
        count[0] += 1
        count[1] += tensor.nbytes

    def _is_there(self, earlier: dict[str, Any], file: PlacedFile, at: int) -> bool:
        """Say whether the bytes that an earlier run noted are in their place."""
        if earlier["at"] != at:
            return False
        entry, nbytes = earlier["entry"], earlier["nbytes"]
        written = InFile(file.path)
        try:
            if written.nbytes < at + nbytes:
                return False
            if entry["layout"] == "verbatim":
                return bool(self._engine.sha256(written, at, nbytes) == entry["sha256"])
            view = memoryview(ffi.buffer(self._engine.room("out", nbytes), nbytes))
            written.read(at, view)
            return bool(checksum_text(view) == entry["packed_xxh3"])
        finally:
            written.close()

    def _note(
        self, tensor: Tensor, entry: dict[str, Any], file: PlacedFile, at: int, nbytes: int, entropy: float = 0.0
    ) -> None:
        note = {"tensor": tensor.name, "at": at, "nbytes": nbytes, "entry": entry, "entropy": entropy}
        if self._place.add(note, nbytes):
            file.flush()
            self._place.flush()

    def _enter(self, tensor: Tensor, entry: dict[str, Any]) -> None:
        self.tensors[tensor.name] = {
            "shard": len(self.shards), "dtype": tensor.dtype, "shape": tensor.shape, **entry,
        }  # fmt: skip
        self._done += tensor.nbytes
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
    counts: Counter[int] = Counter()
    for i in range(pieces):
        sample = weights[2 * i * step : 2 * (i * step + size // pieces)]
        # one bit up, and the exponents are the high bytes: numbers of Python shift and slice faster than they count
        shifted = (int.from_bytes(sample, "little") << 1).to_bytes(len(sample) + 1, "little")
        exponents = shifted[1 : len(sample) : 2]
        for exponent in set(exponents):
            counts[exponent] += exponents.count(exponent)
    total = sum(counts.values())
    return 8 - sum(count / total * math.log2(count / total) for count in counts.values())

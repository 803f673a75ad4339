# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Unpacking and verifying packed models: both read and check every byte."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from glyd_codec._errors import CorruptDataError, FormatError, TruncatedError
from glyd_codec._models._manifest import read_manifest
from glyd_codec._models._matrix import Engine, as_matrix, check_sha256, mismatch, read_exactly
from glyd_codec._models._output import CHUNK_NBYTES, PlacedFile, copy_file, new_directory, placed_file, write_file
from glyd_codec._models._source import MANIFEST, read_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from glyd_codec._models._manifest import Manifest, Shard
    from glyd_codec._models._safetensors import Tensor


class _Reading:
    def __init__(self, path: str, engine: Engine, progress: Callable[[int, int], None] | None) -> None:
        self.path = path
        self.manifest: Manifest = read_manifest(path)
        self._engine = engine
        self._progress = progress
        self._done = 0
        self._total = sum(shard.header.data_nbytes for shard in self.manifest.shards)

    def shard(self, shard: Shard, out: PlacedFile | None) -> None:
        """Check a weight file; write the original unless ``out`` is None."""
        path = os.path.join(self.path, shard.file)
        stored = self._stored(shard, path)
        header = shard.header
        if out is not None:
            out.put(0, header.raw)
        for tensor in header.tensors:
            entry = self.manifest.tensors[tensor.name]
            where = f"{shard.file}: tensor {tensor.name!r}"
            at = len(header.raw) + tensor.begin
            if entry["layout"] == "verbatim":
                begin, found = stored.pop(tensor.name, (0, None))
                if found is None or (found.dtype, found.shape) != (tensor.dtype, tensor.shape):
                    raise CorruptDataError(f"{where}: not stored as the manifest says")
                self._verbatim(path, begin, tensor, entry["sha256"], where, out, at)
            else:
                begin, found = stored.pop(entry["packed"], (0, None))
                if found is None or found.dtype != "U8":
                    raise CorruptDataError(f"{where}: its pack {entry['packed']!r} is not stored")
                rows, cols = as_matrix(tensor.shape) or (0, 0)
                weights, sha256 = self._engine.unpack(
                    path, begin, found.nbytes, entry["layout"], rows, cols, entry["packed_sha256"], where
                )
                if sha256 != entry["sha256"]:
                    raise mismatch(f"{where}, unpacked", entry["sha256"], sha256)
                if out is not None:
                    out.put(at, weights)
            self._done += tensor.nbytes
            if self._progress is not None:
                self._progress(self._done, self._total)
        for name in stored:
            raise CorruptDataError(f"{shard.file}: tensor {name!r} is not in {MANIFEST}")

    def _stored(self, shard: Shard, path: str) -> dict[str, tuple[int, Tensor]]:
        """Return where each tensor of a written file is, after a look at its size and header."""
        size = os.stat(path).st_size
        if size != shard.nbytes:
            kind = TruncatedError if size < shard.nbytes else CorruptDataError
            raise kind(f"{shard.file}: {size} bytes, not {shard.nbytes}", expected=shard.nbytes, found=size)
        header = read_header(self.path, shard.file)
        check_sha256(header.raw, shard.header_sha256, f"{shard.file}: header")
        return {tensor.name: (len(header.raw) + tensor.begin, tensor) for tensor in header.tensors}

    def _verbatim(
        self, path: str, begin: int, tensor: Tensor, sha256: str, where: str, out: PlacedFile | None, at: int
    ) -> None:
        total = hashlib.sha256()
        for done in range(0, tensor.nbytes, CHUNK_NBYTES):
            data = self._read(path, begin + done, min(CHUNK_NBYTES, tensor.nbytes - done))
            total.update(data)
            if out is not None:
                out.put(at + done, data)
        if total.hexdigest() != sha256:
            raise mismatch(where, sha256, total.hexdigest())

    def _read(self, path: str, at: int, nbytes: int) -> bytes:
        if self._open is None or self._open.name != path:
            self.close()
            self._open = open(path, "rb")  # noqa: SIM115 - one at a time, closed by close()
        self._open.seek(at)
        data: bytes = self._open.read(nbytes)
        if len(data) != nbytes:  # cut since we looked: raises
            read_exactly(path, at, memoryview(bytearray(nbytes)))
        return data

    _open: Any = None

    def close(self) -> None:
        """Close the file that is open."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def files(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give the entries of all other files, each found to be there."""
        for name, entry in self.manifest.files.items():
            path = os.path.join(self.path, name)
            if not os.path.isfile(path):
                raise FormatError(f"{name}: in {MANIFEST} and not there")
            yield name, entry

    def check_file(self, name: str, entry: dict[str, Any]) -> None:
        """Compare a file with its entry."""
        total, nbytes = hashlib.sha256(), 0
        with open(os.path.join(self.path, name), "rb") as file:
            while data := file.read(CHUNK_NBYTES):
                total.update(data)
                nbytes += len(data)
        _check_copy(name, entry, nbytes, total.hexdigest())


def _check_copy(name: str, entry: dict[str, Any], nbytes: int, sha256: str) -> None:
    if nbytes != entry["nbytes"]:
        kind = TruncatedError if nbytes < entry["nbytes"] else CorruptDataError
        raise kind(f"{name}: {nbytes} bytes, not {entry['nbytes']}", expected=entry["nbytes"], found=nbytes)
    if sha256 != entry["sha256"]:
        raise mismatch(name, entry["sha256"], sha256)


def unpack_directory(
    src: str, dst: str | os.PathLike[str], *, threads: int, progress: Callable[[int, int], None] | None
) -> Manifest:
    """Write the original of a packed model."""
    with Engine(threads) as engine:
        reading = _Reading(src, engine, progress)
        try:
            with new_directory(dst, src) as folder:
                for shard in reading.manifest.shards:
                    with placed_file(os.path.join(folder, shard.file)) as out:
                        reading.shard(shard, out)
                for name, entry in reading.files():
                    if entry["original"] is not None:
                        reading.check_file(name, entry)
                        write_file(folder, name, entry["original"])
                    else:
                        _check_copy(name, entry, *copy_file(os.path.join(src, name), folder, name))
        finally:
            reading.close()
        return reading.manifest


def verify_directory(src: str, *, threads: int, progress: Callable[[int, int], None] | None) -> Manifest:
    """Read all of a packed model, unpack every tensor in memory, compare every hash."""
    with Engine(threads) as engine:
        reading = _Reading(src, engine, progress)
        try:
            for shard in reading.manifest.shards:
                reading.shard(shard, None)
            for name, entry in reading.files():
                reading.check_file(name, entry)
        finally:
            reading.close()
        return reading.manifest

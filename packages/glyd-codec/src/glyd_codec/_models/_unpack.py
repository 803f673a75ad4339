# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Unpacking and verifying packed models: both read and check every byte."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import wait
from functools import partial
from typing import TYPE_CHECKING

from glyd_codec._errors import CorruptDataError, FormatError, TruncatedError
from glyd_codec._models._manifest import read_manifest
from glyd_codec._models._matrix import STEP_NBYTES, Engine, InFile, as_matrix, check_sha256, mismatch
from glyd_codec._models._output import CHUNK_NBYTES, PlacedFile, copy_file, new_directory, placed_file, write_file
from glyd_codec._models._source import MANIFEST, read_header
from glyd_codec._native import ffi

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
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
        self._pending: list[Future[None]] = []
        self._pending_nbytes = 0

    def shard(self, shard: Shard, out: PlacedFile | None) -> None:
        """Check a weight file; write the original unless ``out`` is None."""
        file = InFile(os.path.join(self.path, shard.file))
        try:
            self._tensors(shard, file, out)
            self._finish()
        except BaseException:
            self._settle()
            raise
        finally:
            file.close()

    def _tensors(self, shard: Shard, file: InFile, out: PlacedFile | None) -> None:
        stored = self._stored(shard, file)
        header = shard.header
        rooms = ["source", "other"] if self._engine.threads > 1 else ["source"]
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
                self._verbatim(file, begin, tensor, entry["sha256"], where, out, at)
                self._advance(tensor.nbytes)
                continue
            begin, found = stored.pop(entry["packed"], (0, None))
            if found is None or found.dtype != "U8":
                raise CorruptDataError(f"{where}: its pack {entry['packed']!r} is not stored")
            rows, cols = as_matrix(tensor.shape) or (0, 0)
            try:
                weights = self._engine.unpack(
                    file, begin, found.nbytes, entry["layout"], rows, cols, entry["packed_xxh3"], rooms[0]
                )
            except FormatError as error:
                raise type(error)(f"{where}: {error}", expected=error.expected, found=error.found) from None
            # a tensor is hashed and written while the next one is unpacked
            tasks = [partial(check_sha256, weights, entry["sha256"], f"{where}, unpacked")]
            if out is not None:
                out.flush()
                steps = range(0, len(weights), STEP_NBYTES)
                tasks += [partial(out.write, at + i, weights[i : i + STEP_NBYTES]) for i in steps]
            self._finish()
            self._pending = [self._engine.start(task) for task in tasks]
            self._pending_nbytes = tensor.nbytes
            rooms.reverse()
        for name in stored:
            raise CorruptDataError(f"{shard.file}: tensor {name!r} is not in {MANIFEST}")

    def _finish(self) -> None:
        """Wait for what still happens to the tensor before; raise what went wrong."""
        for future in self._pending:
            future.result()
        self._pending = []
        self._advance(self._pending_nbytes)
        self._pending_nbytes = 0

    def _settle(self) -> None:
        """Let no thread work with what is about to be closed."""
        for future in self._pending:
            future.cancel()
        wait(self._pending)
        self._pending = []

    def _advance(self, nbytes: int) -> None:
        self._done += nbytes
        if self._progress is not None and nbytes:
            self._progress(self._done, self._total)

    def _stored(self, shard: Shard, file: InFile) -> dict[str, tuple[int, Tensor]]:
        """Return where each tensor of a written file is, after a look at its size and header."""
        if file.nbytes != shard.nbytes:
            kind = TruncatedError if file.nbytes < shard.nbytes else CorruptDataError
            text = f"{shard.file}: {file.nbytes} bytes, not {shard.nbytes}"
            raise kind(text, expected=shard.nbytes, found=file.nbytes)
        header = read_header(self.path, shard.file)
        check_sha256(header.raw, shard.header_sha256, f"{shard.file}: header")
        return {tensor.name: (len(header.raw) + tensor.begin, tensor) for tensor in header.tensors}

    def _verbatim(
        self, file: InFile, begin: int, tensor: Tensor, sha256: str, where: str, out: PlacedFile | None, at: int
    ) -> None:
        total = hashlib.sha256()
        step = min(CHUNK_NBYTES, tensor.nbytes)
        piece = memoryview(ffi.buffer(self._engine.room("piece", CHUNK_NBYTES), step))
        for done in range(0, tensor.nbytes, CHUNK_NBYTES):
            part = piece[: tensor.nbytes - done]
            file.read(begin + done, part)
            total.update(part)
            if out is not None:
                out.put(at + done, part)
        if total.hexdigest() != sha256:
            raise mismatch(where, sha256, total.hexdigest())

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
        return reading.manifest


def verify_directory(src: str, *, threads: int, progress: Callable[[int, int], None] | None) -> Manifest:
    """Read all of a packed model, unpack every tensor in memory, compare every hash."""
    with Engine(threads) as engine:
        reading = _Reading(src, engine, progress)
        for shard in reading.manifest.shards:
            reading.shard(shard, None)
        for name, entry in reading.files():
            reading.check_file(name, entry)
        return reading.manifest

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Hashes of tensors that are still to come, so that no thread waits for one."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from glyd_codec._models._matrix import InFile

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Future

    from typing_extensions import Self

    from glyd_codec._models._matrix import Engine
    from glyd_codec._models._safetensors import Tensor

AHEAD_MIN = 1 << 18
"""Bytes of a tensor whose hash is worth a task of its own."""


class InFiles:
    """The weight files of a source, opened when they are needed."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._open: dict[str, InFile] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            file.close()

    def get(self, name: str) -> InFile:
        """Return a file, opened."""
        if name not in self._open:
            self._open[name] = InFile(os.path.join(self._path, name))
        return self._open[name]

    def done(self, name: str) -> None:
        """Close a file, which must be what it was when it was opened.

        Raises
        ------
        FormatError
            Somebody wrote to it.
        """
        file = self._open.pop(name, None)
        if file is not None:
            try:
                file.check_same()
            finally:
                file.close()


class HashesAhead:
    """SHA-256 of tensors, computed while other threads pack the tensors before them.

    It takes longer than packing, and a tensor's hash cannot be divided among threads.
    """

    def __init__(self, engine: Engine, files: InFiles, tensors: Iterable[tuple[str, int, Tensor]]) -> None:
        self._engine = engine
        self._files = files
        self._next = iter(tensors)
        self._started: dict[str, Future[str]] = {}

    def take(self, tensor: Tensor) -> Future[str]:
        """Return the future hash of the next tensor of the list, and start those behind it, one a thread."""
        for shard, data_at, other in self._next:
            task = partial(self._engine.sha256, self._files.get(shard), data_at + other.begin, other.nbytes)
            self._started[other.name] = self._engine.start(task)
            if tensor.name in self._started and len(self._started) > self._engine.threads:
                break
        return self._started.pop(tensor.name)

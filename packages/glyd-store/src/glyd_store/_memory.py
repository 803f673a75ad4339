# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""A store in the memory of this process."""

from __future__ import annotations

import io
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from glyd_store._entry import DECODES_MAX
from glyd_store._errors import LockedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO


class MemoryStaged:
    """A file without a name."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self._files = files
        self.file: BinaryIO = io.BytesIO()

    def publish(self, key: str, *, exclusive: bool = False) -> None:
        """Put the bytes under a key."""
        self.file.seek(0)
        data = self.file.read()
        if exclusive and self._files.setdefault(key, data) is not data:
            raise FileExistsError(key)
        self._files[key] = data

    def discard(self) -> None:
        """Forget the bytes."""
        self.file.close()


class MemoryBackend:
    """A store in memory, for tests and for what need not last.

    Parameters
    ----------
    files
        The keys and bytes to start from; used in place.
    """

    url = "memory:"
    private_index = True
    decodes_max = DECODES_MAX
    read_only = False

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self.files = {} if files is None else files
        self._mutex = threading.Lock()

    def read(self, key: str) -> bytes:
        """Return the bytes of a key."""
        try:
            return self.files[key]
        except KeyError:
            raise FileNotFoundError(2, "no such key", key) from None

    def open(self, key: str) -> BinaryIO:
        """Open the bytes of a key."""
        return io.BytesIO(self.read(key))

    def size(self, key: str) -> int:
        """Return the number of bytes."""
        return len(self.read(key))

    def list(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield keys in order, with sizes."""
        files = self.files.copy()  # another thread may write meanwhile
        yield from sorted((key, len(data)) for key, data in files.items() if key.startswith(prefix))

    def last_entry(self) -> str | None:
        """Return the last key below ``journal/``."""
        return max((key for key in self.files.copy() if key.startswith("journal/")), default=None)

    def stage(self) -> MemoryStaged:
        """Start a file."""
        return MemoryStaged(self.files)

    def delete(self, keys: Iterable[str]) -> None:
        """Forget keys."""
        for key in keys:
            self.files.pop(key, None)

    def make_root(self) -> None:
        """Do nothing: a dict is ready."""

    def prepare(self) -> None:
        """Do nothing: there are no folders."""

    @contextmanager
    def lock(self, timeout_s: float, *, force: bool = False) -> Iterator[None]:
        """Be the only writer of this object."""
        del force
        end = time.monotonic() + timeout_s
        while not self._mutex.acquire(timeout=max(end - time.monotonic(), 0)):
            if time.monotonic() >= end:
                raise LockedError("the store in memory is being written by another thread")
        try:
            yield
        finally:
            self._mutex.release()

    def index_path(self, store_id: str | None) -> str | None:
        """Return None: the index is in memory as well."""
        del store_id
        return None

    def free_reserve(self) -> bool:
        """Do nothing: memory has no reserve."""
        return False

    def fill_reserve(self) -> None:
        """Do nothing."""

    def clear_unfinished(self) -> None:
        """Do nothing: what has no name is gone with its owner."""

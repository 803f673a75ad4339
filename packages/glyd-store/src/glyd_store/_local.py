# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""A store in a folder."""

from __future__ import annotations

import errno
import os
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING

from glyd_store._disk import Disk
from glyd_store._entry import DECODES_MAX
from glyd_store._errors import StoreError
from glyd_store._journal import STORE_KEY
from glyd_store._lock import locked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

INDEX = "index.sqlite"
RESERVE_NBYTES = 256 << 10
N_RESERVE = 4
_ATTEMPTS = 10
_ZEROS = bytes(RESERVE_NBYTES)
_SPARE_NBYTES = 64 << 20  # the reserve is filled only where this much more is free


class LocalStaged:
    """A file under ``tmp/``, until it gets its name."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._name: str | None = f"tmp/{os.urandom(8).hex()}"
        self.file: BinaryIO = disk.create(self._name)

    def publish(self, key: str, *, exclusive: bool = False) -> None:
        """Sync the file, give it its name, sync the folder."""
        if self._name is None:
            raise ValueError("the file has its name already")
        self._disk.sync(self.file)
        folder, _, _ = key.rpartition("/")
        _make_durable_folder(self._disk, folder)
        if exclusive:
            self._disk.link(self._name, key)
        else:
            self._disk.rename(self._name, key)
        self._disk.sync_folder(folder)
        if exclusive:
            self._disk.remove(self._name)
        self._name = None
        self.file.close()

    def discard(self) -> None:
        """Close, and remove the file if it has no name."""
        self.file.close()
        if self._name is not None:
            name, self._name = self._name, None
            with suppress(OSError):  # the next writer clears tmp/
                self._disk.remove(name)


def _make_durable_folder(disk: Disk, name: str) -> None:
    """Create a folder so that a power cut does not take it away again."""
    above, _, own = name.rpartition("/")
    if not name or own in disk.names(above):
        return
    _make_durable_folder(disk, above)
    disk.make_folder(name)
    disk.sync_folder(above)


class LocalBackend:
    """A store in a folder.

    Parameters
    ----------
    path
        The folder, which need not exist.
    disk
        What to reach it through.
    """

    private_index = False
    decodes_max = DECODES_MAX

    def __init__(self, path: str | os.PathLike[str], disk: Disk | None = None) -> None:
        self.url = os.fspath(path)
        self.root = os.path.abspath(self.url)
        self.disk = disk or Disk(self.root)

    @property
    def read_only(self) -> bool:
        """Whether the system lets nobody write here."""
        return os.path.isdir(self.root) and not os.access(self.root, os.W_OK)

    def open(self, key: str) -> BinaryIO:
        """Open for reading."""
        return self.disk.open(key)

    def read(self, key: str) -> bytes:
        """Return all bytes of a small file."""
        with self.disk.open(key) as file:
            return file.read()

    def size(self, key: str) -> int:
        """Return the number of bytes."""
        return self.disk.size(key)

    def list(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield keys of two levels of folders below a prefix."""
        top = prefix.rstrip("/")
        for name in self.disk.names(top):
            below = self.disk.names_or_none(f"{top}/{name}")
            for key in [f"{top}/{name}"] if below is None else [f"{top}/{name}/{leaf}" for leaf in below]:
                try:
                    size = self.disk.size(key)
                except FileNotFoundError:  # a writer has removed the file, or the folder, since
                    continue
                yield key, size

    def last_entry(self) -> str | None:
        """Return the last key below ``journal/``."""
        for attempt in range(_ATTEMPTS):
            for folder in reversed(self.disk.names("journal")):
                below = self.disk.names_or_none(f"journal/{folder}")
                if below is None and attempt < _ATTEMPTS - 1:
                    break  # if it was a folder, a writer has emptied it since, and there is a later one
                for name in reversed(below or []):
                    if name.endswith(".entry"):
                        return f"journal/{folder}/{name}"
            else:
                return None
        return None

    def stage(self) -> LocalStaged:
        """Start a file under ``tmp/``."""
        return LocalStaged(self.disk)

    def delete(self, keys: Iterable[str]) -> None:
        """Remove files in this order, each folder synced before the next one is touched."""
        dirty: str | None = None
        for key in keys:
            folder, _, _ = key.rpartition("/")
            if dirty is not None and folder != dirty:
                self._settle(dirty)
            self.disk.remove(key)
            dirty = folder
        if dirty is not None:
            self._settle(dirty)

    def _settle(self, folder: str) -> None:
        with suppress(FileNotFoundError):
            self.disk.sync_folder(folder)
        self.disk.remove_folder(folder)

    def make_root(self) -> None:
        """Create the folder; refuse one with other things in it."""
        names = set(self.disk.names(""))
        if not names & {"journal", STORE_KEY, INDEX}:
            others = names - {"streams", "tmp", "reserve", "lock", "lost+found"}
            if others:
                raise StoreError(f"{self.url} is no store, and not empty ({min(others)!r} is there)")
            self.disk.make_folder("")

    def prepare(self) -> None:
        """Create the folders."""
        for name in ("journal", "streams", "tmp", "reserve"):
            _make_durable_folder(self.disk, name)

    def lock(self, timeout_s: float, *, force: bool = False) -> AbstractContextManager[None]:
        """Hold the file ``lock``."""
        return locked(os.path.join(self.root, "lock"), self.url, timeout_s, force=force)

    def index_path(self, store_id: str | None) -> str | None:
        """Return the path beside the streams."""
        del store_id
        return os.path.join(self.root, INDEX)

    def free_reserve(self) -> bool:
        """Remove the reserve if the disk is full or nearly so."""
        n_bytes, n_files = self.disk.free()
        if n_bytes >= N_RESERVE * RESERVE_NBYTES and n_files >= 2 * N_RESERVE:
            return False
        names = self.disk.names("reserve")
        self.disk.sync_folder("reserve")
        for name in names:
            self.disk.remove(f"reserve/{name}")
        return bool(names)

    def fill_reserve(self) -> None:
        """Write the reserve where there is room by far."""
        have = {name for name in self.disk.names("reserve") if self.disk.size(f"reserve/{name}") == RESERVE_NBYTES}
        missing = [name for name in map(str, range(N_RESERVE)) if name not in have]
        if not missing:
            return
        n_bytes, n_files = self.disk.free()
        total = len(missing) * RESERVE_NBYTES
        if n_bytes < total + min(_SPARE_NBYTES, n_bytes // 2) or n_files < 2 * N_RESERVE:
            return
        for name in missing:
            try:
                self.disk.remove(f"reserve/{name}")
                with self.disk.create(f"reserve/{name}") as file:
                    file.write(_ZEROS)
                    self.disk.sync(file)
            except OSError as error:
                if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
                    raise
                return

    def clear_unfinished(self) -> None:
        """Empty ``tmp/``."""
        for name in self.disk.names("tmp"):
            self.disk.remove(f"tmp/{name}")

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""A reader in whose k-th operation a writer does something: who counts, and backends that are counted.

There are no threads and no clocks here: before operation k of the reader the writer runs, to its
end, in the same thread. Operations are calls of the backend and of the index, and looks at the file
of the index; between two of them a reader sees nothing of what others do.
"""

from contextlib import contextmanager

from glyd_store import LockedError, _index
from glyd_store._core import Core
from glyd_store._disk import Disk
from glyd_store._index import Index
from glyd_store._local import LocalBackend
from glyd_store._memory import MemoryBackend


class Racer:
    """Runs a step before the operations whose numbers are asked for."""

    def __init__(self):
        self.n_ops = 0
        self.at = frozenset()
        self.step = None
        self.is_on = False
        self.n_locked = 0

    def tick(self):
        if not self.is_on:
            return
        number = self.n_ops
        self.n_ops += 1
        if number in self.at:
            self.is_on = False
            try:
                self.step()
            except LockedError:
                self.n_locked += 1  # the reader is putting the index in order, and the writer says so
            finally:
                self.is_on = True

    @contextmanager
    def racing(self, at, step):
        self.n_ops, self.at, self.step, self.is_on = 0, frozenset(at), step, True
        try:
            yield
        finally:
            self.is_on = False

    def wrap(self, patch, where, name, *, is_index=False):
        real = getattr(where, name)
        real = getattr(real, "__func__", real)

        def hooked(this, *args, **kw):
            # within a transaction nobody else gets in
            if not (is_index and this.db.in_transaction):
                self.tick()
            return real(this, *args, **kw)

        raw = vars(where).get(name, real)
        patch.setattr(where, name, classmethod(hooked) if isinstance(raw, classmethod) else hooked)

    def wrap_index(self, patch):
        for name in ("rows", "row", "to_memory", "snapshot", "end_snapshot", "close"):
            self.wrap(patch, Index, name, is_index=True)
        for name in ("open", "create"):
            self.wrap(patch, Index, name)
        connect = _index.connect

        def connected(target):
            db = connect(target)
            self.tick()  # the file is open, its log is not
            return db

        patch.setattr(_index, "connect", connected)
        self.wrap(patch, Core, "_stat_index")
        self.wrap(patch, Core, "refresh")


class RaceDisk(Disk):
    """What a folder offers, with the racer before each call; nothing is synced, for speed."""

    def __init__(self, root, racer):
        super().__init__(root)
        self._racer = racer

    def sync(self, file):
        pass

    def sync_folder(self, name):
        pass

    def open(self, name):
        self._racer.tick()
        return super().open(name)

    def names(self, name):
        self._racer.tick()
        return super().names(name)

    def names_or_none(self, name):
        self._racer.tick()
        return super().names_or_none(name)

    def size(self, name):
        self._racer.tick()
        return super().size(name)


class RaceMemory(MemoryBackend):
    """A store in memory, with the racer before each call."""

    def __init__(self, files, racer):
        super().__init__(files)
        self._racer = racer

    def read(self, key):
        self._racer.tick()
        return super().read(key)

    def list(self, prefix):
        self._racer.tick()
        for found in super().list(prefix):
            yield found
            self._racer.tick()

    def last_entry(self):
        self._racer.tick()
        return super().last_entry()


class RaceLocal(LocalBackend):
    """A store in a folder, through `RaceDisk`."""

    def __init__(self, path, racer, *, read_only=False):
        super().__init__(path, RaceDisk(str(path), racer))
        self._racer, self._read_only = racer, read_only

    @property
    def read_only(self):
        return self._read_only

    def lock(self, timeout_s, *, force=False):
        self._racer.tick()
        return super().lock(timeout_s, force=force)

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""A disk that fails, tears and forgets: it stands in for `glyd_store._disk.Disk`.

Every call is an operation with a number. At the number that is asked for it raises, or
the power goes: from then on every call raises `PowerLoss`, so that no clean-up of the
dying process does anything. What is then found depends on what was synced: bytes of a
file that were not are kept, lost, torn or zeroed, names in a folder that were not are
kept or lost, each for itself.
"""

import copy
import errno
import io
import os
import random
from contextlib import contextmanager

from glyd_store._local import LocalBackend


class PowerLoss(BaseException):
    """The machine is off."""


class Inode:
    def __init__(self):
        self.data = bytearray()
        self.durable = b""


class SimFile(io.RawIOBase):
    def __init__(self, disk, name, inode, writable):
        super().__init__()
        self.disk, self.name, self.inode, self.at, self._writable = disk, name, inode, 0, writable

    def readable(self):
        return True

    def writable(self):
        return self._writable

    def seekable(self):
        return True

    def seek(self, offset, whence=0):
        self.at = offset + (0, self.at, len(self.inode.data))[whence]
        return self.at

    def tell(self):
        return self.at

    def readinto(self, out):
        self.disk.op("read", self.name)
        view = memoryview(out).cast("B")
        piece = self.inode.data[self.at : self.at + len(view)]
        view[: len(piece)] = piece
        self.at += len(piece)
        return len(piece)

    def write(self, data):
        data = bytes(data)
        try:
            self.disk.op("write", self.name)
        except (OSError, PowerLoss):
            cut = len(data) // 2  # a failing write may have written something
            self.inode.data[self.at : self.at + cut] = data[:cut]
            raise
        self.inode.data[self.at : self.at + len(data)] = data
        self.at += len(data)
        return len(data)


class SimDisk:
    """Files by path; folders are the parts of paths.

    Parameters
    ----------
    fail_at
        Number of the operation that fails; None: none does.
    mode
        "eio", "enospc" or "kill".
    """

    root = "/sim"

    def __init__(self):
        self.names_now = {}  # path → inode, as processes see it
        self.names_durable = {}
        self.unsynced = {}  # folder → names changed since its last sync
        self.folders = {""}
        self.n_ops = 0
        self.fail_at = None
        self.mode = "eio"
        self.is_dead = False
        self.log = []
        self.fired = None

    def snapshot(self):
        return copy.deepcopy(self)

    def arm(self, fail_at, mode):
        self.n_ops, self.fail_at, self.mode, self.fired = 0, fail_at, mode, None

    def op(self, what, name):
        if self.is_dead:
            raise PowerLoss
        number = self.n_ops
        self.n_ops += 1
        if self.fail_at is None or number != self.fail_at:
            return
        self.fired = f"{what} {name}"
        if self.mode == "kill":
            self.is_dead = True
            raise PowerLoss
        code = errno.EIO if self.mode == "eio" else errno.ENOSPC
        raise OSError(code, os.strerror(code), name)

    def power_cycle(self, seed):
        """Return to life with what a disk may have kept."""
        rng = random.Random(seed)
        style = rng.choice(("all", "none", "any", "any", "any"))
        keep = {"all": lambda: True, "none": lambda: False, "any": lambda: rng.random() < 0.5}[style]
        found = dict(self.names_durable)
        for changed in self.unsynced.values():
            for path in sorted(changed):
                if keep():
                    if path in self.names_now:
                        found[path] = self.names_now[path]
                    else:
                        found.pop(path, None)
        for inode in {id(inode): inode for inode in found.values()}.values():
            if bytes(inode.data) != inode.durable:
                data, old = bytes(inode.data), inode.durable
                cut = rng.randrange(len(data) + 1)
                inode.data = bytearray(
                    rng.choice((data, old, data[:cut], data[:cut] + bytes(len(data) - cut), bytes(len(data))))
                )
            inode.durable = bytes(inode.data)
        self.names_now, self.names_durable, self.unsynced = dict(found), dict(found), {}
        self.is_dead, self.fail_at = False, None

    def _change(self, path):
        self.unsynced.setdefault(path.rpartition("/")[0], set()).add(path)

    # ---- what Disk offers

    def path(self, name):
        return f"{self.root}/{name}"

    def make_folder(self, name):
        self.op("mkdir", name)
        while name:
            self.folders.add(name)
            name = name.rpartition("/")[0]

    def create(self, name):
        self.op("create", name)
        if name in self.names_now:
            raise FileExistsError(errno.EEXIST, "exists", name)
        inode = self.names_now[name] = Inode()
        self._change(name)
        return SimFile(self, name, inode, True)

    def open(self, name):
        self.op("open", name)
        return io.BufferedReader(SimFile(self, name, self._find(name), False))

    def _find(self, name):
        if name not in self.names_now:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        return self.names_now[name]

    def sync(self, file):
        self.op("sync", file.name)
        file.inode.durable = bytes(file.inode.data)

    def sync_folder(self, name):
        self.op("sync folder", name)
        for path in self.unsynced.pop(name, ()):
            if path in self.names_now:
                self.names_durable[path] = self.names_now[path]
            else:
                self.names_durable.pop(path, None)

    def rename(self, old, new):
        self.op("rename", new)
        self.names_now[new] = self.names_now.pop(old)
        self._change(old)
        self._change(new)

    def link(self, old, new):
        self.op("link", new)
        if new in self.names_now:
            raise FileExistsError(errno.EEXIST, "exists", new)
        self.names_now[new] = self._find(old)
        self._change(new)

    def remove(self, name):
        self.op("remove", name)
        if self.names_now.pop(name, None) is not None:
            self._change(name)

    def remove_folder(self, name):
        self.op("rmdir", name)
        if not any(path.startswith(name + "/") for path in self.names_now):
            self.folders.discard(name)

    def names(self, name):
        return self.names_or_none(name) or []

    def names_or_none(self, name):
        self.op("list", name)
        start = name + "/" if name else ""
        inside = {path[len(start) :].partition("/")[0] for path in self.names_now if path.startswith(start)}
        inside |= {
            path[len(start) :] for path in self.folders if path.startswith(start) and "/" not in path[len(start) :]
        } - {""}
        if not inside and name not in self.folders:
            return None
        return sorted(inside)

    def size(self, name):
        self.op("stat", name)
        return len(self._find(name).data)

    def free(self):
        return 1 << 30, 1 << 20


class SimBackend(LocalBackend):
    """A store on a `SimDisk`; its index is a real file, whose commits are operations as well."""

    def __init__(self, disk, index_path):
        super().__init__("/sim", disk)
        self._index = index_path

    @property
    def read_only(self):
        return False

    @contextmanager
    def lock(self, timeout_s, *, force=False):
        yield

    def index_path(self, store_id):
        return self._index

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""A disk that fills: the put that fails leaves nothing, and what is deleted makes room without needing any."""

import errno
import os
import random

import pytest

from glyd_store import Store
from glyd_store._disk import Disk
from glyd_store._local import N_RESERVE, RESERVE_NBYTES, LocalBackend

ROOM = 6 << 20
N_FILES = 60


class SmallDisk(Disk):
    """A disk with so many bytes and files, of which the index has none: it is a file of SQLite's own."""

    def __init__(self, root, room=ROOM, n_files=N_FILES):
        super().__init__(root)
        self.room, self.n_files = room, n_files

    def _used(self):
        sizes = [
            os.path.getsize(os.path.join(folder, name))
            for folder, _, names in os.walk(self.root)
            for name in names
            if not name.startswith("index.sqlite")
        ]
        return sum(sizes), len(sizes)

    def free(self):
        nbytes, n = self._used()
        return max(self.room - nbytes, 0), max(self.n_files - n, 0)

    def create(self, name):
        if self.free()[1] < 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
        return SmallFile(super().create(name), self)


class SmallFile:
    """A file whose writes take up room."""

    def __init__(self, file, disk):
        self._file, self._disk = file, disk

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def write(self, data):
        left, _ = self._disk.free()
        if left < len(data):
            self._file.write(memoryview(data)[:left])  # as a disk does that fills
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._file.name)
        return self._file.write(data)


def files_of(root):
    return {os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names} - {
        os.path.join(root, name) for name in ("index.sqlite-wal", "index.sqlite-shm")
    }


@pytest.mark.parametrize("what", ["bytes", "files"])
def test_deleting_works_on_a_full_disk(what, tmp_path):
    root = tmp_path / "s"
    disk = SmallDisk(str(root), n_files=24 if what == "files" else N_FILES)
    contents = {}
    size = 700_000 if what == "bytes" else 300_000
    with Store(LocalBackend(root, disk), level="turbo", threads=1) as store:
        with pytest.raises(OSError) as full:
            for i in range(100):
                before = files_of(root) if i else set()
                data = random.Random(i).randbytes(size)
                contents[store.put(f"r{i}", data).id] = data
        assert full.value.errno == errno.ENOSPC
        assert len(contents) > 3
        assert files_of(root) == before  # nothing of it is left
        assert {i.id for i in store.list()} == set(contents)
        assert store.check(read_data=1).ok
        assert [store.get(i) for i in contents] == list(contents.values())
        # nothing is left at all: the reserve is for this
        filler = disk.free()[0]
        disk.room -= filler
        first = min(contents)
        store.delete([first])
        assert store.compact(dry_run=True).n_streams == 1
        report = store.compact()
        assert (report.n_objects, report.n_streams) == (1, 1)
        del contents[first]
        disk.room += filler
        again = random.Random(1000).randbytes(size - 1000)
        contents[store.put("again", again).id] = again
    with Store(LocalBackend(root, disk), level="turbo", threads=1) as store:
        assert {i.id: store.get(i) for i in store.list()} == contents
        assert store.check(read_data=1).ok
        assert len(os.listdir(root / "reserve")) <= N_RESERVE
        assert all(os.path.getsize(root / "reserve" / n) <= RESERVE_NBYTES for n in os.listdir(root / "reserve"))

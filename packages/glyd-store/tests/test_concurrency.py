# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""One writer, many readers: locks, their owners, and readers beside a writer."""

import random
import subprocess
import sys
import threading

import pytest

from glyd_store import LockedError, ObjectNotFoundError, Store, _packing, _put


def test_other_process_holds_the_lock(tmp_path):
    code = (
        "import sys, glyd_store\n"
        "s = glyd_store.Store(sys.argv[1])\n"
        "s.put('a', b'1')\n"
        "with s.writing():\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "s")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        store = Store(tmp_path / "s", lock_timeout_s=0.2)
        with pytest.raises(LockedError, match=f"process {other.pid}"):
            store.put("b", b"2")
        assert store.get("a") == b"1"  # readers do not wait
        other.kill()
    store.put("b", b"2")  # the lock died with its process
    assert store.get("b") == b"2"


def test_lock_text_of_another_machine(tmp_path):
    store = Store(tmp_path / "s", lock_timeout_s=0.1)
    store.put("a", b"1")
    lock = tmp_path / "s" / "lock"
    lock.write_text('{"host": "elsewhere", "boot": "b", "pid": 1, "start": "1"}\n')
    with pytest.raises(LockedError, match=r"process 1 on elsewhere.*--break-lock"):
        store.put("a", b"2")
    Store(tmp_path / "s", break_lock=True).put("a", b"2")
    assert lock.read_bytes() == b""
    for garbage in (b"", b"\0" * 100, b'{"host"', b"[1]"):
        lock.write_bytes(garbage)
        store.put("a", b"3")
    lock.unlink()
    store.put("a", b"4")


def test_owners():
    from glyd_store._owner import current_owner, is_dead, parse_owner

    me = current_owner()
    assert parse_owner(me.to_json()) == me
    assert not is_dead(me)
    assert is_dead(me._replace(pid=999_999_999))
    assert is_dead(me._replace(boot="another"))
    assert is_dead(me._replace(start="1")) or not me.start
    assert not is_dead(me._replace(host="elsewhere", pid=999_999_999))


def test_readers_beside_a_writer(tmp_path):
    """Readers in other processes see whole states while one writes, packs, deletes and compacts."""
    code = (
        "import sys, time, glyd_store\n"
        "s = glyd_store.Store(sys.argv[1], threads=1)\n"
        "n = 0\n"
        "end = time.monotonic() + 6\n"
        "while time.monotonic() < end or n <= 50:\n"  # slow machines take longer
        "    for i in list(s.list())[-30:]:\n"
        "        try:\n"
        "            assert s.get(i) == i.name.encode() * 50, i\n"
        "            n += 1\n"
        "        except glyd_store.ObjectNotFoundError:\n"
        "            pass\n"
        "    r = s.check()\n"
        "    assert r.ok, r.problems\n"
        "print(n)\n"
    )
    store = Store(tmp_path / "s", threads=1, level="turbo")
    store.put("first", b"first" * 50)
    command = [sys.executable, "-c", code, str(tmp_path / "s")]
    readers = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    i = 0
    while any(reader.poll() is None for reader in readers):
        i += 1
        store.put(f"n{i}", f"n{i}".encode() * 50)
        if i % 20 == 0:
            store.delete(list(store.list())[:10])
            store.compact()
    for reader in readers:
        out, err = reader.communicate()
        assert reader.returncode == 0, err.decode()
        assert int(out) > 50


@pytest.mark.parametrize("where", ["folder", "memory"])
def test_threads_share_a_store(where, tmp_path, monkeypatch):
    """One thread writes, removes, packs and rebuilds through the object by which others read and check."""
    monkeypatch.setattr(_put, "SMALL_NBYTES", 2000)
    monkeypatch.setattr(_packing, "N_WAITING", 12)
    store = Store(tmp_path / "s" if where == "folder" else "memory:", threads=1, level="turbo")
    body = random.Random(1).randbytes(9000)
    store.put("v", body)
    stop, errors, n_read = threading.Event(), [], [0, 0]

    def read(k):
        try:
            while not (stop.is_set() and n_read[k]):
                for info in list(store.list()):
                    try:
                        data = store.get(info)
                    except ObjectNotFoundError:
                        continue
                    assert info.name == "v" or data == info.name.encode() * 50
                    n_read[k] += 1
                report = store.check(read_data=1)
                assert report.ok, report.problems
                store.stats()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=read, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for i in range(45):
        store.put(f"s{i}", f"s{i}".encode() * 50)
        if i % 15 == 14:
            store.delete([info for info in store.list() if info.name != "v"][:9])
            store.compact()
            store.put("v", body + b"%d" % i)
            store.rebase("v")
            assert store.rebuild() == []
    stop.set()
    for thread in threads:
        thread.join()
    assert not errors, errors
    assert min(n_read) > 0


def test_listing_passes_over_what_a_writer_removes(tmp_path):
    """A folder or file that goes between being named and being looked at is not in the list."""
    from glyd_store._disk import Disk
    from glyd_store._local import LocalBackend

    class Vanishing(Disk):
        """Removes something right after it was named."""

        victim = ""

        def names(self, name):
            found = super().names(name)
            if self.victim in found:
                folder = tmp_path / name / self.victim
                for file in folder.iterdir():
                    file.unlink()
                folder.rmdir()
            return found

        def names_or_none(self, name):
            found = super().names_or_none(name)
            if found and self.victim in found:
                (tmp_path / name / self.victim).unlink()
            return found

    for folder in ("1a", "2b"):
        (tmp_path / "streams" / folder).mkdir(parents=True)
        for leaf in ("x", "y"):
            (tmp_path / "streams" / folder / leaf).write_bytes(b"12")
    (tmp_path / "streams" / "odd").write_bytes(b"1")
    disk = Vanishing(str(tmp_path))
    backend = LocalBackend(tmp_path, disk)
    everything = [
        ("streams/1a/x", 2),
        ("streams/1a/y", 2),
        ("streams/2b/x", 2),
        ("streams/2b/y", 2),
        ("streams/odd", 1),
    ]
    assert list(backend.list("streams/")) == everything
    disk.victim = "y"
    assert list(backend.list("streams/")) == [i for i in everything if not i[0].endswith("/y")]
    disk.victim = "1a"
    assert list(backend.list("streams/")) == [("streams/2b/x", 2), ("streams/odd", 1)]

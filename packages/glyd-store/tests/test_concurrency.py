# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""One writer, many readers: locks, their owners, and readers beside a writer."""

import subprocess
import sys

import pytest

from glyd_store import LockedError, Store


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

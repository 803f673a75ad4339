# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""A flipped bit, in every kind of file: found, named with all that depends on it, and repaired where promised."""

import functools
import os
import random
import shutil
import sqlite3

import pytest

from glyd_store import IndexDamagedError, IntegrityError, ObjectNotFoundError, ReadOnlyError, Store

DUMP = b"".join(b"INSERT INTO t VALUES (%d, 'name %d', %d);\n" % (i, i * 7919 % 10007, i * i) for i in range(12_000))


def noise(n, seed=1):
    return random.Random(seed).randbytes(n)


WANTED = {
    "dump0": DUMP,
    "dump1": DUMP[:1000] + b"one" + DUMP[1000:],
    "dump2": DUMP[:2000] + b"two" + DUMP[2000:],
    "dump3": DUMP[:3000] + b"three" + DUMP[3000:],
    "noise": noise(300_000),
    "small": b"small object " * 30,
    **{f"packed{i}": b"packed %d " % i * 30 for i in range(4)},
}


def files_of(folder):
    return sorted(
        os.path.relpath(os.path.join(top, name), folder) for top, _, names in os.walk(folder) for name in names
    )


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("damage") / "store"
    with Store(folder, level="fast") as store:
        for name, data in WANTED.items():
            if not name.startswith("packed"):
                store.put(name, data)
        list(store.put_many((name, data) for name, data in WANTED.items() if name.startswith("packed")))
        assert store.check(decode=True).ok
    return folder


@pytest.fixture
def copied(original, tmp_path):
    shutil.copytree(original, tmp_path / "store")
    return tmp_path / "store"


def readable(store):
    found = set()
    for name, data in WANTED.items():
        try:
            assert store.get(name) == data  # never wrong bytes
            found.add(name)
        except IntegrityError:
            pass
    return found


def stream_of(store, name):
    from glyd_store._restore import content_of

    return content_of(store._core, store.info(name)).key


def flip(path, at=None):
    data = bytearray(path.read_bytes())
    at = len(data) // 2 if at is None else at
    data[at] ^= 0x10
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("victim", "lost"),
    [
        ("dump0", {"dump0", "dump1", "dump2", "dump3"}),
        ("dump2", {"dump2", "dump3"}),
        ("dump3", {"dump3"}),
        ("noise", {"noise"}),
        ("packed1", {f"packed{i}" for i in range(4)}),
    ],
)
def test_stream(copied, victim, lost):
    store = Store(copied)
    key = stream_of(store, victim)
    flip(copied / key)
    assert store.check().ok  # sizes only
    for report in (store.check(read_data=1), store.check(decode=True), store.check()):
        if report.ok:
            continue  # the last: looks at sizes only
        (problem,) = report.problems
        assert problem.key == key
        assert {name for _, name in problem.objects} == lost
        assert "repair --from" in problem.advice
    left = readable(store)
    assert not left & {victim}
    assert left >= set(WANTED) - lost
    with pytest.raises(IntegrityError, match=key) as caught:
        store.get(victim)
    assert caught.value.key == key
    # new versions do not rely on it; putting it again heals it, and all that depends on it
    info = store.put("other", WANTED["dump3"] + b"later") if victim == "dump0" else None
    assert info is None or info.n_decodes == 1
    if not victim.startswith("packed"):
        store.put(victim, WANTED[victim])
        assert readable(store) == set(WANTED)
        assert store.check(decode=True).ok


def test_repair_from_files(copied, tmp_path):
    store = Store(copied)
    (tmp_path / "files" / "deep").mkdir(parents=True)
    for name, data in WANTED.items():
        (tmp_path / "files" / "deep" / f"{name}.bak").write_bytes(data)
    for victim in ("dump0", "packed0"):
        flip(copied / stream_of(store, victim))
    assert store.repair().remaining.problems
    report = store.repair([tmp_path / "files"])
    assert report.remaining.ok, report.remaining.problems
    assert report.repaired
    assert readable(store) == set(WANTED)
    store.compact()
    assert store.check(decode=True).ok
    assert store.rebuild() == []
    assert readable(store) == set(WANTED)


def test_every_journal_entry(original, tmp_path):
    entries = [name for name in files_of(original) if name.endswith(".entry")]
    assert len(entries) >= 6
    for i, name in enumerate(entries):
        folder = tmp_path / str(i)
        shutil.copytree(original, folder)
        flip(folder / name)
        store = Store(folder)
        left = readable(store)
        assert left >= set(WANTED) - {"small"}
        report = store.check()
        assert [p.key for p in report.problems] == [name]
        assert report.problems[0].objects
        after = store.repair().remaining
        if left == set(WANTED):
            assert after.ok, after.problems
            assert store.rebuild() == []
            assert readable(store) == set(WANTED)
        else:
            assert {n for p in after.problems for _, n in p.objects} == {"small"}
            with pytest.raises(IntegrityError):
                store.get("small")
            store.put("small", WANTED["small"])
            assert readable(store) == set(WANTED)
        store.put("new", b"new")
        assert store.get("new") == b"new"


def test_bits_of_the_index(original, tmp_path):
    """No flipped bit of the index gives wrong bytes; check finds those that change what it says."""
    rng = random.Random(5)
    raw = (original / "index.sqlite").read_bytes()
    n_found = 0
    for i in range(300):
        at = rng.randrange(len(raw))
        if not raw[at]:
            continue  # mostly room in pages
        folder = tmp_path / str(i)
        shutil.copytree(original, folder)
        flip(folder / "index.sqlite", at)
        store = Store(folder)
        try:
            left = readable(store)
        except IndexDamagedError:
            left = set()
        except ObjectNotFoundError:  # a name that changed
            left = set()
        report = store.check()
        assert left == set(WANTED) or not report.ok
        if not report.ok:
            n_found += 1
            assert any("rebuild" in p.what + p.advice for p in report.problems)
        store.rebuild()
        assert readable(store) == set(WANTED)
        assert store.check(read_data=1).ok
        shutil.rmtree(folder)
    assert n_found >= 20


def test_wrong_rows_of_the_index(copied):
    db = sqlite3.connect(copied / "index.sqlite")
    db.execute(
        "UPDATE object SET content = (SELECT content FROM object WHERE name = CAST('noise' AS BLOB)) WHERE id = 1"
    )
    db.commit()
    db.close()
    store = Store(copied)
    report = store.check()
    assert any("differs from the journal" in p.what and (1, "dump0") in p.objects for p in report.problems)
    store.rebuild()
    assert store.get("dump0") == DUMP
    assert store.check().ok


@pytest.mark.parametrize("how", ["empty", "half", "zeros", "gone"])
def test_store_file(copied, how):
    path = copied / "glyd-store.json"
    data = path.read_bytes()
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes({"empty": b"", "half": data[: len(data) // 2], "zeros": bytes(len(data))}[how])
    store = Store(copied)
    assert readable(store) == set(WANTED)
    report = store.check()
    assert [p.key for p in report.problems] == ["glyd-store.json"]
    store.put("new", b"1")
    assert store.repair().remaining.ok
    assert path.read_bytes() == data


def test_files_of_no_meaning(copied):
    """The lock, the reserve and unfinished files may hold anything."""
    (copied / "tmp" / "junk").write_bytes(b"x" * 1000)
    for name in ("lock", *(f"reserve/{i}" for i in range(4))):
        (copied / name).write_bytes(b"\xff" * 100)
    store = Store(copied)
    assert store.check(decode=True).ok
    store.put("new", b"1")
    assert not (copied / "tmp" / "junk").exists()
    store.compact()
    assert (copied / "reserve" / "0").stat().st_size == 256 << 10


def test_unknown_streams_are_kept_while_an_entry_is_damaged(copied):
    store = Store(copied)
    entries = sorted((copied / "journal").glob("*/*.entry"))
    key = stream_of(store, "noise")
    flip(next(e for e in entries if b"" in e.read_bytes() and e.name.startswith("0000000005")))
    store.rebuild()
    assert {p.key for p in store.check().problems} >= {key}
    store.compact()
    assert (copied / key).exists()
    store.put("noise", WANTED["noise"])  # finds the stream again
    assert readable(store) == set(WANTED)


def test_check_can_be_resumed(copied, monkeypatch):
    from glyd_store import _check

    store = Store(copied)
    hashed = []
    real = _check.hash_file

    def broken(core, key, progress=None):
        hashed.append(key)
        if len(hashed) == 3:
            raise KeyboardInterrupt
        return real(core, key, progress)

    monkeypatch.setattr(_check, "hash_file", broken)
    with pytest.raises(KeyboardInterrupt):
        store.check(read_data=1)
    report = store.check(read_data=1, resume=True)
    assert report.ok
    assert report.n_read == report.n_streams
    assert len(hashed) == report.n_streams + 1  # only the one that was interrupted twice
    n = len(hashed)
    store.check(read_data=1)
    assert len(hashed) == n + report.n_streams


def test_a_share_of_the_data(copied):
    report = Store(copied).check(read_data=0.4)
    assert 0 <= report.n_read <= report.n_streams


def test_index_of_an_earlier_moment(original, tmp_path):
    """The log of the index lost: what the index lacks comes from the journal, even after entries were dropped."""
    folder = tmp_path / "s"
    with Store(folder, level="fast") as store:
        store.put("a", DUMP)
        for i in range(5):
            store.put(f"n{i}", b"%d" % i)
    old = (folder / "index.sqlite").read_bytes()
    with Store(folder, level="fast") as store:
        store.put("b", DUMP + b"b")
        store.delete([store.info("n0"), store.info("n1")])
        store.compact()
        store.put("c", b"c")
    (folder / "index.sqlite").write_bytes(old)
    with Store(folder) as store:
        assert sorted(i.name for i in store.list()) == ["a", "b", "c", "n2", "n3", "n4"]
        assert store.get("b") == DUMP + b"b"
        assert store.check(read_data=1).ok


def test_read_only_media(original, tmp_path, monkeypatch):
    """Every reading verb works without a write: from a clean store, and after an unclean stop."""
    folder = tmp_path / "s"
    shutil.copytree(original, folder)
    live = Store(folder)
    live.put("late", b"late")  # stays in the log of the index
    clone = tmp_path / "clone"
    shutil.copytree(folder, clone)
    live.close()
    for where in (folder, clone):
        os.unlink(where / "lock")
        before = {name: (where / name).stat().st_mtime_ns for name in files_of(where)}
        monkeypatch.setattr("glyd_store._local.LocalBackend.read_only", property(lambda self: True))
        store = Store(where)
        assert readable(store) == set(WANTED)
        assert store.get("late") == b"late"
        assert len(list(store.list())) == len(WANTED) + 1
        assert store.check(read_data=1).ok
        assert store.stats().n_objects == len(WANTED) + 1
        for write in (
            functools.partial(store.put, "x", b""),
            functools.partial(store.delete, [1]),
            store.compact,
            store.repair,
            store.rebuild,
        ):
            with pytest.raises(ReadOnlyError, match="read-only"):
                write()
        store.close()
        monkeypatch.undo()
        after = {name: (where / name).stat().st_mtime_ns for name in files_of(where)}
        for found in (before, after):  # SQLite makes them where the system lets it, as it does here
            found.pop("index.sqlite-shm", None)
            found.pop("index.sqlite-wal", None)
        assert before == after

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The store in Python: what is put comes back, in every kind of place, and edges."""

import io
import os
import random
from datetime import datetime, timedelta, timezone

import pytest

import glyd
from glyd_store import ObjectNotFoundError, Policy, ReadOnlyError, Store, StoreError


def noise(n, seed=1):
    return random.Random(seed).randbytes(n)


DUMP = b"".join(b"INSERT INTO t VALUES (%d, 'name %d', %d);\n" % (i, i * 7919 % 10007, i * i) for i in range(30_000))


@pytest.fixture(params=["folder", "memory"])
def store(request, tmp_path):
    where = tmp_path / "store" if request.param == "folder" else "memory:"
    with Store(where, level="fast", threads=1) as found:
        yield found
        report = found.check(read_data=1, decode=True)
        assert report.ok, report.problems


def test_versions_are_stored_as_deltas(store):
    bodies = []
    for i in range(40):
        body = DUMP[: 20_000 * (i % 7)] + b"edit %d\n" % i * 20 + DUMP[20_000 * (i % 7) :]
        bodies.append(body)
        store.put("dump", body)
    infos = list(store.versions("dump"))
    assert [store.get(i) for i in infos] == bodies
    assert [i.n_decodes for i in infos] == [*range(1, 33), *range(2, 10)]  # deltas of some bytes: long chains
    assert max(i.stored_nbytes for i in infos[1:]) < 200
    assert store.get("dump") == bodies[-1]
    assert [i.id for i in infos] == sorted(i.id for i in infos)


def test_like_content_is_found_under_any_name(store):
    store.put("a", noise(2_000_000) + DUMP)
    info = store.put("b", noise(10_000, 9) + DUMP + noise(2_000_000))
    assert info.n_decodes == 2
    assert info.stored_nbytes < 60_000
    assert store.put("c", noise(2_000_000, 5)).n_decodes == 1


def test_sources(store, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(DUMP)
    store.put("path", path)
    with path.open("rb") as file:
        file.seek(100)
        store.put("file", file)
    store.put("buffer", memoryview(DUMP)[::1])
    store.put("array", bytearray(b"abc"))
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as out:
        os.write(writer, b"through a pipe")
        os.close(writer)
        store.put("pipe", out)
    assert store.get("path") == store.get("buffer") == DUMP
    assert store.get("file") == DUMP[100:]
    assert (store.get("array"), store.get("pipe")) == (b"abc", b"through a pipe")
    out = io.BytesIO()
    assert store.get_into("path", out).size == len(DUMP)
    assert out.getvalue() == DUMP
    store.get_into("path", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == DUMP
    with pytest.raises(TypeError):
        store.put("text", "text")
    with pytest.raises(FileNotFoundError):
        store.put("none", tmp_path / "none")


def test_sizes(store):
    sizes = (0, 1, 1000, (256 << 10) - 1, 256 << 10, (256 << 10) + 1, (1 << 20) - 1, 1 << 20, (4 << 20) + 1)
    for size in sizes:
        store.put(f"noise {size}", noise(size, size))
        store.put(f"zeros {size}", bytes(size))
    for size in sizes:
        assert store.get(f"noise {size}") == noise(size, size)
        assert store.get(f"zeros {size}") == bytes(size)


def test_a_source_that_changes_is_refused(store, tmp_path, monkeypatch):
    from glyd_store import _put, _source

    monkeypatch.setattr(_source, "IN_MEMORY_NBYTES", 0)  # as larger ones, which are read twice
    path = tmp_path / "file"
    for body in (DUMP, b"small"):
        path.write_bytes(body)
        scan = _put.Writer.is_stored

        def change(self, sha256, scan=scan, body=body):
            path.write_bytes(body[::-1])
            return scan(self, sha256)

        monkeypatch.setattr(_put.Writer, "is_stored", change)
        with pytest.raises(StoreError, match="changed while it was read"):
            store.put("file", path)
        path.write_bytes(body[:3])
        monkeypatch.setattr(_put.Writer, "is_stored", scan)
    store.put("file", path)
    assert len(list(store.list())) == 1


def test_duplicates_are_free(store):
    first = store.put("a", DUMP)
    before = store.stats().stored_nbytes
    for i in range(5):
        store.put(f"copy {i}", DUMP)
    assert store.stats().stored_nbytes - before < 5 * 600
    store.delete([first])
    store.compact()
    assert store.get("copy 3") == DUMP


NAMES = [
    "..", "../../etc/passwd", "/etc/passwd", "a//b", "a/../b", "a/./b", "con\x00trol\n\x1b[31m", "x" * 4096,
    "/".join("y" * 255 for _ in range(16)), "été", "\udcff\udcfe", "a", "a/b", "a/b/c", "A", "%2E%2E", "-rf", " ", "\\",
    "~", "@7", "12", "end/", "\u202e", "emoji 🙂", "b\r", "index.sqlite", "lock",
]  # fmt: skip


def test_names_are_data(store, tmp_path):
    for i, name in enumerate(NAMES):
        store.put(name, b"%d" % i)
    for i, name in enumerate(NAMES):
        assert store.get(name) == b"%d" % i
        assert [info.name for info in store.versions(name)] == [name]
    out = tmp_path / "deep" / "er" / "out"
    written = {info.name: path for info, path in store.restore(out)}
    assert set(written) == set(NAMES)
    for i, name in enumerate(NAMES):
        path = os.path.realpath(written[name])
        assert path.startswith(os.path.realpath(out) + os.sep), (name, path)
        assert open(path, "rb").read() == b"%d" % i
    found = [os.path.join(folder, name) for folder, _, names in os.walk(tmp_path / "deep") for name in names]
    assert len(found) == len(NAMES)
    assert os.path.basename(written["été"]) == "été"
    for bad in ("", "z" * 70_000, "\ud800"):
        with pytest.raises(glyd.ParameterError):
            store.put(bad, b"")


def test_restore_refuses_what_is_not_empty(store, tmp_path):
    store.put("a", b"1")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_bytes(b"mine")
    with pytest.raises(StoreError, match="not empty"):
        list(store.restore(tmp_path / "full"))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="symbolic link"):
        list(store.restore(tmp_path / "link"))


def test_a_moment(store, tmp_path):
    now = datetime(2026, 1, 1, tzinfo=timezone.utc)
    clock = [0]
    store._core.clock = lambda: int(now.timestamp() * 1e9) + clock[0]
    day = 86_400 * 10**9
    for i in range(4):
        clock[0] = i * day
        store.put("a", b"version %d" % i)
    store.put("b", b"late")
    clock[0] = 10 * day
    store.delete([i for i in store.list() if i.name == "a"][-1:])

    def at(days):
        out = tmp_path / f"out{days}"
        return {i.name: open(p, "rb").read() for i, p in store.restore(out, at=now + timedelta(days=days))}

    assert at(-1) == {}
    assert at(1.5) == {"a": b"version 1"}
    assert at(5) == {"a": b"version 3", "b": b"late"}
    assert at(11) == {"a": b"version 2", "b": b"late"}


def test_clocks_that_jump(store):
    clock = [10**18]
    store._core.clock = lambda: clock[0]
    for i, time in enumerate((10**18, 5, 4 * 10**18, -(10**15), 9 * 10**18, 7)):
        clock[0] = time
        store.put("a", b"%d" % i)
    assert [store.get(i) for i in store.versions("a")] == [b"%d" % i for i in range(6)]
    assert store.get("a") == b"5"
    store.prune(Policy(last=2))
    assert [store.get(i) for i in store.versions("a")] == [b"4", b"5"]


def test_prune(store):
    start = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
    clock = [0]
    store._core.clock = lambda: int(start.timestamp() * 1e9) + clock[0]
    for hour in range(24 * 40):
        if hour % 6 == 0:
            clock[0] = hour * 3600 * 10**9
            store.put("a", b"%d" % hour, tags={"keep": "1"} if hour == 12 else None)
    store.put("b", b"alone")
    n = len(list(store.versions("a")))
    kept, others = store.prune(Policy(last=3, daily=7, weekly=4, tags=(("keep", "1"),)), dry_run=True)
    assert len(list(store.versions("a"))) == n
    kept, others = store.prune(Policy(last=3, daily=7, weekly=4, tags=(("keep", "1"),)))
    assert len(kept) + len(others) == n + 1
    left = list(store.versions("a"))
    assert {i.id for i in kept} == {i.id for i in left} | {store.info("b").id}
    days = {i.time.astimezone().date() for i in left}
    assert 7 + 2 <= len(days) <= 7 + 4 + 1
    assert any(i.tags for i in left)
    assert store.get("a") == b"%d" % (24 * 40 - 6)
    with pytest.raises(glyd.ParameterError):
        Policy()
    with pytest.raises(glyd.ParameterError):
        Policy(last=-1)


def test_delete_is_in_two_phases(store):
    one, two = store.put("a", DUMP), store.put("a", b"2")
    store.delete([two, one.id])
    with pytest.raises(ObjectNotFoundError, match="deleted"):
        store.get(one.id)
    with pytest.raises(ObjectNotFoundError, match="no object is called"):
        store.get("a")
    assert [i.id for i in store.list(deleted=True)] == [one.id, two.id]
    assert store.compact(grace=timedelta(hours=1)).n_objects == 0
    store.undelete([one.id])
    assert store.get("a") == DUMP
    with pytest.raises(ObjectNotFoundError):
        store.undelete([one.id])
    report = store.compact(dry_run=True)
    assert store.compact() == report
    assert report.n_objects == 1
    with pytest.raises(ObjectNotFoundError):
        store.undelete([two.id])
    assert store.put("a", b"3").id > two.id


def test_a_deleted_base_stays_as_long_as_it_is_needed(store):
    first = store.put("a", DUMP)
    second = store.put("a", DUMP[:500_000] + b"edit" + DUMP[500_000:])
    assert second.n_decodes == 2
    store.delete([first])
    assert store.compact().held_nbytes > 0
    assert store.get("a").count(b"edit") == 1
    store.rebase("a")
    assert store.compact().n_streams == 1
    assert store.info("a").n_decodes == 1
    assert store.get("a") == DUMP[:500_000] + b"edit" + DUMP[500_000:]


def test_empty_objects_are_checked_twice(store):
    store.put("a", b"")
    assert store.check(decode=True).ok
    assert store.check(decode=True).ok
    assert store.get("a") == b""


def test_packs(store):
    wanted = {f"dir/{i % 10}/{i}.json": b'{"id": %d, "value": "%d"}\n' % (i, i * i) * (i % 9 * 5) for i in range(3000)}
    ids = [info.id for info in store.put_many(wanted.items())]
    assert len(ids) == len(set(ids)) == 3000
    assert {i.name: store.get(i) for i in list(store.list())[::37]} == dict(list(wanted.items())[::37])
    assert store.stats().stored_nbytes < sum(map(len, wanted.values())) / 3
    with store.open("dir/5/2005.json") as file:
        file.seek(10)
        assert file.read(7) == wanted["dir/5/2005.json"][10:17]
    store.delete(ids[:2900])
    store.compact()
    assert all(store.get(i) == wanted[i.name] for i in store.list())
    assert sum(1 for _ in store.list()) == 100


def test_dead_contents_of_an_entry_that_lives_on(store):
    """An entry stays for an object whose content another entry states, when its own contents are gone."""
    list(store.put_many([("a", b"one"), ("b", b"two")]))
    ids = [info.id for info in store.put_many([("c", b"three"), ("d", b"one")])]
    store.delete(ids[:1])
    store.compact()
    assert store.check(decode=True).ok
    assert store.rebuild() == []
    assert store.check(decode=True).ok
    assert store.get(ids[1]) == b"one"
    assert store.get(store.put("e", b"three")) == b"three"


def test_waiting_objects_become_a_pack(store):
    for i in range(1100):
        store.put(f"n{i}", b"number %d\n" % i * 3)
    assert store.stats().n_objects == 1100
    assert sum(1 for _ in store._core.backend.list("journal/")) < 100
    assert store.get("n17") == b"number 17\n" * 3


def test_ranges(store):
    store.put("a", DUMP)
    store.put("a", b"front" + DUMP)
    for name, body in ((1, DUMP), (2, b"front" + DUMP)):
        with store.open(name) as file:
            for _ in range(20):
                start = random.Random(name).randrange(len(body))
                file.seek(start)
                assert file.read(1000) == body[start : start + 1000]
            assert file.seek(0, 2) == len(body)
            assert file.read() == b""


def test_lookups(store):
    store.put("a/b.txt", b"1", tags={"k": "v"})
    store.put("a/c.bin", b"22")
    store.put("a/b.txt", b"333")
    assert [i.name for i in store.find("a/*.txt")] == ["a/b.txt"]
    assert [(i.name, i.size) for i in store.newest()] == [("a/b.txt", 3), ("a/c.bin", 2)]
    assert store.info(1).tags == {"k": "v"}
    assert [(name, n, size) for name, n, size, _ in store.du()] == [("a/b.txt", 2, 4), ("a/c.bin", 1, 2)]
    stats = store.stats()
    assert (stats.n_objects, stats.n_names, stats.content_nbytes) == (3, 2, 6)
    for missing in ("a", 99):
        with pytest.raises(ObjectNotFoundError):
            store.get(missing)
    with pytest.raises(ObjectNotFoundError):
        store.versions("x")


def test_model_files_are_known_by_their_tensors():
    import json
    import struct

    from glyd_store._resemblance import model_structure

    def model(seed, shape=(10, 20), n=200):
        header = json.dumps({"w": {"dtype": "BF16", "shape": shape, "data_offsets": [0, n]}}).encode()
        return struct.pack("<Q", len(header)) + header + noise(n, seed)

    assert model_structure(model(1)) == model_structure(model(2)) is not None
    assert model_structure(model(1)) != model_structure(model(1, (20, 10)))
    for bad in (
        b"",
        b"12345678{",
        struct.pack("<Q", 1 << 60) + b"{}",
        struct.pack("<Q", 2) + b"{]",
        b"\2" + bytes(7) + b"{}",
    ):
        model_structure(bad)


def test_places(tmp_path):
    with pytest.raises(StoreError, match="no store"):
        Store(tmp_path / "none").get("a")
    assert not (tmp_path / "none").exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="not empty"):
        Store(tmp_path / "other").put("a", b"")
    for bad in ("http://x", ""):
        with pytest.raises(glyd.ParameterError):
            Store(bad)
    with pytest.raises(glyd.ParameterError):
        Store(tmp_path, level="best")
    with pytest.raises(ReadOnlyError):
        Store(tmp_path / "none", read_only=True).put("a", b"")


def test_facade():
    assert glyd.Store is Store

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What is held in memory, for how long, and contents that are not."""

import hashlib
import io

import pytest

import glyd
from glyd_store import IntegrityError, Store, run_command
from glyd_store._cache import BaseCache, Memory

DUMP = b"".join(b"INSERT INTO t VALUES (%d, 'name %d', %d);\n" % (i, i * 7919 % 10007, i * i) for i in range(30_000))


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store", level="fast", threads=1) as found:
        yield found


def versions(n):
    return [DUMP[: 1000 * i] + b"-- %d\n" % i + DUMP[1000 * i :] for i in range(n)]


def test_a_source_in_memory_is_stored_as_it_was_read(store, tmp_path, monkeypatch):
    from glyd_store import _put

    path = tmp_path / "file"
    is_stored = _put.Writer.is_stored

    def change(self, sha256):
        path.write_bytes(b"changed")
        return is_stored(self, sha256)

    monkeypatch.setattr(_put.Writer, "is_stored", change)
    for body in (DUMP, b"small"):
        path.write_bytes(body)
        assert store.get(store.put("file", path)) == body


@pytest.mark.parametrize("most", [0, 1 << 20])
def test_contents_larger_than_memory(store, monkeypatch, most):
    """The same as others, piece by piece: puts, deltas, reads, ranges and a check of everything."""
    from glyd_store import _contents, _put, _source

    for module in (_source, _put, _contents):
        monkeypatch.setattr(module, "IN_MEMORY_NBYTES", most)
    bodies = [DUMP, DUMP[:200_000] + b"-- changed\n" + DUMP[200_000:], DUMP[5000:]]
    infos = [store.put("db", body) for body in bodies]
    assert [info.n_decodes for info in infos][:2] == [1, 2]
    assert infos[2].n_decodes > 1
    for info, body in zip(infos, bodies, strict=True):
        out = io.BytesIO()
        store.get_into(info, out)
        assert store.get(info) == out.getvalue() == body
        with store.open(info) as file:
            file.seek(123_456)
            assert file.read(1000) == body[123_456:124_456]
    assert store.check(read_data=1, decode=True).ok


def test_large_versions_stay_in_memory_from_the_second_on(store, tmp_path, monkeypatch):
    """One is the base of the next, which is not decoded then; a machine with little memory does without."""
    from glyd_store import _cache, _contents, _put, _source

    for module in (_source, _put, _contents):
        monkeypatch.setattr(module, "IN_MEMORY_NBYTES", 1 << 20)
    decoded = []
    decode = _contents._decode_base
    monkeypatch.setattr(_contents, "_decode_base", lambda *args: decoded.append(args[2].size) or decode(*args))
    bodies = [DUMP[: 300_000 * i] + b"-- %d\n" % i + DUMP[300_000 * i :] for i in range(5)]
    assert len(DUMP) > 1 << 20
    paths = [tmp_path / f"{i}.sql" for i in range(6)]
    for path, body in zip(paths, [*bodies, DUMP], strict=True):
        path.write_bytes(body)
    infos = [store.put("db", path) for path in paths[:4]]
    assert decoded == [len(bodies[0])]
    monkeypatch.setattr(_cache, "_memory_nbytes", lambda: 16 << 20)
    infos += [store.put("db", path) for path in paths[4:]]
    assert decoded == [len(bodies[0]), len(bodies[4])]
    assert [info.n_decodes for info in infos] == [1, 2, 3, 4, 5, 6]
    assert [store.get(info) for info in infos] == [*bodies, DUMP]
    assert store.check(read_data=1, decode=True).ok
    decoded.clear()
    monkeypatch.undo()
    for module in (_source, _put, _contents):
        monkeypatch.setattr(module, "IN_MEMORY_NBYTES", 1 << 20)
    monkeypatch.setattr(_contents, "_decode_base", lambda *args: decoded.append(args[2].size) or decode(*args))
    with Store(tmp_path / "other", threads=1) as other:
        other.keep_large(True)
        assert [other.put("db", path).n_decodes for path in paths[:3]] == [1, 2, 3]
    assert run_command([str(tmp_path / "command"), "put", *map(str, paths[:3]), "-q"]) == 0
    with Store(tmp_path / "command", threads=1) as other:
        assert [other.info(str(path)).n_decodes for path in paths[:3]] == [1, 2, 3]
    assert decoded == []


@pytest.mark.parametrize("change", [-700_000, -1, 0, 1, 3_000_000])
def test_a_source_that_changes_while_it_is_loaded(change, tmp_path):
    """What was read is what its hash says, of a file that has become shorter or longer since its size was looked at."""
    from glyd_store._cache import Memory
    from glyd_store._source import open_source

    body = bytes(range(251)) * 9000
    path = tmp_path / "file"
    path.write_bytes(body)
    after = body[:change] if change < 0 else body + b"x" * change
    with open_source(path, "file") as source:
        source.load(Memory())
        path.write_bytes(after)
        source.scan(small=0, threads=1)
        assert (source.size, source.sha256) == (len(after), hashlib.sha256(after).digest())
        assert (source.data is None) == (change != 0)
        assert b"".join(map(bytes, source.pieces())) == after
        assert source.part(len(body) - 100, 50) == after[len(body) - 100 :][:50]


def test_bases_that_were_used_last_are_kept():
    cache = BaseCache(most=100, n_most=2)
    one, two, three, large = (glyd.Base(bytes(n)) for n in (30, 40, 50, 101))
    cache.put(b"1", one)
    cache.put(b"2", two)
    assert cache.get(b"1") is one
    cache.put(b"3", three)
    assert cache.get(b"2") is None
    assert (cache.get(b"1"), cache.get(b"3")) == (one, three)
    cache.put(b"large", large)
    assert cache.get(b"large") is None
    cache.put(b"4", glyd.Base(bytes(90)))
    assert cache.get(b"1") is None
    cache.clear()
    assert cache.get(b"4") is None


def test_memory_is_lent_again_when_no_view_is_left():
    memory = Memory(most=3 << 20)
    one = memory.lend(1 << 20)
    base = glyd.Base(one)
    two = memory.lend(1 << 20)
    one[0], two[0] = 1, 2
    assert one[0] == 1
    del one
    three = memory.lend(1 << 20)
    three[0] = 3
    assert two[0] == 2
    del base
    four = memory.lend(1 << 20)  # the memory of the base
    assert four[0] == 1
    for n in range(1, 9):
        memory.lend(n << 18)
    assert sum(map(len, memory._blocks)) <= (3 << 20) + (3 << 20)


def test_reads_do_not_trust_memory_of_another_store(store, tmp_path):
    """A base in memory stands for what was put; a reader that opens the store sees what its files hold."""
    infos = [store.put("db", body) for body in versions(3)]
    root = max((tmp_path / "store" / "streams").rglob("*.glyd"), key=lambda path: path.stat().st_size)
    data = bytearray(root.read_bytes())
    data[len(data) // 2] ^= 1
    root.write_bytes(data)
    with Store(tmp_path / "store", threads=1) as other, pytest.raises(IntegrityError, match="damaged"):
        other.get(infos[1])
    report = store.check(decode=True)
    assert any(root.name in str(problem.key) for problem in report.problems)


def test_tables_that_stand_alone_are_records(store):
    table = b"".join(b"%d,%d,2026-11-%02d,%d.50\n" % (i, i % 97, i // 1000 % 28 + 1, 3 * i) for i in range(30_000))
    info = store.put("table", table)
    assert info.stored_nbytes < len(glyd.compress(table, "fast")) / 4
    assert store.get(info) == table


def test_level_cold(tmp_path):
    """Cold contents stand alone; deltas, which its model does not take, are written at level ultra."""
    bodies = [DUMP[:300_000] + b"-- %d\n" % i + DUMP[300_000:400_000] for i in range(2)]
    with Store(tmp_path / "store", level="cold", threads=1) as store:
        infos = [store.put("db", body) for body in bodies]
        assert [info.n_decodes for info in infos] == [1, 2]
        assert [store.get(info) for info in infos] == bodies
        assert infos[0].stored_nbytes < len(glyd.compress(bodies[0], "ultra"))
        assert infos[1].stored_nbytes < 500

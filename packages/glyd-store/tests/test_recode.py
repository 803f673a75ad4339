# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Streams that are written again at another level."""

from __future__ import annotations

import random

import pytest

import glyd
from glyd_store import Store, _recode
from glyd_store._put import Writer

LINES = b"".join(b"%d is the square of %d, and %d its cube\n" % (i * i, i, i**3) for i in range(20_000))


@pytest.mark.parametrize("where", ["folder", "memory"])
def test_compact_writes_streams_again_at_a_higher_level(where, tmp_path, monkeypatch):
    monkeypatch.setattr(_recode, "WORTH_NBYTES", 0)
    store = Store(tmp_path / "s" if where == "folder" else "memory:", level="fast")
    versions = [LINES, LINES[:400_000] + b"edit" + LINES[400_000:], random.Random(1).randbytes(300_000)]
    ids = [store.put("v", data).id for data in versions]
    small = store.put("small", LINES[:2000]).id
    before = {i: store.info(i) for i in ids}
    assert store.compact(level=store.level).n_recoded == 0
    report = store.compact(level="ultra")
    after = {i: store.info(i) for i in ids}
    assert after[ids[0]].stored_nbytes < before[ids[0]].stored_nbytes
    assert [info.n_decodes for info in after.values()] == [1, 2, 1]  # bases are as they were
    assert report.freed_nbytes == sum(b.stored_nbytes - after[i].stored_nbytes for i, b in before.items())
    assert report.n_recoded >= 2
    assert store.compact(level="ultra").n_recoded == 0
    assert store.compact(level="high").n_recoded == 0
    assert store.rebuild() == []
    assert store.check(decode=True).ok
    assert [store.get(i) for i in ids] == versions
    assert store.get(small) == LINES[:2000]
    with pytest.raises(glyd.ParameterError):
        store.compact(level="best")


def test_small_streams_stay(tmp_path):
    with Store(tmp_path / "s", level="fast") as store:
        store.put("v", LINES)
        assert store.put("v", LINES[:300_000] + b"edit" + LINES[300_000:]).stored_nbytes < _recode.WORTH_NBYTES
        before = store.info("v")
        store.compact(level="ultra")
        assert store.info("v") == before


def test_small_deltas_move_only_where_it_pays(tmp_path):
    """Level ultra takes a tenth less of the deltas of text: more than the entry that says so, or less."""
    rng = random.Random(5)
    words = [bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz", k=rng.randrange(2, 9))) for _ in range(600)]

    def row(i):
        return b"%d %s\n" % (i, b" ".join(words[min(int(rng.expovariate(0.01)), 599)] for _ in range(8)))

    rows = [row(i) for i in range(15_000)]
    with Store(tmp_path / "s", threads=1) as store:
        store.put("text", b"".join(rows))
        sizes = []
        for n_changed in (800, 1):
            for i in rng.sample(range(len(rows)), n_changed):
                rows[i] = row(i)
            sizes.append(store.put("text", b"".join(rows)).stored_nbytes)
        assert sizes[1] < 4096 < sizes[0] < 65536
        store.compact(level="high")
        assert [i.stored_nbytes for i in store.versions("text")][1:] == sizes
        assert store.compact(level="ultra").n_recoded >= 1
        after = [i.stored_nbytes for i in store.versions("text")][1:]
        assert after[0] <= sizes[0] - 700
        assert after[1] == sizes[1]
        assert store.get("text") == b"".join(rows)
        assert store.check(decode=True).ok
        assert store.compact(level="ultra").n_recoded == 0


def test_what_did_not_pay_is_not_tried_again(tmp_path, monkeypatch):
    """Notes are of the index: they go with the stream, and with the index."""
    written = []
    write = Writer.write

    def counted(self, source, base):
        written.append(self.level)
        return write(self, source, base)

    monkeypatch.setattr(_recode, "WORTH_NBYTES", 0)
    monkeypatch.setattr(_recode, "_MORE", 0.5)  # nothing pays
    monkeypatch.setattr(Writer, "write", counted)
    with Store(tmp_path / "s", level="fast", threads=1) as store:
        first = store.put("v", LINES).id
        store.put("v", LINES[:400_000] + b"edit" * 20 + LINES[400_000:])
        written.clear()
        for level in ("high", "ultra", "ultra", "high"):
            assert store.compact(level=level).n_recoded == 0
        assert written == ["high", "high", "ultra", "ultra"]
        store.close()
        assert store.compact(level="ultra").n_recoded == 0
        assert len(written) == 4
        store.rebuild()
        monkeypatch.setattr(_recode, "_MORE", 1.001)
        assert store.compact(level="ultra").n_recoded >= 1
        assert store.get(first) == LINES
        assert store._core.index.value("SELECT count(*) FROM in_vain") <= 1
        assert store.check(decode=True).ok

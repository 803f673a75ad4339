# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What versions are based on: chains that are as long as reads bear, and which relative is taken."""

from __future__ import annotations

import random
from collections import Counter
from math import comb
from types import SimpleNamespace

import pytest

from glyd_store import Store, _bases, _recode
from glyd_store._contents import chain_of, find_content
from glyd_store._index import Index
from glyd_store._memory import MemoryBackend
from glyd_store._put import Writer
from glyd_store._resemblance import find_candidates


def noise(n, seed):
    return random.Random(seed).randbytes(n)


class Family:
    """A family of which every version is most like the one before: what each is based on."""

    def __init__(self, n_bases):
        self.n_bases = n_bases
        self.base = {0: None}
        dependents = self.dependents = Counter()
        self.core = SimpleNamespace(index=SimpleNamespace(value=lambda _sql, sha256: dependents[sha256]))

    def chain(self, number):
        out = [number]
        while self.base[out[-1]] is not None:
            out.append(self.base[out[-1]])
        return out

    def add(self, number):
        rows = [SimpleNamespace(sha256=n) for n in self.chain(number - 1)]
        rooms = [row for i, row in enumerate(rows) if len(rows) - i <= self.n_bases]
        chosen = _bases.choose_base(self.core, rooms, rows).sha256
        self.base[number] = chosen
        self.dependents[chosen] += 1


@pytest.mark.parametrize("n_bases", [1, 2, 4, 7, 31])
def test_chains_are_as_near_as_their_length_allows(n_bases):
    family = Family(n_bases)
    for n in range(1, 400):
        family.add(n)
    assert max(len(family.chain(n)) for n in range(400)) == n_bases + 1
    distances = [n - family.base[n] for n in range(1, 400)]
    assert distances[:n_bases] == [1] * n_bases
    # chains nested two deep: one more distance for each version, at most
    for nesting in (1, 2, 3):
        n = min(399, comb(n_bases + nesting, nesting) - 1)
        assert sum(distances[:n]) <= nesting * n


def test_large_deltas_make_short_chains():
    """What is new in each of these takes a tenth of it: 5 frames. One line in each: as many as there are versions."""
    with Store("memory:", level="turbo", threads=1) as store:
        large, small = noise(400_000, 1), noise(400_000, 2)
        for i in range(14):
            large = large[:-40_000] + noise(40_000, 100 + i)
            small = small[:-100] + b"version %03d" % i + noise(89, i)
            store.put("large", large)
            store.put("small", small)
        assert max(info.n_decodes for info in store.versions("large")) == 5
        assert [info.n_decodes for info in store.versions("small")] == list(range(1, 15))
        for name, content in (("large", large), ("small", small)):
            assert store.get(name) == content
            core = store._core
            for info in store.versions(name):
                chain = chain_of(core, find_content(core, bytes.fromhex(info.sha256)))
                assert len(chain) <= 5 or _bases.followed_nbytes(core, chain)[-2] <= info.size * _bases.FOLLOWED_MAX


def test_a_new_chain_starts_alone_where_that_takes_less():
    """Tables as columns may take less than their difference to a version that is some way back."""
    rng = random.Random(8)
    numbers = [0] * 40_000

    def table():
        return b"".join(b"%d,row %d,%d\n" % (i, i, number) for i, number in enumerate(numbers))

    backend = MemoryBackend()
    backend.decodes_max = 5
    with Store(backend, threads=1) as store:
        versions = []
        for _ in range(8):
            versions.append(table())
            for i in rng.sample(range(len(numbers)), 1600):
                numbers[i] = rng.randrange(1000)
            store.put("table", versions[-1])
        assert [info.n_decodes for info in store.versions("table")] == [1, 2, 3, 4, 5, 1, 2, 3]
        # noise does not: what starts a chain there has the root as base
        for i in range(7):
            store.put("noise", noise(400_000, 3) + noise(100, i))
        assert [info.n_decodes for info in store.versions("noise")] == [1, 2, 3, 4, 5, 2, 3]
        assert [store.get(info) for info in store.versions("table")] == versions
        assert store.check(decode=True).ok


@pytest.mark.parametrize("level", ["turbo", "cold"])
def test_new_chains_at_every_level(level):
    backend = MemoryBackend()
    backend.decodes_max = 5
    with Store(backend, level=level, threads=1) as store:
        lines = b"".join(b"%d is one line of many\n" % i for i in range(12_000))
        versions = [lines[:i] + b"edit" + lines[i:] for i in range(0, 60_000, 10_000)]
        for data in versions:
            store.put("v", data)
        assert [store.get(info) for info in store.versions("v")] == versions
        assert max(info.n_decodes for info in store.versions("v")) == 5


def test_reads_of_the_longest_chain():
    versions = [noise(600_000, 5)]
    for i in range(40):
        at = 7_001 * i
        versions.append(versions[-1][:at] + b"an edit in version %d" % i + versions[-1][at + 9 :])
    with Store("memory:", level="turbo", threads=1) as store:
        infos = [store.put("v", data) for data in versions]
        assert max(info.n_decodes for info in infos) == 32
        store.close()
        for info, data in zip(infos, versions, strict=True):
            assert store.get(info) == data
        store.close()
        with store.open(infos[31]) as file:
            file.seek(123_456)
            assert file.read(1000) == versions[31][123_456:124_456]
        assert store.rebase(infos[20]).n_decodes == 1
        assert store.info(infos[31]).n_decodes == 12
        assert store.check(decode=True).ok


def test_each_frame_of_a_chain_is_moved_as_it_is_opened(tmp_path, monkeypatch):
    """What `compact --level` does in the worst order for a reader."""
    versions = [noise(500_000, 6)]
    for i in range(31):
        versions.append(versions[-1][: 9_001 * i] + b"an edit in version %d" % i + versions[-1][9_001 * i + 9 :])
    with Store(tmp_path / "s", level="turbo", threads=1) as writer, Store(tmp_path / "s", threads=1) as reader:
        for data in versions:
            writer.put("v", data)
        assert writer.info("v").n_decodes == 32
        assert reader.info("v").n_decodes == 32
        core, moved = writer._core, set()
        again = Writer(core, "fast", 1)

        def move(key):
            stream = bytes.fromhex(key.rpartition("/")[2].removesuffix(".glyd"))
            sha256 = core.index.value("SELECT sha256 FROM content WHERE stream = ?", stream)
            if sha256 is None or sha256 in moved:
                return
            with core.writing():
                row = find_content(core, sha256)
                base = None if row.base is None else find_content(core, row.base)
                assert _recode._write_again(core, row, base, again) is not None
            if find_content(core, sha256).stream != stream:  # else it was the same bytes
                moved.add(sha256)

        backend = reader._core.backend
        opened = backend.open

        def open_late(key):
            if key.startswith("streams/"):
                move(key)
            return opened(key)

        monkeypatch.setattr(backend, "open", open_late)
        assert reader.get("v") == versions[-1]
        assert len(moved) > 20
        assert reader.check(decode=True).ok


def test_a_backend_may_ask_for_shorter_chains():
    """In a bucket each frame of a chain is a request."""
    backend = MemoryBackend()
    backend.decodes_max = 8
    body = noise(400_000, 2)
    with Store(backend, level="turbo", threads=1) as store:
        infos = [store.put("v", body + b"version %d" % i) for i in range(11)]
        assert [info.n_decodes for info in infos] == [1, 2, 3, 4, 5, 6, 7, 8, 2, 3, 4]
        assert store.get("v") == body + b"version 10"


def test_of_what_is_alike_the_newest_comes_first():
    """Shares of few fingerprints are no measure of small differences: 86 of 128 for the root, 20 of 32 for a version."""
    mine = tuple(range(0, 1280, 10))

    def shared(n, of):
        return [value if i % of < n else value + 5 for i, value in enumerate(mine)][:of]

    index = Index.create(None, "a store")
    found = {1: shared(86, 128), 2: shared(22, 32), 3: shared(20, 32), 4: shared(8, 32)}
    for content, values in found.items():
        index.db.executemany("INSERT INTO fingerprint VALUES(?, ?)", [(value, content) for value in values])
    candidates = find_candidates(index, mine)
    assert [content for content, _ in candidates] == [3, 2, 1, 4]
    assert [round(alike, 3) for _, alike in candidates] == [0.625, 0.688, 0.677, 0.25]

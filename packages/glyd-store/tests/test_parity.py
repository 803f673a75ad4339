# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Parity: what of a stream may be lost, and what is said when more is."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glyd
from glyd_store import Store
from glyd_store._parity import solve, sums
from glyd_store.cli import main

NOISE = random.Random(4).randbytes(1_200_000)


@settings(deadline=None, max_examples=150)
@given(st.data(), st.integers(1, 254), st.integers(1, 40))
def test_any_two_blocks_follow_from_the_others(data, n, size):
    rng = random.Random(data.draw(st.integers(0, 1 << 30)))
    blocks = [rng.randbytes(size) for _ in range(n)]
    everything = [*blocks, *sums(blocks)]
    lost = data.draw(st.lists(st.integers(0, n + 1), max_size=2, unique=True))
    left = [None if i in lost else block for i, block in enumerate(everything)]
    assert solve(left[:-2], *left[-2:]) == blocks
    if n >= 3:
        left = [None if i in {0, 1, 2} else block for i, block in enumerate(everything)]
        assert solve(left[:-2], *left[-2:]) is None


@pytest.fixture
def folder(tmp_path):
    """Return a store with a root of noise, a version of it, and a pack, all with 10% of parity."""
    with Store(tmp_path / "s", level="fast", parity=10) as store:
        store.put("v", NOISE)
        store.put("v", NOISE[:500_000] + b"edit" + NOISE[500_000:])
        list(store.put_many([(f"{i}.txt", b"%d\n" % i * 50) for i in range(100)]))
        report = store.compact()
        assert report.parity_nbytes > 0  # of the pack: the root has had it from the start
    return tmp_path / "s"


def files(folder, kind):
    return sorted((folder / kind).rglob("*.*"), key=lambda path: -path.stat().st_size)


def test_it_is_written_for_what_stands_alone(folder):
    root, pack, _delta = files(folder, "streams")
    assert [path.stem for path in files(folder, "parity")] == [root.stem, pack.stem]
    assert files(folder, "parity")[0].stat().st_size < 0.104 * root.stat().st_size
    with Store(folder) as store:
        assert store.check(read_data=1).n_parity == 2
        assert store.compact().parity_nbytes == 0


def broken(data, how):
    data = bytearray(data)
    n = len(data)
    if how == "bit":
        data[n // 3] ^= 4
    elif how == "burst":
        size = n // (11 if n > 100_000 else 25)  # small streams are a single group: any two blocks of 20
        data[n // 2 : n // 2 + size] = bytes(size)
    elif how == "scattered":
        data[5] ^= 1
        data[n - 5] ^= 1
    elif how == "cut":
        del data[n - n // 20 :]
    elif how == "longer":
        data += b"tail"
    return bytes(data)


@pytest.mark.parametrize("how", ["bit", "burst", "scattered", "cut", "longer"])
@pytest.mark.parametrize("which", [0, 1], ids=["root", "pack"])
def test_damage_that_is_repaired(folder, how, which):
    path = files(folder, "streams")[which]
    good = path.read_bytes()
    path.write_bytes(broken(good, how))
    with Store(folder) as store:
        found = store.check(read_data=1)
        (problem,) = found.problems
        assert problem.key.endswith(path.name)
        assert "parity" in problem.advice
        report = store.repair()
        assert report.repaired == [problem.key]
        assert report.remaining.ok
        assert path.read_bytes() == good
        assert store.get("v")[500_000:500_004] == b"edit"
        assert store.check(decode=True).ok


@pytest.mark.parametrize("how", ["half", "gone", "empty"])
def test_damage_that_is_too_much(folder, how):
    path = files(folder, "streams")[0]
    good = path.read_bytes()
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes(good[: len(good) // 2] if how == "half" else b"")
    with Store(folder) as store:
        report = store.repair()
        assert report.repaired == []
        (problem,) = report.remaining.problems
        assert [name for _, name in problem.objects] == ["v", "v"]
        source = folder.parent / "source"
        source.write_bytes(NOISE)
        assert store.repair([source]).remaining.ok
        assert store.get(1) == NOISE


def test_all_of_a_stream_comes_back_from_as_much_parity(tmp_path):
    with Store(tmp_path / "s", level="fast", parity=100) as store:
        store.put("v", NOISE)
        (path,) = files(tmp_path / "s", "streams")
        path.unlink()
        assert not store.check().ok
        assert store.repair().remaining.ok
        assert store.get("v") == NOISE


@pytest.mark.parametrize("how", ["bit", "burst", "cut", "gone"])
def test_damaged_parity(folder, how):
    path = files(folder, "parity")[0]
    good = path.read_bytes()
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes(broken(good, how))
    with Store(folder) as store:
        found = store.check(read_data=1)
        if how != "gone":  # nobody promised that there is any
            (problem,) = found.problems
            assert (problem.key, problem.objects) == (f"parity/{path.parent.name}/{path.name}", ())
            assert store.repair().remaining.ok
        else:
            assert found.ok
            store.parity = 10
            assert store.compact().parity_nbytes == len(good)
        assert path.read_bytes() == good


def test_damage_of_both(folder):
    """Parity that is damaged somewhere still mends what is damaged elsewhere."""
    stream, parity = files(folder, "streams")[0], files(folder, "parity")[0]
    good = stream.read_bytes(), parity.read_bytes()
    stream.write_bytes(broken(good[0], "bit"))
    parity.write_bytes(good[1][:-1] + bytes([good[1][-1] ^ 1]))
    with Store(folder) as store:
        report = store.repair()
        assert report.remaining.ok
        assert (stream.read_bytes(), parity.read_bytes()) == good


def test_any_bytes_as_parity(folder):
    stream, parity = files(folder, "streams")[0], files(folder, "parity")[0]
    stream.write_bytes(b"")
    good = parity.read_bytes()
    for i in range(40):
        rng = random.Random(i)
        data = bytearray(good[: rng.choice((0, 7, 57, 58, 70, len(good)))])
        for _ in range(rng.randrange(1, 9)):
            if data:
                data[rng.randrange(min(len(data), 60))] = rng.randrange(256)
        parity.write_bytes(bytes(data))
        with Store(folder) as store:
            assert not store.repair().remaining.ok


def test_it_is_written_for_deltas_that_others_are_based_on(tmp_path):
    """A chain is as sound as each of its frames."""
    versions = [NOISE]
    for i in range(3):
        versions.append(versions[-1][: 300_000 * i] + b"edit %d" % i * 400 + versions[-1][300_000 * i :])
    with Store(tmp_path / "s", level="fast") as store:
        store.put("v", versions[0])
        store.put("v", versions[1])
        store.parity = 20
        store.put("v", versions[2])  # the first finds its version without, and writes it
        assert len(files(tmp_path / "s", "parity")) == 1
        store.put("v", versions[3])
        assert [info.n_decodes for info in store.versions("v")] == [1, 2, 3, 4]
        parity = {path.stem for path in files(tmp_path / "s", "parity")}
        assert store.compact().parity_nbytes > len(NOISE) // 10  # that of the root, which was put without
        found = {path.stem for path in files(tmp_path / "s", "parity")}
        streams = {store._core.index.value("SELECT stream FROM content WHERE sha256 = ?", bytes.fromhex(i.sha256)).hex()
                   for i in list(store.versions("v"))[:3]}  # fmt: skip
        assert parity < found == streams
        for stem in parity:
            (path,) = (p for p in files(tmp_path / "s", "streams") if p.stem == stem)
            good = path.read_bytes()
            path.write_bytes(broken(good, "bit"))
            store.close()
            assert len(store.check(read_data=1).problems[0].objects) >= 2
            assert store.repair().remaining.ok
            assert path.read_bytes() == good
        assert [store.get(info) for info in store.versions("v")] == versions
        assert store.check(read_data=1, decode=True).ok


def test_a_base_that_is_damaged_is_none(tmp_path):
    """It was seen while its parity was to be written: the version stands alone."""
    with Store(tmp_path / "s", level="fast") as store:
        store.put("v", NOISE)
        (path,) = files(tmp_path / "s", "streams")
        path.write_bytes(broken(path.read_bytes(), "bit"))
        store.parity = 10
        info = store.put("v", NOISE + b"more")  # the base is still in memory
        assert info.n_decodes == 1
        assert store.get("v") == NOISE + b"more"
        path.unlink()
        assert store.put("w", NOISE[1000:]).n_decodes <= 2
        assert store.get("w") == NOISE[1000:]


def test_it_goes_with_its_stream(folder):
    with Store(folder) as store:
        store.delete([i for i in store.list() if i.name == "v"])
        store.compact()
        assert len(files(folder, "streams")) == len(files(folder, "parity")) == 1
        with pytest.raises(glyd.ParameterError):
            Store(folder, parity=101)


def test_command(tmp_path, capsys):
    source, where = tmp_path / "in", str(tmp_path / "s")
    source.write_bytes(NOISE)
    assert main([where, "put", str(source), "--name", "v", "--parity", "20%", "-q"]) == 0
    (path,) = files(tmp_path / "s", "streams")
    path.write_bytes(broken(path.read_bytes(), "bit"))
    assert main([where, "check", "--read-data"]) == 3
    assert "parity" in capsys.readouterr().out
    assert main([where, "repair"]) == 0
    (parity,) = files(tmp_path / "s", "parity")
    Path(parity).unlink()
    capsys.readouterr()
    assert main([where, "compact", "--parity", "5%", "--json"]) == 0
    assert 0.04 < json.loads(capsys.readouterr().out)["parity_nbytes"] / len(NOISE) < 0.06
    assert main([where, "put", str(source), "--parity", "0%"]) == 1

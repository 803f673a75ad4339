# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Versions of compressed files with what they hold stored: they come back bit for bit, whatever is done meanwhile."""

import gzip
import hashlib
import io
import random
import zipfile

import pytest

import glyd
from glyd_store import IntegrityError, Store, run_command
from glyd_store._entry import Content

RNG = random.Random(11)
WORDS = [RNG.randbytes(RNG.randrange(2, 6)).hex().encode() for _ in range(3000)]
LINES = [b"%d %s %s\n" % (i, RNG.choice(WORDS), RNG.choice(WORDS)) for i in range(40_000)]


def dump(version: int) -> bytes:
    """Return a compressed dump of which some lines change from version to version."""
    lines = LINES.copy()
    for k in range(1, version + 1):
        lines[k * 37] = b"changed in %d\n" % k
    return gzip.compress(b"".join(lines), 6, mtime=0)


def archive(version: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as members:
        for i in range(4):
            part = [b"version %d\n" % version, *LINES[i * 8000 : (i + 1) * 8000]]
            members.writestr(zipfile.ZipInfo(f"member {i}", (2026, 1, 1, 0, 0, 0)), b"".join(part))
    return file.getvalue()


DUMPS = [dump(version) for version in range(4)]


def streams(path):
    return sorted((path / "streams").rglob("*.glyd"))


@pytest.fixture
def filled(tmp_path):
    with Store(tmp_path / "s", level="default", threads=1, open_streams=True) as store:
        for data in DUMPS:
            store.put("dump.gz", data)
        yield store


def check(store):
    report = store.check(decode=True)
    assert report.ok, report.problems


def test_versions_take_their_changes(filled, tmp_path):
    first, *others = filled.versions("dump.gz")
    assert first.stored_nbytes < len(DUMPS[0])
    assert all(info.stored_nbytes < 1500 for info in others)
    assert [info.n_decodes for info in (first, *others)] == [1, 2, 3, 4]
    for info, data in zip((first, *others), DUMPS, strict=True):
        assert (info.size, info.sha256) == (len(data), hashlib.sha256(data).hexdigest())
        assert filled.get(info) == data
        with filled.open(info) as file:
            file.seek(len(data) // 2)
            assert file.read(100) == data[len(data) // 2 :][:100]
            file.seek(0)
            assert file.read() == data
    check(filled)
    assert [path for _, path in filled.restore(tmp_path / "out")] == [str(tmp_path / "out" / "dump.gz")]
    assert (tmp_path / "out" / "dump.gz").read_bytes() == DUMPS[-1]


def test_without_the_option_they_are_whole(tmp_path):
    with Store(tmp_path / "s", threads=1) as store:
        for data in DUMPS[:2]:
            assert store.put("dump.gz", data).stored_nbytes > len(data) // 3


def test_archives_through_the_command(tmp_path, capsys):
    paths = [tmp_path / f"{version}.zip" for version in range(3)]
    for version, path in enumerate(paths):
        path.write_bytes(archive(version))
    store = str(tmp_path / "s")
    assert run_command([store, "put", "--open", *map(str, paths), "-q", "-T", "1"]) == 0
    for path in paths:
        assert run_command([store, "get", str(path), "-o", str(tmp_path / "back")]) == 0
        assert (tmp_path / "back").read_bytes() == path.read_bytes()
    assert run_command([store, "check", "--decode"]) == 0
    with Store(store) as opened:
        first, *others = opened.list()
        assert sum(info.stored_nbytes for info in others) < first.stored_nbytes // 100


@pytest.mark.parametrize("data", [b"".join(LINES), RNG.randbytes(300_000)])
def test_what_holds_no_streams_is_stored_as_ever(tmp_path, data):
    with Store(tmp_path / "s", threads=1, open_streams=True) as store:
        assert store.put("a", data).n_decodes == 1
        assert store.get("a") == data
        assert store._core.index.value("SELECT count(*) FROM content") == 1


def test_little_of_it_is_not_worth_it(tmp_path):
    data = RNG.randbytes(2_000_000) + DUMPS[0][: len(DUMPS[0]) // 40]
    with Store(tmp_path / "s", threads=1, open_streams=True) as store:
        store.put("a", data)
        assert store.get("a") == data
        assert store._core.index.value("SELECT count(*) FROM content WHERE kind = 'opened'") == 0


def test_bytes_are_shared_with_what_is_not_compressed(tmp_path):
    with Store(tmp_path / "s", threads=1, open_streams=True) as store:
        store.put("dump", b"".join(LINES))
        assert store.put("dump.gz", DUMPS[0]).stored_nbytes < 1500
        assert store.get("dump.gz") == DUMPS[0]


def test_deleted_and_compacted(filled, tmp_path):
    ids = [info.id for info in filled.versions("dump.gz")]
    filled.delete(ids[:3])
    assert filled.compact(dry_run=True).n_streams == 0  # the last one is based on them
    report = filled.compact()
    assert (
        report.held_nbytes
        == sum(path.stat().st_size for path in streams(tmp_path / "s")) - filled.info(ids[3]).stored_nbytes
    )
    assert filled.get(ids[3]) == DUMPS[3]
    check(filled)
    assert filled.put("again", DUMPS[1]).n_decodes == 2
    assert filled.get("again") == DUMPS[1]
    filled.delete([ids[3], filled.info("again").id])
    filled.compact()
    assert streams(tmp_path / "s") == []
    assert filled.put("again", DUMPS[1]).n_decodes == 1
    assert filled.get("again") == DUMPS[1]
    check(filled)


def test_deletions_are_taken_back(filled):
    ids = [info.id for info in filled.versions("dump.gz")]
    filled.delete(ids[:2])
    filled.compact()  # their contents are bases of others, but the objects are gone
    check(filled)
    filled.delete([ids[2]])
    filled.undelete([ids[2]])
    assert filled.get(ids[2]) == DUMPS[2]


def test_duplicates_take_nothing(filled, tmp_path):
    before = streams(tmp_path / "s")
    assert filled.put("other", DUMPS[2]).sha256 == hashlib.sha256(DUMPS[2]).hexdigest()
    with Store(tmp_path / "s") as plain:
        plain.put("third", DUMPS[2])
    assert streams(tmp_path / "s") == before
    assert filled.get("third") == DUMPS[2]


def test_written_again(filled):
    report = filled.compact(level="ultra")
    assert report.n_recoded > 0
    last = list(filled.versions("dump.gz"))[-1]
    assert filled.rebase(last).n_decodes == 1
    for info, data in zip(filled.versions("dump.gz"), DUMPS, strict=True):
        assert filled.get(info) == data
    check(filled)


def test_an_open_file_bears_what_is_written_again(filled):
    with filled.open("dump.gz") as file:
        filled.compact(level="high")
        filled.rebase("dump.gz")
        assert file.read() == DUMPS[-1]


def test_index_made_again(filled, tmp_path):
    filled.compact(level="high")
    filled.close()
    for path in (tmp_path / "s").glob("index.sqlite*"):
        path.unlink()
    with Store(tmp_path / "s", read_only=True) as store:
        assert [store.get(info) for info in store.versions("dump.gz")] == DUMPS
    with Store(tmp_path / "s") as store:
        assert store.rebuild() == []
        assert [store.get(info) for info in store.versions("dump.gz")] == DUMPS
        check(store)


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.chmod(0o644)
    path.write_bytes(data)


def root(store, path):
    return max(streams(path), key=lambda stream: stream.stat().st_size)


def test_damage_names_all_that_depends_on_it(filled, tmp_path):
    flip(root(filled, tmp_path / "s"))
    ids = [info.id for info in filled.versions("dump.gz")]
    for options in ({"read_data": 1.0}, {"decode": True}):
        (problem,) = filled.check(**options).problems
        assert problem.key.startswith("streams/")
        assert [number for number, _ in problem.objects] == ids
    with pytest.raises(IntegrityError, match="streams/"):
        filled.get(ids[0])
    with pytest.raises(IntegrityError, match="streams/"), filled.open(ids[0]) as file:
        file.read()


@pytest.mark.parametrize("is_open", [True, False])
def test_damage_is_mended_by_the_file(filled, tmp_path, is_open):
    """Put again, with the option or without, it takes the form that it had: others are based on that."""
    flip(root(filled, tmp_path / "s"))
    assert not filled.check(read_data=1).ok
    with Store(tmp_path / "s", threads=1, open_streams=is_open) as store:
        store.put("first", DUMPS[0])
        for info, data in zip(store.versions("dump.gz"), DUMPS, strict=True):
            assert store.get(info) == data
        check(store)


@pytest.mark.parametrize("is_there", [True, False])
def test_repaired_from_a_file(filled, tmp_path, is_there):
    stream = root(filled, tmp_path / "s")
    if is_there:
        flip(stream)
    else:
        stream.unlink()
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "0.gz").write_bytes(DUMPS[0])
    report = filled.repair([tmp_path / "files"])
    assert report.remaining.ok, report.remaining.problems
    assert [filled.get(info) for info in filled.versions("dump.gz")] == DUMPS
    check(filled)


def test_what_others_are_based_on_stays_as_it_is(tmp_path):
    """A damaged version that was stored whole is put again whole: others are based on its bytes."""
    data = [RNG.randbytes(400_000) + DUMPS[0] + b"%d" % i for i in range(2)]
    with Store(tmp_path / "s", threads=1) as store:
        for each in data:
            store.put("a", each)
        flip(root(store, tmp_path / "s"))
        assert not store.check(read_data=1).ok
    with Store(tmp_path / "s", threads=1, open_streams=True) as store:
        store.put("b", data[0])
        assert [store.get(info) for info in store.versions("a")] == data
        check(store)


def test_parity_of_what_was_opened(tmp_path):
    with Store(tmp_path / "s", threads=1, open_streams=True, parity=50) as store:
        for data in DUMPS:
            store.put("a", data)
        flip(root(store, tmp_path / "s"))
        assert store.repair().remaining.ok
        assert [store.get(info) for info in store.versions("a")] == DUMPS


def test_what_comes_back_is_compared_before_it_is_stored(tmp_path, monkeypatch):
    real = glyd.close_streams
    monkeypatch.setattr(glyd, "close_streams", lambda opened, **options: real(opened, **options)[:-1] + b"?")
    with Store(tmp_path / "s", threads=1, open_streams=True) as store:
        with pytest.raises(IntegrityError, match="does not come back; nothing was stored"):
            store.put("a", DUMPS[0])
        assert list(store.list()) == []
        assert store.check(read_data=1).orphan_nbytes == 0


def test_an_entry_says_what_was_opened():
    said = {"sha256": "00" * 32, "size": 9, "at": ["opened"], "base": "11" * 32}
    assert Content.from_dict(said).to_dict() == said
    del said["base"]
    with pytest.raises(ValueError, match="without a base"):
        Content.from_dict(said)

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""train, bundle and unbundle."""

import pytest

import glyd as codec


@pytest.fixture
def events(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(b'{"id": %d, "kind": "event", "ok": true}\n' % (i * 7919) for i in range(2000)))
    return path


def test_train_makes_a_dictionary_that_python_reads(glyd, events, tmp_path):
    done = glyd("train", "--lines", events, "-o", "d.dict", "--size", "8K")
    assert b"d.dict: dictionary 0x" in done.out
    dictionary = codec.Dictionary((tmp_path / "d.dict").read_bytes())
    assert dictionary.nbytes <= 8192
    line = events.read_bytes().splitlines(keepends=True)[77]
    assert dictionary.decompress(dictionary.compress(line)) == line
    assert len(dictionary.compress(line)) < len(line) - 10
    assert "-f replaces it" in glyd.fail("train", events, "-o", "d.dict", code=2)
    glyd("train", events, events, "-o", "d.dict", "-f")


def test_bundle_of_lines(glyd, events):
    glyd("bundle", "--lines", events, "-o", "b")
    assert glyd("unbundle", "b", "--list").out.count(b"\n") == 2000
    lines = events.read_bytes().splitlines(keepends=True)
    assert glyd("unbundle", "b", "0", "1234").out == lines[0] + lines[1234]
    assert glyd("-d", "-c", "b").out == events.read_bytes()
    with events.open("rb") as file:
        glyd("bundle", "--lines", "-", "-o", "b", "-f", "--level", "default", stdin=file)
    assert glyd("unbundle", "b", "--", "-1").out == lines[-1]
    assert "no object '2000'" in glyd.fail("unbundle", "b", "2000", code=1)


def test_bundle_of_files(glyd, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(name.encode() * 10)
    glyd("bundle", "one", "two", "-o", "b")
    assert glyd("unbundle", "b", "--list").out == b"one\ntwo\n"
    assert glyd("unbundle", "b", "two").out == b"two" * 10
    assert glyd("unbundle", "b", "0").out == b"one" * 10


def test_refusals(glyd, events, tmp_path):
    assert "missing" in glyd.fail("bundle", "missing", "-o", "b", code=2)
    assert not list(tmp_path.glob("b*"))
    assert "no bundle" in glyd.fail("unbundle", events, "0", code=3)
    assert "no such file" in glyd.fail("unbundle", "missing", "0", code=2)
    glyd("bundle", events, "-o", "good")
    assert "--list" in glyd.fail("unbundle", "good", code=1)
    assert "required" in glyd.fail("train", events, code=1)
    assert "size" in glyd.fail("train", events, "-o", "d", "--size", "1K", code=1)
    assert glyd("train", "--help").out.startswith(b"glyd train")

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""-D DICT: small files as objects of a dictionary."""

import random

import pytest

import glyd as codec


@pytest.fixture
def messages(glyd, tmp_path):
    """Some files, and two dictionaries, of which one was trained on files like them."""
    rng = random.Random(3)
    lines = [b'{"user": %d, "city": "town %d", "ok": true}\n' % (rng.random() * 1e6, i % 50) for i in range(900)]
    (tmp_path / "samples").write_bytes(b"".join(lines[3:]))
    for i in range(3):
        (tmp_path / f"m{i}").write_bytes(lines[i])
    glyd("train", "--lines", "samples", "-o", "d.dict", "--size", "16K")
    glyd("train", "--lines", "samples", "-o", "other.dict", "--size", "8K")
    return lines[:3]


def test_round_trip(glyd, messages, tmp_path):
    glyd("-D", "d.dict", "m0", "m1", "m2", "-q")
    stored = [(tmp_path / f"m{i}.glyd").read_bytes() for i in range(3)]
    assert all(len(one) < len(message) for one, message in zip(stored, messages, strict=True))
    assert codec.Dictionary((tmp_path / "d.dict").read_bytes()).decompress(stored[1]) == messages[1]
    glyd("--test", "-D", "d.dict", "m0.glyd", "m1.glyd")
    glyd("-d", "--dictionary", "d.dict", "m1.glyd", "-o", "back")
    assert (tmp_path / "back").read_bytes() == messages[1]
    assert glyd("-d", "-c", "-D", "d.dict", "m0.glyd", "m2.glyd").out == messages[0] + messages[2]
    told = glyd("--info", "-D", "d.dict", "m0.glyd").out
    assert b"1 objects" in told
    assert b"the one given\n" in told
    assert b"the one given is 0x" in glyd("--info", "-D", "other.dict", "m0.glyd").out


def test_pipes_empty_and_several_objects(glyd, messages, tmp_path):
    many = random.Random(1).randbytes(3000) * 3000  # three objects
    for content in (b"", messages[0], many):
        stored = glyd("-D", "d.dict", "-c", "--no-check", input=content).out
        assert glyd("-d", "-D", "d.dict", "-c", input=stored).out == content
        (tmp_path / "content").write_bytes(content)
        glyd("-D", "d.dict", "content", "-f", "-q")
        assert glyd("-d", "-D", "d.dict", "-c", "content.glyd").out == content
    assert b"3 objects" in glyd("--info", "-D", "d.dict", "content.glyd").out
    whole = (tmp_path / "content.glyd").read_bytes()
    (tmp_path / "cut.glyd").write_bytes(whole[:-1])
    assert "m0" not in glyd.fail("-d", "-D", "d.dict", "cut.glyd", code=3)
    assert not (tmp_path / "cut").exists()
    (tmp_path / "cut.glyd").write_bytes(whole + b"?")
    glyd.fail("--test", "-D", "d.dict", "cut.glyd", code=3)
    glyd.fail("--test", "-D", "d.dict", "--memory", "1K", "content.glyd", code=4)


def test_what_is_wrong_is_named(glyd, messages, tmp_path):
    glyd("-D", "d.dict", "m0", "-q")
    assert "dictionary" in glyd.fail("--test", "-D", "other.dict", "m0.glyd", code=5)
    assert "-D DICT" in glyd.fail("--test", "m0.glyd", code=5)
    glyd("m1", "-q")
    assert "leave -D out" in glyd.fail("-d", "-D", "d.dict", "m1.glyd", "-o", "x", code=3)
    assert "leave -D out" in glyd.fail("--info", "-D", "d.dict", "m1.glyd", code=3)
    assert not (tmp_path / "x").exists()
    assert "cannot be the dictionary" in glyd.fail("-D", "missing", "m0", code=2)
    assert "is no dictionary" in glyd.fail("-D", "m0", "m2", code=3)
    assert "is no dictionary" in glyd.fail("--info", "-D", "m0", "m0.glyd", code=3)
    for options in (["--base", "m1"], ["-9"], ["-r"], ["--long"], ["--dense"], ["--open"]):
        assert "contradict" in glyd.fail("-D", "d.dict", *options, "m2", code=1)
    assert "-D goes with" in glyd.fail("-b", "-D", "d.dict", "m2", code=1)
    assert "-D needs" in glyd.fail("-D", "-", "m2", code=1)


def test_the_dictionary_is_never_an_output(glyd, messages, tmp_path):
    before = (tmp_path / "d.dict").read_bytes()
    glyd.fail("-D", "d.dict", "m0", "-o", "d.dict", "-f", code=2)
    glyd("-D", "d.dict", "d.dict", "--rm")
    assert (tmp_path / "d.dict").read_bytes() == before

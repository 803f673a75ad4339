# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""-D DICT: small files as objects of a dictionary, others as frames with it."""

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
    many = random.Random(1).randbytes(3000) * 3000  # three objects through a pipe, a frame from a file
    for content in (b"", messages[0], many):
        stored = glyd("-D", "d.dict", "-c", "--no-check", input=content).out
        (tmp_path / "stored").write_bytes(stored)
        assert glyd("-d", "-D", "d.dict", "-c", input=stored).out == content
        (tmp_path / "content").write_bytes(content)
        glyd("-D", "d.dict", "content", "-f", "-q")
        assert glyd("-d", "-D", "d.dict", "-c", "content.glyd").out == content
    assert b"3 objects" in glyd("--info", "-D", "d.dict", "stored").out
    assert b"level max" in glyd("--info", "-D", "d.dict", "content.glyd").out
    for name in ("stored", "content.glyd"):
        whole = (tmp_path / name).read_bytes()
        (tmp_path / "cut.glyd").write_bytes(whole[:-1])
        assert "m0" not in glyd.fail("-d", "-D", "d.dict", "cut.glyd", code=3)
        assert not (tmp_path / "cut").exists()
        (tmp_path / "cut.glyd").write_bytes(whole + b"?")
        glyd.fail("--test", "-D", "d.dict", "cut.glyd", code=3)
        glyd.fail("--test", "-D", "d.dict", "--memory", "1K", name, code=4)


def test_frames(glyd, messages, tmp_path):
    dictionary = codec.Dictionary((tmp_path / "d.dict").read_bytes())
    content = b"".join(messages) * 40
    (tmp_path / "content").write_bytes(content)
    for option in ("--turbo", "-9", "-C"):
        glyd("-D", "d.dict", option, "content", "-f", "-q")
        frame = (tmp_path / "content.glyd").read_bytes()
        assert codec.get_frame_info(frame).dictionary_id == dictionary.id
        assert codec.decompress(frame, dictionary=dictionary) == content
        assert glyd("-d", "-D", "d.dict", "-c", "content.glyd").out == content
        assert glyd("-d", "-D", "d.dict", "-c", input=frame).out == content
        glyd("--test", "-D", "d.dict", "content.glyd")
    for options in (["-r"], ["-9", "--long"], ["-9", "--dense"], ["--open"]):
        stored = glyd("-D", "d.dict", *options, "-c", input=content).out
        assert glyd("-d", "-D", "d.dict", "-c", input=stored).out == content
    glyd("-D", "d.dict", "-9", "content", "-f", "-q")
    told = glyd("--info", "-D", "d.dict", "content.glyd").out
    assert f"dictionary {dictionary.id:#010x}, the one given\n".encode() in told
    assert b"the one given is 0x" in glyd("--info", "-D", "other.dict", "content.glyd").out
    assert f"dictionary {dictionary.id:#010x}\n".encode() in glyd("--info", "content.glyd").out
    assert glyd("--info", "-D", "d.dict", input=frame).out
    said = glyd.fail("-d", "content.glyd", "-o", "x", code=5)
    assert f"{dictionary.id:#010x}: -D DICT names it" in said
    assert "not the one" in glyd.fail("-d", "-D", "other.dict", "content.glyd", "-o", "x", code=5)
    assert not (tmp_path / "x").exists()
    both = frame + codec.compress(b"plain", "max")
    assert glyd("-d", "-D", "d.dict", "-c", input=both).out == content + b"plain"


def test_what_is_wrong_is_named(glyd, messages, tmp_path):
    glyd("-D", "d.dict", "m0", "-q")
    assert "dictionary" in glyd.fail("--test", "-D", "other.dict", "m0.glyd", code=5)
    assert "-D DICT" in glyd.fail("--test", "m0.glyd", code=5)
    glyd("m1", "-q")
    glyd("-d", "-D", "d.dict", "m1.glyd", "-o", "x")  # a frame that needs none
    assert (tmp_path / "x").read_bytes() == messages[1]
    assert "cannot be the dictionary" in glyd.fail("-D", "missing", "m0", code=2)
    assert "is no dictionary" in glyd.fail("-D", "m0", "m2", code=3)
    assert "is no dictionary" in glyd.fail("--info", "-D", "m0", "m0.glyd", code=3)
    assert "contradict" in glyd.fail("-D", "d.dict", "--base", "m1", "m2", code=1)
    assert "contradict" in glyd.fail("--info", "-D", "d.dict", "--json", "m0.glyd", code=1)
    assert "--long needs" in glyd.fail("-D", "d.dict", "--long", "m2", code=1)
    assert "-D goes with" in glyd.fail("-b", "-D", "d.dict", "m2", code=1)
    assert "-D needs" in glyd.fail("-D", "-", "m2", code=1)


def test_the_dictionary_is_never_an_output(glyd, messages, tmp_path):
    before = (tmp_path / "d.dict").read_bytes()
    glyd.fail("-D", "d.dict", "m0", "-o", "d.dict", "-f", code=2)
    glyd("-D", "d.dict", "d.dict", "--rm")
    assert (tmp_path / "d.dict").read_bytes() == before

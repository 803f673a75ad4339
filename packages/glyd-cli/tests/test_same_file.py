# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Writing onto an input destroys it, under whatever name it goes: refused, nothing is lost."""

import os

import pytest

import glyd as codec

SPELLINGS = ["f", "./f", "sub/../f", "absolute", "symlink", "link to link", "hard link", "folder link"]


def spelled(tmp_path, kind):
    (tmp_path / "sub").mkdir(exist_ok=True)
    if kind == "absolute":
        return tmp_path / "f"
    if kind == "symlink":
        (tmp_path / "l").symlink_to("f")
        return "l"
    if kind == "link to link":
        (tmp_path / "l").symlink_to("f")
        (tmp_path / "m").symlink_to("l")
        return "m"
    if kind == "hard link":
        os.link(tmp_path / "f", tmp_path / "h")
        return "h"
    if kind == "folder link":
        (tmp_path / "d").symlink_to(".")
        return "d/f"
    return kind


@pytest.mark.parametrize("force", [(), ("-f", "--rm")])
@pytest.mark.parametrize("verb", [(), ("-d",)])
@pytest.mark.parametrize("kind", SPELLINGS)
def test_output_is_the_input(glyd, tmp_path, text, kind, verb, force):
    data = codec.compress(text) if verb else text
    (tmp_path / "f").write_bytes(data)
    out = spelled(tmp_path, kind)
    before = sorted(os.listdir(tmp_path))
    assert "is the input" in glyd.fail(*verb, *force, "f", "-o", out, code=2)
    assert (tmp_path / "f").read_bytes() == data
    assert sorted(os.listdir(tmp_path)) == before


def test_input_through_a_link_output_onto_its_target(glyd, tmp_path, text):
    (tmp_path / "f").write_bytes(text)
    (tmp_path / "l").symlink_to("f")
    glyd.fail("-f", "l", "-o", "f", code=2)
    assert (tmp_path / "f").read_bytes() == text


def test_derived_name_is_a_link_to_the_input(glyd, tmp_path, text):
    (tmp_path / "f").write_bytes(text)
    os.link(tmp_path / "f", tmp_path / "f.glyd")
    glyd.fail("-f", "f", code=2)
    assert (tmp_path / "f").read_bytes() == text


@pytest.mark.parametrize("verb", [(), ("-d",)])
def test_standard_output_appends_to_the_input(glyd, tmp_path, text, verb):
    data = codec.compress(text) if verb else text
    (tmp_path / "f").write_bytes(data)
    for args in (("-c", "f"), ("f", "-o", "/dev/stdout"), ("f", "-o", "/dev/fd/1")):
        with (tmp_path / "f").open("ab") as out:
            assert "is the input" in glyd.fail(*verb, *args, code=2, stdout=out)
    with (tmp_path / "f").open("ab") as out, (tmp_path / "f").open("rb") as source:
        glyd.fail(*verb, code=2, stdin=source, stdout=out)
    assert (tmp_path / "f").read_bytes() == data


def test_force_replaces_a_link_not_what_it_points_to(glyd, tmp_path, text):
    (tmp_path / "f").write_bytes(text)
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "l").symlink_to("precious")
    assert "already exists" in glyd.fail("f", "-o", "l", code=2)
    assert (tmp_path / "l").is_symlink()
    glyd("-f", "f", "-o", "l")
    assert (tmp_path / "precious").read_bytes() == b"precious"
    assert not (tmp_path / "l").is_symlink()
    assert codec.decompress((tmp_path / "l").read_bytes()) == text


def test_force_leaves_the_other_names_of_a_file(glyd, tmp_path, text):
    (tmp_path / "f").write_bytes(text)
    (tmp_path / "a").write_bytes(b"shared")
    os.link(tmp_path / "a", tmp_path / "b")
    glyd("-f", "f", "-o", "a")
    assert (tmp_path / "b").read_bytes() == b"shared"


@pytest.mark.parametrize("verb", ["--test", "--list", "--info"])
def test_looking_changes_nothing(glyd, tmp_path, text, verb):
    frame = codec.compress(text)
    (tmp_path / "f.glyd").write_bytes(frame)
    os.utime(tmp_path / "f.glyd", (1e9, 1e9))
    glyd(verb, "f.glyd")
    glyd(verb, "-f", "--rm", "f.glyd")
    assert (tmp_path / "f.glyd").read_bytes() == frame
    assert (tmp_path / "f.glyd").stat().st_mtime == 1e9
    assert os.listdir(tmp_path) == ["f.glyd"]

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""--base: what it saves, what it refuses, and that nothing is lost."""

import json
import os
import random
import subprocess
import sys

import pytest

import glyd as codec

NOISE = random.Random(3).randbytes(2_000_000)
OLD = NOISE[:1_500_000]
NEW = NOISE[400_000:900_000] + b"something new" + NOISE[:1_400_000]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "old").write_bytes(OLD)
    (tmp_path / "new").write_bytes(NEW)
    return tmp_path


@pytest.mark.parametrize("level", ["-t", "-1", "--default", "-9"])
@pytest.mark.parametrize("flags", [(), ("-T1",), ("-r",), ("--no-weights",)])
def test_there_and_back(glyd, files, level, flags):
    glyd(level, *flags, "--base", "old", "new", "-o", "delta")
    assert (files / "delta").stat().st_size < 600
    glyd("-d", "--base=old", "delta", "-o", "back")
    assert (files / "back").read_bytes() == NEW
    glyd("--test", "--base", "old", "delta")


@pytest.mark.parametrize("sizes", [(0, 0), (0, 6), (6, 0), (1, 1), (40, 6), (6, 40), (40, 1_000_000), (1_000_000, 40)])
def test_small_pairs(glyd, files, sizes):
    (files / "old").write_bytes(OLD[: sizes[0]])
    (files / "new").write_bytes(OLD[: sizes[1]])
    glyd("--base", "old", "new")
    glyd("-d", "-f", "--base", "old", "new.glyd", "-o", "back")
    assert (files / "back").read_bytes() == OLD[: sizes[1]]


@pytest.mark.parametrize("verb", ["-d", "--test"])
def test_wrong_and_missing_bases(glyd, files, verb):
    glyd("--base", "old", "new", "-o", "delta")
    (files / "precious").write_bytes(b"precious")
    output = ("-f", "-o", "precious") if verb == "-d" else ()
    assert "base" in glyd.fail(verb, "delta", *output, code=5)
    for bad in (OLD[:-1], OLD + b"?", b"?" + OLD[1:], b"", NEW):
        (files / "bad").write_bytes(bad)
        assert "base" in glyd.fail(verb, "--base", "bad", "delta", *output, code=5)
    assert "directory" in glyd.fail(verb, "--base", ".", "delta", *output, code=2)
    assert "nothing" in glyd.fail(verb, "--base", "nothing", "delta", *output, code=2)
    assert (files / "precious").read_bytes() == b"precious"
    assert sorted(os.listdir(files)) == ["bad", "delta", "new", "old", "precious"]


@pytest.mark.parametrize("force", [(), ("-f",), ("-f", "--rm")])
@pytest.mark.parametrize("kind", ["old", "./old", "symlink", "hard link"])
def test_the_base_is_never_an_output(glyd, files, kind, force):
    name = kind
    if kind == "symlink":
        (files / "l").symlink_to("old")
        name = "l"
    elif kind == "hard link":
        os.link(files / "old", files / "l")
        name = "l"
    glyd.fail(*force, "--base", "old", "new", "-o", name, code=2)
    glyd("--base", "old", "new", "-o", "delta")
    glyd.fail("-d", *force, "--base", "old", "delta", "-o", name, code=2)
    assert (files / "old").read_bytes() == OLD
    assert (files / "new").read_bytes() == NEW


def test_the_base_is_never_removed(glyd, files):
    glyd("--base", "old", "--rm", "old", "new")
    assert (files / "old").read_bytes() == OLD
    assert not (files / "new").exists()
    glyd("-d", "--base", "old", "new.glyd")
    assert (files / "new").read_bytes() == NEW


def run(files, *words, stdin=None):
    command = [sys.executable, "-m", "glyd_cli", *words]
    return subprocess.run(command, cwd=files, input=stdin, capture_output=True, check=False)


def test_pipes(files):
    made = run(files, "-c", "--base", "old", stdin=NEW)
    assert made.returncode == 0
    assert len(made.stdout) < 600
    back = run(files, "-dc", "--base", "old", stdin=made.stdout)
    assert back.stdout == NEW
    (files / "delta").write_bytes(made.stdout)
    back = run(files, "-dc", "--base", "-", "delta", stdin=OLD)
    assert back.stdout == NEW
    reader, writer = os.pipe()
    with subprocess.Popen(["cat", "old"], cwd=files, stdout=writer):
        os.close(writer)
        command = [sys.executable, "-m", "glyd_cli", "-dc", "--base", f"/dev/fd/{reader}", "delta"]
        back = subprocess.run(command, cwd=files, capture_output=True, check=False, pass_fds=[reader])
        os.close(reader)
    assert back.stdout == NEW


def test_wrong_usage(glyd, files):
    assert "standard input" in glyd.fail("--base", "-", "-", code=1)
    assert "standard input" in glyd.fail("--base", "-", code=1)
    for flags in (("--list",), ("--info",), ("-9", "--long"), ("--json",)):
        glyd.fail(*flags, "--base", "old", "new", code=1)
    glyd.fail("--base", "", "new", code=1)
    assert sorted(os.listdir(files)) == ["new", "old"]


def test_several_inputs_share_the_base(glyd, files):
    (files / "third").write_bytes(NEW[::-1] + OLD)
    glyd("--base", "old", "new", "third")
    glyd("-d", "-f", "--base", "old", "new.glyd", "third.glyd")
    assert (files / "third").read_bytes() == NEW[::-1] + OLD


def test_listing_names_the_base(glyd, files):
    glyd("--base", "old", "new")
    name = codec.Base(OLD).id.hex()
    assert name in glyd("--list", "new.glyd").out.decode()
    assert name in glyd("--info", "new.glyd").out.decode()
    (entry,) = json.loads(glyd("--list", "--json", "new.glyd").out.decode())
    assert (entry["frames"][0]["base_id"], entry["frames"][0]["base_nbytes"]) == (name, len(OLD))
    glyd("new", "-o", "plain")
    assert "base" not in glyd("--list", "plain").out.decode()
    (entry,) = json.loads(glyd("--list", "--json", "plain").out.decode())
    assert entry["frames"][0]["base_id"] is None
    table = glyd("--list", "plain", "new.glyd").out.decode().splitlines()
    assert table[0].split()[-2:] == ["base", "file"]
    assert len({line.index(name[:4]) if name in line else 0 for line in table}) == 2


def test_bench(glyd, files):
    out = glyd("-b", "--base", "old", "--seconds", "0.01", "-T1", "--json", "new").out.decode()
    rows = json.loads(out)
    assert "glyd max" in out
    assert "xz" not in str(rows["files"])


def test_several_bases(glyd, files):
    third = NOISE[1_500_000:]
    (files / "third").write_bytes(third)
    both = NEW[:600_000] + third + b"and this"
    (files / "both").write_bytes(both)
    glyd("--base", "old", "--base", "third", "both", "-o", "delta")
    assert (files / "delta").stat().st_size < 700
    glyd("-d", "--base", "old", "--base", "third", "delta", "-o", "back")
    assert (files / "back").read_bytes() == both
    glyd("--test", "--base", "old", "--base=third", "delta")
    name = codec.Base(OLD, third).id.hex()
    assert name in glyd("--info", "delta").out.decode()
    rows = json.loads(
        glyd("-b", "--base", "old", "--base", "third", "--seconds", "0.01", "-T1", "--json", "both").out.decode()
    )
    assert rows["files"]


def test_several_bases_that_are_wrong(glyd, files):
    (files / "third").write_bytes(NOISE[1_500_000:])
    (files / "delta").unlink(missing_ok=True)
    glyd("--base", "old", "--base", "third", "new", "-o", "delta")
    swapped = glyd.fail("-d", "--base", "third", "--base", "old", "delta", "-o", "x", code=5)
    assert "it is --base old --base third" in swapped
    more = glyd.fail("--test", "--base", "new", "--base", "old", "--base", "third", "delta", code=5)
    assert "it is --base old --base third" in more
    assert "not the one" in glyd.fail("-d", "--base", "old", "delta", "-o", "x", code=5)  # one is missing
    other = glyd.fail("-d", "--base", "old", "--base", "new", "delta", "-o", "x", code=5)
    assert "one is missing, or has changed" in other
    for again in ("old", "./old", "link"):
        (files / "link").unlink(missing_ok=True)
        os.link(files / "old", files / "link")
        assert "twice" in glyd.fail("--base", "old", "--base", again, "new", "-o", "x", code=1)
    assert "nothing" in glyd.fail("--base", "old", "--base", "nothing", "new", "-o", "x", code=2)
    assert "standard input" in glyd.fail("--base", "-", "--base", "-", "new", "-o", "x", code=1)
    glyd.fail("--base", "old", "--base", "", "new", "-o", "x", code=1)
    glyd.fail("-f", "--base", "old", "--base", "third", "new", "-o", "third", code=2)
    assert not (files / "x").exists()
    glyd("--base", "old", "--base", "third", "--rm", "third", "-f", "-o", "y")
    assert (files / "third").read_bytes() == NOISE[1_500_000:]


def test_several_bases_through_pipes(files):
    (files / "third").write_bytes(NOISE[1_500_000:])
    made = run(files, "-c", "--base", "old", "--base", "-", "new", stdin=NOISE[1_500_000:])
    assert made.returncode == 0
    back = run(files, "-dc", "--base", "old", "--base", "third", stdin=made.stdout)
    assert back.stdout == NEW

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Without room: exit 2, the line says so and where, nothing is left over, nothing is lost."""

import os
import random
import shutil
import subprocess

import pytest

import glyd as codec
from glyd_cli.errors import FileError, write_error


@pytest.fixture
def noise(tmp_path):
    data = random.Random(1).randbytes(6 << 20)
    (tmp_path / "big").write_bytes(data)
    (tmp_path / "big.glyd").write_bytes(codec.compress(data, "turbo"))
    return data


CASES = [((), "big"), (("-d",), "big.glyd"), (("-d", "--no-sparse"), "big.glyd")]


@pytest.mark.parametrize(("verb", "name"), CASES)
@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("remove", [(), ("--rm",)])
def test_file_size_limit(glyd, tmp_path, noise, verb, name, older, remove):
    if older:
        (tmp_path / "out").write_bytes(b"older")
    before = sorted(os.listdir(tmp_path))
    content = (tmp_path / name).read_bytes()
    err = glyd.fail(*verb, *remove, "-f", "-q", name, "-o", "out", code=2, fsize=64 << 10)
    assert err.startswith("glyd: out: write failed after 65536 bytes: ")
    assert "limit" in err
    assert sorted(os.listdir(tmp_path)) == before
    assert (tmp_path / name).read_bytes() == content
    if older:
        assert (tmp_path / "out").read_bytes() == b"older"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
@pytest.mark.parametrize(("verb", "name"), CASES[:2])
def test_dev_full(glyd, tmp_path, noise, verb, name):
    content = (tmp_path / name).read_bytes()
    with open("/dev/full", "wb") as full:
        assert "no space left" in glyd.fail(*verb, "-c", name, code=2, stdout=full)
        with (tmp_path / name).open("rb") as source:
            assert "standard output: write failed" in glyd.fail(*verb, code=2, stdin=source, stdout=full)
    assert "/dev/full: write failed" in glyd.fail(*verb, "--rm", name, "-o", "/dev/full", code=2)
    assert os.path.exists("/dev/full")
    assert (tmp_path / name).read_bytes() == content


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_what_is_printed_cannot_be_written(glyd, tmp_path, noise):
    with open("/dev/full", "wb") as full:
        for args in (("--help",), ("--version",), ("--list", "big.glyd"), ("--info", "--json", "big.glyd")):
            assert "standard output" in glyd.fail(*args, code=2, stdout=full)
        glyd("big", "-o", "x", stderr=full)


def test_small_disk(glyd, tmp_path, noise):
    """A disk of 1 MB, as far as a namespace may be made here."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    script = (
        "mkdir m && mount -t tmpfs -o size=1m t m || exit 99\n"
        '"$1" -q big -o m/o.z; echo $?; ls -A m\n'
        'echo older >m/o.z; "$1" -q -f big -o m/o.z; echo $?; ls -A m; cat m/o.z\n'
        '"$1" -q -d -f --rm big.glyd -o m/o.z; echo $?; ls -A m; cat m/o.z\n'
        '"$1" -q -c big >m/c; echo $?\n'
    )
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "sh", glyd.path], cwd=tmp_path, capture_output=True, text=True
    )
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip(f"no namespaces here: {done.stderr.strip()[:100]}")
    assert done.stdout.split("\n") == ["2", "2", "o.z", "older", "2", "o.z", "older", "2", ""]
    lines = done.stderr.strip().split("\n")
    assert len(lines) == 4
    assert all("no space left on the device" in line for line in lines)
    assert lines[0].startswith("glyd: m/o.z: write failed after ")
    assert (tmp_path / "big").read_bytes() == noise
    assert (tmp_path / "big.glyd").exists()


@pytest.mark.parametrize(
    ("number", "word"), [(28, "no space left"), (122, "quota"), (27, "limit"), (5, "input/output")]
)
def test_words_for_running_out_of_room(number, word):
    error = write_error("o", OSError(number, "x"), 7)
    assert isinstance(error, FileError)
    assert word in str(error)
    assert "after 7 bytes" in str(error)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_folder(glyd, tmp_path, noise):
    os.chmod(tmp_path, 0o555)
    try:
        assert "cannot create: permission denied" in glyd.fail("-f", "big", "-o", "x", code=2)
    finally:
        os.chmod(tmp_path, 0o755)


def test_folder_that_cannot_be_written(glyd, tmp_path, noise):
    assert "cannot create" in glyd.fail("big", "-o", "no/such/folder/x", code=2)
    assert "cannot" in glyd.fail("big", "-o", "/proc/x", code=2)
    assert "not a directory" in glyd.fail("big", "-o", "big.glyd/x", code=2)

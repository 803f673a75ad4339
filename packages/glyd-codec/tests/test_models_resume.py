# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Packing that was stopped goes on; two runs never write the same output."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pytest

import glyd
from glyd_codec._models import _resume

TEMPORARY = ".p.glyd-tmp"


def tree(folder):
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            full = os.path.join(path, name)
            found[os.path.relpath(full, folder)] = open(full, "rb").read()
    return found


@pytest.fixture(scope="module")
def model(tmp_path_factory, tools):
    """Three shards with packs, verbatim tensors large and small, and one that does not pay."""
    folder = tmp_path_factory.mktemp("model")
    weight_map = {}
    for s in range(3):
        tensors = {
            f"{s}.a": ("BF16", (256, 512), tools.make_bf16(256 * 512, s)),
            f"{s}.b": ("BF16", (128, 512), tools.make_bf16(128 * 512, s + 9)),
            f"{s}.norm": ("BF16", (512,), bytes(1024)),
            f"{s}.noise": ("BF16", (256, 512), random.Random(s).randbytes(256 * 512 * 2)),
            f"{s}.f32": ("F32", (300, 300), random.Random(s + 9).randbytes(360_000)),
        }
        name = f"model-{s}.safetensors"
        (folder / name).write_bytes(tools.make_safetensors(tensors, {"format": "pt"}))
        weight_map |= dict.fromkeys(tensors, name)
    import json

    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    (folder / "config.json").write_text("{}")
    (folder / "sub").mkdir()
    (folder / "sub" / "x.json").write_text("1")
    return folder


@pytest.fixture(scope="module")
def whole(model, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "p"
    glyd.pack_model(model, out)
    return tree(out)


@pytest.fixture
def stopped(model, tmp_path, monkeypatch):
    """Stop packing after n tensors; return what is left, by path."""
    monkeypatch.setattr(_resume, "_DUE_NBYTES", 1)

    def run(n, **options):
        calls = []

        def stop(*now):
            calls.append(now)
            if len(calls) == n:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            glyd.pack_model(model, tmp_path / "p", progress=stop, **options)
        return tree(tmp_path)

    return run


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n", range(1, 16))
def test_stopped_anywhere(model, whole, stopped, tmp_path, n, threads):
    stopped(n, threads=threads)
    assert os.listdir(tmp_path) == [TEMPORARY]
    report = glyd.pack_model(model, tmp_path / "p", threads=threads)
    assert n - 1 <= report.n_resumed <= n
    assert tree(tmp_path / "p") == whole
    assert os.listdir(tmp_path) == ["p"]
    assert glyd.verify_model(tmp_path / "p").n_tensors == 15


def test_stopped_again_and_again(model, whole, stopped, tmp_path):
    for _ in range(5):
        stopped(6)  # progress counts what was there, too
    before = stopped(12)
    assert any(path.endswith("model-2.safetensors") for path in before)
    assert glyd.pack_model(model, tmp_path / "p").n_resumed >= 10
    assert tree(tmp_path / "p") == whole


def test_nothing_done_leaves_nothing(model, tmp_path):
    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        glyd.pack_model(model, tmp_path / "p", progress=stop)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("damage", "n"),
    [("pack", 8), ("verbatim", 8), ("cut", 6), ("gone", 4), ("journal", 2), ("torn journal", 8), ("more files", 9)],
)
def test_what_is_damaged_is_done_again(model, whole, stopped, tmp_path, damage, n):
    stopped(9)
    outer = tmp_path / TEMPORARY
    shard = outer / "model" / "model-0.safetensors"
    data = bytearray(shard.read_bytes())
    at_packs = data.index(b"\x9dGLW")
    if damage == "pack":
        data[at_packs + 5000] ^= 1
    elif damage == "verbatim":
        data[-7] ^= 1
    elif damage == "cut":
        del data[len(data) // 2 :]
    shard.write_bytes(data)
    if damage == "gone":
        shard.unlink()
    journal = outer / "journal"
    lines = journal.read_bytes().splitlines(keepends=True)
    if damage == "journal":
        journal.write_bytes(b"".join(lines[:3]) + lines[3].replace(b"tensor", b"Tensor") + b"".join(lines[4:]))
    elif damage == "torn journal":
        journal.write_bytes(b"".join(lines)[:-5] + bytes(3))
    elif damage == "more files":
        (outer / "model" / "stray").write_bytes(b"x")
        (outer / "model" / "sub").mkdir()
        (outer / "model" / "sub" / "x.json").write_bytes(b"half")
        (outer / "model" / "config.json").symlink_to(tmp_path / "elsewhere")
    report = glyd.pack_model(model, tmp_path / "p")
    assert tree(tmp_path / "p") == whole
    assert report.n_resumed == n
    assert os.listdir(tmp_path) == ["p"]


def test_another_job_starts_anew(model, stopped, tmp_path, tools):
    stopped(9)
    report = glyd.pack_model(model, tmp_path / "p", "mma12")
    assert (report.layout, report.n_resumed) == ("mma12", 0)
    glyd.verify_model(tmp_path / "p")


def test_a_source_that_changed_starts_anew(model, stopped, tmp_path):
    stopped(9)
    status = os.stat(model / "model-1.safetensors")
    os.utime(model / "model-1.safetensors", ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert glyd.pack_model(model, tmp_path / "p").n_resumed == 0


def test_a_source_that_changes_meanwhile(model, tmp_path, tools):
    source = tmp_path / "m"
    source.mkdir()
    path = source / "model.safetensors"
    path.write_bytes((model / "model-0.safetensors").read_bytes())

    def touch(*_):
        os.utime(path, (1, 1))

    with pytest.raises(glyd.FormatError, match=r"model\.safetensors: changed while"):
        glyd.pack_model(source, tmp_path / "p", progress=touch)
    assert os.listdir(tmp_path) == ["m"]


def test_one_run_at_a_time(model, whole, stopped, tmp_path):
    stopped(4)

    def second(*_):
        before = tree(tmp_path)
        for call in (
            lambda: glyd.pack_model(model, tmp_path / "p"),
            lambda: glyd.pack_model(model, tmp_path / "p", "mma12"),
        ):
            with pytest.raises(BlockingIOError) as caught:
                call()
            assert caught.value.filename == str(tmp_path / "p")
        assert tree(tmp_path).keys() == before.keys()

    glyd.pack_model(model, tmp_path / "p", progress=second)
    assert tree(tmp_path / "p") == whole


def test_errors_leave_nothing_even_of_an_earlier_run(model, stopped, tmp_path):
    stopped(9)
    code = """
import resource, signal, sys, glyd
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
try: glyd.pack_model(sys.argv[1], "p")
except OSError as error: print(error.errno)
"""
    command = [sys.executable, "-I", "-c", code, str(model)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "27\n", done
    assert os.listdir(tmp_path) == []


def test_what_is_in_the_way_is_not_touched(model, tmp_path):
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "mine").write_bytes(b"mine")
    for make in (lambda p: p.symlink_to(tmp_path / "victim"), lambda p: p.write_bytes(b"x")):
        make(tmp_path / TEMPORARY)
        with pytest.raises(FileExistsError):
            glyd.pack_model(model, tmp_path / "p")
        (tmp_path / TEMPORARY).unlink()
    assert tree(tmp_path) == {"victim/mine": b"mine"}


def test_killed(model, whole, tmp_path):
    """SIGKILL at any moment: the next run makes the same bytes."""
    code = """
import sys, glyd
from glyd_codec._models import _resume
_resume._DUE_NBYTES = 1
print(flush=True)
glyd.pack_model(sys.argv[1], "p")
"""
    for delay in (0.0, 0.003, 0.006, 0.01, 0.015, 0.02, 0.03):
        command = [sys.executable, "-I", "-c", code, str(model)]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        if (tmp_path / "p").exists():
            break
    if not (tmp_path / "p").exists():
        glyd.pack_model(model, tmp_path / "p")
    assert tree(tmp_path / "p") == whole
    assert set(os.listdir(tmp_path)) <= {"p", TEMPORARY}  # killed between renaming and removing: an empty one is left

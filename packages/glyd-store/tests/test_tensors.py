# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Tensors of stored model files, read one at a time."""

import json
import random
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import glyd
from glyd_store import ObjectNotFoundError, Store

COMMAND = Path(sys.executable).parent / "glyd-store"
N, ROW = 64, 4096


def model(seed, changed=()):
    """Return a safetensors file of N tensors of two rows, and the bytes of each; some differ from those of the seed."""
    tensors = {
        f"layer.{i}.weight": random.Random(seed + i + (1000 if i in changed else 0)).randbytes(2 * ROW)
        for i in range(N)
    }
    header, at = {"__metadata__": {"made": "here"}}, 0
    for name, data in tensors.items():
        header[name] = {"dtype": "BF16", "shape": [2, ROW // 2], "data_offsets": [at, at + len(data)]}
        at += len(data)
    raw = json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + b"".join(tensors.values()), tensors


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "s", level="fast", threads=1) as store:
        store.put("model", model(1)[0])
        store.put("model", model(1, {3, 40})[0])
        yield store


def test_open_tensors(store):
    for number, changed in ((1, ()), (2, {3, 40})):
        wanted = model(1, changed)[1]
        with store.open_tensors(number, "bytes") as tensors:
            assert tensors.keys() == sorted(wanted)
            assert tensors.offset_keys() == list(wanted)
            assert tensors.metadata() == {"made": "here"}
            for name in ("layer.40.weight", "layer.3.weight", "layer.0.weight", "layer.63.weight"):
                assert tensors.get_tensor(name) == wanted[name]
            part = tensors.get_slice("layer.40.weight")
            assert (part.get_shape(), part.get_dtype()) == ([2, ROW // 2], "BF16")
            assert part[1:2] == wanted["layer.40.weight"][ROW:]
            with pytest.raises(KeyError):
                tensors.get_tensor("layer.64.weight")
    assert store.info(2).n_decodes == 2


def test_what_is_no_model(store):
    store.put("text", b"no tensors " * 1000)
    with pytest.raises(glyd.FormatError):
        store.open_tensors("text", "bytes")
    with pytest.raises(ObjectNotFoundError):
        store.open_tensors("nothing")


def test_command(store, tmp_path):
    def run(*words, code=0):
        done = subprocess.run([COMMAND, str(tmp_path / "s"), "tensors", *words], capture_output=True, check=False)
        assert done.returncode == code, done.stderr
        assert b"Traceback" not in done.stderr
        return done.stdout

    listed = [json.loads(line) for line in run("model", "--json").splitlines()]
    assert listed[0] == {"name": "layer.0.weight", "dtype": "BF16", "shape": [2, ROW // 2]}
    assert len(listed) == N
    assert run("model").count(b"\n") == N
    wanted = model(1, {3, 40})[1]["layer.3.weight"]
    assert run("model", "--tensor", "layer.3.weight") == wanted
    run("@1", "--tensor", "layer.3.weight", "-o", str(tmp_path / "out"))
    assert (tmp_path / "out").read_bytes() == model(1)[1]["layer.3.weight"] != wanted
    run("model", "--tensor", "none", code=6)
    run("nothing", code=6)
    store.put("text", b"no tensors " * 1000)
    run("text", code=3)

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Tensors of packed models one by one: whole, in rows, into buffers of the caller."""

from __future__ import annotations

import json
import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glyd


@pytest.fixture(scope="module")
def tensors(tools):
    return {
        "w": ("BF16", (300, 500), tools.make_bf16(150_000)),
        "stack": ("BF16", (3, 70, 512), tools.make_bf16(3 * 70 * 512)),
        "norm": ("BF16", (512,), tools.make_bf16(512)),
        "conv": ("BF16", (8, 4, 3, 3), tools.make_bf16(288)),
        "f": ("F32", (10, 7), random.Random(1).randbytes(280)),
        "scalar": ("I64", (), b"12345678"),
        "empty": ("BF16", (0, 5), b""),
        "no columns": ("BF16", (5, 0), b""),
        "future": ("Q3", (4, 4), b"abcdef"),
    }


@pytest.fixture(scope="module", params=["tiered", "mma12"])
def packed(request, tensors, tools, tmp_path_factory):
    base = tmp_path_factory.mktemp("reading")
    (base / "m").mkdir()
    names = list(tensors)
    weight_map = {}
    for i, part in enumerate((names[:4], names[4:])):
        file = f"{i}.safetensors"
        (base / "m" / file).write_bytes(tools.make_safetensors({n: tensors[n] for n in part}))
        weight_map |= dict.fromkeys(part, file)
    (base / "m" / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    glyd.pack_model(base / "m", base / "p", request.param)
    return base / "p", request.param


def test_whole_tensors(packed, tensors):
    path, layout = packed
    with glyd.open_model(path) as model:
        assert model.layout == layout
        assert set(model.names) == set(tensors)
        for name, (dtype, shape, data) in tensors.items():
            info = model.info(name)
            assert (info.name, info.dtype, info.shape, info.nbytes) == (name, dtype, shape, len(data))
            assert info.layout == (layout if name in {"w", "stack"} else "verbatim")
            assert model.read(name, threads=2) == data
            out = bytearray(len(data) + 3)
            assert model.read(name, out=out) == len(data)
            assert out == data + bytes(3)
    assert model.info("w").file == "0.safetensors"  # a closed model still knows, and opens again
    assert model.read("norm") == tensors["norm"][2]
    model.close()


@given(st.sampled_from(["w", "stack", "norm", "conv", "f", "scalar", "empty", "no columns"]), st.data())
@settings(max_examples=150, deadline=None)
def test_rows(packed, tensors, name, data):
    raw = tensors[name][2]
    with glyd.open_model(packed[0]) as model:
        rows = model.info(name).n_rows
        first = data.draw(st.integers(0, rows))
        n = data.draw(st.integers(0, rows - first))
        step = len(raw) // rows if rows else 0
        assert model.read(name, first_row=first, n_rows=n) == raw[first * step : (first + n) * step]
        assert model.read(name, first_row=first) == raw[first * step :]


def test_numpy(packed, tensors):
    np = pytest.importorskip("numpy")
    with glyd.open_model(packed[0]) as model:
        out = np.empty((300, 500), dtype=np.uint16)
        assert model.read("w", out=out) == out.nbytes
        assert out.tobytes() == tensors["w"][2]
        rows = np.frombuffer(model.read("f", first_row=2, n_rows=3), dtype="<f4")
        assert rows.tobytes() == tensors["f"][2][56:140]


def test_wrong_arguments(packed):
    with glyd.open_model(packed[0]) as model:
        with pytest.raises(KeyError):
            model.read("nothing")
        with pytest.raises(KeyError):
            model.info("w_packed")
        for first, n in ((-1, 1), (0, 301), (301, 0), (300, 1), (0, -1)):
            with pytest.raises(glyd.ParameterError, match="'w', which has 300"):
                model.read("w", first_row=first, n_rows=n)
        with pytest.raises(glyd.ParameterError, match="rows are not known"):
            model.read("future", n_rows=1)
        with pytest.raises(glyd.BufferTooSmallError) as caught:
            model.read("w", out=bytearray(10))
        assert (caught.value.expected, caught.value.found) == (300_000, 10)
        with pytest.raises(BufferError):
            model.read("w", out=bytes(300_000))
    with pytest.raises(glyd.FormatError, match="no packed model"):
        glyd.open_model(packed[0].parent / "m")


def test_damage(packed, tmp_path, tensors):
    import shutil

    shutil.copytree(packed[0], tmp_path / "p")
    path = tmp_path / "p" / "0.safetensors"
    good = path.read_bytes()
    start = 8 + int.from_bytes(good[:8], "little")

    def damaged(at, value=None):
        data = bytearray(good)
        data[at] = data[at] ^ 1 if value is None else value
        path.write_bytes(data)
        return glyd.open_model(tmp_path / "p")

    begin = json.loads(good[8:start])["w_packed"]["data_offsets"][0] + start
    with damaged(begin + 20_000) as model:  # whole tensors are checked against their hash
        with pytest.raises(glyd.ChecksumError, match=r"0\.safetensors: tensor 'w': XXH3"):
            model.read("w")
        assert model.read("stack") == tensors["stack"][2]
    with damaged(begin + 128, 9) as model, pytest.raises(glyd.CorruptDataError, match="tensor 'w'"):
        model.read("w", n_rows=5)
    with damaged(begin + 8, 1) as model, pytest.raises(glyd.FormatError, match="tensor 'w'"):
        model.read("w", n_rows=1)
    with damaged(len(good) - 1) as model, pytest.raises(glyd.ChecksumError, match="tensor 'conv'"):
        model.read("conv")
    assert good[start - 1 : start] == b" "
    with damaged(start - 1, 9) as model, pytest.raises(glyd.ChecksumError, match=r"0\.safetensors: header"):
        model.read("norm")
    path.write_bytes(good[:-1])
    with glyd.open_model(tmp_path / "p") as model, pytest.raises(glyd.CorruptDataError, match=f"{len(good) - 1} bytes"):
        model.read("norm")
    os.unlink(path)
    with glyd.open_model(tmp_path / "p") as model, pytest.raises(FileNotFoundError):
        model.read("norm")

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Directories of packs that another program saved become packed models."""

from __future__ import annotations

import json
import os

import pytest

import glyd


@pytest.fixture
def saved(tmp_path, tools):
    """What a program saves that holds packs: two files, packs anywhere, a stack with its shape noted."""
    folder = tmp_path / "s"
    folder.mkdir()
    weights = {
        "a": ((128, 512), tools.make_bf16(128 * 512)),
        "stack": ((2, 64, 512), tools.make_bf16(2 * 64 * 512, 2)),
        "b": ((64, 512), tools.make_bf16(64 * 512, 3)),
    }

    def packed(name):
        shape, data = weights[name]
        pack = glyd.pack_weights(data, shape[0] if len(shape) == 2 else shape[0] * shape[1], shape[-1])
        return "U8", (len(pack) + 128,), pack + bytes(128)

    norm, table = tools.make_bf16(512, 4), tools.make_bf16(16, 5)
    first = {"norm": ("BF16", (512,), norm), "a_packed": packed("a"), "stack_packed": packed("stack")}
    second = {"b_packed": packed("b"), "x_packed": ("U8", (3,), b"abc"), "small": ("BF16", (4, 4), table)}
    metadata = {"format": "pt", "glyd_shapes": json.dumps({"stack": [2, 64, 512]})}
    (folder / "model-0.safetensors").write_bytes(tools.make_safetensors(first, metadata))
    (folder / "model-1.safetensors").write_bytes(tools.make_safetensors(second))
    weight_map = dict.fromkeys(first, "model-0.safetensors") | dict.fromkeys(second, "model-1.safetensors")
    index = {"metadata": {"total_size": 1}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text('{"a": 1, "quantization_config": {"quant_method": "glyd", "version": 1}}')
    (folder / "generation_config.json").write_text("{}")
    return folder, {name: data for name, (_, data) in weights.items()} | {
        "norm": norm,
        "small": table,
        "x_packed": b"abc",
    }


def test_sealed_models_are_packed_models(saved, tmp_path):
    folder, contents = saved
    with pytest.raises(glyd.FormatError, match="seal_model"):
        glyd.fit(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    report = glyd.seal_model(folder, threads=2)
    assert (report.layout, report.n_tensors, report.n_packed) == ("tiered", 6, 3)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "glyd.json"} == before
    assert glyd.verify_model(folder) == report
    assert glyd.fit(folder).packed == "tiered"
    with glyd.open_model(folder) as model:
        assert {name: model.read(name) for name in model.names} == contents
        assert model.info("stack").shape == (2, 64, 512)
    glyd.unpack_model(folder, tmp_path / "u")
    assert json.loads((tmp_path / "u" / "config.json").read_bytes()) == {"a": 1}
    index = json.loads((tmp_path / "u" / "model.safetensors.index.json").read_bytes())
    assert set(index["weight_map"]) == set(contents)
    assert index["metadata"]["total_size"] == sum(map(len, contents.values()))
    # what was unpacked is a checkpoint: packing it gives a model of the same tensors
    glyd.pack_model(tmp_path / "u", tmp_path / "p")
    with glyd.open_model(tmp_path / "p") as model:
        assert {name: model.read(name) for name in model.names} == contents
    raw = (tmp_path / "u" / "model-0.safetensors").read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    assert header["__metadata__"] == {"format": "pt"}
    assert list(header)[1:] == ["norm", "a", "stack"]


def test_refusals(saved, tmp_path, tools):
    folder, _ = saved
    path = folder / "model-1.safetensors"
    good = path.read_bytes()

    def refused(kind, words):
        with pytest.raises(kind, match=words):
            glyd.seal_model(folder)
        assert not any("glyd" in name for name in os.listdir(folder))

    path.write_bytes(good[:-1])
    refused(glyd.FormatError, r"model-1\.safetensors")
    data = bytearray(good)
    data[data.index(b"\x9dGLW") + 128] ^= 1
    path.write_bytes(data)
    refused(glyd.FormatError, "'b_packed'")
    data = bytearray(good)
    data[data.index(b"\x9dGLW") + 4] = 9
    path.write_bytes(data)
    refused(glyd.UnsupportedVersionError, "'b_packed'")
    other = glyd.pack_weights(tools.make_bf16(64 * 512), 64, 512, layout="mma12")
    tensors = {"b_packed": ("U8", (len(other),), other), "x_packed": ("U8", (3,), b"abc"), "small": ("U8", (1,), b"x")}
    path.write_bytes(tools.make_safetensors(tensors))
    refused(glyd.ParameterError, "mma12, tiered")
    for text, kind, words in (
        ("{", glyd.FormatError, "glyd_shapes"),
        ('{"b": [64, -512]}', glyd.FormatError, "no shape"),
        ('{"b": [32, 512]}', glyd.ParameterError, "no tensor of shape"),
    ):
        changed = {"b_packed": ("U8", (len(other),), other)} | {k: tensors[k] for k in ("x_packed", "small")}
        path.write_bytes(tools.make_safetensors(changed, {"glyd_shapes": text}))
        refused(kind, words)
    path.write_bytes(good)
    glyd.seal_model(folder)
    with pytest.raises(FileExistsError):
        glyd.seal_model(folder)
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "model.safetensors").write_bytes(tools.make_safetensors({"t": ("U8", (1,), b"x")}))
    with pytest.raises(glyd.ParameterError, match="none"):
        glyd.seal_model(tmp_path / "plain")
    with pytest.raises(FileNotFoundError):
        glyd.seal_model(tmp_path / "nothere")

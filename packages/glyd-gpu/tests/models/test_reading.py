# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The reader that brings packed directories to a device; here to the CPU, on CUDA through pinned memory."""

import json

import pytest
import torch
import transformers
from safetensors import safe_open
from transformers import AutoConfig, AutoModelForCausalLM

import glyd
import glyd_codec
import glyd_gpu
from glyd_gpu import _loading, _reading
from glyd_gpu._checkpoint import read_sources
from glyd_gpu.integrations import transformers as integration

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("piece", [1000, 1 << 24])
def test_every_byte(checkpoint, monkeypatch, device, piece):
    monkeypatch.setattr(_reading, "PIECE", piece)
    made = checkpoint("qwen3-moe")
    reader = _reading.Reader(torch.device(device))
    with safe_open(made.packed / "model.safetensors", "pt") as file:
        for key, source in read_sources([str(made.packed / "model.safetensors")]).items():
            tensor = _reading.FileTensor(source, reader)
            expected = file.get_tensor(key)
            assert torch.equal(tensor[...].cpu(), expected)
            assert tensor[...].device.type == device
            assert (tensor.get_dtype(), tensor.get_shape()) == (source.dtype, list(expected.shape))
            with pytest.raises(NotImplementedError):
                tensor[0]


def read(path, device="cpu"):
    config = AutoConfig.from_pretrained(path)
    kind = getattr(transformers, config.architectures[0])
    return _loading._read_to_device(kind, str(path), config, torch.device(device), {"device_map": {"": device}})


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["qwen3-tied", "qwen3-moe", "gpt-oss"])
def test_models(checkpoint, name, device):
    made = checkpoint(name)
    model = read(made.packed, device)
    usual = AutoModelForCausalLM.from_pretrained(made.packed)
    assert all(torch.equal(a.cpu(), b) for a, b in zip(model.parameters(), usual.parameters(), strict=True))
    assert model.name_or_path == str(made.packed)
    assert model.generation_config.to_dict() == usual.generation_config.to_dict()
    if device == "cpu":
        glyd_gpu.set_exact(model, True)
        assert torch.equal(made.compute(model), made.logits)


@pytest.mark.parametrize("name", ["qwen3-tied", "qwen3-moe", "gpt-oss"])
@pytest.mark.parametrize("threads", [True, False])
def test_transformers_own_loading(checkpoint, name, threads, monkeypatch):
    """Packs are read by our reader in place of reads that have not started; without threads all of them."""
    made = checkpoint(name)
    usual = AutoModelForCausalLM.from_pretrained(made.packed)
    monkeypatch.setattr(integration, "READ_DEVICES", {"cpu"})
    if not threads:
        monkeypatch.setenv("HF_DEACTIVATE_ASYNC_LOAD", "1")
    reads = []
    read_one = _reading.Reader.read
    monkeypatch.setattr(_reading.Reader, "read", lambda *args: reads.append(args[1:]) or read_one(*args))
    model = AutoModelForCausalLM.from_pretrained(made.packed, device_map={"": "cpu"})
    packs = [s for s in read_sources([str(made.packed / "model.safetensors")]).values() if s.meta]
    assert len(packs) - len(reads) in (range(len(packs)) if threads else (0,))
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), usual.parameters(), strict=True))
    glyd_gpu.set_exact(model, True)
    assert torch.equal(made.compute(model), made.logits)


def test_shards(checkpoint, tmp_path):
    made = checkpoint("qwen3-tied")
    AutoModelForCausalLM.from_pretrained(made.plain).save_pretrained(tmp_path / "plain", max_shard_size="300KB")
    glyd_codec.pack_model(tmp_path / "plain", tmp_path / "packed")
    (tmp_path / "packed" / "stray.safetensors").write_bytes(b"no file of the model")
    assert torch.equal(made.compute(read(tmp_path / "packed")), made.logits)
    index = tmp_path / "packed" / "model.safetensors.index.json"
    good = index.read_text()
    for name in ("missing.safetensors", "../plain/model.safetensors", 7):
        index.write_text(json.dumps({"weight_map": {"a": name}}))
        with pytest.raises(glyd.FormatError, match="no such weight file"):
            _reading.local_files(str(tmp_path / "packed"))
    for text in ("{}", "[", '{"weight_map": [1]}'):
        index.write_text(text)
        with pytest.raises(glyd.FormatError, match="no index of weights"):
            _reading.local_files(str(tmp_path / "packed"))
    index.write_text(good)
    assert len(_reading.local_files(str(tmp_path / "packed"))) > 2


def test_cut_while_it_is_read(checkpoint, tmp_path):
    made = checkpoint("llama")
    path = tmp_path / "model.safetensors"
    data = (made.packed / "model.safetensors").read_bytes()
    path.write_bytes(data)
    source = max(read_sources([str(path)]).values(), key=lambda s: s.offset)
    path.write_bytes(data[: source.offset + 1])
    with pytest.raises(glyd.TruncatedError, match="ends at byte"):
        _reading.FileTensor(source, _reading.Reader(torch.device("cpu")))[...]

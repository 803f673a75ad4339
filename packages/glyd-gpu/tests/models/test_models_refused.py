# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What cannot be loaded packed is refused with what to do, and nothing is half loaded."""

import json
import shutil
import warnings

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

import glyd
import glyd_gpu
from glyd_gpu._checkpoint import read_sources


def saved(made, path, change):
    model = AutoModelForCausalLM.from_pretrained(made.plain)
    change(model)
    model.save_pretrained(path)
    return path


def test_fp16(checkpoint, tmp_path):
    path = saved(checkpoint("llama"), tmp_path / "fp16", lambda model: model.to(torch.float16))
    with pytest.raises(glyd.ParameterError, match=r"is fp16.*model\.to\(torch\.bfloat16\)"):
        glyd_gpu.from_pretrained(path, device="cpu")


def test_fp32_that_is_bf16(checkpoint, tmp_path):
    made = checkpoint("llama")
    path = saved(made, tmp_path / "fp32", lambda model: model.to(torch.float32))
    model = glyd_gpu.from_pretrained(path, device="cpu", exact=True)
    assert torch.equal(made.compute(model), made.logits)
    assert model.dtype == torch.bfloat16


def test_directory_of_fp32(checkpoint, tmp_path):
    """The packer of directories leaves fp32 as it is, and so it is loaded."""
    made = checkpoint("llama")
    path = saved(made, tmp_path / "fp32", lambda model: model.to(torch.float32))
    glyd.pack_model(path, tmp_path / "packed")
    expected = made.compute(AutoModelForCausalLM.from_pretrained(path))
    assert expected.dtype == torch.float32
    assert torch.equal(made.compute(AutoModelForCausalLM.from_pretrained(tmp_path / "packed")), expected)
    model = glyd_gpu.from_pretrained(tmp_path / "packed", device="cpu")
    assert torch.equal(made.compute(model), expected)
    assert glyd_gpu.report(model).plain["model.layers.0.mlp.up_proj.weight"] == "float32, not bf16"


def test_an_fp32_head_beside_bf16_is_not_rounded_in_silence(checkpoint, tmp_path):
    def change(model):
        model.lm_head.to(torch.float32)
        model.lm_head.weight.data[3, 5] = 1 / 3

    made = checkpoint("qwen3-untied")
    path = saved(made, tmp_path / "mixed", change)
    assert read_sources([str(path / "model.safetensors")])["lm_head.weight"].dtype == "F32"
    glyd.pack_model(path, tmp_path / "packed")
    expected = made.compute(AutoModelForCausalLM.from_pretrained(path, dtype=torch.bfloat16))
    words = r"lm_head\.weight is fp32 beside bf16 matrices, and is rounded to bf16.*0\.333"
    for found in (path, tmp_path / "packed"):
        with pytest.warns(glyd_gpu.RoundingWarning, match=words):
            model = glyd_gpu.from_pretrained(found, device="cpu", exact=True)
        assert torch.equal(made.compute(model), expected)
    exact = saved(made, tmp_path / "exact", lambda model: model.lm_head.to(torch.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error", glyd_gpu.RoundingWarning)
        glyd_gpu.from_pretrained(exact, device="cpu")


def test_fp32(checkpoint, tmp_path):
    def change(model):
        model.to(torch.float32)
        model.model.layers[1].mlp.up_proj.weight.data[7, 9] = 1 / 3

    path = saved(checkpoint("llama"), tmp_path / "fp32", change)
    with pytest.raises(glyd.ParameterError, match=r"layers\.1\.mlp\.up_proj\.weight is fp32.*0\.333"):
        glyd_gpu.from_pretrained(path, device="cpu")


def test_quantized(checkpoint, tmp_path):
    path = saved(checkpoint("llama"), tmp_path / "quantized", lambda model: None)
    config = json.loads((path / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "gptq", "bits": 4}
    (path / "config.json").write_text(json.dumps(config))
    with pytest.raises(glyd.ParameterError, match=r"quantized \(gptq\).*bf16 checkpoint"):
        glyd_gpu.from_pretrained(path, device="cpu")


def test_fp8_weights(checkpoint, tmp_path):
    from safetensors.torch import load_file, save_file

    path = saved(checkpoint("llama"), tmp_path / "fp8", lambda model: None)
    tensors = load_file(path / "model.safetensors")
    key = "model.layers.0.mlp.up_proj.weight"
    save_file(tensors | {key: tensors[key].to(torch.float8_e4m3fn)}, path / "model.safetensors", {"format": "pt"})
    with pytest.raises(glyd.ParameterError, match="F8_E4M3: a quantized checkpoint"):
        glyd_gpu.from_pretrained(path, device="cpu")


def test_arguments(checkpoint):
    made = checkpoint("llama")
    with pytest.raises(glyd.ParameterError, match="kv_cache must be 'plain' or 'packed', not 'tight'"):
        glyd_gpu.from_pretrained(made.packed, kv_cache="tight")
    with pytest.raises(glyd.ParameterError, match="layout must be one of auto, mma12, tiered; not 'int4'"):
        glyd_gpu.from_pretrained(made.packed, layout="int4")
    with pytest.raises(glyd.ParameterError, match="packed as tiered"):
        glyd_gpu.from_pretrained(made.packed, layout="mma12", device="cpu")
    with pytest.raises(glyd.ParameterError, match="device or device_map"):
        glyd_gpu.from_pretrained(made.packed, device="cpu", device_map="auto")
    for dtype in (torch.float16, torch.float32):
        with pytest.raises(glyd.ParameterError, match=f"cannot be loaded as {dtype}: leave dtype out"):
            AutoModelForCausalLM.from_pretrained(made.packed, dtype=dtype)
    with pytest.raises(glyd.ParameterError, match="verify=True is for packed"):
        glyd_gpu.from_pretrained(made.plain, verify=True, device="cpu")
    with pytest.raises(glyd.ParameterError, match="not packed"):
        glyd_gpu.save_pretrained(AutoModelForCausalLM.from_pretrained(made.plain), "nowhere")


@pytest.mark.parametrize("form", ["plain", "packed"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, "float16"])
def test_another_dtype_was_ignored(checkpoint, form, dtype):
    """A model of bf16 came back where fp16 was asked for."""
    path = getattr(checkpoint("llama"), form)
    with pytest.raises(glyd.ParameterError, match=r"cannot be loaded as (torch\.)?float"):
        glyd_gpu.from_pretrained(path, device="cpu", dtype=dtype)


@pytest.mark.parametrize("dtype", [None, "auto", "bfloat16", torch.bfloat16])
def test_bf16_may_be_named(checkpoint, dtype):
    made = checkpoint("llama")
    model = glyd_gpu.from_pretrained(made.packed, device="cpu", exact=True, dtype=dtype)
    assert torch.equal(made.compute(model), made.logits)


def test_fp64_was_rounded_in_silence(checkpoint, tmp_path):
    path = saved(checkpoint("llama"), tmp_path / "fp64", lambda model: model.to(torch.float64))
    with pytest.raises(glyd.ParameterError, match=r"is fp64.*model\.to\(torch\.bfloat16\)"):
        glyd_gpu.from_pretrained(path, device="cpu")


@pytest.mark.parametrize(
    ("device", "what"),
    [
        ("gpu0", "must be 'cpu' or 'cuda'.*'gpu0'"),
        ("mps", "run on cpu and cuda, not on mps"),
        ("cuda:99", "no device cuda:99 here"),
        (99, "no device cuda:99 here"),
    ],
)
def test_devices_that_are_not_here(checkpoint, device, what):
    """torch's own answer was an AssertionError, or a list of all devices that it has heard of."""
    with pytest.raises(glyd.GlydError, match=what):
        glyd_gpu.from_pretrained(checkpoint("llama").packed, device=device)


def test_newer_version(checkpoint, tmp_path):
    path = tmp_path / "newer"
    shutil.copytree(checkpoint("llama").packed, path)
    config = json.loads((path / "config.json").read_text())
    config["quantization_config"]["version"] = 2
    (path / "config.json").write_text(json.dumps(config))
    with pytest.raises(glyd.UnsupportedVersionError, match=r"version 2.*update"):
        AutoModelForCausalLM.from_pretrained(path)


@pytest.mark.parametrize("damage", ["header", "cut", "magic", "pack header", "manifest"])
def test_damaged(checkpoint, tmp_path, damage):
    path = tmp_path / "damaged"
    shutil.copytree(checkpoint("llama").packed, path)
    file = path / "model.safetensors"
    data = bytearray(file.read_bytes())
    start = 8 + int.from_bytes(data[:8], "little")
    if damage == "header":
        data[:8] = (1 << 60).to_bytes(8, "little")
    elif damage == "cut":
        del data[-100:]
    elif damage == "magic":
        data[start] ^= 1
    elif damage == "pack header":
        data[start + 9] ^= 1  # rows
    else:
        (path / "glyd.json").write_text('{"tensors": 3}')
    file.write_bytes(data)
    with pytest.raises((glyd.FormatError, OSError), match=r"safetensors|glyd\.json"):
        glyd_gpu.from_pretrained(path, device="cpu")


def test_pack_of_another_shape(checkpoint, tmp_path):
    from safetensors.torch import load_file, save_file

    path = tmp_path / "swapped"
    shutil.copytree(checkpoint("llama").packed, path)
    (path / "glyd.json").unlink()  # transformers' own download does not have it
    tensors = load_file(path / "model.safetensors")
    up, down = (f"model.layers.0.mlp.{name}_proj.weight_packed" for name in ("up", "down"))
    tensors[up], tensors[down] = tensors[down], tensors[up]
    save_file(tensors, path / "model.safetensors", {"format": "pt"})
    with pytest.raises(glyd.FormatError, match=r"down_proj\.weight_packed is \(256, 128\).*\(128, 256\)"):
        glyd_gpu.from_pretrained(path, device="cpu")


def test_packs_that_break_their_rules(checkpoint, tmp_path, monkeypatch):
    """Where kernels decode, packs are looked at when they are loaded; the codec looks when it decodes."""
    made = checkpoint("llama")
    path = tmp_path / "damaged"
    shutil.copytree(made.packed, path)
    (source,) = (s for s in read_sources([path / "model.safetensors"]).values() if "1.mlp.up_proj" in s.key)
    data = bytearray((path / "model.safetensors").read_bytes())
    data[source.offset + 128 + 64] = 255  # the base of its first row
    (path / "model.safetensors").write_bytes(data)
    with pytest.raises(glyd.CorruptDataError):
        made.compute(glyd_gpu.from_pretrained(path, device="cpu"))
    monkeypatch.setattr(glyd_gpu.integrations.transformers, "VERIFIED_DEVICES", {"cpu"})
    with pytest.raises(glyd.CorruptDataError, match=r"break the rules.*: model\.layers\.1\.mlp\.up_proj\.weight: "):
        glyd_gpu.from_pretrained(path, device="cpu")
    assert torch.equal(made.compute(glyd_gpu.from_pretrained(made.packed, device="cpu", exact=True)), made.logits)


@pytest.mark.parametrize("packed", [False, True])
def test_weights_in_no_file_were_made_up(checkpoint, tmp_path, packed):
    """transformers draws them at random, and the model spoke gibberish."""
    path = shutil.copytree(checkpoint("llama").plain, tmp_path / "cut")
    weights = load_file(path / "model.safetensors")
    for name in ("model.layers.1.mlp.up_proj.weight", "model.norm.weight"):
        del weights[name]
    save_file(weights, path / "model.safetensors", {"format": "pt"})
    if packed:
        glyd.pack_model(path, tmp_path / "packed")
        path = tmp_path / "packed"
    with pytest.raises(
        glyd.CorruptDataError, match=r"2 weights of the model are in none of its files: model\.layers\.1"
    ):
        glyd_gpu.from_pretrained(path, device="cpu")


def test_an_encoder_may_lack_what_its_task_does_not_need(tmp_path):
    config = transformers.BertConfig(
        hidden_size=64, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, vocab_size=128
    )
    made = transformers.BertModel(config, add_pooling_layer=False).to(torch.bfloat16)
    made.save_pretrained(tmp_path / "encoder")
    model = glyd_gpu.from_pretrained(tmp_path / "encoder", device="cpu")
    assert torch.equal(model.embeddings.LayerNorm.weight, made.embeddings.LayerNorm.weight)


def test_a_configuration_of_another_model(checkpoint, tmp_path):
    path = shutil.copytree(checkpoint("llama").plain, tmp_path / "other")
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, "vocab_size": 500}))
    with pytest.raises(glyd.CorruptDataError, match=r"is \[512, 128\] in the files, and \[500, 128\] by config"):
        glyd_gpu.from_pretrained(path, device="cpu")

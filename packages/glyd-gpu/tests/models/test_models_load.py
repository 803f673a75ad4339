# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Every family of models: the logits of a packed model, loaded in every way, are those of bf16, bit for bit."""

import os
import subprocess
import sys

import pytest
import torch
import transformers
from transformers import AutoModelForCausalLM

import glyd
import glyd_codec
import glyd_gpu
from glyd_gpu.modules import PackedEmbedding, PackedLinear, PackedModule

FAMILIES = (
    "qwen3-tied", "qwen3-untied", "qwen2", "llama", "smollm", "mistral", "granite", "gemma2", "gemma3", "phi3", "phi",
    "gpt2", "qwen3-moe", "mixtral", "gpt-oss",
)  # fmt: skip


def packed_modules(model):
    return [module for module in model.modules() if isinstance(module, PackedModule)]


@pytest.mark.parametrize("name", FAMILIES)
def test_packed_directory(checkpoint, name):
    made = checkpoint(name)
    model = glyd.from_pretrained(made.packed, device="cpu", exact=True)
    assert torch.equal(made.compute(model), made.logits)
    plain, info = AutoModelForCausalLM.from_pretrained(made.packed, output_loading_info=True)
    assert torch.equal(made.compute(plain), made.logits)
    assert not any(info.values()), info
    found = glyd_gpu.report(model)
    assert found.layouts.keys() == {"tiered"}
    manifest = glyd_codec.verify_model(made.packed)
    packs = [piece for m in packed_modules(model) for t in m.glyd_tensors.values() for piece in t.pieces if piece.meta]
    assert len({piece.source for piece in packs}) == manifest.n_packed  # nothing was unpacked or packed again


@pytest.mark.parametrize("name", FAMILIES)
def test_bf16_checkpoint_is_packed_as_it_loads(checkpoint, name):
    made = checkpoint(name)
    model = glyd_gpu.from_pretrained(made.plain, device="cpu", exact=True, layout="tiered")
    assert torch.equal(made.compute(model), made.logits)
    # as much as the packer of directories packs
    directory = glyd_gpu.report(glyd_gpu.from_pretrained(made.packed, device="cpu"))
    assert glyd_gpu.report(model).n_weights >= directory.n_weights


@pytest.mark.parametrize("name", ["qwen3-untied", "qwen3-moe", "gpt-oss", "gemma3"])
def test_layout_mma12(checkpoint, name):
    made = checkpoint(name, "mma12")
    model = glyd_gpu.from_pretrained(made.packed, device="cpu", exact=True)
    assert glyd_gpu.report(model).layouts.keys() == {"mma12"}
    assert torch.equal(made.compute(model), made.logits)


@pytest.mark.parametrize("name", ["qwen3-tied", "llama", "qwen2", "phi"])
def test_merged(checkpoint, name):
    made = checkpoint(name)
    model = glyd_gpu.from_pretrained(made.packed, device="cpu")
    attention = model.model.layers[0].self_attn
    assert attention.q_proj.weight_packed is attention.v_proj.weight_packed
    torch.testing.assert_close(made.compute(model), made.logits, rtol=0.02, atol=0.02)
    apart = glyd_gpu.from_pretrained(made.packed, device="cpu", merge=False)
    assert (
        apart.model.layers[0].self_attn.q_proj.weight_packed is not apart.model.layers[0].self_attn.k_proj.weight_packed
    )
    for layer in ("q_proj", "k_proj", "v_proj"):
        one, other = getattr(attention, layer), getattr(apart.model.layers[0].self_attn, layer)
        assert torch.equal(one.weight.unpacked(), other.weight.unpacked())
    x = torch.randn(3, attention.q_proj.in_features, dtype=torch.bfloat16)
    y = torch.randn_like(x)
    # any order, other inputs in between, one layer alone: never the result of another input
    for layer, value in (("v_proj", x), ("q_proj", y), ("k_proj", x), ("k_proj", x), ("q_proj", x), ("v_proj", y)):
        expected = getattr(apart.model.layers[0].self_attn, layer)(value)
        torch.testing.assert_close(getattr(attention, layer)(value), expected, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_merged_layers_see_what_is_written_to_their_input(checkpoint, mode):
    made = checkpoint("llama")
    merged, apart = (
        glyd_gpu.from_pretrained(made.packed, device="cpu", merge=merge).model.layers[0].self_attn
        for merge in (True, False)
    )
    with mode():
        x = torch.randn(3, 128, dtype=torch.bfloat16)
        for layer in ("q_proj", "q_proj", "k_proj", "v_proj", "q_proj", "k_proj"):
            torch.testing.assert_close(getattr(merged, layer)(x), getattr(apart, layer)(x), rtol=0.02, atol=0.02)
            # torch counts no writes in inference mode: there only a layer that comes back is noticed
            if mode is torch.no_grad or layer == "v_proj":
                x.mul_(2)


def test_no_bf16_matrix_stays(checkpoint):
    made = checkpoint("qwen3-tied")
    model = glyd_gpu.from_pretrained(made.packed, device="cpu")
    for name, parameter in model.named_parameters():
        assert parameter.dtype == torch.uint8 or parameter.dim() == 1, name
    assert isinstance(model.lm_head, PackedLinear)
    assert isinstance(model.model.embed_tokens, PackedEmbedding)
    assert model.lm_head.weight_packed is model.model.embed_tokens.weight_packed


def test_report_gives_reasons(checkpoint):
    made = checkpoint("qwen3-moe")
    found = glyd_gpu.report(glyd_gpu.from_pretrained(made.packed, device="cpu"))
    assert found.plain["model.layers.0.mlp.gate.weight"] == "packing does not pay"
    assert found.plain["model.norm.weight"] == "1 dimension"
    assert found.bits_per_weight < 16
    assert found.plain_nbytes < 20_000


@pytest.mark.parametrize("name", ["qwen3-tied", "qwen3-moe"])
def test_generate(checkpoint, name):
    made = checkpoint(name)
    reference = AutoModelForCausalLM.from_pretrained(made.plain)
    model = glyd_gpu.from_pretrained(made.packed, device="cpu", exact=True)
    arguments = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": 0}
    expected = reference.generate(made.ids, **arguments)
    assert torch.equal(model.generate(made.ids, **arguments), expected)
    for n in (1, 2, 1):
        found = model.generate(made.ids[:n], **arguments, cache_implementation="static")
        assert torch.equal(found, reference.generate(made.ids[:n], **arguments, cache_implementation="static"))


def test_device_map(checkpoint, tmp_path):
    made = checkpoint("qwen3-tied")
    model = glyd_gpu.from_pretrained(made.packed, device_map="auto", exact=True)
    assert torch.equal(made.compute(model).cpu(), made.logits)
    places = {"model.embed_tokens": "cpu", "model.layers.0": "cpu", "model.layers.1": "disk", "model.norm": "cpu"}
    places |= {"lm_head": "cpu", "model.rotary_emb": "cpu"}
    plain = AutoModelForCausalLM.from_pretrained(made.plain, device_map=places, offload_folder=tmp_path / "plain")
    model = glyd_gpu.from_pretrained(made.packed, device_map=places, offload_folder=tmp_path / "packed", exact=True)
    assert torch.equal(made.compute(model), made.compute(plain))
    model.save_pretrained(tmp_path / "saved")  # from where accelerate keeps what is on no device
    again = glyd_gpu.from_pretrained(tmp_path / "saved", device="cpu", exact=True)
    assert torch.equal(made.compute(again), made.logits)


def test_sharded(checkpoint, tmp_path):
    made = checkpoint("qwen3-moe")
    AutoModelForCausalLM.from_pretrained(made.plain).save_pretrained(tmp_path / "shards", max_shard_size="400KB")
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 2
    glyd_codec.pack_model(tmp_path / "shards", tmp_path / "packed")
    for path in ("shards", "packed"):
        model = glyd_gpu.from_pretrained(tmp_path / path, device="cpu", exact=True)
        assert torch.equal(made.compute(model), made.logits)


def test_an_encoder(tmp_path):
    """No language model: the class that the checkpoint names."""
    sizes = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 256}
    model = transformers.BertModel(transformers.BertConfig(**sizes, vocab_size=500)).to(torch.bfloat16)
    model.save_pretrained(tmp_path / "plain")
    glyd_codec.pack_model(tmp_path / "plain", tmp_path / "packed")
    ids = torch.randint(0, 500, (2, 9))
    with torch.no_grad():
        expected = transformers.AutoModel.from_pretrained(tmp_path / "plain")(ids).last_hidden_state
        for path in ("packed", "plain"):
            found = glyd_gpu.from_pretrained(tmp_path / path, device="cpu", exact=True)
            assert type(found) is transformers.BertModel
            assert torch.equal(found(ids).last_hidden_state, expected)


MEMORY = """
import os, sys, threading, time
import torch, transformers
from transformers.models.qwen3 import modeling_qwen3
import glyd_gpu, glyd_gpu.integrations.transformers

def anonymous():
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("RssAnon"))

peak, done = [0], threading.Event()
def watch():
    while not done.wait(0.001):
        peak[0] = max(peak[0], anonymous())

before = anonymous()
thread = threading.Thread(target=watch)
thread.start()
model = glyd_gpu.from_pretrained(sys.argv[1], device="cpu", layout="mma12")
done.set()
thread.join()
print(peak[0] - before, glyd_gpu.report(model).nbytes)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is read from /proc")
def test_memory(tmp_path):
    """A bf16 checkpoint takes its packs and the largest tensor, a packed directory stays in the page cache."""
    sizes = {"hidden_size": 1024, "intermediate_size": 3072, "num_attention_heads": 8, "num_key_value_heads": 8}
    config = transformers.Qwen3Config(**sizes, num_hidden_layers=6, vocab_size=8192, tie_word_embeddings=True)
    with torch.device("meta"):
        model = transformers.Qwen3ForCausalLM(config)
    model = model.to(torch.bfloat16).to_empty(device="cpu")
    model.tie_weights()
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.02)
    model.save_pretrained(tmp_path / "plain")
    largest = 2 * 8192 * 1024
    del model
    glyd_codec.pack_model(tmp_path / "plain", tmp_path / "packed", "mma12")
    found = {}
    for name in ("plain", "packed"):
        command = [sys.executable, "-c", MEMORY, str(tmp_path / name)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found[name], nbytes = map(int, done.stdout.split())
    assert nbytes > 100e6
    assert found["plain"] < nbytes + 2 * largest
    assert found["packed"] < 2 * largest


def test_verify(checkpoint, tmp_path):
    made = checkpoint("llama")
    model = glyd_gpu.from_pretrained(made.packed, device="cpu", verify=True)
    assert model.config.model_type == "llama"
    broken = tmp_path / "broken"
    broken.mkdir()
    for path in made.packed.iterdir():
        data = bytearray(path.read_bytes())
        if path.suffix == ".safetensors":
            data[len(data) // 2] ^= 1
        (broken / path.name).write_bytes(data)
    with pytest.raises(glyd.FormatError, match=r"model\.safetensors: tensor"):
        glyd_gpu.from_pretrained(broken, device="cpu", verify=True)

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Experts: stored one by one or as stacks, all of them packed."""

import json

import pytest
import safetensors.torch
import torch
import transformers
from transformers import AutoModelForCausalLM

import glyd_codec
import glyd_gpu
from glyd_gpu import modules
from glyd_gpu.modules import PackedExperts

MOE = ("qwen3-moe", "mixtral", "gpt-oss")


@pytest.fixture(params=["as the hub has it", "fused"])
def form(request):
    return request.param


@pytest.fixture
def made(checkpoint, form, tmp_path, request):
    """Return a checkpoint of experts, in one of both forms."""
    found = checkpoint(request.param)
    if form == "fused":
        model = AutoModelForCausalLM.from_pretrained(found.plain)
        model.save_pretrained(tmp_path / "plain", save_original_format=False)
        glyd_codec.pack_model(tmp_path / "plain", tmp_path / "packed")
        found = type(found)(tmp_path / "plain", tmp_path / "packed", found.ids, found.logits)
    return found


@pytest.mark.parametrize("made", MOE, indirect=True)
def test_all_experts_are_packed(made):
    tensors = json.loads((made.packed / "glyd.json").read_text())["tensors"]
    experts = {name: entry for name, entry in tensors.items() if ".experts." in name and "bias" not in name}
    weights = {name: torch.Size(entry["shape"]).numel() for name, entry in experts.items()}
    packed = sum(size for name, size in weights.items() if experts[name]["layout"] != "verbatim")
    assert packed >= 0.99 * sum(weights.values())
    model = glyd_gpu.from_pretrained(made.packed, device="cpu", exact=True)
    for name, parameter in model.named_parameters():
        assert parameter.dim() < 3, name
    assert isinstance(model.model.layers[1].mlp.experts, PackedExperts)
    assert torch.equal(made.compute(model), made.logits)


@pytest.mark.parametrize("made", MOE, indirect=True)
def test_experts_of_a_bf16_checkpoint(made):
    model = glyd_gpu.from_pretrained(made.plain, device="cpu", exact=True, layout="tiered")
    for name, parameter in model.named_parameters():
        assert parameter.dim() < 3, name
    assert torch.equal(made.compute(model), made.logits)


@pytest.mark.parametrize("made", MOE, indirect=True)
def test_experts_saved_and_loaded(made, tmp_path):
    model = glyd_gpu.from_pretrained(made.packed, device="cpu", exact=True)
    model.save_pretrained(tmp_path / "again")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "again")
    assert torch.equal(made.compute(again), made.logits)
    for name, parameter in again.named_parameters():
        assert parameter.dim() < 3, name


@pytest.mark.parametrize("implementation", ["eager", "grouped_mm", "batched_mm"])
@pytest.mark.parametrize("made", ["qwen3-moe", "gpt-oss"], indirect=True)
def test_one_token_needs_two_experts(made, implementation, monkeypatch):
    reference = AutoModelForCausalLM.from_pretrained(made.plain, experts_implementation=implementation)
    model = glyd_gpu.from_pretrained(made.packed, device="cpu", exact=True, experts_implementation=implementation)
    hits = []
    chosen = PackedExperts._hits
    monkeypatch.setattr(PackedExperts, "_hits", lambda *args: hits.append(chosen(*args)) or hits[-1])
    ids = made.ids[:1, :1]
    with torch.no_grad():
        assert torch.equal(model(ids).logits, reference(ids).logits)
    assert [len(found) for found in hits] == [2, 2]


GROUPED = {
    "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 512,
    "moe_intermediate_size": 192, "num_experts": 8, "num_experts_per_tok": 2, "intermediate_size": 256,
}  # fmt: skip


def test_few_tokens_multiply_with_the_packs_of_their_experts(tmp_path, monkeypatch):
    """Stored one by one, joined when loaded; the same as decoding them; saved as they were."""
    torch.manual_seed(5)
    plain = AutoModelForCausalLM.from_config(transformers.Qwen3MoeConfig(**GROUPED)).to(torch.bfloat16)
    plain.save_pretrained(tmp_path / "plain")
    glyd_codec.pack_model(tmp_path / "plain", tmp_path / "packed", "mma12")
    decoded = glyd_gpu.from_pretrained(tmp_path / "packed", device="cpu", merge=False)
    monkeypatch.setattr(modules, "GROUPED_DEVICES", {"cpu"})
    model = glyd_gpu.from_pretrained(tmp_path / "packed", device="cpu")
    experts = model.model.layers[1].mlp.experts
    assert len(experts.glyd_tensors["gate_up_proj"].pieces) == 1
    assert len(decoded.model.layers[1].mlp.experts.glyd_tensors["gate_up_proj"].pieces) == 16
    calls = []
    grouped = PackedExperts._grouped
    monkeypatch.setattr(PackedExperts, "_grouped", lambda *args: calls.append(1) or grouped(*args))
    for shape, n in (((1, 1), 2), ((3, 5), 2), ((8, 16), 2), ((15, 9), 0)):
        ids = torch.randint(0, 500, shape)
        calls.clear()
        with torch.no_grad():
            mine, theirs = model(ids).logits.float(), decoded(ids).logits.float()
        assert len(calls) == n, shape  # beyond 256 pairs of token and expert they are decoded
        assert (mine - theirs).norm() / theirs.norm() < 2e-2
    model.save_pretrained(tmp_path / "again")
    again = safetensors.torch.load_file(tmp_path / "again" / "model.safetensors")
    first = safetensors.torch.load_file(tmp_path / "packed" / "model.safetensors")
    assert again.keys() == first.keys()
    assert all(torch.equal(again[key], value) for key, value in first.items())
    whole, plain = glyd_gpu.dequantize(model), AutoModelForCausalLM.from_pretrained(tmp_path / "plain")
    with torch.no_grad():
        assert torch.equal(whole(ids).logits, plain(ids).logits)


def test_an_expert_that_does_not_pay(checkpoint, tmp_path):
    """Experts are joined although one of them is noise, which stays bf16."""
    made = checkpoint("qwen3-moe")
    model = AutoModelForCausalLM.from_pretrained(made.plain)
    noise = torch.randint(-(1 << 15), 1 << 15, (192, 128), dtype=torch.int16).view(torch.bfloat16)
    model.model.layers[0].mlp.experts.gate_up_proj.data[3] = torch.nan_to_num(noise, 0, 0, 0).clamp(-1, 1)
    model.save_pretrained(tmp_path / "plain")
    report = glyd_codec.pack_model(tmp_path / "plain", tmp_path / "packed")
    assert report.verbatim["size"][0] == 2 + 2  # two routers, gate and up of the expert
    expected = made.compute(AutoModelForCausalLM.from_pretrained(tmp_path / "plain"))
    for path in ("packed", "plain"):
        model = glyd_gpu.from_pretrained(tmp_path / path, device="cpu", exact=True, layout="tiered")
        assert torch.equal(made.compute(model), expected), path
    model = glyd_gpu.from_pretrained(tmp_path / "packed", device="cpu")
    model.save_pretrained(tmp_path / "again")
    assert torch.equal(made.compute(AutoModelForCausalLM.from_pretrained(tmp_path / "again")), expected)

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Packed layers inside of compiled code, and beside adapters that are trained."""

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend
from transformers import AutoModelForCausalLM

import glyd_gpu
from glyd_gpu import modules
from glyd_gpu._pack_live import pack_modules
from glyd_gpu._tensors import PackedTensor, Piece
from glyd_gpu.modules import install, set_exact

COLS, ROWS = 256, 190


def packed(layer, layout="tiered"):
    """Pack a layer in place."""
    data = torch.ops.glyd.pack(layer.weight.detach(), glyd_gpu.LAYOUTS[layout])
    meta = glyd_gpu.PackedMeta.from_tensor(data)
    piece = Piece(0, meta.nbytes, tuple(meta.as_list()), meta.rows, "weight", (meta.rows, meta.cols))
    return install(layer, "weight", PackedTensor((meta.rows, meta.cols), (piece,)), data)


@pytest.fixture
def layers():
    """Return linear → linear → linear, and the same with the middle one packed."""
    plain = nn.Sequential(nn.Linear(64, COLS), nn.Linear(COLS, ROWS), nn.Linear(ROWS, 32)).to(torch.bfloat16)
    mixed = nn.Sequential(*(nn.Linear(layer.in_features, layer.out_features) for layer in plain)).to(torch.bfloat16)
    mixed.load_state_dict(plain.state_dict())
    packed(mixed[1])
    set_exact(mixed, True)
    return plain, mixed


@pytest.mark.parametrize("dynamic", [True, False])
def test_sizes_of_batches(layers, dynamic):
    plain, mixed = layers
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(mixed, fullgraph=True, dynamic=dynamic, backend=counter)
    with torch.no_grad():
        for tokens in (7, 16, 129, 1000, 16, 7):
            x = torch.randn(tokens, 64, dtype=torch.bfloat16)
            assert torch.equal(compiled(x), plain(x))
            assert torch.equal(compiled(x), mixed(x))
    assert counter.frame_count == (1 if dynamic else 4)


def test_inductor(layers):
    plain, mixed = layers
    torch._dynamo.reset()
    x = torch.randn(5, 64, dtype=torch.bfloat16)
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(mixed, fullgraph=True)(x), plain(x), rtol=0.01, atol=0.01)


@pytest.mark.parametrize("options", [{"exact": True}, {"merge": False}, {"merge": True}], ids=str)
@pytest.mark.parametrize("name", ["qwen3-tied", "gemma3", "gpt2"])
def test_models_in_one_graph(checkpoint, name, options):
    made = checkpoint(name)

    def compiled(model):
        torch._dynamo.reset()
        forward = torch.compile(model.forward, fullgraph=True, backend="aot_eager")
        with torch.no_grad():
            return forward(made.ids, use_cache=False).logits

    expected = compiled(AutoModelForCausalLM.from_pretrained(made.plain))
    found = compiled(glyd_gpu.from_pretrained(made.packed, device="cpu", **options))
    if options.get("exact"):
        assert torch.equal(found, expected)
    else:
        torch.testing.assert_close(found, expected, rtol=0.02, atol=0.02)


def test_experts_in_one_graph(checkpoint):
    made = checkpoint("qwen3-moe")
    model = glyd_gpu.from_pretrained(made.packed, device="cpu", exact=True)
    experts = model.model.layers[0].mlp
    plain = AutoModelForCausalLM.from_pretrained(made.plain).model.layers[0].mlp
    torch._dynamo.reset()
    x = torch.randn(1, 5, 128, dtype=torch.bfloat16)
    with torch.no_grad():
        assert torch.equal(torch.compile(experts, fullgraph=True, backend="aot_eager")(x), plain(x))


def test_few_tokens_with_packs_of_experts_in_one_graph(monkeypatch):
    from transformers import Qwen3MoeConfig

    monkeypatch.setattr(modules, "GROUPED_DEVICES", {"cpu"})
    sizes = {"hidden_size": 128, "moe_intermediate_size": 192, "num_experts": 8, "num_experts_per_tok": 2}
    config = Qwen3MoeConfig(**sizes, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2, vocab_size=512)
    model = AutoModelForCausalLM.from_config(config).to(torch.bfloat16)
    pack_modules(model, "mma12")
    torch._dynamo.reset()
    ids = torch.randint(0, 500, (2, 5))
    with torch.no_grad():
        compiled = torch.compile(model.forward, fullgraph=True, backend="aot_eager")
        assert torch.equal(compiled(ids, use_cache=False).logits, model(ids, use_cache=False).logits)


def test_gradients(layers):
    plain, mixed = layers
    for module in (plain, mixed):
        module.requires_grad_(False)
    x = torch.randn(9, 64, dtype=torch.bfloat16, requires_grad=True)
    (expected,) = torch.autograd.grad(plain(x).square().sum(), x)
    (found,) = torch.autograd.grad(mixed(x).square().sum(), x)
    assert torch.equal(found, expected)


@pytest.mark.parametrize("merge", [True, False])
def test_lora(checkpoint, merge):
    made = checkpoint("qwen3-tied")
    config = LoraConfig(
        target_modules=["q_proj", "v_proj", "gate_proj", "down_proj"], r=4, init_lora_weights="gaussian"
    )
    losses = {}
    for name in ("plain", "packed"):
        torch.manual_seed(5)
        if name == "plain":
            base = AutoModelForCausalLM.from_pretrained(made.plain)
        else:
            base = glyd_gpu.from_pretrained(made.packed, device="cpu", merge=merge)
        model = get_peft_model(base, config)
        before = [p.clone() for p in base.parameters() if p.dtype == torch.uint8]
        optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.2)
        losses[name] = []
        for _ in range(3):
            loss = model(made.ids, labels=made.ids).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses[name].append(loss.item())
        assert all(map(torch.equal, before, (p for p in base.parameters() if p.dtype == torch.uint8)))
    assert losses["packed"] == pytest.approx(losses["plain"], rel=0.02)
    assert losses["packed"][-1] < losses["packed"][0]
    for safe in (False, True):
        with pytest.raises(glyd_gpu.ReadOnlyWeightError, match=r"packed.*dequantize.*LoRA"):
            model.merge_adapter(safe_merge=safe)


def test_lora_saved_beside_a_packed_model(checkpoint, tmp_path):
    from peft import PeftModel

    made = checkpoint("qwen3-tied")
    config = LoraConfig(target_modules=["q_proj", "up_proj"], r=4, init_lora_weights=False)
    model = get_peft_model(glyd_gpu.from_pretrained(made.packed, device="cpu", exact=True), config)
    model.save_pretrained(tmp_path / "adapter")
    assert (tmp_path / "adapter" / "adapter_model.safetensors").stat().st_size < 100_000
    again = PeftModel.from_pretrained(
        glyd_gpu.from_pretrained(made.packed, device="cpu", exact=True), tmp_path / "adapter"
    )
    assert torch.equal(made.compute(again), made.compute(model))

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Packed models are models: saved, copied, cast, resized, unpacked."""

import copy
import pickle

import pytest
import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

import glyd_codec
import glyd_gpu
from glyd_gpu import _saving
from glyd_gpu.modules import PackedModule

EMBEDDINGS = ("qwen3-tied", "qwen3-untied", "qwen3-tied-1000", "qwen3-untied-1003")


@pytest.fixture(params=["merged", "apart"])
def options(request):
    return {"device": "cpu", "merge": request.param == "merged"}


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_saved_and_loaded(checkpoint, name, options, tmp_path):
    made = checkpoint(name)
    model = glyd_gpu.from_pretrained(made.packed, **options)
    model.save_pretrained(tmp_path / "one")
    glyd_gpu.save_pretrained(model, tmp_path / "two")
    for path in ("one", "two"):
        again, info = AutoModelForCausalLM.from_pretrained(tmp_path / path, output_loading_info=True)
        assert not any(info.values()), info
        assert torch.equal(made.compute(again), made.logits)
        assert torch.equal(
            made.compute(glyd_gpu.from_pretrained(tmp_path / path, device="cpu", exact=True)), made.logits
        )
        assert (
            glyd_gpu.report(again).nbytes
            == glyd_gpu.report(glyd_gpu.from_pretrained(made.packed, device="cpu", merge=False)).nbytes
        )


@pytest.mark.parametrize("name", ["qwen3-tied", "qwen3-moe", "gpt-oss", "gemma3"])
def test_saved_packs_are_those_of_the_directory(checkpoint, name, options, tmp_path):
    made = checkpoint(name)
    glyd_gpu.save_pretrained(glyd_gpu.from_pretrained(made.packed, **options), tmp_path / "again")
    with (
        safe_open(made.packed / "model.safetensors", "pt") as before,
        safe_open(tmp_path / "again" / "model.safetensors", "pt") as after,
    ):
        assert set(after.keys()) == set(before.keys())
        for key in before.keys():  # noqa: SIM118 - no dictionary
            assert torch.equal(before.get_tensor(key), after.get_tensor(key)), key


@pytest.mark.parametrize("name", ["qwen3-tied", "qwen3-moe", "gpt-oss", "gemma3"])
def test_saved_models_unpack(checkpoint, name, options, tmp_path, monkeypatch):
    monkeypatch.setattr(_saving, "SHARD_NBYTES", 300_000)
    made = checkpoint(name)
    model = glyd_gpu.from_pretrained(made.packed, **options)
    report = glyd_gpu.save_pretrained(model, tmp_path / "again")
    assert len(list((tmp_path / "again").glob("*.safetensors"))) > 1
    assert report.n_packed == glyd_codec.verify_model(tmp_path / "again").n_packed
    assert [path.name for path in tmp_path.iterdir()] == ["again"]
    glyd_codec.unpack_model(tmp_path / "again", tmp_path / "plain")
    plain, info = AutoModelForCausalLM.from_pretrained(tmp_path / "plain", output_loading_info=True)
    assert not any(info.values()), info
    assert torch.equal(made.compute(plain), made.logits)
    assert getattr(plain.config, "quantization_config", None) is None
    with pytest.raises(FileExistsError, match="again"):
        glyd_gpu.save_pretrained(model, tmp_path / "again")
    expected = made.compute(glyd_gpu.from_pretrained(made.packed, **options))
    assert torch.equal(made.compute(model), expected)  # as it was


@pytest.mark.parametrize("tied", [True, False])
def test_tied_tensors_that_are_not_packed_are_saved_once(tmp_path, tied):
    """The embedding of a model so small that packing it does not pay; safetensors refused to write it twice."""
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
    config = LlamaConfig(**sizes, intermediate_size=12, vocab_size=37, tie_word_embeddings=tied)
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(tmp_path / "plain")
    ids = torch.arange(9)[None]
    logits = LlamaForCausalLM.from_pretrained(tmp_path / "plain")(ids).logits
    model = glyd_gpu.from_pretrained(tmp_path / "plain", device="cpu")
    assert "model.embed_tokens.weight" in glyd_gpu.report(model).plain
    glyd_gpu.save_pretrained(model, tmp_path / "packed")
    again, info = LlamaForCausalLM.from_pretrained(tmp_path / "packed", output_loading_info=True)
    assert not any(info.values()), info
    assert torch.equal(again(ids).logits, logits)
    assert (again.lm_head.weight is again.model.embed_tokens.weight) == tied
    with safe_open(tmp_path / "packed" / "model.safetensors", "pt") as file:
        assert ("lm_head.weight" in file.keys()) != tied  # noqa: SIM118 - no dictionary


def test_tensors_that_share_memory_without_being_tied_are_saved_twice():
    one = torch.arange(6.0)
    tensors = {"a": one, "b": one, "c": one, "d": torch.arange(6.0)}
    _saving._separate(tensors, {"a": "b"})
    assert list(tensors) == ["b", "c", "d"]
    assert tensors["b"].data_ptr() != tensors["c"].data_ptr()
    assert torch.equal(tensors["c"], one)


def test_packed_as_it_loaded_then_saved(checkpoint, options, tmp_path):
    made = checkpoint("qwen3-untied")
    model = glyd_gpu.from_pretrained(made.plain, layout="mma12", **options)
    model.save_pretrained(tmp_path / "saved")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "saved")
    assert glyd_gpu.report(again).layouts.keys() == {"mma12"}
    assert torch.equal(made.compute(again), made.logits)


@pytest.mark.parametrize("name", ["qwen3-tied", "qwen3-untied-1003", "qwen3-moe", "gemma3"])
def test_copied(checkpoint, name, options):
    made = checkpoint(name)
    model = glyd_gpu.from_pretrained(made.packed, **options)
    expected = made.compute(model)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(made.compute(other), expected)
        packs = {p.data_ptr() for p in model.parameters()}
        assert not packs & {p.data_ptr() for p in other.parameters()}
        assert len(list(other.parameters())) == len(list(model.parameters()))  # what was shared is


@pytest.mark.parametrize("name", ["qwen3-tied", "qwen3-untied", "qwen3-moe"])
def test_state_of_other_weights(checkpoint, name, options, tmp_path):
    made = checkpoint(name)
    torch.manual_seed(99)
    plain = AutoModelForCausalLM.from_config(AutoModelForCausalLM.from_pretrained(made.plain).config)
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter.mul_(torch.rand(parameter.shape[0], *[1] * (parameter.dim() - 1)) + 0.5)
    plain.to(torch.bfloat16).save_pretrained(tmp_path / "plain")
    glyd_codec.pack_model(tmp_path / "plain", tmp_path / "packed")
    other = glyd_gpu.from_pretrained(tmp_path / "packed", **options)
    model = glyd_gpu.from_pretrained(made.packed, **options)
    for state in (other.state_dict(), pickle.loads(pickle.dumps(other.state_dict()))):
        assert str(model.load_state_dict(state)) == "<All keys matched successfully>"
        assert torch.equal(made.compute(model), made.compute(other))
        model = glyd_gpu.from_pretrained(made.packed, **options)


def test_state_that_does_not_fit(checkpoint):
    made = checkpoint("qwen3-tied")
    model = glyd_gpu.from_pretrained(made.packed, device="cpu", merge=False)
    state = model.state_dict()
    key = "model.layers.0.mlp.up_proj.weight_packed"
    for wrong in (
        state["model.layers.0.mlp.down_proj.weight_packed"],
        state[key].float(),
        state[key][:500],
        state[key][:64],
    ):
        with pytest.raises(ValueError, match=r"pack|bytes|has|uint8"):
            model.load_state_dict(state | {key: wrong})
    assert torch.equal(made.compute(model), made.logits)


@pytest.mark.parametrize("name", ["qwen3-tied", "qwen3-untied"])
def test_casts(checkpoint, name):
    made = checkpoint(name)
    model = glyd_gpu.from_pretrained(made.packed, device="cpu", exact=True)
    before = {name: parameter.clone() for name, parameter in model.named_parameters() if parameter.dtype == torch.uint8}
    with pytest.raises(ValueError, match="not supported for quantized"):
        model.half()
    model.to(torch.float16)
    after = dict(model.named_parameters())
    assert all(torch.equal(after[name], value) for name, value in before.items())
    with pytest.raises(ValueError, match=r"x must be|bf16"):
        made.compute(model)
    # what is not packed is cast as ever: the frequencies of rotary embeddings
    plain = AutoModelForCausalLM.from_pretrained(made.plain).to(torch.bfloat16)
    model = glyd_gpu.from_pretrained(made.packed, device="cpu", exact=True).to(torch.bfloat16).to("cpu")
    assert torch.equal(made.compute(model), made.compute(plain))


@pytest.mark.parametrize("name", ["qwen3-tied", "qwen3-untied"])
def test_resize(checkpoint, name):
    made = checkpoint(name)
    model = glyd_gpu.from_pretrained(made.packed, device="cpu", exact=True)
    with pytest.raises(glyd_gpu.ReadOnlyWeightError, match="dequantize"):
        model.resize_token_embeddings(1010)
    assert torch.equal(made.compute(model), made.logits)
    assert model.config.vocab_size == made.logits.shape[-1]
    glyd_gpu.dequantize(model).resize_token_embeddings(1010)
    assert made.compute(model).shape[-1] == 1010
    assert torch.equal(made.compute(model)[..., : made.logits.shape[-1]], made.logits)


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_embeddings(checkpoint, name):
    made = checkpoint(name)
    plain = AutoModelForCausalLM.from_pretrained(made.plain)
    model = glyd_gpu.from_pretrained(made.packed, device="cpu")
    ids = torch.tensor([0, 1, 63, 64, 65, 999, 5, 5])
    assert torch.equal(model.get_input_embeddings()(ids), plain.get_input_embeddings()(ids))
    assert model.get_input_embeddings()(ids[:0]).shape == (0, 128)
    with pytest.raises(IndexError):
        model.get_input_embeddings()(torch.tensor([plain.config.vocab_size]))
    model.tie_weights()
    model.set_input_embeddings(model.get_input_embeddings())
    assert torch.equal(made.compute(model), made.logits)


@pytest.mark.parametrize("name", ["qwen3-tied", "qwen3-moe", "gpt-oss", "gemma3", "gpt2", "qwen2"])
def test_dequantize(checkpoint, name, options, tmp_path):
    made = checkpoint(name)
    model = glyd_gpu.dequantize(glyd_gpu.from_pretrained(made.packed, **options))
    assert not any(isinstance(module, PackedModule) for module in model.modules())
    assert torch.equal(made.compute(model), made.logits)
    expected = AutoModelForCausalLM.from_pretrained(made.plain)
    assert {k: v.shape for k, v in model.named_parameters()} == {k: v.shape for k, v in expected.named_parameters()}
    model.save_pretrained(tmp_path / "plain")
    with (
        safe_open(made.plain / "model.safetensors", "pt") as before,
        safe_open(tmp_path / "plain" / "model.safetensors", "pt") as after,
    ):
        assert set(after.keys()) == set(before.keys())
    assert torch.equal(made.compute(AutoModelForCausalLM.from_pretrained(tmp_path / "plain")), made.logits)
    assert torch.equal(made.compute(AutoModelForCausalLM.from_pretrained(made.packed).dequantize()), made.logits)

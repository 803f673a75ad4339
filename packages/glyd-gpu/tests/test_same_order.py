# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Packed and plain weights with one order of sums: ``exact="fast"``."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import glyd_gpu
from glyd_gpu import SAME, PackedMeta, ShapeError, UnsupportedDeviceError, _routes, _same_order
from glyd_gpu._errors import ParameterError
from glyd_gpu._matrices import bits
from glyd_gpu._meta import LAYOUTS

ops = torch.ops.glyd


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(torch.bfloat16)


def make():
    """Return two layers with an activation between, and a norm that is none of ours."""
    torch.manual_seed(5)
    layers = nn.Sequential(nn.Linear(256, 320), nn.SiLU(), nn.LayerNorm(320), nn.Linear(320, 192, bias=False))
    return layers.to(torch.bfloat16)


@pytest.mark.parametrize("shape", [(64,), (3, 64), (2, 3, 64), (0, 64)])
@pytest.mark.parametrize("with_bias", [False, True])
def test_on_the_cpu_it_is_the_layer_itself(shape, with_bias):
    x, weight = normal(*shape, seed=1), normal(128, 64, seed=2)
    bias = normal(128, seed=3) if with_bias else None
    expected = F.linear(x, weight, bias)
    assert torch.equal(bits(ops.linear_same(x, weight, bias)), bits(expected))
    for layout in LAYOUTS.values():
        pack = ops.pack(weight, layout)
        if pack.numel():
            found = ops.linear(x, pack, PackedMeta.from_tensor(pack).as_list(), bias, SAME)
            assert torch.equal(bits(found), bits(expected))


def test_gradients_are_those_of_a_layer():
    found = [normal(4, 3, 64, seed=1), normal(128, 64, seed=2), normal(128, seed=3)]
    right = [x.clone() for x in found]
    grad = normal(4, 3, 128, seed=4)
    for tensors, product in ((found, ops.linear_same), (right, F.linear)):
        for x in tensors:
            x.requires_grad_()
        product(*tensors).backward(grad)
    for a, b in zip(found, right, strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=0.02, atol=0.05)
    torch.library.opcheck(ops.linear_same.default, tuple(right))


def test_a_model_is_as_before_afterwards():
    model, x = make(), normal(5, 256)
    expected = model(x)
    undo = glyd_gpu.use_same_order(model)
    assert ["forward" in layer.__dict__ for layer in model] == [True, False, False, True]
    assert torch.equal(bits(model(x)), bits(expected))
    undo()
    assert not any("forward" in layer.__dict__ for layer in model)


def test_what_it_does_not_take():
    x, weight = normal(3, 64), normal(128, 64)
    with pytest.raises(ShapeError, match=r"torch.bfloat16 on one device, not torch.float32 on cpu"):
        ops.linear_same(x.float(), weight, None)
    with pytest.raises(ShapeError, match=r"not \(3, 64\), \(64, 128\)"):
        ops.linear_same(x, weight.T, None)
    with pytest.raises(ShapeError, match=r"multiple of 8 features, not 12"):
        _same_order.check_cols(12)
    model = make()
    model[3].float()
    with pytest.raises(ParameterError, match=r"3 is in torch.float32"):
        glyd_gpu.use_same_order(model)
    assert not any("forward" in layer.__dict__ for layer in model)


def test_another_gpu_is_told(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: (8, 6))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "NVIDIA RTX A6000")
    monkeypatch.setattr(_same_order, "architectures", lambda: ["sm_86", "sm_90a"])
    with pytest.raises(UnsupportedDeviceError, match=r"compute capability 9.0.*RTX A6000 is sm_86.*exact=True"):
        _same_order.check_device(0)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: _routes.HOPPER)
    _same_order.check_device(0)
    monkeypatch.setattr(_same_order, "architectures", lambda: ["sm_80"])
    with pytest.raises(UnsupportedDeviceError, match=r"the library has sm_80"):
        _same_order.check_device(0)


def test_columns_are_divided_by_the_matrix_alone():
    """Only tokens of a tile and slots differ between routes: neither changes the order of sums."""
    routes = [_same_order.route(n) for n in (1, 32, 33, 64, 65, 128, 129, 256)]
    assert [r.config[0] for r in routes] == [
        32,
        32,
        64,
        64,
        128,
        128,
        256,
        256,
    ]  # one tile takes all tokens of a launch
    assert len({r.config[1:5] for r in routes}) == 1


def packed_model(kind, config, exact, layout, tmp_path):
    model = kind(config).to(torch.bfloat16)
    model.save_pretrained(tmp_path)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    plain = kind.from_pretrained(tmp_path, dtype=torch.bfloat16).to(device).eval()
    return plain, glyd_gpu.from_pretrained(tmp_path, exact=exact, layout=layout, device=device)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_models(layout, tmp_path):
    import transformers

    config = transformers.Qwen3Config(
        vocab_size=512, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=64, tie_word_embeddings=True,
    )  # fmt: skip
    with pytest.raises(ParameterError, match=r"exact is 'quick'"):
        packed_model(transformers.Qwen3ForCausalLM, config, "quick", layout, tmp_path)
    plain, packed = packed_model(transformers.Qwen3ForCausalLM, config, "fast", layout, tmp_path)
    if torch.cuda.is_available() and torch.cuda.get_device_capability() != _routes.HOPPER:
        pytest.skip("needs a Hopper GPU, or none")
    modes = {m.glyd_mode for m in packed.modules() if hasattr(m, "glyd_mode")}
    assert modes == {SAME}
    undo = glyd_gpu.use_same_order(plain)
    ids = torch.arange(40, device=plain.device).view(2, 20) * 7 % 512
    with torch.no_grad():
        assert torch.equal(bits(packed(ids).logits), bits(plain(ids).logits))
        options = {"max_new_tokens": 6, "do_sample": False}
        assert torch.equal(packed.generate(ids, **options), plain.generate(ids, **options))
    undo()


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["gaussian", "special"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_packed_is_plain_on_cuda(layout, kind):
    if torch.cuda.get_device_capability() != _routes.HOPPER:
        pytest.skip("needs a Hopper GPU")
    for rows, cols in ((4096, 4096), (1024, 4096), (6144, 1024), (320, 8320), (577, 1000), (17408, 512)):
        generator = torch.Generator("cuda").manual_seed(rows)
        weight = torch.randn(rows, cols, device="cuda", generator=generator).mul_(0.02).to(torch.bfloat16)
        if kind == "special":  # exceptions: large and small rows, zeros, subnormals
            weight[::7] *= 2.0**60
            weight[:, 5::97] *= 2.0**-40
            weight[3::11, ::13] = 0
            weight[1, 1] = 2.0**-130
        pack = ops.pack(weight, LAYOUTS[layout])
        if not pack.numel():
            continue
        meta = PackedMeta.from_tensor(pack).as_list()
        bias = torch.randn(rows, device="cuda", generator=generator).to(torch.bfloat16)
        whole = torch.randn(600, cols, device="cuda", generator=generator).to(torch.bfloat16)
        expected = ops.linear(whole, pack, meta, bias, SAME)
        assert torch.equal(bits(ops.linear_same(whole, weight, bias)), bits(expected))
        for first, n in (
            (0, 1),
            (7, 1),
            (0, 8),
            (3, 33),
            (11, 64),
            (60, 65),
            (100, 128),
            (1, 200),
            (250, 256),
            (5, 300),
        ):
            part = whole[first : first + n]  # the same bits for a token whatever else is in its batch
            found = ops.linear(part, pack, meta, bias, SAME)
            assert torch.equal(bits(found), bits(expected[first : first + n])), (rows, cols, first, n)
            assert torch.equal(bits(ops.linear_same(part, weight, bias)), bits(found)), (rows, cols, first, n)
        if kind == "gaussian":
            right = F.linear(whole.double(), weight.double(), bias.double())
            assert float((expected.double() - right).norm() / right.norm()) < 5e-3

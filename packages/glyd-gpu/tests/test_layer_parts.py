# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Norms, rotations and gates: the kernels compiled for the CPU (tests/emulation) and on CUDA beside torch's operations."""

import ctypes

import pytest
import torch

from glyd_gpu import ShapeError
from glyd_gpu import _layer_parts as parts
from glyd_gpu._matrices import bits


@pytest.fixture(scope="module")
def emulated(compile_kernels):
    return compile_kernels("layer_kernels.cpp", "-ffp-contract=off")


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(torch.bfloat16)


def at(x):
    return ctypes.c_void_p(x.data_ptr())


def numbers(*values):
    return (ctypes.c_int64 * len(values))(*values)


def steps_apart(a, b):
    """Return how many bf16 values lie between two tensors' at most."""
    x, y = bits(a).int(), bits(b).int()
    x, y = (torch.where(v < 0, -32768 - v, v) for v in (x, y))
    return int((x - y).abs().max())


def read(x):
    """Return the strides of rows and inner rows of [1, rows, cols] or [1, rows, inner, cols]."""
    return (x.shape[1], 1, x.stride(1), 0) if x.dim() == 3 else (x.shape[1], x.shape[2], x.stride(1), x.stride(2))


def norm_cases():
    whole = normal(1, 5, 3 * 64 + 2 * 128, seed=1) * 3
    return {
        "wide": normal(1, 3, 2560, seed=2) * 5,
        "narrow": normal(1, 7, 8, seed=3),
        "part of a product": whole[..., 64 : 64 + 3 * 64].view(1, 5, 3, 64),
        "small": normal(1, 2, 512, seed=4) * 1e-4,
    }


def rotate_case(channels, heads=3, key_heads=1, rows=4):
    whole = normal(1, rows, (heads + key_heads) * channels, seed=channels)
    q = whole[..., : heads * channels].view(1, rows, heads, channels).transpose(1, 2)
    k = whole[..., heads * channels :].view(1, rows, key_heads, channels).transpose(1, 2)
    angles = torch.outer(torch.arange(rows) * 977.0, 10_000.0 ** -torch.linspace(0, 1, channels // 2))
    cos, sin = (torch.cat((f, f), -1).to(torch.bfloat16).unsqueeze(0) for f in (angles.cos(), angles.sin()))
    return q, k, cos, sin


def gate_case():
    whole = normal(1, 3, 400, seed=9) * 6
    return whole[..., :200], whole[..., 200:]


@pytest.mark.parametrize("name", norm_cases())
def test_norm(emulated, name):
    x = norm_cases()[name]
    weight = normal(x.shape[-1], seed=5)
    rows, inner, outer, within = read(x)
    out = torch.full(x.shape, float("nan"), dtype=x.dtype)
    emulated.emulated_norm(
        at(out), at(x), at(weight), numbers(rows, inner, x.shape[-1], outer, within), ctypes.c_float(1e-6), 3
    )
    expected = torch.ops.glyd.norm(x, weight, 1e-6)
    # the sum is another, in its last digits; two roundings follow
    assert steps_apart(out, expected) <= 2
    assert (bits(out) != bits(expected)).float().mean() < 0.02


@pytest.mark.parametrize("channels", [16, 64, 128])
def test_rotate(emulated, channels):
    q, k, cos, sin = rotate_case(channels)
    rows, heads, key_heads = q.shape[2], q.shape[1], k.shape[1]
    out = torch.full((rows * (heads + key_heads) * channels,), float("nan"), dtype=q.dtype)
    strides = (q.stride(2), q.stride(1), k.stride(2), k.stride(1), channels)
    emulated.emulated_rotate(
        at(out), at(q), at(k), at(cos), at(sin), numbers(rows, heads, key_heads, channels, *strides), 5
    )
    expected = torch.ops.glyd.rotate(q, k, cos, sin)
    n = rows * heads * channels
    assert torch.equal(bits(out[:n]).view(rows, heads, channels), bits(expected[0][0].transpose(0, 1).contiguous()))
    assert torch.equal(bits(out[n:]).view(rows, key_heads, channels), bits(expected[1][0].transpose(0, 1).contiguous()))


def test_gate(emulated):
    gate, up = gate_case()
    out = torch.full(gate.shape, float("nan"), dtype=gate.dtype)
    emulated.emulated_gate(at(out), at(gate), at(up), numbers(3, 200, gate.stride(1), up.stride(1)), 7)
    expected = torch.ops.glyd.gate(gate, up)
    assert steps_apart(out, expected) <= 2  # exponentials of another library
    assert (bits(out) != bits(expected)).float().mean() < 0.02


@pytest.mark.gpu
def test_on_cuda():
    for name, x in norm_cases().items():
        weight = normal(x.shape[-1], seed=5)
        for given in (x, x.reshape(-1, x.shape[-1])[:, :], x.double().to(torch.bfloat16)):
            expected = torch.ops.glyd.norm(given, weight, 1e-6)
            device = (
                given.cuda()
                if given.is_contiguous()
                else torch.empty_strided(given.shape, given.stride(), dtype=given.dtype, device="cuda").copy_(given)
            )
            out = torch.ops.glyd.norm(device, weight.cuda(), 1e-6).cpu()
            assert steps_apart(out, expected) <= 2, name
            assert (bits(out) != bits(expected)).float().mean() < 0.02
    for channels in (16, 64, 128, 256):
        case = rotate_case(channels)
        for found, expected in zip(
            torch.ops.glyd.rotate(*(x.cuda() for x in case)), torch.ops.glyd.rotate(*case), strict=True
        ):
            assert torch.equal(bits(found.cpu().contiguous()), bits(expected.contiguous()))
    whole = (normal(1, 3, 400, seed=9) * 6).cuda()
    out = torch.ops.glyd.gate(whole[..., :200], whole[..., 200:]).cpu()
    expected = torch.ops.glyd.gate(*gate_case())
    assert steps_apart(out, expected) <= 2
    assert (bits(out) != bits(expected)).float().mean() < 0.02


def test_operators_are_what_transformers_computes():
    from transformers.models.qwen3 import modeling_qwen3 as file

    x, weight = normal(2, 3, 64), normal(64, seed=1)
    norm = file.Qwen3RMSNorm(64, 1e-5).to(torch.bfloat16)
    norm.weight.data = weight
    assert torch.equal(bits(torch.ops.glyd.norm(x, weight, 1e-5)), bits(norm(x).detach()))
    case = rotate_case(32)
    for found, expected in zip(torch.ops.glyd.rotate(*case), file.apply_rotary_pos_emb(*case), strict=True):
        assert torch.equal(bits(found.contiguous()), bits(expected.contiguous()))
    with pytest.raises(ShapeError, match=r"norm takes torch.bfloat16, not torch.float32"):
        torch.ops.glyd.norm(x.float(), weight, 1e-5)


def make(kind, config, **changed):
    config = config(
        vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, **changed,
    )  # fmt: skip
    return kind(config).to(torch.bfloat16).eval()


def test_a_model_computes_the_same_and_is_as_before_afterwards():
    import transformers
    from transformers.models.qwen3 import modeling_qwen3 as file

    model = make(transformers.Qwen3ForCausalLM, transformers.Qwen3Config)
    tokens = torch.arange(12).view(1, 12)
    rotation = file.apply_rotary_pos_emb
    with torch.no_grad():
        expected = model(tokens).logits
        undo = parts.use_layer_parts(model)
        replaced = [type(m).__name__ for m in model.modules() if "forward" in m.__dict__]
        assert replaced.count("Qwen3RMSNorm") == 9
        assert replaced.count("Qwen3MLP") == 2
        assert file.apply_rotary_pos_emb is not rotation
        assert torch.equal(bits(model(tokens).logits), bits(expected))
        assert model.float()(tokens).logits.dtype == torch.float32  # what the operators do not take is as before
        undo()
    assert file.apply_rotary_pos_emb is rotation
    assert not [m for m in model.modules() if "forward" in m.__dict__]


def test_what_is_written_otherwise_stays():
    import transformers

    model = make(transformers.Gemma2ForCausalLM, transformers.Gemma2Config)
    undo = parts.use_layer_parts(model)
    assert not [type(m).__name__ for m in model.modules() if "forward" in m.__dict__]  # 1 + weight; gelu
    undo()
    model = make(transformers.LlamaForCausalLM, transformers.LlamaConfig, hidden_act="relu")
    undo = parts.use_layer_parts(model)
    assert {type(m).__name__ for m in model.modules() if "forward" in m.__dict__} == {"LlamaRMSNorm"}
    undo()

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Parts of layers and of steps: the kernels compiled for the CPU (tests/emulation) and on CUDA, and models that take them."""

import ctypes

import pytest
import torch

from glyd_gpu import ShapeError
from glyd_gpu import _layer_parts as parts
from glyd_gpu import _step_parts as step_parts
from glyd_gpu._decoding import Decoder, use_grouped_attention
from glyd_gpu._matrices import bits

EPS = 1e-6


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


def add_norm_case(rows, cols):
    return normal(rows, cols, seed=1) * 3, normal(rows, cols, seed=2), normal(cols, seed=3)


def place_case(channels, norms, alike, rows=3, heads=4, key_heads=2, length=5):
    """Return arguments of `place`, q, k, v parts of one product."""
    whole = normal(rows, (heads + 2 * key_heads) * channels, seed=channels)
    q, k, v = (
        part.view(rows, -1, channels)
        for part in whole.split([heads * channels, key_heads * channels, key_heads * channels], dim=1)
    )
    weights = (normal(channels, seed=5), normal(channels, seed=6)) if norms else (None, None)
    angles = torch.outer(
        torch.arange(1 if alike else rows) * 977.0 + 3, 10_000.0 ** -torch.linspace(0, 1, channels // 2)
    )
    cos, sin = (torch.cat((f, f), -1).to(torch.bfloat16) for f in (angles.cos(), angles.sin()))
    keys, values = (normal(rows, key_heads, length, channels, seed=s) for s in (7, 8))
    return [q, k, v, *weights, EPS, cos, sin, keys, values]


@pytest.mark.parametrize(("rows", "cols"), [(3, 64), (9, 512), (2, 2560)])
def test_add_norm(emulated, rows, cols):
    x, add, weight = add_norm_case(rows, cols)
    total, out = (torch.full((rows, cols), float("nan"), dtype=torch.bfloat16) for _ in range(2))
    emulated.emulated_add_norm(
        at(out), at(total), at(x), at(add), at(weight), numbers(rows, cols), ctypes.c_float(EPS), 3
    )
    expected_total, expected = torch.ops.glyd.add_norm(x, add, weight, EPS)
    assert torch.equal(bits(total), bits(expected_total))
    assert steps_apart(out, expected) <= 2  # the sum is another, in its last digits; two roundings follow
    assert (bits(out) != bits(expected)).float().mean() < 0.02


@pytest.mark.parametrize("position", [0, 4, 5, -1])
@pytest.mark.parametrize(("channels", "norms", "alike"), [(16, True, True), (64, False, False), (128, True, False)])
def test_place(emulated, channels, norms, alike, position):
    case = place_case(channels, norms, alike)
    q, k, v, q_weight, k_weight, _, cos, sin, keys, values = case
    where = torch.tensor([position])
    before = keys.clone(), values.clone()
    expected = torch.ops.glyd.place(*case, where)
    found_keys, found_values = before[0].clone(), before[1].clone()
    out = torch.full(q.shape, float("nan"), dtype=q.dtype)
    given = (q, k, v, q_weight, k_weight, cos, sin, where)
    pointers = (ctypes.c_void_p * 8)(*(None if x is None else x.data_ptr() for x in given))
    shape = numbers(3, 4, 2, channels, 5, q.stride(0), k.stride(0), v.stride(0), 0 if alike else channels)
    emulated.emulated_place(at(out), at(found_keys), at(found_values), pointers, shape, ctypes.c_float(EPS), 5)
    for found, right in ((out, expected), (found_keys, keys), (found_values, values)):
        assert steps_apart(found, right) <= 4
        assert (bits(found) != bits(right)).float().mean() < 0.02
    assert torch.equal(bits(found_values), bits(values))  # only copied
    if not 0 <= position < 5:  # outside of the cache: nowhere
        assert torch.equal(bits(found_keys), bits(before[0]))
        assert torch.equal(bits(found_values), bits(before[1]))


@pytest.mark.gpu
def test_steps_on_cuda():
    for rows, cols in ((3, 64), (9, 512), (128, 4096)):
        case = add_norm_case(rows, cols)
        (total, out), (right_total, right) = (
            torch.ops.glyd.add_norm(*(x.to(d) for x in case), EPS) for d in ("cuda", "cpu")
        )
        assert torch.equal(bits(total.cpu()), bits(right_total))
        assert steps_apart(out.cpu(), right) <= 2
        assert (bits(out.cpu()) != bits(right)).float().mean() < 0.02
    for channels in (16, 64, 128, 256):
        for norms, alike, position in ((True, True, 0), (False, False, 4), (True, False, 7)):
            case = place_case(channels, norms, alike)
            whole = torch.cat([x.flatten(1) for x in case[:3]], dim=1).cuda()
            sizes = [x.flatten(1).shape[1] for x in case[:3]]
            device = [part.view(3, -1, channels) for part in whole.split(sizes, dim=1)]
            device += [x.cuda() if isinstance(x, torch.Tensor) else x for x in case[3:]]
            out = torch.ops.glyd.place(*device, torch.tensor([position], device="cuda"))
            right = torch.ops.glyd.place(*case, torch.tensor([position]))
            for found, expected in ((out, right), (device[8], case[8]), (device[9], case[9])):
                assert steps_apart(found.cpu(), expected) <= 4
                assert (bits(found.cpu()) != bits(expected)).float().mean() < 0.02


def test_what_does_not_fit_is_refused():
    x, add, weight = add_norm_case(2, 64)
    with pytest.raises(ShapeError, match=r"add_norm takes two of one shape.*\(2, 64\), \(1, 64\) and \(64,\)"):
        torch.ops.glyd.add_norm(x, add[:1], weight, EPS)
    with pytest.raises(ShapeError, match=r"add_norm takes torch.bfloat16, not torch.float32"):
        torch.ops.glyd.add_norm(x.float(), add, weight, EPS)
    case = place_case(16, norms=False, alike=True)
    with pytest.raises(ShapeError, match=r"place takes q, k, v .* one position of torch.int64"):
        torch.ops.glyd.place(*case, torch.tensor([1, 2]))


def decoded(model):
    """Return tokens and logits after 12 steps of three sequences."""
    decoder = Decoder(model, 3, 40)
    decoder.prefill(torch.arange(30).view(3, 10))
    decoder.run(12)
    return decoder.tokens, decoder.logits


@pytest.mark.parametrize("name", ["Qwen3", "Llama", "Qwen2"])
def test_a_model_decodes_the_same_and_is_as_before_afterwards(name, monkeypatch):
    import transformers

    model = make(getattr(transformers, name + "ForCausalLM"), getattr(transformers, name + "Config"))
    use_grouped_attention(model)
    places = []
    attend = step_parts._placed
    monkeypatch.setattr(step_parts, "_placed", lambda *args: places.append(attend(*args)) or places[-1])
    tokens, logits = decoded(model)
    undo = step_parts.use_step_parts(model)
    changed = [type(m).__name__ for m in model.modules() if "forward" in m.__dict__]
    assert changed.count(name + "Attention") == changed.count(name + "DecoderLayer") == 2
    found = decoded(model)
    assert [layer is not None for layer in places] == [False] * 2 + [True] * 24  # layers of the prompt, then of steps
    assert torch.equal(found[0], tokens)
    assert torch.equal(bits(found[1]), bits(logits))
    with torch.no_grad():  # no cache, and a tensor that was written to meanwhile
        expected = type(model).forward(model, torch.arange(12).view(1, 12)).logits
        norm, layer = model.model.layers[1].input_layernorm, model.model.layers[0]
        kept = torch.zeros(1, 1, 64, dtype=torch.bfloat16)
        norm.__dict__["glyd_kept"] = kept, kept + 7, kept._version
        kept += 1
        assert float(norm(kept).max()) == float(type(norm).forward(norm, kept).max()) != 7
    undo()
    assert not [m for m in model.modules() if "forward" in m.__dict__]
    assert layer.__dict__.get("forward") is None
    with torch.no_grad():
        assert torch.equal(bits(model(torch.arange(12).view(1, 12)).logits), bits(expected))


def test_generate_with_a_static_cache(monkeypatch):
    import transformers

    model = make(transformers.Qwen3ForCausalLM, transformers.Qwen3Config)
    places = []
    attend = step_parts._placed
    monkeypatch.setattr(step_parts, "_placed", lambda *args: places.append(attend(*args)) or places[-1])
    ids = torch.arange(20).view(2, 10)
    options = {"max_new_tokens": 7, "do_sample": False, "cache_implementation": "static", "eos_token_id": None}
    expected = model.generate(ids, **options)
    undo = step_parts.use_step_parts(model)
    for _ in range(2):  # another call starts anew
        places.clear()
        assert torch.equal(model.generate(ids, **options), expected)
        assert [layer is not None for layer in places] == [False] * 2 + [True] * 12
    places.clear()
    assert torch.equal(model.generate(ids, **{**options, "cache_implementation": None}), expected)
    assert not any(layer is not None for layer in places)  # a cache that grows
    undo()


def test_layers_written_otherwise_stay():
    import transformers

    model = make(transformers.Gemma2ForCausalLM, transformers.Gemma2Config)
    undo = step_parts.use_step_parts(model)
    assert not [type(m).__name__ for m in model.modules() if "forward" in m.__dict__]
    undo()

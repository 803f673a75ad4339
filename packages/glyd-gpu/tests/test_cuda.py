# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The kernels, on a CUDA device."""

import copy
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

import glyd_codec
import glyd_gpu
from glyd_gpu import (
    EXACT,
    FAST,
    INVARIANT,
    LAYOUTS,
    PackedMeta,
    _captured,
    _routes,
    check,
    concat_rows,
    slice_cols,
    slice_rows,
)
from glyd_gpu._matrices import KINDS, bits, gaussian, special
from glyd_gpu._merge import merge_modules
from glyd_gpu._ops import held_meta
from glyd_gpu._pack_live import pack_modules

pytestmark = pytest.mark.gpu
ops = torch.ops.glyd


def packed(weight, layout):
    pack = ops.pack(weight.cuda(), LAYOUTS[layout])
    assert pack.numel(), "does not pay"
    return pack, PackedMeta.from_tensor(pack).as_list()


def finite(weight):
    """Return weights without those whose sums no two kernels agree on: NaN, infinities and the largest."""
    return torch.where(weight.isfinite() & (weight.abs() < 1e30), weight, torch.zeros_like(weight))


def test_self_check():
    lines = list(check.Checker(torch.device("cuda"), check.QUICK_TOKENS, mutations=20).run(check.QUICK_MATRICES))
    assert [line.text() for line in lines if not line.ok] == []


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_packer_writes_the_bytes_of_the_codec(layout, kind):
    generator = torch.Generator().manual_seed(3)
    for _ in range(12):
        rows, cols = (int(torch.randint(1, limit, (1,), generator=generator)) for limit in (400, 900))
        weight = KINDS[kind](rows, cols)
        assert torch.equal(ops.pack(weight.cuda(), LAYOUTS[layout]).cpu(), ops.pack(weight, LAYOUTS[layout])), (
            rows,
            cols,
        )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_cut_and_joined_on_the_device(layout):
    weight = special(250, 1000)
    pack, meta = packed(weight, layout)
    known = PackedMeta.from_list(meta)
    again, again_meta = concat_rows([slice_rows(pack, known, 0, 128), slice_rows(pack, known, 128, 122)])
    assert again_meta == known
    assert again.is_cuda
    assert torch.equal(again, pack)
    cut, cut_meta = slice_cols(pack, known, 256, 512)
    assert torch.equal(bits(ops.unpack(cut, cut_meta.as_list()).cpu()), bits(weight[:, 256:768]))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_opcheck_and_gradients(layout):
    weight = gaussian(126, 250)
    pack, meta = packed(weight, layout)
    x = torch.randn(3, 250, dtype=torch.bfloat16, device="cuda", requires_grad=True)
    bias = torch.randn(126, dtype=torch.bfloat16, device="cuda", requires_grad=True)
    for mode in (FAST, EXACT, INVARIANT):
        torch.library.opcheck(ops.linear.default, (x, pack, meta, bias, mode))
    torch.library.opcheck(ops.unpack.default, (pack, meta))
    torch.library.opcheck(ops.embedding.default, (torch.tensor([[1, 2], [125, 0]], device="cuda"), pack, meta))
    torch.library.opcheck(ops.pack.default, (weight.cuda(), LAYOUTS[layout]))
    ops.linear(x, pack, meta, bias, EXACT).sum().backward()
    mine = x.grad
    x.grad = None
    F.linear(x, weight.cuda(), bias).sum().backward()
    assert torch.equal(mine, x.grad)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_captured_in_a_graph_on_another_stream(layout):
    """Launches are on the current stream and wait for nothing, or capture would fail."""
    pack, meta = packed(gaussian(320, 512), layout)
    x, ids = torch.randn(4, 512, device="cuda").to(torch.bfloat16), torch.tensor([3, 319], device="cuda")

    def step():
        return [
            ops.linear(x, pack, meta, None, FAST),
            ops.linear(x, pack, meta, None, INVARIANT),
            ops.unpack(pack, meta),
            ops.embedding(ids, pack, meta),
        ]

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = step()
    x.normal_()
    for output in outputs:
        output.view(torch.int16).fill_(-1)
    graph.replay()
    for mine, theirs in zip(outputs, step(), strict=True):
        assert torch.equal(bits(mine), bits(theirs))


def test_no_tokens_and_leading_dimensions():
    weight = gaussian(126, 250)
    pack, meta = packed(weight, "tiered")
    assert ops.linear(torch.empty(0, 250, dtype=torch.bfloat16, device="cuda"), pack, meta, None, FAST).shape == (
        0,
        126,
    )
    assert ops.embedding(torch.empty(0, dtype=torch.int64, device="cuda"), pack, meta).shape == (0, 250)
    x = torch.randn(2, 3, 250, device="cuda").to(torch.bfloat16)
    strided = torch.randn(250, 5, device="cuda").to(torch.bfloat16).t()
    for each in (x, x[0, 0], strided):
        y = ops.linear(each, pack, meta, None, INVARIANT)
        assert y.shape == (*each.shape[:-1], 126)
        assert check.close(y.reshape(-1, 126), each.reshape(-1, 250), weight.cuda(), None)[1]


def test_wrong_devices_and_alignment_say_what_is_wrong():
    pack, meta = packed(gaussian(126, 250), "tiered")
    x = torch.randn(3, 250).to(torch.bfloat16)
    with pytest.raises(glyd_gpu.ShapeError, match=r"x is on cpu, the pack on cuda"):
        ops.linear(x, pack, meta, None, FAST)
    with pytest.raises(glyd_gpu.ShapeError, match=r"bias is on cpu"):
        ops.linear(x.cuda(), pack, meta, torch.zeros(126, dtype=torch.bfloat16), FAST)
    shifted = torch.cat([pack.new_zeros(1), pack])[1:]
    with pytest.raises(glyd_gpu.CudaError, match=r"glyd_gpu_unpack.*not aligned"):
        ops.unpack(shifted, meta)
    with pytest.raises(glyd_gpu.CudaError, match=r"cut short"):
        ops.unpack(pack[:-128], meta)
    lie = list(meta)
    lie[1] = 0
    with pytest.raises(glyd_codec.CorruptDataError, match=r"rows of a pack is 0"):
        ops.unpack(pack, lie)


def test_rows_outside_of_the_table_are_an_error():
    program = """
import torch, glyd_gpu
pack = torch.ops.glyd.pack((torch.randn(128, 256, device="cuda") * 0.02).bfloat16(), 2)
meta = glyd_gpu.PackedMeta.from_tensor(pack).as_list()
torch.ops.glyd.embedding(torch.tensor([5, BAD], device="cuda"), pack, meta)
torch.cuda.synchronize()
"""
    for bad in ("128", "-1"):
        done = subprocess.run(
            [sys.executable, "-c", program.replace("BAD", bad)], capture_output=True, text=True, check=False
        )
        assert done.returncode
        assert "device-side assert" in done.stderr
        assert "outside of the packed table" in done.stderr + done.stdout


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("tokens", [1, 7, 16, 33, 100, 200])
def test_products_of_the_routes_on_a_shape_that_was_not_measured(layout, tokens):
    """Odd edges, exceptions and a bias; poisoned memory; the same bits again; also in a graph, replayed twice."""
    weight = finite(special(577, 1000))
    pack, meta = packed(weight, layout)
    x = torch.randn(tokens, 1000, device="cuda").to(torch.bfloat16)
    bias = torch.randn(577, device="cuda").to(torch.bfloat16)
    torch.full((1 << 22,), float("nan"), device="cuda")  # freed: outputs are likely to be made of it
    y = ops.linear(x, pack, meta, bias, FAST)
    if _routes.choose(meta, tokens, pack.device).kernel == "decode":
        assert torch.equal(y, F.linear(x, weight.cuda(), bias))  # torch's own product may add in less than fp32
    else:
        assert check.close(y, x, weight.cuda(), bias)[1]
    for _ in range(3):
        assert torch.equal(bits(ops.linear(x, pack, meta, bias, FAST)), bits(y))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        again = [ops.linear(x, pack, meta, bias, FAST) for _ in range(2)]
    for _ in range(2):
        for each in again:
            each.fill_(float("nan"))
        graph.replay()
        assert all(torch.equal(bits(each), bits(y)) for each in again)


# layout → route and the most tokens that it takes
ROUTES = {
    "mma12": {
        "generic": 64, "decode": 300, "stream:2,16,1,0": 16, "stream:2,8,1,1": 16, "ring:8,3,1,2,0,132,1": 8,
        "ring:16,2,1,4,0,132,0": 16, "ring:32,1,2,2,2,0,1": 32, "ring:64,2,1,2,0,132,1": 64, "ring:256,2,1,1,0,132,1": 256,
        "pair:256,132,1,8,0": 600, "pair:192,6,3,1,2": 300,
    },
    "tiered": {
        "generic": 64, "decode": 300, "ring:8,3,1,1,0,132,1": 8, "ring:32,1,3,1,2,0,1": 32, "ring:64,3,1,1,0,132,1": 64,
        "ring:128,2,1,1,0,132,1": 128, "split:64,2,4,0,132,1": 200, "split:64,2,4,1,0,0": 100, "split:128,2,3,2,0,2": 128,
    },
}  # fmt: skip


@pytest.mark.parametrize(("layout", "route", "most"), [(a, r, n) for a, rs in ROUTES.items() for r, n in rs.items()])
def test_every_kind_of_route_by_force(layout, route, most, monkeypatch):
    if any(name in route for name in ("ring", "split", "pair")) and torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("rings, split roles and pairs of blocks are for Hopper")
    monkeypatch.setenv("GLYD_GPU_ROUTE", route)
    for kind, rows, cols in (("gaussian", 576, 1000), ("special", 577, 1000), ("heavy_tails", 1088, 4224)):
        weight = finite(KINDS[kind](rows, cols))
        pack, meta = packed(weight, layout)
        for tokens in sorted({1, min(7, most), most}):
            x = torch.randn(tokens, cols, device="cuda").to(torch.bfloat16)
            bias = torch.randn(rows, device="cuda").to(torch.bfloat16) if tokens % 2 else None
            torch.full((4 * tokens * rows,), float("nan"), dtype=torch.bfloat16, device="cuda")  # freed: poison
            y = ops.linear(x, pack, meta, bias, FAST)
            if route == "decode":
                assert torch.equal(y, F.linear(x, weight.cuda(), bias))
            else:
                assert check.close(y, x, weight.cuda(), bias)[1], (kind, tokens)
            assert torch.equal(bits(ops.linear(x, pack, meta, bias, FAST)), bits(y))


@pytest.mark.parametrize("mode", [FAST, EXACT, INVARIANT])
@pytest.mark.parametrize("layout", [*LAYOUTS, None])
def test_held_products_are_those_of_linear(layout, mode):
    weight, bias = gaussian(192, 256).cuda(), gaussian(1, 192)[0].cuda()
    pack, meta = packed(weight, layout) if layout else (weight.view(-1).view(torch.uint8), None)
    held = held_meta(meta, 192, 256, mode)
    for lead in ((1,), (33,), (300,), (2, 3), (0,)):
        x = torch.randn(*lead, 256, device="cuda").bfloat16()
        for b in (None, bias):
            expected = ops.linear(x, pack, meta, b, mode) if layout else F.linear(x, weight, b)
            found = torch.full((*lead, 192), float("nan"), dtype=x.dtype, device="cuda")
            ops.linear_held(x, pack, held, b, found)
            assert torch.equal(bits(found.cpu()), bits(expected.cpu())), (lead, b is None)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("slots", [1, 8, 64])
def test_products_with_one_expert_each(layout, slots):
    weight = finite(special(8 * 192, 1000))
    pack, meta = packed(weight, layout)
    experts, x = torch.randint(0, 8, (slots,)), torch.randn(slots, 1000).to(torch.bfloat16)
    torch.full((1 << 22,), float("nan"), device="cuda")  # freed: poison
    y = ops.linear_experts(x.cuda(), experts.cuda(), pack, meta, 192)
    for row, expert in enumerate(experts.tolist()):
        mine = weight[expert * 192 : (expert + 1) * 192].cuda()
        assert check.close(y[row : row + 1], x[row : row + 1].cuda(), mine, None)[1]
    again = ops.linear_experts(x.cuda(), experts.cuda().int(), pack, meta, 192)
    assert torch.equal(bits(again), bits(y))
    one = ops.linear_experts(x[:1].cuda(), experts[:1].cuda(), pack, meta, 192)
    assert torch.equal(bits(one[0]), bits(y[0]))


def test_merged_layers_notice_writes_on_the_device():
    plain = torch.nn.ModuleDict({name: torch.nn.Linear(512, n) for name, n in zip("qkv", (256, 128, 128), strict=True)})
    plain = torch.nn.ModuleDict({f"{name}_proj": layer for name, layer in plain.items()}).cuda().to(torch.bfloat16)
    plain.requires_grad_(False)
    merged = copy.deepcopy(plain)
    assert pack_modules(merged, "mma12").wrong == []
    assert merge_modules(merged) == 1

    def right(name, x):
        with torch.no_grad():
            return check.close(merged[name](x), x, plain[name].weight, plain[name].bias)[1]

    x = torch.randn(4, 512, device="cuda").to(torch.bfloat16)
    assert right("q_proj", x)
    for write in (lambda: x.mul_(2), lambda: x.add_(1), x.normal_):
        write()
        assert all(right(name, x) for name in ("k_proj", "v_proj", "q_proj"))
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        outputs = {name: layer(x) for name, layer in merged.items()}
    x.normal_()
    graph.replay()
    for name, y in outputs.items():
        assert check.close(y, x, plain[name].weight, plain[name].bias)[1]


def test_generate_from_captured_steps(tmp_path):
    """The tokens are those of plain steps, also in a second call, whose cache is another."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        head_dim=64, vocab_size=1003,
    )  # fmt: skip
    Qwen3ForCausalLM(config).to(torch.bfloat16).save_pretrained(tmp_path)
    plain = glyd_gpu.from_pretrained(tmp_path, layout="mma12", compile=False)
    model = glyd_gpu.from_pretrained(tmp_path, layout="mma12", compile=False)
    _captured.install(model)
    ids = torch.randint(0, 1000, (2, 7), device="cuda")
    options = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 0}
    wanted = plain.generate(ids, cache_implementation="static", disable_compile=True, **options)
    for n in (1, 2):
        assert torch.equal(model.generate(ids, **options), wanted)
        assert model.forward.n_replayed == 10 * n

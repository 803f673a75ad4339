# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The operators on the CPU, and what holds for them on every device."""

import copy

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

import glyd_codec
import glyd_gpu
from glyd_gpu import EXACT, FAST, INVARIANT, LAYOUTS, SAME, PackedMeta, check
from glyd_gpu._matrices import KINDS, bits, gaussian, special

ops = torch.ops.glyd


def packed(weight, layout):
    """Return pack and meta."""
    pack = ops.pack(weight, LAYOUTS[layout])
    assert pack.numel(), "does not pay"
    return pack, PackedMeta.from_tensor(pack).as_list()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rows", "cols"), [(64, 128), (192, 256), (250, 1000), (127, 765), (640, 251)])
def test_unpack_gives_every_bit(layout, kind, rows, cols):
    weight = KINDS[kind](rows, cols)
    pack, meta = packed(weight, layout)
    assert bytes(pack.numpy()) == glyd_codec.pack_weights(bytes(bits(weight).numpy()), rows, cols, layout=layout)
    assert torch.equal(bits(ops.unpack(pack, meta)), bits(weight))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(LAYOUTS)),
    st.sampled_from(sorted(KINDS)),
    st.integers(1, 260),
    st.integers(1, 700),
    st.integers(0, 9999),
)
def test_any_shape(layout, kind, rows, cols, seed):
    torch.manual_seed(seed)
    weight = KINDS[kind](rows, cols)
    pack = ops.pack(weight, LAYOUTS[layout])
    assert pack.dtype == torch.uint8
    if not pack.numel():  # tiny matrices do not pay
        assert glyd_codec.pack_weights(bytes(bits(weight).numpy()), rows, cols, layout=layout) is None
        return
    assert pack.numel() <= rows * cols * 2 * 15 // 16
    meta = PackedMeta.from_tensor(pack).as_list()
    assert torch.equal(bits(ops.unpack(pack, meta)), bits(weight))
    ids = torch.randint(0, rows, (7,))
    assert torch.equal(bits(ops.embedding(ids, pack, meta)), bits(weight[ids]))


@pytest.mark.parametrize("mode", [FAST, EXACT, INVARIANT, SAME])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(300,), (1, 300), (5, 300), (2, 3, 300), (0, 300), (2, 0, 300)])
@pytest.mark.parametrize("with_bias", [False, True])
def test_linear_is_that_of_the_unpacked_layer(mode, layout, shape, with_bias):
    weight = gaussian(190, 300)
    pack, meta = packed(weight, layout)
    x = torch.randn(shape).to(torch.bfloat16)
    bias = torch.randn(190).to(torch.bfloat16) if with_bias else None
    y = ops.linear(x, pack, meta, bias, mode)
    assert y.shape == (*shape[:-1], 190)
    assert y.dtype == torch.bfloat16
    assert torch.equal(y, F.linear(x, weight, bias))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_embedding(layout, dtype):
    weight = special(1003, 250)
    pack, meta = packed(weight, layout)
    ids = torch.randint(0, 1003, (3, 17)).to(dtype)
    ids[0, 0], ids[2, 3] = 1002, 0
    assert torch.equal(bits(ops.embedding(ids, pack, meta)), bits(weight[ids.long()]))
    assert ops.embedding(ids[:0], pack, meta).shape == (0, 17, 250)
    assert ops.embedding(ids[0, 0], pack, meta).shape == (250,)
    for bad in (-1, 1003):
        with pytest.raises(IndexError, match=r"rows 0 … 1002"):
            ops.embedding(torch.tensor([5, bad], dtype=dtype), pack, meta)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_products_with_one_expert_each(layout, dtype):
    weight = gaussian(4 * 128, 300)
    pack = ops.pack(weight, LAYOUTS[layout])
    meta = PackedMeta.from_tensor(pack).as_list()
    x = torch.randn(7, 300).to(torch.bfloat16)
    experts = torch.tensor([3, 0, 0, 2, 3, 9, -1], dtype=dtype)  # what the stack does not have is its last or first
    y = ops.linear_experts(x, experts, pack, meta, 128)
    stack = weight.view(4, 128, 300)
    for row, expert in enumerate([3, 0, 0, 2, 3, 3, 0]):
        assert check.close(y[row : row + 1], x[row : row + 1], stack[expert], None)[1]
    assert ops.linear_experts(x[:0], experts[:0], pack, meta, 128).shape == (0, 128)
    torch.library.opcheck(ops.linear_experts.default, (x, experts, pack, meta, 128))
    for wrong in (100, 192, 0):
        with pytest.raises(glyd_gpu.ShapeError, match=r"whole blocks of 64"):
            ops.linear_experts(x, experts, pack, meta, wrong)
    with pytest.raises(glyd_gpu.ShapeError, match=r"\[slots\]"):
        ops.linear_experts(x, experts[:3], pack, meta, 128)


def test_gradients():
    weight = gaussian(126, 250)
    pack, meta = packed(weight, "tiered")
    x = torch.randn(4, 3, 250, dtype=torch.bfloat16, requires_grad=True)
    bias = torch.randn(126, dtype=torch.bfloat16, requires_grad=True)
    out_grad = torch.randn(4, 3, 126).to(torch.bfloat16)
    ops.linear(x, pack, meta, bias, EXACT).backward(out_grad)
    mine = x.grad, bias.grad
    x.grad = bias.grad = None
    F.linear(x, weight, bias).backward(out_grad)
    assert torch.equal(mine[0], x.grad)
    assert torch.equal(mine[1], bias.grad)


def test_gradient_without_bias_of_one_vector():
    weight = gaussian(126, 250)
    pack, meta = packed(weight, "mma12")
    x = torch.randn(250, dtype=torch.bfloat16, requires_grad=True)
    ops.linear(x, pack, meta, None, FAST).sum().backward()
    assert torch.equal(x.grad, torch.ones(126, dtype=torch.bfloat16) @ weight)


def test_opcheck():
    weight = gaussian(126, 250)
    pack, meta = packed(weight, "tiered")
    x = torch.randn(3, 250, dtype=torch.bfloat16, requires_grad=True)
    bias = torch.randn(126, dtype=torch.bfloat16, requires_grad=True)
    for mode in (FAST, EXACT, INVARIANT, SAME):
        torch.library.opcheck(ops.linear.default, (x, pack, meta, bias, mode))
        torch.library.opcheck(ops.linear.default, (x.detach(), pack, meta, None, mode))
    torch.library.opcheck(ops.unpack.default, (pack, meta))
    torch.library.opcheck(ops.embedding.default, (torch.tensor([[1, 2], [125, 0]]), pack, meta))
    torch.library.opcheck(ops.pack.default, (weight, LAYOUTS["mma12"]))


def test_compiles_without_graph_breaks():
    weight = gaussian(126, 250)
    pack, meta = packed(weight, "tiered")

    def step(x, ids):
        return ops.linear(x * 2, pack, meta, None, FAST) + 1, ops.embedding(ids, pack, meta)

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager", dynamic=True)
    for tokens in (1, 3, 8):
        x, ids = torch.randn(tokens, 250).to(torch.bfloat16), torch.arange(tokens)
        for mine, theirs in zip(compiled(x, ids), step(x, ids), strict=True):
            assert torch.equal(mine, theirs)


def test_wrong_arguments_say_what_is_wrong():
    weight = gaussian(126, 250)
    pack, meta = packed(weight, "tiered")
    x = torch.randn(3, 250).to(torch.bfloat16)
    cases = [
        (lambda: ops.linear(x.float(), pack, meta, None, FAST), r"torch\.float32"),
        (lambda: ops.linear(x[:, :100], pack, meta, None, FAST), r"\(3, 100\).*250 features"),
        (lambda: ops.linear(x, pack, meta, x[0], FAST), r"bias is \(250,\).*not \(126,\)"),
        (lambda: ops.linear(x, pack, meta, None, 7), r"mode is 7"),
        (lambda: ops.linear(x, pack.view(torch.int8), meta, None, FAST), r"torch\.uint8"),
        (lambda: ops.linear(x, pack.view(2, -1), meta, None, FAST), r"one-dimensional"),
        (lambda: ops.linear(x, pack, meta[:6], None, FAST), r"7 integers, not 6"),
        (lambda: ops.embedding(x, pack, meta), r"ids are torch\.bfloat16"),
        (lambda: ops.pack(weight.half(), 1), r"torch\.float16"),
        (lambda: ops.pack(weight[0], 1), r"\(250,\)"),
        (lambda: ops.pack(weight, 3), r"layout is 3"),
        (lambda: ops.linear(x, pack.to("meta"), meta, None, FAST), r"on cpu, the pack on meta"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_packs_that_lie_are_refused(layout):
    weight = special(190, 300)
    pack, meta = packed(weight, layout)
    x = torch.randn(3, 300).to(torch.bfloat16)
    for length in (0, 5, 127, 128, 1000, pack.numel() - 1):
        with pytest.raises(glyd_codec.FormatError):
            ops.linear(x, pack[:length].clone(), meta, None, FAST)
        with pytest.raises(glyd_codec.FormatError):
            PackedMeta.from_tensor(pack[:length].clone())
    for field, value in (
        (0, 3 - LAYOUTS[layout]),
        (1, 191),
        (4, meta[4] + 1),
        (6, 0),
        (1, 0),
        (0, 9),
        (1, -1),
        (2, 1 << 40),
    ):
        lie = copy.copy(meta)
        lie[field] = value
        with pytest.raises((glyd_codec.FormatError, ValueError)):
            ops.unpack(pack, lie)
    wrong = 0
    generator = torch.Generator().manual_seed(5)
    for _ in range(300):
        broken = pack.clone()
        for _ in range(3):
            at = int(torch.randint(0, pack.numel(), (1,), generator=generator))
            broken[at] ^= int(torch.randint(1, 256, (1,), generator=generator))
        try:
            out = ops.unpack(broken, meta)
        except glyd_codec.FormatError:
            wrong += 1
        else:
            assert out.shape == weight.shape
    assert wrong  # most bytes are weights; those that are not must be noticed


def test_meta_says_what_the_codec_says():
    for layout in LAYOUTS:
        pack, meta = packed(special(383, 444), layout)
        info = glyd_codec.read_weights_info(bytes(pack.numpy()))
        mine = PackedMeta.from_list(meta)
        assert mine == PackedMeta.from_bytes(bytes(pack.numpy()))
        assert (mine.layout_name, mine.rows, mine.cols, mine.nbytes) == (info.layout, info.rows, info.cols, info.nbytes)
        assert (mine.row_blocks, mine.tiles, mine.tile_cols, mine.tile_nbytes) == (
            info.n_row_blocks,
            info.n_tiles,
            info.tile_cols,
            info.tile_nbytes,
        )
        assert (mine.index_at, mine.tiles_at, mine.escapes_at, mine.places_at, mine.values_at) == (
            info.index_at,
            info.tiles_at,
            info.escapes_at,
            info.exc_places_at,
            info.exc_values_at,
        ) or layout == "mma12"  # which has no index and no escapes
        assert 10 < mine.bits_per_weight < 14


def test_version_and_names():
    assert glyd_gpu.__version__
    for name in glyd_gpu.__all__:
        assert hasattr(glyd_gpu, name)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_verify_packs(layout):
    good, meta = packed(special(190, 300), layout)
    glyd_gpu.verify_packs({"a": (good, meta), "b": (good, meta)})
    bad = good.clone()
    bad[128 + 128 + 64] = 251  # a base that no row has
    with pytest.raises(glyd_codec.CorruptDataError, match=r"layers\.3\.q: .*first in rows 64 … 127"):
        glyd_gpu.verify_packs({"a": (good, meta), "layers.3.q": (bad, meta)})
    torch.library.opcheck(ops.check_pack.default, (good, meta))

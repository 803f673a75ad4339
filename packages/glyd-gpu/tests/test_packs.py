# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Cutting and joining packs."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import glyd_codec
from glyd_gpu import LAYOUTS, PackedMeta, _oracle, concat_rows, slice_cols, slice_rows
from glyd_gpu._matrices import KINDS, bits, gaussian, special

ops = torch.ops.glyd


def packed(weight, layout):
    pack = ops.pack(weight, LAYOUTS[layout])
    assert pack.numel(), "does not pay"
    return pack, PackedMeta.from_tensor(pack)


def same(have, weight, layout):
    """Check that a cut or joined pack is the one that packing gives."""
    pack, meta = have
    expected, expected_meta = packed(weight, layout)
    assert meta == expected_meta
    assert torch.equal(pack, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_rows(layout, kind):
    weight = KINDS[kind](510, 700)
    pack, meta = packed(weight, layout)
    for first, n in ((0, 510), (0, 64), (64, 128), (128, 382), (384, 126), (448, 62), (0, 448)):
        same(slice_rows(pack, meta, first, n), weight[first : first + n], layout)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rows", "cols"), [(254, 700), (192, 1153)])
def test_three_decoders_agree(layout, kind, rows, cols):
    """The codec, tensor operations of torch, and the matrix itself; kernels are held to the codec in test_cuda.py."""
    weight = KINDS[kind](rows, cols)
    pack, meta = packed(weight, layout)
    meta = meta.as_list()
    assert torch.equal(bits(_oracle.unpack(pack, meta)), bits(weight))
    assert torch.equal(bits(ops.unpack(pack, meta)), bits(weight))


def test_a_piece_too_small_to_pay_is_valid():
    weight = gaussian(450, 700)
    cut, meta = slice_rows(*packed(weight, "tiered"), 448, 2)
    assert not ops.pack(weight[448:], LAYOUTS["tiered"]).numel()
    assert torch.equal(bits(ops.unpack(cut, meta.as_list())), bits(weight[448:]))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_joined_rows(layout):
    parts = [special(128, 500), gaussian(64, 500), gaussian(192, 500, 1.0), special(125, 500)]
    same(concat_rows([packed(w, layout) for w in parts]), torch.cat(parts), layout)
    pack, meta = packed(parts[0], layout)
    same(concat_rows([(pack, meta)]), parts[0], layout)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(sorted(LAYOUTS)),
    st.sampled_from(sorted(KINDS)),
    st.integers(2, 5),
    st.integers(490, 512),
    st.integers(0, 9999),
    st.data(),
)
def test_cut_and_joined_again(layout, kind, blocks, cols, seed, data):
    torch.manual_seed(seed)
    weight = KINDS[kind](blocks * 64 - data.draw(st.integers(0, 4)), cols)
    pack, meta = packed(weight, layout)
    cut = 64 * data.draw(st.integers(1, blocks - 1))
    again, again_meta = concat_rows(
        [slice_rows(pack, meta, 0, cut), slice_rows(pack, meta, cut, weight.shape[0] - cut)]
    )
    assert again_meta == meta
    assert torch.equal(again, pack)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_columns(layout, kind):
    weight = KINDS[kind](252, 1000)
    pack, meta = packed(weight, layout)
    for first, n in ((0, 1000), (0, 256), (256, 512), (512, 488), (896, 104)):
        cut, cut_meta = slice_cols(pack, meta, first, n)
        assert (cut_meta.rows, cut_meta.cols) == (252, n)
        assert torch.equal(bits(ops.unpack(cut, cut_meta.as_list())), bits(weight[:, first : first + n]))
    whole, whole_meta = slice_cols(pack, meta, 0, 1000)
    assert whole_meta == meta
    assert torch.equal(whole, pack)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_ranges_that_cannot_be(layout):
    pack, meta = packed(gaussian(250, 300), layout)
    for first, n in ((1, 64), (0, 63), (64, 0), (128, 128), (-64, 64), (256, 1)):
        with pytest.raises(ValueError, match=r"of 250 are no range"):
            slice_rows(pack, meta, first, n)
    for first, n in ((1, 128), (0, 100), (128, 0), (256, 128), (-128, 128)):
        with pytest.raises(ValueError, match=r"of 300 are no range"):
            slice_cols(pack, meta, first, n)


def test_packs_that_do_not_fit_together():
    a, b = packed(gaussian(128, 300), "tiered"), packed(gaussian(124, 300), "tiered")
    with pytest.raises(ValueError, match="no packs"):
        concat_rows([])
    with pytest.raises(ValueError, match="pack 0 of 2 has 124 rows"):
        concat_rows([b, a])
    with pytest.raises(ValueError, match="mma12"):
        concat_rows([a, packed(gaussian(128, 300), "mma12")])
    with pytest.raises(ValueError, match="columns"):
        concat_rows([a, packed(gaussian(128, 301), "tiered")])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_start_fields_that_lie(layout):
    pack, meta = packed(special(300, 300), layout)
    for at in (128 + 128 + 8, 128 + 4, *([128 + 128 + 16, meta.index_at + 4] if layout == "tiered" else [])):
        broken = pack.clone()
        broken[at] ^= 0x41
        with pytest.raises(glyd_codec.CorruptDataError):
            slice_rows(broken, meta, 64, 64)
    with pytest.raises(glyd_codec.TruncatedError):
        slice_rows(pack[:-1].clone(), meta, 64, 64)

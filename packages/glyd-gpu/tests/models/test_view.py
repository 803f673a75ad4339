# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``module.weight`` of a packed module: a parameter to look at and to compute with, not to write to."""

import copy
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import glyd_gpu
from glyd_gpu._tensors import PackedTensor, Piece
from glyd_gpu.modules import install


@pytest.fixture
def weight():
    return (torch.randn(190, 256) * 0.02).to(torch.bfloat16)


@pytest.fixture
def layer(weight):
    layer = nn.Linear(256, 190, bias=False, dtype=torch.bfloat16)
    data = torch.ops.glyd.pack(weight, glyd_gpu.LAYOUTS["tiered"])
    meta = glyd_gpu.PackedMeta.from_tensor(data)
    piece = Piece(0, meta.nbytes, tuple(meta.as_list()), meta.rows, "weight", (meta.rows, meta.cols))
    return install(layer, "weight", PackedTensor((190, 256), (piece,)), data)


@pytest.fixture
def decoded(monkeypatch, layer):
    """Count how often the weights are decoded."""
    calls = []
    unpacked = type(layer).unpacked
    monkeypatch.setattr(type(layer), "unpacked", lambda *args: calls.append(1) or unpacked(*args))
    return calls


def test_looked_at_without_decoding(layer, decoded):
    view = layer.weight
    assert isinstance(view, nn.Parameter)
    assert (view.shape, view.dtype, view.device, view.ndim) == ((190, 256), torch.bfloat16, torch.device("cpu"), 2)
    assert (view.numel(), view.element_size(), len(view), view.dim()) == (190 * 256, 2, 190, 2)
    assert (view.requires_grad, view.is_meta, view.is_cuda) == (False, False, False)
    assert view.is_floating_point()
    assert view.data.detach().shape == (190, 256)
    assert view.data_ptr() == layer.weight_packed.data_ptr()
    assert "190" in repr(view)
    assert not decoded


def test_computed_with(layer, weight):
    view = layer.weight
    x = torch.randn(3, 256, dtype=torch.bfloat16)
    assert torch.equal(view + 0, weight)
    assert torch.equal(view.clone(), weight)
    assert torch.equal(view.data[5:7], weight[5:7])
    assert torch.equal(view[5], weight[5])
    assert torch.equal(view.t() @ view, weight.t() @ weight)
    assert torch.equal(F.linear(x, view), F.linear(x, weight))
    assert torch.equal(F.embedding(torch.tensor([1, 189]), view), weight[[1, 189]])
    assert torch.equal(torch.zeros(190, 256, dtype=torch.bfloat16).copy_(view), weight)
    assert torch.equal(torch.cat([view, view]), torch.cat([weight, weight]))
    assert torch.equal(copy.deepcopy(view), weight)
    assert torch.equal(pickle.loads(pickle.dumps(view)), weight)
    assert type(view.float()) is torch.Tensor


@pytest.mark.parametrize(
    "write",
    [
        lambda w: w.add_(1),
        lambda w: w.data.copy_(torch.ones(190, 256)),
        lambda w: w.__setitem__(0, 1.0),
        lambda w: w.data.zero_(),
        lambda w: w.__iadd__(1),
        lambda w: setattr(w, "data", torch.ones(190, 256)),
        lambda w: setattr(w.data, "data", torch.ones(190, 256)),
        lambda w: w.requires_grad_(),
        lambda w: setattr(w, "requires_grad", True),
        nn.init.normal_,
    ],
)
def test_not_written_to(layer, weight, write):
    with pytest.raises(glyd_gpu.ReadOnlyWeightError, match="dequantize"):
        write(layer.weight)
    assert torch.equal(layer.weight.unpacked(), weight)


def test_not_replaced(layer, weight):
    for value in (nn.Parameter(weight), weight, None):
        with pytest.raises(glyd_gpu.ReadOnlyWeightError, match="cannot be replaced"):
            layer.weight = value
    other = copy.deepcopy(layer)
    layer.weight = other.weight  # how weights are tied
    assert layer.weight_packed is other.weight_packed


def test_requires_grad_can_be_turned_off(layer):
    assert layer.weight.requires_grad_(False).shape == (190, 256)
    layer.requires_grad_(False)

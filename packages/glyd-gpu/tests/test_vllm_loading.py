# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What the vLLM plugin does without vLLM: options, packs that travel as views, layers that are filled, operators.

Real vLLM is tested by ``nox -s tests_vllm``.
"""

import contextlib
import gc
import importlib.metadata
import logging
import weakref

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._inductor.utils import run_and_get_code

import glyd_gpu
from glyd_codec import CorruptDataError
from glyd_gpu import _backend_cuda
from glyd_gpu._checkpoint import Source
from glyd_gpu._errors import ParameterError, ShapeError
from glyd_gpu._matrices import gaussian
from glyd_gpu._ops import held_meta
from glyd_gpu._routes import Route
from glyd_gpu._view import PackedView
from glyd_gpu.integrations import vllm as plugin
from glyd_gpu.integrations.vllm_loading import Arrived, Filling
from glyd_gpu.integrations.vllm_options import Options, read_options

CPU = torch.device("cpu")


def packed(weight, layout="mma12"):
    data = torch.ops.glyd.pack(weight, glyd_gpu.LAYOUTS[layout])
    return data, glyd_gpu.PackedMeta.from_tensor(data)


def view(weight, name="w", layout="mma12", shape=None):
    data, meta = packed(weight.reshape(-1, weight.shape[-1]), layout)
    padded = torch.cat([data, torch.zeros(16, dtype=torch.uint8)])  # as a file may have it
    source = Source(name + "_packed", name, "f", 0, padded.numel(), "U8", shape or tuple(weight.shape), meta)
    return PackedView(Arrived(source, padded, CPU), "weight")


def narrowing_loader(rank, size):
    """Load like a row-parallel layer: a slice of the columns."""

    def load(param, loaded):
        width = param.shape[1]
        param.data.copy_(loaded.narrow(1, rank * width, width))

    return load


def rows_loader(param, loaded, first):
    """Load like a merged layer: rows from `first` on."""
    param.data.narrow(0, first, loaded.shape[0]).copy_(loaded)


class Owner(nn.Module):
    """Loads as a layer of vLLM does: by a method of its own."""

    def load(self, param, loaded):
        param.data.copy_(loaded)


def filling(shape, loader, layout="mma12", verify=True, mode=glyd_gpu.EXACT):
    layer = nn.Module()
    made = Filling(
        layer,
        "weight",
        "layers.0.x",
        shape,
        {"input_dim": 1, "output_dim": 0, "weight_loader": loader},
        device=CPU,
        layout=layout,
        mode=mode,
        verify=verify,
    )
    layer.register_parameter("weight", made.placeholder())
    return layer, made


def test_entry_point_of_the_plugin():
    (entry,) = importlib.metadata.distribution("glyd-gpu").entry_points.select(group=plugin.ENTRY_GROUP)
    assert entry.load() is plugin.register


def test_registering_without_vllm_does_not_raise(caplog, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "vllm", None)
    with caplog.at_level(logging.WARNING, logger="vllm.glyd"):
        plugin.register()
        plugin.register()
    assert "cannot register with vLLM" in caplog.text


@pytest.mark.parametrize("layout", ["mma12", "tiered"])
def test_a_whole_pack_is_taken_as_it_is(layout):
    weight = gaussian(192, 256)
    layer, made = filling((192, 256), None, layout)
    assert layer.weight.weight_loader(layer.weight, view(weight, layout=layout))
    assert made.done
    assert made.is_packed
    assert torch.equal(layer.weight_packed, packed(weight, layout)[0])
    assert layer.weight.numel() == 0
    assert layer.weight.dtype == torch.bfloat16


def test_another_layout_is_packed_anew():
    weight = gaussian(128, 256)
    layer, made = filling((128, 256), lambda p, w: p.data.copy_(w), "tiered")
    layer.weight.weight_loader(layer.weight, view(weight, layout="mma12"))
    assert made.done
    assert torch.equal(layer.weight_packed, packed(weight, "tiered")[0])


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_a_slice_is_the_pack_of_the_slice(rank):
    weight = gaussian(192, 3 * 128)
    layer, made = filling((192, 128), narrowing_loader(rank, 3))
    layer.weight.weight_loader(layer.weight, view(weight))
    assert made.done
    expected = weight[:, 128 * rank : 128 * (rank + 1)].contiguous()
    assert torch.equal(layer.weight_packed, packed(expected)[0])


def test_merged_layers_are_packed_when_the_last_part_is_there():
    parts = [gaussian(128, 256), gaussian(64, 256), gaussian(60, 256)]
    layer, made = filling((252, 256), rows_loader)
    layer.weight.weight_loader(layer.weight, view(parts[2]), 192)
    layer.weight.weight_loader(layer.weight, parts[0], 0)  # one that is not packed in the checkpoint
    assert not made.done
    layer.weight.weight_loader(layer.weight, view(parts[1]), 128)
    assert made.done
    assert torch.equal(layer.weight_packed, packed(torch.cat(parts))[0])


def test_missing_parts_are_an_error_that_counts():
    layer, made = filling((192, 256), rows_loader)
    layer.weight.weight_loader(layer.weight, gaussian(64, 256), 0)
    with pytest.raises(CorruptDataError, match=r"layers\.0\.x\.weight: 16384 of 49152 weights"):
        made.close(dummy=False)


def test_loading_twice_is_refused():
    layer, _ = filling((64, 256), None)
    placeholder = layer.weight
    placeholder.weight_loader(placeholder, view(gaussian(64, 256)))
    with pytest.raises(ParameterError, match="cannot be loaded anew"):
        placeholder.weight_loader(placeholder, view(gaussian(64, 256)))


def test_tied_layers_share_one_pack():
    layer, made = filling((64, 256), None)
    other = nn.Module()
    made.add_owner(other)
    layer.weight.weight_loader(layer.weight, view(gaussian(64, 256)))
    assert other.weight_packed is layer.weight_packed


def test_layers_may_be_tied_once_they_are_loaded():
    layer, made = filling((64, 256), None)
    layer.weight.weight_loader(layer.weight, view(gaussian(64, 256)))
    other = nn.Module()
    made.add_owner(other)
    assert other.weight_packed is layer.weight_packed
    assert other.weight_held is layer.weight_held


@pytest.mark.parametrize("whole", [True, False])
def test_what_is_kept_of_loading_does_not_keep_a_layer(whole):
    """vLLM keeps the placeholder for as long as its layer lives."""
    owner = Owner()
    layer, made = filling((64, 256), owner.load)
    kept, layer.glyd_filling = layer.weight, made
    kept.weight_loader(kept, view(gaussian(64, 256)) if whole else gaussian(64, 256))
    assert made.is_packed
    gone = weakref.ref(layer), weakref.ref(owner), weakref.ref(layer.weight_packed)
    del layer, made, owner
    gc.collect()
    assert [reference() for reference in gone] == [None, None, None]
    assert kept.device.type == "meta"


def held_linear(x, pack, held, rows, bias=None):
    """Multiply as layers of vLLM do."""
    y = x.new_empty((*x.shape[:-1], rows))
    torch.ops.glyd.linear_held(x, pack, held, bias, y)
    return y


@pytest.mark.parametrize("layout", [None, "mma12"])
def test_products_of_what_is_packed_and_of_what_does_not_pay(layout):
    rows = 64 if layout else 3
    weight = gaussian(rows, 256)
    layer, made = filling((rows, 256), lambda p, w: p.data.copy_(w), layout)
    layer.weight.weight_loader(layer.weight, weight)
    assert made.is_packed == (layout is not None)
    x, bias = torch.randn(5, 256, dtype=torch.bfloat16), torch.randn(rows, dtype=torch.bfloat16)
    assert torch.equal(held_linear(x, layer.weight_packed, layer.weight_held, rows, bias), F.linear(x, weight, bias))
    ids = torch.tensor([[0, 2], [1, 1]])
    found = torch.ops.glyd.embedding_held(ids, layer.weight_packed, layer.weight_held, 256)
    assert torch.equal(found, F.embedding(ids, weight))


@pytest.mark.parametrize("lead", [(1,), (5,), (2, 3)])
def test_products_by_torch_into_a_buffer_have_the_bits_of_a_layer(lead):
    x, weight = torch.randn(*lead, 256).bfloat16(), gaussian(64, 256)
    for bias in (None, torch.randn(64).bfloat16()):
        out = torch.full((*lead, 64), float("nan"), dtype=torch.bfloat16)
        _backend_cuda._as_torch(x, weight, bias, out)
        assert torch.equal(out, F.linear(x, weight, bias))


@pytest.mark.parametrize("kernel", ["decode", "generic", "ring", "same"])
@pytest.mark.parametrize("lead", [(5,), (2, 3), (0,)])
def test_products_on_a_device_go_to_the_kernel_of_their_route(kernel, lead, monkeypatch):
    """The functions for CUDA with the kernels of the CPU in their place."""
    weight, bias = gaussian(64, 256), torch.randn(64).bfloat16()
    data, meta = packed(weight)
    launched = []

    def generic(x, pack, bias, known, stream, out):
        launched.append(("generic", known, stream))
        out.copy_(F.linear(x, weight, bias))

    def product(route, x, pack, rows, bias, known, stream, out, *, early):
        launched.append((route.kernel, known, stream, early))
        out.copy_(F.linear(x, weight, bias))

    def same(x, pack, meta, bias, known, stream):
        launched.append(("same", known, stream))
        return F.linear(x, weight, bias)

    def unpack(pack, meta):
        launched.append(("decode",))
        return weight

    route = Route(kernel, (8, 3, 1, 2, 0, 132, 1) if kernel == "ring" else ())
    monkeypatch.setattr(_backend_cuda, "_launch", lambda device, meta: contextlib.nullcontext((tuple(meta), 7)))
    monkeypatch.setattr(_backend_cuda._routes, "choose", lambda meta, tokens, device: route)
    monkeypatch.setattr(_backend_cuda._products, "product", product)
    for name, function in (("_generic", generic), ("_same", same), ("unpack", unpack)):
        monkeypatch.setattr(_backend_cuda, name, function)
    x, known = torch.randn(*lead, 256).bfloat16(), meta.as_list()
    mode = glyd_gpu.SAME if kernel == "same" else glyd_gpu.FAST
    y = _backend_cuda.linear(x, data, known, bias, mode)
    held = torch.empty_like(y)
    _backend_cuda.linear_held(x, data, held_meta(known, 64, 256, mode), bias, held)
    assert torch.equal(y, F.linear(x, weight, bias))
    assert torch.equal(held, y)
    expected = {"decode": [("decode",)] * 2, "ring": [("ring", tuple(known), 7, early) for early in (True, False)]}
    assert launched == (expected.get(kernel, [(kernel, tuple(known), 7)] * 2) if x.numel() else [])
    assert torch.equal(_backend_cuda.linear(x, data, known, bias, glyd_gpu.EXACT), y)


def test_held_operators_trace_without_the_numbers_of_a_pack():
    a, b = (packed(gaussian(64, 256)) for _ in range(2))

    def model(x, pack, held):
        return held_linear(x, pack, held, 64).float().sum()

    n_graphs = []

    def backend(graph, inputs):
        n_graphs.append(graph)
        return graph.forward

    compiled = torch.compile(model, backend=backend, dynamic=True)
    x = torch.randn(3, 256, dtype=torch.bfloat16)
    for data, meta in (a, b):
        held = held_meta(meta.as_list(), 64, 256, glyd_gpu.EXACT)
        assert compiled(x, data, held) == model(x, data, held)
    assert len(n_graphs) == 1


def test_inductor_takes_a_held_product_to_be_aligned():
    """Otherwise kernels that read it load value by value: measured 1.1 to 1.9 times as long."""
    data, meta = packed(gaussian(256, 256))
    held = held_meta(meta.as_list(), 256, 256, glyd_gpu.EXACT)

    def model(x, pack, held):
        return held_linear(held_linear(x, pack, held, 256), pack, held, 256)

    x = torch.randn(3, 256, dtype=torch.bfloat16)
    found, (code,) = run_and_get_code(torch.compile(model, fullgraph=True), x, data, held)
    assert torch.equal(found, model(x, data, held))
    assert code.count("torch.ops.glyd.linear_held.default(") == 2
    assert "not aligned" not in code
    assert ".copy_(" not in code


def test_held_operators_refuse_other_shapes():
    data, meta = packed(gaussian(64, 256))
    held = held_meta(meta.as_list(), 64, 256, glyd_gpu.EXACT)
    x = torch.randn(3, 256, dtype=torch.bfloat16)
    with pytest.raises(ShapeError, match="65 rows"):
        held_linear(x, data, held, 65)
    with pytest.raises(ShapeError, match=r"x is \(3, 256\), out \(2, 64\)"):
        torch.ops.glyd.linear_held(x, data, held, None, torch.empty(2, 64, dtype=torch.bfloat16))
    with pytest.raises(ShapeError, match=r"out is torch\.float32"):
        torch.ops.glyd.linear_held(x, data, held, None, torch.empty(3, 64))
    with pytest.raises(ShapeError, match="255 columns"):
        torch.ops.glyd.embedding_held(torch.tensor([1]), data, held, 255)
    with pytest.raises(ShapeError, match="are 32768 bytes"):
        held_linear(x, data[:100], held_meta(None, 64, 256, 0), 64)


def test_views_of_stacks_give_single_experts():
    stack = gaussian(4 * 64, 256).view(4, 64, 256)
    found = view(stack)
    assert tuple(found.shape) == (4, 64, 256)
    assert torch.equal(found[2], stack[2])
    assert torch.equal(found.chunk(2, dim=1)[1], stack[:, 32:])


def test_options_of_command_line_and_environment():
    assert read_options({}, {}) == Options()
    assert read_options({"glyd": {"layout": "tiered", "share": 0.5}}, {}) == Options(layout="tiered", share=0.5)
    environment = {"GLYD_VLLM_EXACT": "1", "GLYD_VLLM_LAYOUT": "mma12", "GLYD_VLLM_SHARE": ".25"}
    assert read_options(None, environment) == Options(layout="mma12", exact=True, share=0.25)
    assert read_options({"glyd": {"exact": False}}, environment).exact is False


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"glyd": {"layuot": "tiered"}}, "unknown option 'layuot'; there are layout, exact"),
        ({"glyd": {"layout": "mma13"}}, "must be auto, mma12 or tiered"),
        ({"glyd": {"share": 2}}, "between 0 and 1"),
        ({"glyd": {"exact": "perhaps"}}, "must be true or false, not 'perhaps'"),
        ({"glyd": {"share": "half"}}, "must be float"),
        ({"glyd": 3}, "must be an object"),
    ],
)
def test_bad_options_are_named(given, words):
    with pytest.raises(ParameterError, match=words):
        read_options(given, {})

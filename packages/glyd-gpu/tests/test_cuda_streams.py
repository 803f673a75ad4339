# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Kernels on other streams, in graphs beside one another, in compiled code, and on a second device."""

import os
import subprocess
import sys
import threading

import pytest
import torch
from torch import nn

import glyd_gpu
from glyd_gpu import EXACT, FAST, INVARIANT, LAYOUTS, PackedMeta
from glyd_gpu._matrices import bits, gaussian
from glyd_gpu._pack_live import pack_modules
from glyd_gpu.modules import set_exact

pytestmark = pytest.mark.gpu
ops = torch.ops.glyd
two = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")


def packed(weight, layout, device="cuda:0"):
    pack = ops.pack(weight.to(device), LAYOUTS[layout])
    return pack, PackedMeta.from_tensor(pack).as_list()


def everything(x, pack, meta):
    """Return what each operator gives."""
    ids = torch.arange(3, device=x.device).flip(0) * 2
    products = [ops.linear(x, pack, meta, None, mode) for mode in (FAST, EXACT, INVARIANT)]
    grouped = ops.linear_experts(x[:3].contiguous(), ids % 2, pack, meta, meta[1] // 2)
    return [*products, grouped, ops.unpack(pack, meta), ops.embedding(ids, pack, meta)]


def same(a, b):
    return all(torch.equal(bits(x.cpu()), bits(y.cpu())) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("tokens", [3, 40, 200])
def test_behind_a_long_kernel_of_a_side_stream(layout, tokens):
    """What is launched waits for its own stream, and for no other."""
    pack, meta = packed(gaussian(640, 1024), layout)
    x = torch.randn(tokens, 1024, device="cuda").to(torch.bfloat16)
    wanted = everything(x, pack, meta)
    late = torch.full_like(x, float("nan"))
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)  # about 50 ms
        late.copy_(x)
        got = everything(late, pack, meta)
    stream.synchronize()
    assert same(got, wanted)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_two_graphs_take_turns(layout):
    packs = [packed(gaussian(640, 768), layout) for _ in range(2)]
    x = torch.randn(9, 768, device="cuda").to(torch.bfloat16)
    wanted = [everything(x, *each) for each in packs]
    graphs, outputs = [], []
    for each in packs:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outputs.append(everything(x, *each))
        graphs.append(graph)
    for number in (0, 1, 1, 0, 1, 0):
        for output in outputs[number]:
            output.view(torch.int16).fill_(-1)
        graphs[number].replay()
        assert same(outputs[number], wanted[number])


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compiled(mode):
    torch._dynamo.reset()
    plain = nn.Sequential(nn.Linear(64, 512), nn.Linear(512, 640), nn.Linear(640, 32)).cuda().to(torch.bfloat16)
    mixed = nn.Sequential(*plain)
    reference = [layer.weight.detach().clone() for layer in plain]
    assert pack_modules(mixed[1], "mma12").wrong == []
    set_exact(mixed, True)
    compiled = torch.compile(mixed, fullgraph=True, dynamic=mode == "default", mode=mode)
    with torch.no_grad():
        for tokens in (1, 7, 16, 129, 4096, 16384, 7) if mode == "default" else (7, 129, 7):
            x = torch.randn(tokens, 64, device="cuda").to(torch.bfloat16)
            for _ in range(3):
                y = compiled(x).clone()
            error = (y.float() - mixed(x).float()).norm() / mixed(x).float().norm()
            assert error < 1e-2, tokens
    assert torch.equal(mixed[1].weight.unpacked(), reference[1])


@two
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_second_device_gives_the_bits_of_the_first(layout):
    weight, x = gaussian(640, 1024), torch.randn(9, 1024).to(torch.bfloat16)
    torch.cuda.set_device(0)
    wanted = everything(x.cuda(), *packed(weight, layout))
    mine = everything(x.to("cuda:1"), *packed(weight, layout, "cuda:1"))  # the current device is 0
    assert all(each.device.index == 1 for each in mine)
    assert same(mine, wanted)
    assert torch.cuda.current_device() == 0
    torch.cuda.set_device(1)
    try:
        assert same(everything(x.to("cuda:0"), *packed(weight, layout, "cuda:0")), wanted)
        assert torch.cuda.current_device() == 1
    finally:
        torch.cuda.set_device(0)
    pack, meta = packed(weight, layout, "cuda:1")
    with pytest.raises(glyd_gpu.ShapeError, match=r"x is on cuda:0, the pack on cuda:1"):
        ops.linear(x.to("cuda:0"), pack, meta, None, FAST)
    stream = torch.cuda.Stream("cuda:1")
    there = x.to("cuda:1")
    torch.cuda.synchronize("cuda:1")
    with torch.cuda.stream(stream):
        on_stream = everything(there, pack, meta)
    stream.synchronize()
    assert same(on_stream, wanted)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.device(1), torch.cuda.graph(graph):
        captured = everything(there, pack, meta)
    graph.replay()
    torch.cuda.synchronize("cuda:1")
    assert same(captured, wanted)
    assert torch.cuda.current_device() == 0


@two
def test_two_threads_with_a_device_each():
    weight, x = gaussian(640, 1024), torch.randn(9, 1024).to(torch.bfloat16)
    wanted = everything(x.cuda(), *packed(weight, "mma12"))
    found = {}

    def work(index):
        pack, meta = packed(weight, "mma12", f"cuda:{index}")
        there = x.to(f"cuda:{index}")
        found[index] = all(same(everything(there, pack, meta), wanted) for _ in range(20))

    threads = [threading.Thread(target=work, args=(index,)) for index in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {0: True, 1: True}


@two
def test_layers_on_both_devices(tmp_path):
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
        head_dim=64, vocab_size=1003, tie_word_embeddings=False,
    )  # fmt: skip
    Qwen3ForCausalLM(config).to(torch.bfloat16).save_pretrained(tmp_path)
    names = {f"model.layers.{i}": i % 2 for i in range(4)}
    places = {"model.embed_tokens": 0, "model.rotary_emb": 0, "model.norm": 1, "lm_head": 1, **names}
    ids = torch.randint(0, 1000, (2, 7), device="cuda:0")
    with torch.no_grad():
        one = glyd_gpu.from_pretrained(tmp_path, device="cuda:0", exact=True, layout="tiered")(ids).logits
        both = glyd_gpu.from_pretrained(tmp_path, device_map=places, exact=True, layout="tiered")(ids).logits
        other = glyd_gpu.from_pretrained(tmp_path, device="cuda:1", exact=True, layout="tiered")(ids.to(1)).logits
    assert same([one], [both])
    assert same([one], [other])


@two
def test_only_the_second_device_is_visible():
    program = (
        "import torch, glyd_gpu; w = torch.randn(128, 256).bfloat16(); "
        "p = torch.ops.glyd.pack(w.cuda(), 1); m = glyd_gpu.PackedMeta.from_tensor(p).as_list(); "
        "assert torch.equal(torch.ops.glyd.unpack(p, m).cpu(), w) and torch.cuda.device_count() == 1"
    )
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

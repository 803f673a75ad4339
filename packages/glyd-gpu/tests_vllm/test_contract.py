# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The classes of every vLLM that the plugin is for, from its real wheel.

The Python files of the wheels named by ``GLYD_VLLM_SOURCES`` (folders, separated
by colons) are imported beside the dependencies of the vLLM that is installed.
Every one's own classes then load small layers and experts through the plugin and
multiply with them on the CPU, without vLLM's compiled code.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

METRICS = Path(__file__).parents[3] / "examples" / "vllm-metrics"
SOURCES = [Path(p) for p in os.environ.get("GLYD_VLLM_SOURCES", "").split(":") if p]

PROGRAM = """
import inspect
from glyd_gpu.integrations import vllm as plugin
plugin.register()
plugin.register()
from vllm.model_executor.layers.quantization import get_quantization_config
config = get_quantization_config("glyd").from_config({"quant_method": "glyd", "version": 1, "layout": "tiered"})
assert config.checkpoint_layout == "tiered"
from glyd_gpu.integrations import vllm_experts, vllm_layers, vllm_loading
for cls in (vllm_layers.GlydLinearMethod, vllm_layers.GlydEmbeddingMethod, vllm_experts.GlydExpertsMethod):
    assert not getattr(cls, "__abstractmethods__", None), (cls, cls.__abstractmethods__)
from vllm.model_executor.layers import linear, vocab_parallel_embedding as vocab, fused_moe
ours = set(inspect.signature(vllm_layers.GlydLinearMethod.create_weights).parameters)
theirs = set(inspect.signature(linear.UnquantizedLinearMethod.create_weights).parameters)
assert theirs <= ours, theirs - ours
theirs = set(inspect.signature(linear.UnquantizedLinearMethod.apply).parameters)
assert theirs == set(inspect.signature(vllm_layers.GlydLinearMethod.apply).parameters), theirs
theirs = set(inspect.signature(vocab.UnquantizedEmbeddingMethod.embedding).parameters)
assert theirs == set(inspect.signature(vllm_layers.GlydEmbeddingMethod.embedding).parameters), theirs
assert fused_moe.RoutedExperts
for cls in (linear.ReplicatedLinear, linear.ColumnParallelLinear, linear.MergedColumnParallelLinear,
            linear.QKVParallelLinear, linear.RowParallelLinear, vocab.VocabParallelEmbedding):
    first, second = list(inspect.signature(cls.weight_loader).parameters)[1:3]
    assert (first, second) == ("param", "loaded_weight"), (cls, first, second)
assert list(inspect.signature(fused_moe.RoutedExperts.weight_loader).parameters)[1:3] == ["param", "loaded_weight"]
vllm_loading.install()
from vllm.model_executor.model_loader import default_loader, weight_utils
assert default_loader.DefaultModelLoader._get_weights_iterator.glyd
assert callable(weight_utils.initialize_single_dummy_weight)
print("contract holds")
"""

LAYERS = """
import types
import torch
from torch.nn.functional import linear as product, silu
from glyd_gpu.integrations import vllm as plugin
plugin.register()
from vllm.config import VllmConfig, set_current_vllm_config
from vllm.distributed import init_distributed_environment, initialize_model_parallel
from vllm.model_executor.layers import fused_moe, linear, vocab_parallel_embedding as vocab
from vllm.model_executor.layers.quantization import get_quantization_config

torch.manual_seed(0)
torch.set_default_dtype(torch.bfloat16)
current = VllmConfig(additional_config={"glyd": {"layout": "tiered", "verify": True}})
text = types.SimpleNamespace(num_hidden_layers=1)
current.model_config = types.SimpleNamespace(hf_text_config=text, model="", dtype=torch.bfloat16, is_moe=True)


def weights(*shape):
    return torch.randn(*shape) * 0.05


def load(layer, parts):
    for shard, part in parts:
        layer.weight.weight_loader(layer.weight, part, *([] if shard is None else [shard]))
    return layer, torch.cat([part for _, part in parts])


def check(found, expected, name):
    off = (found.float() - expected.float()).abs().max().item()
    assert off < 0.02, (name, off)


with set_current_vllm_config(current):
    init_distributed_environment(1, 0, "file://FILE", 0, "gloo")
    initialize_model_parallel(1, 1)
    config = get_quantization_config("glyd").from_config({"quant_method": "glyd", "version": 1})

    def options(name, **more):
        return {"quant_config": config, "prefix": "model.layers.0." + name} | more

    plain = {"bias": False}
    layers = {
        "column": load(linear.ColumnParallelLinear(128, 192, **options("a", **plain)), [(None, weights(192, 128))]),
        "row": load(linear.RowParallelLinear(128, 64, **options("b", **plain)), [(None, weights(64, 128))]),
        "replicated": load(linear.ReplicatedLinear(128, 64, **options("c", **plain)), [(None, weights(64, 128))]),
        "merged": load(
            linear.MergedColumnParallelLinear(128, [192, 192], **options("d", **plain)),
            [(0, weights(192, 128)), (1, weights(192, 128))],
        ),
        "qkv": load(
            linear.QKVParallelLinear(128, 32, 4, 2, **options("e", **plain)),
            [("q", weights(128, 128)), ("k", weights(64, 128)), ("v", weights(64, 128))],
        ),
        "embedding": load(vocab.VocabParallelEmbedding(100, 128, **options("f")), [(None, weights(100, 128))]),
        "head": load(vocab.ParallelLMHead(100, 128, **options("g")), [(None, weights(100, 128))]),
    }
    embedding, table = layers["embedding"]
    layers["tied"] = vocab.ParallelLMHead(100, 128, **options("h")).tie_weights(embedding), table
    x = weights(5, 128)
    for layer, _ in layers.values():
        layer.quant_method.process_weights_after_loading(layer)
    for name, (layer, expected) in layers.items():
        assert type(layer.quant_method).__module__ == "glyd_gpu.integrations.vllm_layers", name
        assert layer.weight_packed.numel() < 2 * layer.glyd_rows * layer.glyd_cols, name
        if name == "embedding":
            ids = torch.tensor([3, 99])
            assert torch.equal(layer.quant_method.embedding(layer, ids), expected[ids])
        else:
            found = layer.quant_method.apply(layer, x, None)
            check(found[:, : len(expected)], product(x, expected), name)  # words are padded to 64

    make = getattr(fused_moe, "FusedMoEFactory", None) or fused_moe.FusedMoE
    sizes = {"num_experts": 4, "top_k": 2, "hidden_size": 128, "intermediate_size": 128}
    made = make(**options("experts", params_dtype=torch.bfloat16, **sizes))
    (experts,) = (module for module in made.modules() if isinstance(module, fused_moe.RoutedExperts))
    method = experts.quant_method
    assert type(method).__name__ == "GlydExpertsMethod", type(method)
    gate, up, down = weights(4, 128, 128), weights(4, 128, 128), weights(4, 128, 128)
    for e in range(4):
        for name, shard, stack in (("w13_weight", "w1", gate), ("w13_weight", "w3", up), ("w2_weight", "w2", down)):
            parameter = getattr(experts, name)
            parameter.weight_loader(parameter, stack[e], "experts." + name, shard_id=shard, expert_id=e)
    method.process_weights_after_loading(experts)
    assert all(filling.is_packed for filling in experts.glyd_fillings)
    ids, scales = torch.tensor([[0, 3], [1, 0], [2, 3]], dtype=torch.int32), torch.rand(3, 2, dtype=torch.float32)
    expected = torch.zeros(3, 128)
    for t in range(3):
        for scale, e in zip(scales[t], ids[t].tolist()):
            expected[t] += scale * product(silu(product(x[t], gate[e])) * product(x[t], up[e]), down[e])
    check(method.apply(experts, x[:3], scales, ids, None), expected, "experts")
print("contract holds")
"""
ON_CPU = "Metadata-Version: 2.1\nName: vllm\nVersion: 0+cpu\n"  # where no wheel for the CPU says so itself


def holds(program, folder, *paths):
    described = folder / "described" / "vllm-0+cpu.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text(ON_CPU)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*map(str, paths), str(described.parent)])}
    program = program.replace("FILE", str(folder / "ranks"))
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=900)
    return "contract holds" in done.stdout or done.stdout[-2000:] + done.stderr[-4000:]


@pytest.mark.skipif(not SOURCES, reason="GLYD_VLLM_SOURCES names no versions")
@pytest.mark.parametrize("program", [PROGRAM, LAYERS], ids=["classes", "layers"])
@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.name)
def test_other_versions(source, program, tmp_path):
    assert holds(program, tmp_path, source) is True


@pytest.mark.parametrize("program", [PROGRAM, LAYERS], ids=["classes", "layers"])
def test_the_installed_version(program, tmp_path):
    assert holds(program, tmp_path) is True


@pytest.mark.parametrize("source", [None, *SOURCES], ids=lambda p: p.name if p else "installed")
def test_metrics_of_the_examples(source):
    package = source / "vllm" if source else Path(importlib.util.find_spec("vllm").origin).parent
    there = "".join(file.read_text() for file in (package / "v1" / "metrics").glob("*.py"))
    named = {name for file in METRICS.iterdir() for name in re.findall(r"vllm:[a-z_]+", file.read_text())}
    bare = {re.sub("_(?:bucket|total)$", "", name) for name in named}
    assert len(bare) > 8
    assert {name for name in bare if f'"{name}"' not in there} == set()

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The classes of every vLLM that the plugin is for, from its real wheel.

The Python files of the wheels named by ``GLYD_VLLM_SOURCES`` (folders, separated
by colons) are imported beside the dependencies of the vLLM that is installed.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.skipif(not SOURCES, reason="GLYD_VLLM_SOURCES names no versions")
@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.name)
def test_classes(source):
    environment = os.environ | {"PYTHONPATH": str(source)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=300)
    assert "contract holds" in done.stdout, done.stdout[-2000:] + done.stderr[-4000:]


def test_classes_of_the_installed_version():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    assert "contract holds" in done.stdout, done.stdout[-2000:] + done.stderr[-4000:]

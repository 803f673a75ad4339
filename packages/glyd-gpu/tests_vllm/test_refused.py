# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What packed models in real vLLM refuse, with the words that users read."""

import json
from pathlib import Path

import pytest
from conftest import answers
from safetensors.torch import load_file, save_file

from glyd_codec import CorruptDataError
from glyd_gpu._errors import ParameterError
from glyd_gpu.integrations import vllm_loading


def glyd(**options):
    return {"additional_config": {"glyd": options}}


def test_another_layout_than_the_directory_has(models):
    with pytest.raises(ParameterError, match="packed as mma12, layout tiered was asked for"):
        answers(models.path("qwen3", "mma12"), **glyd(layout="tiered"))


def test_unknown_options(models):
    with pytest.raises(ParameterError, match="unknown option 'sahre'"):
        answers(models.path("qwen3", "mma12"), **glyd(sahre=1))


def test_loaders_that_packs_cannot_go_through(models):
    with pytest.raises(ParameterError, match="--load-format sharded_state does not go through"):
        answers(models.path("qwen3", "mma12"), load_format="sharded_state")


def test_a_checkpoint_that_lacks_a_layer(models, tmp_path):
    folder = tmp_path / "short"
    folder.mkdir()
    for name in ("config.json", "generation_config.json"):
        (folder / name).write_bytes(Path(models.path("qwen3"), name).read_bytes())
    tensors = load_file(f"{models.path('qwen3')}/model.safetensors")
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CorruptDataError, match=r"layers\.1\.mlp\.gate_up_proj\.weight: 131072 of 262144 weights"):
        answers(str(folder), quantization="glyd")


def test_half_precision(models):
    with pytest.raises(ValueError, match="float16 is not supported for quantization method glyd"):
        answers(models.path("qwen3", "mma12"), dtype="float16")


def test_a_newer_packed_model(models, tmp_path):
    folder = tmp_path / "newer"
    folder.mkdir()
    config = json.loads(Path(models.path("qwen3", "mma12"), "config.json").read_text())
    config["quantization_config"]["version"] = 2
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(Exception, match="packed model of version 2; this glyd-gpu reads version 1: update it"):
        answers(str(folder), load_format="dummy")


def test_a_loader_that_is_not_known(models, monkeypatch):
    from vllm.model_executor.model_loader import default_loader

    monkeypatch.delattr(default_loader.DefaultModelLoader, "_get_weights_iterator")
    with pytest.raises(ParameterError, match="the loader of this vLLM is not known"):
        vllm_loading.install()

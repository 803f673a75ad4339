# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Tiny models with random weights, as transformers saves them, packed and not."""

import functools
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import transformers
from transformers import AutoModelForCausalLM

import glyd_codec
from glyd_gpu import _loading

SMALL = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
DENSE = SMALL | {"intermediate_size": 256, "vocab_size": 512}
EXPERTS = SMALL | {"vocab_size": 512}
GEMMA = {"head_dim": 32, "hidden_activation": "gelu_pytorch_tanh"}

# name → configuration class and its arguments
FAMILIES = {
    "qwen3-tied": ("Qwen3Config", DENSE | {"head_dim": 32, "vocab_size": 1003, "tie_word_embeddings": True}),
    "qwen3-untied": ("Qwen3Config", DENSE | {"head_dim": 32, "vocab_size": 1000, "tie_word_embeddings": False}),
    "qwen3-tied-1000": ("Qwen3Config", DENSE | {"head_dim": 32, "vocab_size": 1000, "tie_word_embeddings": True}),
    "qwen3-untied-1003": ("Qwen3Config", DENSE | {"head_dim": 32, "vocab_size": 1003, "tie_word_embeddings": False}),
    "qwen2": ("Qwen2Config", DENSE | {"tie_word_embeddings": True}),
    "llama": ("LlamaConfig", DENSE),
    "smollm": ("LlamaConfig", DENSE | {"hidden_size": 192, "num_attention_heads": 3, "num_key_value_heads": 1}),
    "mistral": ("MistralConfig", DENSE | {"head_dim": 32, "sliding_window": 16}),
    "granite": ("GraniteConfig", DENSE | {"tie_word_embeddings": True}),
    "gemma2": ("Gemma2Config", DENSE | GEMMA),
    "gemma3": ("Gemma3TextConfig", DENSE | GEMMA),
    "phi3": ("Phi3Config", DENSE | {"pad_token_id": 0}),
    "phi": ("PhiConfig", DENSE | {"num_key_value_heads": 4}),
    "gpt2": ("GPT2Config", {"n_embd": 128, "n_layer": 2, "n_head": 4, "vocab_size": 512, "n_positions": 64}),
    "qwen3-moe": (
        "Qwen3MoeConfig",
        EXPERTS | {"moe_intermediate_size": 96, "num_experts": 8, "num_experts_per_tok": 2, "intermediate_size": 256},
    ),
    "mixtral": ("MixtralConfig", EXPERTS | {"intermediate_size": 96, "num_local_experts": 8}),
    "gpt-oss": (
        "GptOssConfig",
        EXPERTS | {"intermediate_size": 96, "num_local_experts": 8, "num_experts_per_tok": 2, "head_dim": 32},
    ),
}
MOE = ("qwen3-moe", "mixtral", "gpt-oss")


@dataclass
class Checkpoint:
    """A model on disk, and what its bf16 form computes."""

    plain: Path
    packed: Path
    ids: torch.Tensor
    logits: torch.Tensor

    def compute(self, model):
        with torch.no_grad():
            return model(self.ids).logits


@pytest.fixture(autouse=True, scope="session")
def _quiet():
    _loading.MERGED_DEVICES = {"cpu", "cuda"}  # tested here as well
    torch.set_num_threads(1)  # models this small are slower with more
    transformers.utils.logging.disable_progress_bar()
    transformers.logging.set_verbosity_error()


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """Return a function that makes a checkpoint of `FAMILIES`, once."""
    folder = tmp_path_factory.mktemp("models")

    @functools.cache
    def make(name: str, layout: str = "tiered") -> Checkpoint:
        kind, arguments = FAMILIES[name]
        plain, packed = folder / f"{name}-{layout}-plain", folder / f"{name}-{layout}-packed"
        torch.manual_seed(sum(map(ord, name)))
        model = AutoModelForCausalLM.from_config(getattr(transformers, kind)(**arguments))
        for parameter in model.parameters():  # biases and norms too: none may get lost unseen
            if parameter.dim() < 2:
                torch.nn.init.normal_(parameter, 0.9, 0.1)
        model.to(torch.bfloat16).save_pretrained(plain)
        glyd_codec.pack_model(plain, packed, layout)
        ids = torch.randint(0, 500, (2, 9))
        with torch.no_grad():
            logits = AutoModelForCausalLM.from_pretrained(plain)(ids).logits
        return Checkpoint(plain, packed, ids, logits)

    return make

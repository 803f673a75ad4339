# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The table of ``glyd doctor`` is what `glyd.fit` says of models of these shapes."""

import json
import math

import pytest
import torch
import transformers

import glyd
from glyd_cli.doctor.known import KNOWN


def qwen3(layers, hidden, inner, heads, *, tied=False, kind="qwen3", **more):
    sizes = {
        "vocab_size": 151936,
        "max_position_embeddings": 40960,
        "head_dim": 128,
        "num_key_value_heads": 8,
        "tie_word_embeddings": tied,
    }
    return shape(kind, layers, hidden, inner, heads, **{**sizes, **more})


def llama(layers, hidden, inner, heads, kv=8, *, tied=False, vocabulary=128256, context=131072):
    sizes = {"num_key_value_heads": kv, "tie_word_embeddings": tied, "vocab_size": vocabulary}
    return shape("llama", layers, hidden, inner, heads, **sizes, max_position_embeddings=context)


def shape(kind, layers, hidden, inner, heads, **more):
    sizes = {"num_hidden_layers": layers, "hidden_size": hidden, "intermediate_size": inner}
    return transformers.AutoConfig.for_model(kind, **sizes, num_attention_heads=heads, **more)


MOE = {"moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8, "num_key_value_heads": 4}
MISTRAL = {
    "head_dim": 128, "num_key_value_heads": 8, "vocab_size": 131072, "max_position_embeddings": 32768,
    "tie_word_embeddings": False,
}  # fmt: skip
SHAPES = {
    "Qwen/Qwen3-0.6B": lambda: qwen3(28, 1024, 3072, 16, tied=True),
    "HuggingFaceTB/SmolLM2-1.7B-Instruct": lambda: llama(
        24, 2048, 8192, 32, 32, tied=True, vocabulary=49152, context=8192
    ),
    "Qwen/Qwen3-1.7B": lambda: qwen3(28, 2048, 6144, 16, tied=True),
    "meta-llama/Llama-3.2-3B-Instruct": lambda: llama(28, 3072, 8192, 24, tied=True),
    "Qwen/Qwen3-4B": lambda: qwen3(36, 2560, 9728, 32, tied=True),
    "meta-llama/Llama-3.1-8B-Instruct": lambda: llama(32, 4096, 14336, 32),
    "Qwen/Qwen3-8B": lambda: qwen3(36, 4096, 12288, 32),
    "Qwen/Qwen3-14B": lambda: qwen3(40, 5120, 17408, 40),
    "mistralai/Mistral-Small-24B-Instruct-2501": lambda: shape("mistral", 40, 5120, 32768, 32, **MISTRAL),
    "Qwen/Qwen3-30B-A3B": lambda: qwen3(48, 2048, 6144, 32, kind="qwen3_moe", **MOE),
    "Qwen/Qwen3-32B": lambda: qwen3(64, 5120, 25600, 64),
    "meta-llama/Llama-3.3-70B-Instruct": lambda: llama(80, 8192, 28672, 64),
}


def write_headers(folder, config):
    """Write a checkpoint without its weights: a sparse file with the header that it would have."""
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    header, at = {}, 0
    for name, parameter in model.named_parameters():
        experts = parameter.dim() == 3  # stored one by one
        pieces = [(f"{name}.{i}", parameter.shape[1:]) for i in range(parameter.shape[0])] if experts else None
        for piece, sizes in pieces or [(name, parameter.shape)]:
            end = at + 2 * math.prod(sizes)
            header[piece] = {"dtype": "BF16", "shape": list(sizes), "data_offsets": [at, end]}
            at = end
    raw = json.dumps(header).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(raw).to_bytes(8, "little") + raw)
        file.truncate(8 + len(raw) + at)
    config.save_pretrained(folder)


@pytest.mark.parametrize("known", KNOWN, ids=lambda k: k.name)
def test_rows(known, tmp_path):
    write_headers(tmp_path, SHAPES[known.name]())
    found = glyd.fit(tmp_path)
    assert known.n_parameters == found.n_parameters
    assert known.plain_nbytes == found.weights["bf16"].nbytes
    assert known.packed_nbytes == found.weights["tiered"].nbytes
    assert known.overhead_nbytes == found.weights["tiered"].overhead_nbytes
    assert known.kv_token_nbytes == found.kv_token_nbytes
    assert known.max_context == found.max_context


def test_all_rows_are_checked():
    assert [known.name for known in KNOWN] == list(SHAPES)

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Packed models in real vLLM on the CPU: answers are those of vLLM's own bf16, token for token, bit for bit."""

import json

import pytest
import torch
from conftest import answers
from safetensors.torch import save_file


def glyd(**options):
    return {"additional_config": {"glyd": options}}


@pytest.fixture
def said(monkeypatch):
    """What the plugin logs; vLLM takes handlers of others off its loggers."""
    from glyd_gpu.integrations import vllm_config

    lines = []
    monkeypatch.setattr(vllm_config.logger, "info", lambda text, *values: lines.append(text % values))
    return lines


@pytest.mark.parametrize("layout", ["mma12", "tiered"])
@pytest.mark.parametrize("family", ["qwen3", "qwen3-tied", "phi3"])
def test_packed_directories_need_no_flag(models, family, layout, said):
    assert answers(models.path(family, layout)) == models.plain(family)
    assert f"matrices packed as {layout}" in said[0]


def test_packing_at_load_and_comparing_every_matrix(models, said):
    found = answers(models.path("qwen3-tied"), quantization="glyd", **glyd(layout="tiered", verify=True))
    assert found == models.plain("qwen3-tied")
    assert "each compared with its bf16 form" in said[0]


def test_packed_directories_are_compared_too(models, said):
    assert answers(models.path("qwen3", "mma12"), **glyd(verify=True, exact=True)) == models.plain("qwen3")
    assert "packed as mma12, exact, each compared" in said[0]


def test_part_of_the_layers(models, said):
    assert answers(models.path("qwen3", "mma12"), **glyd(share=0.5)) == models.plain("qwen3")
    assert "6 matrices packed as mma12" in said[0]
    assert "4 stay bf16" in said[0]


@pytest.mark.parametrize("layout", ["mma12", "tiered"])
def test_experts(models, layout):
    """Compared with our own product of bf16 experts; vLLM's CPU kernel adds in another order."""
    held_plain = models.plain("qwen3-moe", quantization="glyd", additional_config={"glyd": {"share": 0}})
    assert answers(models.path("qwen3-moe", layout)) == held_plain
    first = [[round(values[0], 1) for _, values in found] for found in (held_plain, models.plain("qwen3-moe"))]
    assert first[0] == pytest.approx(first[1], abs=0.11)


def test_compiled(models):
    plain = models.plain("qwen3", enforce_eager=False)
    assert answers(models.path("qwen3", "mma12"), enforce_eager=False) == plain
    # the very graphs that were kept serve another layout and mode
    assert answers(models.path("qwen3", "tiered"), enforce_eager=False, **glyd(exact=True)) == plain


def test_chunked_prefill_and_prefix_caching(models):
    options = {"max_num_batched_tokens": 16, "enable_chunked_prefill": True, "enable_prefix_caching": True}
    prompts = [[(11 * i + 5) % 1000 for i in range(100)] + [k] for k in range(3)]
    plain = answers(models.path("qwen3"), prompts=prompts, rounds=2, **options)
    assert answers(models.path("qwen3", "tiered"), prompts=prompts, rounds=2, **options) == plain


def test_lora(models, tmp_path):
    torch.manual_seed(3)
    sizes = {"q_proj": (256, 256), "v_proj": (256, 128), "o_proj": (256, 256)}
    tensors = {}
    for layer in range(2):
        for name, (inputs, outputs) in sizes.items():
            prefix = f"base_model.model.model.layers.{layer}.self_attn.{name}"
            tensors[f"{prefix}.lora_A.weight"] = torch.randn(8, inputs, dtype=torch.bfloat16) * 0.2
            tensors[f"{prefix}.lora_B.weight"] = torch.randn(outputs, 8, dtype=torch.bfloat16) * 0.2
    save_file(tensors, tmp_path / "adapter_model.safetensors")
    adapter = {"peft_type": "LORA", "r": 8, "lora_alpha": 16, "target_modules": list(sizes), "task_type": "CAUSAL_LM"}
    (tmp_path / "adapter_config.json").write_text(json.dumps(adapter))
    options = {"adapter": str(tmp_path), "enable_lora": True, "max_lora_rank": 8}
    plain = answers(models.path("qwen3"), **options)
    assert plain != models.plain("qwen3")
    assert answers(models.path("qwen3", "mma12"), **options) == plain


@pytest.mark.parametrize("method", ["draft_model", "ngram"])
def test_speculative_decoding(models, method):
    config = {"method": method, "num_speculative_tokens": 2}
    if method == "draft_model":
        config["model"] = models.path("qwen3", "mma12")
    else:
        config["prompt_lookup_max"] = 3
    found = answers(models.path("qwen3", "tiered"), speculative_config=config)
    assert [tokens for tokens, _ in found] == [tokens for tokens, _ in models.plain("qwen3")]

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Two-layer models for real vLLM on the CPU, plain and packed, and what an engine answers."""

import gc
import os

os.environ |= {  # before vLLM is imported
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # one process: its log and its errors are this one's
    "VLLM_LOGGING_LEVEL": "INFO",
}

import pytest
import torch
import transformers

import glyd_codec

SMALL = {
    "hidden_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
}
QWEN = SMALL | {"head_dim": 64, "intermediate_size": 512}
FAMILIES = {
    "qwen3": ("Qwen3Config", QWEN | {"vocab_size": 1024}),
    "qwen3-tied": ("Qwen3Config", QWEN | {"vocab_size": 1003, "tie_word_embeddings": True}),
    "phi3": ("Phi3Config", SMALL | {"intermediate_size": 512, "vocab_size": 1024, "pad_token_id": 0}),
    "qwen3-moe": (
        "Qwen3MoeConfig",
        QWEN | {"vocab_size": 1024, "moe_intermediate_size": 128, "num_experts": 8, "num_experts_per_tok": 2},
    ),
}


class Models:
    """Checkpoints by family and layout, made when they are asked for, and kept."""

    def __init__(self, folder):
        self.folder = folder
        self.answers = {}

    def path(self, family, layout="bf16"):
        path = self.folder / f"{family}-{layout}"
        if path.exists():
            return str(path)
        if layout != "bf16":
            glyd_codec.pack_model(self.path(family), path, layout=layout)
            return str(path)
        name, fields = FAMILIES[family]
        torch.manual_seed(7)
        fields = {"eos_token_id": 1, "bos_token_id": 0} | fields
        model = transformers.AutoModelForCausalLM.from_config(getattr(transformers, name)(**fields))
        for parameter in model.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.05)
        model.to(torch.bfloat16).save_pretrained(path)
        return str(path)

    def plain(self, family, **options):
        """Return what vLLM answers with the bf16 checkpoint; kept, as many tests compare with it."""
        key = family, repr(sorted(options.items()))
        if key not in self.answers:
            self.answers[key] = answers(self.path(family), **options)
        return self.answers[key]


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    return Models(tmp_path_factory.mktemp("models"))


PROMPTS = [[(7 * i * k + 3) % 1000 for i in range(5 + 9 * k)] for k in range(1, 5)]


def answers(path, *, prompts=PROMPTS, adapter=None, rounds=1, **options):
    """Start an engine, return tokens and log-probabilities of the answers of its last round, stop it."""
    from vllm import LLM, SamplingParams
    from vllm.distributed import cleanup_dist_env_and_memory
    from vllm.lora.request import LoRARequest

    options = {"enforce_eager": True, "max_model_len": 256, "max_num_seqs": 8} | options
    engine = LLM(model=path, skip_tokenizer_init=True, **options)
    sampling = SamplingParams(temperature=0, max_tokens=12, ignore_eos=True, detokenize=False, logprobs=2)
    lora = LoRARequest("adapter", 1, adapter) if adapter else None
    try:
        for _ in range(rounds):
            found = engine.generate(
                [{"prompt_token_ids": p} for p in prompts], sampling, use_tqdm=False, lora_request=lora
            )
        return [
            (list(o.outputs[0].token_ids), [next(iter(d.values())).logprob for d in o.outputs[0].logprobs])
            for o in found
        ]
    finally:
        del engine
        gc.collect()
        cleanup_dist_env_and_memory()

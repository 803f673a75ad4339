# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Two ranks of real vLLM on the CPU, each with the packs of its part: answers are those of two ranks of bf16."""

import pytest
from conftest import answers

# rows and columns of a rank that are no whole blocks as well: 1003 words are padded to 1024, 512 columns halved
FAMILIES = [("qwen3-tied", "tiered"), ("qwen3", "mma12")]


@pytest.fixture(autouse=True)
def _ranks(monkeypatch):
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", "nobind")  # two ranks on any two cores
    monkeypatch.setenv("VLLM_WORKER_MULTIPROC_METHOD", "spawn")


@pytest.mark.parametrize(("family", "layout"), FAMILIES)
def test_tensor_parallel(models, family, layout):
    plain = answers(models.path(family), tensor_parallel_size=2)
    verify = {"additional_config": {"glyd": {"verify": True}}}
    assert answers(models.path(family, layout), tensor_parallel_size=2, **verify) == plain

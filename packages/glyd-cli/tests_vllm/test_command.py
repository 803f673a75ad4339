# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The command with real vLLM on the CPU: the same answer as with the other engine, and causes of its own words."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import glyd

SHARED = Path(__file__).parent.parent / "tests_serving" / "conftest.py"


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    spec = importlib.util.spec_from_file_location("serving_conftest", SHARED)
    shared = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shared)
    folder = tmp_path_factory.mktemp("model")
    shared.save_model(folder / "bf16", head_dim=64)
    glyd.pack_model(folder / "bf16", folder / "packed", layout="mma12")
    return folder / "packed"


def run(packed, engine, *words):
    command = [sys.executable, "-m", "glyd_cli", "run", str(packed), "--engine", engine, "-p", "hello there"]
    return subprocess.run(
        [*command, "--max-tokens", "12", "--temperature", "0", *words], capture_output=True, timeout=900
    )


@pytest.fixture(autouse=True)
def _cpu(monkeypatch):
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def test_both_engines_give_the_same_answer(packed):
    found = [run(packed, engine) for engine in ("vllm", "transformers")]
    assert [done.returncode for done in found] == [0, 0], found
    assert found[0].stdout == found[1].stdout
    assert found[0].stdout.strip()


def test_a_flag_that_vllm_does_not_know(packed):
    done = run(packed, "vllm", "--", "--nonsense=3")
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.decode().splitlines() if "does not start" in line]
    assert "vLLM does not know --nonsense=3: flags after -- are those of vllm serve --help (log: " in line

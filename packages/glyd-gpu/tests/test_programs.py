# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``python -m glyd_gpu`` and ``python -m glyd_gpu.check``."""

import json
import subprocess
import sys

import pytest
import torch

from glyd_gpu import __main__ as diagnosis
from glyd_gpu import check


def run(*args):
    return subprocess.run([sys.executable, "-m", *args], capture_output=True, text=True, check=False)


def test_diagnosis_names_what_is_missing_and_the_fix():
    done = run("glyd_gpu", "--json")
    facts = json.loads(done.stdout)
    assert facts["packages"]["torch"].startswith(torch.__version__.split("+")[0])
    assert done.returncode == (1 if facts["missing"] else 0)
    text = run("glyd_gpu").stdout
    assert "kernels:" in text
    for problem in facts["missing"]:
        assert problem in text
    if torch.version.cuda is None:
        assert any("built for the CPU" in problem for problem in facts["missing"])


@pytest.mark.parametrize(
    ("capability", "code"),
    [
        ((8, 0), "sm_80"),
        ((8, 6), "sm_86"),
        ((8, 7), "sm_86"),
        ((8, 9), "sm_89"),
        ((9, 0), "sm_90a"),
        ((10, 0), "sm_100"),
        ((10, 3), "sm_100"),
        ((11, 0), "compute_80"),
        ((12, 0), "sm_120"),
        ((12, 1), "sm_120"),
        ((7, 5), None),
    ],
)
def test_which_code_a_device_runs(capability, code):
    names = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120", "compute_80"]
    assert diagnosis._runs_on(capability, names) == code


def test_check_says_what_it_checked():
    done = run("glyd_gpu.check", "--quick", "--device", "cpu", "--mutations", "10")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert "reference" in lines[0]
    assert lines[-1].endswith(" s")
    assert " 0 failed" in lines[-1]
    for word in (
        "pack",
        "unpack",
        "embedding",
        "linear exact",
        "linear fast",
        "linear invariant",
        "linear experts",
        "broken packs",
    ):
        assert any(line.startswith(f"ok   {word} ") for line in lines), word
    facts = json.loads(run("glyd_gpu.check", "--quick", "--device", "cpu", "--json").stdout)
    assert facts["failed"] == 0
    assert {line["layout"] for line in facts["checks"]} == {"mma12", "tiered"}


def test_check_notices_a_wrong_product(monkeypatch):
    checker = check.Checker(torch.device("cpu"), (3,))
    monkeypatch.setattr(check, "close", lambda *_: (0.5, False))
    monkeypatch.setattr(check, "same_bits", lambda *_: False)
    lines = list(checker.run((("gaussian", 128, 256),)))
    assert any(line.operator == "linear fast" and not line.ok for line in lines)
    assert all(line.text().startswith("FAIL") for line in lines if not line.ok)


def test_close_is_about_rounding():
    x, w = torch.randn(5, 300).to(torch.bfloat16), torch.randn(40, 300).to(torch.bfloat16)
    y = torch.nn.functional.linear(x, w)
    error, good = check.close(y, x, w, None)
    assert good
    assert error < check.LIMIT
    wrong = y.clone()
    wrong[2, 7] += 1
    assert not check.close(wrong, x, w, None)[1]

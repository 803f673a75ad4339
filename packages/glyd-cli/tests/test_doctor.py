# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``glyd doctor``: rows, fixes and exit codes, on machines that are made up where this one has no GPU."""

import json
import os
import socket

import pytest

from glyd_cli import machine
from glyd_cli.doctor import checks, verb
from glyd_cli.doctor.known import CONTEXT, KNOWN

CARD = machine.Card(0, "NVIDIA H200", "9.0", "580.1", 150 * 10**9, 140 * 10**9)
FACTS = {
    "packages": {"torch": "2.13.0", "transformers": "5.24.0", "vllm": None},
    "cuda": {"torch_built_for": "13.0", "available": True, "driver": "13.0"},
    "kernels": {"loaded": True, "architectures": ["sm_80", "sm_90a"]},
    "devices": [{"name": "NVIDIA H200", "runs": "sm_90a"}],
    "missing": [],
}


def facts(**changed):
    out = json.loads(json.dumps(FACTS))
    for name, value in changed.items():
        out[name] = {**out[name], **value} if isinstance(value, dict) else value
    return out


def test_rows_fixes_and_json(glyd):
    done = glyd("doctor", env={**os.environ, "HF_HUB_OFFLINE": "1"})
    lines = done.out.decode().splitlines()
    assert lines[0].startswith("ok  Python")
    assert any(line.startswith("ok  codec") for line in lines)
    body = json.loads(glyd("doctor", "--json").out)
    assert body["ok"] is True
    assert {row["state"] for row in body["checks"]} <= {"ok", "!!", "NO"}
    assert all(row["fix"] for row in body["checks"] if row["state"] != "ok")
    assert [one["model"] for one in body["models"]] == [one.name for one in KNOWN]
    assert "NO  does not work" in glyd("doctor", "--help").out.decode()
    glyd.fail("doctor", "--yaml", code=1)
    glyd.fail("doctor", "MODEL", code=1)


def test_what_is_no_makes_it_fail(monkeypatch, capfd):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(checks, "gpu_facts", lambda: None)
    monkeypatch.setattr(machine, "disk_free", lambda folder: 10**6)
    assert verb.run_doctor([]) == 2
    out = capfd.readouterr().out
    assert "NO  disk" in out
    assert "HF_HOME" in out


SMI = """#!/bin/sh
case "$1" in
*compute-apps*) echo '4242, /usr/bin/python3, 30000'; echo '17, [N/A], [N/A]';;
*) echo '0, NVIDIA H200, 9.0, 580.159.04, 143771, 100000'; echo '1, NVIDIA H200, 9.0, 580.159.04, [N/A], [N/A]';;
esac
"""


@pytest.fixture
def smi(tmp_path, monkeypatch):
    """Make a program that answers like nvidia-smi."""

    def make(text):
        program = tmp_path / "nvidia-smi"
        program.write_text(text)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return make


def test_cards_and_holders(smi):
    smi(SMI)
    (card,) = machine.cards()
    assert (card.name, card.total_nbytes, card.free_nbytes) == ("NVIDIA H200", 143771 << 20, 100000 << 20)
    assert machine.holders() == [machine.Holder(4242, "python3", 30000 << 20)]
    row = checks.gpu_memory([card])
    assert row.state == "!!"
    assert "python3 (process 4242) 31.5 GB" in row.found


@pytest.mark.parametrize("text", ["#!/bin/sh\nexit 9\n", "no program"])
def test_an_nvidia_smi_that_fails_is_none(smi, monkeypatch, text):
    smi(text)
    assert machine.cards() is None
    monkeypatch.setattr(machine, "has_card", lambda: True)
    row = checks.gpus(None)
    assert (row.state, "driver" in row.fix) == ("NO", True)


def test_no_gpu_is_no_failure(monkeypatch):
    monkeypatch.setattr(machine, "has_card", lambda: False)
    assert checks.gpus(None).state == "!!"
    assert checks.driver(None, FACTS) is checks.gpu_memory([]) is checks.kernels(None, FACTS) is None


def test_a_gpu_that_works(monkeypatch):
    monkeypatch.setattr(machine, "cuda_of_driver", lambda: (13, 0))
    rows = [
        checks.gpus([CARD]), checks.driver([CARD], FACTS), checks.gpu_memory([CARD]), checks.torch([CARD], FACTS),
        checks.kernels([CARD], FACTS),
    ]  # fmt: skip
    assert [row.state for row in rows] == ["ok"] * 5
    assert rows[4].found == "sm_90a"
    assert verb.memory_for_models([CARD], FACTS, machine.Memory(1, 1)) == ("GPU 0 (NVIDIA H200)", 140 * 10**9)


def test_old_driver(monkeypatch):
    monkeypatch.setattr(machine, "cuda_of_driver", lambda: (12, 4))
    row = checks.driver([CARD], FACTS)
    assert (row.state, row.found) == ("NO", "580.1 (CUDA 12.4); PyTorch was built for CUDA 13.0")
    assert "580 or newer" in row.fix
    assert checks.driver([CARD], facts(cuda={"torch_built_for": "12.8"})).state == "ok"


@pytest.mark.parametrize(
    ("check", "changed", "says"),
    [
        (checks.torch, facts(cuda={"torch_built_for": None, "available": False}), "there is a GPU"),
        (checks.torch, facts(cuda={"available": False}), "sees no GPU"),
        (checks.torch, {"error": "crashed"}, "crashed"),
        (checks.torch, facts(packages={"torch": None}, missing=["torch is not installed"]), "torch is not installed"),
        (
            checks.kernels,
            facts(kernels={"loaded": False}, missing=["this installation has no kernels. Do"]),
            "no kernels",
        ),
        (checks.kernels, facts(devices=[{"name": "Old", "runs": None}]), "none for Old"),
    ],
)
def test_a_gpu_that_cannot_be_used_is_no(check, changed, says):
    row = check([CARD], changed)
    assert row.state == "NO"
    assert says in row.found
    assert row.fix


def test_an_old_gpu_is_said():
    old = machine.Card(0, "GTX 1080", "6.1", "580.1", 8 * 10**9, 8 * 10**9)
    assert "Ampere" in checks.gpus([old]).found


def test_a_port_that_is_taken(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(checks, "DEFAULT_PORT", taken.getsockname()[1])
        assert checks.port().state == "!!"


def test_a_hub_that_cannot_be_reached(monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(checks.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    assert checks.hub().state == "!!"
    monkeypatch.setenv("HF_ENDPOINT", "file:///etc/passwd")
    assert checks.hub().state == "!!"


def test_memory_of_the_machine():
    found = machine.memory()
    assert 0 < found.free_nbytes <= found.total_nbytes


def test_what_fits_grows_with_the_memory():
    rows = [verb.fitting(n * 10**9) for n in (2, 16, 24, 80, 192)]
    n_fit = [sum(1 for one in row if one["max_context"]) for row in rows]
    assert n_fit == sorted(n_fit)
    assert n_fit[0] == 0
    assert n_fit[-1] == len(KNOWN)
    for row in rows:
        for one in row:
            assert one["max_context"] == 0 or one["max_context"] >= CONTEXT
            assert one["plain_max_context"] <= one["max_context"]

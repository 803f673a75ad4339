# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``python -m glyd_gpu.sizes``."""

import json
import subprocess
import sys

import pytest
import torch

import glyd
from glyd_gpu import sizes


def test_entropy():
    w = torch.tensor([1.0, 1.0, 2.0, 4.0], dtype=torch.bfloat16)
    assert sizes.entropy_bits(w) == pytest.approx(8 + 1.5)
    assert sizes.entropy_bits(torch.full((3, 5), 3.0, dtype=torch.bfloat16)) == pytest.approx(8)


def test_table_and_json(checkpoint, capsys):
    made = checkpoint("qwen3-tied")
    assert sizes.main([str(made.plain), str(made.packed), "--json", "--device", "cpu"]) == 0
    found = json.loads(capsys.readouterr().out)
    plain, packed = found[str(made.plain)], found[str(made.packed)]
    assert plain == packed  # a packed model is measured by its weights
    total = plain[-1]
    assert total["name"] == "all"
    assert total["n_matrices"] == 15
    assert total["wrong"] == {"mma12": 0, "tiered": 0}
    names = json.loads((made.packed / "glyd.json").read_text())["tensors"]
    from safetensors import safe_open

    with safe_open(made.packed / "model.safetensors", "pt") as file:
        nbytes = sum(file.get_slice(e["packed"]).get_shape()[0] for e in names.values() if "packed" in e)
    assert total["nbytes"]["tiered"] == nbytes
    assert sizes.main([str(made.plain)]) == 0
    text = capsys.readouterr().out
    assert "model.layers.*.mlp.up_proj.weight" in text
    assert "WRONG" not in text


def test_wrong_bits_are_told(checkpoint, capsys, monkeypatch):
    made = checkpoint("qwen3-tied")
    measured = sizes.measure

    def broken(weights, name):
        row = measured(weights, name)
        row.wrong["tiered"] = 1
        return row

    monkeypatch.setattr(sizes, "measure", broken)
    assert sizes.main([str(made.plain)]) == 1
    assert "15 WRONG" in capsys.readouterr().out


def test_as_a_program(checkpoint):
    made = checkpoint("llama")
    done = subprocess.run([sys.executable, "-m", "glyd_gpu.sizes", str(made.plain)], capture_output=True, text=True)
    assert done.returncode == 0
    assert "exact" in done.stdout


def test_no_model(tmp_path):
    with pytest.raises(glyd.ParameterError, match=r"no \.safetensors"):
        sizes.main([str(tmp_path)])

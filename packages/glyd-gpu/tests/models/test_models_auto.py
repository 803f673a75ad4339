# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""transformers loads packed directories by itself in a fresh process, and says what to do when it may not."""

import os
import subprocess
import sys

import pytest

LOAD = """
import sys
from transformers import AutoModelForCausalLM
assert "glyd_gpu" not in sys.modules or {imported}
import torch
model = AutoModelForCausalLM.from_pretrained(sys.argv[1])
with torch.no_grad():
    logits = model(torch.load(sys.argv[2])["ids"]).logits
assert torch.equal(logits, torch.load(sys.argv[2])["logits"])
print(type(model.lm_head).__name__)
"""


@pytest.fixture
def run(checkpoint, tmp_path):
    import torch

    made = checkpoint("qwen3-tied")
    torch.save({"ids": made.ids, "logits": made.logits}, tmp_path / "expected.pt")

    def run(code, **variables):
        command = [sys.executable, "-c", code, str(made.packed), str(tmp_path / "expected.pt")]
        return subprocess.run(
            command, env=os.environ | variables, capture_output=True, text=True, check=False, cwd=tmp_path
        )

    return run


def test_nothing_imported_first(run):
    done = run(LOAD.format(imported=False))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "PackedLinear"


def test_turned_off(run):
    done = run(LOAD.format(imported=False), GLYD_NO_AUTO="1")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last == (
        "ImportError: this is a model packed by glyd, and GLYD_NO_AUTO is set: import glyd_gpu before you load it"
    )


@pytest.mark.parametrize("first", ["import glyd_gpu", "import transformers.quantizers, glyd_gpu"])
def test_turned_off_and_imported(run, first):
    done = run(first + LOAD.format(imported=True), GLYD_NO_AUTO="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "PackedLinear"


def test_python_starts_without_it(run):
    done = run("import sys; print(sorted({'torch', 'transformers', 'glyd_gpu', 'glyd_codec'} & set(sys.modules)))")
    assert done.stdout.strip() == "[]"


def test_a_transformers_that_glyd_does_not_know(run):
    code = "import sys; sys.modules['glyd_gpu'] = None" + LOAD.format(imported=True)
    done = run(code)
    assert done.returncode == 1
    assert "this is a model packed by glyd, and glyd-gpu cannot be imported" in done.stderr.strip().splitlines()[-1]


HUB = """
import sys
import glyd, torch
expected = torch.load(sys.argv[2])
model = glyd.from_pretrained("glyd-tests/tiny", device="cpu", exact=True)
with torch.no_grad():
    assert torch.equal(model(expected["ids"]).logits, expected["logits"])
print(type(model.lm_head).__name__)
"""


@pytest.mark.parametrize("form", ["packed", "plain"])
def test_from_the_cache_of_the_hub(run, checkpoint, tmp_path, form):
    """A name of the hub, offline: files are links into the cache, and nothing there is changed."""
    cache = tmp_path / "hub" / "models--glyd-tests--tiny"
    snapshot = cache / "snapshots" / ("a" * 40)
    for folder in (snapshot, cache / "blobs", cache / "refs"):
        folder.mkdir(parents=True)
    (cache / "refs" / "main").write_text("a" * 40)
    for path in getattr(checkpoint("qwen3-tied"), form).iterdir():
        if path.name == "glyd.json":
            continue  # transformers does not fetch it
        (cache / "blobs" / path.name).write_bytes(path.read_bytes())
        (snapshot / path.name).symlink_to(cache / "blobs" / path.name)
    before = {path: path.read_bytes() for path in cache.rglob("*") if path.is_file()}
    done = run(HUB, HF_HUB_CACHE=str(tmp_path / "hub"), HF_HUB_OFFLINE="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "PackedLinear"
    assert {path: path.read_bytes() for path in before} == before

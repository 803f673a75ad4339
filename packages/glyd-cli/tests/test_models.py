# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
import array
import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from glyd_cli.arguments import parse


def bf16(size):
    rng = random.Random(size)
    wide = array.array("f", (rng.gauss(0, 0.02) for _ in range(size))).tobytes()
    out = bytearray(2 * size)
    out[0::2], out[1::2] = wide[2::4], wide[3::4]
    return bytes(out)


def safetensors(tensors):
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


@pytest.fixture
def model(tmp_path):
    files = {
        "model.safetensors": safetensors({
            "w": ("BF16", [256, 256], bf16(65536)), "norm": ("BF16", [256], bf16(256)), "s": ("F32", [], b"1234"),
        }),
        "config.json": b'{"model_type": "llama"}',
        "merges.txt": b"a b\n",
    }  # fmt: skip
    (tmp_path / "m").mkdir()
    for name, data in files.items():
        (tmp_path / "m" / name).write_bytes(data)
    return files


def files_of(folder):
    return {name: (folder / name).read_bytes() for name in os.listdir(folder)}


def test_there_and_back(glyd, model, tmp_path):
    (tmp_path / "m" / "pytorch_model.bin").write_bytes(b"x")
    done = glyd("pack", "m", "p", "-T2")
    assert done.err == "glyd: not taken over: pytorch_model.bin\n"
    table = done.out.decode().splitlines()
    assert table[0].split() == ["tensors", "before", "after", "bits/weight", "entropy", "floor"]
    name, n, *_, bits, floor = table[1].split()
    assert (name, n) == ("tiered", "1")
    assert 10.4 < float(floor) < 10.7 < float(bits) < 11.8
    assert [line.split("  ")[0] for line in table[2:4]] == ["as it was: not bf16", "as it was: no matrix"]
    assert b"every byte checked: 3 tensors, 1 of them packed (tiered)" in glyd("verify", "p").out
    assert b"restored byte for byte" in glyd("unpack", "p", "b").out
    assert files_of(tmp_path / "b") == model


def test_json_and_quiet(glyd, model, tmp_path):
    facts = json.loads(glyd("pack", "--layout=mma12", "m", "p", "--json").out)
    assert (facts["layout"], facts["n_packed"], facts["n_weights"]) == ("mma12", 1, 65536)
    assert facts["verbatim"] == {"dtype": {"n_tensors": 1, "nbytes": 4}, "shape": {"n_tensors": 1, "nbytes": 512}}
    assert facts["bits_per_weight"] == 8 * facts["packed_nbytes"] / 65536
    for words in (("verify", "p"), ("unpack", "p", "b")):
        assert json.loads(glyd(*words, "--json").out)["n_tensors"] == 3
    done = glyd("pack", "-q", "m", "q")
    assert (done.out, done.err) == (b"", "")
    assert glyd("verify", "-q", "q").out == b""


def test_nothing_to_pack_is_said(glyd, tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "model.safetensors").write_bytes(safetensors({"w": ("F32", [1], b"1234")}))
    assert b"nothing was packed" in glyd("pack", "m", "p").out


def test_refusals(glyd, model, tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine").write_bytes(b"mine")
    assert "taken" in glyd.fail("pack", "m", "taken", code=2)
    assert "inside" in glyd.fail("pack", "m", "m/p", code=1)
    assert "no packed model" in glyd.fail("unpack", "m", "b", code=3)
    assert "nothere" in glyd.fail("pack", "nothere", "p", code=2)
    assert "nothere" in glyd.fail("verify", "nothere", code=2)
    (tmp_path / "m" / "model.safetensors").write_bytes(model["model.safetensors"][:-1])
    assert "model.safetensors" in glyd.fail("pack", "m", "p", code=3)
    assert sorted(os.listdir(tmp_path)) == ["m", "taken"]
    assert files_of(tmp_path / "taken") == {"mine": b"mine"}


def test_damage_is_corrupt(glyd, model, tmp_path):
    glyd("pack", "m", "p")
    path = tmp_path / "p" / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-2000] ^= 1
    path.write_bytes(data)
    for words in (("verify", "p"), ("unpack", "p", "b")):
        assert "tensor 'w'" in glyd.fail(*words, code=3)
    assert sorted(os.listdir(tmp_path)) == ["m", "p"]


def test_disk_full(glyd, model, tmp_path):
    assert "model.safetensors" in glyd.fail("pack", "m", "p", code=2, fsize=50_000)
    assert os.listdir(tmp_path) == ["m"]


def test_stopped_and_continued(glyd, tmp_path):
    """Ctrl-C at any moment; the next run goes on, and nothing else is left."""
    (tmp_path / "m").mkdir()
    raw = bf16(512 * 512)
    names = [f"model-{i}.safetensors" for i in range(40)]
    for i, name in enumerate(names):
        (tmp_path / "m" / name).write_bytes(safetensors({f"w{i}": ("BF16", [512, 512], raw)}))
    index = {"weight_map": {f"w{i}": name for i, name in enumerate(names)}}
    (tmp_path / "m" / "model.safetensors.index.json").write_text(json.dumps(index))
    for delay in (0.0, 0.05, 0.1, 0.15, 0.2, 0.25):
        process = glyd.start("pack", "m", "p", "-T1")
        glyd.wait_until_it_listens(process)
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=glyd.hang_s)
        assert set(os.listdir(tmp_path)) <= {"m", "p", ".p.glyd-tmp"}
        done = (tmp_path / "p").exists()  # it gets its name when it is complete, which a signal may follow
        assert process.returncode in ({0, 130} if done else {130})
        assert b"Traceback" not in err
        if done:
            break
    else:
        glyd("pack", "m", "p")
    assert sorted(os.listdir(tmp_path)) == ["m", "p"]
    glyd("verify", "p")
    glyd("unpack", "p", "b")
    assert files_of(tmp_path / "b") == files_of(tmp_path / "m")


def test_another_run_is_named(glyd, model, tmp_path):
    fcntl = pytest.importorskip("fcntl")
    (tmp_path / ".p.glyd-tmp").mkdir()
    with open(tmp_path / ".p.glyd-tmp" / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "p: another run is writing it" in glyd.fail("pack", "m", "p", code=2)
    glyd("pack", "m", "p")
    assert sorted(os.listdir(tmp_path)) == ["m", "p"]


@pytest.mark.parametrize(
    "words",
    [
        ("pack",), ("pack", "m"), ("pack", "m", "p", "x"), ("unpack", "m"), ("verify",), ("verify", "m", "p"),
        ("pack", "m", "p", "--layout=x"), ("pack", "m", "p", "-T999"), ("pack", "m", "p", "-9"),
        ("verify", "m", "--layout=mma12"), ("unpack", "m", "p", "--revision=x"), ("pack", "m", "p", "-q", "-v"),
        ("pack", "m", "p", "--revision=main"), ("fit",), ("fit", "m", "p"), ("fit", "m", "--context=0"),
        ("fit", "m", "--context=x"), ("fit", "m", "-T2"), ("fit", "m", "--layout=mma12"), ("pack", "m", "p", "--gpu=8GB"),
        ("verify", "m", "--context=5"),
    ],
)  # fmt: skip
def test_wrong_usage(glyd, model, tmp_path, words):
    assert "glyd --help" in glyd.fail(*words, code=1)
    assert os.listdir(tmp_path) == ["m"]


CONFIG = {"hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 4096}


def test_fit(glyd, model, tmp_path):
    (tmp_path / "m" / "config.json").write_text(json.dumps(CONFIG))
    out = glyd("fit", "m").out.decode().splitlines()
    assert out[0] == "m: 6.58e-05 G parameters, 132 kB BF16, 4 B F32"
    table = {line.split()[0]: line.split() for line in out[2:6] if line.split()}
    assert table["bf16"][1] == "132"
    assert table["tiered"][1].startswith("~")
    assert any(line.startswith("RTX 4090") and line.count("yes, up to 4,096") == 3 for line in out)
    glyd("pack", "m", "p")
    out = glyd("fit", "p", "--gpu=8GB", "--context", "100").out.decode()
    assert "packed (tiered)" in out
    assert "with --kv packed, where all layers see all tokens" in out
    facts = json.loads(glyd("fit", "p", "--gpu=8GB", "--context", "100", "--json").out)
    assert facts["context"] == 100
    assert facts["weights"]["tiered"]["basis"] == "headers (exact)"
    assert facts["gpus"] == [
        {
            "name": "8GB",
            "nbytes": 8 * 10**9,
            "max_context": {"bf16": 4096, "tiered": 4096, "mma12": 4096},
            "fits": {"bf16": True, "tiered": True, "mma12": True},
        }
    ]


def test_fit_refuses(glyd, model, tmp_path):
    assert "KV cache, and so what fits" not in glyd("fit", "m").out.decode()
    assert "does not say what the KV cache takes" in glyd("fit", "m").out.decode()
    assert "nothere" in glyd.fail("fit", "nothere", code=2)
    assert "gpu must be" in glyd.fail("fit", "m", "--gpu=7x", code=1)
    assert "127.0.0.1" in glyd.fail("fit", "http://127.0.0.1:9/m", code=2)
    (tmp_path / "m" / "model.safetensors").write_bytes(b"x")
    assert "model.safetensors" in glyd.fail("fit", "m", code=3)


def test_words_that_are_files():
    assert parse(["./pack", "x"]).verb == "compress"
    assert parse(["x", "pack"]).files == ["x", "pack"]
    assert parse(["pack", "--", "-m", "-p"]).files == ["-m", "-p"]
    assert parse(["verify", "-h"]).verb == "help"


def test_neither_torch_nor_the_hub_is_loaded(model, tmp_path):
    code = "import sys, glyd_cli.__main__ as c; c.main(['pack', 'm', 'p', '-q']); print([m for m in ('torch', 'numpy', 'huggingface_hub', 'rich', 'pickle') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "[]\n", done

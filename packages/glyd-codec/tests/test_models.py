# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Checkpoints become packed models and come back byte for byte."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import time

import pytest

import glyd


def tree(folder):
    """Return the bytes of every file by its path."""
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            full = os.path.join(path, name)
            found[os.path.relpath(full, folder)] = open(full, "rb").read()
    return found


def write(folder, files):
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def manifest(folder):
    return json.loads((folder / "glyd.json").read_bytes())


@pytest.fixture
def there_and_back(tmp_path):
    """Pack files, verify, unpack, compare; return the report and the packed directory."""

    def run(files, layout="tiered", left_out=(), **options):
        write(tmp_path / "model", files)
        out = tmp_path / "packed"
        report = glyd.pack_model(tmp_path / "model", out, layout, **options)
        assert tree(tmp_path / "model") == files  # nothing there was touched
        assert glyd.verify_model(out).n_packed == report.n_packed
        glyd.unpack_model(out, tmp_path / "back", threads=options.get("threads", 0))
        assert tree(tmp_path / "back") == {name: data for name, data in files.items() if name not in left_out}
        assert sorted(os.listdir(tmp_path)) == ["back", "model", "packed"]  # no temporary directory
        return report, out

    return run


@pytest.fixture(scope="session")
def qwen(tools):
    """A model of Qwen3's form in two shards, every detail of a file that could get lost included."""
    seed = iter(range(1000))

    def weights(*shape):
        size = 1
        for side in shape:
            size *= side
        return "BF16", shape, tools.make_bf16(size, next(seed))

    tensors = {"model.embed_tokens.weight": weights(250, 128)}  # lm_head is tied: stored once
    for i in range(2):
        layer = f"model.layers.{i}."
        tensors |= {
            f"{layer}self_attn.q_proj.weight": weights(256, 128),
            f"{layer}self_attn.k_proj.weight": weights(128, 128),
            f"{layer}self_attn.o_proj.weight": weights(128, 256),
            f"{layer}self_attn.q_norm.weight": weights(64),
            f"{layer}mlp.gate_proj.weight": weights(384, 128),
            f"{layer}mlp.down_proj.weight": weights(128, 384),
            f"{layer}input_layernorm.weight": weights(128),
        }
    names = list(tensors)
    first, second = ({n: tensors[n] for n in part} for part in (names[:8], names[8:]))
    shards = {
        "model-00001-of-00002.safetensors": tools.make_safetensors(first, {"format": "pt"}, padding=37),
        "model-00002-of-00002.safetensors": tools.make_safetensors(second, {}, order=list(reversed(second))),
    }
    weight_map = dict.fromkeys(first, "model-00001-of-00002.safetensors") | dict.fromkeys(
        second, "model-00002-of-00002.safetensors"
    )
    total = sum(len(data) for _, _, data in tensors.values())
    index = json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}, indent=2).encode()
    return shards | {
        "model.safetensors.index.json": index,
        "config.json": b'{"model_type": "qwen3",\n\n  "tie_word_embeddings": true}',
        "tokenizer.json": b'{"version": "1.0"}',
        "1_Pooling/config.json": b"{}",
        "empty.txt": b"",
    }


@pytest.mark.parametrize("layout", ["tiered", "mma12"])
def test_sharded_model(there_and_back, qwen, layout):
    report, out = there_and_back(qwen, layout)
    assert (report.layout, report.n_tensors, report.n_packed) == (layout, 15, 11)
    assert report.verbatim == {"shape": (4, 768)}
    assert report.nbytes == sum(len(data) for name, data in tree(out).items() if name.endswith(".safetensors"))
    assert report.original_nbytes == sum(len(data) for name, data in qwen.items() if name.endswith(".safetensors"))
    assert 10.4 < report.entropy_bits < 10.7 < report.bits_per_weight < 15
    config = json.loads((out / "config.json").read_bytes())
    assert config.pop("quantization_config") == {"quant_method": "glyd", "version": 1, "layout": layout}
    assert config == json.loads(qwen["config.json"])
    index = json.loads((out / "model.safetensors.index.json").read_bytes())
    found = manifest(out)
    assert set(index["weight_map"]) == {e.get("packed", name) for name, e in found["tensors"].items()}
    for name, entry in found["tensors"].items():
        assert index["weight_map"][entry.get("packed", name)] == found["shards"][entry["shard"]]["file"]
        assert (entry["layout"] == layout) == (len(entry["shape"]) == 2)
    assert index["metadata"]["total_size"] == report.packed_nbytes + 768


def test_threads_do_not_change_the_result(tmp_path, qwen):
    write(tmp_path / "m", qwen)
    for n in (1, 3):
        glyd.pack_model(tmp_path / "m", tmp_path / f"p{n}", threads=n)
    assert tree(tmp_path / "p1") == tree(tmp_path / "p3")


def test_what_safetensors_reads(tmp_path, there_and_back, qwen, tools):
    """The library takes the files; packs lie at multiples of 128, other tensors are as they were."""
    pytest.importorskip("numpy")  # nox installs them; wheels of rare platforms are tested without
    safe_open = pytest.importorskip("safetensors").safe_open
    extra = {"a": ("F64", (1,), b"8 bytes!"), "b": ("U8", (3,), b"abc"), "c": ("I16", (2,), b"1234")}
    matrix = {"w": ("BF16", (256, 300), tools.make_bf16(256 * 300))}
    order = ["b", "c", "w", "a"]
    _, out = there_and_back({"model.safetensors": tools.make_safetensors(extra | matrix, {"k": "v"}, order=order)})
    raw = (out / "model.safetensors").read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    assert start % 128 == 0
    header = json.loads(raw[8:start])
    assert header["w_packed"]["data_offsets"][0] == 0
    assert header["w_packed"]["data_offsets"][1] % 128 == 0
    with safe_open(out / "model.safetensors", "np") as file:
        assert file.metadata() == {"k": "v"}
        assert set(file.keys()) == {"a", "b", "c", "w_packed"}
        for name, (_, _, data) in extra.items():
            assert file.get_tensor(name).tobytes() == data
        check = f"{glyd.checksum(file.get_tensor('w_packed').tobytes()):016x}"
        assert check == manifest(out)["tensors"]["w"]["packed_xxh3"]


def test_files_of_the_safetensors_library(there_and_back):
    np = pytest.importorskip("numpy")
    save = pytest.importorskip("safetensors.numpy").save
    rng = np.random.default_rng(1)
    there_and_back({"model.safetensors": save({"a": rng.random((7, 5)), "b": np.arange(3), "c": np.zeros(())})})


def test_experts(there_and_back, tools):
    """One by one, and as stacks of any number of rows: all are packed."""
    tensors = {
        f"model.layers.0.mlp.experts.{e}.up_proj.weight": ("BF16", (96, 128), tools.make_bf16(96 * 128, e))
        for e in range(8)
    }
    tensors["fused.gate_up_proj"] = ("BF16", (8, 192, 128), tools.make_bf16(8 * 192 * 128))
    tensors["odd.down_proj"] = ("BF16", (5, 71, 250), tools.make_bf16(5 * 71 * 250))
    report, out = there_and_back({"model.safetensors": tools.make_safetensors(tensors)})
    assert report.n_packed == len(tensors)
    assert manifest(out)["tensors"]["fused.gate_up_proj"]["shape"] == [8, 192, 128]


@pytest.mark.parametrize("layout", ["tiered", "mma12"])
def test_anything_a_tensor_can_be(there_and_back, tools, layout):
    rng = random.Random(3)
    gauss = tools.make_bf16(577 * 1000)
    special = bytearray(gauss)
    for _ in range(3000):  # NaN, Inf, subnormals, any bits
        at = 2 * rng.randrange(577 * 1000)
        special[at : at + 2] = rng.choice(
            (b"\x80\x7f", b"\x80\xff", b"\xc1\x7f", b"\x01\x00", b"\x00\x80", rng.randbytes(2))
        )
    tensors = {
        "special": ("BF16", (577, 1000), bytes(special)),
        "zeros": ("BF16", (64, 512), bytes(64 * 512 * 2)),
        "noise": ("BF16", (256, 512), rng.randbytes(256 * 512 * 2)),
        "row": ("BF16", (1, 4096), gauss[: 2 * 4096]),
        "column": ("BF16", (4096, 1), gauss[: 2 * 4096]),
        "tiny": ("BF16", (2, 2), gauss[:8]),
        "vector": ("BF16", (5000,), gauss[:10000]),
        "conv": ("BF16", (64, 64, 3, 3), gauss[: 2 * 64 * 64 * 9]),
        "empty": ("BF16", (0, 5), b""),
        "empty stack": ("BF16", (2, 0, 5), b""),
        "scalar": ("BF16", (), b"ab"),
        "half": ("F16", (64, 64), rng.randbytes(8192)),
        "single": ("F32", (64, 64), rng.randbytes(16384)),
        "step": ("I64", (), rng.randbytes(8)),
        "mask": ("BOOL", (3, 3), bytes(9)),
        "scale": ("F8_E4M3", (3,), b"abc"),
        "of the future": ("Q3_K", (7,), b"what?"),
        "taken": ("BF16", (128, 512), gauss[: 2 * 128 * 512]),
        "taken_packed": ("U8", (1,), b"x"),
        "naïve\n\u2028 \U0001f600": ("U8", (1,), b"y"),
    }
    report, out = there_and_back({"odd name.safetensors": tools.make_safetensors(tensors)}, layout)
    entries = manifest(out)["tensors"]
    assert {name for name, entry in entries.items() if entry["layout"] == layout} >= {"special", "zeros"}
    reasons = {name: entry.get("reason") for name, entry in entries.items()}
    assert reasons["noise"] == reasons["row"] == reasons["tiny"] == "size"
    assert reasons["vector"] == reasons["conv"] == reasons["scalar"] == reasons["empty"] == "shape"
    assert reasons["half"] == reasons["single"] == reasons["of the future"] == "dtype"
    assert reasons["taken"] == "name"
    assert report.n_packed + sum(n for n, _ in report.verbatim.values()) == len(tensors)
    for name, (_, _, data) in tensors.items():
        assert entries[name]["sha256"] == hashlib.sha256(data).hexdigest()


def test_no_tensors_at_all(there_and_back, tools):
    report, _ = there_and_back({"model.safetensors": tools.make_safetensors({}), "config.json": b"{}"})
    assert (report.n_tensors, report.bits_per_weight) == (0, 0.0)


@pytest.mark.parametrize("padding", [0, 1, 99_992 - 60, 100_000, 8 << 20])
def test_headers_of_any_length(there_and_back, tools, padding):
    tensors = {"a": ("U8", (3,), b"abc"), "b": ("U8", (0,), b"")}
    there_and_back({"model.safetensors": tools.make_safetensors(tensors, {}, padding=padding)})


def test_many_tensors(tmp_path, tools):
    """200,000 take less than 20 s on a quiet machine; a tenth must not take that even on a busy one."""
    tensors = {f"t{i}": ("BF16", (2, 2), b"12345678") for i in range(20_000)}
    write(tmp_path / "m", {"model.safetensors": tools.make_safetensors(tensors, order=sorted(tensors))})
    start = time.process_time()
    glyd.pack_model(tmp_path / "m", tmp_path / "p")
    assert time.process_time() - start < 10
    glyd.unpack_model(tmp_path / "p", tmp_path / "b")
    assert tree(tmp_path / "b") == tree(tmp_path / "m")


def test_other_weights_and_hidden_files_are_left_out(there_and_back, qwen):
    others = {
        "consolidated.safetensors": b"x",
        "pytorch_model.bin": b"y",
        ".git/config": b"z",
        "original/params.pth": b"",
    }
    report, _ = there_and_back(qwen | others, left_out=others)
    assert report.ignored == (".git", "consolidated.safetensors", "original/params.pth", "pytorch_model.bin")


def test_links_are_read_through(tmp_path, qwen):
    write(tmp_path / "blobs", qwen)
    (tmp_path / "m").mkdir()
    for name in qwen:
        (tmp_path / "m" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "m" / name).symlink_to(tmp_path / "blobs" / name)
    (tmp_path / "m" / "loop").symlink_to(tmp_path / "m")
    report = glyd.pack_model(tmp_path / "m", tmp_path / "p")
    assert report.ignored == ("loop",)
    glyd.unpack_model(tmp_path / "p", tmp_path / "b")
    assert tree(tmp_path / "b") == qwen == tree(tmp_path / "blobs")


def test_progress_and_output(tmp_path, qwen):
    write(tmp_path / "m", qwen)
    seen = []
    (tmp_path / "p").mkdir()  # empty: may be taken
    glyd.pack_model(str(tmp_path / "m"), str(tmp_path / "p"), progress=lambda *now: seen.append(now))
    done = [d for d, _ in seen]
    total = {t for _, t in seen}
    assert done == sorted(done)
    assert total == {done[-1]}
    for name, call in (("v", glyd.verify_model), ("u", lambda p, **k: glyd.unpack_model(p, tmp_path / "u", **k))):
        again = []
        call(tmp_path / "p", progress=lambda *now, again=again: again.append(now))
        assert again[-1] == seen[-1], name

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        glyd.pack_model(tmp_path / "m", tmp_path / "q", progress=stop)
    assert sorted(os.listdir(tmp_path)) == ["m", "p", "u"]


def test_disk_full(tmp_path, qwen):
    """A write that fails is an OSError with the name of the file, and leaves nothing."""
    write(tmp_path / "m", qwen)
    code = """
import resource, signal, sys, glyd
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
try: glyd.pack_model("m", "p")
except OSError as error: print(error.errno, error.filename)
"""
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith("27 "), done
    assert "model-0000" in done.stdout
    assert os.listdir(tmp_path) == ["m"]


def test_hub_cache_offline(tmp_path, qwen):
    """A model of the hub is taken from its cache, without a network; its commit is in the manifest."""
    pytest.importorskip("huggingface_hub")
    cache = tmp_path / "hub" / "models--org--tiny"
    commit = "0123456789abcdef0123456789abcdef01234567"
    write(cache / "snapshots" / commit, qwen)
    write(cache, {"refs/main": commit.encode()})
    env = os.environ | {"HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"}
    code = "import sys, glyd; print(glyd.pack_model('org/tiny', 'p', revision=sys.argv[1] if sys.argv[1:] else None).n_packed)"
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stdout == "11\n", done.stderr
    assert manifest(tmp_path / "p")["source"] == {"repo": "org/tiny", "revision": commit}
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, "other"], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode != 0
    code = "import sys; sys.modules['huggingface_hub'] = None; import glyd; glyd.pack_model('org/tiny', 'q')"
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert "pip install 'glyd-codec[models]'" in done.stderr

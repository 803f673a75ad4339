# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Packed caches in files: another process goes on with them, and damaged files are refused."""

import json
import random
import subprocess
import sys

import pytest
import torch
import transformers
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

import glyd_codec
from glyd_gpu import GlydKVCache, _kv_saving, kv_cache
from glyd_gpu._matrices import bits

CONFIG = transformers.Gemma3TextConfig(
    hidden_size=64,
    num_hidden_layers=7,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=32,
    intermediate_size=64,
    vocab_size=100,
    sliding_window=150,
    eos_token_id=None,
)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(3)
    return AutoModelForCausalLM.from_config(CONFIG).to(torch.bfloat16).eval()


@pytest.fixture
def cache(model, monkeypatch):
    monkeypatch.setattr(kv_cache, "LEAST_WINDOW", 100)
    cache = GlydKVCache(CONFIG)
    with torch.no_grad():
        model(torch.arange(300).view(1, 300) % 97, past_key_values=cache)
    return cache


def go_on(model, cache):
    with torch.no_grad():
        return model(torch.arange(5).view(1, 5), past_key_values=cache).logits


def test_round_trip(model, cache, tmp_path):
    path = tmp_path / "prefix"
    ids = torch.arange(300).view(1, 300) % 97
    cache.save(path, ids=ids)
    assert [entry.name for entry in tmp_path.iterdir()] == ["prefix"]
    assert path.stat().st_size < cache.report().nbytes + 20000
    found = GlydKVCache.load(path, CONFIG, ids=torch.cat([ids, ids], 1))
    assert found.get_seq_length() == 300
    for a, b in zip(cache.layers, found.layers, strict=True):
        assert type(a) is type(b)
        assert torch.equal(bits(a.keys), bits(b.keys))
        assert torch.equal(bits(a.values), bits(b.values))
        assert a.get_mask_sizes(1) == b.get_mask_sizes(1)
        for mine, other in zip(a.stores, b.stores, strict=True):
            assert torch.equal(mine.gather()[0], other.gather()[0])
    assert torch.equal(go_on(model, cache), go_on(model, found))
    found.save(path)
    assert GlydKVCache.load(path).get_seq_length() == 305


def test_sequences_that_share_pages_are_saved_once(cache, tmp_path):
    cache.save(tmp_path / "one")
    cache.batch_repeat_interleave(4)
    cache.reorder_cache(torch.tensor([3, 3, 0, 1]))
    cache.save(tmp_path / "four")
    pages = {}
    for name in ("one", "four"):
        with safe_open(tmp_path / name, "pt") as file:
            pages[name] = file.get_tensor("5.keys.pages")
    assert torch.equal(pages["one"], pages["four"])
    found = GlydKVCache.load(tmp_path / "four", CONFIG)
    assert torch.equal(found.layers[5].values, cache.layers[5].values)


def test_another_process(model, cache, tmp_path):
    path = tmp_path / "prefix"
    cache.save(path)
    program = (
        "import sys, hashlib, torch; from glyd_gpu import GlydKVCache; c = GlydKVCache.load(sys.argv[1]); "
        "print(hashlib.sha256(c.layers[5].keys.view(torch.int16).numpy()).hexdigest())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.split()[-1] == _kv_saving._sha256(cache.layers[5].keys)


def test_plain_layers_are_saved_too(model, tmp_path):
    cache = GlydKVCache(CONFIG)  # the window is shorter than what is packed
    with torch.no_grad():
        model(torch.arange(300).view(1, 300) % 97, past_key_values=cache)
    cache.save(tmp_path / "prefix")
    found = GlydKVCache.load(tmp_path / "prefix", CONFIG)
    assert len(found.report().plain_layers) == 6
    assert torch.equal(go_on(model, cache), go_on(model, found))


def test_other_models_and_tokens(cache, tmp_path):
    path = tmp_path / "prefix"
    ids = torch.arange(300).view(1, 300) % 97
    cache.save(path, ids=ids)
    with pytest.raises(glyd_codec.ParameterError, match="another model: 7 layers, not 2"):
        GlydKVCache.load(path, transformers.LlamaConfig(num_hidden_layers=2))
    other = transformers.Gemma3TextConfig(**CONFIG.to_dict() | {"num_key_value_heads": 2})
    with pytest.raises(glyd_codec.ParameterError, match=r"another model: \[1\] heads, not 2"):
        GlydKVCache.load(path, other)
    with pytest.raises(glyd_codec.ParameterError, match="other tokens than the first 300"):
        GlydKVCache.load(path, ids=ids + 1)
    cache.save(path)
    with pytest.raises(glyd_codec.ParameterError, match="saved without ids"):
        GlydKVCache.load(path, ids=ids)
    with pytest.raises(glyd_codec.ParameterError, match="layer 0 has no keys yet"):
        GlydKVCache(CONFIG).save(path)


def test_a_failed_save_leaves_what_was_there(cache, tmp_path, monkeypatch):
    path = tmp_path / "prefix"
    cache.save(path)
    before = path.read_bytes()

    def broken(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_kv_saving, "save_file", broken)
    with pytest.raises(OSError, match="No space left"):
        cache.save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["prefix"]


def test_damaged_files(cache, tmp_path):
    path = tmp_path / "prefix"
    cache.save(path)
    data = path.read_bytes()
    rng = random.Random(4)
    broken = tmp_path / "broken"
    for i in range(60):
        changed = bytearray(data)
        at = rng.randrange(len(data) if i % 2 else 3000)
        changed[at] ^= 1 << rng.randrange(8)
        broken.write_bytes(changed if i % 3 else changed[: rng.randrange(len(data))])
        try:  # a change of the manifest that leaves all it says is none
            GlydKVCache.load(broken)
        except glyd_codec.FormatError:
            continue
        assert changed[8:at] + data[at : at + 1] + changed[at + 1 :] == data[8:]
        assert at < 8 + int.from_bytes(data[:8], "little")


def change(path, tensors=None, **manifest):
    """Write a file again with other tensors and hashes that fit, or another manifest."""
    with safe_open(path, "pt") as file:
        kept = {name: file.get_tensor(name) for name in file.keys()} | (tensors or {})  # noqa: SIM118
        said = json.loads(file.metadata()["glyd_kv"])
    kept = {name: tensor for name, tensor in kept.items() if tensor is not None}
    said["sha256"] = {name: _kv_saving._sha256(tensor) for name, tensor in kept.items()}
    save_file(kept, path, {"glyd_kv": json.dumps(said | manifest)})


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"5.keys.table": torch.full((1, 1, 2), 2)}, "names pages that are not among 2"),
        ({"5.keys.table": torch.full((1, 1, 2), -1)}, "names pages that are not among 2"),
        ({"5.keys.table": torch.zeros((1, 2, 2), dtype=torch.int64)}, r"table is \(1, 2, 2\) of torch.int64"),
        ({"5.keys.table": torch.zeros((1, 1, 1), dtype=torch.int64)}, "layer 5 has keys"),
        ({"5.keys.tail": torch.zeros((1, 1, 128, 32), dtype=torch.bfloat16)}, "has 128 tokens, 127 at most"),
        ({"5.keys.tail": torch.zeros((1, 1, 44, 64), dtype=torch.bfloat16)}, "other than 64 channels"),
        ({"5.keys.tail": torch.zeros((1, 1, 44, 32))}, "float32"),
        ({"5.keys.tail": torch.zeros((1, 1, 43, 32), dtype=torch.bfloat16)}, "layer 5 has keys"),
        ({"5.keys.pages": torch.zeros(640, dtype=torch.uint8)}, "no page of keys or values at byte 0"),
        ({"5.keys.pages": None}, "5.keys is not all there"),
    ],
)
def test_files_that_contradict_themselves(cache, tmp_path, tensors, message):
    cache.save(tmp_path / "prefix")
    change(tmp_path / "prefix", tensors)
    with pytest.raises(glyd_codec.FormatError, match=message):
        GlydKVCache.load(tmp_path / "prefix")


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({"version": 2}, "version 2, this program reads 1"),
        ({"version": None}, "no version"),
        ({"layers": []}, "without layers"),
        ({"layers": [1] * 7}, "layer 0 is of no kind"),
        ({"layers": [{"kind": "packed", "window": 0}] * 7}, "window of 0 tokens"),
        (
            {"layers": [{"kind": "packed", "window": 200, "n_shown": 999, "n_tokens": 300}] * 7},
            "more tokens than it has",
        ),
        (
            {"layers": [{"kind": "packed", "window": 200, "n_shown": 9, "n_tokens": 8}] * 7},
            "more tokens than there were",
        ),
        (
            {"layers": [{"kind": "packed", "window": 200, "n_shown": 9, "n_tokens": "8"}] * 7},
            "n_tokens of a layer is '8'",
        ),
        ({"sha256": {}}, "not about the same"),
        ({"sha256": 7}, "not about the same"),
    ],
)
def test_manifests_that_cannot_be(cache, tmp_path, manifest, message):
    cache.save(tmp_path / "prefix")
    change(tmp_path / "prefix", **manifest)
    with pytest.raises(glyd_codec.FormatError, match=message):
        GlydKVCache.load(tmp_path / "prefix")


def test_other_files(tmp_path):
    (tmp_path / "text").write_text("not a cache")
    save_file({"a": torch.zeros(3)}, tmp_path / "weights")
    with pytest.raises(glyd_codec.CorruptDataError, match="text is damaged"):
        GlydKVCache.load(tmp_path / "text")
    with pytest.raises(glyd_codec.CorruptDataError, match="weights is no cache of glyd"):
        GlydKVCache.load(tmp_path / "weights")
    with pytest.raises(FileNotFoundError):
        GlydKVCache.load(tmp_path / "nothing")

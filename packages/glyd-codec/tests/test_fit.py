# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Sizes of models from headers alone; what is said to fit does."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import glyd
from glyd_codec._models._kv import kv_cache

QWEN3 = {
    "architectures": ["Qwen3ForCausalLM"], "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
    "max_position_embeddings": 40960,
}  # fmt: skip


def qwen3_8b():
    shapes = {"embed": [151936, 4096], "head": [151936, 4096], "norm": [4096]}
    for i in range(36):
        for name, shape in {
            "q": [4096, 4096], "k": [1024, 4096], "v": [1024, 4096], "o": [4096, 4096], "gate": [12288, 4096],
            "up": [12288, 4096], "down": [4096, 12288], "n1": [4096], "n2": [4096],
        }.items():  # fmt: skip
            shapes[f"{i}.{name}"] = shape
    return shapes


def test_a_model_of_qwen3_8b_shape(tmp_path, tools):
    tools.make_sparse_model(tmp_path / "m", qwen3_8b(), QWEN3, n_shards=4)
    report = glyd.fit(tmp_path / "m")
    assert report.n_parameters == 151936 * 4096 * 2 + 4096 + 36 * (4096 * (4096 * 2 + 1024 * 2 + 12288 * 3) + 2 * 4096)
    assert report.dtypes == {"BF16": 2 * report.n_parameters}
    assert report.weights["bf16"].nbytes == 2 * report.n_parameters
    assert 12.0 < 8 * report.weights["mma12"].nbytes / report.n_parameters < 12.1
    assert 10.75 < 8 * report.weights["tiered"].nbytes / report.n_parameters < 10.95
    assert report.kv_token_nbytes == 2 * 36 * 8 * 128 * 2
    assert (report.context, report.max_context, report.kv_nbytes) == (8192, 40960, 8192 * report.kv_token_nbytes)
    assert (report.packed, report.notes) == (None, ())
    by_name = {gpu.name: gpu for gpu in report.gpus}
    assert by_name["RTX 4060"].fits == {"bf16": False, "tiered": False, "mma12": False}
    assert by_name["RTX 4060"].max_context["tiered"] == 0
    assert by_name["RTX 4090"].fits["bf16"] is True
    assert by_name["H200"].max_context == {"bf16": 40960, "tiered": 40960, "mma12": 40960}


def test_what_fits_is_consistent(tmp_path, tools):
    """A context that is said to fit fits when asked for, the next larger one does not; more memory is never worse."""
    tools.make_sparse_model(tmp_path / "m", qwen3_8b(), QWEN3)
    before = dict.fromkeys(("bf16", "tiered", "mma12"), 0)
    for size in range(8, 40):
        (gpu,) = glyd.fit(tmp_path / "m", gpu=f"{size}GB").gpus
        for layout, most in gpu.max_context.items():
            assert most >= before[layout]
            before[layout] = most
            if not most:
                continue
            for context, fits in ((most, True), (most + 16, False)):
                if context <= 40960:
                    report = glyd.fit(tmp_path / "m", gpu=f"{size}GB", context=context)
                    assert report.gpus[0].fits[layout] is fits
                    assert (report.weights[layout].total_nbytes <= 0.96 * report.gpus[0].nbytes) is fits
    assert before == {"bf16": 40960, "tiered": 40960, "mma12": 40960}


@pytest.mark.parametrize(("layout", "other"), [("tiered", "mma12"), ("mma12", "tiered")])
def test_estimates_beside_packs(tmp_path, tools, layout, other):
    """Estimates are no less than the packs, and less than 2% more; a packed model's own size is exact."""
    tensors = {
        "a": ("BF16", (512, 1024), tools.make_bf16(512 * 1024)),
        "odd": ("BF16", (500, 700), tools.make_bf16(350_000)),
        "stack": ("BF16", (4, 96, 512), tools.make_bf16(4 * 96 * 512)),
        "tiny": ("BF16", (5, 5), tools.make_bf16(25)),
        "norm": ("BF16", (1024,), tools.make_bf16(1024)),
        "f": ("F32", (3, 3), bytes(36)),
    }
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(tools.make_safetensors(tensors))
    (folder / "config.json").write_text(json.dumps(QWEN3))
    packs = {name: glyd.pack_model(folder, tmp_path / name, name) for name in (layout, other)}
    headers = {}
    for name in packs:
        raw = (tmp_path / name / "model.safetensors").read_bytes()
        headers[name] = len(raw) - 8 - int.from_bytes(raw[:8], "little")
    before = glyd.fit(folder)
    packed = glyd.fit(tmp_path / layout)
    assert (before.packed, packed.packed) == (None, layout)
    assert packed.weights[layout].nbytes == headers[layout]
    assert packed.weights[layout].basis == "headers (exact)"
    assert packed.weights[other].basis.startswith("estimate")
    for report, names in ((before, (layout, other)), (packed, (other,))):
        for name in names:
            assert headers[name] <= report.weights[name].nbytes < 1.02 * headers[name]
    assert before.weights["bf16"] == packed.weights["bf16"]
    assert before.weights["bf16"].nbytes == sum(len(t[2]) for t in tensors.values()) - 18  # F32 as bf16
    assert (before.n_parameters, before.dtypes) == (packed.n_parameters, packed.dtypes)


@pytest.mark.parametrize(
    ("config", "token_nbytes", "at_10000"),
    [
        ({"num_hidden_layers": 4, "num_attention_heads": 8, "hidden_size": 512}, 4 * 2 * 8 * 64 * 2, None),
        ({"n_layer": 2, "n_head": 4, "n_embd": 100}, 2 * 2 * 4 * 25 * 2, None),  # GPT-2
        ({"num_hidden_layers": 2, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 256}, 2 * 2048, None),
        ({"n_layer": 2, "n_head": 16, "n_embd": 2048, "multi_query": True}, 2 * 2 * 128 * 2, None),
        # windows: named layer by layer, by a pattern, or only mentioned
        ({"num_hidden_layers": 4, "num_attention_heads": 1, "head_dim": 64, "sliding_window": 1024,
          "layer_types": ["sliding_attention"] * 3 + ["full_attention"]}, 256, 256 * (10_000 + 3 * 1024)),
        ({"num_hidden_layers": 6, "num_attention_heads": 1, "head_dim": 64, "sliding_window": 512,
          "sliding_window_pattern": 6}, 256, 256 * (10_000 + 5 * 512)),
        ({"num_hidden_layers": 4, "num_attention_heads": 1, "head_dim": 64, "sliding_window": 1024}, 4 * 256, None),
        ({"num_hidden_layers": 2, "num_attention_heads": 1, "head_dim": 64, "sliding_window": None,
          "layer_types": ["sliding_attention"] * 2}, 2 * 256, None),
        ({"num_hidden_layers": 2, "num_attention_heads": 1, "head_dim": 64, "attention_chunk_size": 8192,
          "layer_types": ["chunked_attention", "full_attention"]}, 256, 256 * (10_000 + 8192)),
        # linear attention: a state; unknown kinds count as attention
        ({"num_hidden_layers": 2, "num_attention_heads": 1, "head_dim": 64, "layer_types": ["linear_attention", "x"],
          "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 16},
         256, 256 * 10_000 + 4 * (4 * 8 * 16 + 4 * (2 * 2 * 8 + 4 * 16))),
        # latent attention, as it is kept by those who expand it
        ({"num_hidden_layers": 3, "num_attention_heads": 16, "kv_lora_rank": 512, "qk_rope_head_dim": 64,
          "qk_nope_head_dim": 128, "v_head_dim": 128}, 3 * 16 * 320 * 2, None),
        ({"text_config": {"num_hidden_layers": 4, "num_attention_heads": 8, "hidden_size": 512}, "hidden_size": 1}, 8192,
         None),
    ],
)  # fmt: skip
def test_kv_caches(config, token_nbytes, at_10000):
    cache = kv_cache(config)
    assert cache.per_token_nbytes == token_nbytes
    assert cache.nbytes(10_000) == (10_000 * token_nbytes if at_10000 is None else at_10000)
    sizes = [cache.nbytes(n) for n in range(0, 20_000, 7)]
    assert sizes == sorted(sizes)


@pytest.mark.parametrize(
    "config",
    [
        {}, {"num_hidden_layers": "4"}, {"num_hidden_layers": 4, "num_attention_heads": True},
        {"num_hidden_layers": 10**9, "num_attention_heads": 4, "head_dim": 4},
        {"num_hidden_layers": -1, "num_attention_heads": 4, "head_dim": 4}, {"text_config": []},
        {"num_hidden_layers": 4, "num_attention_heads": 4}, {"num_hidden_layers": 2.0, "num_attention_heads": 1},
    ],
)  # fmt: skip
def test_configurations_that_do_not_say(tmp_path, config, tools):
    """Weights are told, what fits is not: never a guess."""
    tools.make_sparse_model(tmp_path / "m", {"t": [640, 512]}, config)
    report = glyd.fit(tmp_path / "m")
    assert report.kv_nbytes is None
    assert report.weights["bf16"].nbytes == 2 * 640 * 512
    assert {value for gpu in report.gpus for value in (*gpu.fits.values(), *gpu.max_context.values())} == {None}
    assert len(report.notes) == 1


def test_notes(tmp_path, tools):
    tools.make_sparse_model(tmp_path / "m", {"t": [640, 512]}, QWEN3)
    assert glyd.fit(tmp_path / "m", context=50_000).notes == ("the model was made for 40960 tokens, not 50000",)
    assert glyd.fit(tmp_path / "m", context=50_000).gpus[-1].max_context["bf16"] == 40960
    half = tools.make_safetensors({"t": ("F16", (64, 64), bytes(8192))})
    (tmp_path / "m" / "model.safetensors").write_bytes(half)
    report = glyd.fit(tmp_path / "m")
    assert "no tensor is bf16" in report.notes[0]
    assert {fit.nbytes for fit in report.weights.values()} == {8192}
    one = tmp_path / "m" / "other.safetensors"
    one.write_bytes(half)
    assert glyd.fit(one).n_parameters == 4096


@pytest.mark.parametrize(
    ("gpu", "name", "nbytes"),
    [
        ("48GB", "48GB", 48 * 10**9), ("48", "48", 48 * 10**9), ("80 GiB", "80 GiB", 80 << 30),
        ("24564MiB", "24564MiB", 24564 << 20), ("1.5gb", "1.5gb", 1_500_000_000), (10**10, f"{10**10} bytes", 10**10),
        ("H100", "H100", 80 * 10**9), ("rtx4090", "RTX 4090", 24 * 10**9), ("4090", "RTX 4090", 24 * 10**9),
        ("NVIDIA GeForce RTX 5090", "RTX 5090", 32 * 10**9), ("a100 40gb", "A100 40GB", 40 * 10**9),
        ("A100-80GB", "A100", 80 * 10**9), ("h200", "H200", 141 * 10**9),
    ],
)  # fmt: skip
def test_names_of_gpus(tmp_path, gpu, name, nbytes, tools):
    tools.make_sparse_model(tmp_path / "m", {"t": [640, 512]}, QWEN3)
    (found,) = glyd.fit(tmp_path / "m", gpu=gpu).gpus
    assert (found.name, found.nbytes) == (name, nbytes)


def test_wrong_arguments(tmp_path, tools):
    tools.make_sparse_model(tmp_path / "m", {"t": [640, 512]}, QWEN3)
    for gpu in ("", "GB", "7x", "-5GB", "0", "1e9", 0, -1, "9" * 400, "H1000"):
        with pytest.raises(glyd.ParameterError, match="gpu must be"):
            glyd.fit(tmp_path / "m", gpu=gpu)
    for context in (0, -1, 1 << 28):
        with pytest.raises(glyd.ParameterError, match="context must be"):
            glyd.fit(tmp_path / "m", context=context)
    with pytest.raises(glyd.ParameterError, match="revision"):
        glyd.fit(tmp_path / "m", revision="main")
    with pytest.raises(glyd.ParameterError, match="revision"):
        glyd.fit("http://127.0.0.1:9/m", revision="main")
    with pytest.raises(FileNotFoundError):
        glyd.fit(tmp_path / "nothere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(glyd.ParameterError, match=r"no \.safetensors file"):
        glyd.fit(tmp_path / "empty")
    (tmp_path / "m" / "config.json").write_text("[")
    with pytest.raises(glyd.FormatError, match=r"config\.json"):
        glyd.fit(tmp_path / "m")


def test_nothing_heavy_is_loaded(tmp_path, tools):
    tools.make_sparse_model(tmp_path / "m", {"t": [640, 512]}, QWEN3)
    code = (
        "import sys, glyd; glyd.fit('m'); "
        "print([m for m in ('torch', 'numpy', 'huggingface_hub', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr

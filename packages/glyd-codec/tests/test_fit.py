# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Sizes of models from headers alone, on disk and behind HTTP; what is said to fit does."""

from __future__ import annotations

import http.server
import json
import os
import re
import subprocess
import sys
import threading
import time

import pytest

import glyd
from glyd_codec._models._kv import kv_cache
from glyd_codec._models._remote import Web

QWEN3 = {
    "architectures": ["Qwen3ForCausalLM"], "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
    "max_position_embeddings": 40960,
}  # fmt: skip


class Server:
    """Serves files over HTTP, parts of them too, and notes what is asked for."""

    def __init__(self, folder, *, ranges=True, answer=None):
        requests = self.requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                requests.append((self.path, self.headers.get("Range"), self.headers.get("Authorization")))
                if answer is not None and answer(self):
                    return
                path = folder / self.path.lstrip("/")
                if not path.is_file():
                    self.send_error(404)
                    return
                data = path.read_bytes()
                first, last = 0, len(data) - 1
                part = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or "") if ranges else None
                if part:
                    first, last = int(part[1]), min(last, int(part[2]))
                    if first > last:
                        self.send_error(416)
                        return
                    self.send_response(206)
                    self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
                else:
                    self.send_response(200)
                self.send_header("Content-Length", str(last - first + 1))
                self.end_headers()
                self.wfile.write(data[first : last + 1])

            def log_message(self, *_):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # a client that hangs up

        self._server = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def serve(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "HF_HUB_OFFLINE", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    servers = []

    def start(*args, **options):
        servers.append(Server(*args, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def sparse_model(folder, shapes, config=None, n_shards=1):
    """Write weight files of any size that take no disk."""
    folder.mkdir(exist_ok=True)
    names = list(shapes)
    weight_map = {}
    for s in range(n_shards):
        header, at = {}, 0
        for name in names[s::n_shards]:
            nbytes = 2
            for side in shapes[name]:
                nbytes *= side
            header[name] = {"dtype": "BF16", "shape": shapes[name], "data_offsets": [at, at + nbytes]}
            at += nbytes
        text = json.dumps(header).encode()
        file_name = "model.safetensors" if n_shards == 1 else f"model-{s}.safetensors"
        weight_map |= dict.fromkeys(header, file_name)
        with open(folder / file_name, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            file.truncate(8 + len(text) + at)
    if n_shards > 1:
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))


def qwen3_8b():
    shapes = {"embed": [151936, 4096], "head": [151936, 4096], "norm": [4096]}
    for i in range(36):
        for name, shape in {
            "q": [4096, 4096], "k": [1024, 4096], "v": [1024, 4096], "o": [4096, 4096], "gate": [12288, 4096],
            "up": [12288, 4096], "down": [4096, 12288], "n1": [4096], "n2": [4096],
        }.items():  # fmt: skip
            shapes[f"{i}.{name}"] = shape
    return shapes


def test_a_model_of_qwen3_8b_shape(tmp_path):
    sparse_model(tmp_path / "m", qwen3_8b(), QWEN3, n_shards=4)
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


def test_what_fits_is_consistent(tmp_path):
    """A context that is said to fit fits when asked for, the next larger one does not; more memory is never worse."""
    sparse_model(tmp_path / "m", qwen3_8b(), QWEN3)
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


@pytest.mark.parametrize("padding", [0, *range(99_992 - 3, 100_009 + 3), 131_064, 131_072, 131_073, 8 << 20])
def test_headers_of_any_length_take_two_requests(tmp_path, serve, tools, padding):
    """Header, not padding, of 99,992 … 100,008 bytes, of both sides of the first request, and of 8 MB."""
    tensors = {"b": ("BF16", (3, 2), b"x" * 12), "a": ("U8", (5,), b"hello")}
    plain = tools.make_safetensors(tensors, {}, order=["a", "b"])
    length = int.from_bytes(plain[:8], "little")
    data = tools.make_safetensors(tensors, {}, order=["a", "b"], padding=max(padding - length, 0))
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "model.safetensors").write_bytes(data)
    server = serve(tmp_path)
    near = glyd.fit(tmp_path / "m")
    for url in (f"{server.url}/m", f"{server.url}/m/", f"{server.url}/m/model.safetensors"):
        server.requests.clear()
        far = glyd.fit(url)
        assert (far.dtypes, far.n_parameters, far.weights) == (near.dtypes, near.n_parameters, near.weights)
        asked = [request for request in server.requests if request[0].endswith(".safetensors")]
        assert len(asked) == (1 if 8 + max(padding, length) <= 1 << 17 else 2)


def test_shards_over_http(tmp_path, serve):
    sparse_model(tmp_path / "m", {f"t{i}": [640, 512] for i in range(40)}, QWEN3, n_shards=7)
    server = serve(tmp_path)
    report = glyd.fit(f"{server.url}/m?download=true")
    assert report.n_parameters == 40 * 640 * 512
    assert len(server.requests) == 2 + 7
    assert glyd.fit(tmp_path / "m").weights == report.weights


def test_packed_model_over_http(tmp_path, serve, tools):
    (tmp_path / "m").mkdir()
    weights = tools.make_safetensors({"a": ("BF16", (256, 512), tools.make_bf16(256 * 512))})
    (tmp_path / "m" / "model.safetensors").write_bytes(weights)
    (tmp_path / "m" / "config.json").write_text(json.dumps(QWEN3))
    glyd.pack_model(tmp_path / "m", tmp_path / "p")
    server = serve(tmp_path)
    far, near = glyd.fit(f"{server.url}/p"), glyd.fit(tmp_path / "p")
    assert far.packed == "tiered"
    assert (far.weights, far.gpus) == (near.weights, near.gpus)


def test_a_server_without_ranges(tmp_path, serve):
    sparse_model(tmp_path / "m", {"t": [1 << 14, 1 << 10]})  # 32 MB, of which the header is read
    server = serve(tmp_path, ranges=False)
    assert glyd.fit(f"{server.url}/m").n_parameters == 1 << 24


def test_many_tensors(tmp_path, serve, tools):
    """200,000 tensors of 8 bytes, in another order than their names."""
    entries = {f"t{i:06}": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [0, 0]} for i in range(200_000)}
    for place, name in enumerate(sorted(entries, reverse=True)):
        entries[name]["data_offsets"] = [8 * place, 8 * place + 8]
    text = json.dumps(entries).encode()
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(1_600_000))
    server = serve(tmp_path)
    start = time.process_time()
    report = glyd.fit(f"{server.url}/m")
    assert time.process_time() - start < 20
    assert report.n_parameters == 800_000
    assert {fit.nbytes for fit in report.weights.values()} == {1_600_000}


def test_the_hub(tmp_path, serve, monkeypatch):
    """Branch, token and redirects of the hub: the token goes to the hub and nowhere else."""
    commit = tmp_path / "org" / "tiny" / "resolve" / "v1"
    commit.mkdir(parents=True)
    sparse_model(commit, {"t": [640, 512]}, QWEN3)
    os.rename(commit / "model.safetensors", tmp_path / "blob")
    cdn = serve(tmp_path)

    def answer(handler):
        if handler.headers.get("Authorization") != "Bearer secret":
            handler.send_error(401)
            return True
        if handler.path.endswith("v1/model.safetensors"):
            handler.send_response(302)
            handler.send_header("Location", f"{cdn.url}/blob")
            handler.end_headers()
            return True
        return False

    hub = serve(tmp_path, answer=answer)
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    report = glyd.fit("org/tiny", revision="v1", token="secret")
    assert report.n_parameters == 640 * 512
    assert [(path, auth) for path, _, auth in cdn.requests] == [("/blob", None)]
    with pytest.raises(PermissionError, match="401"):
        glyd.fit("org/tiny", revision="v1", token=False)
    monkeypatch.setenv("HF_TOKEN", "secret")
    assert glyd.fit("org/tiny", revision="v1").n_parameters == 640 * 512
    with pytest.raises(glyd.ParameterError, match="no safetensors file"):
        glyd.fit("org/tiny", revision="v2")


def test_the_cache_of_the_hub_offline(tmp_path):
    pytest.importorskip("huggingface_hub")
    cache = tmp_path / "models--org--tiny"
    commit = "0123456789abcdef0123456789abcdef01234567"
    (cache / "refs").mkdir(parents=True)
    (cache / "refs" / "main").write_text(commit)
    (cache / "snapshots").mkdir()
    sparse_model(cache / "snapshots" / commit, {"t": [640, 512]}, QWEN3)
    env = os.environ | {"HF_HUB_CACHE": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    code = "import glyd; print(glyd.fit('org/tiny').n_parameters)"
    done = subprocess.run([sys.executable, "-I", "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == f"{640 * 512}\n", done.stderr


def test_what_servers_can_say(tmp_path, serve):
    (tmp_path / "m").mkdir()
    path = tmp_path / "m" / "model.safetensors"
    server = serve(tmp_path)

    def refused(data, kind, words):
        path.write_bytes(data)
        with pytest.raises(kind, match=words) as caught:
            glyd.fit(f"{server.url}/m")
        assert "\n" not in str(caught.value)

    refused(b"", glyd.TruncatedError, "0 bytes are no safetensors file")
    refused(b"\xff" * 8 + b"{}", glyd.FormatError, "header of 18446744073709551615 bytes")
    refused((500).to_bytes(8, "little") + b"{}", glyd.TruncatedError, "header of 500 bytes in a file of 10")
    refused((1 << 20).to_bytes(8, "little") + b"{" * 200_000, glyd.TruncatedError, "header of 1048576 bytes")
    refused((2).to_bytes(8, "little") + b"{}x", glyd.FormatError, "1 bytes behind the last tensor")
    path.unlink()
    with pytest.raises(glyd.ParameterError, match="no safetensors file"):
        glyd.fit(f"{server.url}/m")
    with pytest.raises(FileNotFoundError, match="404"):
        glyd.fit(f"{server.url}/m/x.safetensors")
    broken = serve(tmp_path, answer=lambda handler: handler.send_error(503) or True)
    with pytest.raises(OSError, match="503"):
        glyd.fit(f"{broken.url}/m")
    cut = serve(tmp_path, answer=lambda handler: True)
    with pytest.raises(OSError, match=r"127\.0\.0\.1"):
        glyd.fit(f"{cut.url}/m")
    server.close()
    with pytest.raises(OSError, match="refused"):
        glyd.fit(f"{server.url}/m")
    loop = serve(tmp_path, answer=lambda h: (h.send_response(302), h.send_header("Location", h.path), h.end_headers()))
    with pytest.raises(OSError, match="302"):
        glyd.fit(f"{loop.url}/m")


def test_only_http(tmp_path, serve):
    """A redirect to a file of this machine is not followed."""
    target = tmp_path / "secret"
    target.write_bytes(b"x")

    def answer(handler):
        handler.send_response(302)
        handler.send_header("Location", f"file://{target}")
        handler.end_headers()
        return True

    server = serve(tmp_path, answer=answer)
    with pytest.raises(OSError, match="302"):
        Web(server.url).small_file("config.json", 100)


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
def test_configurations_that_do_not_say(tmp_path, config):
    """Weights are told, what fits is not: never a guess."""
    sparse_model(tmp_path / "m", {"t": [640, 512]}, config)
    report = glyd.fit(tmp_path / "m")
    assert report.kv_nbytes is None
    assert report.weights["bf16"].nbytes == 2 * 640 * 512
    assert {value for gpu in report.gpus for value in (*gpu.fits.values(), *gpu.max_context.values())} == {None}
    assert len(report.notes) == 1


def test_notes(tmp_path, tools):
    sparse_model(tmp_path / "m", {"t": [640, 512]}, QWEN3)
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
def test_names_of_gpus(tmp_path, gpu, name, nbytes):
    sparse_model(tmp_path / "m", {"t": [640, 512]}, QWEN3)
    (found,) = glyd.fit(tmp_path / "m", gpu=gpu).gpus
    assert (found.name, found.nbytes) == (name, nbytes)


def test_wrong_arguments(tmp_path):
    sparse_model(tmp_path / "m", {"t": [640, 512]}, QWEN3)
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


def test_nothing_heavy_is_loaded(tmp_path):
    sparse_model(tmp_path / "m", {"t": [640, 512]}, QWEN3)
    code = (
        "import sys, glyd; glyd.fit('m'); "
        "print([m for m in ('torch', 'numpy', 'huggingface_hub', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr

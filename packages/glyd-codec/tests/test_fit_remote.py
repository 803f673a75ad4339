# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Sizes of models behind HTTP and on the hub: two requests a weight file, no token for strangers."""

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
from glyd_codec._models._remote import Web

QWEN3 = {
    "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "max_position_embeddings": 40960,
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


def test_shards_over_http(tmp_path, serve, tools):
    tools.make_sparse_model(tmp_path / "m", {f"t{i}": [640, 512] for i in range(40)}, QWEN3, n_shards=7)
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


def test_a_server_without_ranges(tmp_path, serve, tools):
    tools.make_sparse_model(tmp_path / "m", {"t": [1 << 14, 1 << 10]})  # 32 MB, of which the header is read
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


def test_the_hub(tmp_path, serve, monkeypatch, tools):
    """Branch, token and redirects of the hub: the token goes to the hub and nowhere else."""
    commit = tmp_path / "org" / "tiny" / "resolve" / "v1"
    commit.mkdir(parents=True)
    tools.make_sparse_model(commit, {"t": [640, 512]}, QWEN3)
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


def test_the_cache_of_the_hub_offline(tmp_path, tools):
    pytest.importorskip("huggingface_hub")
    cache = tmp_path / "models--org--tiny"
    commit = "0123456789abcdef0123456789abcdef01234567"
    (cache / "refs").mkdir(parents=True)
    (cache / "refs" / "main").write_text(commit)
    (cache / "snapshots").mkdir()
    tools.make_sparse_model(cache / "snapshots" / commit, {"t": [640, 512]}, QWEN3)
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

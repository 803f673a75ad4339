# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Packing models of the hub: a small one that answers as the real one does, its cache, no network."""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading

import pytest

import glyd

pytest.importorskip("huggingface_hub")

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """Answers what downloading a snapshot asks for, to those who know the token."""

    def __init__(self, files, token):
        self.requests = requests = []
        hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                requests.append((self.command, self.path, self.headers.get("Authorization")))
                path = self.path.partition("?")[0]
                if self.headers.get("Authorization") != f"Bearer {token}":
                    return self.say(
                        401, b'{"error": "Invalid username or password."}', {"X-Error-Code": "RepoNotFound"}
                    )
                if path.startswith("/api/models/org/gated"):
                    return self.say(
                        403, b'{"error": "Access to model org/gated is restricted."}', {"X-Error-Code": "GatedRepo"}
                    )
                if path in {f"/api/models/org/tiny/revision/{r}" for r in ("v1", COMMIT)}:
                    siblings = [{"rfilename": name, "size": len(data)} for name, data in files.items()]
                    info = {"id": "org/tiny", "sha": COMMIT, "siblings": siblings, "private": False, "tags": []}
                    return self.say(200, json.dumps(info).encode())
                if path.startswith(f"/api/models/org/tiny/tree/{COMMIT}"):
                    tree = [
                        {"type": "file", "path": name, "size": len(data), "oid": hashes[name][:40]}
                        for name, data in files.items()
                    ]
                    return self.say(200, json.dumps(tree).encode())
                head = f"/org/tiny/resolve/{COMMIT}/"
                if path.startswith(head) and path.removeprefix(head) in files:
                    name = path.removeprefix(head)
                    return self.say(200, files[name], {"ETag": f'"{hashes[name]}"', "X-Repo-Commit": COMMIT})
                return self.say(404, b'{"error": "not found"}', {"X-Error-Code": "RevisionNotFound"})

            do_HEAD = do_GET

            def say(self, status, data, headers=()):
                self.send_response(status)
                for name, value in dict(headers).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(data)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def files(tools):
    return {
        "model.safetensors": tools.make_safetensors({"w": ("BF16", (128, 512), tools.make_bf16(128 * 512))}),
        "config.json": b'{"model_type": "llama"}',
        "tokenizer/vocab.txt": b"a\n",
        "pytorch_model.bin": b"not to be fetched",
        "model.onnx": b"nor this",
    }


@pytest.fixture
def hub(files):
    server = Hub(files, "secret")
    yield server
    server.close()


CODE = """
import sys, glyd
options = dict(word.split("=") for word in sys.argv[2:])
try: print(glyd.pack_model(sys.argv[1], "p", **options).n_packed)
except (OSError, glyd.GlydError) as error: print(type(error).__mro__[-4:], isinstance(error, OSError), error)
"""


def pack(tmp_path, hub, *words, **env):
    clean = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy") and not k.startswith("HF_")}
    env = clean | {"HF_HOME": str(tmp_path / "hf"), "HF_ENDPOINT": hub.url, "HF_HUB_DISABLE_XET": "1"} | env
    command = [sys.executable, "-I", "-c", CODE, *words]
    return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)


def test_revision_and_token(hub, files, tmp_path):
    done = pack(tmp_path, hub, "org/tiny", "revision=v1", "token=secret")
    assert done.stdout == "1\n", (done, hub.requests)
    asked = {path for _, path, _ in hub.requests}
    assert not any(path.endswith((".bin", ".onnx")) for path in asked)
    manifest = json.loads((tmp_path / "p" / "glyd.json").read_bytes())
    assert manifest["source"] == {"repo": "org/tiny", "revision": COMMIT}
    glyd.unpack_model(tmp_path / "p", tmp_path / "b")
    found = {path.relative_to(tmp_path / "b").as_posix(): path.read_bytes() for path in (tmp_path / "b").rglob("*.*")}
    assert found == {name: data for name, data in files.items() if not name.endswith((".bin", ".onnx"))}
    # once it is in the cache: no network
    hub.requests.clear()
    (tmp_path / "p").rename(tmp_path / "first")
    done = pack(tmp_path, hub, "org/tiny", "revision=v1", HF_HUB_OFFLINE="1")
    assert done.stdout == "1\n", done
    assert hub.requests == []
    assert (tmp_path / "p" / "glyd.json").read_bytes() == (tmp_path / "first" / "glyd.json").read_bytes()


def test_token_of_the_environment(hub, tmp_path):
    assert pack(tmp_path, hub, "org/tiny", f"revision={COMMIT}", HF_TOKEN="secret").stdout == "1\n"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("org/tiny", "revision=v1", "token=wrong"), "401"),
        (("org/gated", "token=secret"), "gated"),
        (("org/nothing", "token=secret"), "404"),
        (("org/tiny", "revision=v9", "token=secret"), "v9"),
    ],
)
def test_what_the_hub_refuses(hub, tmp_path, words, text):
    """An OSError, as every failure to get at the source; nothing is written."""
    done = pack(tmp_path, hub, *words)
    assert " True " in done.stdout, done
    assert text in done.stdout
    assert not (tmp_path / "p").exists()
    assert not (tmp_path / ".p.glyd-tmp").exists()


def test_not_in_the_cache_and_offline(hub, tmp_path):
    done = pack(tmp_path, hub, "org/tiny", HF_HUB_OFFLINE="1")
    assert " True " in done.stdout, done
    assert hub.requests == []

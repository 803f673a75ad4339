# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Models of the hub that cannot be had: each has one line with its cause and what to do; and the copy in the cache."""

import http.server
import json
import os
import shutil
import threading

import pytest

from glyd_cli.serving import causes


class Hub(http.server.BaseHTTPRequestHandler):
    """Answers for models as the hub does: one is gated, one is too large for any disk, others are not there."""

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self.do_GET(body=False)

    def do_GET(self, *, body=True):
        owner, _, rest = self.path.lstrip("/").partition("/")
        owner = "large" if self.path.startswith("/api/models/large") else owner
        if owner == "gated" or self.path.startswith("/api/models/gated"):
            return self.say(403, {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"})
        if owner != "large":
            return self.say(404, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"})
        header = {"w": {"dtype": "BF16", "shape": [1 << 20, 1 << 24], "data_offsets": [0, 1 << 45]}}
        raw = json.dumps(header).encode()
        files = {
            "config.json": b'{"model_type": "llama"}',
            "model.safetensors": len(raw).to_bytes(8, "little") + raw,
        }
        data = files.get(rest.rpartition("/")[2])
        if data is None:
            return self.say(404, {"X-Error-Code": "EntryNotFound"})
        size = len(data) if "config" in rest else len(data) + (1 << 45)
        facts = {"X-Repo-Commit": "0" * 40, "ETag": '"1"', "Content-Range": f"bytes 0-{len(data) - 1}/{size}"}
        return self.say(206 if "Range" in self.headers else 200, facts, data if body else b"")

    def say(self, status, headers, data=b""):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture(scope="module")
def hub():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("gated/model", "access to it must be asked for on the hub: ask on its page, then log in with hf auth login"),
        ("nobody/nothing", "no such model on the hub: check the name"),
        ("large/model", "the download takes 35.2 TB,"),
    ],
)
def test_models_of_the_hub(glyd, tmp_path, hub, model, says):
    env = {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": hub, "HF_HOME": os.fspath(tmp_path / "home"), "NO_PROXY": "127.0.0.1"}
    _, err = glyd("run", model, "-p", "x", code=2, env=env)
    assert err.count("\n") == 1, err
    assert says in err


def test_no_network(glyd, tmp_path):
    env = {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": "http://127.0.0.1:1", "HF_HOME": os.fspath(tmp_path / "home")}
    _, err = glyd("run", "nobody/nothing", "-p", "x", code=2, env=env)
    assert err.count("\n") == 1, err
    assert "the hub cannot be reached and the model is not in the cache: check the network" in err


def test_without_a_network_the_cache_is_used(glyd, tmp_path, model_path):
    commit = "0" * 40
    repo = tmp_path / "home" / "hub" / "models--some--model"
    shutil.copytree(model_path, repo / "snapshots" / commit)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(commit)
    env = {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": "http://127.0.0.1:1", "HF_HOME": os.fspath(tmp_path / "home")}
    out, err = glyd("run", "some/model", "-p", "x", "--max-tokens", "3", "--seed", "1", env=env)
    assert err == "glyd: the hub cannot be reached: this is the copy in the cache\n"
    assert (out, "") == glyd("run", model_path, "-p", "x", "--max-tokens", "3", "--seed", "1")


def test_a_disk_that_fills_up():
    """What is left of the message when a download hits the end of the disk."""
    error = OSError(28, "No space left on device", "/cache/blobs/x")
    assert causes.cause_of(error) == "the disk is full: make room, or set HF_HOME to a larger one"

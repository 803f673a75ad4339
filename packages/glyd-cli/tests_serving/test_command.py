# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``glyd run`` and ``glyd serve`` as installed."""

import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest


def test_one_answer(glyd, model_path):
    first, _ = glyd("run", model_path, "-p", "hello", "--seed", "1", "--max-tokens", "12")
    again, _ = glyd("run", model_path, "--seed", "1", "--max-tokens", "12", stdin=b"hello")
    assert first.strip()
    assert first == again


def test_packed_directories_run(glyd, model_path):
    glyd("pack", model_path, "packed")
    kw = ("-p", "hello", "--temperature", "0", "--max-tokens", "12", "--exact")
    assert glyd("run", "packed", *kw) == glyd("run", model_path, *kw)


def test_models_without_a_template_go_on_with_the_text(glyd, tmp_path, save_model):
    path = save_model(tmp_path / "base", template=None)
    out, _ = glyd("run", path, "-p", "the quick", "--max-tokens", "5", "--seed", "1")
    assert out.strip()


def test_serve_until_told_to_stop(glyd, model_path):
    process = glyd.start("serve", model_path, "--port", "0", "--name", "mine", text=True)
    try:
        lines = process.stdout.readline() + process.stdout.readline()
        url = re.search(r"http://\S+", lines)[0]
        models = httpx.get(f"{url}/models", timeout=30).json()["data"]
        assert [m["id"] for m in models] == ["mine"]
    finally:
        process.send_signal(signal.SIGINT)
        _out, err = process.communicate(timeout=30)
    assert "Traceback" not in err
    assert process.returncode in {0, 130}


def talk(process, terminal, lines):
    """Type lines at the prompts of a chat; return all that was shown."""
    shown = b""
    end = time.monotonic() + 90
    for line in lines:
        start = len(shown)
        while b">>> " not in shown[start:]:
            assert time.monotonic() < end, shown
            if select.select([terminal], [], [], 0.2)[0]:
                shown += os.read(terminal, 4096)
        os.write(terminal, line.encode() + b"\n")
    while process.poll() is None and time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                shown += os.read(terminal, 4096)
            except OSError:
                break
    return shown.decode(errors="replace")


def test_chat_in_a_terminal(glyd, model_path):
    controller, terminal = pty.openpty()
    process = glyd.start(
        "run", model_path, "--max-tokens", "8", "--port", "0", stdin=terminal, stdout=terminal, stderr=terminal
    )
    os.close(terminal)
    shown = talk(process, controller, ["hello", "/nothing", "/save talk.json", "/clear", "/bye"])
    assert process.wait(30) == 0, shown
    assert "tokens/s" in shown
    assert "/clear" in shown
    assert "Traceback" not in shown
    assert (glyd.folder / "talk.json").read_text(encoding="utf-8").count('"role"') == 2


def refused(glyd, *args, code, says, **kw):
    _, err = glyd(*args, code=code, **kw)
    assert err.count("\n") == 1, err
    assert says in err, err


def test_causes_and_cures(glyd, model_path, tmp_path):
    refused(glyd, "run", "./nope", code=2, says="no such directory")
    refused(glyd, "run", code=1, says="takes one MODEL")
    refused(glyd, "serve", model_path, "-p", "x", code=1, says="goes with run")
    refused(glyd, "run", model_path, "-p", " ", code=1, says="the prompt is empty")
    refused(glyd, "run", model_path, "-p", "x " * 500, code=1, says="window of this model holds 256")
    refused(glyd, "run", model_path, "-p", "x", "--context", "9999", code=1, says="window of 256")
    refused(glyd, "run", model_path, "-p", "x", "--device", "cuda:99", code=2, says="no device cuda:99 here")
    refused(glyd, "serve", model_path, "--host", "0.0.0.0", code=1, says="GLYD_API_KEY")
    refused(
        glyd, "run", "nobody/nothing", "-p", "x", code=2, says="cannot be reached and the model is not in the cache"
    )
    (tmp_path / "weights.gguf").write_bytes(b"GGUF")
    refused(glyd, "run", "weights.gguf", code=2, says="GGUF files hold quantized weights")
    (tmp_path / "empty").mkdir()
    refused(glyd, "run", "empty", code=2, says="no config.json")
    (tmp_path / "empty" / "config.json").write_text("{}")
    (tmp_path / "empty" / "pytorch_model.bin").write_bytes(b"x")
    refused(glyd, "run", "empty", code=2, says="only pytorch_model.bin")


def test_a_port_that_is_taken(glyd, model_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused(glyd, "serve", model_path, "--port", str(port), code=2, says="another program listens there")


def test_damaged_and_foreign_models(glyd, model_path, tmp_path, save_model):
    def copy(name):
        return shutil.copytree(model_path, tmp_path / name)

    cut = copy("cut")
    weights = cut / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    refused(glyd, "run", cut, "-p", "x", code=3, says="model.safetensors")
    half = save_model(tmp_path / "half")
    code = "import sys, torch, transformers as t; t.AutoModelForCausalLM.from_pretrained(sys.argv[1]).half().save_pretrained(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, half], check=True)
    _, err = glyd("run", half, "-p", "x", code=1)
    assert "bf16" in err
    odd = copy("odd")
    config = odd / "config.json"
    config.write_text(config.read_text().replace('"qwen3"', '"qwen99"'))
    refused(glyd, "run", odd, "-p", "x", code=2, says="architecture")
    no_tokenizer = copy("no_tokenizer")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (no_tokenizer / name).unlink()
    refused(glyd, "run", no_tokenizer, "-p", "x", code=2, says="no tokenizer.json")


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_quietly(glyd, model_path, signum, wait_for):
    process = glyd.start("serve", model_path, "--port", "0", text=True)
    process.stdout.readline()
    process.send_signal(signum)
    _, err = process.communicate(timeout=30)
    assert "Traceback" not in err
    wait_for(lambda: process.poll() is not None, 5)


CHAT_MODEL = Path(__file__).resolve().parents[3] / "examples" / "chat_model" / "model"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What does shutil.copyfile do?", "Copy data from src to dst in the most efficient way possible.\n"),
        ("What does math.gcd do?", "Greatest Common Divisor.\n"),
    ],
)
def test_a_trained_model_answers(glyd, question, answer):
    """The packed model of examples/ still says what it learnt: one bit off would show."""
    assert glyd("run", CHAT_MODEL, "-p", question, "--temperature", "0")[0] == answer

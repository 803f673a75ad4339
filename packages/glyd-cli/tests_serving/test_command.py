# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``glyd run`` and ``glyd serve`` as installed."""

import os
import pty
import re
import select
import signal
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
    process = glyd.start("serve", model_path, "--port", "0", "--name", "mine", "--alias", "gpt-4o-mini", text=True)
    try:
        lines = process.stdout.readline() + process.stdout.readline()
        url = re.search(r"http://\S+", lines)[0]
        models = httpx.get(f"{url}/models", timeout=glyd.hang_s).json()["data"]
        assert [m["id"] for m in models] == ["mine"]
        assert httpx.get(f"{url}/models/gpt-4o-mini", timeout=glyd.hang_s).json()["id"] == "mine"
    finally:
        process.send_signal(signal.SIGINT)
        _out, err = process.communicate(timeout=glyd.hang_s)
    assert "Traceback" not in err
    assert process.returncode in {0, 130}


def talk(process, terminal, lines):
    """Type lines at the prompts of a chat; return all that was shown."""
    shown = b""
    end = time.monotonic() + 300
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
    typed = ["hello", "/nothing", "/again", "/save talk.json", "/clear", "/load talk.json", "/bye"]
    shown = talk(process, controller, typed)
    assert process.wait(glyd.hang_s) == 0, shown
    assert "tokens/s" in shown
    assert "/clear" in shown
    assert "(2 messages)" in shown
    assert "Traceback" not in shown
    assert (glyd.folder / "talk.json").read_text(encoding="utf-8").count('"role"') == 2


def refused(glyd, *args, code, says, **kw):
    _, err = glyd(*args, code=code, **kw)
    assert err.count("\n") == 1, err
    assert says in err, err


def test_causes_and_cures(glyd, model_path):
    """As a process; test_failures.py has the others."""
    refused(glyd, "run", code=1, says="takes one MODEL")
    refused(glyd, "serve", model_path, "-p", "x", code=1, says="goes with run")
    refused(glyd, "run", model_path, "-p", "x " * 500, code=1, says="window of this model holds 256")
    refused(glyd, "run", "nobody/nothing", "-p", "x", code=2, says="cannot be reached and the model is not in the")


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_quietly(glyd, model_path, signum, wait_for):
    process = glyd.start("serve", model_path, "--port", "0", text=True)
    process.stdout.readline()
    process.send_signal(signum)
    _, err = process.communicate(timeout=glyd.hang_s)
    assert "Traceback" not in err
    wait_for(lambda: process.poll() is not None)


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


def test_starting_imports_no_compiler():
    """llguidance's module for torch brings torch's compiler along: a quarter of the time that all imports took."""
    program = "import sys, glyd_cli.serving.verbs; print('torch._inductor.compile_fx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout == b"False\n"

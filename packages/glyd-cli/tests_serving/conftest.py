# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""A tiny model of random weights, served for real on a loopback port."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
import torch
import transformers
import uvicorn
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import glyd_gpu
from glyd_cli.serve import ServeOptions
from glyd_cli.serving.app import make_app
from glyd_cli.serving.embedding import read_pooling
from glyd_cli.serving.loading import make_engine
from glyd_cli.serving.pool import Models
from glyd_cli.serving.transformers_engine import TransformersEngine, describe_model

CHROMIUM = os.environ.get("GLYD_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
GLYD = Path(sys.executable).parent / "glyd"
HANG_S = 300  # what takes longer will never end; ten times as slow as here is not hung
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def save_model(folder, *, template=TEMPLATE, **config):
    """Write a random bf16 model with a byte-level tokenizer."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=512,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    words = ["the quick brown fox jumps over the lazy dog", "grüße an alle 😀 日本語", '{"name": "value", "n": 12}']
    tokenizer.train_from_iterator(words * 4, trainer)
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", model_max_length=256
    )
    fast.chat_template = template
    torch.manual_seed(0)
    sizes = {
        "vocab_size": 512,
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "max_position_embeddings": 256,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": fast.eos_token_id,
        "pad_token_id": fast.pad_token_id,
    }
    model = transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**{**sizes, **config}))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:  # enough spread that the tokens differ
                parameter.normal_(0, 0.2)
    model.to(torch.bfloat16).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def model_path(tmp_path_factory):
    """Directory of a random chat model."""
    return save_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def long_path(tmp_path_factory):
    """Directory of a random chat model with a window of 1,024 tokens."""
    return save_model(tmp_path_factory.mktemp("models") / "tiny", max_position_embeddings=1024)


@pytest.fixture(scope="module")
def loaded(long_path):
    """That model, and its tokenizer."""
    return glyd_gpu.from_pretrained(long_path, device="cpu"), transformers.AutoTokenizer.from_pretrained(long_path)


class Server:
    """The application on a port of its own, in a thread."""

    hang_s = HANG_S

    def __init__(self, path, *, engine=None, n_slots=4, n_queue=8, **guard):
        self.model = glyd_gpu.from_pretrained(path, device="cpu")
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(path)
        if engine is None:
            info = describe_model(self.model, "tiny")
            self.engine = TransformersEngine(self.model, self.tokenizer, info, n_slots=n_slots, n_queue=n_queue)
        else:
            self.engine = engine(self.model, self.tokenizer)
        app = make_app(Models.of(self.engine, self.tokenizer), **guard)
        self.engine.start()
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.socket]})
        self.thread.start()
        wait_for(lambda: self.server.started)

    def stop(self):
        self.server.should_exit = True
        try:
            self.thread.join(HANG_S)
        finally:
            self.engine.stop()
        assert not self.thread.is_alive()

    def post(self, path, body, **kw):
        return httpx.post(self.url + path, json=body, timeout=HANG_S, **kw)

    def chat(self, text="hello", **body):
        answer = self.post("/v1/chat/completions", {"messages": [{"role": "user", "content": text}], **body})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def idle(self):
        load = self.engine.load()
        return load.n_running == 0 and load.n_waiting == 0


def wait_for(condition, seconds=HANG_S):
    """Wait until a condition holds; fail after a time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to hold"
        time.sleep(0.02)


@pytest.fixture(scope="session")
def server(model_path):
    """One server for the tests that do not change it."""
    one = Server(model_path)
    yield one
    one.stop()


@pytest.fixture
def idle_after(server):
    """Nothing may run or wait shortly after a test."""
    yield server
    wait_for(server.idle)


class Glyd:
    """The installed command."""

    hang_s = HANG_S

    def __init__(self, folder):
        self.folder = folder

    def start(self, *args, **kw):
        env = {**os.environ, "HF_HUB_OFFLINE": "1", **kw.pop("env", {})}
        kw = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **kw}
        # a parent that ignores Ctrl-C, as shells do for what runs in the background, hands that on
        kw.setdefault("preexec_fn", lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        return subprocess.Popen([GLYD, *map(os.fspath, args)], cwd=self.folder, env=env, **kw)

    def __call__(self, *args, code=0, stdin=None, timeout=HANG_S, **kw):
        if stdin is not None:
            kw["stdin"] = subprocess.PIPE
        process = self.start(*args, **kw)
        out, err = process.communicate(stdin, timeout=timeout)
        assert b"Traceback" not in err, err
        assert process.returncode == code, (args, process.returncode, out, err)
        return out.decode(), err.decode()


@pytest.fixture
def glyd(tmp_path):
    """The command, run in an empty folder."""
    return Glyd(tmp_path)


class ServeProcess:
    """``glyd serve`` in a process and on a port of its own, its messages in a file."""

    def __init__(self, glyd, model, n_slots, n_queue):
        self.log = (glyd.folder / "log").open("wb")
        args = ("serve", model, "--port", "0", "--slots", str(n_slots), "--queue", str(n_queue))
        # one thread: several wait for each other, for long where other programs want the cores too
        self.process = glyd.start(*args, stderr=self.log, env={"OMP_NUM_THREADS": "1"})
        lines = self.process.stdout.readline() + self.process.stdout.readline()
        self.url = re.search(rb"(http://\S+)/v1", lines)[1].decode()
        self.port = int(self.url.rpartition(":")[2])

    def resident_kb(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1])

    def n_descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def load(self):
        """Return how many requests run and wait."""
        text = httpx.get(f"{self.url}/metrics", timeout=300).text
        return [
            int(float(re.search(rf"^glyd_requests_{n} (\S+)", text, re.MULTILINE)[1])) for n in ("running", "waiting")
        ]

    def stop(self):
        """End it and return what it said."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(300)
        self.log.close()
        return Path(self.log.name).read_text(encoding="utf-8", errors="replace")


@pytest.fixture
def serve_process(glyd):
    """Start ``glyd serve MODEL`` with so many slots and places in the queue."""
    started = []

    def start(model, n_slots, n_queue):
        started.append(ServeProcess(glyd, model, n_slots, n_queue))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait(300)
        one.log.close()


@pytest.fixture(name="wait_for")
def _wait_for():
    return wait_for


@pytest.fixture(scope="session", name="save_model")
def _save_model():
    return save_model


@pytest.fixture(scope="session")
def start_models():
    """Return what starts a server of a directory with the engine that the command would take."""

    def start(path):
        options = ServeOptions(verb="serve", model=str(path))
        return Server(path, engine=lambda *loaded: make_engine(options, *loaded, read_pooling(path)))

    return start


@pytest.fixture
def new_server():
    """Start servers of other settings; they are stopped at the end."""
    started = []

    def start(*args, **kw):
        started.append(Server(*args, **kw))
        return started[-1]

    yield start
    for one in started:
        one.stop()


def until(page, condition):
    """Wait for a condition in the page; the page's policy lets it evaluate none itself."""
    end = time.monotonic() + HANG_S
    while not page.evaluate(condition):
        if time.monotonic() > end:
            pytest.fail(f"never: {condition}")
        page.wait_for_timeout(20)


@pytest.fixture(name="until")
def _until():
    return until


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no chromium (Debian's package chromium) to open the page in")
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    with sync_api.sync_playwright() as playwright:
        one = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield one
        one.close()


@pytest.fixture
def new_page(browser, server):
    """Open the page in contexts of their own; nothing may be said on the console, no alert may open."""
    contexts, said = [], []

    def make(before=None, expected=(), **kw):
        context = browser.new_context(**kw)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(1000 * HANG_S)
        page.on(
            "console",
            lambda m: (
                said.append(m.text)
                if m.type in {"error", "warning"} and not any(e in m.text for e in expected)
                else None
            ),
        )
        page.on("pageerror", lambda e: said.append(str(e)))
        page.on("dialog", lambda d: d.accept() if d.type == "confirm" else said.append(f"dialog {d.message}"))
        if before:
            page.add_init_script(before)
        page.goto(server.url)
        until(page, "document.getElementById('model').textContent.includes('tiny')")
        return page

    yield make
    for context in contexts:
        context.close()
    assert said == []

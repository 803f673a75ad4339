# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""vLLM as the engine, without vLLM: what is worked out, what its log says, what is healed, what is asked and answered.

Real vLLM behind the same command is tested by ``nox -s tests_vllm``.

File length: one made engine and one set of log texts serve all of it.
"""

import asyncio
import itertools
import json
import re
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
import transformers

from glyd_cli.errors import FileError, UsageError
from glyd_cli.machine import Card
from glyd_cli.serve import ServeOptions, chosen_engine, parse_serve
from glyd_cli.serving import vllm_engine, vllm_process
from glyd_cli.serving.app import make_app
from glyd_cli.serving.engine import EngineError, ModelInfo, PromptTooLongError, QueueFullError, Sampling
from glyd_cli.serving.grammar import for_json_schema
from glyd_cli.serving.pool import Models
from glyd_cli.serving.vllm_engine import VllmEngine, request_body, steps
from glyd_cli.serving.vllm_log import Cause, classify
from glyd_cli.serving.vllm_plan import Plan, make_plan, wanted_gpus
from glyd_cli.serving.vllm_process import VllmProcess, heal

LOGS = Path(__file__).parent / "vllm_logs"
GB = 10**9
INFO = ModelInfo(name="m", context=64, n_vocabulary=512, end_tokens=(2, 1), layout="mma12", weight_nbytes=1, created=0)


# ---- the command line ---------------------------------------------------------------


def test_flags_after_two_dashes_go_to_vllm():
    options = parse_serve("serve", ["m", "--engine", "vllm", "--", "--tensor-parallel-size", "2", "-p"])
    assert options.engine_flags == ["--tensor-parallel-size", "2", "-p"]
    assert options.engine == "vllm"
    with pytest.raises(UsageError, match="--seed: what follows -- goes to vLLM"):
        parse_serve("serve", ["m", "--engine", "transformers", "--", "--seed"])


def test_engine_is_chosen_by_what_is_there(monkeypatch):
    there = {"vllm": True, "cards": [Card(0, "H200", "9.0", "580", 150 * GB, 149 * GB)]}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: there["vllm"] or None)
    monkeypatch.setattr("glyd_cli.machine.cards", lambda: there["cards"])
    assert chosen_engine(ServeOptions()) == "vllm"
    assert chosen_engine(ServeOptions(device="cpu")) == "transformers"
    assert chosen_engine(ServeOptions(engine="transformers")) == "transformers"
    there["cards"] = None
    assert chosen_engine(ServeOptions()) == "transformers"
    assert chosen_engine(ServeOptions(engine="vllm")) == "vllm"
    there["vllm"] = False
    with pytest.raises(UsageError, match="vLLM is not installed in this Python: python -m pip install vllm"):
        chosen_engine(ServeOptions(engine="vllm"))


# ---- what is worked out ---------------------------------------------------------------


def report(weights=None, kv=147_456, own=40960, packed=None):
    sizes = weights or {"tiered": 11 * GB, "mma12": 12.3 * GB, "bf16": 16.4 * GB}
    held = {name: SimpleNamespace(nbytes=int(size)) for name, size in sizes.items()}
    return SimpleNamespace(weights=held, packed=packed, kv_token_nbytes=kv, max_context=own)


def cards(n=1, total=150, free=149):
    return [Card(i, "GPU", "9.0", "580", total * GB, free * GB) for i in range(n)]


CONFIG = {"num_attention_heads": 32}


def test_share_and_window_on_a_large_card():
    plan = make_plan(ServeOptions(model="m"), report(), CONFIG, cards())
    assert (plan.layout, plan.gpus, plan.context, plan.share) == ("mma12", 1, 32768, 0.92)


def test_share_leaves_what_others_hold():
    plan = make_plan(ServeOptions(model="m"), report(), CONFIG, cards(free=60))
    assert plan.share == pytest.approx((60 - 0.5) / 150, abs=0.001)
    assert plan.share * 150 * GB <= 60 * GB


def test_smallest_layout_where_memory_is_short():
    plan = make_plan(ServeOptions(model="m"), report(), CONFIG, cards(total=24, free=23))
    assert plan.layout == "tiered"
    room = plan.share * 24 * GB - 11 * GB - 3.5 * GB
    assert plan.context == min(32768, int(room) // 147_456)


def test_window_asked_for_is_kept_or_refused():
    assert make_plan(ServeOptions(model="m", context=1000), report(), CONFIG, cards(total=24, free=23)).context == 1000
    with pytest.raises(UsageError, match=r"m takes 20\.\d* GB of the GPU \(tiered, its KV cache for 40000 tokens"):
        make_plan(ServeOptions(model="m", context=40000), report(), CONFIG, cards(total=20, free=19))
    with pytest.raises(UsageError, match="--context 50000 is more than the model's window of 40960"):
        make_plan(ServeOptions(model="m", context=50000), report(), CONFIG, cards())


def test_several_cards_when_one_is_too_small():
    large = {"tiered": 95 * GB, "mma12": 106 * GB}
    plan = make_plan(ServeOptions(model="m"), report(large), CONFIG, cards(4, total=80, free=79))
    assert plan.gpus == 2
    assert plan.layout == "tiered"
    odd = make_plan(ServeOptions(model="m"), report(large), {"num_attention_heads": 40}, cards(3, total=60, free=59))
    assert odd.gpus == 2  # three would not divide the heads
    with pytest.raises(UsageError, match="of each of 2 GPUs"):
        make_plan(ServeOptions(model="m"), report(large), {"num_attention_heads": 40}, cards(3, total=40, free=39))


def test_tensor_parallel_size_among_the_flags():
    assert wanted_gpus(["--x", "1"]) is None
    assert wanted_gpus(["-tp", "2"]) == wanted_gpus(["--tensor-parallel-size=2"]) == 2
    with pytest.raises(UsageError, match="found 'two'"):
        wanted_gpus(["--tensor-parallel-size", "two"])
    options = ServeOptions(model="m", engine_flags=["--tensor-parallel-size", "2", "--seed", "5"])
    plan = make_plan(options, report(), CONFIG, cards(4))
    command = plan.command(options, "m", 1, ["python", "serve"])
    assert plan.gpus == 2
    assert command.count("--tensor-parallel-size") == 1
    assert command[-2:] == ["--seed", "5"]


def test_tensor_parallel_size_that_does_not_divide():
    options = ServeOptions(model="m", engine_flags=["--tensor-parallel-size", "3"])
    with pytest.raises(UsageError, match="32 attention heads cannot be divided by 3 GPUs: one of 1, 2, 4, 8, 16 can"):
        make_plan(options, report(), CONFIG, cards(4))
    with pytest.raises(UsageError, match="4 GPUs were asked for, 2 are here"):
        make_plan(replace(options, engine_flags=["-tp", "4"]), report(), CONFIG, cards(2))


def test_command_line_of_vllm():
    options = ServeOptions(model="m", exact=True, revision="r", trust_remote_code=True)
    command = make_plan(options, report(packed="tiered"), CONFIG, cards()).command(
        options, "name", 5, ["python", "serve"]
    )
    given = dict(itertools.pairwise(command))
    assert command[:3] == ["python", "serve", "m"]
    assert json.loads(given["--additional-config"]) == {"glyd": {"layout": "tiered", "exact": True, "verify": False}}
    assert (given["--max-num-seqs"], given["--revision"], given["--host"]) == ("256", "r", "127.0.0.1")
    assert {"--trust-remote-code", "--gpu-memory-utilization"} <= set(command)
    assert "--enforce-eager" not in command


# ---- what its log says --------------------------------------------------------------------

WORDS = {
    "plugin": "vLLM does not find glyd's plugin: install glyd-gpu beside vLLM",
    "heads": "4 attention heads cannot be divided by 3 GPUs",
    "context": "the window of 4096 tokens is more than the model's of 512",
    "options": "the model is packed as mma12, layout tiered was asked for",
    "kv": "a window of 4000000 tokens takes",
    "arch": r"this vLLM does not know the architecture \['OddForCausalLM'\]",
    "half": "packed weights compute in bf16, not fp16",
    "args": "vLLM does not know --nonsense 3",
    "memory": "other programs hold memory of the GPU, 92.36 of 139.8 GiB are free",
    "outofmemory": "ran out of memory while graphs were captured",
    "capability": "this GPU has compute capability 75, packed weights need 80",
    "newer": r"glyd-gpu does not know vLLM 0.41.0 \(ImportError: cannot import name",
    "driver": "NVIDIA's driver is older than the CUDA",
    "weights": "ran out of memory while weights were loaded",
    "missing": "vLLM is not installed in this Python",
    "hub": "the hub cannot be reached",
    "disk": "a disk is full",
    "kernels": "this installation of glyd-gpu has no kernels",
    "damaged": "packed weights break the rules of their format",
    "blocks": "the weights leave no memory for a KV cache",
    "world": "4 GPUs were asked for, 2 are here",
}


@pytest.mark.parametrize("name", WORDS)
def test_causes_are_found_in_logs(name):
    import re

    cause = classify((LOGS / f"{name}.txt").read_text())
    assert re.search(WORDS[name], cause.text), cause
    assert "\n" not in cause.text
    assert len(cause.text) < 400


def test_every_log_is_of_a_test():
    assert {path.stem for path in LOGS.glob("*.txt")} == set(WORDS)


def test_logs_without_a_known_cause():
    assert classify("(EngineCore) ERROR 11-30 [core.py:1] RuntimeError: odd thing").text == "RuntimeError: odd thing"
    outer = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
    log = [
        "(EngineCore pid=7) ERROR 12-01 03:45:58 [core.py:1136] EngineCore failed to start.",
        "(EngineCore pid=7) ERROR 12-01 03:45:58 [core.py:1136] ValueError: key [1] is odd",
        f"(APIServer pid=5) {outer}",
    ]
    assert classify("\n".join(log), code=1).text == "ValueError: key [1] is odd"
    assert classify(log[-1], code=1).text == outer
    assert classify("", code=7).text == "it ended with code 7"
    assert "killed" in classify("all is well", code=-9).text


# ---- what is healed -------------------------------------------------------------------------

PLAN = Plan(1024, 0.9, 1, "mma12", 1)


def test_heals():
    shorter, said = heal(PLAN, Cause("kv", "context", 500.0), asked_context=None)
    assert shorter.context == 496
    assert "window of 496" in said
    assert heal(PLAN, Cause("kv", "context", 500.0), asked_context=1024) is None
    assert heal(PLAN, Cause("kv", "context", 30.0), asked_context=None) is None
    smaller, _ = heal(PLAN, Cause("memory", "share", 0.5), asked_context=None)
    assert smaller.share == 0.48
    eager, _ = heal(PLAN, Cause("memory", "eager"), asked_context=None)
    assert eager.eager
    assert eager.share == 0.87
    assert heal(eager, Cause("memory", "eager"), asked_context=None) is None
    assert heal(PLAN, Cause("other"), asked_context=None) is None


# ---- a process and an engine ------------------------------------------------------------------


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Put a vLLM that is none on the path of what is started; return what it saw."""
    folder = tmp_path / "path" / "vllm" / "entrypoints" / "openai"
    folder.mkdir(parents=True)
    for package in (folder, folder.parent, folder.parent.parent):
        (package / "__init__.py").touch()
    shutil.copy(Path(__file__).parent / "fake_vllm.py", folder / "api_server.py")
    seen = tmp_path / "seen"
    seen.touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))
    monkeypatch.setenv("FAKE_VLLM_SEEN", str(seen))
    return lambda kind: [found[kind] for line in seen.read_text().splitlines() if kind in (found := json.loads(line))]


class Said:
    """A reporter that keeps what it is told."""

    def __init__(self):
        self.lines = []

    def say(self, text):
        self.lines.append(text)

    detail = say


@pytest.fixture(scope="module")
def tokenizer(model_path):
    return transformers.AutoTokenizer.from_pretrained(model_path)


@pytest.fixture
def process(fake):
    made = VllmProcess(ServeOptions(model="m"), PLAN, "m", Said())
    yield made
    made.stop()
    made.log_path.unlink(missing_ok=True)


@pytest.fixture
def engine(process, tokenizer):
    process.start()
    return VllmEngine(process, tokenizer._tokenizer, INFO, n_slots=2, n_queue=1)


def collect(engine, prompt, sampling):
    async def run():
        return [step async for step in engine.generate(prompt, sampling)]

    engine._client = None  # of the event loop before
    return asyncio.run(run())


def test_tokens_come_as_vllm_makes_them(engine, process, fake):
    found = collect(engine, [5, 6], Sampling(max_tokens=3, n_logprobs=2))
    assert [step.token for step in found] == [51, 52, 53]
    assert found[0].logprob == -0.5
    assert found[0].top == ((51, -0.5), (52, -1.5))
    (body,) = fake("body")
    assert body["stop_token_ids"] == [1, 2]
    assert body["ignore_eos"] is True
    assert fake("key") == [f"Bearer {process.key}"]
    assert engine.load().n_running == 0


def test_refusals_and_ends(engine, process):
    with pytest.raises(PromptTooLongError):
        collect(engine, [5] * 64, Sampling(max_tokens=1))
    with pytest.raises(EngineError, match="this prompt is not taken"):
        collect(engine, [400], Sampling(max_tokens=1))
    with pytest.raises(EngineError, match=r"vLLM (ended|does not answer)"):
        collect(engine, [401], Sampling(max_tokens=5))
    process._child.wait()
    with pytest.raises(EngineError, match="vLLM ended: it ended with code 3"):
        collect(engine, [5], Sampling(max_tokens=1))


def test_queue_is_bounded_and_leaving_frees_a_place(engine, fake, wait_for):
    async def run():
        running = [engine.generate([k], Sampling(max_tokens=1_000_000)) for k in range(3)]
        for answer in running:
            await anext(answer)
        assert engine.load().n_waiting == 1
        with pytest.raises(QueueFullError):
            await anext(engine.generate([9], Sampling(max_tokens=1)))
        await running[0].aclose()
        assert len([step async for step in engine.generate([9], Sampling(max_tokens=2))]) == 2
        for answer in running[1:]:
            await answer.aclose()

    asyncio.run(run())
    wait_for(lambda: len(fake("gone")) == 3)


def test_metrics_of_vllm_stand_beside_our_own(engine, process, tokenizer, monkeypatch):
    for name in ("_METRICS_S", "_METRICS_WAIT_S"):
        monkeypatch.setattr(vllm_engine, name, 300.0)  # however busy the machine is
    app = make_app(Models.of(engine, tokenizer))

    async def ask():
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return (await client.get("/metrics")).text

    found = asyncio.run(ask())
    assert 'vllm:num_requests_running{engine="0",model_name="m"} 2.0' in found
    assert "# TYPE vllm:num_requests_running gauge" in found
    assert "glyd_requests_running" in found
    assert "python_info" not in found
    assert re.search(r"^glyd_vllm_metrics_age_seconds \d+\.\d+$", found, re.MULTILINE)
    process.stop()
    engine._client = None  # of the event loop before
    assert "vllm:" not in asyncio.run(ask())


def test_a_vllm_that_is_slow_to_say_its_metrics_holds_nobody_up(engine, monkeypatch):
    """The values known last stand there with their age, and one question at a time is on its way."""

    class Slow:
        """Answers when it is let; refuses where there is nothing to say."""

        def __init__(self):
            self.n_asked, self.value, self.let = 0, 0, asyncio.Event()

        async def get(self, path, **_):
            self.n_asked += 1
            await self.let.wait()
            request = httpx.Request("GET", "http://127.0.0.1" + path)
            if self.value is None:
                return httpx.Response(500, request=request)
            return httpx.Response(200, text=f"vllm:requests {self.value}\n", request=request)

    async def ask():
        slow = Slow()
        monkeypatch.setattr(engine, "_connection", lambda: slow)
        monkeypatch.setattr(vllm_engine, "_METRICS_WAIT_S", 0)
        assert await engine.own_metrics() == ""  # nothing is known yet
        slow.let.set()
        await engine._asking
        slow.let.clear()
        slow.value = 1
        for _ in range(3):
            assert (await engine.own_metrics()).startswith("vllm:requests 0\n# HELP glyd_vllm_metrics_age_seconds")
        assert slow.n_asked == 2
        slow.let.set()
        await engine._asking
        assert engine._metrics[0] == "vllm:requests 1\n"
        slow.value = None
        monkeypatch.setattr(vllm_engine, "_METRICS_WAIT_S", 300)
        assert await engine.own_metrics() == ""

    asyncio.run(ask())


def test_the_log_goes_when_all_was_well(engine, process):
    assert process.log_path.exists()
    engine.stop()
    assert not process.log_path.exists()


def test_stopping_ends_what_was_started(process):
    process.start()
    child = process._child
    process.stop()
    assert child.returncode is not None
    assert process.ended() is None


def test_a_window_that_does_not_fit_is_made_shorter(process, fake, monkeypatch):
    log = (LOGS / "kv.txt").read_text()
    fits = int(classify(log).value)
    process.plan = replace(PLAN, context=4_000_000)
    monkeypatch.setenv("FAKE_VLLM_FAILS", json.dumps([{"unless": f"--max-model-len<={fits}", "log": log}]))
    process.start()
    assert process.plan.context == fits // 16 * 16
    assert len(fake("words")) == 2
    assert f"starting again with a window of {process.plan.context} tokens" in process._reporter.lines[-1]


def test_out_of_memory_at_capture_starts_again_without_graphs(process, fake, monkeypatch):
    failures = [{"unless": "--enforce-eager", "log": (LOGS / "outofmemory.txt").read_text()}]
    monkeypatch.setenv("FAKE_VLLM_FAILS", json.dumps(failures))
    process.start()
    assert process.plan.eager
    assert len(fake("words")) == 2


def test_a_port_that_was_taken_meanwhile_is_another_one(process, fake, monkeypatch):
    taken = 0

    def free_port():
        nonlocal taken
        if not taken:
            taken = listener.getsockname()[1]
            return taken
        return free()

    free = vllm_process._free_port
    monkeypatch.setattr(vllm_process, "_free_port", free_port)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        process.start()
        assert process.port != taken
    assert len(fake("words")) == 2
    assert "starting again on another port" in process._reporter.lines[-1]


def test_proxies_are_not_asked_for_our_own_address(process, fake, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    process.start()
    assert process._answers()


def test_what_cannot_be_healed_is_one_line_with_the_log(process, fake, monkeypatch):
    failures = [{"unless": "--never", "log": (LOGS / "heads.txt").read_text()}]
    monkeypatch.setenv("FAKE_VLLM_FAILS", json.dumps(failures))
    with pytest.raises(FileError, match=r"vLLM does not start: 4 attention heads .* \(log: /.*glyd-vllm-.*\.log\)"):
        process.start()
    assert len(fake("words")) == 1
    assert "divisible" in process.log()


def test_healing_ends(process, fake, monkeypatch):
    failures = [{"unless": "--never", "log": (LOGS / "memory.txt").read_text()}]
    monkeypatch.setenv("FAKE_VLLM_FAILS", json.dumps(failures))
    with pytest.raises(FileError, match="other programs hold memory"):
        process.start()
    assert len(fake("words")) <= 3


def test_the_command_answers_with_vllm(model_path, fake):
    command = [sys.executable, "-m", "glyd_cli", "run", str(model_path), "--engine", "vllm", "-p", "hi"]
    done = subprocess.run(
        [*command, "--max-tokens", "4", "--device", "cpu"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert "vLLM on cpu: mma12 weights" in done.stderr
    (words,) = fake("words")
    assert words[:2] == ["--model", str(model_path)]
    assert fake("body")[0]["max_tokens"] == 4


# ---- requests ------------------------------------------------------------------------------------


def test_everything_of_a_request_is_handed_on():
    sampling = Sampling(
        max_tokens=100,
        temperature=0.5,
        top_p=0.9,
        top_k=4,
        min_p=0.1,
        presence_penalty=0.2,
        frequency_penalty=0.3,
        repetition_penalty=1.1,
        logit_bias={7: 2.0},
        seed=3,
        n_logprobs=0,
        stop_token_ids=(9,),
        ignore_eos=True,
        grammar=for_json_schema({"type": "object", "properties": {"a": {"type": "integer"}}}),
    )
    body = request_body(INFO, [1, 2, 3], sampling)
    assert body["max_tokens"] == 61
    assert body["stop_token_ids"] == [9]
    assert body["logit_bias"] == {"7": 2.0}
    assert body["logprobs"] == 0
    assert body["structured_outputs"]["json"]["properties"] == {"a": {"type": "integer"}}
    for name in ("temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "seed"):
        assert body[name] == getattr(sampling, name)


def test_errors_inside_of_a_stream():
    with pytest.raises(EngineError, match="it broke"):
        steps({"error": {"message": "it broke"}})

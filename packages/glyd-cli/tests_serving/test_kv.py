# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Keys and values held packed: the same tokens, what is said of them, and what is refused."""

import asyncio
import re

import httpx
import pytest

import glyd_gpu
from glyd_cli.errors import UsageError
from glyd_cli.serve import ServeOptions, parse_serve
from glyd_cli.serving.engine import Sampling
from glyd_cli.serving.kv_room import kv_bytes_a_token, kv_room
from glyd_cli.serving.loading import make_engine

PROMPT = [7 * i % 500 for i in range(300)]
RULES = Sampling(max_tokens=60, temperature=0.0, ignore_eos=True)


def engine_of(loaded, path, **options):
    return make_engine(ServeOptions(verb="serve", model=str(path), slots=4, **options), *loaded)


async def tokens_of(engine, prompt, rules=RULES):
    return [step.token async for step in engine.generate(prompt, rules)]


def test_tokens_are_those_of_the_plain_cache(loaded, long_path):
    found = {}
    for kv in ("plain", "packed"):
        engine = engine_of(loaded, long_path, kv=kv, context=640)
        assert engine.kv().form == kv
        engine.start()
        try:
            found[kv] = [asyncio.run(tokens_of(engine, PROMPT[first:])) for first in (0, 170, 295)]
            held = engine.kv()
        finally:
            engine.stop()
        if kv == "packed":
            assert 0 < held.nbytes < held.plain_nbytes
        else:
            assert held.nbytes == held.plain_nbytes == held.room * kv_bytes_a_token(loaded[0])
        assert held.room >= 640
    assert found["plain"] == found["packed"]
    assert len(set(map(tuple, found["plain"]))) == 3


def test_more_tokens_fit(loaded):
    model, _ = loaded
    nbytes = 100_000_000
    plain, packed = kv_room(model, nbytes), kv_room(model, nbytes, kv="packed", n_slots=4)
    assert 1.1 * plain < packed < plain / 0.7


@pytest.fixture
def packed_server(new_server, long_path):
    return new_server(long_path, engine=lambda *loaded: engine_of(loaded, long_path, kv="packed", context=640))


def test_metrics(packed_server):
    url = packed_server.url

    def gauges():
        text = httpx.get(f"{url}/metrics", timeout=60).text
        found = dict(
            re.findall(r'^glyd_kv_cache_bytes\{counted="(\w+)",form="packed",model="\w+"\} (\S+)$', text, re.MULTILINE)
        )
        room = re.search(r"^glyd_kv_cache_room_tokens\S+ (\S+)$", text, re.MULTILINE)
        return float(found["held"]), float(found["plain"]), float(room[1])

    assert gauges()[:2] == (0, 0)
    body = {"prompt": PROMPT, "max_tokens": 40, "ignore_eos": True, "temperature": 0}
    assert packed_server.post("/v1/completions", body).json()["usage"]["completion_tokens"] == 40
    held, plain, room = gauges()
    assert 0 < held < plain
    assert room >= 640


def test_many_at_once(packed_server):
    async def all_of_them():
        async with httpx.AsyncClient(base_url=packed_server.url, timeout=600) as client:
            bodies = [{"prompt": PROMPT[: 20 * i + 1], "max_tokens": 30, "ignore_eos": True} for i in range(12)]
            answers = await asyncio.gather(*(client.post("/v1/completions", json=body) for body in bodies))
        assert [answer.json()["usage"]["completion_tokens"] for answer in answers] == [30] * 12

    asyncio.run(all_of_them())


def test_refused(tmp_path, save_model, loaded, long_path):
    odd = save_model(tmp_path / "odd", head_dim=24)
    model = glyd_gpu.from_pretrained(odd, device="cpu")
    with pytest.raises(UsageError, match=r"--kv packed: pages have a multiple of 16 channels.*--kv plain runs every"):
        engine_of((model, loaded[1]), odd, kv="packed")
    with pytest.raises(UsageError, match="--kv packed runs without --graphs"):
        engine_of(loaded, long_path, kv="packed", graphs=True)
    with pytest.raises(UsageError, match="half"):
        parse_serve("serve", [str(long_path), "--kv", "half"])
    for words in (["--engine", "vllm"], ["--", "--enforce-eager"]):
        with pytest.raises(UsageError, match="--kv packed: not with vLLM"):
            parse_serve("serve", [str(long_path), "--kv", "packed", *words])


def test_command(glyd, long_path):
    out, _ = glyd("run", long_path, "--kv", "packed", "-p", "hello " * 100, "--max-tokens", "20", "--seed", "1")
    assert out

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Several models behind one port: loaded when asked for, unloaded when idle or for the room."""

import asyncio
import re
import signal
import threading
import time

import httpx
import pytest

from glyd_cli.errors import FileError
from glyd_cli.serving.api_errors import ApiError
from glyd_cli.serving.engine import Load, ModelInfo, QueueFullError
from glyd_cli.serving.loading import NoRoomError
from glyd_cli.serving.pool import Models, Served


def test_other_names_for_the_first():
    models = Models([("a", None, Served(FakeEngine("a"), None)), ("b", None, Served(FakeEngine("b"), None))])
    models.also_call(["gpt-4o-mini", "a"])
    assert models.find("gpt-4o-mini") == models.find("a") == models.find(None) == "a"
    assert models.find("b") == "b"
    assert models.names == ["a", "b"]
    with pytest.raises(ValueError, match="'b' is the name of another model here"):
        models.also_call(["b"])
    with pytest.raises(ApiError, match="not served here"):
        models.find("gpt-4o")


class FakeEngine:
    """An engine that only counts how often it is stopped."""

    def __init__(self, name):
        self.info = ModelInfo(
            name=name, context=8, n_vocabulary=8, end_tokens=(), layout="bf16", weight_nbytes=1, created=0
        )
        self.n_stopped = 0

    def stop(self):
        self.n_stopped += 1

    def load(self):
        return Load(n_running=0, n_waiting=0)


class Machine:
    """Room for so many models at a time."""

    def __init__(self, room=1, load_s=0.0):
        self.room = room
        self.load_s = load_s
        self.may_load = threading.Event()
        self.may_load.set()
        self.held = []
        self.events = []

    def loader(self, name):
        def load():
            time.sleep(self.load_s)
            self.may_load.wait()
            self.held = [e for e in self.held if not e.n_stopped]
            if len(self.held) >= self.room:
                raise NoRoomError("no room")
            self.held.append(FakeEngine(name))
            self.events.append(name)
            return Served(self.held[-1], None)

        return load

    def models(self, *names, **kw):
        return Models([(name, self.loader(name), None) for name in names], **kw)


def test_the_least_recently_used_goes():
    async def run():
        machine = Machine(room=2)
        models = machine.models("a", "b", "c")
        for name in ("a", "b", "a", "c", "a", None):
            (await models.lease(name)).release()
        assert machine.events == ["a", "b", "c"]
        assert [n for n in "abc" if models.loaded(n)] == ["a", "c"]

    asyncio.run(run())


def test_a_model_in_use_stays_and_the_other_waits():
    async def run():
        models = Machine().models("a", "b")
        lease = await models.lease("a")
        waiting = asyncio.create_task(models.lease("b"))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        assert models.load().n_waiting == 1
        again = await models.lease("a")
        lease.release()
        lease.release()  # again does nothing
        await asyncio.sleep(0.1)
        assert not waiting.done()
        again.release()
        assert (await asyncio.wait_for(waiting, 300)).engine.info.name == "b"
        assert models.loaded("a") is None
        assert models.load().n_waiting == 0

    asyncio.run(run())


def test_many_at_once_load_a_model_once():
    async def run():
        machine = Machine(room=1, load_s=0.05)
        models = machine.models("a", "b")

        async def ask(n):
            lease = await models.lease("ab"[n % 2])
            await asyncio.sleep(0.01)
            assert lease.engine.n_stopped == 0
            lease.release()

        await asyncio.wait_for(asyncio.gather(*map(ask, range(40))), 300)
        assert sorted(machine.events) == ["a", "b"]

    asyncio.run(run())


def test_a_client_that_goes_away_while_a_model_loads():
    async def run():
        machine = Machine()
        machine.may_load.clear()
        models = machine.models("a", "b")
        gone = asyncio.create_task(models.lease("a"))
        await asyncio.sleep(0.02)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        machine.may_load.set()
        (await models.lease("b")).release()  # a has no user, so that it can be unloaded
        assert models.loaded("a") is None

    asyncio.run(run())


def test_what_cannot_be_loaded_says_why():
    async def run():
        def broken():
            raise FileError("somewhere", "no config.json there")

        models = Models([("a", broken, None)])
        for _ in range(2):
            with pytest.raises(ApiError, match=r"'a' cannot be loaded: no config\.json there") as caught:
                await models.lease("a")
            assert caught.value.status == 503
        with pytest.raises(ApiError, match="'z' is not served here, only 'a'"):
            await models.lease("z")
        with pytest.raises(ApiError, match="no room"):
            await Machine(room=0).models("a").lease("a")

    asyncio.run(run())


def test_few_may_wait():
    async def run():
        machine = Machine()
        machine.may_load.clear()
        models = machine.models("a", "b", n_waiting=2)
        first = [asyncio.create_task(models.lease("a")) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError, match="2 requests wait"):
            await models.lease("a")
        machine.may_load.set()
        assert len(await asyncio.gather(*first)) == 2

    asyncio.run(run())


def test_idle_models_are_unloaded_and_come_back():
    async def run():
        said = []
        machine = Machine()
        models = machine.models("a", idle_s=0.1, say=said.append)
        async with models.watching():
            lease = await models.lease("a")
            await asyncio.sleep(0.4)
            assert lease.engine.n_stopped == 0  # in use
            lease.release()
            end = time.monotonic() + 300
            while not lease.engine.n_stopped:
                assert time.monotonic() < end
                await asyncio.sleep(0.02)
            assert lease.engine.n_stopped == 1
            assert models.loaded("a") is None
            (await models.lease("a")).release()
        assert machine.events == ["a", "a"]
        assert "a unloaded after 0.1 s without a request" in said

    asyncio.run(run())


def test_two_models_of_the_command(glyd, model_path, tmp_path, save_model, wait_for):
    save_model(tmp_path / "other", num_hidden_layers=1)
    process = glyd.start("serve", model_path, "other", "--port", "0", "--idle-unload", "3s", "--context", "128")
    try:
        lines = b"".join(process.stdout.readline() for _ in range(3)).decode()
        assert "also, loaded when asked for: other" in lines
        url = re.search(r"http://\S+", lines)[0]
        loaded = {m["id"]: m["loaded"] for m in httpx.get(f"{url}/models", timeout=glyd.hang_s).json()["data"]}
        assert loaded == {"tiny": True, "other": False}
        for name in ("other", "tiny"):
            body = {"model": name, "prompt": "the quick", "max_tokens": 3, "seed": 1}
            answer = httpx.post(f"{url}/completions", json=body, timeout=glyd.hang_s)
            assert answer.status_code == 200, answer.text
            assert answer.json()["model"] == name
        assert httpx.post(f"{url}/completions", json={**body, "model": "third"}, timeout=glyd.hang_s).status_code == 404

        def nothing_loaded():
            models = httpx.get(f"{url}/models", timeout=glyd.hang_s).json()["data"]
            return not any(m["loaded"] for m in models)

        wait_for(nothing_loaded)
        assert httpx.post(f"{url}/completions", json=body, timeout=glyd.hang_s).status_code == 200
        with httpx.stream("POST", f"{url}/completions", json={**body, "stream": True}, timeout=glyd.hang_s) as answer:
            assert answer.status_code == 200
            answer.read()
        wait_for(nothing_loaded)  # a stream lets its model go too
    finally:
        process.send_signal(signal.SIGINT)
        _out, err = process.communicate(timeout=glyd.hang_s)
    assert b"Traceback" not in err
    assert b"unloaded after 3 s without a request" in err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("serve", ".", "."), "would both be called"),
        (("serve", "a/b", "c/d", "--name", "x"), "--name goes with one model, found 2"),
        (("serve", "a/b", "--idle-unload", "soon"), "'soon' is no time, such as 90s, 10m or 2h"),
        (("serve", "a/b", "--idle-unload", "0"), "is no time"),
        (("run", "a/b", "c/d"), "run takes one MODEL"),
        (("run", "a/b", "--idle-unload", "10m"), "--idle-unload goes with serve"),
        (("serve", "a/b", "c/d", "--engine", "vllm"), "several models behind one port: not with vLLM"),
        (("serve", "a/b", "--idle-unload", "1m", "--", "--seed", "1"), "--idle-unload: not with vLLM"),
    ],
)
def test_refused(glyd, model_path, args, words):
    place = [model_path if a == "." else a for a in args]
    _, err = glyd(*place, code=1)
    assert words in err

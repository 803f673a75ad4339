# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Clients that go away in every way, against ``glyd serve`` as a process: the work for them ends.

One round by default; ``GLYD_SERVING_ROUNDS=10`` (``nox -s soak_serving``) for as many, with memory compared.
"""

import asyncio
import contextlib
import json
import os
import re
import socket
import struct
import time
from pathlib import Path

import httpx
import pytest

from glyd_cli.serving.transformers_engine import next_output

ROUNDS = int(os.environ.get("GLYD_SERVING_ROUNDS", "1"))
SLOTS, QUEUE, N_QUEUED = 4, 256, 8
N_AT_ONCE = 200
N_TOKENS = 500
GROWTH_KB = 24 << 10  # of resident memory over ten rounds; caches and allocators are filled in the first


class Serve:
    """``glyd serve`` on a port of its own, with room for many in the queue."""

    def __init__(self, glyd, model):
        self.log = (glyd.folder / "log").open("wb")
        args = ("serve", model, "--port", "0", "--slots", str(SLOTS), "--queue", str(QUEUE))
        self.process = glyd.start(*args, stderr=self.log, env={"OMP_NUM_THREADS": "1"})
        lines = self.process.stdout.readline() + self.process.stdout.readline()
        self.url = re.search(rb"(http://\S+)/v1", lines)[1].decode()
        self.port = int(self.url.rpartition(":")[2])

    def metric(self, name):
        text = httpx.get(f"{self.url}/metrics", timeout=300).text
        return int(float(re.search(rf"^glyd_requests_{name} (\S+)", text, re.MULTILINE)[1]))

    def idle(self):
        return self.metric("running") == self.metric("waiting") == 0

    def resident_kb(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1])

    def time_a_request(self):
        start = time.monotonic()
        body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": N_TOKENS, "ignore_eos": True}
        answer = httpx.post(f"{self.url}/v1/chat/completions", json=body, timeout=300)
        assert answer.json()["usage"]["completion_tokens"] == N_TOKENS
        return time.monotonic() - start


@pytest.fixture
def serve(glyd, long_path):
    one = Serve(glyd, long_path)
    yield one
    if one.process.poll() is None:
        one.process.kill()
        one.process.wait(300)
    one.log.close()


async def connect(port, content, *, stream):
    """Send a request for many tokens and return its connection."""
    body = {
        "messages": [{"role": "user", "content": content}],
        "max_tokens": N_TOKENS,
        "ignore_eos": True,
        "stream": stream,
    }
    raw = json.dumps(body).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(raw)}\r\n\r\n".encode() + raw)
    await writer.drain()
    return reader, writer


async def close(writer):
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def before_the_first_token(port, stream):
    _, writer = await connect(port, "hi", stream=stream)
    await close(writer)


async def after_three_tokens(port, stream):
    reader, writer = await connect(port, "hi", stream=stream)
    if stream:
        n = 0
        while n < 3:
            n += (await reader.readline()).startswith(b"data: ")
    else:
        await asyncio.sleep(0.1)
    await close(writer)


async def during_a_long_prompt(port, stream):
    _, writer = await connect(port, "long prompt " * 150, stream=stream)
    await asyncio.sleep(0.02)
    await close(writer)


async def by_a_reset(port, stream):
    _, writer = await connect(port, "hi", stream=stream)
    await asyncio.sleep(0.05)
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


async def half_closed(port, stream):
    """Nothing more to send; whether an answer is still read cannot be known until it is sent."""
    _, writer = await connect(port, "hi", stream=stream)
    writer.write_eof()
    await asyncio.sleep(0.1)
    await close(writer)


WAYS = (before_the_first_token, after_three_tokens, during_a_long_prompt, by_a_reset, half_closed)


async def while_queued(port):
    """Fill every place, leave those in the queue, then those that run."""
    running = [await connect(port, "hi", stream=True) for _ in range(SLOTS)]
    for reader, _ in running:
        await reader.readline()
    queued = [await connect(port, "hi", stream=i % 2 == 0) for i in range(N_QUEUED)]
    await asyncio.sleep(0.1)
    for _, writer in [*queued, *running]:
        await close(writer)


async def all_at_once(port):
    async def one(i):
        await WAYS[i % len(WAYS)](port, i % 2 == 0)

    await asyncio.gather(*(one(i) for i in range(N_AT_ONCE)))


def test_work_ends_with_its_client(serve, wait_for):
    memory, n_gone = [], 0
    whole_s = serve.time_a_request()
    for _ in range(ROUNDS):
        for way in WAYS:
            for stream in (True, False):
                asyncio.run(way(serve.port, stream))
                wait_for(serve.idle)
        asyncio.run(while_queued(serve.port))
        wait_for(serve.idle)
        asyncio.run(all_at_once(serve.port))
        start = time.monotonic()
        wait_for(serve.idle)
        idle_s = time.monotonic() - start
        n_gone += 2 * len(WAYS) + SLOTS + N_QUEUED + N_AT_ONCE
        memory.append(serve.resident_kb())
        # every request to its end would take as long as this many one after the other, or more
        assert idle_s < N_AT_ONCE / SLOTS / 5 * whole_s
        print(f"idle {idle_s:.2f} s after {N_AT_ONCE} left, {memory[-1] >> 10} MiB resident")
    print(f"a request of {N_TOKENS} tokens takes {whole_s:.2f} s before and {serve.time_a_request():.2f} after")
    if ROUNDS > 3:
        assert memory[-1] - memory[1] < GROWTH_KB, memory
    serve.process.terminate()
    serve.process.wait(300)
    lines = Path(serve.log.name).read_text(encoding="utf-8", errors="replace").splitlines()
    # a request may be gone before anything of it was read
    assert 0 < sum("the client went away after" in line for line in lines) <= n_gone
    assert not [line for line in lines if "Traceback" in line]


def test_a_cancellation_beside_an_output_is_kept():
    class Manager:
        def is_running(self):
            return True

    async def cancel_after(n_turns):
        outputs = asyncio.Queue()
        task = asyncio.create_task(next_output(outputs, Manager()))
        for _ in range(5):
            await asyncio.sleep(0)
        outputs.put_nowait("token")
        for _ in range(n_turns):
            await asyncio.sleep(0)
        late = task.done()
        task.cancel()
        (result,) = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(result, str if late else asyncio.CancelledError)
        return late

    assert {asyncio.run(cancel_after(n)) for n in range(12)} == {False, True}

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Clients that go away in every way, against ``glyd serve`` as a process: the work for them ends.

One round by default; ``GLYD_SERVING_ROUNDS=10`` (``nox -s soak_serving``) for as many, with memory compared.
"""

import asyncio
import contextlib
import json
import os
import socket
import struct
import time

import httpx

from glyd_cli.serving.transformers_engine import next_output

ROUNDS = int(os.environ.get("GLYD_SERVING_ROUNDS", "1"))
SLOTS, QUEUE, N_QUEUED = 4, 256, 8
N_AT_ONCE = 200
N_TOKENS = 500
GROWTH_KB = 24 << 10  # of resident memory over ten rounds; caches and allocators are filled in the first


def time_a_request(serve):
    start = time.monotonic()
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": N_TOKENS, "ignore_eos": True}
    answer = httpx.post(f"{serve.url}/v1/chat/completions", json=body, timeout=300)
    assert answer.json()["usage"]["completion_tokens"] == N_TOKENS
    return time.monotonic() - start


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


def test_work_ends_with_its_client(serve_process, long_path, wait_for):
    serve = serve_process(long_path, SLOTS, QUEUE)

    def idle():
        return serve.load() == [0, 0]

    memory, n_gone = [], 0
    whole_s = time_a_request(serve)
    for _ in range(ROUNDS):
        for way in WAYS:
            for stream in (True, False):
                asyncio.run(way(serve.port, stream))
                wait_for(idle)
        asyncio.run(while_queued(serve.port))
        wait_for(idle)
        asyncio.run(all_at_once(serve.port))
        start = time.monotonic()
        wait_for(idle)
        idle_s = time.monotonic() - start
        n_gone += 2 * len(WAYS) + SLOTS + N_QUEUED + N_AT_ONCE
        memory.append(serve.resident_kb())
        # every request to its end would take as long as this many one after the other, or more
        assert idle_s < N_AT_ONCE / SLOTS / 5 * whole_s
        print(f"idle {idle_s:.2f} s after {N_AT_ONCE} left, {memory[-1] >> 10} MiB resident")
    print(f"a request of {N_TOKENS} tokens takes {whole_s:.2f} s before and {time_a_request(serve):.2f} after")
    if ROUNDS > 3:
        assert memory[-1] - memory[1] < GROWTH_KB, memory
    lines = serve.stop().splitlines()
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

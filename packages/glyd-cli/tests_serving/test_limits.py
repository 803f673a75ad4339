# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Limits in time: clients that stop sending and clients that stop reading hold nothing for long."""

import asyncio
import json
import socket
import time

import pytest

import glyd
import glyd_gpu
from glyd_cli.serving.engine import Sampling
from glyd_cli.serving.guard import Limits, within
from glyd_cli.serving.transformers_engine import describe_model

BODY = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 240, "ignore_eos": True, "stream": True, "n": 16}


def head(n, extra=""):
    return (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {n}\r\n{extra}\r\n"
    ).encode()


def test_a_body_that_stops_coming(model_path, new_server):
    server = new_server(model_path, limits=Limits(body_s=1.0))
    with socket.create_connection(("127.0.0.1", server.port), timeout=server.hang_s) as connection:
        connection.sendall(head(500) + b'{"messages": [')
        start = time.monotonic()
        answer = connection.recv(4096)
        assert answer.split()[1] == b"408"
        assert 0.5 < time.monotonic() - start < 60
    assert server.chat("hi", max_tokens=2)


def test_a_client_that_reads_nothing_frees_its_place(model_path, new_server, wait_for):
    """Its answer filled the buffers, and its place was held as long as it kept the connection."""
    server = new_server(model_path, n_slots=16, limits=Limits(send_s=1.0))
    raw = json.dumps({**BODY, "logprobs": True, "top_logprobs": 20}).encode()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(head(len(raw)) + raw)
        wait_for(lambda: not server.idle())
        wait_for(server.idle)
        assert server.chat("hi", max_tokens=2)


def test_slow_readers_get_all(model_path, new_server):
    """A client that reads on, slowly, is no stuck one."""
    server = new_server(model_path, limits=Limits(send_s=5.0))
    raw = json.dumps({**BODY, "n": 1}).encode()
    got = b""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(head(len(raw), "Connection: close\r\n") + raw)
        while piece := connection.recv(1500):
            got += piece
            time.sleep(0.01)
    assert b"data: [DONE]" in got


def test_within():
    async def slow():
        await asyncio.sleep(5)

    async def quick():
        await asyncio.sleep(0)

    async def main():
        await within(1, quick())
        with pytest.raises(asyncio.TimeoutError):
            await within(0.01, slow())
        await asyncio.sleep(0.01)  # the task itself goes on
        other = asyncio.create_task(within(5, slow()))
        await asyncio.sleep(0.01)
        other.cancel()
        with pytest.raises(asyncio.CancelledError):
            await other

    asyncio.run(main())


def test_the_window_that_is_promised_is_served(server):
    """All slots at once, each filled to the last token of the window."""

    async def fill(number):
        prompt = [3 + number] * (server.engine.info.context - 20)
        rules = Sampling(max_tokens=20, temperature=0.0, ignore_eos=True)
        return [step.token async for step in server.engine.generate(prompt, rules)]

    async def all_slots():
        return await asyncio.gather(*(fill(i) for i in range(4)))

    assert [len(tokens) for tokens in asyncio.run(all_slots())] == [20] * 4


@pytest.mark.parametrize("layout", ["tiered", "mma12"])
def test_weights_take_what_fit_says(tmp_path, save_model, layout):
    path = save_model(tmp_path / "model", hidden_size=512, intermediate_size=1024, vocab_size=8192)
    predicted = glyd.fit(path).weights[layout].nbytes
    model = glyd_gpu.from_pretrained(path, device="cpu", layout=layout)
    measured = describe_model(model, "x").weight_nbytes
    assert measured <= predicted + (1 << 16)
    assert predicted - measured < 0.02 * measured

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Bad requests, foreign pages, clients that go away, and floods: each is answered, and the next one works."""

import concurrent.futures
import json
import socket
import struct

import httpx
import pytest

from glyd_cli.serving import guard
from glyd_cli.serving.guard import Limits

GOOD = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
BAD = [
    {},
    {"messages": []},
    {"messages": "hi"},
    {"messages": [{"role": "robot", "content": "x"}]},
    {"messages": [{"role": "user", "content": 5}]},
    {"messages": [{"role": "user"}]},
    {"messages": [{"role": "system", "content": None}, {"role": "user", "content": "hi"}]},
    {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
    {**GOOD, "max_tokens": 0},
    {**GOOD, "max_tokens": -1},
    {**GOOD, "max_tokens": "many"},
    {**GOOD, "temperature": -1},
    {**GOOD, "temperature": 99},
    {**GOOD, "top_p": 0},
    {**GOOD, "n": 0},
    {**GOOD, "n": 100000},
    {**GOOD, "stop": ""},
    {**GOOD, "stop": ["x"] * 100},
    {**GOOD, "stop_token_ids": [512]},
    {**GOOD, "logit_bias": {"hello": 1}},
    {**GOOD, "logit_bias": {"512": 1}},
    {**GOOD, "logit_bias": {"1": 1000}},
    {**GOOD, "top_logprobs": 3},
    {**GOOD, "logprobs": True, "top_logprobs": 1000},
    {**GOOD, "seed": "x"},
    {**GOOD, "response_format": {"type": "yaml"}},
    {**GOOD, "response_format": {"type": "json_schema"}},
    {**GOOD, "response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
    {**GOOD, "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "nonsense"}}}},
    {**GOOD, "tools": [{"type": "function", "function": {}}]},
    {**GOOD, "tool_choice": "required"},
    {**GOOD, "messages": [{"role": "user", "content": "word " * 4000}]},
    {**GOOD, "model": "other"},
]
BAD_COMPLETIONS = [
    {},
    {"prompt": ""},
    {"prompt": []},
    {"prompt": [[]]},
    {"prompt": [512]},
    {"prompt": [-1]},
    {"prompt": ["a", 5]},
    {"prompt": ["a"] * 1000},
    {"prompt": "a", "logprobs": 1000},
    {"prompt": {"a": 1}},
    {"prompt": "a", "response_format": {"type": "json_schema"}},
    {"prompt": "a", "response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("path", "body"),
    [("/v1/chat/completions", b) for b in BAD] + [("/v1/completions", b) for b in BAD_COMPLETIONS],
    ids=lambda v: json.dumps(v)[:60] if isinstance(v, dict) else v,
)
def test_bad_bodies(idle_after, path, body, stream):
    answer = idle_after.post(path, {**body, "stream": stream})
    assert 400 <= answer.status_code < 500, answer.text
    error = answer.json()["error"]
    assert error["message"]
    assert "Traceback" not in answer.text
    assert idle_after.post("/v1/chat/completions", GOOD).status_code == 200


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 100000, b'"text"', b"null", b'{"messages": NaN}'])
def test_bodies_that_are_no_objects(server, body):
    headers = {"content-type": "application/json"}
    answer = httpx.post(f"{server.url}/v1/chat/completions", content=body, headers=headers, timeout=server.hang_s)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["message"]


def test_bodies_of_another_type(server):
    for headers in ({}, {"content-type": "text/plain"}, {"content-type": "application/jsonx"}):
        answer = httpx.post(f"{server.url}/v1/completions", content=b"{}", headers=headers, timeout=server.hang_s)
        assert answer.status_code == 415, answer.text
        assert answer.json()["error"]["type"] == "invalid_request_error"


def test_other_paths_and_methods(server):
    assert httpx.get(f"{server.url}/nope", timeout=server.hang_s).json()["error"]["type"] == "not_found_error"
    assert httpx.get(f"{server.url}/v1/chat/completions", timeout=server.hang_s).status_code == 405
    assert httpx.get(f"{server.url}/..%2f..%2fetc/passwd", timeout=server.hang_s).status_code == 404
    assert httpx.get(f"{server.url}/health", timeout=server.hang_s).json() == {"status": "ok"}
    assert "glyd_requests_total" in httpx.get(f"{server.url}/metrics", timeout=server.hang_s).text


HOSTS = [
    ("localhost", True),
    ("127.0.0.1", True),
    ("[::1]", True),
    ("LOCALHOST:8000", True),
    ("localhost.", True),
    ("127.0.0.1.evil.example", False),
    ("localhost.evil.example", False),
    ("evil.example", False),
    ("127.1", False),
    ("0.0.0.0", False),
    ("0x7f000001", False),
    ("", False),
    ("localhost:80:80", False),
    ("localhost@evil.example", False),
    ("[::1", False),
    ("[::ffff:127.0.0.1]", False),
]


@pytest.mark.parametrize("path", ["/v1/models", "/health", "/metrics", "/"])
@pytest.mark.parametrize(("host", "allowed"), HOSTS)
def test_hosts(server, path, host, allowed):
    with socket.create_connection(("127.0.0.1", server.port), timeout=server.hang_s) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        status = int(connection.recv(64).split()[1])
    assert (status not in {400, 403}) == allowed


def test_two_hosts_are_none(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=server.hang_s) as connection:
        connection.sendall(
            b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        assert int(connection.recv(64).split()[1]) in {400, 403}


@pytest.mark.parametrize(
    ("target", "headers", "allowed"),
    [
        ("http://evil.example/v1/models", "Host: evil.example\r\n", False),
        ("http://evil.example/v1/models", "Host: localhost\r\n", True),  # the path of a proxy; the header decides
        ("/v1/models", "Host: evil.example\r\nX-Forwarded-Host: localhost\r\nForwarded: host=localhost\r\n", False),
        ("/v1/models", "Host: localhost\r\nX-Forwarded-Host: evil.example\r\n", True),
        ("/v1/models", "X-Forwarded-Host: localhost\r\n", False),
    ],
)
def test_only_the_host_header_decides(server, target, headers, allowed):
    with socket.create_connection(("127.0.0.1", server.port), timeout=server.hang_s) as connection:
        connection.sendall(f"GET {target} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n".encode())
        status = int(connection.recv(64).split()[1])
    assert (status not in {400, 403}) == allowed


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "null"},
        {"origin": "http://localhost.evil.example"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "file://"},
        {"sec-fetch-site": "cross-site"},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
    ],
)
def test_other_pages_are_refused(server, headers):
    headers = {"content-type": "application/json", **headers}
    answer = httpx.post(
        f"{server.url}/v1/chat/completions", content=json.dumps(GOOD), headers=headers, timeout=server.hang_s
    )
    assert answer.status_code in {403, 415}
    assert "access-control-allow-origin" not in answer.headers


def test_the_own_page_is_served(server):
    answer = server.post("/v1/chat/completions", GOOD, headers={"origin": server.url, "sec-fetch-site": "same-origin"})
    assert answer.status_code == 200


def test_key_and_large_bodies(model_path, new_server):
    server = new_server(model_path, api_key=["other", "secret"], limits=Limits(body_nbytes=1000))
    url = f"{server.url}/v1/models"
    assert httpx.get(url, timeout=server.hang_s).status_code == 401
    assert httpx.get(url, headers={"authorization": "Bearer wrong"}, timeout=server.hang_s).status_code == 401
    assert httpx.get(url, headers={"authorization": "Bearer other"}, timeout=server.hang_s).status_code == 200
    assert httpx.get(url, headers={"authorization": "Bearer secret"}, timeout=server.hang_s).status_code == 200
    assert httpx.get(f"{server.url}/health", timeout=server.hang_s).status_code == 200
    key = {"authorization": "Bearer secret", "content-type": "application/json"}
    large = json.dumps({**GOOD, "user": "x" * 2000}).encode()
    url = f"{server.url}/v1/chat/completions"
    assert httpx.post(url, content=large, headers=key, timeout=server.hang_s).status_code == 413
    assert (
        httpx.post(url, content=iter([large[:900], large[900:]]), headers=key, timeout=server.hang_s).status_code == 413
    )  # chunked
    assert httpx.post(url, json=GOOD, headers=key, timeout=server.hang_s).status_code == 200


@pytest.mark.parametrize("chunked", [False, True])
def test_a_client_that_sends_before_it_reads_sees_why_its_body_was_refused(model_path, new_server, chunked):
    """Closed while the body came, the connection said "reset by peer" instead of 413."""
    server = new_server(model_path, limits=Limits(body_nbytes=1 << 20))
    body = b'{"user": "' + b"x" * (3 << 20) + b'"}'
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    if chunked:
        head += b"Transfer-Encoding: chunked\r\n\r\n"
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    else:
        head += b"Content-Length: %d\r\n\r\n" % len(body)
    with socket.create_connection(("127.0.0.1", server.port), timeout=server.hang_s) as connection:
        connection.sendall(head + body)
        assert connection.recv(64).split()[1] == b"413"


def test_a_body_that_is_far_too_large_is_not_read(model_path, new_server, monkeypatch):
    monkeypatch.setattr(guard, "_DRAIN_S", 1_000_000)  # reading it would take that long
    server = new_server(model_path, limits=Limits(body_nbytes=1000))
    for extra in ("Content-Length: 1000000", "Content-Length: 2000\r\nExpect: 100-continue"):
        head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{extra}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", server.port), timeout=server.hang_s) as connection:
            connection.sendall(head.encode())
            assert connection.recv(64).split()[1] == b"413"


def long_request(server, connection, *, stream):
    body = json.dumps({**GOOD, "max_tokens": 240, "ignore_eos": True, "stream": stream}).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("how", ["close", "reset", "after the first byte"])
def test_clients_that_go_away_free_their_place(idle_after, stream, how, wait_for):
    server = idle_after
    connections = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(10)]
    for connection in connections:
        long_request(server, connection, stream=stream)
    wait_for(lambda: server.engine.load().n_running)
    for connection in connections:
        if how == "after the first byte" and stream:
            connection.recv(1)
        if how == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    wait_for(server.idle)
    assert server.chat("hi", max_tokens=2)["usage"]["completion_tokens"] >= 1


@pytest.mark.parametrize("stream", [False, True])
def test_clients_that_go_away_while_they_wait(idle_after, stream, wait_for):
    """Streams in the queue kept their place until their first token, whether anybody waited for it or not."""
    server = idle_after
    with server.engine._manager.pause():  # no token frees a place meanwhile
        stay = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(4)]
        for connection in stay:
            long_request(server, connection, stream=True)
        wait_for(lambda: server.engine.load().n_running == 4)
        queue = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(6)]
        for connection in queue:
            long_request(server, connection, stream=stream)
        wait_for(lambda: server.engine.load().n_waiting == 6)
        for connection in queue:
            connection.close()
        wait_for(lambda: server.engine.load().n_waiting == 0)
        assert server.engine.load().n_running == 4
    for connection in stay:
        connection.close()


def test_a_flood_is_answered_in_part(idle_after, wait_for):
    """More than slots and queue hold: the rest is told to come again, at once."""
    server = idle_after
    body = {**GOOD, "max_tokens": 150, "ignore_eos": True}
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        with server.engine._manager.pause():  # nobody leaves meanwhile
            asked = [pool.submit(server.post, "/v1/chat/completions", body) for _ in range(40)]
            wait_for(lambda: sum(a.done() for a in asked) == 28)
            assert {a.result().status_code for a in asked if a.done()} == {429}
        codes = [a.result().status_code for a in asked]
    assert codes.count(200) == 12  # 4 slots and a queue of 8
    assert codes.count(429) == 28
    assert server.post("/v1/chat/completions", GOOD).status_code == 200

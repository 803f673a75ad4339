# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Requests made from the published OpenAPI document: each is answered as the document says, none is a server error."""

import os

import httpx
import pytest

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis")
from hypothesis import HealthCheck, given, settings  # noqa: E402

EXAMPLES = int(os.environ.get("GLYD_SERVING_EXAMPLES", "12"))
RULES = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
OPERATIONS = [
    ("POST", "/v1/chat/completions"), ("POST", "/v1/completions"), ("POST", "/v1/embeddings"), ("GET", "/v1/models"), ("POST", "/v1/responses"),
    ("GET", "/v1/models/{name}"), ("POST", "/tokenize"), ("POST", "/detokenize"), ("GET", "/health"),
    ("GET", "/version"), ("GET", "/metrics"),
]  # fmt: skip


@pytest.fixture(scope="module")
def document(server):
    return httpx.get(f"{server.url}/openapi.json", timeout=server.hang_s).json()


CASES = [(method, path, "POSITIVE") for method, path in OPERATIONS]
CASES += [
    (method, path, "NEGATIVE") for method, path in OPERATIONS if method == "POST"
]  # others have nothing to get wrong


@pytest.mark.parametrize(("method", "path", "mode"), CASES, ids=lambda v: v)
def test_the_published_document_holds(server, document, method, path, mode):
    """Good bodies get an answer or a refusal that is documented, bad ones a refusal, and the server lives on."""
    schema = schemathesis.openapi.from_dict(document)
    operation = schema[path][method]
    mode = getattr(schemathesis.GenerationMode, mode)

    @RULES
    @given(case=operation.as_strategy(generation_mode=mode))
    def answered(case):
        if isinstance(case.body, dict):  # the time goes into kinds of requests, not into tokens
            if isinstance(case.body.get("n"), int):
                case.body["n"] = min(case.body["n"], 4)
            if path != "/detokenize":
                case.body.setdefault("max_output_tokens" if path == "/v1/responses" else "max_tokens", 4)
        response = case.call(base_url=server.url, timeout=server.hang_s)
        assert response.status_code < 500, response.text
        assert str(response.status_code) in operation.definition.raw["responses"], response.text
        if response.status_code >= 400 and method == "POST":
            assert response.json()["error"]["message"]
        operation.validate_response(response)

    answered()


def test_the_document_names_every_path(document):
    assert {path for _, path in OPERATIONS} == set(document["paths"])

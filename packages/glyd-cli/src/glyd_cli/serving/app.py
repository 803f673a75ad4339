# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The web application: OpenAI's endpoints and a few for operators."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar, cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.exceptions import HTTPException

from glyd_cli._version import __version__
from glyd_cli.serving.api_chat import ChatCompletion
from glyd_cli.serving.api_completions import Completion
from glyd_cli.serving.api_embeddings import Embedding
from glyd_cli.serving.api_errors import DOCUMENTED, ApiError, of_validation
from glyd_cli.serving.api_responses import Response as ResponseJob
from glyd_cli.serving.api_responses import ResponseRequest
from glyd_cli.serving.api_types import (  # FastAPI reads these annotations at run time
    ChatRequest,
    CompletionRequest,
    DetokenizeRequest,
    EmbeddingRequest,
    TokenizeRequest,
)
from glyd_cli.serving.chat import prompt_of
from glyd_cli.serving.engine import QueueFullError
from glyd_cli.serving.guard import Guard, Limits
from glyd_cli.serving.page import page
from glyd_cli.serving.streams import ClientGoneError, api_error, server_sent_events, unless_gone

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence

    from starlette.types import ASGIApp

    from glyd_cli.serving.embedding import EmbeddingEngine
    from glyd_cli.serving.engine import Engine
    from glyd_cli.serving.pool import Lease, Models
    from glyd_cli.serving.usage import Usage

T = TypeVar("T")
_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120)


class Metrics:
    """What ``/metrics`` shows, in a registry of its own."""

    def __init__(self, models: Models) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("glyd_requests", "Requests answered, by endpoint", ["endpoint"], registry=self.registry)
        self.prompt_tokens = Counter("glyd_prompt_tokens", "Tokens of prompts", registry=self.registry)
        self.tokens = Counter("glyd_generated_tokens", "Tokens made", registry=self.registry)
        self.first = Histogram(
            "glyd_time_to_first_token_seconds", "Time to the first token", buckets=_SECONDS, registry=self.registry
        )
        self.whole = Histogram(
            "glyd_request_seconds", "Time of a whole request", buckets=_SECONDS, registry=self.registry
        )
        self.running = Gauge("glyd_requests_running", "Requests that run", registry=self.registry)
        self.running.set_function(lambda: models.load().n_running)
        self.waiting = Gauge("glyd_requests_waiting", "Requests that wait", registry=self.registry)
        self.waiting.set_function(lambda: models.load().n_waiting)
        self.loaded = Gauge("glyd_model_loaded", "1: the model is in memory", ["model"], registry=self.registry)
        for name in models.names:
            self.loaded.labels(name).set_function(lambda name=name: float(models.loaded(name) is not None))  # type: ignore[misc]
        self._models = models
        self.kv = Gauge(
            "glyd_kv_cache_bytes",
            "Bytes of the KV cache, held, and what its tokens take plain",
            ["model", "form", "counted"],
            registry=self.registry,
        )
        self.kv_room = Gauge("glyd_kv_cache_room_tokens", "Most tokens of it", ["model"], registry=self.registry)

    def text(self) -> str:
        """Return all in Prometheus' form; models that were unloaded have no KV cache."""
        self.kv.clear()
        self.kv_room.clear()
        for name in self._models.names:
            served = self._models.loaded(name)
            held = (
                None if served is None or served.engine.info.task != "generate" else cast("Engine", served.engine).kv()
            )
            if held is not None:
                self.kv.labels(name, held.form, "held").set(held.nbytes)
                self.kv.labels(name, held.form, "plain").set(held.plain_nbytes)
                self.kv_room.labels(name).set(held.room)
        return generate_latest(self.registry).decode()

    async def watched(
        self, job: ChatCompletion | Completion | ResponseJob, endpoint: str, lease: Lease
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Pass chunks on and count them, then let the model go."""
        start, first = time.monotonic(), True
        try:
            async with contextlib.aclosing(job.chunks()) as chunks:
                async for chunk in chunks:
                    if first:
                        self.first.observe(time.monotonic() - start)
                        first = False
                    yield chunk
        except (GeneratorExit, asyncio.CancelledError):
            _log_gone(job.usage, endpoint)
            raise
        finally:
            self.done(job.usage, endpoint, start)
            lease.release()

    def done(self, usage: Usage, endpoint: str, start: float) -> None:
        """Count a request that ended."""
        self.requests.labels(endpoint).inc()
        self.prompt_tokens.inc(usage.n_prompt)
        self.tokens.inc(usage.n_made)
        self.whole.observe(time.monotonic() - start)


def _log_gone(usage: Usage, endpoint: str) -> None:
    """Say that a client did not wait for its answer; ``glyd serve`` prints it."""
    logging.getLogger("glyd_cli.serving").info("%s: the client went away after %d tokens", endpoint, usage.n_made)


def make_app(
    models: Models,
    *,
    hosts: Iterable[str] = (),
    any_host: bool = False,
    api_key: str | Sequence[str] | None = None,
    limits: Limits | None = None,
) -> ASGIApp:
    """Return the application around models.

    Parameters
    ----------
    models
        What is served.
    hosts, any_host, api_key, limits
        See `glyd_cli.serving.guard.Guard`.
    """

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with models.watching():
            yield

    app = FastAPI(
        title="glyd", version=__version__, docs_url=None, redoc_url=None, responses=DOCUMENTED, lifespan=lifespan
    )
    document = app.openapi

    def openapi() -> dict[str, Any]:
        """Leave out what FastAPI would answer to bad bodies: here they are a 400, in the form of all errors."""
        found = document()
        for operation in (o for path in found["paths"].values() for o in path.values()):
            operation["responses"].pop("422", None)
        return found

    app.openapi = openapi  # type: ignore[method-assign]
    metrics = Metrics(models)
    _add_errors(app)
    _add_answers(app, models, metrics)
    _add_facts(app, models, metrics)
    return Guard(app, hosts=hosts, any_host=any_host, api_key=api_key, limits=limits)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        return of_validation(error.errors()).response()

    @app.exception_handler(ApiError)
    async def known(_: Request, error: ApiError) -> JSONResponse:
        return error.response()

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        texts = {
            400: "the body cannot be read as JSON in UTF-8",
            404: f"no such path: {request.url.path[:200]}",
            405: f"{request.method} is not for this path",
        }
        return ApiError(error.status_code, texts.get(error.status_code, str(error.detail))).response(
            dict(error.headers or {})
        )

    @app.exception_handler(ClientGoneError)
    async def gone(_: Request, __: ClientGoneError) -> Response:
        return Response(status_code=499)

    @app.exception_handler(Exception)
    async def unknown(_: Request, error: Exception) -> JSONResponse:
        return api_error(error).response()


def _add_answers(app: FastAPI, models: Models, metrics: Metrics) -> None:
    # a long prompt takes the tokenizer seconds, in which answers go on; it serves one caller at a time
    tokenizing = ThreadPoolExecutor(1, thread_name_prefix="glyd-tokenizer")

    async def prepared(make: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(tokenizing, make)
        except ValueError as error:
            raise api_error(error) from error

    @contextlib.asynccontextmanager
    async def leased(name: str | None, task: str | None = None) -> AsyncIterator[Lease]:
        """Have a model that does a task; it is let go where the request fails."""
        try:
            lease = await models.lease(name)
        except QueueFullError as error:
            raise api_error(error) from error
        try:
            info = lease.engine.info
            if task not in {None, info.task}:
                does = {"generate": "write text and makes no embeddings", "embed": "make embeddings and writes no text"}
                text = f"{info.name!r} is served to {does[info.task]}: use a model made for it"
                raise ApiError(400, text, param="model", code="not_supported")
            yield lease
        except BaseException:
            lease.release()
            raise

    async def answer(
        request: Request,
        job: ChatCompletion | Completion | Embedding | ResponseJob,
        endpoint: str,
        lease: Lease,
        *,
        stream: bool = False,
    ) -> Response:
        try:
            if stream and not isinstance(job, Embedding):
                # nobody else looks whether the client is still there until there is something to send
                chunks = metrics.watched(job, endpoint, lease)
                return await unless_gone(request, server_sent_events(chunks))
            start = time.monotonic()
            try:
                return JSONResponse(await unless_gone(request, job.whole()))
            except ClientGoneError:
                _log_gone(job.usage, endpoint)
                raise
            finally:
                metrics.done(job.usage, endpoint, start)
                lease.release()
        except (ApiError, ClientGoneError):
            raise
        except Exception as error:
            raise api_error(error) from error

    @app.post("/v1/chat/completions")
    async def chat(request: Request, body: ChatRequest) -> Response:
        async with leased(body.model, "generate") as lease:
            job = await prepared(lambda: ChatCompletion(cast("Engine", lease.engine), lease.tokenizer, body))
            return await answer(request, job, "chat", lease, stream=body.stream)

    @app.post("/v1/completions")
    async def completions(request: Request, body: CompletionRequest) -> Response:
        async with leased(body.model, "generate") as lease:
            job = await prepared(lambda: Completion(cast("Engine", lease.engine), lease.tokenizer, body))
            return await answer(request, job, "completions", lease, stream=body.stream)

    @app.post("/v1/responses")
    async def responses(request: Request, body: ResponseRequest) -> Response:
        async with leased(body.model, "generate") as lease:
            job = await prepared(lambda: ResponseJob(cast("Engine", lease.engine), lease.tokenizer, body))
            return await answer(request, job, "responses", lease, stream=body.stream)

    @app.post("/v1/embeddings")
    async def embeddings(request: Request, body: EmbeddingRequest) -> Response:
        async with leased(body.model, "embed") as lease:
            job = await prepared(lambda: Embedding(cast("EmbeddingEngine", lease.engine), lease.tokenizer, body))
            return await answer(request, job, "embeddings", lease)

    @app.post("/tokenize")
    async def tokenize(body: TokenizeRequest) -> dict[str, Any]:
        if (body.prompt is None) == (body.messages is None):
            raise ApiError(400, "either prompt or messages")
        async with leased(body.model) as lease:
            tokenizer = lease.tokenizer
            if body.messages is not None:
                messages, add = body.messages, body.add_generation_prompt
                ids = await prepared(lambda: prompt_of(tokenizer, messages, add_generation_prompt=add))
            else:
                text, special = body.prompt, body.add_special_tokens
                ids = await prepared(lambda: list(tokenizer.encode(text, add_special_tokens=special)))
            lease.release()
            return {"tokens": ids, "count": len(ids), "max_model_len": lease.engine.info.context}

    @app.post("/detokenize")
    async def detokenize(body: DetokenizeRequest) -> dict[str, Any]:
        async with leased(body.model) as lease:
            n_vocabulary = lease.engine.info.n_vocabulary
            outside = [t for t in body.tokens if t >= n_vocabulary]
            if outside:
                raise ApiError(400, f"token ids are below {n_vocabulary}, found {outside[0]}", param="tokens")
            lease.release()
            return {"prompt": lease.engine.tokenizer.decode(body.tokens, skip_special_tokens=False)}


def _add_facts(app: FastAPI, models: Models, metrics: Metrics) -> None:
    def card(name: str) -> dict[str, Any]:
        head = {"id": name, "object": "model", "created": models.created(name), "owned_by": "glyd"}
        served = models.loaded(name)
        if served is None:
            return {**head, "loaded": False}
        info = served.engine.info
        return {
            **head,
            "loaded": True,
            "task": info.task,
            "max_model_len": info.context,
            "layout": info.layout,
            "weight_bytes": info.weight_nbytes,
            "chat": info.task == "generate" and bool(served.tokenizer.chat_template),
        }

    @app.get("/v1/models")
    async def listed() -> dict[str, Any]:
        return {"object": "list", "data": [card(name) for name in models.names]}

    @app.get("/v1/models/{name:path}")
    async def model(name: str) -> dict[str, Any]:
        return card(models.find(name))

    @app.get("/", include_in_schema=False)
    async def chat_page() -> Response:
        document, headers = page()
        return Response(document, media_type="text/html; charset=utf-8", headers=headers)

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/version")
    async def version() -> dict[str, str]:
        return {"version": __version__}

    @app.get("/metrics")
    async def shown_metrics() -> PlainTextResponse:
        text = metrics.text()
        for name in models.names:
            served = models.loaded(name)
            if served is not None and served.engine.info.task == "generate":
                text += await cast("Engine", served.engine).own_metrics()
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

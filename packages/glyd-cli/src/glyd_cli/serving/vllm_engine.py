# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The engine for many users and several GPUs: vLLM in a process of its own, asked for tokens over HTTP."""

from __future__ import annotations

import asyncio
import json
import re
import time
from typing import TYPE_CHECKING, Any

import httpx

from glyd_cli.serving.engine import (
    EngineError,
    Load,
    ModelInfo,
    PromptTooLongError,
    QueueFullError,
    Sampling,
    TokenStep,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tokenizers import Tokenizer

    from glyd_cli.serving.vllm_process import VllmProcess

_TOKEN = "token_id:"  # noqa: S105 - how vLLM writes token ids in log-probabilities
_EVENT = "data: "
_DONE = "[DONE]"
_CONNECT_S = 10.0
_METRICS_S = 30.0  # after which vLLM is asked anew
_METRICS_WAIT_S = 0.1  # that who asks us waits for it; then the values known last do
_AGE = "glyd_vllm_metrics_age_seconds"
_METRIC = re.compile(r"^(?:# (?:HELP|TYPE) )?vllm:")  # what else its process says of itself is not the server's


class VllmEngine:
    """Serve a model with vLLM.

    Parameters
    ----------
    process
        vLLM, started or not.
    tokenizer
        Of the model.
    info
        What to say of it.
    n_slots, n_queue
        Requests that run and that wait at most.
    """

    shares = False

    def __init__(
        self, process: VllmProcess, tokenizer: Tokenizer, info: ModelInfo, *, n_slots: int, n_queue: int
    ) -> None:
        self.info = info
        self.tokenizer = tokenizer
        self._process = process
        self._n_slots = n_slots
        self._n_queue = n_queue
        self._n_active = 0
        self._client: httpx.AsyncClient | None = None
        self._asking: asyncio.Task[None] | None = None
        self._metrics: tuple[str, float] | None = None  # text, and when it came

    def start(self) -> None:
        """Nothing is left to do: the process was started to know its window."""

    def stop(self) -> None:
        """End vLLM; its log is of no use any more."""
        self._client = None
        if self._process.ended() is None:
            self._process.log_path.unlink(missing_ok=True)
        self._process.stop()

    def kv(self) -> None:
        """Say nothing: vLLM's own metrics do."""

    async def own_metrics(self) -> str:
        """Return vLLM's metrics as they were last known, and their age; empty where it refuses or is gone.

        A vLLM that is slow to answer does not hold up our own: it is asked beside, once at a time.
        """
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask_metrics())
        await asyncio.wait({self._asking}, timeout=_METRICS_WAIT_S)
        if self._metrics is None:
            return ""
        text, came = self._metrics
        return (
            f"{text}# HELP {_AGE} Since vLLM's metrics were fetched\n# TYPE {_AGE} gauge\n"
            f"{_AGE} {time.monotonic() - came:.3f}\n"
        )

    async def _ask_metrics(self) -> None:
        """Ask vLLM; what it refuses to say, or can say no more, is forgotten, but not what it is slow to say."""
        try:
            answer = await self._connection().get("/metrics", timeout=_METRICS_S)
            answer.raise_for_status()
        except httpx.TimeoutException:
            return
        except httpx.HTTPError:
            self._metrics = None
            return
        text = "".join(line for line in answer.text.splitlines(keepends=True) if _METRIC.match(line))
        self._metrics = text, time.monotonic()

    def _connection(self) -> httpx.AsyncClient:
        """Return what asks vLLM, made with the first request: it belongs to the loop that is running then."""
        if self._client is None:
            timeout = httpx.Timeout(None, connect=_CONNECT_S)
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
            headers = {"Authorization": f"Bearer {self._process.key}"}
            self._client = httpx.AsyncClient(
                base_url=self._process.url, timeout=timeout, limits=limits, headers=headers, trust_env=False
            )
        return self._client

    def load(self) -> Load:
        """Return how much runs and waits."""
        running = min(self._n_active, self._n_slots)
        return Load(n_running=running, n_waiting=self._n_active - running)

    async def generate(
        self,
        prompt: list[int],
        sampling: Sampling,
        *,
        n_shared: int = 0,  # noqa: ARG002 - vLLM finds out itself
    ) -> AsyncGenerator[TokenStep, None]:
        """Yield the tokens of an answer; see `glyd_cli.serving.engine.Engine`."""
        if len(prompt) >= self.info.context:
            raise PromptTooLongError(len(prompt), self.info.context)
        if self._n_active >= self._n_slots + self._n_queue:
            raise QueueFullError(f"{self._n_queue} requests wait already")
        body = request_body(self.info, prompt, sampling)
        self._n_active += 1
        try:
            async with self._connection().stream("POST", "/v1/completions", json=body) as answer:
                if answer.status_code != 200:
                    raise EngineError(_message(await answer.aread()))
                async for line in answer.aiter_lines():
                    if not line.startswith(_EVENT) or line == _EVENT + _DONE:
                        continue
                    for step in steps(json.loads(line[len(_EVENT) :])):
                        yield step
        except httpx.HTTPError as error:
            cause = self._process.ended()
            why = f"vLLM ended: {cause.text}" if cause else f"vLLM does not answer ({type(error).__name__})"
            raise EngineError(f"{why} (log: {self._process.log_path})") from error
        finally:
            self._n_active -= 1


def request_body(info: ModelInfo, prompt: list[int], sampling: Sampling) -> dict[str, Any]:
    """Return a request as vLLM's ``/v1/completions`` takes it.

    Parameters
    ----------
    info
        The model that is asked.
    prompt
        Token ids.
    sampling
        Rules of the answer.
    """
    body: dict[str, Any] = {
        "model": info.name,
        "prompt": prompt,
        "stream": True,
        "max_tokens": min(sampling.max_tokens, info.context - len(prompt)),
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "repetition_penalty": sampling.repetition_penalty,
        "ignore_eos": True,  # the ends are these, whatever vLLM takes the model's to be
        "stop_token_ids": sorted(info.ends(sampling)),
        "skip_special_tokens": False,
        "return_token_ids": True,
    }
    if sampling.seed is not None:
        body["seed"] = sampling.seed
    if sampling.logit_bias:
        body["logit_bias"] = {str(token): bias for token, bias in sampling.logit_bias.items()}
    if sampling.n_logprobs is not None:
        body |= {"logprobs": sampling.n_logprobs, "return_tokens_as_token_ids": True}
    if sampling.grammar is not None:
        body["structured_outputs"] = _structured(sampling.grammar)
    return body


def _structured(grammar: str) -> dict[str, Any]:
    """Return a grammar of llguidance's as vLLM takes it: the JSON schema that it was made of, where it was."""
    try:
        (only,) = json.loads(grammar)["grammars"]
        return {"json": only["json_schema"]}
    except (KeyError, TypeError, ValueError):
        return {"grammar": grammar}


def steps(event: dict[str, Any]) -> list[TokenStep]:
    """Return the tokens of one event of the stream.

    Raises
    ------
    EngineError
        The event says what went wrong.
    """
    if "error" in event:
        raise EngineError(_text_of(event))
    found = []
    for choice in event.get("choices", ()):
        tokens = choice.get("token_ids") or ()
        logprobs = choice.get("logprobs") or {}
        chosen = logprobs.get("token_logprobs") or [None] * len(tokens)
        likeliest = logprobs.get("top_logprobs") or [None] * len(tokens)
        for token, logprob, others in zip(tokens, chosen, likeliest, strict=False):
            top = sorted(
                ((int(name.removeprefix(_TOKEN)), value) for name, value in (others or {}).items()),
                key=lambda pair: -pair[1],
            )
            found.append(TokenStep(int(token), logprob, tuple(top)))
    return found


def _message(body: bytes) -> str:
    try:
        return _text_of(json.loads(body))
    except ValueError:
        return body.decode("utf-8", "replace")[:300]


def _text_of(event: Any) -> str:
    error = event.get("error") if isinstance(event, dict) else None
    found = error.get("message") if isinstance(error, dict) else error
    return str(found or event)[:300]

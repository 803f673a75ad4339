# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What the web application asks of an engine, whichever runs the model.

An engine takes token ids and gives token ids: chat templates, text and stop
strings are the business of the layers above it. Nothing here imports torch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tokenizers import Tokenizer


class QueueFullError(Exception):
    """Too many requests wait already."""


class EngineError(Exception):
    """The engine could not finish a request."""


class PromptTooLongError(ValueError):
    """A prompt leaves no room for an answer, or does not fit itself where no answer is made."""

    def __init__(self, n_prompt: int, context: int, *, answered: bool = True) -> None:
        rest = ", of which one at least must be left for the answer" if answered else ""
        super().__init__(f"the prompt has {n_prompt} tokens, the window of this model holds {context}{rest}")
        self.n_prompt = n_prompt
        self.context = context


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How tokens are chosen.

    Attributes
    ----------
    max_tokens
        Most tokens to make, 1 or more.
    temperature
        0 takes the likeliest token.
    top_p, top_k, min_p
        Limits on the tokens drawn from; 1, 0 and 0 are no limits.
    presence_penalty, frequency_penalty
        Taken off the logits of tokens made already: once, and for each time.
    repetition_penalty
        Divides (multiplies, below zero) the logits of tokens of prompt and answer; 1 is none.
    logit_bias
        Added to the logits of token ids.
    seed
        Same seed, same draws; None draws one.
    n_logprobs
        None: no log-probabilities; n: of the chosen token and of the n likeliest.
    stop_token_ids
        Tokens that end the answer beside those of the model.
    ignore_eos
        Go on after the model's own end.
    grammar
        A grammar that the answer must follow, in llguidance's form; None: none.
    """

    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: dict[int, float] = field(default_factory=dict)
    seed: int | None = None
    n_logprobs: int | None = None
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    grammar: str | None = None


@dataclass(frozen=True)
class TokenStep:
    """One token made.

    Attributes
    ----------
    token
        Its id.
    logprob
        Natural logarithm of its probability before sampling limits, None where not asked for.
    top
        (id, logprob) of the likeliest tokens, best first.
    """

    token: int
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """What is served.

    Attributes
    ----------
    name
        The id in the API.
    context
        Tokens of prompt and answer together.
    n_vocabulary
        Token ids are below it.
    end_tokens
        Ids that end an answer.
    layout
        ``tiered``, ``mma12`` or ``bf16``.
    weight_nbytes
        Bytes of the weights in memory.
    created
        Seconds since 1970.
    defaults
        What the model's makers advise for fields of `Sampling`; requests override them.
    task
        Whether it writes text or turns texts into vectors.
    """

    name: str
    context: int
    n_vocabulary: int
    end_tokens: tuple[int, ...]
    layout: str
    weight_nbytes: int
    created: int
    defaults: dict[str, float] = field(default_factory=dict)
    task: Literal["generate", "embed"] = "generate"

    def ends(self, sampling: Sampling) -> set[int]:
        """Return the tokens that end an answer made by these rules."""
        return {*sampling.stop_token_ids, *(() if sampling.ignore_eos else self.end_tokens)}


@dataclass(frozen=True, kw_only=True)
class Load:
    """What an engine is doing now: requests that run and that wait."""

    n_running: int
    n_waiting: int


@dataclass(frozen=True, kw_only=True)
class KvHeld:
    """What the KV cache takes.

    Attributes
    ----------
    form
        ``plain``: allocated as a whole when the engine starts; ``packed``: grows with its tokens.
    nbytes
        Bytes held.
    plain_nbytes
        Bytes that the same tokens take plain.
    room
        Tokens that it holds at most.
    """

    form: Literal["plain", "packed"]
    nbytes: int
    plain_nbytes: int
    room: int


class Engine(Protocol):
    """Runs one model for many requests at once."""

    info: ModelInfo
    tokenizer: Tokenizer

    def start(self) -> None:
        """Begin to work; returns when requests can be taken."""

    def stop(self) -> None:
        """End all requests and free what is held."""

    shares: bool
    """Whether the engine makes use of ``n_shared``."""

    def generate(self, prompt: list[int], sampling: Sampling, *, n_shared: int = 0) -> AsyncGenerator[TokenStep, None]:
        """Yield the tokens of an answer as they are made, the end token included.

        ``n_shared``: so many tokens of the prompt are a beginning that other prompts have too, as a system prompt.

        Closing the iterator frees the request's place, wherever it is.

        Raises
        ------
        PromptTooLongError
            The prompt fills the window.
        QueueFullError
            Too many requests wait.
        EngineError
            The model failed.
        """
        ...

    def load(self) -> Load:
        """Return how much runs and waits."""
        ...

    def kv(self) -> KvHeld | None:
        """Return what the KV cache takes; None where another process knows."""
        ...

    async def own_metrics(self) -> str:
        """Return what the engine itself counts, in Prometheus' form; empty where it counts nothing."""
        ...

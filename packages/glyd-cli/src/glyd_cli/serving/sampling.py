# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Draw the next token of every request of a batch, each by its own rules.

All rows are handled together on the device of the logits; only random
numbers, penalties and grammar masks come from the host. A request with a seed
draws the same numbers whatever else is in the batch.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import torch

from glyd_cli.serving.engine import TokenStep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from glyd_cli.serving.engine import Sampling
    from glyd_cli.serving.grammar import Matcher

_GREEDY = 1e-5  # a temperature below it takes the likeliest token


class Draw:
    """State of one request while its answer is made.

    Parameters
    ----------
    prompt
        Token ids of the prompt.
    sampling
        The request's rules.
    matcher
        The grammar's state, None without one.
    ends
        Tokens that end an answer; what is left to choose once the grammar is complete.
    """

    def __init__(
        self,
        prompt: Sequence[int],
        sampling: Sampling,
        matcher: Matcher | None = None,
        ends: Sequence[int] = (),
    ) -> None:
        self.sampling = sampling
        self.matcher = matcher
        self._ends = list(ends)
        self.steps: list[TokenStep] = []
        self.keep = 0  # first tokens of the prompt that are to be kept in a file
        self._prompt = sorted(set(prompt)) if sampling.repetition_penalty != 1.0 else []
        self._counts: dict[int, int] = {}
        self._random = random.Random(sampling.seed)  # noqa: S311 - draws, no secrets

    def next_number(self) -> float:
        """Return the next random number in [0, 1)."""
        return self._random.random()

    def adjust(self, logits: torch.Tensor) -> None:
        """Apply penalties, bias and grammar to a row of float32 logits [vocabulary], in place."""
        rules = self.sampling
        if rules.repetition_penalty != 1.0:
            seen = torch.tensor(sorted({*self._prompt, *self._counts}), device=logits.device)
            if seen.numel():
                old = logits[seen]
                logits[seen] = torch.where(old > 0, old / rules.repetition_penalty, old * rules.repetition_penalty)
        if self._counts and (rules.presence_penalty or rules.frequency_penalty):
            made = torch.tensor(list(self._counts), device=logits.device)
            times = torch.tensor(list(self._counts.values()), device=logits.device, dtype=logits.dtype)
            logits[made] -= rules.presence_penalty + rules.frequency_penalty * times
        if rules.logit_bias:
            biased = torch.tensor(list(rules.logit_bias), device=logits.device)
            logits[biased] += torch.tensor(list(rules.logit_bias.values()), device=logits.device, dtype=logits.dtype)
        if self.matcher is not None and not self.matcher.done:
            self.matcher.mask(logits)
        elif self.matcher is not None and self._ends:
            kept = logits[self._ends].clone()
            logits.fill_(-math.inf)
            logits[self._ends] = kept

    @property
    def adjusts(self) -> bool:
        """Whether `adjust` does anything."""
        rules = self.sampling
        penalties = rules.presence_penalty or rules.frequency_penalty or rules.repetition_penalty != 1.0
        return bool(penalties or rules.logit_bias or self.matcher is not None)

    def take(self, step: TokenStep) -> None:
        """Record the token drawn."""
        self.steps.append(step)
        self._counts[step.token] = self._counts.get(step.token, 0) + 1
        if self.matcher is not None:
            self.matcher.take(step.token)


def draw(logits: torch.Tensor, draws: Sequence[Draw]) -> list[int]:
    """Choose a token for every row and record it.

    Parameters
    ----------
    logits
        [rows, vocabulary] float32, any device; not changed.
    draws
        The request of each row.

    Returns
    -------
    list[int]
        The token of each row.
    """
    scores = logits
    if any(d.adjusts for d in draws):
        scores = logits.clone()
        for row, request in enumerate(draws):
            if request.adjusts:
                request.adjust(scores[row])
    tokens = scores.argmax(dim=-1)
    # rows with limits and rows without are drawn in different orders of the tokens: by their own
    # rules alone, so that a seed gives the same draws whatever else is in the batch
    drawn = [row for row, d in enumerate(draws) if d.sampling.temperature > _GREEDY]
    for limited, sample in ((False, _sample_all), (True, _sample_limited)):
        rows = [row for row in drawn if _is_limited(draws[row].sampling) == limited]
        if rows:
            index = torch.tensor(rows, device=scores.device)
            tokens[index] = sample(scores[index], [draws[row] for row in rows])
    asked = [row for row, d in enumerate(draws) if d.sampling.n_logprobs is not None]
    steps = _logprobs(logits, tokens, draws, asked) if asked else {}
    chosen: list[int] = tokens.tolist()
    for row, (request, token) in enumerate(zip(draws, chosen, strict=True)):
        request.take(steps.get(row) or TokenStep(token))
    return chosen


def _is_limited(rules: Sampling) -> bool:
    return bool(rules.top_p < 1.0 or rules.top_k or rules.min_p > 0.0)


def _column(scores: torch.Tensor, values: list[float]) -> torch.Tensor:
    return torch.tensor(values, device=scores.device, dtype=torch.float32).unsqueeze(1)


def _sample_all(scores: torch.Tensor, draws: Sequence[Draw]) -> torch.Tensor:
    """Return one token a row, drawn from all by inverting the distribution function."""
    scaled = scores / _column(scores, [d.sampling.temperature for d in draws])
    mass = torch.softmax(scaled, dim=-1).cumsum(dim=-1)
    return _invert(mass, _column(scores, [d.next_number() for d in draws]))


def _sample_limited(scores: torch.Tensor, draws: Sequence[Draw]) -> torch.Tensor:
    """Return one token a row, drawn from what the limits leave."""
    rules = [d.sampling for d in draws]
    scaled = scores / _column(scores, [r.temperature for r in rules])
    ordered, ids = scaled.sort(dim=-1, descending=True, stable=True)
    probabilities = torch.softmax(ordered, dim=-1)
    rank = torch.arange(scores.shape[1], device=scores.device).unsqueeze(0)
    limits = _column(scores, [float(r.top_k or scores.shape[1]) for r in rules])
    kept = rank < limits
    kept &= probabilities >= probabilities[:, :1] * _column(scores, [r.min_p for r in rules])
    probabilities = probabilities * kept
    before = probabilities.cumsum(dim=-1) - probabilities
    total = probabilities.sum(dim=-1, keepdim=True)
    # the likeliest token stays, whatever the limits
    within = (before < _column(scores, [r.top_p for r in rules]) * total) | (rank == 0)
    mass = (probabilities * within).cumsum(dim=-1)
    place = _invert(mass, _column(scores, [d.next_number() for d in draws]))
    return ids.gather(1, place.unsqueeze(1)).squeeze(1)


def _invert(mass: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """Return where the cumulative mass of each row first passes a share of its total."""
    place = torch.searchsorted(mass, numbers * mass[:, -1:], right=True)
    # rounding may lead past the last token of any mass: take that one
    last = (mass < mass[:, -1:]).sum(dim=-1, keepdim=True)
    return torch.minimum(place, last).squeeze(1)


def _logprobs(
    logits: torch.Tensor, tokens: torch.Tensor, draws: Sequence[Draw], rows: Sequence[int]
) -> dict[int, TokenStep]:
    """Return the steps of the rows that ask for log-probabilities: those of the model, before all limits."""
    index = torch.tensor(rows, device=logits.device)
    table = torch.log_softmax(logits[index], dim=-1)
    chosen = table.gather(1, tokens[index].unsqueeze(1)).squeeze(1).tolist()
    most = min(max(draws[row].sampling.n_logprobs or 0 for row in rows), logits.shape[1])
    values, ids = (t.tolist() for t in table.topk(most, dim=-1)) if most else ([[]] * len(rows), [[]] * len(rows))
    steps = {}
    for place, row in enumerate(rows):
        n = draws[row].sampling.n_logprobs or 0
        top = tuple(zip(ids[place][:n], values[place][:n], strict=True))
        steps[row] = TokenStep(int(tokens[row]), chosen[place], top)
    return steps

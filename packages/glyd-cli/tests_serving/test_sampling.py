# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Tokens are drawn from the distribution that a request asks for."""

import collections
import math

import pytest
import torch

from glyd_cli.serving.engine import Sampling
from glyd_cli.serving.sampling import Draw, draw


def many(logits, n=4000, **rules):
    """Draw n tokens from the same logits with one request."""
    request = Draw([], Sampling(max_tokens=n, seed=1, **rules))
    row = torch.tensor([logits])
    return collections.Counter(draw(row, [request])[0] for _ in range(n))


def test_temperature_zero_takes_the_likeliest():
    assert many([0.0, 3.0, 2.9], n=20, temperature=0.0) == {1: 20}


@pytest.mark.parametrize("rules", [{}, {"top_k": 4}, {"top_p": 1.0, "min_p": 1e-9}])
def test_frequencies_follow_the_softmax(rules):
    logits = [0.0, 1.0, 2.0, -1.0]
    weights = torch.softmax(torch.tensor(logits), 0).tolist()
    counts = many(logits, temperature=1.0, **rules)
    for token, weight in enumerate(weights):
        assert abs(counts[token] / 4000 - weight) < 5 * math.sqrt(weight * (1 - weight) / 4000)


def test_temperature_sharpens():
    assert many([0.0, 1.0], temperature=0.25)[1] > many([0.0, 1.0], temperature=2.0)[1]


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        ({"top_k": 2}, {1, 2}),
        ({"top_p": 0.7}, {2, 1}),
        ({"top_p": 1e-6}, {2}),
        ({"min_p": 0.3}, {2, 1}),
        ({"logit_bias": {2: -100.0}}, {0, 1, 3}),
        ({"logit_bias": {3: 100.0}}, {3}),
    ],
)
def test_limits_leave_only(rules, left):
    assert set(many([0.0, 1.0, 2.0, -1.0], **rules)) == left


def test_the_same_seed_draws_the_same_in_any_company():
    torch.manual_seed(0)
    logits = torch.randn(30, 1, 50)
    alone = Draw([], Sampling(max_tokens=30, seed=7))
    first = [draw(row, [alone])[0] for row in logits]
    again = Draw([], Sampling(max_tokens=30, seed=7))
    other = Draw([], Sampling(max_tokens=30, top_p=0.5, presence_penalty=1.0))
    second = [draw(torch.cat([torch.randn(1, 50), row]), [other, again])[1] for row in logits]
    assert first == second


def test_penalties_count_what_was_made():
    request = Draw([], Sampling(max_tokens=9, temperature=0.0, presence_penalty=0.5, frequency_penalty=0.3))
    logits = torch.tensor([[1.0, 0.9, 0.0]])
    assert [draw(logits, [request])[0] for _ in range(4)] == [0, 1, 0, 1]
    assert torch.equal(logits, torch.tensor([[1.0, 0.9, 0.0]]))


def test_repetition_counts_the_prompt_too():
    request = Draw([0], Sampling(max_tokens=9, temperature=0.0, repetition_penalty=2.0))
    assert draw(torch.tensor([[1.0, 0.9]]), [request]) == [1]


def test_logprobs_are_those_of_the_model():
    request = Draw([], Sampling(max_tokens=2, temperature=0.0, n_logprobs=2, logit_bias={0: 50.0}))
    logits = torch.tensor([[0.0, 1.0, 2.0]])
    draw(logits, [request])
    step = request.steps[0]
    expected = torch.log_softmax(logits[0], 0).tolist()
    assert step.token == 0
    assert step.logprob == pytest.approx(expected[0])
    assert [t for t, _ in step.top] == [2, 1]
    assert [p for _, p in step.top] == pytest.approx([expected[2], expected[1]])


def test_steps_are_padded_by_an_eighth_at_most():
    from glyd_cli.serving.steps import padded

    assert padded(1, 1, 10**6) == (1, 256)
    assert padded(3, 257, 10**6) == (4, 512)
    assert padded(128, 40_000, 50_000) == (128, 40_960)
    assert padded(5, 49_999, 50_000) == (8, 50_000)
    for n in range(2048, 100_000, 997):
        rows, cached = padded(9, n, 10**9)
        assert rows == 16
        assert n <= cached <= n * 9 / 8

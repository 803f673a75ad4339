# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Matrices for tests and the self-check: every kind of weight that a layout treats in its own way."""

from __future__ import annotations

from collections.abc import Callable

import torch


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return bf16 values as integers: NaN and −0 compare by their bits."""
    return tensor.contiguous().view(torch.int16)


def gaussian(rows: int, cols: int, sigma: float = 0.02) -> torch.Tensor:
    """Return what trained weights look like."""
    return (torch.randn(rows, cols) * sigma).to(torch.bfloat16)


def special(rows: int, cols: int) -> torch.Tensor:
    """Return weights with everything that can go wrong: random bits, NaN, Inf, ±0, subnormals, empty rows."""
    w = gaussian(rows, cols)
    flat = w.view(-1)
    n = max(1, flat.numel() // 200)
    places = torch.randint(0, flat.numel(), (n,))
    flat[places] = torch.randint(-(1 << 15), 1 << 15, (n,), dtype=torch.int16).view(torch.bfloat16)
    for value in (float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1e-40, -1e-39, 3e38):
        flat[torch.randint(0, flat.numel(), (max(1, n // 8),))] = value
    if rows > 2:
        w[1] = 0.0
        w[rows - 1] = -0.0
    return w


def scaled_rows(rows: int, cols: int) -> torch.Tensor:
    """Return weights whose rows differ in scale by many powers of two, some of zeros."""
    w = torch.randn(rows, cols) * torch.exp2(torch.randint(-30, 20, (rows, 1)).float())
    return torch.where(torch.rand(rows, 1) < 0.03, torch.zeros(()), w).to(torch.bfloat16)


def many_exceptions(rows: int, cols: int, share: float = 0.04) -> torch.Tensor:
    """Return weights with a share of outliers far from the others, half larger and half smaller."""
    w = torch.randn(rows, cols) * 0.02
    far = torch.where(torch.rand(rows, cols) < 0.5, w * 2.0**12, w * 2.0**-60)
    return torch.where(torch.rand(rows, cols) < share, far, w).to(torch.bfloat16)


def heavy_tails(rows: int, cols: int) -> torch.Tensor:
    """Return weights of a Student t distribution with 4 degrees: long escapes, few exceptions."""
    chi = torch.randn(4, rows, cols).square().sum(0)
    return (0.02 * torch.randn(rows, cols) / (chi / 4).sqrt()).to(torch.bfloat16)


KINDS: dict[str, Callable[[int, int], torch.Tensor]] = {
    "gaussian": gaussian,
    "special": special,
    "scaled_rows": scaled_rows,
    "many_exceptions": many_exceptions,
    "heavy_tails": heavy_tails,
}
FINITE = ("gaussian", "scaled_rows", "many_exceptions", "heavy_tails")

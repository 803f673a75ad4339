# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Which kernel multiplies: chosen by layout, shape, tokens and device."""

from __future__ import annotations

from collections.abc import Sequence

import torch

GENERIC_TOKENS = 64  # more are decoded once and multiplied by torch: there the decoded matrix is read often enough


def choose(meta: Sequence[int], tokens: int, device: torch.device) -> str:
    """Return the name of the kernel for mode ``fast``.

    Parameters
    ----------
    meta
        The seven integers of a pack.
    tokens
        Rows of x, at least 1.
    device
        A CUDA device.

    Returns
    -------
    str
        ``generic`` (runs everywhere) or ``decode`` (to bf16, then torch's product).
    """
    del meta, device
    return "generic" if tokens <= GENERIC_TOKENS else "decode"

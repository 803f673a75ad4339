# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Which GPUs a model fits: from its configuration and the headers of its weight files."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WeightsFit:
    """The weights of a model in one form.

    Attributes
    ----------
    layout
        "bf16", "mma12" or "tiered".
    nbytes
        Bytes of all tensors; a little more than they will be where it is an estimate.
    basis
        Where the size is from: "headers" (exact) or "estimate", and what that rests on.
    overhead_nbytes
        What running takes besides weights and KV cache, at the context of the report.
    total_nbytes
        Weights, KV cache and overhead; None when the configuration does not give the last two.
    """

    layout: str
    nbytes: int
    basis: str
    overhead_nbytes: int | None
    total_nbytes: int | None


@dataclass(frozen=True, slots=True)
class GpuFit:
    """A GPU beside a model.

    Attributes
    ----------
    name
        Of the GPU, or the size asked for.
    nbytes
        Its memory.
    max_context
        By layout, the largest context that fits with one sequence: 0 when not even 16 tokens
        do, None when it cannot be said.
    fits
        By layout, whether the context of the report fits; None when it cannot be said.
    """

    name: str
    nbytes: int
    max_context: dict[str, int | None]
    fits: dict[str, bool | None]


@dataclass(frozen=True, slots=True)
class FitReport:
    """What `fit` found.

    Attributes
    ----------
    model
        As it was named.
    packed
        Layout of a packed model, else None.
    n_parameters
        Elements of all tensors of the original.
    dtypes
        Bytes of the original's tensors by element type.
    context, max_context
        Tokens that the sizes are for, and that the model was made for (None: not known).
    kv_token_nbytes
        KV cache of one more token, once windows are full; None when the configuration does not say.
    kv_nbytes
        KV cache of one sequence of ``context`` tokens.
    kv_basis
        What that was derived from.
    weights
        By layout: "bf16", "mma12" and "tiered".
    gpus
        The GPU asked for, or common ones.
    notes
        What one should know, in sentences.
    """

    model: str
    packed: str | None
    n_parameters: int
    dtypes: dict[str, int]
    context: int
    max_context: int | None
    kv_token_nbytes: int | None
    kv_nbytes: int | None
    kv_basis: str | None
    weights: dict[str, WeightsFit]
    gpus: tuple[GpuFit, ...]
    notes: tuple[str, ...]


def fit(
    model: str | os.PathLike[str],
    *,
    gpu: str | int | None = None,
    context: int | None = None,
    revision: str | None = None,
    token: str | bool | None = None,
) -> FitReport:
    """Say what a model takes, and which GPUs it fits, without its weights.

    Parameters
    ----------
    model
        A directory, packed or not, or one weight file; the URL of either; or the name of a
        model of the Hugging Face hub.
    gpu
        A name ("H100", "RTX 4090"), a size ("48GB", "80GiB") or bytes; None: common GPUs.
    context
        Tokens of one sequence; None: 8192, or what the model was made for if that is less.
    revision, token
        Of the hub. Its environment variables count: HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE.

    Returns
    -------
    FitReport
        Sizes of weights, KV cache and overhead, and the GPUs.

    Raises
    ------
    FormatError
        A header, the index or the configuration is broken.
    ParameterError
        An argument is outside its range, or the model has no safetensors files.
    OSError
        A file or server cannot be read.

    Notes
    -----
    Reads headers and configuration only: two requests a weight file at most. Estimates are
    high rather than low: what is said to fit has 4% of the memory to spare.
    """
    from glyd_codec._models._fitting import fit_model  # noqa: PLC0415

    return fit_model(os.fspath(model), gpu, context, revision, token)

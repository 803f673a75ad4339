# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Calls of the products that have configurations: streaming, ring, pair and staged (docs/gpu.md, "Product kernels")."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from glyd_gpu._errors import ParameterError
from glyd_gpu._library import call, load
from glyd_gpu._routes import Route

COUNTERS_NBYTES = 1 << 20  # zero before the first launch, and left so by every launch

AHEAD = 2  # dependent launch that reads a pack before the kernel ahead has ended

# pack → version and device address at which some product has read it: what was written before that has long been there
_settled: WeakIdKeyDictionary = WeakIdKeyDictionary()

# (device, stream) → capture, workspace. A captured graph zeroes the counters of its own when it is replayed.
_workspaces: dict[tuple[int, int], tuple[int, torch.Tensor]] = {}


@functools.lru_cache(maxsize=4096)
def _config(kernel: str, numbers: tuple[int, ...], meta: tuple[int, ...], tokens: int) -> tuple[Any, int]:
    """Return a configuration as launchers take it, and the bytes of workspace that the kernel needs."""
    config = (ctypes.c_int32 * len(numbers))(*numbers)
    if kernel == "staged":
        nbytes = load().glyd_gpu_product_staged_workspace(meta[1], meta[2], tokens, config)
    elif kernel in ("ring", "split", "pair"):
        workspace = getattr(load(), f"glyd_gpu_product_{kernel}_workspace")
        nbytes = workspace((ctypes.c_int64 * 7)(*meta), tokens, config)
    else:
        nbytes = 0
    return config, max(0, nbytes)


def _workspace(device: torch.device, stream: int, nbytes: int) -> torch.Tensor:
    """Return memory whose first MiB is zero, for one launch at a time: those of a stream follow one another."""
    key = (device.index or 0, stream)
    capture = load().glyd_gpu_capture_id(stream)
    known = _workspaces.get(key)
    if known is not None and known[0] == capture and known[1].numel() >= nbytes:
        return known[1]
    workspace = torch.empty(nbytes, dtype=torch.uint8, device=device)
    workspace[:COUNTERS_NBYTES].zero_()
    _workspaces[key] = capture, workspace
    return workspace


def _is_settled(pack: torch.Tensor) -> bool:
    """Say whether a product read this pack before: the kernel ahead may then be reading it, but not writing."""
    if pack.is_inference():  # has no version: what writes to it goes unseen
        return False
    state = (pack._version, pack.data_ptr())
    if _settled.get(pack) == state:
        return True
    _settled[pack] = state
    return False


def product(
    route: Route,
    x: torch.Tensor,
    pack: torch.Tensor,
    rows: int,
    bias: torch.Tensor | None,
    known: Any,
    stream: int,
    out: torch.Tensor | None = None,
    *,
    early: bool = True,
) -> torch.Tensor:
    """Return x · Wᵀ + bias [tokens, rows].

    Parameters
    ----------
    route
        ``stream``, ``ring``, ``pair``, ``staged`` or ``split`` with its configuration.
    x
        [tokens, cols] bf16, contiguous, at least one token.
    pack
        The pack, on the current device.
    rows
        Rows of the packed matrix.
    bias
        [rows] bf16, contiguous, or None.
    known
        Meta as launchers take it.
    stream
        The current stream.
    out
        [tokens, rows] bf16, contiguous, to write to; None: new memory.
    early
        Launch while the kernel ahead still runs, where the route says so.

    Raises
    ------
    CudaError
        The configuration was not compiled or does not take this pack, or the launch failed.
    """
    if x.data_ptr() % 16:  # a view into the middle of something
        x = x.clone()
    numbers = route.config
    if not early:
        numbers = (*numbers[:-1], 0)
    elif not _is_settled(pack) and numbers[-1] == AHEAD:
        numbers = (*numbers[:-1], 1)
    config, nbytes = _config(route.kernel, numbers, tuple(known), x.shape[0])
    if out is None:
        out = torch.empty((x.shape[0], rows), dtype=torch.bfloat16, device=x.device)
    arguments = (
        out.data_ptr(),
        x.data_ptr(),
        x.shape[0],
        None if bias is None else bias.data_ptr(),
        pack.data_ptr(),
        pack.numel(),
        known,
    )
    if route.kernel == "stream":
        call("glyd_gpu_product_stream", *arguments, config, stream)
        return out
    workspace = _workspace(pack.device, stream, nbytes) if nbytes else None
    at = None if workspace is None else workspace.data_ptr()
    call(f"glyd_gpu_product_{route.kernel}", *arguments, at, nbytes, config, stream)
    return out


def product_plain(
    route: Route, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stream: int
) -> torch.Tensor:
    """Return x · Wᵀ + bias [tokens, rows] of plain weights with the bits that the packed product of a route has.

    Parameters
    ----------
    route
        ``staged`` with its configuration.
    x
        [tokens, cols] bf16, contiguous, at least one token.
    weight
        [rows, cols] bf16, contiguous, on the current device.
    bias
        [rows] bf16, contiguous, or None.
    stream
        The current stream.

    Raises
    ------
    ParameterError
        Another route: only the staged kernel takes plain weights.
    CudaError
        The configuration was not compiled or does not take this matrix, or the launch failed.
    """
    if route.kernel != "staged":
        raise ParameterError(f"{route}: plain weights are for a staged route")
    if x.data_ptr() % 16:
        x = x.clone()
    rows, cols = weight.shape
    numbers = (*route.config[:-1], min(route.config[-1], 1))  # weights may have been written just before
    config, nbytes = _config(route.kernel, numbers, (0, rows, cols), x.shape[0])
    out = torch.empty((x.shape[0], rows), dtype=torch.bfloat16, device=x.device)
    workspace = _workspace(weight.device, stream, nbytes) if nbytes else None
    call(
        "glyd_gpu_product_plain",
        out.data_ptr(),
        x.data_ptr(),
        x.shape[0],
        None if bias is None else bias.data_ptr(),
        weight.data_ptr(),
        rows,
        cols,
        None if workspace is None else workspace.data_ptr(),
        nbytes,
        config,
        stream,
    )
    return out

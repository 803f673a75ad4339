# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The operators on CUDA devices: kernels of this package, on the current stream of the tensors' device.

Nothing here waits for the device but ``pack``, which must know its size.
``meta`` is trusted no more than a pack: the library checks that its sections
lie inside of the tensor, and kernels clamp what they read from the pack to its
sections. A pack that lies gives wrong values, as a checkpoint with wrong values
does, but no access outside; `verify_packs` finds it when a model is loaded.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

from glyd_gpu import _products, _routes, _same_order
from glyd_gpu._errors import CudaError, ParameterError, UnsupportedDeviceError
from glyd_gpu._library import call, load
from glyd_gpu._meta import LAYOUTS, PackedMeta
from glyd_gpu._ops import (
    EXACT,
    FAST,
    SAME,
    check_embedding,
    check_experts,
    check_linear,
    check_pack,
    check_weight,
    held_product,
    library,
)

GENERIC_TOKENS = 64  # kTokensMax of linear_generic.cu
OLDEST = (8, 0)  # mma.sync with bf16


@functools.lru_cache(maxsize=4096)
def _meta_array(meta: tuple[int, ...]) -> Any:
    PackedMeta.from_list(meta)
    return (ctypes.c_int64 * 7)(*meta)


@functools.cache
def check_cuda(index: int) -> None:
    capability = torch.cuda.get_device_capability(index)
    if capability < OLDEST:
        raise UnsupportedDeviceError(
            f"{torch.cuda.get_device_name(index)} is sm_{capability[0]}{capability[1]}; packed weights need sm_80 or newer"
        )


class _launch:  # noqa: N801  used like a function; a generator would cost several microseconds a call
    """Make the device current, as launchers need; give meta as they take it, and the stream."""

    __slots__ = ("guard", "index", "known")

    def __init__(self, device: torch.device, meta: Sequence[int]) -> None:
        self.known = _meta_array(tuple(meta))
        current = torch.cuda.current_device()
        self.index = current if device.index is None else device.index
        check_cuda(self.index)
        self.guard = None if self.index == current else torch.cuda.device(self.index)

    def __enter__(self) -> tuple[Any, int]:
        if self.guard is not None:
            self.guard.__enter__()
        return self.known, torch.cuda.current_stream(self.index).cuda_stream

    def __exit__(self, *args: object) -> None:
        if self.guard is not None:
            self.guard.__exit__(*args)


def _pack_args(pack: torch.Tensor) -> tuple[int, int]:
    return pack.data_ptr(), pack.numel()


def unpack(pack: torch.Tensor, meta: Sequence[int]) -> torch.Tensor:
    """Return the bf16 matrix [rows, cols] of a pack."""
    check_pack(pack, meta)
    with _launch(pack.device, meta) as (known, stream):
        out = torch.empty((meta[1], meta[2]), dtype=torch.bfloat16, device=pack.device)
        call("glyd_gpu_unpack", out.data_ptr(), *_pack_args(pack), known, 0, meta[1], stream)
    return out


def check_rules(pack: torch.Tensor, meta: Sequence[int]) -> torch.Tensor:
    """Return the breaches of a pack's rules [bits, first row block], int32 on the device."""
    check_pack(pack, meta)
    with _launch(pack.device, meta) as (known, stream):
        out = torch.empty(2, dtype=torch.int32, device=pack.device)
        call("glyd_gpu_check_pack", out.data_ptr(), *_pack_args(pack), known, stream)
    return out


def _generic(
    x: torch.Tensor,
    pack: torch.Tensor,
    bias: torch.Tensor | None,
    known: Any,
    stream: int,
    out: torch.Tensor,
) -> None:
    """Multiply from the packed form on any architecture, 64 tokens at a time."""
    tokens = x.shape[0]
    nbytes = load().glyd_gpu_linear_generic_workspace(min(tokens, GENERIC_TOKENS), known)
    workspace = torch.empty(nbytes, dtype=torch.uint8, device=x.device)
    bias_at = None if bias is None else bias.data_ptr()
    for first in range(0, tokens, GENERIC_TOKENS):
        part, y = x[first : first + GENERIC_TOKENS], out[first : first + GENERIC_TOKENS]
        call(
            "glyd_gpu_linear_generic",
            y.data_ptr(),
            part.data_ptr(),
            part.shape[0],
            bias_at,
            *_pack_args(pack),
            known,
            workspace.data_ptr(),
            nbytes,
            stream,
        )


def _as_torch(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, out: torch.Tensor) -> None:
    """Write the bits of `torch.nn.functional.linear` to ``out``, without a copy where x is [tokens, cols]."""
    if x.dim() != 2:
        out.copy_(F.linear(x, weight, bias))
    elif bias is None:
        torch.mm(x, weight.t(), out=out)
    else:
        torch.addmm(bias, x, weight.t(), out=out)


def _same(
    x: torch.Tensor, pack: torch.Tensor, meta: Sequence[int], bias: torch.Tensor | None, known: Any, stream: int
) -> torch.Tensor:
    """Multiply with the bits that plain weights have in `_same_order`: tiered, and many tokens, by decoding first."""
    bias = None if bias is None else bias.contiguous()
    if meta[0] == LAYOUTS["mma12"] and x.shape[0] <= _same_order.LARGEST:
        return _same_order.packed(x, pack, meta[1], bias, known, stream)
    return _same_order.plain(x, unpack(pack, meta), bias, stream)


def _multiply(
    x: torch.Tensor,
    pack: torch.Tensor,
    meta: Sequence[int],
    bias: torch.Tensor | None,
    mode: int,
    out: torch.Tensor,
    *,
    early: bool = True,
) -> None:
    """Write x · Wᵀ + bias to ``out`` [..., rows], contiguous; x has at least one value."""
    with _launch(pack.device, meta) as (known, stream):
        flat, y = x.reshape(-1, meta[2]).contiguous(), out.view(-1, meta[1])
        if mode == SAME:
            y.copy_(_same(flat, pack, meta, bias, known, stream))
            return
        route = _routes.choose(meta, flat.shape[0], pack.device) if mode == FAST else _routes.Route("generic")
        bias = None if bias is None else bias.contiguous()
        if route.config:
            _products.product(route, flat, pack, meta[1], bias, known, stream, y, early=early)
        elif route.kernel == "decode":
            _as_torch(flat, unpack(pack, meta), bias, y)
        else:
            _generic(flat, pack, bias, known, stream, y)


def linear(
    x: torch.Tensor, pack: torch.Tensor, meta: Sequence[int], bias: torch.Tensor | None, mode: int
) -> torch.Tensor:
    """Return x · Wᵀ + bias [..., rows] of x [..., cols], all bf16."""
    check_linear(x, pack, meta, bias, mode)
    if mode == EXACT and x.numel():
        # the shape that the layer would see: torch may choose its product by it
        return F.linear(x, unpack(pack, meta), bias)
    out = x.new_empty((*x.shape[:-1], meta[1]))
    if x.numel():
        _multiply(x, pack, meta, bias, mode, out)
    return out


def linear_held(
    x: torch.Tensor, pack: torch.Tensor, held: torch.Tensor, bias: torch.Tensor | None, out: torch.Tensor
) -> None:
    """Write the product of a layer of an engine to ``out``."""
    meta, mode, plain = held_product(x, pack, held, out)
    if plain is not None:
        _as_torch(x, plain, bias, out)
        return
    check_linear(x, pack, meta, bias, mode)
    if mode == EXACT and x.numel():
        _as_torch(x, unpack(pack, meta), bias, out)
    elif x.numel():
        # kernels of others stand between the products of an engine, which never say that a dependent one may begin; and a
        # graph with such launches starts every kernel later: measured, docs/vllm.md
        _multiply(x, pack, meta, bias, mode, out, early=False)


def linear_experts(
    x: torch.Tensor, experts: torch.Tensor, pack: torch.Tensor, meta: Sequence[int], size: int
) -> torch.Tensor:
    """Return row s of x [slots, cols] times the matrix of expert ``experts[s]``, [slots, size]: nothing is decoded."""
    check_experts(x, experts, pack, meta, size)
    slots = x.shape[0]
    out = torch.empty((slots, size), dtype=torch.bfloat16, device=x.device)
    if not slots:
        return out
    x, experts = x.contiguous(), experts.contiguous()
    with _launch(pack.device, meta) as (known, stream):
        nbytes = load().glyd_gpu_linear_experts_workspace(slots, size, known)
        if nbytes < 0:
            raise CudaError(f"glyd_gpu_linear_experts: status {-nbytes}, for {slots} slots", found=nbytes)
        workspace = torch.empty(nbytes, dtype=torch.uint8, device=x.device)
        call(
            "glyd_gpu_linear_experts",
            out.data_ptr(),
            x.data_ptr(),
            experts.data_ptr(),
            experts.element_size(),
            slots,
            size,
            *_pack_args(pack),
            known,
            workspace.data_ptr(),
            nbytes,
            stream,
        )
    return out


def embedding(ids: torch.Tensor, pack: torch.Tensor, meta: Sequence[int]) -> torch.Tensor:
    """Return rows of a packed table [..., cols] for ids [...]; only their tiles are read.

    An id outside of the table is a device-side assert, as in `torch.nn.functional.embedding`.
    """
    check_embedding(ids, pack, meta)
    out = torch.empty((*ids.shape, meta[2]), dtype=torch.bfloat16, device=pack.device)
    if not out.numel():
        return out
    flat = ids.contiguous()
    with _launch(pack.device, meta) as (known, stream):
        call(
            "glyd_gpu_embedding",
            out.data_ptr(),
            flat.data_ptr(),
            flat.numel(),
            flat.element_size(),
            *_pack_args(pack),
            known,
            stream,
        )
    return out


def pack(weight: torch.Tensor, layout: int) -> torch.Tensor:
    """Return the pack of a bf16 matrix, or an empty tensor when packing does not pay; waits for the plan."""
    check_weight(weight)
    if layout not in LAYOUTS.values():
        raise ParameterError(f"layout is {layout}; there are {', '.join(f'{v} ({k})' for k, v in LAYOUTS.items())}")
    device = weight.device
    nothing = torch.empty(0, dtype=torch.uint8, device=device)
    rows, cols = weight.shape
    if not weight.numel():
        return nothing
    source = weight.detach().contiguous()
    start = PackedMeta(layout, rows, cols)
    bound = rows * cols * 2 // 16 * 15
    if start.nbytes > bound:
        return nothing
    with _launch(device, start.as_list()) as (known, stream):
        n_plan = load().glyd_gpu_plan_nbytes(known)
        if n_plan < 0:
            raise CudaError(f"glyd_gpu_plan_nbytes: status {-n_plan}", found=n_plan)
        plan = torch.empty(n_plan, dtype=torch.uint8, device=device)
        exc_index = torch.empty(start.row_blocks * (start.tiles + 1), dtype=torch.int32, device=device)
        totals = torch.empty(4, dtype=torch.int64, device=device)
        call(
            "glyd_gpu_plan",
            plan.data_ptr(),
            n_plan,
            exc_index.data_ptr(),
            exc_index.numel() * 4,
            totals.data_ptr(),
            source.data_ptr(),
            known,
            stream,
        )
        units, exceptions, tile_units, block_max = totals.tolist()
        meta = PackedMeta(layout, rows, cols, units, exceptions, tile_units * 16, block_max)
        if meta.nbytes > bound:
            return nothing
        out = torch.empty(meta.nbytes, dtype=torch.uint8, device=device)
        call(
            "glyd_gpu_pack",
            out.data_ptr(),
            meta.nbytes,
            plan.data_ptr(),
            exc_index.data_ptr(),
            source.data_ptr(),
            _meta_array(tuple(meta.as_list())),
            stream,
        )
    return out


library.impl("linear", linear, "CUDA")
library.impl("linear_held", linear_held, "CUDA")
library.impl("linear_experts", linear_experts, "CUDA")
library.impl("unpack", unpack, "CUDA")
library.impl("embedding", embedding, "CUDA")
library.impl("check_pack", check_rules, "CUDA")
library.impl("pack", pack, "CUDA")

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Operators of packed matrices: schemas, fakes and gradients. Backends register their kernels.

``pack`` is a one-dimensional uint8 tensor, ``meta`` the seven integers of
`PackedMeta.as_list`. Everything that an operator needs to know on the host is
in ``meta``, so none of them waits for the device (but ``pack``, whose size
depends on the weights).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

from glyd_gpu._errors import ShapeError
from glyd_gpu._meta import BLOCK_ROWS

FAST, EXACT, INVARIANT, SAME = 0, 1, 2, 3
MODES = {"fast": FAST, "exact": EXACT, "invariant": INVARIANT, "same": SAME}

library = torch.library.Library("glyd", "DEF")
library.define(
    "linear(Tensor x, Tensor pack, int[] meta, Tensor? bias, int mode) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,)
)
library.define(
    "linear_experts(Tensor x, Tensor experts, Tensor pack, int[] meta, int size) -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag,),
)
library.define("unpack(Tensor pack, int[] meta) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
library.define("embedding(Tensor ids, Tensor pack, int[] meta) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
library.define("check_pack(Tensor pack, int[] meta) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
library.define("pack(Tensor weight, int layout) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
# For engines that compile a model once and keep what they compiled: a graph that holds these knows shapes only,
# so layers of one shape share it, and it stays right for other weights, layouts and modes. `held` has the seven
# integers of meta and the mode, on the CPU; layout 0 says that the bytes of `pack` are the bf16 matrix itself.
# The product goes into `out`: what an operator with an argument on the CPU returns, Inductor takes to be unaligned, and
# kernels that read it then load value by value.
library.define(
    "linear_held(Tensor x, Tensor pack, Tensor held, Tensor? bias, Tensor(a!) out) -> ()",
    tags=(torch.Tag.pt2_compliant_tag,),
)
library.define(
    "embedding_held(Tensor ids, Tensor pack, Tensor held, int cols) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,)
)


# ---- what every backend checks ----------------------------------------------


def check_pack(pack: torch.Tensor, meta: Sequence[int]) -> None:
    """Check type and rank of a pack, and the number of integers of its meta.

    Raises
    ------
    ShapeError
        With what was expected and found.
    """
    if pack.dtype != torch.uint8 or pack.dim() != 1 or not pack.is_contiguous():
        raise ShapeError(
            f"a pack is a contiguous one-dimensional tensor of torch.uint8, not {tuple(pack.shape)} of {pack.dtype}"
        )
    if len(meta) != 7:
        raise ShapeError(f"meta has 7 integers, not {len(meta)}", expected=7, found=len(meta))


def check_linear(
    x: torch.Tensor, pack: torch.Tensor, meta: Sequence[int], bias: torch.Tensor | None, mode: int
) -> None:
    """Check types, shapes and devices of the arguments of ``linear``.

    Raises
    ------
    ShapeError
        With what was expected and found.
    """
    check_pack(pack, meta)
    rows, cols = meta[1], meta[2]
    if x.dtype != torch.bfloat16:
        raise ShapeError(f"packed weights are bf16 and so must x be: it is {x.dtype}; convert it with x.bfloat16()")
    if x.dim() < 1 or x.shape[-1] != cols:
        raise ShapeError(f"x is {tuple(x.shape)}, the matrix takes {cols} features: the last dimension must be that")
    if x.device != pack.device:
        raise ShapeError(f"x is on {x.device}, the pack on {pack.device}")
    if bias is not None:
        if bias.dtype != torch.bfloat16 or tuple(bias.shape) != (rows,):
            raise ShapeError(f"bias is {tuple(bias.shape)} of {bias.dtype}, not ({rows},) of torch.bfloat16")
        if bias.device != pack.device:
            raise ShapeError(f"bias is on {bias.device}, the pack on {pack.device}")
    if mode not in MODES.values():
        raise ShapeError(f"mode is {mode}; there are {', '.join(f'{v} ({k})' for k, v in MODES.items())}")


def check_experts(x: torch.Tensor, experts: torch.Tensor, pack: torch.Tensor, meta: Sequence[int], size: int) -> None:
    """Check types, shapes and devices of the arguments of ``linear_experts``.

    Raises
    ------
    ShapeError
        With what was expected and found.
    """
    check_linear(x, pack, meta, None, FAST)
    if x.dim() != 2 or tuple(experts.shape) != (x.shape[0],) or experts.dtype not in {torch.int32, torch.int64}:
        raise ShapeError(
            f"x is {tuple(x.shape)} and experts {tuple(experts.shape)} of {experts.dtype}, not [slots, cols] and [slots] "
            "of torch.int32 or torch.int64"
        )
    if experts.device != pack.device:
        raise ShapeError(f"experts are on {experts.device}, the pack on {pack.device}")
    if size < 1 or size % BLOCK_ROWS or meta[1] % size:
        raise ShapeError(
            f"experts of {size} rows: they must be whole blocks of {BLOCK_ROWS}, and divide {meta[1]} rows"
        )


def check_embedding(ids: torch.Tensor, pack: torch.Tensor, meta: Sequence[int]) -> None:
    """Check types and devices of the arguments of ``embedding``.

    Raises
    ------
    ShapeError
        With what was expected and found.
    """
    check_pack(pack, meta)
    if ids.dtype not in {torch.int32, torch.int64}:
        raise ShapeError(f"ids are {ids.dtype}, not torch.int32 or torch.int64")
    if ids.device != pack.device:
        raise ShapeError(f"ids are on {ids.device}, the pack on {pack.device}")


def check_weight(weight: torch.Tensor) -> None:
    """Check type and rank of the argument of ``pack``.

    Raises
    ------
    ShapeError
        With what was expected and found.
    """
    if weight.dtype != torch.bfloat16 or weight.dim() != 2:
        raise ShapeError(f"only matrices of torch.bfloat16 are packed, not {tuple(weight.shape)} of {weight.dtype}")


# ---- shapes, for tracing ------------------------------------------------------


def _fake_linear(
    x: torch.Tensor, pack: torch.Tensor, meta: Sequence[int], bias: torch.Tensor | None, mode: int
) -> torch.Tensor:
    check_linear(x, pack, meta, bias, mode)
    return x.new_empty((*x.shape[:-1], meta[1]))


def _fake_linear_experts(
    x: torch.Tensor, experts: torch.Tensor, pack: torch.Tensor, meta: Sequence[int], size: int
) -> torch.Tensor:
    check_experts(x, experts, pack, meta, size)
    return x.new_empty((x.shape[0], size))


def _fake_unpack(pack: torch.Tensor, meta: Sequence[int]) -> torch.Tensor:
    check_pack(pack, meta)
    return pack.new_empty((meta[1], meta[2]), dtype=torch.bfloat16)


def _fake_embedding(ids: torch.Tensor, pack: torch.Tensor, meta: Sequence[int]) -> torch.Tensor:
    check_embedding(ids, pack, meta)
    return pack.new_empty((*ids.shape, meta[2]), dtype=torch.bfloat16)


def _fake_check_pack(pack: torch.Tensor, meta: Sequence[int]) -> torch.Tensor:
    check_pack(pack, meta)
    return pack.new_empty((2,), dtype=torch.int32)


def _fake_pack(weight: torch.Tensor, layout: int) -> torch.Tensor:
    check_weight(weight)
    del layout  # its size depends on the weights
    nbytes = torch.library.get_ctx().new_dynamic_size()
    return weight.new_empty((nbytes,), dtype=torch.uint8)


def _fake_linear_held(
    x: torch.Tensor, pack: torch.Tensor, held: torch.Tensor, bias: torch.Tensor | None, out: torch.Tensor
) -> None:
    del x, pack, held, bias, out


def _fake_embedding_held(ids: torch.Tensor, pack: torch.Tensor, held: torch.Tensor, cols: int) -> torch.Tensor:
    del held
    return pack.new_empty((*ids.shape, cols), dtype=torch.bfloat16)


torch.library.register_fake("glyd::linear_held", _fake_linear_held, lib=library)
torch.library.register_fake("glyd::embedding_held", _fake_embedding_held, lib=library)
torch.library.register_fake("glyd::linear", _fake_linear, lib=library)
torch.library.register_fake("glyd::linear_experts", _fake_linear_experts, lib=library)
torch.library.register_fake("glyd::unpack", _fake_unpack, lib=library)
torch.library.register_fake("glyd::embedding", _fake_embedding, lib=library)
torch.library.register_fake("glyd::check_pack", _fake_check_pack, lib=library)
torch.library.register_fake("glyd::pack", _fake_pack, lib=library)


# ---- what does not depend on the backend ---------------------------------------


def held_meta(meta: Sequence[int] | None, rows: int, cols: int, mode: int) -> torch.Tensor:
    """Return the tensor ``held`` of a pack, or of a plain bf16 matrix where meta is None."""
    return torch.tensor([*(meta or (0, rows, cols, 0, 0, 0, 0)), mode], dtype=torch.int64, device="cpu")


def held_plain(pack: torch.Tensor, meta: Sequence[int]) -> torch.Tensor:
    """Return the bf16 matrix whose bytes lie in place of a pack.

    Raises
    ------
    ShapeError
        There are too few bytes.
    """
    _, rows, cols = meta[:3]
    if pack.dtype != torch.uint8 or pack.numel() < 2 * rows * cols:
        raise ShapeError(f"{rows} × {cols} bf16 weights are {2 * rows * cols} bytes, not {pack.numel()} {pack.dtype}")
    return pack[: 2 * rows * cols].view(torch.bfloat16).view(rows, cols)


def held_product(
    x: torch.Tensor, pack: torch.Tensor, held: torch.Tensor, out: torch.Tensor
) -> tuple[list[int], int, torch.Tensor | None]:
    """Check the arguments of ``linear_held``; return meta, mode, and the matrix where it is plain.

    Raises
    ------
    ShapeError
        With what was expected and found.
    """
    *meta, mode = held.tolist()
    if out.dtype != torch.bfloat16 or not out.is_contiguous() or out.device != pack.device:
        raise ShapeError(f"out is {out.dtype} on {out.device}, and must be contiguous torch.bfloat16 on {pack.device}")
    if out.dim() < 1 or out.shape[-1] != meta[1]:
        raise ShapeError(
            f"the layer has {out.shape[-1] if out.dim() else 0} rows, its pack {meta[1]}",
            expected=meta[1],
            found=out.shape[-1] if out.dim() else 0,
        )
    if out.shape[:-1] != x.shape[:-1]:
        raise ShapeError(f"x is {tuple(x.shape)}, out {tuple(out.shape)}: all but the last dimension must be the same")
    return meta, mode, None if meta[0] else held_plain(pack, meta)


def _linear_held(
    x: torch.Tensor, pack: torch.Tensor, held: torch.Tensor, bias: torch.Tensor | None, out: torch.Tensor
) -> None:
    meta, mode, plain = held_product(x, pack, held, out)
    out.copy_(torch.ops.glyd.linear(x, pack, meta, bias, mode) if plain is None else F.linear(x, plain, bias))


def _embedding_held(ids: torch.Tensor, pack: torch.Tensor, held: torch.Tensor, cols: int) -> torch.Tensor:
    *meta, _ = held.tolist()
    if meta[2] != cols:
        raise ShapeError(f"the table has {cols} columns, its pack {meta[2]}", expected=cols, found=meta[2])
    if meta[0] == 0:
        return F.embedding(ids, held_plain(pack, meta))
    rows: torch.Tensor = torch.ops.glyd.embedding(ids, pack, meta)
    return rows


library.impl("linear_held", _linear_held, "CompositeExplicitAutograd")
library.impl("embedding_held", _embedding_held, "CompositeExplicitAutograd")


# ---- gradients: of activations and bias; packed weights are constants ---------


def _keep_for_backward(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    del output
    x, pack, meta, bias, _ = inputs
    ctx.save_for_backward(pack)
    ctx.meta = list(meta)
    ctx.dims = x.dim()
    ctx.has_bias = bias is not None


def _linear_backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
    (pack,) = ctx.saved_tensors
    grad_x = grad_bias = None
    if ctx.needs_input_grad[0]:
        grad_x = grad @ torch.ops.glyd.unpack(pack, ctx.meta)
    if ctx.has_bias and ctx.needs_input_grad[3]:
        grad_bias = grad.sum(dim=tuple(range(ctx.dims - 1))) if ctx.dims > 1 else grad
    return grad_x, None, None, grad_bias, None


torch.library.register_autograd("glyd::linear", _linear_backward, setup_context=_keep_for_backward, lib=library)

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Putting loaded tensors together to packed parameters."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any

import torch
from torch import nn

from glyd_gpu._errors import CorruptDataError, ShapeError
from glyd_gpu._meta import ALIGN, LAYOUTS, PackedMeta
from glyd_gpu._plan import Group, Plan
from glyd_gpu._tensors import PackedTensor, Piece
from glyd_gpu.modules import install


def assemble(
    model: nn.Module, plan: Plan, group: Group, tensors: dict[str, torch.Tensor], loading_info: Any
) -> dict[str, torch.Tensor]:
    """Return the loaded parameters of a group.

    Parameters
    ----------
    model
        That is being loaded; its modules learn what their buffers hold.
    plan, group
        What the tensors are for.
    tensors
        The loaded tensors by their names in the files: bytes of packs, or weights.
    loading_info
        Of transformers: what is still missing.
    """
    if group.order is None:
        return _converted(model, plan, group, tensors, loading_info)
    parts = [tensors.pop(group.sources[i].key) for i in group.order]
    pieces, buffers = [], []
    at = 0
    for i, part in zip(group.order, parts, strict=True):
        source = group.sources[i]
        expected = {torch.uint8} if source.meta else {torch.bfloat16, torch.float32}
        if part.dtype not in expected:
            raise ShapeError(f"{source.key} was loaded as {part.dtype}, not {' or '.join(map(str, expected))}")
        data, meta = (part, source.meta) if source.meta else packed_or_plain(part, plan.layout)
        values = tuple(meta.as_list()) if meta else None
        nbytes = meta.nbytes if meta else data.numel()
        pieces.append(Piece(at, nbytes, values, source.rows, source.name, source.shape))
        buffers.append(data)
        at += -(-nbytes // ALIGN) * ALIGN
    tensor = PackedTensor(group.shape, tuple(pieces))
    for module, name in group.owners:
        module.glyd_tensors[name] = tensor
    return {group.key: joined(tensor, buffers)}


def joined(tensor: PackedTensor, buffers: list[torch.Tensor]) -> torch.Tensor:
    """Return one buffer of the bytes of all pieces."""
    if len(buffers) == 1:
        return buffers[0].narrow(0, 0, tensor.nbytes)
    out = torch.zeros(tensor.nbytes, dtype=torch.uint8, device=buffers[0].device)
    for piece, data in zip(tensor.pieces, buffers, strict=True):
        out.narrow(0, piece.offset, piece.nbytes).copy_(data.narrow(0, 0, piece.nbytes))
    return out


def packed_or_plain(weights: torch.Tensor, layout: str | None) -> tuple[torch.Tensor, PackedMeta | None]:
    """Return the pack of weights and its meta, or their bytes and None when packing does not pay."""
    matrix = weights.detach().to(torch.bfloat16).reshape(-1, weights.shape[-1]).contiguous()
    if layout is not None:
        data = torch.ops.glyd.pack(matrix, LAYOUTS[layout])
        if data.numel():
            return data, PackedMeta.from_tensor(data)
    return matrix.view(-1).view(torch.uint8), None


def _converted(
    model: nn.Module, plan: Plan, group: Group, tensors: dict[str, torch.Tensor], loading_info: Any
) -> dict[str, torch.Tensor]:
    """Unpack, do what transformers does with plain weights, and pack what comes out where that is allowed."""
    plain = {}
    for source in group.sources:
        data = tensors.pop(source.key)
        if source.meta is not None:
            data = torch.ops.glyd.unpack(data.narrow(0, 0, source.meta.nbytes), source.meta.as_list()).view(
                source.shape
            )
        plain[source.name] = data
    if group.converter is None:
        ((name, value),) = plain.items()
        if value.numel() != math.prod(group.shape):
            raise CorruptDataError(
                f"{name} is {list(value.shape)} in the files, and {list(group.shape)} by config.json: "
                "they are not of one model"
            )
        return _kept(model, {group.target: value.view(group.shape)})
    converter = deepcopy(group.converter)
    for source, pattern in zip(group.sources, group.patterns, strict=True):
        converter.add_tensor(group.target, source.name, pattern, plain.pop(source.name))
    results = converter.convert(
        group.target, model=model, config=getattr(model, "config", None), loading_info=loading_info
    )
    loaded = {name: value[0] if isinstance(value, list) else value for name, value in results.items()}
    layout = next((s.meta.layout_name for s in group.sources if s.meta is not None), plan.layout)
    for name in list(loaded):
        path, _, parameter = name.rpartition(".")
        module = model.get_submodule(path)
        wanted = module._parameters.get(parameter)
        if wanted is None or wanted.dtype != torch.bfloat16 or wanted.shape != loaded[name].shape or wanted.dim() < 2:
            continue
        data, meta = packed_or_plain(loaded[name], layout)
        if meta is None:
            continue
        piece = Piece(0, meta.nbytes, tuple(meta.as_list()), meta.rows, name, tuple(wanted.shape))
        install(module, parameter, PackedTensor(tuple(wanted.shape), (piece,)), data)
        loading_info.missing_keys.discard(name)
        del loaded[name]
    return _kept(model, loaded)


def _kept(model: nn.Module, loaded: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Give weights the type that the model computes with where it is not bf16."""
    kept = list(model._get_dtype_plan(torch.bfloat16)) if hasattr(model, "_get_dtype_plan") else []
    return {
        name: value.float() if value.is_floating_point() and any(part in name for part in kept) else value
        for name, value in loaded.items()
    }

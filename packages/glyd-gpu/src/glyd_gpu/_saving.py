# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What a packed model is saved as: the packs of the checkpoint's own tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from glyd_gpu._merge import unmerged_tensors
from glyd_gpu._meta import ALIGN
from glyd_gpu._tensors import SUFFIX, PackedTensor
from glyd_gpu.modules import PackedModule


def checkpoint_tensors(model: nn.Module) -> tuple[dict[str, torch.Tensor], dict[str, tuple[int, ...]]]:
    """Return what a model is saved as.

    Returns
    -------
    tuple
        The tensors by their names in the checkpoint, packs as uint8 with the suffix; and the
        shapes of packs that stand for more than two dimensions.
    """
    state = dict(model.state_dict())
    packed: dict[str, torch.Tensor] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for path, module in model.named_modules(remove_duplicate=False):
        if not isinstance(module, PackedModule):
            continue
        for name in type(module).glyd_names:
            state.pop(f"{path}.{name}{SUFFIX}" if path else name + SUFFIX, None)
            tensor, data = unmerged_tensors(module, name)
            _add_pieces(packed, shapes, tensor, _here(module, name, data))
    plain = _reverted(model, {key: value for key, value in state.items() if isinstance(value, torch.Tensor)})
    return plain | packed, shapes


def _add_pieces(
    packed: dict[str, torch.Tensor], shapes: dict[str, tuple[int, ...]], tensor: PackedTensor, data: torch.Tensor
) -> None:
    for piece in tensor.pieces:
        part = data.narrow(0, piece.offset, piece.nbytes)
        if piece.meta is None:
            if piece.source not in packed:
                # a copy, as files of weights want tensors that share nothing
                packed[piece.source] = part.view(torch.bfloat16).view(piece.shape).clone()
            continue
        key = piece.source + SUFFIX
        if key in packed:  # tied
            continue
        whole = torch.zeros(-(-piece.nbytes // ALIGN) * ALIGN, dtype=torch.uint8, device=part.device)
        whole[: piece.nbytes] = part
        packed[key] = whole
        if len(piece.shape) > 2:
            shapes[piece.source] = piece.shape


def _here(module: PackedModule, name: str, data: torch.Tensor) -> torch.Tensor:
    """Return the bytes of a parameter, from where accelerate keeps them when they are not on a device."""
    if data.device.type != "meta":
        return data
    hook = getattr(module, "_hf_hook", None)
    for candidate in (hook, *getattr(hook, "hooks", ())):
        weights = getattr(candidate, "weights_map", None)
        if weights is not None:
            found: torch.Tensor = weights[name + SUFFIX]
            return found
    raise RuntimeError(f"{name} of {type(module).__name__} is on no device and nobody keeps it")


def _reverted(model: Any, state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Name and cut tensors that are not packed as the checkpoint did."""
    conversions = getattr(model, "glyd_conversions", None)
    if not conversions:
        return state
    from transformers.core_model_loading import revert_weight_conversion  # noqa: PLC0415 - imports modeling code

    model._weight_conversions = conversions
    try:
        reverted: dict[str, torch.Tensor] = revert_weight_conversion(model, state)
    finally:
        model._weight_conversions = []
    return reverted

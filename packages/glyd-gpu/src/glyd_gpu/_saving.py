# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What a packed model is saved as: the tensors of its checkpoint, packed or not, under their own names."""

from __future__ import annotations

import copy
import json
import os
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

from glyd_gpu._merge import unmerged_tensors
from glyd_gpu._meta import ALIGN, PackedMeta
from glyd_gpu._tensors import SUFFIX, PackedTensor
from glyd_gpu.modules import PackedModule

SHARD_NBYTES = 2 << 30  # of unpacked weights that are in memory at a time, beside the packs


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
                packed[piece.source] = part.view(torch.bfloat16).view(piece.shape).to("cpu", copy=True)
            continue
        key = piece.source + SUFFIX
        if key in packed:  # tied
            continue
        whole = torch.zeros(-(-piece.nbytes // ALIGN) * ALIGN, dtype=torch.uint8)  # on the host: devices are full
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


def write_checkpoint(model: Any, folder: str) -> None:
    """Write the bf16 checkpoint that a packed model stands for: weights, configuration, index.

    Parameters
    ----------
    model
        Packed; it stays as it is.
    folder
        Where; must exist.
    """
    tensors, shapes = checkpoint_tensors(model)
    _separate(tensors, getattr(model, "all_tied_weights_keys", None) or {})
    names = list(tensors)
    shard: dict[str, torch.Tensor] = {}
    shards: list[str] = []
    weight_map: dict[str, str] = {}
    total = nbytes = 0
    for key in names:
        name, value = _plain(key, tensors.pop(key), shapes)
        shard[name] = value
        nbytes += value.numel() * value.element_size()
        if nbytes >= SHARD_NBYTES or key == names[-1]:
            file = f"shard-{len(shards):05d}"
            save_file(shard, os.path.join(folder, file), {"format": "pt"})
            shards.append(file)
            weight_map |= dict.fromkeys(shard, file)
            shard, total, nbytes = {}, total + nbytes, 0
    final = {file: f"model-{i + 1:05d}-of-{len(shards):05d}.safetensors" for i, file in enumerate(shards)}
    if len(shards) == 1:
        final = {shards[0]: "model.safetensors"}
    else:
        index = {"metadata": {"total_size": total}, "weight_map": {k: final[v] for k, v in sorted(weight_map.items())}}
        with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="utf-8") as out:
            out.write(json.dumps(index, indent=2) + "\n")
    for file, name in final.items():
        os.rename(os.path.join(folder, file), os.path.join(folder, name))
    _write_configuration(model, folder)


def _separate(tensors: dict[str, torch.Tensor], tied: dict[str, str]) -> None:
    """Keep one of the names that share a tensor which is not packed, as files of weights hold no tensor twice.

    Parameters
    ----------
    tensors
        By name; changed.
    tied
        Names of parameters that are tied, each to the one that it is tied to.
    """
    seen: dict[tuple[Any, ...], str] = {}
    for key in sorted(tensors, key=lambda name: name in tied):  # what others are tied to comes first
        value = tensors[key]
        if value.numel() == 0 or value.device.type == "meta":
            continue
        place = (value.device, value.untyped_storage().data_ptr())
        if place not in seen:
            seen[place] = key
        elif key in tied:
            del tensors[key]
        else:
            tensors[key] = value.clone()


def _plain(key: str, value: torch.Tensor, shapes: dict[str, tuple[int, ...]]) -> tuple[str, torch.Tensor]:
    if not (key.endswith(SUFFIX) and value.dtype == torch.uint8 and value.dim() == 1):
        return key, value.to("cpu").contiguous()
    name, meta = key.removesuffix(SUFFIX), PackedMeta.from_tensor(value)
    weights: torch.Tensor = torch.ops.glyd.unpack(value[: meta.nbytes], meta.as_list())
    return name, weights.view(shapes.get(name, (meta.rows, meta.cols)))


def _write_configuration(model: Any, folder: str) -> None:
    config = copy.deepcopy(model.config)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    config.architectures = [type(model).__name__]
    config.dtype = "bfloat16"
    config.save_pretrained(folder)
    if model.is_remote_code():
        from transformers.dynamic_module_utils import custom_object_save  # noqa: PLC0415

        custom_object_save(model, folder, config=config)
    if model.can_generate():
        generation = copy.deepcopy(model.generation_config)
        if generation.cache_implementation == "static":  # of this device, not of the model
            generation.cache_implementation = None
        generation.save_pretrained(folder)

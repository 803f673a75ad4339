# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Models of any shape with random weights, made where they run: only a configuration is needed."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import nn

SIGMA = 0.02  # where the configuration names none


def has_weights(path: str) -> bool:
    """Say whether a name is that of a hub or of a directory with weights; a directory with a configuration has none."""
    return not os.path.isdir(path) or any(entry.name.endswith(".safetensors") for entry in os.scandir(path))


@torch.no_grad()
def random_model(config: Any, device: torch.device, seed: int = 1) -> Any:
    """Return a causal language model in bf16 with Gaussian matrices, and ones where a parameter has one dimension.

    Parameters
    ----------
    config
        Of transformers.
    device
        Where weights are drawn and stay.
    seed
        Of the generator; the same weights on the same kind of device.
    """
    from transformers import AutoModelForCausalLM  # noqa: PLC0415

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    generator = torch.Generator(device).manual_seed(seed)
    sigma = float(getattr(config.get_text_config(), "initializer_range", None) or SIGMA)
    made: dict[int, nn.Parameter] = {}
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is None:
                continue
            if id(parameter) not in made:
                value = torch.ones(parameter.shape, dtype=parameter.dtype, device=device)
                if parameter.dim() > 1:
                    value.normal_(0, sigma, generator=generator)
                made[id(parameter)] = nn.Parameter(value, requires_grad=False)
            module._parameters[name] = made[id(parameter)]
    _buffers(model, config, device)
    return model.eval()


def _buffers(model: Any, config: Any, device: torch.device) -> None:
    """Compute what modules compute when they are made: the meta device has no values."""
    for path, module in list(model.named_modules()):
        if any(buffer is not None and buffer.is_meta for buffer in module._buffers.values()):
            parent, _, name = path.rpartition(".")
            with torch.device(device):
                setattr(model.get_submodule(parent), name, type(module)(config=config))
    left = [name for name, buffer in model.named_buffers() if buffer.is_meta]
    if left:
        raise NotImplementedError(
            f"{type(model).__name__} has buffers that are not made from its configuration: {left}"
        )

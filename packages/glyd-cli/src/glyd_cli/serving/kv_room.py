# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""How many tokens of KV cache an amount of memory holds, with all that is allocated beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch

from glyd_cli.machine import PACKED_KV_SHARE

if TYPE_CHECKING:
    from transformers import PreTrainedModel

PAGE = {"plain": 64, "packed": 128}  # tokens; small, since most chats are short; what packs has a size of its own
STEP_TOKENS = {"cpu": 256, "cuda": 4096}  # of prompts a step: what a running answer waits for at most


def kv_room(
    model: PreTrainedModel,
    nbytes: int,
    *,
    kv: Literal["plain", "packed"] = "plain",
    n_slots: int = 0,
    paged: bool = False,
) -> int:
    """Return how many tokens of KV cache an amount of memory holds, with what is allocated beside it.

    Its attention mask has a row for every token of a step and a column for every token of the cache and
    the step, in the model's type, for every kind of attention; some attentions do without, as that on pages, where
    what lies between the products of a step counts instead.
    """
    config = model.config.get_text_config()
    n_step = STEP_TOKENS.get(model.device.type, 256)
    token = kv_bytes_a_token(model)
    if paged:
        wide = int(getattr(config, "intermediate_size", None) or 4 * config.hidden_size)
        between = n_step * (8 * int(config.hidden_size) + 3 * wide) * _element_nbytes(model)
        return max(nbytes - between, 0) // token
    n_kinds = len(set(getattr(config, "layer_types", None) or ["full"]))
    width = n_kinds * n_step * _element_nbytes(model)
    if model.device.type == "cuda":  # a layer's keys and values gathered, and again for every head
        heads = int(config.num_attention_heads)
        groups = heads // int(getattr(config, "num_key_value_heads", None) or heads)
        width += (1 + groups) * token // int(config.num_hidden_layers)
    left = nbytes - n_kinds * n_step * n_step * _element_nbytes(model)
    if kv == "plain":
        return max(left, 0) // (token + width)
    left -= (n_slots + 2) * PAGE["packed"] * token  # pages that are being filled
    return int(max(left, 0) // (PACKED_KV_SHARE * token + width))


def _element_nbytes(model: PreTrainedModel) -> int:
    return int(torch.empty((), dtype=model.dtype).element_size())


def kv_bytes_a_token(model: PreTrainedModel) -> int:
    """Return the bytes that the KV cache takes for one token of all layers."""
    config = model.config.get_text_config()
    heads = int(getattr(config, "num_key_value_heads", None) or config.num_attention_heads)
    size = int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)
    n_values = 2 * int(config.num_hidden_layers) * heads * size
    return n_values * _element_nbytes(model)

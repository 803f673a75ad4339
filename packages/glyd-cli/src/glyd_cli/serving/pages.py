# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The cache of a batch of transformers, as attention on its pages reads it; and which models can attend so."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from transformers.generation.continuous_batching import cache as batch_cache

import glyd_gpu

_KINDS = {"full_attention", "sliding_attention"}
# whose layers with a window attend in the usual way but for it; others have sinks, caps or caches that layers share
_WITH_WINDOWS = {
    "exaone4", "gemma3", "gemma3_text", "ministral", "mistral", "olmo3", "phi3", "qwen2", "qwen3", "starcoder2",
}  # fmt: skip


def why_not(model: Any) -> str | None:
    """Return why a model cannot attend on pages; None: it can."""
    config = model.config.get_text_config()
    if model.dtype != torch.bfloat16:
        return f"it computes in {model.dtype}"
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    windows = getattr(config, "layer_types", None) is None and getattr(config, "sliding_window", None) is not None
    if not kinds <= _KINDS or ((windows or len(kinds) > 1) and config.model_type not in _WITH_WINDOWS):
        return f"its layers are of other kinds: {', '.join(sorted(kinds)) if not windows else 'sliding window'}"
    if getattr(config, "attn_logit_softcapping", None) is not None or getattr(config, "kv_lora_rank", None) is not None:
        return "its attention is of another kind"
    heads = int(config.num_attention_heads)
    channels = int(getattr(config, "head_dim", None) or config.hidden_size // heads)
    if channels % 8 or channels > 256 or heads % int(getattr(config, "num_key_value_heads", None) or heads):
        return f"heads of {channels} channels"
    if not _knows_cache():
        return "this version of transformers keeps its cache in another way"
    if model.config._attn_implementation != "sdpa":  # noqa: SLF001 - no public place for it
        return f"it attends with {model.config._attn_implementation}"  # noqa: SLF001
    return None


def _knows_cache() -> bool:
    """Say whether transformers keeps the cache of a batch as `Pages` reads it."""
    names = set(inspect.unwrap(batch_cache.PagedAttentionCache.__init__).__code__.co_names)
    return "cache_allocators" in names or {"group_cache_managers", "key_cache", "value_cache"} <= names


@dataclass(frozen=True)
class Group:
    """Layers that keep their tokens alike.

    Attributes
    ----------
    tables
        Pages by request.
    page, stride
        Tokens of a page, and slots from one page of a layer to the next.
    window
        Tokens that a layer sees, kept in a ring: token t is at place t modulo the window. 0: it sees all.
    """

    tables: dict[str, list[int]]
    page: int
    stride: int
    window: int

    def width(self, context: int) -> int:
        """Return the pages that a request of so many tokens has at most."""
        return -(-(self.window or context) // self.page) + (not self.window)

    def slots(self, request: str, first: int, end: int) -> torch.Tensor:
        """Return the places of a request's tokens from one number to another."""
        tokens = torch.arange(first, end)
        if self.window:
            tokens %= self.window
        return glyd_gpu.page_slots(torch.tensor(self.tables[request]), tokens, self.page, self.stride)

    def seen(self, n: int) -> int:
        """Return the first of n tokens that the one after them still sees."""
        return max(0, n - self.window + 1) if self.window else 0

    def kept(self, first: int, end: int) -> int:
        """Return the first of these tokens that is kept when all are written."""
        return max(first, end - self.window) if self.window else first


class Pages:
    """The cache of a batch of transformers: tensors of layers, and the pages of requests.

    Attributes
    ----------
    groups
        Layers that keep their tokens alike.
    """

    def __init__(self, cache: Any) -> None:
        self._layers: dict[int, tuple[int, torch.Tensor, torch.Tensor]] = {}
        self.groups: list[Group] = []
        if hasattr(cache, "cache_allocators"):
            for allocator in cache.cache_allocators.values():
                page, stride = allocator.tokens_per_page, allocator.block_physical_stride
                for number, (k, v) in allocator._kv_token_views.items():  # noqa: SLF001 - no public place for them
                    n = min(len(k), len(v))
                    self._layers[number] = len(self.groups), k[:n], v[:n]
                self._add(allocator, page, stride)
        else:
            for manager in cache.group_cache_managers:
                self._add(manager, cache.block_size, cache.block_size)
            for number, (group, place) in cache.layer_index_to_group_indices.items():
                self._layers[number] = group, cache.key_cache[place], cache.value_cache[place]

    def _add(self, manager: Any, page: int, stride: int) -> None:
        self.groups.append(Group(manager.block_table, page, stride, int(getattr(manager, "sliding_window", None) or 0)))

    def layer(self, number: int) -> tuple[int, torch.Tensor, torch.Tensor]:
        """Return a layer's group, and its keys and values, [slots, key heads, channels]."""
        return self._layers[number]

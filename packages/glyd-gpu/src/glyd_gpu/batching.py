# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Packed blocks in transformers' continuous batching: its scheduler, masks and attention, our memory.

transformers keeps keys and values in tensors that it reads and writes by slots.
Here these tensors are made on the meta device, where they take no memory, and
reading and writing go to `KvBlocks`. The attention gets the bits that it would get,
at the same places, and so every token is the one of the plain cache.
"""

from __future__ import annotations

import inspect
import types
from typing import Any

import torch

import glyd_codec
from glyd_gpu._errors import ParameterError
from glyd_gpu._kv_blocks import FreedBlocks, KvBlocks
from glyd_gpu._kv_cuda import check_channels, check_device
from glyd_gpu._kv_ops import TOKENS
from glyd_gpu._kv_store import KvReport

_CLASS = "PagedAttentionCache"


class PackedBatches:
    """The packed memory of a manager of continuous batching; there once the manager runs.

    Attributes
    ----------
    blocks
        What is held; None before the manager has made its cache.
    """

    def __init__(self) -> None:
        self.blocks: KvBlocks | None = None

    def report(self) -> KvReport:
        """Say what is held now."""
        return KvReport(0, 0, 0, {}) if self.blocks is None else self.blocks.held


def check_packable(model: Any) -> None:
    """See whether a model's keys and values can be kept in packed blocks.

    Raises
    ------
    ParameterError, ShapeError
        They cannot; with the reason.
    UnsupportedDeviceError
        Not on this device.
    """
    check_device(model.device)
    config = model.config.get_text_config()
    if model.dtype != torch.bfloat16:
        raise ParameterError(f"packed blocks hold torch.bfloat16, and the model computes in {model.dtype}")
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if kinds != {"full_attention"}:
        raise ParameterError(
            f"packed blocks are for layers that see all tokens, and this model has {', '.join(sorted(kinds))}"
        )
    if getattr(config, "layer_types", None) is None and getattr(config, "sliding_window", None) is not None:
        raise ParameterError(f"packed blocks are for layers that see all tokens, not {config.sliding_window}")
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    glyd_codec.kv_page_bound(int(size))
    if model.device.type == "cuda":
        check_channels(int(size))


def use_packed_blocks(manager: Any) -> PackedBatches:
    """Make a manager of continuous batching, not yet started, keep full blocks packed.

    Parameters
    ----------
    manager
        What ``model.init_continuous_batching`` returned; its pages must have 128 tokens, and CUDA graphs of its own
        must be off.

    Raises
    ------
    ParameterError, UnsupportedDeviceError
        The model's keys and values cannot be packed, the pages have another size, or this version of transformers
        makes its cache in another way.
    """
    check_packable(manager.model)
    config = manager.continuous_batching_config
    size = getattr(config, "page_size", None) or getattr(config, "block_size", None)
    if size != TOKENS:
        raise ParameterError(f"packed blocks have {TOKENS} tokens, the manager's pages have {size}")
    make = inspect.unwrap(type(manager)._create_batch_processor)
    if _CLASS not in make.__code__.co_names:
        raise ParameterError(f"this version of transformers makes the cache of its batches without a {_CLASS}")
    packed = PackedBatches()
    # the manager's own method, in which the name of the cache's class means ours: nothing global is changed
    names = {**make.__globals__, _CLASS: _packed_class(make.__globals__[_CLASS], packed)}
    ours = types.FunctionType(make.__code__, names, make.__name__, make.__defaults__, make.__closure__)
    manager._create_batch_processor = types.MethodType(ours, manager)
    return packed


def _packed_class(base: Any, packed: PackedBatches) -> Any:
    """Return the class of a cache that keeps its tokens in packed blocks."""

    class PackedCache(base):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            device = kwargs["device"]
            super().__init__(*args, **{**kwargs, "device": "meta"})
            self.device = device
            _connect(self, torch.device(device), packed)

    return PackedCache


def _connect(cache: Any, device: torch.device, packed: PackedBatches) -> None:
    """Lead a cache's reads and writes to packed blocks."""

    def shaped(states: torch.Tensor) -> torch.Tensor:
        return states.squeeze(0).transpose(0, 1) if states.dim() == 4 else states

    if hasattr(cache, "cache_allocators"):
        (allocator,) = cache.cache_allocators.values()
        layers = {number: place for place, number in enumerate(allocator.layer_indices)}
        heads, channels = allocator.num_key_value_heads, allocator.head_dim
        padding = (allocator.read_trash_index, allocator.write_trash_index)
        stride = allocator.block_physical_stride
    else:
        layers = {number: place for number, (_, place) in cache.layer_index_to_group_indices.items()}
        heads, channels = cache.num_key_value_heads, cache.head_dim
        padding = (cache.read_trash_index, cache.write_trash_index)
        stride = cache.block_size
    blocks = KvBlocks(len(layers), heads, channels, stride=stride, padding=padding, device=device)

    def update(
        keys: torch.Tensor, values: torch.Tensor, layer_idx: int, read: torch.Tensor, write: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return blocks.update(layers[layer_idx], shaped(keys), shaped(values), read, write)

    def copy(*_: Any) -> None:
        raise ParameterError("requests cannot be forked: packed blocks are not copied")

    if hasattr(cache, "cache_allocators"):
        allocator.update = torch.compiler.disable(update)
        allocator.copy_blocks = copy
        take_back = cache.pool.free_blocks

        def free_blocks(index: int, numbers: list[int]) -> None:
            blocks.forget(numbers)
            take_back(index, numbers)

        cache.pool.free_blocks = free_blocks
    else:

        def update_one(
            key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, read_index: Any, write_index: Any
        ) -> tuple[torch.Tensor, torch.Tensor]:
            return update(key_states, value_states, layer_idx, read_index[0], write_index[0])

        cache.update = torch.compiler.disable(update_one)
        cache.copy_cache = copy
        free = cache._block_manager._uninit_block_ids
        cache._block_manager._uninit_block_ids = FreedBlocks(free, blocks.forget)
    packed.blocks = blocks

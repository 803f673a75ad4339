# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Packed linear layers, embeddings and heads of vLLM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from vllm.model_executor.layers.linear import LinearMethodBase
from vllm.model_executor.layers.quantization.base_config import QuantizeMethodBase

from glyd_gpu.integrations.vllm_loading import Filling

if TYPE_CHECKING:
    from glyd_gpu.integrations.vllm_config import GlydConfig

WEIGHT = {"input_dim": 1, "output_dim": 0}  # what vLLM's loaders slice by


class _Held:
    """What methods of one matrix share."""

    def __init__(self, config: GlydConfig, prefix: str) -> None:
        super().__init__()
        self.config = config
        self.prefix = prefix

    def create_weights(
        self,
        layer: nn.Module,
        input_size_per_partition: int,
        output_partition_sizes: list[int],
        input_size: int,
        output_size: int,
        params_dtype: torch.dtype,
        **extra_weight_attrs: Any,
    ) -> None:
        """Put a placeholder where the weights will be."""
        del input_size, output_size, params_dtype
        shape = (sum(output_partition_sizes), input_size_per_partition)
        filling = self.config.filling(layer, "weight", self.prefix, shape, WEIGHT | extra_weight_attrs)
        layer.register_parameter("weight", filling.placeholder())
        layer.glyd_rows, layer.glyd_cols = shape
        layer.glyd_filling = filling

    def process_weights_after_loading(self, layer: nn.Module) -> None:
        """Pack what is not packed yet."""
        self.config.close(layer.glyd_filling)

    def apply(self, layer: nn.Module, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """Return x · Wᵀ + bias."""
        y = x.new_empty((*x.shape[:-1], layer.glyd_rows))
        torch.ops.glyd.linear_held(x, layer.weight_packed, layer.weight_held, bias, y)
        return y


class GlydLinearMethod(_Held, LinearMethodBase):
    """Linear layers of every kind of parallelism."""


class GlydEmbeddingMethod(_Held, QuantizeMethodBase):
    """Embeddings and heads, tied or not."""

    def embedding(self, layer: nn.Module, input_: torch.Tensor) -> torch.Tensor:
        """Return the rows of ids."""
        rows: torch.Tensor = torch.ops.glyd.embedding_held(
            input_, layer.weight_packed, layer.weight_held, layer.glyd_cols
        )
        return rows

    def tie_weights(self, layer: nn.Module, embed_tokens: nn.Module) -> nn.Module:
        """Let a head use the table of an embedding."""
        filling: Filling = embed_tokens.glyd_filling
        own: Filling = layer.glyd_filling
        if own is not filling:
            self.config.forget(own)
            layer.weight = embed_tokens.weight
            filling.add_owner(layer)
            layer.glyd_filling = filling
            layer.glyd_rows, layer.glyd_cols = embed_tokens.glyd_rows, embed_tokens.glyd_cols
        return layer

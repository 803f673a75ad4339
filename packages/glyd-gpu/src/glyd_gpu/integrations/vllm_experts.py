# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Packed experts of vLLM: decoded for the call, then multiplied by vLLM's own kernel.

The experts of a layer are one pack for gate and up, one for down. Few tokens
are multiplied with the packs of their experts, a product each, where nothing
must have the bits of vLLM's kernel. Otherwise a call with few tokens decodes the
rows of the experts that they were sent to, one copy for each, and a call with
many decodes all. Which it is depends on shapes alone, so that a captured graph
stays right for any routing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from vllm.model_executor.layers.fused_moe import FusedMoEMethodBase, fused_experts
from vllm.model_executor.layers.fused_moe.unquantized_fused_moe_method import UnquantizedFusedMoEMethod

from glyd_gpu._errors import ParameterError
from glyd_gpu._meta import BLOCK_ROWS
from glyd_gpu._ops import FAST, held_plain

if TYPE_CHECKING:
    from glyd_gpu.integrations.vllm_config import GlydConfig

NAMES = ("w13_weight", "w2_weight")
SIDE_BY_SIDE = 256  # pairs of token and expert that are multiplied from the packed form
UNSORTED = 16  # of them whose order does not matter: with more, those of one expert find its tiles in the cache
ACTIVATIONS = {"silu": F.silu, "gelu": F.gelu}
FEW = 0.5  # of the experts: up to here each expert that is needed is decoded for itself


class GlydExpertsMethod(FusedMoEMethodBase):
    """Experts of a layer."""

    def __init__(self, config: GlydConfig, prefix: str, moe: Any) -> None:
        super().__init__(moe)
        self.config = config
        self.prefix = prefix

    def create_weights(
        self,
        layer: nn.Module,
        num_experts: int,
        hidden_size: int,
        intermediate_size_per_partition: int,
        params_dtype: torch.dtype,
        **extra_weight_attrs: Any,
    ) -> None:
        """Put placeholders where the weights will be.

        Raises
        ------
        ParameterError
            Experts that are not bf16.
        """
        if params_dtype != torch.bfloat16:
            raise ParameterError(f"glyd: experts of {self.prefix} are {params_dtype}, packed ones must be bf16")
        up = intermediate_size_per_partition * (2 if self.moe.is_act_and_mul else 1)
        shapes = {
            "w13_weight": (num_experts, up, hidden_size),
            "w2_weight": (num_experts, hidden_size, intermediate_size_per_partition),
        }
        layer.glyd_fillings = []
        for name, shape in shapes.items():
            filling = self.config.filling(layer, name, self.prefix, shape, extra_weight_attrs)
            layer.register_parameter(name, filling.placeholder())
            layer.glyd_fillings.append(filling)
            if self.moe.has_bias:
                bias = nn.Parameter(torch.zeros(shape[:2], dtype=params_dtype), requires_grad=False)
                for key, value in extra_weight_attrs.items():
                    setattr(bias, key, value)
                layer.register_parameter(name.replace("weight", "bias"), bias)
        layer.glyd_shapes = shapes

    def process_weights_after_loading(self, layer: nn.Module) -> None:
        """Pack what is not packed yet."""
        for filling in layer.glyd_fillings:
            self.config.close(filling)
        self.moe_quant_config = self.get_fused_moe_quant_config(layer)

    def get_fused_moe_quant_config(self, layer: nn.Module) -> Any:
        """Return what vLLM's kernel must know beside the weights: biases."""
        return UnquantizedFusedMoEMethod.get_fused_moe_quant_config(self, layer)

    def apply(
        self,
        layer: nn.Module,
        x: torch.Tensor,
        topk_weights: torch.Tensor,
        topk_ids: torch.Tensor,
        *shared: Any,
        **shared_by_name: Any,
    ) -> torch.Tensor:
        """Return the sum of the experts' answers; shared experts are vLLM's to compute."""
        del shared, shared_by_name
        w13, w2 = (_Experts(layer, name) for name in NAMES)
        n = topk_ids.numel()
        expert_map = layer.expert_map
        ids = topk_ids
        if n <= SIDE_BY_SIDE and self._may_multiply(layer, x, w13, w2):
            return self._side_by_side(layer, x, w13, w2, topk_weights, topk_ids)
        if expert_map is None and n <= FEW * w13.count:
            flat = topk_ids.reshape(-1)
            weights = [matrix.some(flat) for matrix in (w13, w2)]
            ids = torch.arange(n, dtype=topk_ids.dtype, device=topk_ids.device).view_as(topk_ids)
            count = n
        else:
            weights = [matrix.all() for matrix in (w13, w2)]
            count = layer.global_num_experts
        if x.device.type == "cpu":
            return self._on_cpu(layer, x, weights, topk_weights, ids)
        return fused_experts(
            hidden_states=x,
            w1=weights[0],
            w2=weights[1],
            topk_weights=topk_weights,
            topk_ids=ids,
            activation=layer.activation,
            apply_router_weight_on_input=layer.apply_router_weight_on_input,
            global_num_experts=count,
            expert_map=expert_map,
            quant_config=self.moe_quant_config,
        )

    def _may_multiply(self, layer: nn.Module, x: torch.Tensor, w13: _Experts, w2: _Experts) -> bool:
        return (
            x.device.type == "cuda"
            and w13.mode == w2.mode == FAST
            and layer.expert_map is None
            and self.moe.is_act_and_mul
            and not self.moe.has_bias
            and not layer.apply_router_weight_on_input
            and _activation(layer) in ACTIVATIONS
            and all(m.meta[0] and m.rows % BLOCK_ROWS == 0 for m in (w13, w2))
        )

    def _side_by_side(
        self, layer: nn.Module, x: torch.Tensor, w13: _Experts, w2: _Experts, scales: torch.Tensor, ids: torch.Tensor
    ) -> torch.Tensor:
        """Multiply each token with each of its experts, from the packed form."""
        n, each = ids.shape
        slots, order = ids.reshape(-1), None
        if slots.numel() > UNSORTED:
            slots, order = slots.sort(stable=True)
        rows = x.repeat_interleave(each, dim=0) if order is None else x[order // each]
        gate, up = torch.ops.glyd.linear_experts(rows, slots, w13.pack, w13.meta, w13.rows).chunk(2, dim=-1)
        y = torch.ops.glyd.linear_experts(ACTIVATIONS[_activation(layer)](gate) * up, slots, w2.pack, w2.meta, w2.rows)
        if order is not None:
            y = torch.empty_like(y).index_copy_(0, order, y)
        return (y.view(n, each, -1).float() * scales.unsqueeze(-1)).sum(dim=1).to(x.dtype)

    def _on_cpu(
        self, layer: nn.Module, x: torch.Tensor, weights: list[torch.Tensor], scales: torch.Tensor, ids: torch.Tensor
    ) -> torch.Tensor:
        """Do what the kernel does, an expert at a time.

        Raises
        ------
        ParameterError
            An activation or a bias that is not known here.
        """
        name = _activation(layer)
        if name not in ACTIVATIONS or self.moe.has_bias or layer.expert_map is not None:
            raise ParameterError(f"glyd: experts of {self.prefix} ({name}) run on a GPU only")
        out = torch.zeros_like(x, dtype=torch.float32)
        on_input = layer.apply_router_weight_on_input
        for expert in torch.unique(ids).tolist():
            token, slot = torch.where(ids == expert)
            scale = scales[token, slot].unsqueeze(1)
            h = x[token] * scale.to(x.dtype) if on_input else x[token]
            gate_up = F.linear(h, weights[0][expert])
            gate, up = gate_up.chunk(2, dim=-1) if self.moe.is_act_and_mul else (gate_up, None)
            act = ACTIVATIONS[name](gate)
            y = F.linear(act if up is None else act * up, weights[1][expert]).float()
            out.index_add_(0, token, y if on_input else y * scale.float())
        return out.to(x.dtype)


def _activation(layer: nn.Module) -> str:
    return str(getattr(layer.activation, "value", layer.activation))


class _Experts:
    """The stack [experts, rows, cols] of a layer, packed."""

    def __init__(self, layer: nn.Module, name: str) -> None:
        self.pack = getattr(layer, name + "_packed")
        self.count, self.rows, self.cols = layer.glyd_shapes[name]
        *self.meta, self.mode = getattr(layer, name + "_held").tolist()

    def all(self) -> torch.Tensor:
        """Return the stack as bf16."""
        if self.meta[0] == 0:
            return held_plain(self.pack, self.meta).view(self.count, self.rows, self.cols)
        unpacked: torch.Tensor = torch.ops.glyd.unpack(self.pack, self.meta)
        return unpacked.view(self.count, self.rows, self.cols)

    def some(self, experts: torch.Tensor) -> torch.Tensor:
        """Return those of ids [n], repeats as often as they come, as [n, rows, cols] bf16."""
        if self.meta[0] == 0:
            return self.all()[experts.long()]
        within = torch.arange(self.rows, dtype=torch.int64, device=experts.device)
        ids = experts.long().unsqueeze(1) * self.rows + within
        rows: torch.Tensor = torch.ops.glyd.embedding(ids.view(-1), self.pack, self.meta)
        return rows.view(-1, self.rows, self.cols)

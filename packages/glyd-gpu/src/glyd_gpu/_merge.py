# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Layers that read the same input as one product: q, k, v and gate, up.

The packs of a group become one. The first layer that is called multiplies with
all of it; the others take their rows of the result when they are called with the
very same tensor, as the models do. A layer that is called with another tensor
multiplies again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from glyd_gpu._meta import BLOCK_ROWS, PackedMeta
from glyd_gpu._packs import concat_rows, slice_rows
from glyd_gpu._tensors import SUFFIX, PackedTensor, Piece
from glyd_gpu.modules import PackedExperts, PackedLinear, PackedModule

GROUPS = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))


@dataclass
class Group:
    """What the layers of a group share.

    Attributes
    ----------
    members
        The layers in the order of their rows.
    first_rows
        Where the rows of each start.
    tensors
        The packed form of each on its own.
    kept
        Input and result of the last product, the layers that have used it as bits, and the input's version;
        None when all have.
    """

    members: list[MergedLinear]
    first_rows: list[int]
    tensors: list[PackedTensor]
    kept: tuple[torch.Tensor, torch.Tensor, int, int] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"kept": None}


class MergedLinear(PackedLinear):
    """A packed linear layer whose rows lie in the pack of a group."""

    glyd_group: Group
    glyd_place: int

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002 - as torch names it
        """Return input · Wᵀ + bias, from the product of the whole group."""
        group = self.glyd_group
        kept, mine, version = group.kept, 1 << self.glyd_place, version_of(input)
        # a layer that comes back wants a new product: whoever calls may have written to the same tensor
        if kept is not None and kept[0] is input and not kept[2] & mine and kept[3] == version:
            y, used = kept[1], kept[2] | mine
        else:
            y, used = self._product(input, self.bias is not None), mine
        group.kept = None if used == (1 << len(group.members)) - 1 else (input, y, used, version)
        first = group.first_rows[self.glyd_place]
        return y.narrow(-1, first, self.out_features)

    def _product(self, x: torch.Tensor, biased: bool) -> torch.Tensor:
        """Return the result of the whole group."""
        bias = torch.cat([member.bias for member in self.glyd_group.members]) if biased else None
        return super().packed_linear("weight", x, bias)

    def packed_linear(self, name: str, x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """Return ``F.linear(x, weight, bias)``."""
        del name
        y = self._product(x, biased=False)
        part = y.narrow(-1, self.glyd_group.first_rows[self.glyd_place], self.out_features)
        return part if bias is None else part + bias

    def packed_tensor(self, name: str) -> PackedTensor:
        """Return the form of this layer on its own."""
        del name
        return self.glyd_group.tensors[self.glyd_place]

    def own_data(self) -> tuple[torch.Tensor, PackedTensor]:
        """Return the pack of this layer on its own, the bytes that packing it gives."""
        (piece,) = self.glyd_tensors["weight"].pieces
        data = self.packed_data("weight")
        first = self.glyd_group.first_rows[self.glyd_place]
        own, meta = slice_rows(data, PackedMeta.from_list(piece.meta or ()), first, self.out_features)
        (before,) = self.glyd_group.tensors[self.glyd_place].pieces
        after = Piece(0, meta.nbytes, tuple(meta.as_list()), meta.rows, before.source, before.shape)
        return own, PackedTensor((self.out_features, self.in_features), (after,))

    def unpacked(self, name: str) -> torch.Tensor:
        """Return the weights of this layer as bf16."""
        del name
        data, tensor = self.own_data()
        (piece,) = tensor.pieces
        weights: torch.Tensor = torch.ops.glyd.unpack(data, list(piece.meta or ()))
        return weights

    def identity(self, name: str) -> Any:
        """Return what tells these weights from all others."""
        return super().identity(name), self.glyd_place

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _new_merged, (), self.__dict__.copy()

    def _prepare_load(self, name: str, data: torch.Tensor) -> None:
        super()._prepare_load(name, data)
        for member in self.glyd_group.members:
            member._parameters[name + SUFFIX] = self._parameters[name + SUFFIX]
            member.glyd_tensors[name] = self.glyd_tensors[name]

    def forget(self) -> None:
        """Drop what only packed modules have."""
        super().forget()
        del self.__dict__["glyd_group"], self.__dict__["glyd_place"]


def version_of(x: torch.Tensor) -> int:
    """Return what changes when a tensor is written to, where torch counts that."""
    if torch.compiler.is_compiling() or x.is_inference():
        return 0
    return int(x._version)


def _new_merged() -> MergedLinear:
    return MergedLinear.__new__(MergedLinear)


def join_experts(model: nn.Module) -> int:
    """Make one pack of each stack of experts that its checkpoint stores one by one; return how many.

    Only a stack in one pack can be multiplied with by numbers of experts that are on the device. The parts are cut
    out again when the model is saved: cut and joined packs are those that packing gives.
    """
    n = 0
    for module in model.modules():
        for name in type(module).glyd_names if isinstance(module, PackedExperts) else ():
            tensor, data = module.glyd_tensors[name], module.packed_data(name)
            metas = [PackedMeta.from_list(piece.meta) for piece in tensor.pieces if piece.meta is not None]
            whole = len(metas) == len(tensor.pieces) > 1 and not any(meta.rows % BLOCK_ROWS for meta in metas)
            if not whole or len({meta.layout for meta in metas}) > 1 or data.device.type == "meta":
                continue
            parts = [data.narrow(0, piece.offset, piece.nbytes) for piece in tensor.pieces]
            joined, meta = concat_rows(list(zip(parts, metas, strict=True)))
            module.__dict__.setdefault("glyd_parts", {})[name] = tensor
            piece = Piece(0, meta.nbytes, tuple(meta.as_list()), meta.rows, "", tensor.shape)
            module.glyd_tensors[name] = PackedTensor(tensor.shape, (piece,))
            module._parameters[name + SUFFIX] = nn.Parameter(joined, requires_grad=False)
            n += 1
    return n


def _cut(module: PackedModule, name: str, tensor: PackedTensor) -> torch.Tensor:
    """Return the bytes of a joined stack as its checkpoint has them."""
    data, (piece,) = module.packed_data(name), module.glyd_tensors[name].pieces
    whole, first = PackedMeta.from_list(piece.meta or ()), 0
    out = torch.zeros(tensor.nbytes, dtype=torch.uint8, device=data.device)
    for part in tensor.pieces:
        cut, _ = slice_rows(data, whole, first, part.rows)
        out.narrow(0, part.offset, part.nbytes).copy_(cut)
        first += part.rows
    return out


def merge_modules(model: nn.Module) -> int:
    """Merge what can be merged in a model; return the number of groups."""
    if getattr(getattr(model, "config", None), "is_encoder_decoder", False):
        return 0  # layers of these names read different inputs in cross attention
    n = 0
    for parent in list(model.modules()):
        for names in GROUPS:
            members = [parent._modules.get(name) for name in names]
            if _can_merge(members):
                _merge(members)
                n += 1
    return n


def _can_merge(members: Sequence[nn.Module | None]) -> bool:
    first = members[0]
    if not isinstance(first, PackedLinear):
        return False
    device = first.packed_data("weight").device
    layouts = set()
    for member in members:
        if type(member) is not PackedLinear or hasattr(member, "_hf_hook"):
            return False
        pieces = member.glyd_tensors["weight"].pieces
        if len(pieces) != 1 or pieces[0].meta is None or member.packed_data("weight").device != device:
            return False
        if (member.bias is None) != (first.bias is None):
            return False
        if member is not members[-1] and member.out_features % BLOCK_ROWS:
            return False
        layouts.add((pieces[0].meta[0], member.in_features))
    return device.type != "meta" and len(layouts) == 1


def _merge(members: Sequence[PackedLinear]) -> None:
    packs, tensors, first_rows, at = [], [], [], 0
    for member in members:
        tensor = member.glyd_tensors["weight"]
        (piece,) = tensor.pieces
        packs.append((member.packed_data("weight").data, PackedMeta.from_list(piece.meta or ())))
        tensors.append(tensor)
        first_rows.append(at)
        at += member.out_features
    data, meta = concat_rows(packs)
    parameter = nn.Parameter(data, requires_grad=False)
    piece = Piece(0, meta.nbytes, tuple(meta.as_list()), meta.rows, "", (meta.rows, meta.cols))
    group = Group([], first_rows, tensors)
    for place, member in enumerate(members):
        member.__class__ = MergedLinear
        member._parameters["weight" + SUFFIX] = parameter
        member.glyd_tensors["weight"] = PackedTensor((meta.rows, meta.cols), (piece,))
        member.__dict__["glyd_group"] = group
        member.__dict__["glyd_place"] = place
        group.members.append(member)


def unmerge_modules(model: nn.Module) -> None:
    """Give every merged layer its own pack again."""
    merged = [module for module in model.modules() if isinstance(module, MergedLinear)]
    own = [module.own_data() for module in merged]
    for module, (data, tensor) in zip(merged, own, strict=True):
        del module.__dict__["glyd_group"], module.__dict__["glyd_place"]
        module.__class__ = PackedLinear
        module.glyd_tensors["weight"] = tensor
        module._parameters["weight" + SUFFIX] = nn.Parameter(data, requires_grad=False)


def unmerged_tensors(module: PackedModule, name: str) -> tuple[PackedTensor, torch.Tensor]:
    """Return the packed form of a parameter on its own, and its bytes."""
    if isinstance(module, MergedLinear):
        data, tensor = module.own_data()
        return tensor, data
    parts = module.__dict__.get("glyd_parts", {}).get(name)
    if parts is not None:
        return parts, _cut(module, name, parts)
    return module.packed_tensor(name), module.packed_data(name)

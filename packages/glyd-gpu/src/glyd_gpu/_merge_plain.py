# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Plain layers that read the same input as one product, as `glyd_gpu._merge` joins packed ones.

A model is measured so in both forms.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from glyd_gpu._merge import GROUPS


class _Joined(nn.Module):
    """The matrices of plain layers as one, and the last product with it."""

    def __init__(self, members: list[nn.Linear]) -> None:
        super().__init__()
        with torch.no_grad():
            self.weight = nn.Parameter(torch.cat([member.weight for member in members]), requires_grad=False)
            first = members[0].bias
            bias = None if first is None else torch.cat([member.bias for member in members])
        self.bias = None if bias is None else nn.Parameter(bias, requires_grad=False)
        self.kept: tuple[torch.Tensor, torch.Tensor] | None = None


class _Part(nn.Module):
    """A layer whose rows lie in a `_Joined`; layers are called in order, with the same input."""

    def __init__(self, joined: _Joined, first: int, size: int, last: bool) -> None:
        super().__init__()
        self.__dict__["joined"] = joined  # it is no child: its weight would be listed once for each
        self.first, self.size, self.last = first, size, last

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        joined = self.__dict__["joined"]
        if self.first == 0 or joined.kept is None or joined.kept[0] is not x:
            joined.kept = x, F.linear(x, joined.weight, joined.bias)
        y: torch.Tensor = joined.kept[1].narrow(-1, self.first, self.size)
        if self.last:
            joined.kept = None
        return y


def merge_plain(model: nn.Module) -> int:
    """Join q, k, v and gate, up of plain layers; return the number of groups. `split_plain` leads back."""
    n = 0
    for parent in list(model.modules()):
        for names in GROUPS:
            members = [parent._modules.get(name) for name in names]
            if not all(type(member) is nn.Linear for member in members):
                continue
            layers = [member for member in members if isinstance(member, nn.Linear)]
            if len({layer.in_features for layer in layers}) > 1 or len({layer.bias is None for layer in layers}) > 1:
                continue
            joined, first = _Joined(layers), 0
            for name, layer in zip(names, layers, strict=True):
                parent._modules[name] = _Part(joined, first, layer.out_features, name == names[-1])
                first += layer.out_features
            n += 1
    return n


def split_plain(model: nn.Module) -> None:
    """Undo `merge_plain`; the layers share the memory of what was joined."""
    for parent in list(model.modules()):
        for name, part in list(parent._modules.items()):
            if isinstance(part, _Part):
                joined = part.__dict__["joined"]
                with torch.device("meta"):
                    layer = nn.Linear(joined.weight.shape[1], part.size, bias=joined.bias is not None)
                rows = slice(part.first, part.first + part.size)
                layer.weight = nn.Parameter(joined.weight[rows], requires_grad=False)
                if joined.bias is not None:
                    layer.bias = nn.Parameter(joined.bias[rows], requires_grad=False)
                parent._modules[name] = layer

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""A model in memory packed where it is, each matrix compared with what its pack decodes to."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import torch
from torch import nn

from glyd_gpu._checkpoint import is_packable
from glyd_gpu._meta import LAYOUTS, PackedMeta
from glyd_gpu._tensors import PackedTensor, Piece
from glyd_gpu.modules import PackedModule, install


@dataclass
class LiveReport:
    """What `pack_modules` did: matrices, those that came back with other bits (none, unless there is a bug), seconds."""

    n_matrices: int = 0
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0


@torch.no_grad()
def pack_modules(model: nn.Module, layout: str) -> LiveReport:
    """Pack the bf16 matrices of a model in place; those that do not pay stay.

    Parameters
    ----------
    model
        Of transformers. Tied parameters stay tied.
    layout
        "tiered" or "mma12".
    """
    report, started = LiveReport(), time.perf_counter()
    places: dict[int, list[tuple[nn.Module, str, str]]] = {}
    for path, module in model.named_modules():
        for name, parameter in {} if isinstance(module, PackedModule) else module._parameters.items():
            if parameter is not None and parameter.dtype == torch.bfloat16 and is_packable(parameter.shape, layout):
                places.setdefault(id(parameter), []).append((module, name, f"{path}.{name}"))
    for owners in places.values():
        module, name, full = owners[0]
        found = _packed(module._parameters[name], layout, full, report)
        if found is not None:
            tensor, data = found
            for module, name, _ in owners:
                install(module, name, tensor, data)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    report.seconds = time.perf_counter() - started
    return report


def _packed(
    parameter: torch.Tensor, layout: str, name: str, report: LiveReport
) -> tuple[PackedTensor, nn.Parameter] | None:
    """Return the packed form of a parameter, or None when packing does not pay."""
    matrix = parameter.detach().reshape(-1, parameter.shape[-1]).contiguous()
    data = torch.ops.glyd.pack(matrix, LAYOUTS[layout])
    if not data.numel():
        return None
    meta = PackedMeta.from_tensor(data)
    values = meta.as_list()
    report.n_matrices += 1
    if not torch.equal(torch.ops.glyd.unpack(data, values).view(torch.int16), matrix.view(torch.int16)):
        report.wrong.append(name)
    shape = tuple(parameter.shape)
    tensor = PackedTensor(shape, (Piece(0, meta.nbytes, tuple(values), meta.rows, name, shape),))
    return tensor, nn.Parameter(data, requires_grad=False)

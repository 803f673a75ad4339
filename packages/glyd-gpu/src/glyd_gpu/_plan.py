# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Which tensors of a checkpoint become which packed parameters of a model.

Checkpoints and models differ: names are changed on the way, experts that are
stored one by one become rows of one parameter, gate and up are joined.
transformers describes that by renamings and by converters that compute with
tensors. Packs cannot be computed with, but rows can be followed: a converter is
run on tensors that hold row numbers instead of weights, and where whole tensors
come out in some order, packs are put together in that order. Where they do not
(rows interleaved, matrices transposed) tensors are unpacked, converted, and
packed again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from glyd_codec import FormatError
from glyd_gpu._checkpoint import Source, estimated_nbytes, is_packable
from glyd_gpu._errors import ParameterError
from glyd_gpu._meta import ALIGN
from glyd_gpu._tensors import SUFFIX, PackedTensor, Piece
from glyd_gpu.modules import PackedModule, install


@dataclass
class Group:
    """The tensors of the checkpoint that one parameter is made of.

    Attributes
    ----------
    target
        Name of the parameter in the model.
    sources
        In the order of the checkpoint.
    order
        Of sources in the rows of the parameter; None when tensors must be unpacked and converted.
    converter
        What transformers does with the tensors; None when it takes the one that there is.
    patterns
        Of the converter, one a source: which it is to the converter.
    shape
        Of the parameter.
    owners
        Modules that hold the packed parameter, several when it is tied, and its name there.
    """

    target: str
    sources: list[Source] = field(default_factory=list)
    order: list[int] | None = None
    converter: Any = None
    patterns: list[str] = field(default_factory=list)
    shape: tuple[int, ...] = ()
    owners: list[tuple[PackedModule, str]] = field(default_factory=list)

    @property
    def key(self) -> str:
        """Name that transformers loads to: the packed parameter, or that which conversion gives."""
        return self.target if self.order is None else self.target + SUFFIX


@dataclass
class Plan:
    """Groups by `Group.key`, and the key that each tensor of the checkpoint belongs to."""

    groups: dict[str, Group] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    layout: str | None = None


def make_plan(
    model: nn.Module, sources: Iterable[Source], conversions: Sequence[Any], layout: str | None, kept: Sequence[str]
) -> Plan:
    """Decide what becomes of every tensor that is packed or may be.

    Parameters
    ----------
    model
        On the meta device, not packed yet.
    sources
        All tensors of the checkpoint.
    conversions
        What transformers does for this model.
    layout
        For tensors that are not packed yet; None leaves them as they are.
    kept
        Parts of names of parameters that the model computes with in fp32.
    """
    from transformers.core_model_loading import WeightConverter, WeightRenaming, dot_natural_key  # noqa: PLC0415

    parameters = dict(model.state_dict())
    renamings = [c for c in conversions if isinstance(c, WeightRenaming)]
    converters = [c for c in conversions if isinstance(c, WeightConverter)]
    by_pattern = {pattern: c for c in converters for pattern in c.source_patterns}
    groups: dict[str, Group] = {}
    for source in sorted(sources, key=lambda s: dot_natural_key(s.name)):
        target, pattern = _renamed(source.name, renamings, converters, model, parameters)
        if target not in parameters:
            continue
        group = groups.setdefault(target, Group(target))
        group.sources.append(source)
        group.patterns.append(pattern or "")
    plan = Plan(layout=layout)
    trainable = dict(model.named_parameters(remove_duplicate=False))
    for target, group in groups.items():
        group.shape = tuple(parameters[target].shape)
        group.converter = by_pattern.get(group.patterns[0])
        has_packs = any(source.meta for source in group.sources)
        may_pack = layout is not None and _may_pack(group, target, trainable) and not _is_kept(target, kept)
        if (has_packs and not _is_kept(target, kept)) or (
            may_pack and all(is_packable(source.shape, str(layout)) for source in group.sources)
        ):
            group.order = _follow(group, model)
        if group.order is None and not has_packs and not (may_pack and is_packable(group.shape, str(layout))):
            continue  # transformers does all of it, and the parameter stays as it is
        plan.groups[group.key] = group
        plan.keys |= {source.key: group.key for source in group.sources}
    return plan


def _may_pack(group: Group, target: str, parameters: dict[str, nn.Parameter]) -> bool:
    """Say whether a parameter that is not packed yet may be."""
    parameter = parameters.get(target)
    types = {source.dtype for source in group.sources}
    return parameter is not None and parameter.dtype == torch.bfloat16 and types <= {"BF16", "F32"}


def _is_kept(target: str, kept: Sequence[str]) -> bool:
    return any(part in target for part in kept)


def _renamed(
    name: str, renamings: list[Any], converters: list[Any], model: Any, parameters: dict[str, Any]
) -> tuple[str, str | None]:
    """Return the parameter that a tensor goes to and the pattern of its converter, as transformers does."""
    from transformers.core_model_loading import rename_source_key  # noqa: PLC0415

    prefix = model.base_model_prefix
    target, pattern = rename_source_key(name, renamings, converters, prefix, parameters)
    if target not in parameters and name in parameters:
        target, pattern = rename_source_key(name, [], [], base_model_prefix=prefix, meta_state_dict=parameters)
    return target, pattern


def _follow(group: Group, model: nn.Module) -> list[int] | None:
    """Return the order of the sources in the rows of the parameter, or None when rows do not stay together.

    Raises
    ------
    FormatError
        A pack is no form of the parameter.
    """
    for source in group.sources:
        rows, cols = math.prod(group.shape[:-1]), group.shape[-1]
        if group.converter is None and source.meta and (source.meta.rows, source.meta.cols) != (rows, cols):
            raise FormatError(
                f"{source.path}: {source.key} is {source.shape}, but {group.target} of the model is {group.shape}"
            )
    widths = {source.shape[-1] for source in group.sources}
    if widths != {group.shape[-1]} or len({source.meta.layout for source in group.sources if source.meta}) > 1:
        return None
    if group.converter is None:
        return [0] if len(group.sources) == 1 and group.sources[0].rows == math.prod(group.shape[:-1]) else None
    converter = deepcopy(group.converter)
    starts, at = [], 0
    for source, pattern in zip(group.sources, group.patterns, strict=True):
        ids = torch.arange(at, at + source.rows).view(*source.shape[:-1], 1)
        converter.add_tensor(group.target, source.name, pattern, ids)
        starts.append(at)
        at += source.rows
    try:
        results = converter.convert(group.target, model=model, config=getattr(model, "config", None))
    except Exception:  # noqa: BLE001 - a conversion that needs the weights may fail on row numbers in any way
        return None
    ids = results.get(group.target)
    if isinstance(ids, list):
        ids = ids[0] if len(ids) == 1 else None
    if len(results) != 1 or ids is None or tuple(ids.shape) != (*group.shape[:-1], 1) or ids.numel() != at:
        return None
    return _whole_tensors(ids.reshape(-1), starts, [source.rows for source in group.sources])


def _whole_tensors(ids: torch.Tensor, starts: list[int], rows: list[int]) -> list[int] | None:
    """Return the order in which the tensors that start at row numbers lie one after the other, or None."""
    index = {start: i for i, start in enumerate(starts)}
    order, at = [], 0
    while at < ids.numel():
        i = index.get(int(ids[at]))
        if i is None or not torch.equal(ids[at : at + rows[i]], torch.arange(starts[i], starts[i] + rows[i])):
            return None
        order.append(i)
        at += rows[i]
    return order if sorted(order) == list(range(len(rows))) else None


def layout_of(group: Group, layout: str | None) -> PackedTensor:
    """Return the packed form of a group: exact where packs are there, else estimated."""
    pieces, at = [], 0
    for i in group.order or ():
        source = group.sources[i]
        if source.meta is not None:
            nbytes, values = source.meta.nbytes, tuple(source.meta.as_list())
        elif layout is None:
            nbytes, values = 2 * source.rows * source.shape[-1], None
        else:
            nbytes, values = estimated_nbytes(layout, source.rows, source.shape[-1]), None
        pieces.append(Piece(at, nbytes, values, source.rows, source.name, source.shape))
        at += -(-nbytes // ALIGN) * ALIGN
    return PackedTensor(group.shape, tuple(pieces))


def prepare(model: Any, plan: Plan) -> None:
    """Make the modules of a model on the meta device packed ones, tied ones sharing what they are tied to.

    Raises
    ------
    ParameterError
        The model is split by a tensor parallel plan.
    """
    if (
        getattr(model.config, "distributed_config", None) is not None
        or getattr(model, "_device_mesh", None) is not None
    ):
        raise ParameterError(
            "packed models cannot be split by transformers' tensor parallelism: use device_map, or vLLM"
        )
    tied: dict[str, str] = getattr(model, "all_tied_weights_keys", None) or {}
    partners: dict[str, set[str]] = {}
    for target, source in tied.items():
        partners.setdefault(source, {source}).add(target)
    packed = {group.target: group for group in plan.groups.values() if group.order is not None}
    renamed: set[str] = set()
    for group in packed.values():
        tensor = layout_of(group, plan.layout)
        # of the type of what is loaded, which transformers would convert otherwise
        has_packs = any(source.meta for source in group.sources)
        dtype = torch.uint8 if has_packs else torch.bfloat16
        empty = torch.empty(-(-tensor.nbytes // dtype.itemsize), dtype=dtype, device="meta")
        data = nn.Parameter(empty, requires_grad=False)
        names = next((found for found in partners.values() if group.target in found), {group.target})
        own = [name for name in names if name in packed]
        if len(own) > 1:
            names = {group.target}  # the checkpoint has both: transformers compares them, and ties them if equal
        for name in names:
            path, _, parameter = name.rpartition(".")
            group.owners.append((install(model.get_submodule(path), parameter, tensor, data), parameter))
        renamed |= names
    if tied:
        model.all_tied_weights_keys = {
            (t + SUFFIX if t in renamed else t): (s + SUFFIX if s in renamed else s) for t, s in tied.items()
        }

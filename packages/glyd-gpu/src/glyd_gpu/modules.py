# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Modules whose weights are packed: linear layers, embeddings, experts, and any other.

A module becomes packed in place: its class becomes a subclass of the class that
it had, the parameter ``weight`` becomes ``weight_packed`` (bytes as a plain
uint8 tensor, the name that packed checkpoints use), and ``weight`` becomes a
property. So hooks, names and ``isinstance`` keep working, tied modules share one
buffer, and `restore` leads back.

File length: classes and the functions that make their instances need each other.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, cast

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from glyd_gpu import _captured
from glyd_gpu._errors import ParameterError, ReadOnlyWeightError, ShapeError
from glyd_gpu._meta import BLOCK_ROWS
from glyd_gpu._ops import EXACT, FAST, SAME
from glyd_gpu._tensors import SUFFIX, PackedTensor, decode, reread
from glyd_gpu._view import PackedView

GROUPED_DEVICES = {"cuda"}  # on the CPU nothing is won over decoding the experts that are asked for
GROUPED_SLOTS = 256  # pairs of token and expert: more decode each expert too often
UNSORTED_SLOTS = 64


class _Scratch(threading.local):
    """What modules have decoded for a call that runs in this thread."""

    def __init__(self) -> None:
        self.values: dict[tuple[int, str], torch.Tensor] = {}


_scratch = _Scratch()


class PackedModule(nn.Module):
    """What all packed modules have: see the functions of this file."""

    glyd_base: ClassVar[type[nn.Module]]
    glyd_names: ClassVar[tuple[str, ...]]
    glyd_tensors: dict[str, PackedTensor]
    glyd_mode: int

    # ---- what is packed

    def packed_tensor(self, name: str) -> PackedTensor:
        """Return shape and pieces of a packed parameter."""
        return self.glyd_tensors[name]

    def packed_data(self, name: str) -> torch.Tensor:
        """Return the bytes of a packed parameter."""
        data: torch.Tensor = self._parameters[name + SUFFIX]
        return data

    def unpacked(self, name: str) -> torch.Tensor:
        """Return a packed parameter as bf16."""
        tensor, buffer = self.glyd_tensors[name], self.packed_data(name)
        if len(tensor.pieces) == 1:
            return decode(buffer, tensor.pieces[0], tensor.cols).view(tensor.shape)
        parts = [decode(buffer, piece, tensor.cols) for piece in tensor.pieces]
        return torch.cat(parts).view(tensor.shape)

    def unpacked_part(self, name: str, index: int, out: torch.Tensor | None = None) -> torch.Tensor:
        """Return ``unpacked(name)[index]``; where pieces allow it, only that part is decoded."""
        tensor = self.glyd_tensors[name]
        count = tensor.shape[0]
        if not -count <= index < count:
            raise IndexError(f"index {index} of {name}, which has {count}")
        size = 1 if len(tensor.shape) < 3 else tensor.shape[1]
        first = index % count * size
        mine, at = [], 0
        for piece in tensor.pieces:
            if first <= at < first + size:
                mine.append(piece)
            at += piece.rows
        if sum(piece.rows for piece in mine) != size:
            value = self.unpacked(name)[index]
            return value if out is None else out.copy_(value)
        buffer = self.packed_data(name)
        parts = [decode(buffer, piece, tensor.cols) for piece in mine]
        if out is None:
            return parts[0].view(tensor.shape[1:]) if len(parts) == 1 else torch.cat(parts).view(tensor.shape[1:])
        return out.copy_(parts[0]) if len(parts) == 1 else torch.cat(parts, out=out)

    def identity(self, name: str) -> Any:
        """Return what tells the weights of a parameter from all others; tied ones have the same."""
        return id(self.packed_data(name))

    # ---- computing

    def packed_linear(self, name: str, x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """Return ``F.linear(x, weight, bias)``."""
        tensor, buffer = self.glyd_tensors[name], self.packed_data(name)
        if x.dtype != torch.bfloat16 and torch.is_autocast_enabled(x.device.type):
            x = x.to(torch.bfloat16)
        piece = tensor.pieces[0]
        y: torch.Tensor
        if len(tensor.pieces) > 1 or piece.meta is None:
            product = torch.ops.glyd.linear_same if self.glyd_mode == SAME else F.linear
            y = product(x, self.unpacked(name), bias)
            return y
        y = torch.ops.glyd.linear(x, buffer, list(piece.meta), bias, self.glyd_mode)
        return y

    def packed_embedding(self, name: str, ids: torch.Tensor) -> torch.Tensor:
        """Return ``F.embedding(ids, weight)``."""
        tensor, buffer = self.glyd_tensors[name], self.packed_data(name)
        piece = tensor.pieces[0]
        if len(tensor.pieces) > 1 or piece.meta is None:
            return F.embedding(ids, self.unpacked(name))
        rows: torch.Tensor = torch.ops.glyd.embedding(ids, buffer, list(piece.meta))
        return rows

    def packed_value(self, name: str) -> torch.Tensor:
        """Return what ``module.name`` is: bf16 while the module computes with it, else a `PackedView`."""
        if torch.compiler.is_compiling():
            return self.unpacked(name)
        found = _scratch.values.get((id(self), name))
        return PackedView(self, name) if found is None else found

    # ---- being a module

    def __setattr__(self, name: str, value: Any) -> None:
        if name in type(self).glyd_names:
            self._share(name, value)
        else:
            super().__setattr__(name, value)

    def _share(self, name: str, value: Any) -> None:
        """Take the pack of another module: how transformers ties weights."""
        if not isinstance(value, PackedView):
            raise ReadOnlyWeightError(
                f"{name} of {type(self).__name__} is packed and cannot be replaced by {type(value).__name__}: "
                "call glyd_gpu.dequantize(model) first"
            )
        other = value.glyd_owner
        if other.packed_tensor(value.glyd_name).shape != self.glyd_tensors[name].shape:
            raise ShapeError(
                f"{name} is {self.glyd_tensors[name].shape}, not {other.packed_tensor(value.glyd_name).shape}"
            )
        self.glyd_tensors[name] = other.packed_tensor(value.glyd_name)
        self._parameters[name + SUFFIX] = other._parameters[value.glyd_name + SUFFIX]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _new, (type(self).glyd_base, type(self).glyd_names), self.__dict__.copy()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, local_metadata: Any, *args: Any) -> None:
        for name in type(self).glyd_names:
            data = state_dict.get(prefix + name + SUFFIX)
            if isinstance(data, torch.Tensor):
                self._prepare_load(name, data)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    def _prepare_load(self, name: str, data: torch.Tensor) -> None:
        """Follow a buffer of other weights, whose packs have other sizes."""
        tensor = reread(self.glyd_tensors[name], data)
        if tensor == self.glyd_tensors[name]:
            return
        old = self.packed_data(name)
        self.glyd_tensors[name] = tensor
        if old.numel() != data.numel():
            fresh = torch.empty(data.numel(), dtype=torch.uint8, device=old.device)
            self._parameters[name + SUFFIX] = nn.Parameter(fresh, requires_grad=False)

    def forget(self) -> None:
        """Drop what only packed modules have."""
        del self.__dict__["glyd_tensors"], self.__dict__["glyd_mode"]
        self.__dict__.pop("glyd_parts", None)

    def extra_repr(self) -> str:
        """Say what is packed, how."""
        parts = []
        for name, tensor in self.glyd_tensors.items():
            layouts = sorted({"bf16" if p.meta is None else ("mma12", "tiered")[p.meta[0] - 1] for p in tensor.pieces})
            parts.append(f"{name}={tuple(tensor.shape)} {'+'.join(layouts)} in {tensor.nbytes} bytes")
        base = super().extra_repr()
        return ", ".join([base, *parts] if base else parts)


class PackedLinear(PackedModule, nn.Linear):
    """``nn.Linear`` over packed weights."""

    glyd_base = nn.Linear
    glyd_names = ("weight",)

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002 - as torch names it
        """Return input · Wᵀ + bias."""
        return self.packed_linear("weight", input, self.bias)


class PackedEmbedding(PackedModule, nn.Embedding):
    """``nn.Embedding`` over packed weights: decodes the rows that are asked for."""

    glyd_base = nn.Embedding
    glyd_names = ("weight",)

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002 - as torch names it
        """Return the rows of ids."""
        if self.max_norm is not None:
            raise ParameterError("a packed embedding cannot renormalize its rows: max_norm must be None")
        return self.packed_embedding("weight", input)


class PackedExperts(PackedModule):
    """Any other module: its own code runs over weights that are decoded for the call.

    Few tokens on a GPU are multiplied with the packs of their experts, nothing
    decoded. Else, of the experts of a layer only those that tokens were sent to
    are decoded, where the module uses one of the implementations of transformers,
    which touch no others; the rest of the decoded tensor is left as memory was.
    """

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Multiply with packs where that can be; else decode, then do what the module does."""
        if len(args) == 3 and not kwargs and self._is_grouped(*args):
            return self._grouped(*args)
        if torch.compiler.is_compiling():
            return super().forward(*args, **kwargs)
        hits = self._hits(args, kwargs)
        mine = {(id(self), name): self._decoded(name, hits) for name in type(self).glyd_names}
        _scratch.values.update(mine)
        try:
            return super().forward(*args, **kwargs)
        finally:
            for key in mine:
                _scratch.values.pop(key, None)

    def _is_grouped(self, x: Any, experts: Any, weights: Any) -> bool:
        """Say whether a call is one of few tokens, and the module what `_grouped` computes."""
        if type(self).glyd_names != ("down_proj", "gate_up_proj") or self.glyd_mode != FAST:
            return False
        if not all(isinstance(value, torch.Tensor) for value in (x, experts, weights)):
            return False
        if x.device.type not in GROUPED_DEVICES or x.dtype != torch.bfloat16 or experts.dim() != 2:
            return False
        if not 0 < experts.numel() <= GROUPED_SLOTS or (torch.is_grad_enabled() and x.requires_grad):
            return False
        # set by the decorator of transformers' interface of experts
        traits = [getattr(self, name, None) for name in ("has_gate", "has_bias", "is_transposed")]
        tensors = self.glyd_tensors.values()
        return (
            traits == [True, False, False]
            and hasattr(self, "_apply_gate")
            and all(len(t.pieces) == 1 and t.pieces[0].meta and t.shape[1] % BLOCK_ROWS == 0 for t in tensors)
        )

    def _grouped(self, x: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """Return the sum over the experts of each token, with products of one expert and one token each."""
        n, each = experts.shape
        slots, order = experts.reshape(-1), None
        if slots.numel() > UNSORTED_SLOTS:  # products of one expert side by side: its tiles are in the cache
            slots, order = slots.sort(stable=True)
        rows = x.repeat_interleave(each, dim=0) if order is None else x[order // each]
        y = self._apply_gate(self._expert_products("gate_up_proj", rows, slots))
        y = self._expert_products("down_proj", y, slots)
        if order is not None:
            y = torch.empty_like(y).index_copy_(0, order, y)
        y = y * weights.reshape(-1, 1)
        return y.view(n, each, -1).sum(dim=1).to(x.dtype)

    def _expert_products(self, name: str, x: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        tensor, data = self.glyd_tensors[name], self.packed_data(name)
        values = list(tensor.pieces[0].meta or ())
        y: torch.Tensor = torch.ops.glyd.linear_experts(x, slots, data, values, tensor.shape[1])
        return y

    def _hits(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[int] | None:
        """Return the experts that a call needs, or None for all."""
        config = getattr(self, "config", None)
        if getattr(config, "_experts_implementation", None) not in {"eager", "grouped_mm", "batched_mm"}:
            return None
        if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
            return None  # which experts they are is known on the device only
        if not hasattr(self, "is_transposed"):  # set by the decorator of transformers' interface of experts
            return None
        ids = [
            v
            for v in (*args, *kwargs.values())
            if isinstance(v, torch.Tensor) and v.dtype in {torch.int32, torch.int64}
        ]
        counts = {self.glyd_tensors[name].shape[0] for name in type(self).glyd_names}
        if len(ids) != 1 or len(counts) != 1 or ids[0].numel() == 0:
            return None
        found = torch.unique(ids[0])
        (count,) = counts
        return [i for i in found.tolist() if 0 <= i < count] if found.numel() < count else None

    def _decoded(self, name: str, hits: list[int] | None) -> torch.Tensor:
        tensor = self.glyd_tensors[name]
        if hits is None or len(tensor.shape) != 3:
            return self.unpacked(name)
        count, size, _ = tensor.shape
        buffer = self.packed_data(name)
        out = torch.empty(tensor.shape, dtype=torch.bfloat16, device=buffer.device)
        if len(tensor.pieces) == 1 and tensor.pieces[0].meta is not None:
            index = torch.tensor(hits, device=buffer.device)
            ids = (index.unsqueeze(1) * size + torch.arange(size, device=buffer.device)).view(-1)
            rows = torch.ops.glyd.embedding(ids, buffer, list(tensor.pieces[0].meta))
            out[index] = rows.view(len(hits), size, -1)
        elif len(tensor.pieces) < count:
            return self.unpacked(name)
        else:
            for i in hits:
                self.unpacked_part(name, i, out=out[i])
        return out


def packed_class(base: type[nn.Module], names: tuple[str, ...]) -> type[PackedModule]:
    """Return the class that modules of a class get when parameters of theirs are packed."""
    if (base, names) in _classes:
        return _classes[base, names]
    if names == ("weight",) and base in {nn.Linear, nn.Embedding}:
        return PackedLinear if base is nn.Linear else PackedEmbedding
    bases: tuple[type, ...]
    if names == ("weight",) and issubclass(base, nn.Linear):
        bases = (base, PackedLinear)  # its own forward calls that of nn.Linear, which is ours now
    elif names == ("weight",) and issubclass(base, nn.Embedding):
        bases = (base, PackedEmbedding)
    else:
        bases = (PackedExperts, base)
    body: dict[str, Any] = {name: _property(name) for name in names}
    body |= {"glyd_base": base, "glyd_names": names, "__module__": __name__, "__doc__": base.__doc__}
    return _classes.setdefault((base, names), type(f"Packed{base.__name__}", bases, body))


_classes: dict[tuple[type[nn.Module], tuple[str, ...]], type[PackedModule]] = {}  # one class for each, however often


def _property(name: str) -> property:
    return property(functools.partial(_value, name=name))


def _value(module: PackedModule, *, name: str) -> torch.Tensor:
    return module.packed_value(name)


for _class in (PackedLinear, PackedEmbedding):
    _class.weight = _property("weight")


def _new(base: type[nn.Module], names: tuple[str, ...]) -> nn.Module:
    """Return an empty instance, for unpickling and copying."""
    cls = packed_class(base, names)
    return cls.__new__(cls)


def install(module: nn.Module, name: str, tensor: PackedTensor, data: torch.Tensor | nn.Parameter) -> PackedModule:
    """Replace a parameter of a module by its packed form, in place.

    Parameters
    ----------
    module, name
        The parameter; a second one of a module may follow the first.
    tensor, data
        Its packed form; a parameter is shared, not copied.

    Raises
    ------
    ParameterError
        There is no such parameter.
    """
    known: tuple[str, ...] = ()
    base: type[nn.Module] = type(module)
    if isinstance(module, PackedModule):
        known, base = type(module).glyd_names, type(module).glyd_base
    if name not in module._parameters and name not in known:
        raise ParameterError(f"{type(module).__name__} has no parameter {name}")
    if name not in known:
        cls = packed_class(base, tuple(sorted((*known, name))))
        module._parameters.pop(name)
        if not known:
            module.__dict__["glyd_tensors"] = {}
            module.__dict__["glyd_mode"] = FAST
        module.__class__ = cls
    packed = cast("PackedModule", module)
    packed.glyd_tensors[name] = tensor
    if not isinstance(data, nn.Parameter):
        data = nn.Parameter(data, requires_grad=False)
    packed._parameters[name + SUFFIX] = data
    return packed


def restore(module: PackedModule, memo: dict[Any, nn.Parameter]) -> None:
    """Make a packed module what it was, with bf16 parameters.

    Parameters
    ----------
    module
        Changed in place.
    memo
        Parameters that were restored so far, by `PackedModule.identity`: tied modules stay tied.
    """
    names = type(module).glyd_names
    values = {}
    for name in names:
        key = module.identity(name)
        if key not in memo:
            # a piece that is plain bf16 is a part of the buffer, which must not stay
            memo[key] = nn.Parameter(module.unpacked(name).clone(), requires_grad=False)
        values[name] = memo[key]
    module.forget()
    module.__class__ = type(module).glyd_base
    for name in names:
        module._parameters.pop(name + SUFFIX)
        module.register_parameter(name, values[name])


def set_exact(model: nn.Module, exact: bool | Literal["fast"]) -> None:
    """Choose for all packed modules of a model whether products have the bits of unpacked layers.

    Parameters
    ----------
    model
        Changed in place.
    exact
        True: decode each layer and multiply as torch does. "fast": multiply from the packed form, on Hopper, with the
        bits that plain layers have after `use_same_order`, and the same for a token in every batch.

    Raises
    ------
    ParameterError
        Another value, or "fast" where layers are merged: a product of other size adds in another order.
    """
    if exact not in (True, False, "fast"):
        raise ParameterError(f'exact is {exact!r}: it may be True, False or "fast"')
    for module in model.modules():
        if isinstance(module, PackedModule):
            if exact == "fast" and "glyd_group" in module.__dict__:
                raise ParameterError('layers are merged: load the model with exact="fast", or with merge=False')
            module.glyd_mode = SAME if exact == "fast" else EXACT if exact else FAST
    _captured.forget(model)

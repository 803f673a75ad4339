# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What ``module.weight`` is on a packed module: a tensor that is decoded when somebody computes with it.

Other libraries look at weights: PEFT asks for device and type, transformers
ties and resizes embeddings, models call ``F.linear(x, self.weight)``. A
`PackedView` answers the first from what is known, hands the last to the
operators of packed matrices, refuses to be written to, and decodes itself for
everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch.utils import _pytree as pytree

from glyd_gpu._errors import ReadOnlyWeightError

if TYPE_CHECKING:
    from typing_extensions import Self

    from glyd_gpu.modules import PackedModule


def _getter(name: str) -> Any:
    return getattr(torch.Tensor, name).__get__


# answered by the empty tensor of the same shape and type that a view is made of
_SHAPE = frozenset(
    [
        *(_getter(n) for n in ("shape", "dtype", "ndim", "layout", "requires_grad", "is_leaf", "grad", "grad_fn")),
        *(_getter(n) for n in ("is_sparse", "is_quantized", "is_nested", "itemsize", "nbytes", "_backward_hooks")),
        torch.Tensor.size,
        torch.Tensor.dim,
        torch.Tensor.ndimension,
        torch.Tensor.numel,
        torch.Tensor.nelement,
        torch.Tensor.element_size,
        torch.Tensor.is_floating_point,
        torch.Tensor.is_complex,
        torch.Tensor.__len__,
        torch.Tensor.stride,
        torch.Tensor.is_contiguous,
        torch.is_floating_point,
        torch.is_complex,
        torch.numel,
    ]
)
_DEVICE = frozenset(_getter(n) for n in ("device", "is_cuda", "is_cpu", "is_meta", "is_mps", "is_xpu"))
_ADDRESS = frozenset(
    [torch.Tensor.data_ptr, torch.Tensor.untyped_storage, torch.Tensor.storage, torch.Tensor.storage_offset]
)
_SAME = frozenset([_getter("data"), torch.Tensor.detach, torch.Tensor.contiguous, torch.Tensor.requires_grad_])
_WRITES = frozenset(
    [
        torch.Tensor.__setitem__,
        torch.Tensor.data.__set__,
        torch.Tensor.grad.__set__,
        *(
            getattr(torch.Tensor, n)
            for n in ("__iadd__", "__isub__", "__imul__", "__idiv__", "__itruediv__", "__ipow__")
        ),
        *(getattr(torch.Tensor, n) for n in ("__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__")),
    ]
)


class PackedView(torch.Tensor):
    """A packed parameter as a read-only tensor.

    It counts as a ``torch.nn.Parameter``, so that libraries which look for
    parameters by name find it.

    Parameters
    ----------
    owner
        The module that holds the pack.
    name
        The parameter.
    """

    glyd_owner: PackedModule
    glyd_name: str

    @staticmethod
    def __new__(cls: type[Self], owner: PackedModule, name: str) -> Self:
        """Make a view; nothing is decoded yet."""
        shape = owner.packed_tensor(name).shape
        with torch._C.DisableTorchFunctionSubclass():
            view: Self = torch.Tensor._make_subclass(cls, torch.empty(shape, dtype=torch.bfloat16, device="meta"))
        view.glyd_owner = owner
        view.glyd_name = name
        view._is_param = True
        view._is_hf_initialized = True
        return view

    def unpacked(self) -> torch.Tensor:
        """Return the weights as a plain tensor."""
        return self.glyd_owner.unpacked(self.glyd_name)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        del tensor_contents
        shape = tuple(self.glyd_owner.packed_tensor(self.glyd_name).shape)
        return f"PackedView({self.glyd_name}, shape={shape}, device={self.device})"

    def __deepcopy__(self, memo: dict[int, Any]) -> torch.Tensor:
        return torch.nn.Parameter(self.unpacked(), requires_grad=False)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return torch.nn.Parameter(self.unpacked(), requires_grad=False).__reduce_ex__(protocol)

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Answer, hand over, refuse or decode."""
        kwargs = dict(kwargs or {})
        first = args[0] if args else next(iter(kwargs.values()), None)  # torch.nn.init hands over by name
        view = first if isinstance(first, cls) else None
        if view is not None:
            if func in _SHAPE:
                with torch._C.DisableTorchFunctionSubclass():
                    return func(*args, **kwargs)
            pack = view.glyd_owner.packed_data(view.glyd_name)
            if func in _DEVICE or func in _ADDRESS:
                return func(pack, *args[1:], **kwargs)
            if func in _SAME:
                if func is torch.Tensor.requires_grad_ and (args[1:] != (False,) and kwargs.get("requires_grad", True)):
                    raise _read_only(view, "trained")
                return view
            if _writes(func):
                raise _read_only(view, "changed")
        if func is F.linear and len(args) > 1 and isinstance(args[1], cls):
            bias = args[2] if len(args) > 2 else kwargs.get("bias")
            return args[1].glyd_owner.packed_linear(args[1].glyd_name, args[0], bias)
        if func is F.embedding and len(args) > 1 and isinstance(args[1], cls) and _is_plain_lookup(args, kwargs):
            return args[1].glyd_owner.packed_embedding(args[1].glyd_name, args[0])
        if view is not None and func is torch.Tensor.__getitem__ and _is_index(args[1]):
            return view.glyd_owner.unpacked_part(view.glyd_name, int(args[1]))
        with torch._C.DisableTorchFunctionSubclass():
            plain_args, plain_kwargs = pytree.tree_map_only(cls, cls.unpacked, (tuple(args), kwargs))
        return func(*plain_args, **plain_kwargs)


def _writes(func: Callable[..., Any]) -> bool:
    name = getattr(func, "__name__", "")
    return func in _WRITES or (name.endswith("_") and not name.endswith("__")) or name == "__set__"


def _is_index(key: Any) -> bool:
    return isinstance(key, int) or (
        isinstance(key, torch.Tensor) and key.dim() == 0 and not key.is_floating_point() and key.dtype != torch.bool
    )


def _is_plain_lookup(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    names = ("padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse")
    given = dict(zip(names, args[2:], strict=False)) | dict(kwargs)
    return given.get("max_norm") is None  # the others only matter to gradients


def _read_only(view: PackedView, what: str) -> ReadOnlyWeightError:
    return ReadOnlyWeightError(
        f"{view.glyd_name} of {type(view.glyd_owner).__name__} is packed and cannot be {what} in place: "
        "call glyd_gpu.dequantize(model) first (a LoRA adapter can also stay beside the packed layer, unmerged)"
    )

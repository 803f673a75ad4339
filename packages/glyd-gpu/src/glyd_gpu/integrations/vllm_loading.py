# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""How weights reach packed layers of vLLM.

A pack of a packed directory travels through vLLM's loader as a `PackedView`: a
tensor of the weights' own name, shape and type. Layers of ours take the pack out
of it; everything else, such as routers and layers that stay bf16, computes with
it and so gets it decoded. Where a layer joins several tensors or takes a slice
of them (tensor parallel), vLLM's own loader does it on bf16, and the layer is
packed as soon as all of it has arrived: no more than one layer is ever there
unpacked.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from glyd_gpu._checkpoint import Source, read_sources
from glyd_gpu._errors import CorruptDataError, ParameterError
from glyd_gpu._meta import LAYOUTS, PackedMeta
from glyd_gpu._ops import held_meta
from glyd_gpu._tensors import SUFFIX, PackedTensor, Piece
from glyd_gpu._verify import verify_packs
from glyd_gpu._view import PackedView

# ---- packs on their way ----------------------------------------------------------


class Arrived:
    """A pack of a file, as `PackedView` asks for it."""

    def __init__(self, source: Source, data: torch.Tensor, device: torch.device) -> None:
        meta = source.meta
        if meta is None:
            raise ParameterError(f"{source.key} is no pack")
        self.source = source
        self.meta = meta
        self.device = device
        self._data = data.narrow(0, 0, meta.nbytes)
        self._plain: torch.Tensor | None = None
        piece = Piece(0, meta.nbytes, tuple(meta.as_list()), meta.rows, source.name, source.shape)
        self._tensor = PackedTensor(source.shape, (piece,))

    def pack(self) -> torch.Tensor:
        """Return the pack on the device, held to the rules of its format: kernels only stay inside of it.

        Raises
        ------
        CorruptDataError
            It breaks them.
        """
        moved = self._data.device != self.device
        self._data = self._data.to(self.device)
        if moved and self.device.type == "cuda":
            verify_packs({self.source.name: (self._data, self.meta.as_list())})
        return self._data

    # what PackedView calls

    def packed_tensor(self, name: str) -> PackedTensor:
        """Return shape and pieces."""
        del name
        return self._tensor

    def packed_data(self, name: str) -> torch.Tensor:
        """Return the bytes."""
        del name
        return self._data

    def unpacked(self, name: str) -> torch.Tensor:
        """Return the weights as bf16 on the device; decoded once, however often a loader slices them."""
        del name
        if self._plain is None:
            self._plain = torch.ops.glyd.unpack(self.pack(), self.meta.as_list()).view(self.source.shape)
        return self._plain

    def unpacked_part(self, name: str, index: int) -> torch.Tensor:
        """Return one of the first dimension."""
        return self.unpacked(name)[index]


def install() -> None:
    """Let vLLM's loader hand out packs as views of weights. May be called again.

    Raises
    ------
    ParameterError
        This vLLM loads weights in a way that is not known.
    """
    from vllm.model_executor.model_loader import default_loader  # noqa: PLC0415

    loader = default_loader.DefaultModelLoader
    original = getattr(loader, "_get_weights_iterator", None)
    if original is None or not hasattr(loader, "_prepare_weights"):
        raise ParameterError("glyd: the loader of this vLLM is not known: update glyd-gpu, or use an older vLLM")
    if getattr(original, "glyd", False):
        return

    @functools.wraps(original)
    def iterate(self: Any, source: Any) -> Iterator[tuple[str, torch.Tensor]]:
        return _views(self, source, original(self, source))

    iterate.glyd = True  # type: ignore[attr-defined]
    loader._get_weights_iterator = iterate


def _views(loader: Any, origin: Any, weights: Iterator[tuple[str, torch.Tensor]]) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield weights, packs as views of what they hold."""
    sources: dict[str, Source] | None = None
    device = _target()
    for name, tensor in weights:
        if not (name.endswith(SUFFIX) and tensor.dtype == torch.uint8 and tensor.dim() == 1):
            yield name, tensor
            continue
        if sources is None:
            sources = _sources(loader, origin)
        key = name.removeprefix(origin.prefix)
        source = sources.get(key)
        if source is None or source.meta is None:
            yield name, tensor
            continue
        yield name.removesuffix(SUFFIX), PackedView(Arrived(source, tensor, device), "weight")  # type: ignore[arg-type]


def _target() -> torch.device:
    """Return where packs that nobody takes whole are decoded."""
    from vllm.platforms import current_platform  # noqa: PLC0415

    return torch.device("cuda", torch.cuda.current_device()) if current_platform.is_cuda() else torch.device("cpu")


def _sources(loader: Any, origin: Any) -> dict[str, Source]:
    prepared = loader._prepare_weights(
        origin.model_or_path,
        origin.subfolder,
        origin.revision,
        origin.fall_back_to_pt,
        origin.allow_patterns_overrides,
    )
    return read_sources(sorted(prepared[1]))


# ---- layers that are filled ------------------------------------------------------


class _Written(TorchDispatchMode):
    """Counts the elements that are written into a tensor."""

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__()
        self._address = tensor.untyped_storage().data_ptr()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        out = func(*args, **(kwargs or {}))
        writes = func.__name__.split(".")[0] in {"copy_", "fill_", "zero_"}
        if writes and args[0].untyped_storage().data_ptr() == self._address:
            self.count += args[0].numel()
        return out


class Filling:
    """A packed parameter of a layer, while it is being loaded.

    Parameters
    ----------
    layer, name
        Where it belongs; ``name_packed`` and ``name_held`` is what the layer gets.
    title
        Of messages: the layer in the model.
    shape
        Of the parameter of this rank; all but the last dimension are rows.
    attributes
        Of the parameter, as vLLM's loaders want them.
    device
        Where it goes.
    layout
        To pack it in; None leaves it bf16.
    mode
        Of products.
    verify
        Compare every pack with what it was made of.
    """

    def __init__(
        self,
        layer: nn.Module,
        name: str,
        title: str,
        shape: tuple[int, ...],
        attributes: dict[str, Any],
        *,
        device: torch.device,
        layout: str | None,
        mode: int,
        verify: bool,
    ) -> None:
        self.owners = [layer]
        self.name = name
        self.title = title
        self.shape = shape
        self.device = device
        self.layout = layout
        self.mode = mode
        self.verify = verify
        self.nbytes = self.plain_nbytes = 0
        self.is_packed = False
        self.done = False
        self._attributes = attributes
        self._first = weakref.ref(layer)
        self._written = 0
        self._real: nn.Parameter | None = None

    @property
    def n_weights(self) -> int:
        """Weights of this rank."""
        n = 1
        for size in self.shape:
            n *= size
        return n

    def placeholder(self) -> nn.Parameter:
        """Return what stands in the layer until it is loaded: a parameter without memory."""
        parameter = nn.Parameter(torch.empty(self.shape, dtype=torch.bfloat16, device="meta"), requires_grad=False)
        _set(parameter, self._attributes | {"weight_loader": self.load})
        return parameter

    def load(self, param: nn.Parameter, loaded_weight: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        """Take a tensor of the checkpoint: vLLM's ``weight_loader``.

        Raises
        ------
        ParameterError
            The layer was complete already.
        """
        del param
        if self.done:
            raise ParameterError(f"glyd: {self.title} is packed already: packed weights cannot be loaded anew in place")
        arrived = loaded_weight.glyd_owner if isinstance(loaded_weight, PackedView) else None
        if isinstance(arrived, Arrived) and self._may_take(arrived, args, kwargs):
            arrived.device = self.device
            pack = arrived.pack()
            if self.layout == arrived.meta.layout_name and self._real is None:
                self._finish(pack, arrived.meta)
                return True
        real = self._materialize()
        with _Written(real) as written:
            result = self._attributes["weight_loader"](real, loaded_weight, *args, **kwargs)
        self._written += written.count
        if self._written >= self.n_weights:
            self._pack()
        return result

    def _may_take(self, arrived: Arrived, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Say whether a pack is this parameter as it is: no part of it, and nothing beside it."""
        return not args and not kwargs and arrived.source.shape == self.shape

    def _materialize(self) -> nn.Parameter:
        if self._real is None:
            data = torch.empty(self.shape, dtype=torch.bfloat16, device=self.device)
            self._real = nn.Parameter(data, requires_grad=False)
            _set(self._real, self._attributes)
        return self._real

    def close(self, *, dummy: bool) -> None:
        """Pack what came without being counted; called when all has been loaded, and again for tied layers.

        Raises
        ------
        CorruptDataError
            The checkpoint has nothing, or not all, for this layer.
        """
        if self.done:
            return
        if dummy:
            from vllm.model_executor.model_loader import weight_utils  # noqa: PLC0415

            weight_utils.initialize_single_dummy_weight(self._materialize())
        elif self._written < self.n_weights:
            raise CorruptDataError(
                f"glyd: {self.title}.{self.name}: {self._written} of {self.n_weights} weights were in the checkpoint",
                expected=self.n_weights,
                found=self._written,
            )
        self._pack()

    def _pack(self) -> None:
        real = self._materialize()
        matrix = real.detach().view(-1, self.shape[-1])
        if self.layout is not None:
            pack = torch.ops.glyd.pack(matrix, LAYOUTS[self.layout])
            if pack.numel():
                meta = PackedMeta.from_tensor(pack)
                if self.verify:
                    back = torch.ops.glyd.unpack(pack, meta.as_list())
                    if not torch.equal(back.view(torch.int16), matrix.view(torch.int16)):
                        raise CorruptDataError(f"glyd: {self.title}.{self.name} unpacks to other bits than were packed")
                self._real = None
                self._finish(pack, meta)
                return
        self._real = None
        self._finish(matrix.contiguous().view(-1).view(torch.uint8), None)

    def add_owner(self, layer: nn.Module) -> None:
        """Let another layer use the same weights, loaded or not."""
        first = self._first()
        if self.done and first is not None:
            self._give(layer, getattr(first, self.name + SUFFIX), getattr(first, self.name + "_held"))
        else:
            self.owners.append(layer)

    def _finish(self, data: torch.Tensor, meta: PackedMeta | None) -> None:
        rows = self.n_weights // self.shape[-1]
        held = held_meta(meta.as_list() if meta else None, rows, self.shape[-1], self.mode)
        parameter = nn.Parameter(data, requires_grad=False)
        for layer in self.owners:
            self._give(layer, parameter, held)
        self.is_packed = meta is not None
        self.nbytes, self.plain_nbytes = data.numel(), 2 * self.n_weights
        self.done = True
        # vLLM keeps placeholders, which know this, for as long as their layer lives: it must not live by them
        self.owners, self._attributes = [], {}

    def _give(self, layer: nn.Module, parameter: nn.Parameter, held: torch.Tensor) -> None:
        # what remains of the weight says type and device to those who ask (LoRA does), and has no values
        device = torch.empty(0, dtype=torch.bfloat16, device=self.device)
        layer.register_parameter(self.name, nn.Parameter(device, requires_grad=False))
        layer.register_parameter(self.name + SUFFIX, parameter)
        setattr(layer, self.name + "_held", held)


def _set(parameter: nn.Parameter, attributes: dict[str, Any]) -> None:
    for name, value in attributes.items():
        setattr(parameter, name, value)

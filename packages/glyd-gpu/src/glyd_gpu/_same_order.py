# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Products with one order of sums: packed and plain weights give the same bits, and so does a token in every batch.

What ``exact="fast"`` multiplies with. The staged kernel takes packed tiles, which it decodes to exact bf16 in shared
memory, or plain bf16 weights: what it adds, and in which order, is the same. A launch has one tile of tokens, so the
columns are divided among its blocks by the matrix alone, whatever else is in the batch and whichever Hopper GPU it is.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from glyd_gpu import _products, _routes
from glyd_gpu._errors import ParameterError, ShapeError, UnsupportedDeviceError
from glyd_gpu._library import architectures
from glyd_gpu._ops import library
from glyd_gpu._replaced import Replaced

INSTEAD = "exact=True has the bits of the unpacked layer on every GPU"
# tokens of a tile → slots of weights and of packed tiles: what fits shared memory. Neither changes a bit.
SLOTS = {32: (3, 8), 64: (3, 8), 128: (4, 6), 256: (3, 3)}
LARGEST = 256  # tokens of a launch
ROW_BLOCKS, GROUP = 2, 1
# that a matrix is divided among; the same on all devices, so that bits do not depend on the device. By clusters in place
# of workers 128 tokens of 6144 x 4096 took 40 us instead of 32, of 24576 x 4096 99 instead of 84.
WORKERS = 132

library.define("linear_same(Tensor x, Tensor weight, Tensor? bias) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))


def route(tokens: int) -> _routes.Route:
    """Return the configuration of a launch of so many tokens, at most `LARGEST`."""
    tile = next(n for n in SLOTS if n >= tokens)
    return _routes.Route("staged", (tile, ROW_BLOCKS, 0, WORKERS, GROUP, *SLOTS[tile], _products.AHEAD))


def check_device(index: int) -> None:
    """Check that a device and the library have the kernel.

    Raises
    ------
    UnsupportedDeviceError
        With what is there and what to do.
    """
    found = torch.cuda.get_device_capability(index)
    if found != _routes.HOPPER or _routes.HOPPER_CODE not in architectures():
        raise UnsupportedDeviceError(
            f'exact="fast" needs compute capability 9.0 and kernels for it; {torch.cuda.get_device_name(index)} is '
            f"sm_{found[0]}{found[1]}, the library has {', '.join(architectures())}. {INSTEAD}"
        )


def check_cols(cols: int) -> None:
    """Check the features of a layer.

    Raises
    ------
    ShapeError
        The kernel does not take them.
    """
    if cols % 8:
        raise ShapeError(f'exact="fast" takes layers of a multiple of 8 features, not {cols}. {INSTEAD}')


def _in_parts(
    x: torch.Tensor, rows: int, product: Callable[[_routes.Route, torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """Multiply `LARGEST` tokens at a time."""
    check_device(torch.cuda.current_device() if x.device.index is None else x.device.index)
    tokens, cols = x.shape
    check_cols(cols)
    if tokens <= LARGEST:
        return product(route(tokens), x)
    out = torch.empty((tokens, rows), dtype=x.dtype, device=x.device)
    for n in range(0, tokens, LARGEST):
        part = x[n : n + LARGEST]
        out[n : n + LARGEST] = product(route(part.shape[0]), part)
    return out


def packed(
    x: torch.Tensor, pack: torch.Tensor, rows: int, bias: torch.Tensor | None, known: Any, stream: int
) -> torch.Tensor:
    """Return x · Wᵀ + bias [tokens, rows] of a pack in mma12; arguments as of `_products.product`."""
    return _in_parts(x, rows, lambda route, part: _products.product(route, part, pack, rows, bias, known, stream))


def plain(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stream: int) -> torch.Tensor:
    """Return the same of plain weights [rows, cols], contiguous."""
    return _in_parts(x, weight.shape[0], lambda route, part: _products.product_plain(route, part, weight, bias, stream))


# ---- the operator for plain weights --------------------------------------------------------------------------------


def _check(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
    rows = weight.shape[0] if weight.dim() == 2 else -1
    given = [x, weight] if bias is None else [x, weight, bias]
    if any(tensor.dtype != torch.bfloat16 or tensor.device != x.device for tensor in given):
        found = ", ".join(f"{tensor.dtype} on {tensor.device}" for tensor in given)
        raise ShapeError(f"linear_same takes tensors of torch.bfloat16 on one device, not {found}")
    fits = weight.dim() == 2 and x.dim() > 0 and x.shape[-1] == weight.shape[1]
    if not fits or (bias is not None and tuple(bias.shape) != (rows,)):
        sizes = ", ".join(str(tuple(tensor.shape)) for tensor in given)
        raise ShapeError(f"linear_same takes x [..., cols], weight [rows, cols] and bias [rows], not {sizes}")


def _linear_cpu(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    _check(x, weight, bias)
    return F.linear(x, weight, bias)


def _linear_cuda(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    _check(x, weight, bias)
    shape = (*x.shape[:-1], weight.shape[0])
    if not x.numel() or not weight.numel():
        return x.new_zeros(shape) if bias is None else bias.expand(shape).clone()
    weight = weight.contiguous()
    weight = weight if weight.data_ptr() % 16 == 0 else weight.clone()
    bias = None if bias is None else bias.contiguous()
    with torch.cuda.device(x.device):
        stream = torch.cuda.current_stream(x.device).cuda_stream
        return plain(x.reshape(-1, x.shape[-1]).contiguous(), weight, bias, stream).view(shape)


def _fake(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    _check(x, weight, bias)
    return x.new_empty((*x.shape[:-1], weight.shape[0]))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    del output
    x, weight, bias = inputs
    ctx.save_for_backward(x, weight)
    ctx.has_bias = bias is not None


def _backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
    x, weight = ctx.saved_tensors
    flat, rows = grad.reshape(-1, weight.shape[0]), x.reshape(-1, weight.shape[1])
    grad_x = grad @ weight if ctx.needs_input_grad[0] else None
    grad_weight = flat.T @ rows if ctx.needs_input_grad[1] else None
    grad_bias = flat.sum(dim=0) if ctx.has_bias and ctx.needs_input_grad[2] else None
    return grad_x, grad_weight, grad_bias


torch.library.register_fake("glyd::linear_same", _fake, lib=library)
torch.library.register_autograd("glyd::linear_same", _backward, setup_context=_keep, lib=library)
library.impl("linear_same", _linear_cpu, "CPU")
library.impl("linear_same", _linear_cuda, "CUDA")


# ---- in models -----------------------------------------------------------------------------------------------------


def use_same_order(model: nn.Module) -> Callable[[], None]:
    """Let the plain linear layers of a bf16 model multiply as packed ones do with ``exact="fast"``.

    The model then gives the bits of its packed form: logits, tokens, gradients of activations.

    Returns
    -------
    Callable
        Makes everything as it was.

    Raises
    ------
    ParameterError
        A layer is not in bf16, and nothing was changed.
    """
    layers = [(name, module) for name, module in model.named_modules() if type(module) is nn.Linear]
    for name, layer in layers:
        if layer.weight.dtype != torch.bfloat16:
            raise ParameterError(f"{name} is in {layer.weight.dtype}: packed models, and what equals them, are in bf16")
    replaced = Replaced()
    for _, layer in layers:
        replaced.set(layer, "forward", types.MethodType(_forward, layer))
    return replaced.undo


def _forward(self: nn.Linear, input: torch.Tensor) -> torch.Tensor:  # noqa: A002 - as torch names it
    y: torch.Tensor = torch.ops.glyd.linear_same(input, self.weight, self.bias)
    return y

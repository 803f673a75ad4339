# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Steps of one token a sequence with few kernels: five around the four products of a layer, instead of fifteen.

What a layer adds is added where the next norm reads it; norms of heads, rotation and the places of keys and values
in a static cache are one kernel. Only layers whose source is known word for word are replaced (`_layer_parts`), and
only steps of one token a sequence with a static cache (`generate(cache_implementation="static")`, as packed models do
on CUDA) take the kernels; everything else is computed as before.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import types
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from glyd_gpu import _captured
from glyd_gpu._errors import ShapeError
from glyd_gpu._layer_parts import (
    TAGS,
    body,
    check_bf16,
    is_norm,
    norm_cpu,
    readable,
    rotate_cpu,
    statements,
    stream_of,
    use_layer_parts,
)
from glyd_gpu._library import call
from glyd_gpu._merge import version_of
from glyd_gpu._ops import library
from glyd_gpu._replaced import Replaced

library.define("add_norm(Tensor x, Tensor add, Tensor weight, float eps) -> (Tensor, Tensor)", tags=TAGS)
library.define(
    "place(Tensor q, Tensor k, Tensor v, Tensor? q_weight, Tensor? k_weight, float eps, Tensor cos, Tensor sin, "
    "Tensor(a!) keys, Tensor(b!) values, Tensor position) -> Tensor",
    tags=TAGS,
)

_LAYER = """
residual = hidden_states
hidden_states = self.input_layernorm(hidden_states)
hidden_states, _ = self.self_attn(hidden_states=hidden_states, attention_mask=attention_mask, position_ids=position_ids,
    cache=cache, use_cache=use_cache, position_embeddings=position_embeddings, **kwargs)
hidden_states = residual + hidden_states
residual = hidden_states
hidden_states = self.post_attention_layernorm(hidden_states)
hidden_states = self.mlp(hidden_states)
hidden_states = residual + hidden_states
return hidden_states
"""
_HEADS = """
query_states = self.q_proj(hidden_states).view(hidden_shape).transpose(1, 2)
key_states = self.k_proj(hidden_states).view(hidden_shape).transpose(1, 2)
value_states = self.v_proj(hidden_states).view(hidden_shape).transpose(1, 2)
"""
_HEADS_WITH_NORMS = """
query_states = self.q_norm(self.q_proj(hidden_states).view(hidden_shape)).transpose(1, 2)
key_states = self.k_norm(self.k_proj(hidden_states).view(hidden_shape)).transpose(1, 2)
value_states = self.v_proj(hidden_states).view(hidden_shape).transpose(1, 2)
"""
_ATTENTION = """
input_shape = hidden_states.shape[:-1]
hidden_shape = (*input_shape, -1, self.head_dim)
{heads}
cos, sin = position_embeddings
query_states, key_states = apply_rotary_pos_emb(query_states, key_states, cos, sin)
if cache is not None:
    key_states, value_states = cache.update(key_states, value_states, self.layer_idx)
attention_interface: Callable = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation,
    eager_attention_forward)
attn_output, attn_weights = attention_interface(self, query_states, key_states, value_states, attention_mask,
    dropout=0.0 if not self.training else self.attention_dropout, scaling=self.scaling{window}, **kwargs)
attn_output = attn_output.reshape(*input_shape, -1).contiguous()
attn_output = self.o_proj(attn_output)
return (attn_output, attn_weights)
"""
_WINDOW = ", sliding_window=self.sliding_window"
# what versions of transformers write differently, as the newest has it
_NAMES = (("past_key_values", "cache"), (", kwargs=kwargs)", ")"))


# ---- the operators -------------------------------------------------------------------------------------------------


def _check_add_norm(x: torch.Tensor, add: torch.Tensor, weight: torch.Tensor) -> None:
    check_bf16("add_norm", x, add, weight)
    if x.shape != add.shape or weight.shape != x.shape[-1:] or x.shape[-1] % 8 or not x.shape[-1]:
        raise ShapeError(
            f"add_norm takes two of one shape with rows of a multiple of 8 and a weight for each value of a row, not "
            f"{tuple(x.shape)}, {tuple(add.shape)} and {tuple(weight.shape)}"
        )


def _add_norm_cpu(
    x: torch.Tensor, add: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    _check_add_norm(x, add, weight)
    total = x + add
    return total, norm_cpu(total, weight, eps)


def _aligned(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    return x if x.data_ptr() % 16 == 0 else x.clone()


def _add_norm_cuda(
    x: torch.Tensor, add: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    _check_add_norm(x, add, weight)
    x, add, weight = _aligned(x), _aligned(add), _aligned(weight)
    total, out = torch.empty_like(x), torch.empty_like(x)
    cols = x.shape[-1]
    shape = (ctypes.c_int64 * 2)(x.numel() // cols, cols)
    at = [tensor.data_ptr() for tensor in (out, total, x, add, weight)]
    with torch.cuda.device(x.device):
        call("glyd_gpu_add_norm", *at, shape, eps, stream_of(x))
    return total, out


def _check_place(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cos: torch.Tensor, *rest: torch.Tensor) -> None:
    sin, keys, values, position = rest
    check_bf16("place", q, k, v, cos, sin, keys, values)
    rows, _, channels = q.shape
    fits = k.shape == v.shape == (rows, keys.shape[1], channels) and keys.shape == values.shape
    fits = fits and keys.dim() == 4 and (keys.shape[0], keys.shape[3]) == (rows, channels)
    angles = cos.shape == sin.shape and cos.shape in {(rows, channels), (1, channels)}
    if not (fits and angles and position.shape == (1,) and position.dtype == torch.int64):
        raise ShapeError(
            "place takes q, k, v [rows, heads, channels], cos and sin [rows or 1, channels], keys and values [rows, heads, "
            f"length, channels] and one position of torch.int64, not {tuple(q.shape)}, {tuple(k.shape)}, {tuple(v.shape)}, "
            f"{tuple(cos.shape)}, {tuple(sin.shape)}, {tuple(keys.shape)}, {tuple(values.shape)}, {tuple(position.shape)}"
        )


def _place_cpu(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, q_weight: torch.Tensor | None, k_weight: torch.Tensor | None,
    eps: float, cos: torch.Tensor, sin: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, position: torch.Tensor,
) -> torch.Tensor:  # fmt: skip
    _check_place(q, k, v, cos, sin, keys, values, position)
    q = q if q_weight is None else norm_cpu(q, q_weight, eps)
    k = k if k_weight is None else norm_cpu(k, k_weight, eps)
    turned = rotate_cpu(
        q.transpose(0, 1).unsqueeze(0), k.transpose(0, 1).unsqueeze(0), cos.unsqueeze(0), sin.unsqueeze(0)
    )
    q, k = (x[0].transpose(0, 1) for x in turned)
    at = int(position)
    if 0 <= at < keys.shape[2]:
        keys[:, :, at], values[:, :, at] = k, v
    return q.contiguous()


def _place_cuda(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, q_weight: torch.Tensor | None, k_weight: torch.Tensor | None,
    eps: float, cos: torch.Tensor, sin: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, position: torch.Tensor,
) -> torch.Tensor:  # fmt: skip
    _check_place(q, k, v, cos, sin, keys, values, position)
    rows, heads, channels = q.shape
    if channels & (channels - 1) or not 16 <= channels <= 512:
        raise ShapeError(f"place takes heads of 16, 32 … 512 channels, not {channels}")
    if not (keys.is_contiguous() and values.is_contiguous()):
        raise ShapeError("place takes keys and values one behind the other")
    # heads of a row one behind the other, as a product leaves them
    q, k, v = (x if readable(x) and x.stride(1) == channels else _aligned(x) for x in (q, k, v))
    cos, sin = _aligned(cos), _aligned(sin)
    weights = [None if w is None else _aligned(w) for w in (q_weight, k_weight)]
    out = torch.empty((rows, heads, channels), dtype=q.dtype, device=q.device)
    given = (q, k, v, *weights, cos, sin, position)
    pointers = (ctypes.c_void_p * 8)(*(None if x is None else x.data_ptr() for x in given))
    angle = channels if cos.shape[0] > 1 else 0
    shape = (ctypes.c_int64 * 9)(
        rows, heads, keys.shape[1], channels, keys.shape[2], q.stride(0), k.stride(0), v.stride(0), angle
    )
    with torch.cuda.device(q.device):
        at = (out.data_ptr(), keys.data_ptr(), values.data_ptr())
        call("glyd_gpu_place", *at, pointers, shape, eps, stream_of(q))
    return out


def _fake_add_norm(x: torch.Tensor, *_: object) -> tuple[torch.Tensor, torch.Tensor]:
    return (torch.empty(x.shape, dtype=x.dtype, device=x.device), torch.empty(x.shape, dtype=x.dtype, device=x.device))


def _fake_place(q: torch.Tensor, *_: object) -> torch.Tensor:
    return torch.empty(q.shape, dtype=q.dtype, device=q.device)


torch.library.register_fake("glyd::add_norm", _fake_add_norm, lib=library)
torch.library.register_fake("glyd::place", _fake_place, lib=library)
library.impl("add_norm", _add_norm_cpu, "CPU")
library.impl("add_norm", _add_norm_cuda, "CUDA")
library.impl("place", _place_cpu, "CPU")
library.impl("place", _place_cuda, "CUDA")


# ---- in models -----------------------------------------------------------------------------------------------------


def use_step_parts(model: nn.Module) -> Callable[[], None]:
    """Let steps of one token a sequence take few kernels, where layers are written as is known here.

    Norms, rotations and gates are replaced as by `use_layer_parts`.

    Returns
    -------
    Callable
        Makes everything as it was.
    """
    undo_parts = use_layer_parts(model)
    replaced = Replaced()
    for stack in model.modules():
        layers, last = getattr(stack, "layers", None), getattr(stack, "norm", None)
        if not isinstance(layers, nn.ModuleList) or not len(layers) or not all(_is_layer(layer) for layer in layers):
            continue
        norms = [*(layer.input_layernorm for layer in layers), last]
        if not all(norm is not None and is_norm(norm) for norm in norms):
            continue
        for norm in norms:
            before = norm.__dict__.get("forward") or type(norm).forward.__get__(norm)
            replaced.set(norm, "forward", types.MethodType(functools.partial(_kept_norm, before), norm))
        for layer, following in zip(layers, norms[1:], strict=True):
            replaced.set(layer, "forward", types.MethodType(functools.partial(_layer_forward, following), layer))
    for module in model.modules():
        if type(module).__name__.endswith("Attention") and _is_attention(module):
            replaced.set(module, "forward", types.MethodType(_attention_forward, module))

    _captured.forget(model)

    def undo() -> None:
        replaced.undo()
        undo_parts()
        _captured.forget(model)

    return undo


@functools.cache
def _known(function: Any) -> str:
    text = body(function) or ""
    for old, new in _NAMES:
        text = text.replace(old, new)
    return text


@functools.cache
def _is(function: Any, text: str) -> bool:
    return _known(function) == statements(text)


def _is_layer(layer: Any) -> bool:
    kind = type(layer)
    names = ("input_layernorm", "post_attention_layernorm", "self_attn", "mlp")
    return (
        "forward" not in layer.__dict__
        and all(name in layer._modules for name in names)
        and is_norm(layer.input_layernorm)
        and is_norm(layer.post_attention_layernorm)
        and _is(kind.forward, _LAYER)
    )


def _is_attention(module: Any) -> bool:
    if "forward" in module.__dict__:
        return False
    normed = "q_norm" in module._modules
    if normed and not (is_norm(module.q_norm) and is_norm(module.k_norm)):
        return False
    heads = _HEADS_WITH_NORMS if normed else _HEADS
    return any(_is(type(module).forward, _ATTENTION.format(heads=heads, window=w)) for w in ("", _WINDOW))


def _kept_norm(before: Callable[..., torch.Tensor], self: Any, hidden_states: torch.Tensor) -> torch.Tensor:
    """Return what the layer before has computed of this very tensor, or compute it."""
    kept = self.__dict__.pop("glyd_kept", None)
    if kept is not None and kept[0] is hidden_states and kept[2] == version_of(hidden_states):
        normed: torch.Tensor = kept[1]
        return normed
    return before(hidden_states)


def _layer_forward(following: Any, self: Any, hidden_states: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    usual: torch.Tensor
    known = not args and "attention_mask" in kwargs and hidden_states.dtype == torch.bfloat16
    if not known or torch.is_grad_enabled() or torch.compiler.is_compiling():
        usual = type(self).forward(self, hidden_states, *args, **kwargs)
        return usual
    attended, _ = self.self_attn(hidden_states=self.input_layernorm(hidden_states), **kwargs)
    norm = self.post_attention_layernorm
    total, normed = torch.ops.glyd.add_norm(attended, hidden_states, norm.weight, norm.variance_epsilon)
    total, normed = torch.ops.glyd.add_norm(self.mlp(normed), total, following.weight, following.variance_epsilon)
    following.__dict__["glyd_kept"] = (total, normed, version_of(total))
    return total


def _attention_forward(
    self: Any, hidden_states: torch.Tensor, position_embeddings: Any = None, attention_mask: Any = None, **kwargs: Any
) -> tuple[torch.Tensor, Any]:
    cache = kwargs.get("cache", kwargs.get("past_key_values"))
    layer = _placed(self, cache, hidden_states, position_embeddings)
    if layer is None:
        usual: tuple[torch.Tensor, Any] = type(self).forward(
            self, hidden_states, position_embeddings=position_embeddings, attention_mask=attention_mask, **kwargs
        )
        return usual
    heads = (hidden_states.shape[0], -1, self.head_dim)
    q, k, v = (project(hidden_states).view(heads) for project in (self.q_proj, self.k_proj, self.v_proj))
    normed = "q_norm" in self._modules
    weights = (self.q_norm.weight, self.k_norm.weight) if normed else (None, None)
    eps = self.q_norm.variance_epsilon if normed else 0.0
    cos, sin = (x[:, 0] for x in position_embeddings)
    of_decoder = hasattr(layer, "places")  # which counts for all layers
    places = layer.places if of_decoder else layer.cumulative_length.view(1)
    out = torch.ops.glyd.place(q, k, v, *weights, eps, cos, sin, layer.keys, layer.values, places)
    if not of_decoder:
        layer.cumulative_length.add_(1)
    file = sys.modules[type(self).__module__]
    attend = file.ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, file.eager_attention_forward)
    rest = {name: value for name, value in kwargs.items() if name not in {"cache", "past_key_values"}}
    if hasattr(self, "sliding_window"):
        rest["sliding_window"] = self.sliding_window
    attended, weights_of = attend(
        self, out.unsqueeze(2), layer.keys, layer.values, attention_mask, dropout=0.0, scaling=self.scaling, **rest
    )
    return self.o_proj(attended.reshape(*hidden_states.shape[:-1], -1).contiguous()), weights_of


def _is_static(layer: Any) -> bool:
    """Say whether a layer of a cache is our decoder's, or transformers' own that counts its tokens on the device."""
    if hasattr(layer, "places"):
        return True
    from transformers.cache_utils import StaticLayer  # noqa: PLC0415 - seconds

    length = getattr(layer, "cumulative_length", None)
    return type(layer) is StaticLayer and isinstance(length, torch.Tensor) and length.dtype == torch.int64


def _placed(self: Any, cache: Any, x: torch.Tensor, angles: Any) -> Any:
    """Return the layer of a static cache where it can be written to, for a step of one token a sequence; else None."""
    layers = getattr(cache, "layers", None)
    layer: Any = layers[self.layer_idx] if layers is not None and self.layer_idx < len(layers) else None
    if not _is_static(layer) or not layer.is_initialized or self.training:
        return None
    if x.dim() != 3 or x.shape[1] != 1 or torch.is_grad_enabled() or torch.compiler.is_compiling():
        return None
    of_bf16 = all(tensor.dtype == torch.bfloat16 for tensor in (x, *angles, layer.keys, layer.values))
    power = self.head_dim & (self.head_dim - 1) == 0 and 16 <= self.head_dim <= 512
    same = not hasattr(self, "q_norm") or self.q_norm.variance_epsilon == self.k_norm.variance_epsilon
    return layer if of_bf16 and power and same and angles[0].shape[-1] == self.head_dim else None

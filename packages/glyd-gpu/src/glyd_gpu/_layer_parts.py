# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Norms, rotations and gates of transformers' layers, each as one kernel instead of up to eight.

Only what is known word for word is replaced: the source of a module's forward, or of a file's rotation, is compared.
On the CPU, and for tensors that the kernels do not take, everything is computed as before.
"""

from __future__ import annotations

import ast
import ctypes
import functools
import inspect
import textwrap
import types
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from glyd_gpu._errors import ShapeError
from glyd_gpu._library import call
from glyd_gpu._ops import library
from glyd_gpu._replaced import Replaced, rotations

TAGS = (torch.Tag.pt2_compliant_tag,)
library.define("norm(Tensor x, Tensor weight, float eps) -> Tensor", tags=TAGS)
library.define("rotate(Tensor q, Tensor k, Tensor cos, Tensor sin) -> (Tensor, Tensor)", tags=TAGS)
library.define("gate(Tensor gate, Tensor up) -> Tensor", tags=TAGS)

_NORM = """
input_dtype = hidden_states.dtype
hidden_states = hidden_states.to(torch.float32)
variance = hidden_states.pow(2).mean(-1, keepdim=True)
hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
return self.weight * hidden_states.to(input_dtype)
"""
_MLP = """
down_proj = self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))
return down_proj
"""
_ROTATION = """
cos = cos.unsqueeze(unsqueeze_dim)
sin = sin.unsqueeze(unsqueeze_dim)
q_embed = (q * cos) + (rotate_half(q) * sin)
k_embed = (k * cos) + (rotate_half(k) * sin)
return q_embed, k_embed
"""
_HALF = """
x1 = x[..., : x.shape[-1] // 2]
x2 = x[..., x.shape[-1] // 2 :]
return torch.cat((-x2, x1), dim=-1)
"""


# ---- the operators -------------------------------------------------------------------------------------------------


def check_bf16(name: str, *tensors: torch.Tensor) -> None:
    for x in tensors:
        if x.dtype != torch.bfloat16:
            raise ShapeError(f"{name} takes torch.bfloat16, not {x.dtype}")


def norm_cpu(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    check_bf16("norm", x, weight)
    wide = x.float()
    return weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype)


def _half(x: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def rotate_cpu(
    q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    check_bf16("rotate", q, k, cos, sin)
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return q * cos + _half(q) * sin, k * cos + _half(k) * sin


def _gate_cpu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    check_bf16("gate", gate, up)
    return F.silu(gate) * up


def readable(x: torch.Tensor) -> bool:
    """Say whether rows can be read 16 bytes at a time."""
    return x.stride(-1) == 1 and x.data_ptr() % 16 == 0 and not any(s % 8 for s in x.stride()[:-1])


def _rows(x: torch.Tensor) -> tuple[torch.Tensor, int, int, int, int]:
    """Return a tensor to read, its rows, inner rows, and their strides."""
    cols = x.shape[-1]
    if x.shape[0] == 1 and x.dim() in (3, 4) and readable(x):
        if x.dim() == 3:
            return x, x.shape[1], 1, x.stride(1), 0
        return x, x.shape[1], x.shape[2], x.stride(1), x.stride(2)
    x = x.contiguous()
    x = x if x.data_ptr() % 16 == 0 else x.clone()
    return x, x.numel() // cols, 1, cols, 0


def stream_of(x: torch.Tensor) -> int:
    return int(torch.cuda.current_stream(x.device).cuda_stream)


def _norm_cuda(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    check_bf16("norm", x, weight)
    cols = x.shape[-1]
    if weight.shape != (cols,) or cols % 8 or not cols:
        raise ShapeError(f"norm takes a weight of {cols} values, a multiple of 8, not {tuple(weight.shape)}")
    source, rows, inner, outer, within = _rows(x)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    shape = (ctypes.c_int64 * 5)(rows, inner, cols, outer, within)
    with torch.cuda.device(x.device):
        weight = weight if weight.data_ptr() % 16 == 0 and weight.is_contiguous() else weight.clone()
        call("glyd_gpu_norm", out.data_ptr(), source.data_ptr(), weight.data_ptr(), shape, eps, stream_of(x))
    return out


def _rotate_cuda(
    q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    check_bf16("rotate", q, k, cos, sin)
    _, heads, rows, channels = q.shape
    angles = {(1, rows, channels), (1, 1, channels)}  # the second: all rows are turned alike
    if q.shape[0] != 1 or k.shape[2:] != (rows, channels) or cos.shape not in angles or sin.shape != cos.shape:
        raise ShapeError(
            f"rotate takes q and k [1, heads, rows, channels] and cos and sin [1, rows or 1, channels], not "
            f"{tuple(q.shape)}, {tuple(k.shape)}, {tuple(cos.shape)}, {tuple(sin.shape)}"
        )
    q, k = (x if readable(x) else x.contiguous() for x in (q, k))
    cos, sin = (x.contiguous() if x.data_ptr() % 16 == 0 else x.clone() for x in (cos, sin))
    key_heads = k.shape[1]
    out = torch.empty(rows * (heads + key_heads) * channels, dtype=q.dtype, device=q.device)
    strides = (q.stride(2), q.stride(1), k.stride(2), k.stride(1), channels if cos.shape[1] > 1 else 0)
    shape = (ctypes.c_int64 * 9)(rows, heads, key_heads, channels, *strides)
    with torch.cuda.device(q.device):
        call(
            "glyd_gpu_rotate",
            out.data_ptr(),
            q.data_ptr(),
            k.data_ptr(),
            cos.data_ptr(),
            sin.data_ptr(),
            shape,
            stream_of(q),
        )
    of_q = out[: rows * heads * channels].view(1, rows, heads, channels)
    of_k = out[rows * heads * channels :].view(1, rows, key_heads, channels)
    return of_q.transpose(1, 2), of_k.transpose(1, 2)


def _gate_cuda(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    check_bf16("gate", gate, up)
    if gate.shape != up.shape or gate.shape[-1] % 8:
        raise ShapeError(f"gate takes two of one shape with rows of a multiple of 8, not {gate.shape} and {up.shape}")
    (g, rows, inner, g_row, _), (u, _, _, u_row, _) = _rows(gate), _rows(up)
    if inner != 1:
        raise ShapeError(f"gate takes up to three dimensions, not {gate.dim()}")
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    shape = (ctypes.c_int64 * 4)(rows, gate.shape[-1], g_row, u_row)
    with torch.cuda.device(gate.device):
        call("glyd_gpu_gate", out.data_ptr(), g.data_ptr(), u.data_ptr(), shape, stream_of(gate))
    return out


def _fake_norm(x: torch.Tensor, *_: object) -> torch.Tensor:
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


def _fake_rotate(q: torch.Tensor, k: torch.Tensor, *_: object) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty_like(q), torch.empty_like(k)


torch.library.register_fake("glyd::norm", _fake_norm, lib=library)
torch.library.register_fake("glyd::rotate", _fake_rotate, lib=library)
torch.library.register_fake("glyd::gate", _fake_norm, lib=library)
for _name, _cpu, _cuda in (
    ("norm", norm_cpu, _norm_cuda),
    ("rotate", rotate_cpu, _rotate_cuda),
    ("gate", _gate_cpu, _gate_cuda),
):
    library.impl(_name, _cpu, "CPU")
    library.impl(_name, _cuda, "CUDA")


# ---- in models -----------------------------------------------------------------------------------------------------


def use_layer_parts(model: nn.Module) -> Callable[[], None]:
    """Let a model compute its norms, rotations and gates by our operators, where it writes them as is known here.

    Returns
    -------
    Callable
        Makes everything as it was. Rotations are functions of transformers' file of the model: other models of the
        same file use the operator meanwhile as well.
    """
    replaced = Replaced()
    for module in model.modules():
        kind = type(module)
        if "forward" in module.__dict__ or "forward" not in kind.__dict__:
            continue
        if kind.__name__.endswith("RMSNorm") and _is(kind.forward, _NORM):
            if is_norm(module):
                replaced.set(module, "forward", types.MethodType(_norm_forward, module))
        elif kind.__name__.endswith("MLP") and _is(kind.forward, _MLP) and _is_silu(module):
            replaced.set(module, "forward", types.MethodType(_mlp_forward, module))
    for file, rotate in rotations(model):
        known = not hasattr(rotate, "glyd_before") and _is(rotate, _ROTATION)
        if known and _is(getattr(file, "rotate_half", None), _HALF):
            replaced.set(file, "apply_rotary_pos_emb", _rotation(rotate))
    return replaced.undo


@functools.cache
def body(function: Any) -> str | None:
    """Return the statements of a function without its docstring; None where they are not to be had."""
    try:
        (head,) = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function)))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    statements = head.body if isinstance(head, ast.FunctionDef) else []
    if statements and isinstance(statements[0], ast.Expr) and isinstance(statements[0].value, ast.Constant):
        statements = statements[1:]
    return "\n".join(map(ast.unparse, statements))


@functools.cache
def statements(text: str) -> str:
    """Return statements as `body` writes them."""
    return "\n".join(map(ast.unparse, ast.parse(text).body))


@functools.cache
def _is(function: Any, text: str) -> bool:
    """Say whether a function's statements are these."""
    return body(function) == statements(text)


def is_norm(module: Any) -> bool:
    weight = getattr(module, "weight", None)
    return (
        isinstance(weight, torch.Tensor)
        and weight.dtype == torch.bfloat16
        and weight.dim() == 1
        and weight.numel() % 8 == 0
        and isinstance(getattr(module, "variance_epsilon", None), float)
    )


def _is_silu(module: Any) -> bool:
    return isinstance(module.act_fn, nn.SiLU) or type(module.act_fn).__name__ in {"SiLUActivation", "SiLU"}


def _norm_forward(self: Any, hidden_states: torch.Tensor) -> torch.Tensor:
    if hidden_states.dtype != torch.bfloat16:
        usual: torch.Tensor = type(self).forward(self, hidden_states)
        return usual
    return torch.ops.glyd.norm(hidden_states, self.weight, self.variance_epsilon)


def _mlp_forward(self: Any, x: torch.Tensor) -> torch.Tensor:
    gate, up = self.gate_proj(x), self.up_proj(x)
    if gate.dtype != torch.bfloat16 or gate.shape[-1] % 8 or gate.dim() > 3:
        between = self.act_fn(gate) * up
    else:
        between = torch.ops.glyd.gate(gate, up)
    y: torch.Tensor = self.down_proj(between)
    return y


def _rotation(before: Any) -> Any:
    """Return a rotation that is ours where it can be, and else what was there."""

    @functools.wraps(before)
    def rotate(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, unsqueeze_dim: int = 1) -> Any:
        fits = unsqueeze_dim == 1 and q.dim() == 4 and not q.shape[3] % 16 and cos.shape == sin.shape
        if not fits or not q.dtype == cos.dtype == sin.dtype == torch.bfloat16:
            return before(q, k, cos, sin, unsqueeze_dim=unsqueeze_dim)
        batch, _, n, channels = q.shape
        if batch == 1 and cos.shape == (1, n, channels):
            return torch.ops.glyd.rotate(q, k, cos, sin)
        if n == 1 and cos.shape in {(1, 1, channels), (batch, 1, channels)}:  # a token of each of several sequences
            turned = torch.ops.glyd.rotate(
                q.transpose(0, 2), k.transpose(0, 2), cos.transpose(0, 1), sin.transpose(0, 1)
            )
            return turned[0].transpose(0, 2), turned[1].transpose(0, 2)
        return before(q, k, cos, sin, unsqueeze_dim=unsqueeze_dim)

    rotate.glyd_before = before  # type: ignore[attr-defined]
    return rotate

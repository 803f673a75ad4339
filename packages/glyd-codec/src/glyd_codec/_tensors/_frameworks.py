# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Tensors as numpy or torch objects, or as their bytes. Nothing here is imported before it is asked for."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

from glyd_codec._errors import ParameterError

if TYPE_CHECKING:
    from typing import Any

_NAMES = {"numpy": "numpy", "np": "numpy", "torch": "torch", "pt": "torch", "bytes": "bytes"}

_NUMPY = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "F16": "float16",
    "U32": "uint32", "I32": "int32", "F32": "float32", "U64": "uint64", "I64": "int64", "F64": "float64",
    "C64": "complex64",
}  # fmt: skip
_ML_DTYPES = {"BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu"}
_TORCH = _NUMPY | _ML_DTYPES
_CODES = {name: code for code, name in (_NUMPY | _ML_DTYPES).items()}


def framework_name(framework: str) -> str:
    """Return "numpy", "torch" or "bytes".

    Raises
    ------
    ParameterError
        For anything that is none of these, "np" or "pt".
    """
    if framework not in _NAMES:
        raise ParameterError(f"framework must be one of {', '.join(_NAMES)}; not {framework!r}")
    return _NAMES[framework]


def _load(module: str, what: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        hint = f"pip install {module}, or ask for framework='bytes'"
        raise ImportError(f"{what} needs {module}: {hint}", name=module) from None


def _numpy_dtype(code: str, name: str) -> Any:
    if code in _ML_DTYPES:
        types = _load("ml_dtypes", f"tensor {name!r} of type {code} as a numpy array")
        return importlib.import_module("numpy").dtype(getattr(types, _ML_DTYPES[code]))
    if code not in _NUMPY:
        raise ParameterError(f"tensor {name!r}: numpy has no type for {code}; framework='bytes' gives its bytes")
    return importlib.import_module("numpy").dtype(_NUMPY[code])


def make_tensor(data: bytearray, code: str, shape: tuple[int, ...], name: str, framework: str, device: str) -> Any:
    """Return a tensor over bytes that nobody else uses; they are not copied, unless to a device.

    Raises
    ------
    ImportError
        The framework is not installed.
    ParameterError
        It has no such type.
    """
    if framework == "bytes":
        return data
    if framework == "numpy":
        numpy = _load("numpy", f"tensor {name!r} as a numpy array")
        return numpy.frombuffer(data, dtype=_numpy_dtype(code, name)).reshape(shape)
    torch = _load("torch", f"tensor {name!r} as a torch tensor")
    dtype = getattr(torch, _TORCH.get(code, ""), None)
    if dtype is None:
        raise ParameterError(f"tensor {name!r}: torch has no type for {code}; framework='bytes' gives its bytes")
    if not data:  # torch.frombuffer takes no empty buffer
        return torch.empty(shape, dtype=dtype, device=device)
    return torch.frombuffer(data, dtype=dtype).reshape(shape).to(device)


def make_strided(flat: Any, shape: tuple[int, ...], strides: tuple[int, ...], name: str, framework: str) -> Any:
    """Return a tensor, in order, whose elements lie in a flat one at strides.

    Raises
    ------
    ParameterError
        For framework "bytes".
    """
    if framework == "bytes":
        raise ParameterError(f"tensor {name!r} is stored with strides: framework='bytes' would not give its elements")
    if framework == "numpy":
        numpy = importlib.import_module("numpy")
        nbytes = [stride * flat.itemsize for stride in strides]
        return numpy.ascontiguousarray(numpy.lib.stride_tricks.as_strided(flat, shape, nbytes))
    return flat.as_strided(shape, strides).contiguous()


def describe_tensor(value: Any, name: str) -> tuple[str, tuple[int, ...]]:
    """Return type code and shape of a numpy array or torch tensor.

    Raises
    ------
    TypeError
        It is neither.
    ParameterError
        Its type has no code.
    """
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is None or shape is None:
        raise TypeError(f"tensor {name!r} must be a numpy array or a torch tensor, not {type(value).__name__}")
    type_name = str(dtype).removeprefix("torch.")
    code = _CODES.get(getattr(dtype, "name", type_name))
    if code is None:
        raise ParameterError(f"tensor {name!r}: no code for type {dtype}")
    return code, tuple(int(n) for n in shape)


def tensor_bytes(value: Any) -> memoryview:
    """Return the bytes of an array or tensor, row-major and little-endian; copied only if they are not yet so."""
    if hasattr(value, "detach"):
        torch = importlib.import_module("torch")
        value = value.detach().cpu().contiguous().reshape(-1)
        if value.numel() == 0:
            return memoryview(b"")
        return memoryview(value.view(torch.uint8).numpy())
    numpy = importlib.import_module("numpy")
    value = numpy.ascontiguousarray(value)
    order = value.dtype.byteorder
    if order == ">" or (order == "=" and sys.byteorder == "big"):
        value = value.byteswap()
    return memoryview(value.reshape(-1).view(numpy.uint8)) if value.size else memoryview(b"")

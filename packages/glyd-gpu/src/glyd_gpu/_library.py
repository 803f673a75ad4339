# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The library of kernels: where it is, its functions, and its errors as exceptions."""

from __future__ import annotations

import ctypes
import functools
import os
from ctypes import c_char_p, c_float, c_int, c_int32, c_int64, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from glyd_gpu._errors import CudaError, KernelsUnavailableError

ABI_VERSION = 5
PATH = Path(__file__).resolve().parent / "kernels" / "libglyd_gpu.so"
VARIABLE = "GLYD_GPU_LIBRARY"

Meta = ctypes.POINTER(c_int64)
Config = ctypes.POINTER(c_int32)
Pointers = ctypes.POINTER(c_void_p)

# name → (result, arguments), as kernels/glyd_gpu.h declares them; a test compares the two
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "glyd_gpu_abi_version": (c_int, []),
    "glyd_gpu_architectures": (c_char_p, []),
    "glyd_gpu_error_text": (c_char_p, [c_int]),
    "glyd_gpu_unpack": (c_int, [c_void_p, c_void_p, c_uint64, Meta, c_int64, c_int64, c_void_p]),
    "glyd_gpu_check_pack": (c_int, [c_void_p, c_void_p, c_uint64, Meta, c_void_p]),
    "glyd_gpu_embedding": (c_int, [c_void_p, c_void_p, c_uint64, c_int, c_void_p, c_uint64, Meta, c_void_p]),
    "glyd_gpu_linear_generic_workspace": (c_int64, [c_uint64, Meta]),
    "glyd_gpu_linear_generic": (
        c_int,
        [c_void_p, c_void_p, c_uint64, c_void_p, c_void_p, c_uint64, Meta, c_void_p, c_uint64, c_void_p],
    ),
    "glyd_gpu_linear_experts_workspace": (c_int64, [c_uint64, c_int64, Meta]),
    "glyd_gpu_linear_experts": (
        c_int,
        [
            c_void_p,
            c_void_p,
            c_void_p,
            c_int,
            c_uint64,
            c_int64,
            c_void_p,
            c_uint64,
            Meta,
            c_void_p,
            c_uint64,
            c_void_p,
        ],
    ),
    "glyd_gpu_product_ring_workspace": (c_int64, [Meta, c_uint64, Config]),
    "glyd_gpu_product_ring_exceptions": (c_int64, [Meta, Config]),
    "glyd_gpu_product_ring": (
        c_int,
        [c_void_p, c_void_p, c_uint64, c_void_p, c_void_p, c_uint64, Meta, c_void_p, c_uint64, Config, c_void_p],
    ),
    "glyd_gpu_product_staged_workspace": (c_int64, [c_int64, c_int64, c_uint64, Config]),
    "glyd_gpu_product_staged": (
        c_int,
        [c_void_p, c_void_p, c_uint64, c_void_p, c_void_p, c_uint64, Meta, c_void_p, c_uint64, Config, c_void_p],
    ),
    "glyd_gpu_product_plain": (
        c_int,
        [
            c_void_p,
            c_void_p,
            c_uint64,
            c_void_p,
            c_void_p,
            c_int64,
            c_int64,
            c_void_p,
            c_uint64,
            Config,
            c_void_p,
        ],
    ),
    "glyd_gpu_product_split_workspace": (c_int64, [Meta, c_uint64, Config]),
    "glyd_gpu_product_split": (
        c_int,
        [c_void_p, c_void_p, c_uint64, c_void_p, c_void_p, c_uint64, Meta, c_void_p, c_uint64, Config, c_void_p],
    ),
    "glyd_gpu_product_pair_workspace": (c_int64, [Meta, c_uint64, Config]),
    "glyd_gpu_product_pair": (
        c_int,
        [c_void_p, c_void_p, c_uint64, c_void_p, c_void_p, c_uint64, Meta, c_void_p, c_uint64, Config, c_void_p],
    ),
    "glyd_gpu_product_stream": (
        c_int,
        [c_void_p, c_void_p, c_uint64, c_void_p, c_void_p, c_uint64, Meta, Config, c_void_p],
    ),
    "glyd_gpu_kv_pack": (c_int, [c_void_p, c_void_p, c_void_p, c_uint64, c_int, c_void_p]),
    "glyd_gpu_kv_place": (c_int, [c_void_p, c_void_p, c_void_p, c_uint64, c_int, c_void_p]),
    "glyd_gpu_kv_unpack": (c_int, [c_void_p, c_void_p, c_uint64, c_int, c_void_p]),
    "glyd_gpu_kv_attention_workspace": (c_int64, [Config]),
    "glyd_gpu_kv_attention": (
        c_int,
        [
            c_void_p,
            c_void_p,
            c_void_p,
            c_void_p,
            c_void_p,
            c_void_p,
            c_void_p,
            Config,
            c_float,
            c_void_p,
            c_uint64,
            c_void_p,
        ],
    ),
    "glyd_gpu_paged_attention_workspace": (c_int64, [Meta]),
    "glyd_gpu_paged_attention": (
        c_int,
        [
            c_void_p,
            c_void_p,
            c_void_p,
            c_void_p,
            c_void_p,
            c_void_p,
            c_void_p,
            c_void_p,
            Meta,
            c_float,
            c_void_p,
            c_uint64,
            c_void_p,
        ],
    ),
    "glyd_gpu_norm": (c_int, [c_void_p, c_void_p, c_void_p, Meta, c_float, c_void_p]),
    "glyd_gpu_add_norm": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, Meta, c_float, c_void_p]),
    "glyd_gpu_place": (c_int, [c_void_p, c_void_p, c_void_p, Pointers, Meta, c_float, c_void_p]),
    "glyd_gpu_rotate": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, Meta, c_void_p]),
    "glyd_gpu_gate": (c_int, [c_void_p, c_void_p, c_void_p, Meta, c_void_p]),
    "glyd_gpu_capture_id": (c_uint64, [c_void_p]),
    "glyd_gpu_plan_nbytes": (c_int64, [Meta]),
    "glyd_gpu_plan": (c_int, [c_void_p, c_uint64, c_void_p, c_uint64, c_void_p, c_void_p, Meta, c_void_p]),
    "glyd_gpu_pack": (c_int, [c_void_p, c_uint64, c_void_p, c_void_p, c_void_p, Meta, c_void_p]),
}


def library_path() -> Path:
    """Return where the library is looked for: ``GLYD_GPU_LIBRARY``, else inside of this package."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else PATH


@functools.cache
def load() -> ctypes.CDLL:
    """Load the library, once.

    Raises
    ------
    KernelsUnavailableError
        There is none, it cannot be loaded, or it is of another version; the message says what to do.
    """
    path = library_path()
    if not path.is_file():
        raise KernelsUnavailableError(
            f"this installation of glyd-gpu has no kernels: no file {path}. Install a wheel for this platform, or "
            "build one where nvcc is (pip install --no-binary glyd-gpu glyd-gpu)"
        )
    try:
        library = ctypes.CDLL(str(path))
        version = library.glyd_gpu_abi_version
    except (OSError, AttributeError) as error:
        raise KernelsUnavailableError(f"the kernels cannot be loaded: {path}: {error}") from error
    version.restype, version.argtypes = FUNCTIONS["glyd_gpu_abi_version"]
    if version() != ABI_VERSION:
        raise KernelsUnavailableError(
            f"{path} has interface {version()}, this version of glyd-gpu needs {ABI_VERSION}: install both from one wheel",
            expected=ABI_VERSION,
            found=version(),
        )
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def architectures() -> list[str]:
    """Return the architectures in the library, for instance ``sm_90a``."""
    return str(load().glyd_gpu_architectures().decode()).split(",")


def call(name: str, *args: Any) -> None:
    """Call a launcher.

    Raises
    ------
    CudaError
        It returned an error; the message has its name, number and reason.
    """
    library = load()
    code = getattr(library, name)(*args)
    if code:
        text = library.glyd_gpu_error_text(code).decode()
        raise CudaError(f"{name}: {text} ({'CUDA error' if code > 0 else 'status'} {abs(code)})", found=code)

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""bf16 models held packed in GPU memory and multiplied from the packed form.

Importing this package registers the operators ``torch.ops.glyd`` (`linear`,
`unpack`, `embedding`, `pack`) for the CPU and for CUDA, and makes transformers
load packed models: `from_pretrained`, or transformers' own.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import glyd_gpu_auto
from glyd_gpu import _backend_cuda as _backend_cuda
from glyd_gpu import _backend_reference as _backend_reference
from glyd_gpu import _kv_cuda as _kv_cuda
from glyd_gpu import _kv_ops as _kv_ops
from glyd_gpu import _layer_parts as _layer_parts
from glyd_gpu import _paged_attention as _paged_attention
from glyd_gpu import _step_parts as _step_parts
from glyd_gpu._errors import (
    CudaError,
    GpuError,
    KernelsUnavailableError,
    ReadOnlyWeightError,
    RoundingWarning,
    ShapeError,
    UnsupportedDeviceError,
)
from glyd_gpu._layer_parts import use_layer_parts
from glyd_gpu._loading import Report, dequantize, from_pretrained, report, save_pretrained
from glyd_gpu._meta import LAYOUTS, PackedMeta
from glyd_gpu._ops import EXACT, FAST, INVARIANT, MODES, SAME
from glyd_gpu._packs import concat_rows, slice_cols, slice_rows
from glyd_gpu._paged_attention import page_slots
from glyd_gpu._same_order import use_same_order
from glyd_gpu._step_parts import use_step_parts
from glyd_gpu._verify import verify_packs
from glyd_gpu._version import __version__
from glyd_gpu.modules import set_exact

if TYPE_CHECKING:
    from glyd_gpu.batching import PackedBatches, check_packable, use_packed_blocks
    from glyd_gpu.kv_cache import GlydKVCache

__all__ = [
    "EXACT",
    "FAST",
    "INVARIANT",
    "LAYOUTS",
    "MODES",
    "SAME",
    "CudaError",
    "GlydKVCache",
    "GpuError",
    "KernelsUnavailableError",
    "PackedBatches",
    "PackedMeta",
    "ReadOnlyWeightError",
    "Report",
    "RoundingWarning",
    "ShapeError",
    "UnsupportedDeviceError",
    "__version__",
    "check_packable",
    "concat_rows",
    "dequantize",
    "from_pretrained",
    "page_slots",
    "report",
    "save_pretrained",
    "set_exact",
    "slice_cols",
    "slice_rows",
    "use_layer_parts",
    "use_packed_blocks",
    "use_same_order",
    "use_step_parts",
    "verify_packs",
]

# modules that import transformers, which takes seconds
_LATER = {
    "GlydKVCache": "kv_cache",
    "PackedBatches": "batching",
    "check_packable": "batching",
    "use_packed_blocks": "batching",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"glyd_gpu.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


glyd_gpu_auto.install()

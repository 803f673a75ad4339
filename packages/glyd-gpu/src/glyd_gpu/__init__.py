# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""bf16 models held packed in GPU memory and multiplied from the packed form.

Importing this package registers the operators ``torch.ops.glyd`` (`linear`,
`unpack`, `embedding`, `pack`) for the CPU and for CUDA.
"""

from __future__ import annotations

from glyd_gpu import _backend_cuda as _backend_cuda
from glyd_gpu import _backend_reference as _backend_reference
from glyd_gpu._errors import CudaError, GpuError, KernelsUnavailableError, ShapeError, UnsupportedDeviceError
from glyd_gpu._meta import LAYOUTS, PackedMeta
from glyd_gpu._ops import EXACT, FAST, INVARIANT, MODES
from glyd_gpu._packs import concat_rows, slice_cols, slice_rows
from glyd_gpu._version import __version__

__all__ = [
    "EXACT",
    "FAST",
    "INVARIANT",
    "LAYOUTS",
    "MODES",
    "CudaError",
    "GpuError",
    "KernelsUnavailableError",
    "PackedMeta",
    "ShapeError",
    "UnsupportedDeviceError",
    "__version__",
    "concat_rows",
    "slice_cols",
    "slice_rows",
]

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The exceptions of glyd-gpu, under those of the codec."""

from __future__ import annotations

from glyd_codec import CorruptDataError, GlydError, ParameterError, UnsupportedVersionError

__all__ = [
    "CorruptDataError",
    "CudaError",
    "GpuError",
    "KernelsUnavailableError",
    "ParameterError",
    "ReadOnlyWeightError",
    "RoundingWarning",
    "ShapeError",
    "UnsupportedDeviceError",
    "UnsupportedVersionError",
]


class GpuError(GlydError, RuntimeError):
    """Base of what goes wrong around a GPU."""


class KernelsUnavailableError(GpuError, ImportError):
    """There are no kernels in this installation, or they cannot be loaded here; the message says how to get them."""


class UnsupportedDeviceError(GpuError):
    """No backend for the device of a tensor."""


class CudaError(GpuError):
    """CUDA refused a launch; the message names the operator and CUDA's reason."""


class ShapeError(GpuError, ValueError):
    """Shape, type or device of a tensor is not what an operator takes."""


class RoundingWarning(UserWarning):
    """A tensor of the checkpoint loses bits as the model is loaded: only where transformers does the same."""


class ReadOnlyWeightError(GpuError):
    """Something wanted to change packed weights in place."""

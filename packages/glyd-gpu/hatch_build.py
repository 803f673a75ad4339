# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Compile the CUDA kernels into the wheel.

``GLYD_GPU_KERNELS`` says what is asked for: ``on`` (the default: with the nvcc
that `build_kernels.find_nvcc` finds), ``wheel`` (with nvcc from PyPI), ``off``
(a pure wheel without kernels). Kernels that are asked for and cannot be built
fail the build.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CHOICES = ("on", "off", "wheel")
NVCC_WHEELS = ["nvidia-cuda-nvcc>=13.0,<14", "nvidia-cuda-runtime>=13.0,<14", "nvidia-cuda-cccl>=13.0,<14"]


def asked() -> str:
    """Return what the environment asks for.

    Raises
    ------
    RuntimeError
        For a value that is none of `CHOICES`.
    """
    choice = os.environ.get("GLYD_GPU_KERNELS", "on")
    if choice not in CHOICES:
        raise RuntimeError(f"GLYD_GPU_KERNELS is {choice!r}; it may be {', '.join(CHOICES)}")
    return choice


class KernelBuildHook(BuildHookInterface[Any]):
    """Hatchling hook: add the library of kernels to the wheel and set the wheel's tag."""

    def dependencies(self) -> list[str]:
        """Return what the build needs from PyPI."""
        return NVCC_WHEELS if self.target_name == "wheel" and asked() == "wheel" else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, for a wheel into a temporary folder, for an editable install beside the sources."""
        if self.target_name != "wheel" or asked() == "off":
            return
        root = Path(self.root)
        sys.path.insert(0, str(root))
        import build_kernels  # noqa: PLC0415  beside this file, which is no package

        folder = root / "src" / "glyd_gpu" / "kernels"
        editable = version == "editable"
        out = (folder if editable else Path(tempfile.mkdtemp(prefix="glyd-gpu-"))) / build_kernels.LIBRARY
        build_kernels.build(out, wheel_only=asked() == "wheel")
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        if not editable:
            build_data["force_include"][str(out)] = f"glyd_gpu/kernels/{out.name}"

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The operators on CUDA devices: kernels of this package."""

from __future__ import annotations

from typing import Any, NoReturn

from glyd_gpu._errors import KernelsUnavailableError
from glyd_gpu._library import load
from glyd_gpu._ops import library


def _unavailable(*_: Any) -> NoReturn:
    load()
    raise KernelsUnavailableError("this version of glyd-gpu has no CUDA kernels yet: use the CPU")


for _name in ("linear", "unpack", "embedding", "pack"):
    library.impl(_name, _unavailable, "CUDA")

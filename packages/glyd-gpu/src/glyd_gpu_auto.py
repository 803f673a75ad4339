# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Lets transformers load packed models without ``import glyd_gpu``.

``glyd_gpu_auto.pth`` runs `install` when Python starts. All that it does is to
wait: when ``transformers.quantizers`` is imported, and never before, glyd-gpu is
imported too and registers itself. With ``GLYD_NO_AUTO=1`` it does not; a packed
model then is refused with a line that says what to import.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

AWAITED = "transformers.quantizers"
VARIABLE = "GLYD_NO_AUTO"


class _Waiting(MetaPathFinder):
    """Sees every import, and lets all but one pass."""

    def __init__(self) -> None:
        self._inside = False

    def find_spec(self, fullname: str, path: object, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of the awaited module, with a loader that tells us; None for all others."""
        del path, target
        if fullname != AWAITED or self._inside:
            return None
        self._inside = True
        try:
            spec = find_spec(fullname)
        finally:
            self._inside = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Telling(spec.loader)
        return spec


class _Telling(Loader):
    """Loads as the loader that it stands for, then registers."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave it to the loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Load, then register."""
        self._loader.exec_module(module)
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        register()

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)


def install() -> None:
    """Wait for transformers; register at once when it is there already. May be called again."""
    if AWAITED in sys.modules:
        register()
    elif not any(isinstance(finder, _Waiting) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Waiting())


def register() -> None:
    """Register glyd-gpu with transformers, or what refuses packed models when ``GLYD_NO_AUTO`` is set."""
    if os.environ.get(VARIABLE, "0") not in {"", "0"} and "glyd_gpu" not in sys.modules:
        _register_refusal("GLYD_NO_AUTO is set: import glyd_gpu before you load it")
        return
    try:
        import_module("glyd_gpu.integrations.transformers")  # registers; torch is there by now
    except ImportError as error:  # an installation of transformers or torch that glyd-gpu does not know
        _register_refusal(f"glyd-gpu cannot be imported beside this transformers ({error})")


def _register_refusal(reason: str) -> None:
    """Make transformers refuse packed models instead of loading them with random weights."""
    from transformers.quantizers import auto  # noqa: PLC0415

    class Refused:
        """Stands where glyd-gpu's configuration would."""

        @classmethod
        def from_dict(cls, *_: object, **__: object) -> object:
            """Refuse.

            Raises
            ------
            ImportError
                Always.
            """
            raise ImportError(f"this is a model packed by glyd, and {reason}")

    auto.AUTO_QUANTIZATION_CONFIG_MAPPING.setdefault("glyd", Refused)

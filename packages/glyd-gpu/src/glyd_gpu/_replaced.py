# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Attributes of modules and files that are others for a while."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from torch import nn


class Replaced:
    """Remembers what it replaces."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def set(self, holder: Any, name: str, value: Any) -> None:
        """Set an attribute of an object itself, whose class may have one of the same name."""
        self._before.append((holder, name, holder.__dict__.get(name)))
        setattr(holder, name, value)

    def undo(self) -> None:
        """Make everything as it was."""
        for holder, name, value in reversed(self._before):
            if value is None:
                delattr(holder, name)
            else:
                setattr(holder, name, value)
        self._before.clear()


def rotations(model: nn.Module) -> Iterator[tuple[Any, Any]]:
    """Yield transformers' files that a model's classes are of, with the function in them that rotates."""
    for name in {type(module).__module__ for module in model.modules()}:
        file = sys.modules.get(name)
        rotate = getattr(file, "apply_rotary_pos_emb", None)
        if name.startswith("transformers.models.") and rotate is not None:
            yield file, rotate

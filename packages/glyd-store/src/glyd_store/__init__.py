# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Versioned archives: every new version is stored against what it most resembles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glyd_store._version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from glyd_store._check_report import CheckReport, Problem
    from glyd_store._errors import (
        BusyError,
        IndexDamagedError,
        IntegrityError,
        LockedError,
        ObjectNotFoundError,
        ReadOnlyError,
        StoreError,
        StoreVersionError,
    )
    from glyd_store._info import ObjectInfo
    from glyd_store._removal import CompactReport
    from glyd_store._repair import RepairReport
    from glyd_store._retention import Policy
    from glyd_store._stats import StoreStats
    from glyd_store._store import Store
    from glyd_store._tensors import StoredTensors

_MODULES = {  # loaded when first used
    "CheckReport": "_check_report",
    "CompactReport": "_removal",
    "BusyError": "_errors",
    "IndexDamagedError": "_errors",
    "IntegrityError": "_errors",
    "LockedError": "_errors",
    "ObjectInfo": "_info",
    "ObjectNotFoundError": "_errors",
    "Policy": "_retention",
    "Problem": "_check_report",
    "ReadOnlyError": "_errors",
    "RepairReport": "_repair",
    "Store": "_store",
    "StoreError": "_errors",
    "StoreStats": "_stats",
    "StoreVersionError": "_errors",
    "StoredTensors": "_tensors",
}


def run_command(argv: Sequence[str], *, prog: str = "glyd-store") -> int:
    """Run the command ``glyd-store`` in this process.

    Parameters
    ----------
    argv
        Arguments without the name of the program.
    prog
        What messages call the program.

    Returns
    -------
    int
        Exit code.
    """
    from glyd_store.cli import main  # noqa: PLC0415 - not for those who use the store from Python

    return main(argv, prog)


__all__ = [
    "BusyError",
    "CheckReport",
    "CompactReport",
    "IndexDamagedError",
    "IntegrityError",
    "LockedError",
    "ObjectInfo",
    "ObjectNotFoundError",
    "Policy",
    "Problem",
    "ReadOnlyError",
    "RepairReport",
    "Store",
    "StoreError",
    "StoreStats",
    "StoreVersionError",
    "StoredTensors",
    "__version__",
    "run_command",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - an import at the top shows in dir()

    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

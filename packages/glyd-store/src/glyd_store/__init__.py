# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Versioned archives: every new version is stored against what it most resembles."""

from __future__ import annotations

from glyd_store._check import CheckReport, Problem
from glyd_store._errors import (
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
from glyd_store._version import __version__

__all__ = [
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
    "__version__",
]

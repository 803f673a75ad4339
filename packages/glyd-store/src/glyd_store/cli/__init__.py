# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The command ``glyd-store``."""

from __future__ import annotations

from glyd_store.cli._main import main, script

__all__ = ["main", "script"]

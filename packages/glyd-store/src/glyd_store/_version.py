# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Version of glyd-store."""

__version__ = "0.1.0"

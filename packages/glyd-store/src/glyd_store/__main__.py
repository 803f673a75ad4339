# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``python -m glyd_store``."""

from glyd_store.cli import script

script()

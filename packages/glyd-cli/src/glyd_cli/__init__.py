# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The ``glyd`` command: compress, restore, test and list files, and measure levels on them."""

from glyd_cli._version import __version__

__all__ = ["__version__"]

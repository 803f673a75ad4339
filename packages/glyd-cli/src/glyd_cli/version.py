# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``glyd --version``."""

from __future__ import annotations

import glyd
from glyd_cli._version import __version__
from glyd_cli.report import print_text


def print_version() -> None:
    """Print the versions of the command and of the codec."""
    print_text(f"glyd {__version__} (glyd-codec {glyd.__version__})\n")

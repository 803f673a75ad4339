# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``glyd --version``."""

from __future__ import annotations

import sys

import glyd

from glyd_cli._version import __version__
from glyd_cli.report import write_text


def print_version() -> None:
    """Print the versions of the command and of the codec."""
    write_text(sys.stdout, f"glyd {__version__} (glyd-codec {glyd.__version__})\n")

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``python -m glyd_store``."""

import sys

from glyd_store.cli import main

sys.exit(main())

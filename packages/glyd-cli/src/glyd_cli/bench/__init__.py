# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``glyd -b``: levels measured beside other compressors, on the user's data or a corpus."""

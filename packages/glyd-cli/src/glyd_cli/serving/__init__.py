# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Models behind an OpenAI API: engines, text, and the web application. Needs the extra ``serve``."""

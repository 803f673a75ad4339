# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The chat page: one HTML document with everything in it, under a strict content security policy."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

_FOLDER = files(__name__)


def _read(name: str) -> str:
    return _FOLDER.joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def page() -> tuple[bytes, dict[str, str]]:
    """Return the document and the headers that go with it.

    Scripts and styles are allowed by their hashes; the page can reach nothing
    but the server that it came from.
    """
    style = _read("page.css")
    script = _read("markdown.js") + _read("chat.js")
    text = _read("page.html")
    text = text.replace("@STYLE@", style).replace("@SCRIPT@", script)
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; connect-src 'self'; "
        "img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    )
    headers = {
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cache-control": "no-cache",
    }
    return text.encode(), headers

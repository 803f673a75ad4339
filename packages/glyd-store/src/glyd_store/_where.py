# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What the path or URL of a store means."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import glyd
from glyd_store._local import LocalBackend

if TYPE_CHECKING:
    from glyd_store._backend import Backend


def open_backend(where: str | os.PathLike[str] | Backend, cache: str | os.PathLike[str] | None = None) -> Backend:
    """Return the backend that a path or URL means."""
    if not isinstance(where, (str, os.PathLike)):
        return where
    text = os.fspath(where)
    if text.startswith("s3://"):
        from glyd_store._s3 import S3Backend  # noqa: PLC0415 - needs the extra

        return S3Backend(text, cache)
    if text == "memory:":
        from glyd_store._memory import MemoryBackend  # noqa: PLC0415 - rarely used

        return MemoryBackend()
    if "://" in text:
        raise glyd.ParameterError(f"{text!r}: stores are folders or s3://bucket/prefix")
    if not text:
        raise glyd.ParameterError("the path of the store is empty")
    return LocalBackend(text)

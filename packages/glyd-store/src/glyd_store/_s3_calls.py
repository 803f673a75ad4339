# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Calls of the library for S3: what it raises, what it does not try again, and its client."""

from __future__ import annotations

import errno
import os
import time
from typing import TYPE_CHECKING, cast

from glyd_store._errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    _T = TypeVar("_T")

_TRIES = 5


def create_client() -> Any:
    """Return a client as the environment configures it."""
    try:
        import boto3  # noqa: PLC0415 - an extra
        from botocore.config import Config  # noqa: PLC0415
    except ImportError:
        raise StoreError("stores in buckets need another package: pip install 'glyd-store[s3]'") from None
    return boto3.client("s3", config=Config(retries={"mode": "standard", "max_attempts": _TRIES}))


def _code(error: Exception) -> str:
    response = getattr(error, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


def translate(error: Exception, key: str) -> OSError:
    """Return the OSError that says what an exception of the library says."""
    code = _code(error)
    if code in {"404", "NoSuchKey", "NotFound"}:
        return FileNotFoundError(errno.ENOENT, "no such key", key)
    if code in {"412", "PreconditionFailed"}:
        return FileExistsError(errno.EEXIST, "the key exists", key)
    if code in {"403", "AccessDenied", "Forbidden"}:
        return PermissionError(errno.EACCES, os.strerror(errno.EACCES), key)
    return OSError(errno.EIO, f"{type(error).__name__}: {error}", key)


def call(do: Callable[[], _T], key: str) -> _T:
    """Call the service; once more where an answer broke off, which the library does not do by itself."""
    from botocore.exceptions import (  # noqa: PLC0415  # noqa: PLC0415
        BotoCoreError,
        ClientError,
        HTTPClientError,
        IncompleteReadError,
        ResponseStreamingError,
    )

    broken = (IncompleteReadError, ResponseStreamingError, HTTPClientError, _ShortAnswerError, ConnectionError)
    for attempt in range(_TRIES):
        try:
            return do()
        except broken as error:
            if attempt == _TRIES - 1:
                raise translate(error, key) from error
        except ClientError as error:
            if _code(error) != "ConditionalRequestConflict" or attempt == _TRIES - 1:
                raise translate(error, key) from error
        except BotoCoreError as error:
            raise translate(error, key) from error
        time.sleep(0.05 * 2**attempt)
    raise AssertionError  # the last attempt returns or raises


class _ShortAnswerError(Exception):
    """The body of an answer has other bytes than its head said."""


def read_body(answer: Any, n: int | None = None) -> bytes:
    """Return the body of an answer, which must have as many bytes as it says, or as asked for."""
    data = cast("bytes", answer["Body"].read())
    wanted = int(answer["ContentLength"]) if n is None else n
    if len(data) != wanted:
        raise _ShortAnswerError(f"{len(data)} bytes came, expected {wanted}")
    return data

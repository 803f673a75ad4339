# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Errors in the form that OpenAI's clients read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi.responses import JSONResponse
from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Sequence

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "invalid_request_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    422: "invalid_request_error",
    429: "rate_limit_error",
}


class ErrorFacts(BaseModel):
    """What went wrong: the text for people, the rest for programs."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(BaseModel):
    """Body of every answer that is none."""

    error: ErrorFacts


DOCUMENTED: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorBody, "description": text}
    for status, text in {
        400: "The request cannot be answered",
        401: "The API key is missing or wrong",
        403: "Another host or page than this server's own asks",
        404: "No such model",
        408: "The body stopped coming",
        413: "The body is too large",
        415: "The body is no JSON",
        429: "Too many requests wait",
        500: "The model failed",
    }.items()
}
"""Statuses that the OpenAPI document lists for every path."""


class ApiError(Exception):
    """Ends a request with a status and a message.

    Parameters
    ----------
    status
        HTTP status.
    message
        What was expected and found, for the user.
    param
        The field at fault.
    code
        A word that programs compare.
    """

    def __init__(self, status: int, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code

    def body(self) -> dict[str, Any]:
        """Return the JSON body."""
        kind = _TYPES.get(self.status, "server_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}

    def response(self, headers: dict[str, str] | None = None) -> JSONResponse:
        """Return the HTTP answer."""
        return JSONResponse(self.body(), status_code=self.status, headers=headers)


def of_validation(errors: Sequence[Any]) -> ApiError:
    """Return the error of a body that pydantic refused: the first fault, and where it is."""
    first = errors[0]
    if first["type"] == "json_invalid":
        return ApiError(400, f"the body is no JSON: {first.get('ctx', {}).get('error', first['msg'])}")
    # unions name the member that did not fit: users know no such names
    place = [str(p) for p in first["loc"] if p != "body" and not (isinstance(p, str) and ("[" in p or "-" in p))]
    param = ".".join(place) or None
    found = repr(first.get("input"))
    found = found if len(found) <= 80 else found[:77] + "..."
    return ApiError(400, f"{param or 'body'}: {first['msg']}, found {found}", param=param)

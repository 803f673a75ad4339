# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Who may ask: Host and Origin (DNS rebinding, cross-site requests), the API key, the size of a body.

A plain ASGI middleware, so that everything is refused before any work and
streams pass untouched.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from glyd_cli.serving.api_errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_DRAIN_BODIES = 4  # of the largest size: a refused body up to that is read to its end, see `_drain`
_DRAIN_S = 10  # at most
_OPEN_PATHS = frozenset({"/health", "/"})  # without a key


@dataclass(frozen=True)
class Limits:
    """What a client may take.

    Attributes
    ----------
    body_nbytes
        Most bytes of a body.
    body_s
        Seconds until the next part of a body.
    send_s
        Seconds to take a part of an answer: who reads nothing holds a place no longer.
    """

    body_nbytes: int = 32 << 20
    body_s: float = 60.0
    send_s: float = 60.0


def host_name(header: str) -> str | None:
    """Return the name in a Host header or origin: lower case, without port and final dot; None when malformed."""
    if not header or any(c in header for c in "/\\@?#, \t"):
        return None
    if header.startswith("["):
        name, bracket, port = header[1:].partition("]")
        if not bracket or (port and not (port.startswith(":") and port[1:].isdigit())):
            return None
        try:
            return str(ipaddress.IPv6Address(name))
        except ValueError:
            return None
    name, colon, port = header.partition(":")
    if colon and not port.isdigit():
        return None
    name = name.lower()
    return name.removesuffix(".") or None


def _goes_on(message: Message) -> bool:
    """Say whether more of a body comes after this part."""
    return message["type"] == "http.request" and bool(message.get("more_body", False))


async def within(seconds: float, work: Awaitable[None]) -> None:
    """Wait for work that is nearly always done at once; `asyncio.wait_for` would make a task of each.

    Raises
    ------
    asyncio.TimeoutError
        It took longer, and was cancelled.
    """
    task = asyncio.current_task()
    fired = False

    def stop() -> None:
        nonlocal fired
        fired = True
        if task is not None:
            task.cancel()

    timer = asyncio.get_running_loop().call_later(seconds, stop)
    try:
        await work
    except asyncio.CancelledError:
        if not fired:
            raise
        if sys.version_info >= (3, 11) and task is not None:
            task.uncancel()
        raise asyncio.TimeoutError from None
    finally:
        timer.cancel()


class ClientStuckError(OSError):
    """A client takes nothing of its answer."""


class Guard:
    """Refuse what does not come from where it should.

    Parameters
    ----------
    app
        What is behind.
    hosts
        Host names that are served beside the loopback ones.
    any_host
        Serve every host name (an address was bound on purpose, and a key is set).
    api_key
        Key that requests must bring, or several, of which any will do; None: none.
    limits
        Of size and time.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Iterable[str] = (),
        any_host: bool = False,
        api_key: str | Sequence[str] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._app = app
        self._hosts = {"localhost", "127.0.0.1", "::1", *(h.lower().removesuffix(".") for h in hosts)}
        self._any_host = any_host
        keys = [api_key] if isinstance(api_key, str) else api_key or ()
        self._keys = [key.encode() for key in keys]
        self._limits = limits or Limits()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it with a refusal."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        error = self._fault(scope)
        if error is not None:
            headers = None
            if error.status == 413:
                headers = {"connection": "close"}
                await self._drain(scope, receive, 0)
            if error.status == 401:
                headers = {"www-authenticate": "Bearer"}
            await error.response(headers)(scope, receive, send)
            return
        await self._limited(scope, receive, send)

    def _fault(self, scope: Scope) -> ApiError | None:
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name, []).append(value)
        hosts = headers.get(b"host", [])
        host = host_name(hosts[0].decode("latin-1")) if len(hosts) == 1 else None
        if host is None or not (self._any_host or host in self._hosts):
            shown = b", ".join(hosts).decode("latin-1")[:100]
            return ApiError(403, f"this server does not answer for the host {shown!r}; start it with --allow-host")
        for origin in headers.get(b"origin", []):
            if not self._own(origin.decode("latin-1"), hosts[0].decode("latin-1")):
                return ApiError(403, f"requests from the origin {origin.decode('latin-1')[:100]!r} are refused")
        if headers.get(b"sec-fetch-site", [b"none"])[0] not in {b"none", b"same-origin"}:
            return ApiError(403, "cross-site requests are refused")
        if self._keys and scope["path"] not in _OPEN_PATHS:
            given = headers.get(b"authorization", [b""])[0]
            kind, _, key = given.partition(b" ")
            # every key is compared, so that the time says nothing of which one is near
            right = sum(hmac.compare_digest(key.strip(), one) for one in self._keys)
            if kind.lower() != b"bearer" or not right:
                return ApiError(401, "an API key is needed: Authorization: Bearer KEY", code="invalid_api_key")
        for length in headers.get(b"content-length", []):
            if not length.isdigit() or int(length[:20]) > self._limits.body_nbytes:
                return ApiError(
                    413, f"the body may have {self._limits.body_nbytes} bytes, found {length.decode('latin-1')[:20]}"
                )
        if scope["method"] == "POST":
            kind = headers.get(b"content-type", [b""])[0].partition(b";")[0].strip().lower()
            if kind != b"application/json":
                return ApiError(415, f"Content-Type must be application/json, found {kind.decode('latin-1')[:60]!r}")
        return None

    @staticmethod
    def _own(origin: str, host: str) -> bool:
        """Say whether an origin is the very page that this server gave."""
        parts = urlsplit(origin)
        return parts.scheme in {"http", "https"} and parts.netloc.lower() == host.lower()

    async def _limited(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application, within the limits of size and time.

        A body of unknown size that grows too large ends as one that was announced.
        """
        n = 0
        over = late = started = stuck = False
        more = True

        async def counted() -> Message:
            nonlocal n, over, late, more
            try:
                message = await asyncio.wait_for(receive(), self._limits.body_s if more else None)
            except asyncio.TimeoutError:
                late, more = True, False
                return {"type": "http.disconnect"}
            n += len(message.get("body", b""))
            more = _goes_on(message)
            over = over or n > self._limits.body_nbytes
            return {"type": "http.disconnect"} if over else message

        async def unless_over(message: Message) -> None:
            nonlocal started, stuck
            if over or late:
                return
            started = True
            try:
                await within(self._limits.send_s, send(message))
            except asyncio.TimeoutError:
                stuck = True
                raise ClientStuckError from None

        try:
            await self._app(scope, counted, unless_over)
        except Exception:
            # an answer that began can only be cut, and its place is free by now
            if not stuck:
                raise
            return
        if late and not started:
            error = ApiError(408, f"the body stopped coming for {self._limits.body_s:.0f} s")
            await error.response({"connection": "close"})(scope, receive, send)
        elif over and not started:
            error = ApiError(413, f"the body may have {self._limits.body_nbytes} bytes, found more")
            if more:
                await self._drain(scope, receive, n)
            await error.response({"connection": "close"})(scope, receive, send)

    async def _drain(self, scope: Scope, receive: Receive, n: int) -> None:
        """Read what is left of a body that is refused, unless it is far too large, and forget it.

        Many clients read no answer before they have sent their body: a connection that is closed
        meanwhile is all that they see. One that waits to be asked for the body (Expect) is not asked.

        Parameters
        ----------
        scope, receive
            Of the request.
        n
            Bytes read before.
        """
        headers = dict(scope["headers"])
        most = _DRAIN_BODIES * self._limits.body_nbytes
        length = headers.get(b"content-length", b"0")
        if b"expect" in headers or not length.isdigit() or int(length[:20]) > most:
            return

        async def rest() -> None:
            nonlocal n
            more = True
            while more and n <= most:
                message = await receive()
                n += len(message.get("body", b""))
                more = _goes_on(message)

        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(rest(), _DRAIN_S)

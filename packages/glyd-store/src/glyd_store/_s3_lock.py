# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The lock of a store in a bucket."""

from __future__ import annotations

import secrets
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from glyd_store._errors import LockedError
from glyd_store._owner import current_owner, is_dead, parse_owner
from glyd_store._s3_calls import call, read_body

if TYPE_CHECKING:
    from typing import Any

_REFRESH_S = 60.0
_STALE_S = 900.0
_POLL_S = 0.5


class S3Lock:
    """An object that names who writes; it counts while it is younger than a quarter of an hour."""

    def __init__(self, client: Any, bucket: str, name: str, url: str) -> None:
        self._client, self._bucket, self._name, self._url = client, bucket, name, url
        # two locks of one process are two writers: the token tells them apart
        self._text = current_owner().to_json() + secrets.token_hex(8).encode()
        self._etag = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._refresh, name="glyd-store-lock", daemon=True)

    def acquire(self, timeout_s: float, *, force: bool) -> None:
        """Wait for the lock."""
        end = time.monotonic() + timeout_s
        while not self._try(force=force):
            if time.monotonic() >= end:
                holder = parse_owner(self._read()[0].partition(b"\n")[0])
                who = str(holder) if holder else "another writer"
                raise LockedError(f"the store {self._url} is being written by {who}; if it is gone: --break-lock")
            time.sleep(min(_POLL_S, max(end - time.monotonic(), 0.01)))
        self._thread.start()

    def _put(self, **condition: str) -> bool:
        try:
            answer = call(
                lambda: self._client.put_object(Bucket=self._bucket, Key=self._name, Body=self._text, **condition),
                self._name,
            )
        except FileExistsError:
            text, etag, _ = self._read()
            if text != self._text:
                return False
            self._etag = etag  # the answer to our own request got lost
            return True
        except FileNotFoundError:
            return False
        self._etag = answer["ETag"]
        return True

    def _read(self) -> tuple[bytes, str, float]:
        """Return text, tag and age in seconds, by the clock of the service."""

        def get() -> tuple[bytes, str, float]:
            answer = self._client.get_object(Bucket=self._bucket, Key=self._name)
            headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
            now = _http_time(headers.get("date"))
            return read_body(answer), answer["ETag"], now - answer["LastModified"].timestamp()

        try:
            return call(get, self._name)
        except FileNotFoundError:
            return b"", "", 0.0

    def _try(self, *, force: bool) -> bool:
        if self._put(IfNoneMatch="*"):
            return True
        text, etag, age = self._read()
        if not etag:
            return False  # gone this moment: try again
        holder = parse_owner(text.partition(b"\n")[0])
        if force or age > _STALE_S or (holder is not None and is_dead(holder)):
            return self._put(IfMatch=etag)  # of several that find it stale one is first
        return False

    def _refresh(self) -> None:
        while not self._stop.wait(_REFRESH_S):
            try:
                if not self._put(IfMatch=self._etag):
                    return  # taken away: the commit will see it
            except OSError:
                continue

    def release(self) -> None:
        """Remove the object if it is still ours."""
        self._stop.set()
        self._thread.join()
        with suppress(OSError):
            if self._read()[0] == self._text:
                call(lambda: self._client.delete_object(Bucket=self._bucket, Key=self._name), self._name)


def _http_time(text: str | None) -> float:
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - rarely needed

    try:
        return parsedate_to_datetime(text or "").timestamp()
    except ValueError:
        return time.time()

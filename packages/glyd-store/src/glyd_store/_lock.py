# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The lock of a store in a folder."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from glyd_store._errors import LockedError, ReadOnlyError
from glyd_store._owner import current_owner, is_dead, parse_owner

if TYPE_CHECKING:
    from collections.abc import Iterator

_POLL_S = 0.005  # a writer that does one thing after the other lets go of it for less than a millisecond
_NO_FLOCK = {errno.ENOTSUP, errno.ENOSYS, errno.ENOLCK, errno.EINVAL}


@contextmanager
def locked(path: str, url: str, timeout_s: float, *, force: bool = False) -> Iterator[None]:
    """Hold the lock file at a path.

    The lock of the operating system on the file decides between processes of one
    machine, and ends with its process. The text in the file decides between machines,
    and where the file system has no such locks.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
            raise ReadOnlyError(f"the store {url} is read-only ({os.strerror(error.errno).lower()})") from None
        raise
    try:
        has_flock = _wait(fd, url, timeout_s, force=force)
        me = current_owner().to_json()
        try:
            os.pwrite(fd, me, 0)
            os.ftruncate(fd, len(me))
        except OSError as error:
            # a full disk must not keep anybody from deleting; the text only helps other machines
            if not has_flock or error.errno not in {errno.ENOSPC, errno.EDQUOT}:
                raise
        try:
            yield
        finally:
            os.ftruncate(fd, 0)
    finally:
        os.close(fd)


@contextmanager
def exclusive(path: str) -> Iterator[None]:
    """Be the only one, as far as the system locks files here, that holds the file at a path; wait for it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in _NO_FLOCK:
                raise
        yield
    finally:
        os.close(fd)


def _wait(fd: int, url: str, timeout_s: float, *, force: bool) -> bool:
    """Wait for the lock; say whether the system locks files here."""
    end = time.monotonic() + timeout_s
    while True:
        has_flock = True
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            holder = parse_owner(os.pread(fd, 4096, 0))
            if holder is None or force or holder.host == current_owner().host or is_dead(holder):
                return True  # on this machine the lock of the system is the truth
            fcntl.flock(fd, fcntl.LOCK_UN)
        except OSError as error:
            if error.errno in _NO_FLOCK:
                has_flock = False
                holder = parse_owner(os.pread(fd, 4096, 0))
                if holder is None or force or is_dead(holder):
                    return False
            elif error.errno in {errno.EWOULDBLOCK, errno.EACCES}:
                holder = parse_owner(os.pread(fd, 4096, 0))
            else:
                raise
        if time.monotonic() >= end:
            who = str(holder) if holder else "another process"
            advice = ""
            if holder and holder.host != current_owner().host:
                advice = "; if that machine is gone: --break-lock"
            elif not has_flock and holder:
                advice = "; it is alive"
            raise LockedError(f"the store {url} is being written by {who}{advice}")
        time.sleep(_POLL_S)

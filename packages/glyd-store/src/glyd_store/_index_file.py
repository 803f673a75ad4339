# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The files that an index is in: the database and its log."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress

_CACHE_KIB = 16 << 10  # memory stays flat however many objects there are
BUSY_S = 30
"""Seconds to wait for others that write an index, or put it in order."""


def stat_index(path: str) -> tuple[int, ...] | None:
    """Return numbers that change with an index: the first two when it is replaced, all when it is written; None: no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    numbers = [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns]
    with suppress(OSError):
        log = os.stat(path + "-wal")
        numbers += [log.st_ino, log.st_size, log.st_mtime_ns]
    return tuple(numbers)


def same_file(one: tuple[int, ...] | None, other: tuple[int, ...] | None) -> bool:
    """Say whether two answers of `stat_index` are of the same file, whatever was written to it."""
    return (one and one[:2]) == (other and other[:2])


def remove_index(path: str) -> None:
    """Remove the files of an index."""
    for name in (path, path + "-wal", path + "-shm"):
        with suppress(FileNotFoundError):
            os.unlink(name)


def connect(target: str) -> sqlite3.Connection:
    """Return a connection to a path, a URI, ":memory:", or a temporary file (empty)."""
    db = sqlite3.connect(
        target, uri=target.startswith("file:"), isolation_level=None, check_same_thread=False, timeout=BUSY_S
    )
    try:
        db.execute("PRAGMA synchronous=FULL")
        db.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
        db.execute("PRAGMA temp_store=MEMORY")  # a full disk must not keep compact from working
        db.execute("PRAGMA trusted_schema=OFF")
    except BaseException:
        db.close()
        raise
    return db

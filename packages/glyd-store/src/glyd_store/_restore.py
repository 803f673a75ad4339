# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Writing objects to files: one, or all of a moment."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from glyd_store._contents import find_content, read_again, read_content
from glyd_store._errors import IndexDamagedError, IntegrityError, ObjectNotFoundError, StoreError
from glyd_store._frames import write_all
from glyd_store._info import iter_newest, newest_of, object_by_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from glyd_store._contents import Row
    from glyd_store._core import Core
    from glyd_store._info import ObjectInfo


def content_of(core: Core, info: ObjectInfo) -> Row:
    """Return the content of an object."""
    row = find_content(core, bytes.fromhex(info.sha256))
    if row is None:
        object_by_id(core.index, info.id)  # raises if it was deleted and removed meanwhile
        raise IndexDamagedError(f"the index has object {info.id} and not its content", key=core.index.path)
    return row


def write_object(core: Core, info: ObjectInfo, path: str, threads: int = 0) -> None:
    """Write the content of an object to a file, which appears under its name when it is whole and checked."""
    read_again(core, lambda: _write_object(core, info, path, threads))


def _write_object(core: Core, info: ObjectInfo, path: str, threads: int) -> None:
    row = content_of(core, info)
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name[:100]}.{os.urandom(4).hex()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    fd = os.open(temporary, flags, 0o666)
    try:
        with os.fdopen(fd, "wb", buffering=0) as file:
            read_content(core, row, lambda piece: write_all(file, piece), threads)
        when = int(info.time.timestamp() * 1e9)
        with contextlib.suppress(OSError, OverflowError):  # a clock that was far off
            os.utime(temporary, ns=(when, when))
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def restore(
    core: Core,
    out: str,
    before_ns: int | None,
    failed: Callable[[ObjectInfo, IntegrityError], None] | None = None,
    threads: int = 0,
) -> Iterator[tuple[ObjectInfo, str]]:
    """Write the newest version of each name below a folder; yield what was written where.

    Parameters
    ----------
    core
        The store.
    out
        A folder that is empty, or does not exist.
    before_ns
        The moment; None: now.
    failed
        Told of objects that cannot be read; None: the first of them ends it.
    threads
        As for `glyd.open`.
    """
    from glyd_store._names import restore_paths  # noqa: PLC0415 - for this alone

    if os.path.islink(out):
        raise StoreError(f"{out} is a symbolic link: give a folder")
    os.makedirs(out, exist_ok=True)
    if os.listdir(out):
        raise StoreError(f"{out} is not empty: give a folder that is, or does not exist")
    names = [(info.id, info.name) for info in iter_newest(core, before_ns)]
    paths = restore_paths(names)
    for number, name in names:
        path = os.path.join(out, paths[number])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        info: ObjectInfo | None = None
        try:
            info = _write_version(core, number, name, before_ns, path, threads)
        except IntegrityError as error:
            if failed is None:
                raise
            failed(object_by_id(core.index, number, with_deleted=True), error)
        if info is not None:
            yield info, path


def _write_version(
    core: Core, number: int, name: str, before_ns: int | None, path: str, threads: int
) -> ObjectInfo | None:
    """Write a version, or the newest that is left where it was removed for good meanwhile; None: none is left."""
    while True:
        try:
            info = object_by_id(core.index, number, with_deleted=True)
            write_object(core, info, path, threads)
            return info
        except ObjectNotFoundError:
            left = newest_of(core, name, before_ns)
            if left is None:
                return None
            number = left.id

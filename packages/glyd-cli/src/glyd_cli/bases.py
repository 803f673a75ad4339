# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``--base OLD``, once or several times: the content that inputs are compressed against."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from typing import TYPE_CHECKING

import glyd
from glyd_cli.errors import FileError, UsageError, os_reason, shown
from glyd_cli.pipeline import CHUNK_NBYTES
from glyd_cli.sources import open_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import IO, Any

    from glyd_cli.sources import Source

ORDERED_MAX = 4
"""Bases whose orders are tried to explain a failure."""


@contextlib.contextmanager
def open_bases(paths: Sequence[str]) -> Iterator[glyd.Base | None]:
    """Give the base that these files are, one after the other, hashed, for as long as the block lasts.

    A regular file is read in place. What comes through a pipe is kept in a temporary file
    first, which takes room on disk and no memory; several files are copied into one such.
    None for no files.

    Raises
    ------
    UsageError
        One is there twice.
    FileError
        One cannot be read, or not be kept.
    """
    if not paths:
        yield None
        return
    seen: dict[tuple[int, int], str] = {}
    for path in paths:
        identity = identity_of(path)
        if identity is None:
            continue
        if identity in seen:
            other = "" if seen[identity] == path else f", as {shown(seen[identity])}"
            raise UsageError(f"--base {shown(path)} is given twice{other}")
        seen[identity] = path
    with contextlib.ExitStack() as stack:
        files = [_open(path, stack) for path in paths]
        try:
            base = stack.enter_context(glyd.Base(*files))
        except OSError as error:
            raise _no_base(", ".join(map(shown, paths)), error) from error
        yield base


def _open(path: str, stack: contextlib.ExitStack) -> IO[bytes]:
    source = stack.enter_context(open_source(path))
    try:
        file: Any = stack.enter_context(
            os.fdopen(os.dup(source.fd), "rb", buffering=0) if source.nbytes else tempfile.TemporaryFile()  # noqa: SIM115
        )
        if not source.nbytes:  # no size: a pipe, or a file of /proc
            _spool(source, file.fileno())
            file.seek(0)
    except FileError:
        raise
    except OSError as error:
        raise _no_base(path, error) from error
    return file  # type: ignore[no-any-return]


def _no_base(name: str, error: OSError) -> FileError:
    return FileError(name, f"cannot be the base: {os_reason(error)}")


def explain(error: BaseException, base: glyd.Base | None, paths: Sequence[str]) -> str:
    """Return what is wrong with several bases, to stand behind a message that they are; of other errors nothing."""
    if not isinstance(error, glyd.WrongBaseError) or base is None or len(paths) < 2 or error.expected is None:
        return ""
    if len(paths) > ORDERED_MAX:
        return "; are they all there, and in their order?"
    order = base.find_order(int(error.expected).to_bytes(8, "big"))
    if order is None:
        return "; no order of the bases given is that one: one is missing, or has changed"
    return "; it is " + " ".join(f"--base {shown(paths[i])}" for i in order)


def identity_of(path: str) -> tuple[int, int] | None:
    """Return device and inode of a regular file, None for anything else."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _spool(source: Source, fd: int) -> None:
    chunk = memoryview(bytearray(CHUNK_NBYTES))
    while n := source.readinto(chunk):
        rest = chunk[:n]
        while rest:
            rest = rest[os.write(fd, rest) :]

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``--base OLD``: the content that inputs are compressed against."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import TYPE_CHECKING

import glyd
from glyd_cli.errors import FileError, os_reason
from glyd_cli.pipeline import CHUNK_NBYTES
from glyd_cli.sources import open_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from glyd_cli.sources import Source


@contextlib.contextmanager
def open_base(path: str | None) -> Iterator[glyd.Base | None]:
    """Give the base of this name, hashed, for as long as the block lasts; None for None.

    A regular file is read in place. What comes through a pipe is kept in a temporary file
    first, which takes room on disk and no memory.

    Raises
    ------
    FileError
        It cannot be read, or not be kept.
    """
    if path is None:
        yield None
        return
    with open_source(path) as source, contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(
                os.fdopen(os.dup(source.fd), "rb", buffering=0) if source.nbytes else tempfile.TemporaryFile()  # noqa: SIM115
            )
            if not source.nbytes:  # no size: a pipe, or a file of /proc
                _spool(source, file.fileno())
                file.seek(0)
            base = stack.enter_context(glyd.Base(file))  # type: ignore[arg-type]
        except FileError:
            raise
        except OSError as error:
            raise FileError(path, f"cannot be the base: {os_reason(error)}") from error
        yield base


def _spool(source: Source, fd: int) -> None:
    chunk = memoryview(bytearray(CHUNK_NBYTES))
    while n := source.readinto(chunk):
        rest = chunk[:n]
        while rest:
            rest = rest[os.write(fd, rest) :]

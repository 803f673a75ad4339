# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``glyd -d`` and ``glyd --test``: from frames back to their content."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import glyd
from glyd_cli.pipeline import CHUNK_NBYTES, ChunkReader, ReadAhead, WriteBehind, is_stop

if TYPE_CHECKING:
    from typing import IO

    from glyd_cli.arguments import Options
    from glyd_cli.report import Job
    from glyd_cli.sources import Source
    from glyd_cli.targets import Target


def decompress(
    source: Source, target: Target, options: Options, job: Job, base: glyd.Base | None = None
) -> tuple[int, int]:
    """Restore the content of all frames of an input into a target.

    Returns
    -------
    tuple of int
        Bytes of content, bytes of the frames.

    Raises
    ------
    FormatError
        The input is no whole frames; what was written so far is right, but not all.
    MissingBaseError, WrongBaseError
        They were compressed against a base that was not given.
    LimitError
        It needs more memory than allowed.
    FileError
        The input could not be read or the output not be written.
    """
    with _content(source, options, job, base) as file:
        return pour(file, target), job.done


def check(source: Source, options: Options, job: Job, base: glyd.Base | None = None) -> tuple[int, int]:
    """Read all frames of an input, with every check, and keep nothing.

    Returns
    -------
    tuple of int
        Bytes of content, bytes of the frames.

    Raises
    ------
    FormatError, MissingBaseError, WrongBaseError, LimitError, FileError
        As for `decompress`.
    """
    with _content(source, options, job, base) as file:
        return pour(file, None), job.done


def pour(file: glyd.GlydFile, target: Target | None) -> int:
    """Write what a file gives into a target, or only read it; return how many bytes that is."""
    content = 0
    if target is None:
        buffer = memoryview(bytearray(CHUNK_NBYTES))
        while n := file.readinto(buffer):
            content += n
        return content
    with WriteBehind(target) as behind:
        while n := file.readinto(piece := behind.buffer()):
            content += n
            behind.put(piece[:n])
        behind.finish()
    return content


class _content:  # noqa: N801 - reads as a function where it is used
    """The content of a source as a file object, with reading ahead around it."""

    def __init__(self, source: Source, options: Options, job: Job, base: glyd.Base | None) -> None:
        limits = glyd.Limits(max_memory=options.memory)
        self._ahead = ReadAhead(source, CHUNK_NBYTES, job.advance)
        reader = cast("IO[bytes]", ChunkReader(self._ahead))  # open needs but read and readinto of it
        self._file = glyd.open(reader, "rb", base=base, threads=options.threads, limits=limits)

    def __enter__(self) -> glyd.GlydFile:
        return self._file

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ahead.close(is_stopped=is_stop(kind))
        self._file.close()

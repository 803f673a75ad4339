# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""`open`: frames as a binary or text file."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, overload

from glyd_codec._errors import ParameterError
from glyd_codec._file import GlydFile

if TYPE_CHECKING:
    from types import TracebackType
    from typing import IO, Literal, TypeAlias

    from glyd_codec._base import BaseLike
    from glyd_codec._dictionary import Dictionary
    from glyd_codec._limits import Limits
    from glyd_codec._params import Containers, Level, Records, Weights
    from glyd_codec._source import Path

    _Binary: TypeAlias = Literal["r", "rb", "w", "wb", "x", "xb", "a", "ab"]
    _Text: TypeAlias = Literal["rt", "wt", "xt", "at"]

_TEXT_MODES = {"rt": "rb", "wt": "wb", "xt": "xb", "at": "ab"}


class _TextFile(io.TextIOWrapper):
    """Text over a `GlydFile`, which is not ended when an exception leaves the ``with`` block."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close; after an exception without ending the frame."""
        if kind is not None and isinstance(self.buffer, GlydFile):
            self.buffer.abort()  # now counts as closed: text that waits to be written is let go
        self.close()


@overload
def open(  # noqa: A001
    file: Path | IO[bytes],
    mode: _Binary = "rb",
    *,
    base: BaseLike | None = None,
    dictionary: Dictionary | None = None,
    level: Level = "max",
    threads: int = 0,
    checksum: bool = True,
    long: bool = False,
    records: Records = False,
    segment_size: int | None = None,
    weights: Weights = "auto",
    containers: Containers = "auto",
    limits: Limits | None = None,
    encoding: None = None,
    errors: None = None,
    newline: None = None,
) -> GlydFile: ...
@overload
def open(  # noqa: A001
    file: Path | IO[bytes],
    mode: _Text,
    *,
    base: BaseLike | None = None,
    dictionary: Dictionary | None = None,
    level: Level = "max",
    threads: int = 0,
    checksum: bool = True,
    long: bool = False,
    records: Records = False,
    segment_size: int | None = None,
    weights: Weights = "auto",
    containers: Containers = "auto",
    limits: Limits | None = None,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
) -> io.TextIOWrapper: ...
@overload
def open(  # noqa: A001
    file: Path | IO[bytes],
    mode: str,
    *,
    base: BaseLike | None = None,
    dictionary: Dictionary | None = None,
    level: Level = "max",
    threads: int = 0,
    checksum: bool = True,
    long: bool = False,
    records: Records = False,
    segment_size: int | None = None,
    weights: Weights = "auto",
    containers: Containers = "auto",
    limits: Limits | None = None,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
) -> GlydFile | io.TextIOWrapper: ...
def open(  # noqa: A001  the name that gzip, lzma and compression.zstd have made usual
    file: Path | IO[bytes],
    mode: str = "rb",
    *,
    base: BaseLike | None = None,
    dictionary: Dictionary | None = None,
    level: Level = "max",
    threads: int = 0,
    checksum: bool = True,
    long: bool = False,
    records: Records = False,
    segment_size: int | None = None,
    weights: Weights = "auto",
    containers: Containers = "auto",
    limits: Limits | None = None,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
) -> GlydFile | io.TextIOWrapper:
    """Open frames as a binary or text file.

    Parameters
    ----------
    file
        Path, or binary file object.
    mode
        "r", "rb", "w", "wb", "x", "xb", "a", "ab" for bytes; "rt", "wt", "xt", "at" for text.
    base, dictionary, level, threads, checksum, long, records, segment_size, weights, containers, limits
        As for `GlydFile`.
    encoding, errors, newline
        For text, as for the built-in open.

    Returns
    -------
    GlydFile or io.TextIOWrapper
        The latter for text; its ``buffer`` is the GlydFile.

    Raises
    ------
    ParameterError
        For an unknown mode, or text arguments with a binary mode.
    OSError, TypeError
        As `GlydFile` does.
    """
    if mode not in _TEXT_MODES:
        for name, value in (("encoding", encoding), ("errors", errors), ("newline", newline)):
            if value is not None:
                raise ParameterError(f"{name} is for text modes; mode is {mode!r}")
    binary = GlydFile(
        file,
        _TEXT_MODES.get(mode, mode),
        base=base,
        dictionary=dictionary,
        level=level,
        threads=threads,
        checksum=checksum,
        long=long,
        records=records,
        segment_size=segment_size,
        weights=weights,
        containers=containers,
        limits=limits,
    )
    if mode not in _TEXT_MODES:
        return binary
    try:
        return _TextFile(binary, encoding, errors, newline)
    except BaseException:
        binary.abort()
        raise

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Contents, and parts of them, as files."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import glyd
from glyd_store._hashing import PIECE_NBYTES

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack
    from typing import BinaryIO


_ATTEMPTS = 4


class Range(io.RawIOBase):
    """Part of a file.

    Parameters
    ----------
    file, start, size
        The file, and what of it.
    another
        Opens another file with the same bytes when reading fails, after an error that it is told of, and says
        where the part starts in it: one that bears any order of reads after LimitError.
    """

    def __init__(
        self, file: BinaryIO, start: int, size: int, another: Callable[[Exception], tuple[BinaryIO, int]]
    ) -> None:
        super().__init__()
        self._file, self._start, self._size = file, start, size
        self._another = another
        self._at = 0
        self._next = -1  # where the file stands

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        start = (0, self._at, self._size)[whence]
        if start + offset < 0:
            raise ValueError(f"cannot seek to {start + offset}")
        self._at = start + offset
        return self._at

    def readinto(self, out: object) -> int:
        view = memoryview(out).cast("B")  # type: ignore[arg-type]
        n = min(len(view), max(self._size - self._at, 0))
        if n:
            for _ in range(_ATTEMPTS):
                try:
                    n = self._read(view[:n])
                    break
                except (glyd.LimitError, FileNotFoundError) as error:  # decoded piece by piece, or moved away
                    self._next = -1
                    self._file, self._start = self._another(error)
            else:
                n = self._read(view[:n])
            self._next = self._at = self._at + n
        return n

    def _read(self, view: memoryview) -> int:
        if self._next != self._at:
            self._next = -1
            self._file.seek(self._start + self._at)
        return int(self._file.readinto(view))  # type: ignore[attr-defined]

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


class ContentFile(io.BufferedReader):
    """The content of an object as a file; closes all that it is read from."""

    def __init__(self, raw: io.RawIOBase, stack: ExitStack) -> None:
        super().__init__(raw, PIECE_NBYTES)
        self._stack = stack

    def close(self) -> None:
        """Close it and what it is read from."""
        if not self.closed:
            super().close()
            self._stack.close()

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Reading contents: where they are, their bases, ranges of them."""

from __future__ import annotations

import hashlib
import io
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import glyd
from glyd_store._entry import entry_key, stream_key
from glyd_store._errors import IntegrityError
from glyd_store._frames import PIECE_NBYTES, check_content
from glyd_store._journal import read_entry

if TYPE_CHECKING:
    from typing import BinaryIO

    from glyd_store._core import Core

DECODES_MAX = 5
"""Frames that are decoded for one content, at most."""

_SPOOL_MEMORY_NBYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Row:
    """A content as the index has it."""

    number: int
    sha256: bytes
    size: int
    seq: int
    kind: str
    stream: bytes | None
    offset: int
    nbytes: int
    base: bytes | None
    family: str | None
    member: int | None

    @property
    def key(self) -> str:
        """The file that its bytes are in."""
        return stream_key(self.stream) if self.stream is not None else entry_key(self.seq)


_COLUMNS = "id, sha256, size, seq, kind, stream, offset, nbytes, base, family, member"


def find_content(core: Core, sha256: bytes) -> Row | None:
    """Return the content with a hash."""
    found = core.index.row(f"SELECT {_COLUMNS} FROM content WHERE sha256 = ?", sha256)
    return None if found is None else Row(*found)


def content_by_number(core: Core, number: int) -> Row:
    """Return the content with a number of the index."""
    return Row(*core.index.row(f"SELECT {_COLUMNS} FROM content WHERE id = ?", number))


def chain_of(core: Core, row: Row) -> list[Row]:
    """Return a content and its bases, the root last.

    Raises
    ------
    IntegrityError
        When a base is not in the store, or there are too many.
    """
    chain = [row]
    while (base := chain[-1].base) is not None:
        below = find_content(core, base)
        if below is None or below.kind == "missing":
            raise IntegrityError(
                f"the base {base.hex()[:16]}… of {row.sha256.hex()[:16]}… is not in the store", key=row.key, advice=ADVICE
            )
        chain.append(below)
        if len(chain) > DECODES_MAX:
            raise IntegrityError(f"content {row.sha256.hex()[:16]}… has more than {DECODES_MAX - 1} bases", key=row.key)
    return chain


ADVICE = "run 'check' to see what else is concerned; 'repair' may bring it back"


class _Range(io.RawIOBase):
    """Part of a file."""

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        super().__init__()
        self._file, self._start, self._size = file, start, size
        self._at = 0

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
            self._file.seek(self._start + self._at)
            data = self._file.read(n)
            n = len(data)
            view[:n] = data
            self._at += n
        return n

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def _own_file(core: Core, row: Row) -> BinaryIO:
    """Open the file that holds the frame of a content."""
    if row.kind == "missing":
        raise IntegrityError(
            f"what the journal said of content {row.sha256.hex()[:16]}… is damaged", key=row.key, advice=ADVICE
        )
    try:
        if row.kind == "payload":
            entry = read_entry(core.backend, row.seq)
            frame = entry.payload[row.offset : row.offset + row.nbytes]
            if len(frame) != row.nbytes:
                raise IntegrityError(f"{row.key} lacks {row.nbytes - len(frame)} bytes of payload", key=row.key)
            return io.BytesIO(frame)
        assert row.stream is not None  # noqa: S101 - by its kind
        return core.backend.open(stream_key(row.stream))
    except FileNotFoundError:
        raise IntegrityError(f"{row.key} is missing", key=row.key, advice=ADVICE) from None


def _decoder(file: BinaryIO, base: BinaryIO | None) -> BinaryIO:
    if base is not None:
        raise NotImplementedError  # replaced when the codec has bases
    return cast("BinaryIO", glyd.open(file))


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


def open_content(core: Core, row: Row) -> BinaryIO:
    """Return a content as a file that can seek; ranges are checked by the checks of their segments."""
    with ExitStack() as stack:
        base: BinaryIO | None = None
        for link in reversed(chain_of(core, row)):
            file = stack.enter_context(_own_file(core, link))
            base = stack.enter_context(_decoder(file, base))
        assert base is not None  # noqa: S101 - a chain is not empty
        start = row.offset if row.kind == "member" else 0
        raw = _Range(base, start, row.size)
        return ContentFile(raw, stack.pop_all())


def spool_content(core: Core, row: Row) -> BinaryIO:
    """Return a whole, checked content in memory, or in a temporary file when it is large."""
    out = cast("BinaryIO", tempfile.SpooledTemporaryFile(_SPOOL_MEMORY_NBYTES))  # noqa: SIM115 - returned
    try:
        read_content(core, row, out.write)
        out.seek(0)
        return out
    except BaseException:
        out.close()
        raise


def read_content(core: Core, row: Row, write: object) -> None:
    """Give a whole content to a function, piece by piece, and raise unless it is what its hash says.

    Raises
    ------
    IntegrityError
        When it cannot be read or is not what it should be; the message names the file.
    """
    total = hashlib.sha256()
    n = 0
    try:
        with open_content(core, row) as file:
            while piece := file.read(PIECE_NBYTES):
                total.update(piece)
                n += len(piece)
                write(piece)  # type: ignore[operator]
        check_content(n, total.digest(), row.size, row.sha256, f"the content in {row.key}")
    except glyd.FormatError as error:
        raise IntegrityError(f"{row.key} is damaged: {error}", key=row.key, advice=ADVICE) from error
    except IntegrityError as error:
        if error.advice:
            raise
        raise IntegrityError(str(error), key=row.key, advice=ADVICE) from None

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Frames of contents: written, read, and read back before anything depends on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import glyd
from glyd_store._errors import IntegrityError
from glyd_store._hashing import ContentCheck, Hasher, file_pieces, new_sha256

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import BinaryIO, Protocol

    from typing_extensions import Self

    class Hashed(Protocol):
        """What knows the hashes of a content: a row of the index, or an input that was read."""

        @property
        def size(self) -> int: ...

        @property
        def sha256(self) -> bytes: ...

        @property
        def check(self) -> bytes | None: ...


WRITTEN_NBYTES = 512 << 10
"""Bytes that are written at a time. For more the system looks for pages of 2 MiB, which where it has not used them
before cost more than all of a `get`: one of 401 MB took 650 to 990 ms of CPU, and takes 245."""


def write_all(file: BinaryIO, data: bytes | memoryview) -> None:
    """Write all of data to a file that may take less at a time."""
    view = memoryview(data)
    while view:
        n = file.write(view[:WRITTEN_NBYTES])
        view = view[n:]


class HashingFile:
    """A file to write to that knows the SHA-256 of what was written.

    Parameters
    ----------
    file
        Where the bytes go.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = new_sha256()
        self.nbytes = 0

    def write(self, data: bytes) -> int:
        """Write all of data."""
        write_all(self._file, data)
        self._hash.update(data)
        self.nbytes += len(data)
        return len(data)

    @property
    def sha256(self) -> bytes:
        """The hash of all that was written."""
        return self._hash.digest()


def write_frame(
    out: HashingFile,
    pieces: Iterable[bytes | memoryview],
    size: int,
    level: str,
    *,
    threads: int = 0,
    base: glyd.Base | None = None,
    records: bool = False,
    segment_size: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Write pieces of content of a known size as one frame.

    Parameters
    ----------
    out
        Where the frame goes.
    pieces, size
        The content.
    level, threads, records, segment_size
        As for `glyd.compress`.
    base
        Content that the frame may refer to; None: it stands alone.
    progress
        Told of bytes of content as they are done.
    """
    compressor = glyd.Compressor(
        level,  # type: ignore[arg-type]
        base=base,
        threads=threads,
        records=records,
        segment_size=segment_size,
    )
    compressor.set_pledged_input_size(size)
    for piece in pieces:
        out.write(compressor.compress(piece))
        if progress:
            progress(len(piece))
    out.write(compressor.flush())


class Verifier:
    """Makes sure that bytes are those of a content, by its check, or by its SHA-256 where there is none.

    Parameters
    ----------
    content
        What it must be.
    what
        How messages call it.
    threads
        1: hash in this thread.
    thorough
        Go by the SHA-256 in any case.
    """

    def __init__(self, content: Hashed, what: str, threads: int = 0, *, thorough: bool = False) -> None:
        self._content = content
        self._what = what
        self._expected = content.sha256 if thorough or content.check is None else content.check
        self._hash = Hasher(threads) if self._expected is content.sha256 else ContentCheck()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(self._hash, Hasher):
            self._hash.close()

    def update(self, piece: bytes | memoryview) -> None:
        """Take the next piece, which must stay as it is until the next but one call."""
        self._hash.update(piece)

    def finish(self) -> None:
        """Say that this was all.

        Raises
        ------
        IntegrityError
            When it is not the content.
        """
        n, found = self._hash.nbytes, self._hash.digest()
        if n != self._content.size:
            raise IntegrityError(f"{self._what} has {n} bytes, expected {self._content.size}")
        if found != self._expected:
            name = "SHA-256" if len(found) == 32 else "the check"
            raise IntegrityError(f"{self._what} has {name} {found.hex()[:16]}…, expected {self._expected.hex()[:16]}…")


def verify(data: bytes | memoryview, content: Hashed, what: str, threads: int = 0, *, thorough: bool = False) -> None:
    """Raise unless data is a content; see `Verifier`."""
    with Verifier(content, what, threads, thorough=thorough) as verifier:
        verifier.update(data)
        verifier.finish()


def copy_content(
    source: BinaryIO,
    write: Callable[[memoryview], object] | None,
    content: Hashed,
    what: str,
    threads: int = 0,
    *,
    thorough: bool = False,
) -> None:
    """Copy a whole content, and raise unless it is what its hashes say.

    Parameters
    ----------
    source
        The content.
    write
        Takes the pieces, which are only valid during the call; None: the content is only checked.
    content, what, threads, thorough
        As for `Verifier`.

    Raises
    ------
    IntegrityError
        When it is anything else.
    """
    with Verifier(content, what, threads, thorough=thorough) as verifier:
        for piece in file_pieces(source):
            verifier.update(piece)
            if write is not None:
                write(piece)
        verifier.finish()

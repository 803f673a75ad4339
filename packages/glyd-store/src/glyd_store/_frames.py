# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Frames of contents: written, read, and read back before anything depends on them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import glyd
from glyd_store._errors import IntegrityError
from glyd_store._hashing import Hasher, file_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import BinaryIO


def write_all(file: BinaryIO, data: bytes | memoryview) -> None:
    """Write all of data to a file that may take less at a time."""
    view = memoryview(data)
    while view:
        n = file.write(view)
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
        self._hash = hashlib.sha256()
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
    level, threads, segment_size
        As for `glyd.compress`.
    base
        Content that the frame may refer to; None: it stands alone.
    progress
        Told of bytes of content as they are done.
    """
    compressor = glyd.Compressor(level, base=base, threads=threads, segment_size=segment_size)  # type: ignore[arg-type]
    compressor.set_pledged_input_size(size)
    for piece in pieces:
        out.write(compressor.compress(piece))
        if progress:
            progress(len(piece))
    out.write(compressor.flush())


def copy_content(
    source: BinaryIO,
    write: Callable[[memoryview], object] | None,
    size: int,
    sha256: bytes,
    what: str,
    threads: int = 0,
) -> None:
    """Copy a whole content, and raise unless it is what its hash says.

    Parameters
    ----------
    source
        The content.
    write
        Takes the pieces, which are only valid during the call; None: the content is only checked.
    size, sha256
        What it must be.
    what
        How messages call it.
    threads
        1: hash in this thread.

    Raises
    ------
    IntegrityError
        When it is anything else.
    """
    with Hasher(threads) as total:
        for piece in file_pieces(source):
            total.update(piece)
            if write is not None:
                write(piece)
        check_content(total.nbytes, total.digest(), size, sha256, what)


def check_content(n: int, found: bytes, size: int, sha256: bytes, what: str) -> None:
    """Raise unless size and hash are those expected."""
    if n != size:
        raise IntegrityError(f"{what} has {n} bytes, expected {size}")
    if found != sha256:
        raise IntegrityError(f"{what} has SHA-256 {found.hex()[:16]}…, expected {sha256.hex()[:16]}…")

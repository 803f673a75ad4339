# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Outputs: a directory that appears whole or not at all, and files written at places."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
from typing import TYPE_CHECKING

from glyd_codec._errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK_NBYTES = 1 << 22


def output_path(dst: str | os.PathLike[str], source: str) -> str:
    """Return the absolute path of an output directory that may be made.

    Raises
    ------
    FileExistsError
        ``dst`` is there and no empty directory.
    ParameterError
        ``dst`` is inside of the source.
    """
    path = os.path.abspath(os.fspath(dst))
    if os.path.lexists(path) and (os.path.islink(path) or not os.path.isdir(path) or os.listdir(path)):
        raise FileExistsError(errno.EEXIST, "is there already, and not as an empty directory", path)
    parent = os.path.dirname(path)
    os.stat(parent)  # so that an error names it, not the temporary directory
    inside = os.path.realpath(source)
    if os.path.commonpath([os.path.realpath(parent), inside]) == inside:
        raise ParameterError(f"{os.fspath(dst)} is inside of {source}, which is being read")
    return path


@contextlib.contextmanager
def new_directory(dst: str | os.PathLike[str], source: str) -> Iterator[str]:
    """Give a temporary directory beside ``dst``, and rename it to ``dst`` at the end.

    Raises
    ------
    FileExistsError, ParameterError
        As `output_path`.
    """
    path = output_path(dst, source)
    parent, name = os.path.split(path)
    temporary = os.path.join(parent, f".{name[:200]}.{secrets.token_hex(6)}.glyd-tmp")
    try:
        os.mkdir(temporary)
        yield temporary
        os.rename(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


class PlacedFile:
    """A file that is written at places that the caller chooses.

    Small pieces in a row are gathered. An error of the system names the file.

    Parameters
    ----------
    path
        Must not exist, unless it is kept.
    keep
        Take a file that is there as it is.
    """

    def __init__(self, path: str, *, keep: bool = False) -> None:
        self.path = path
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | getattr(os, "O_CLOEXEC", 0)
        self._fd = os.open(path, flags | (0 if keep else os.O_EXCL), 0o666)
        self._gathered = bytearray()
        self._at = 0  # where the gathered bytes belong

    def put(self, at: int, data: bytes | memoryview) -> None:
        """Write data at a place; small pieces may stay in memory until `flush`."""
        if self._at + len(self._gathered) != at or len(self._gathered) + len(data) > CHUNK_NBYTES:
            self.flush()
            self._at = at
        if len(data) < CHUNK_NBYTES // 4:
            self._gathered += data
            return
        self.flush()
        self.write(at, memoryview(data))
        self._at = at + len(data)

    def flush(self) -> None:
        """Write what is gathered."""
        if self._gathered:
            self.write(self._at, memoryview(self._gathered))
            self._at += len(self._gathered)
            self._gathered = bytearray()

    def write(self, at: int, data: memoryview) -> None:
        """Write data at a place, at once; threads may do so beside each other."""
        try:
            while data:
                n = os.pwrite(self._fd, data[: 1 << 30], at)
                at, data = at + n, data[n:]
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.path) from error

    def end(self, nbytes: int) -> None:
        """Cut what a file that was kept has behind its end."""
        self.flush()
        os.ftruncate(self._fd, nbytes)

    def close(self) -> None:
        """Write what is gathered, and close."""
        try:
            self.flush()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close, whatever is lost."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)


@contextlib.contextmanager
def placed_file(path: str, *, keep: bool = False) -> Iterator[PlacedFile]:
    """Give a `PlacedFile` that is closed at the end."""
    file = PlacedFile(path, keep=keep)
    try:
        yield file
        file.close()
    finally:
        file.abandon()


def write_file(folder: str, name: str, data: bytes) -> None:
    """Write a small file, with the folders on its way."""
    with placed_file(_path(folder, name)) as file:
        file.put(0, data)


def copy_file(source: str, folder: str, name: str) -> tuple[int, str]:
    """Copy a file; return its size and SHA-256."""
    total, at = hashlib.sha256(), 0
    with open(source, "rb", buffering=0) as original, placed_file(_path(folder, name)) as file:
        while data := original.read(CHUNK_NBYTES):
            total.update(data)
            file.put(at, data)
            at += len(data)
    return at, total.hexdigest()


def _path(folder: str, name: str) -> str:
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path

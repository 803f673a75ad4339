# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The system calls that a store in a folder makes, one method each.

Everything that must survive a power cut goes through these few calls, so that a test
can put a disk in their place that fails, tears and forgets.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from typing import BinaryIO


class Disk:
    """Files below a folder; paths are relative to it and have slashes.

    Parameters
    ----------
    root
        The folder, which need not exist.
    """

    def __init__(self, root: str) -> None:
        self.root = root

    def path(self, name: str) -> str:
        """Return the path that the operating system knows."""
        return os.path.join(self.root, *name.split("/")) if name else self.root

    def make_folder(self, name: str) -> None:
        """Create a folder and those above it."""
        os.makedirs(self.path(name), exist_ok=True)

    def create(self, name: str) -> BinaryIO:
        """Create a file, which must not exist, for writing and reading."""
        return cast("BinaryIO", open(self.path(name), "x+b", buffering=0))

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading."""
        return open(self.path(name), "rb")

    def sync(self, file: BinaryIO) -> None:
        """Return when the bytes of a file are on the medium."""
        file.flush()
        fd = file.fileno()
        if hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync leaves data in the cache of the drive
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        else:
            os.fsync(fd)

    def sync_folder(self, name: str) -> None:
        """Return when the names in a folder are on the medium."""
        fd = os.open(self.path(name), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno != errno.EINVAL:  # file systems without this call keep names in order themselves
                raise
        finally:
            os.close(fd)

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, in place of the file that has it."""
        os.replace(self.path(old), self.path(new))

    def link(self, old: str, new: str) -> None:
        """Give a file a second name, which no file may have.

        Raises
        ------
        FileExistsError
            When one has.
        """
        try:
            os.link(self.path(old), self.path(new))
        except OSError as error:
            if error.errno not in {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}:
                raise
            # no hard links here (exFAT, some network file systems): the lock alone keeps writers apart
            if os.path.lexists(self.path(new)):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), self.path(new)) from None
            os.replace(self.path(old), self.path(new))

    def remove(self, name: str) -> None:
        """Remove a file; it may be gone already."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path(name))

    def remove_folder(self, name: str) -> None:
        """Remove a folder if it is empty."""
        try:
            os.rmdir(self.path(name))
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT}:
                raise

    def names(self, name: str) -> list[str]:
        """Return the names in a folder in order, none where there is no folder."""
        try:
            return sorted(os.listdir(self.path(name)))
        except FileNotFoundError:
            return []

    def names_or_none(self, name: str) -> list[str] | None:
        """Return the names in a folder in order, None where there is a file or nothing."""
        try:
            return sorted(os.listdir(self.path(name)))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def size(self, name: str) -> int:
        """Return the bytes of a file."""
        return os.stat(self.path(name)).st_size

    def free(self) -> tuple[int, int]:
        """Return how many bytes and how many files there is room for."""
        found = os.statvfs(self.root)
        n_files = found.f_favail if found.f_files else 1 << 30  # file systems that do not count files say 0
        return found.f_bavail * found.f_frsize, n_files

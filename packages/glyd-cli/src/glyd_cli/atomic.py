# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Regular outputs, which appear under their name whole or not at all.

The data goes to a file that has no name (where the system has such files) or a private
temporary one in the same folder, and gets its name in one step at the end. So nobody
sees half an output, nobody else can open it earlier than the input allowed, and a failed
run leaves what was there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import select
import stat
from typing import TYPE_CHECKING

from glyd_cli.errors import FileError, os_reason, write_error
from glyd_cli.signals import GATE

if TYPE_CHECKING:
    from glyd_cli.sources import Source

HOLE_NBYTES = 16384
"""Aligned runs of at least this many zeros become holes."""

_ZEROS = bytes(HOLE_NBYTES)
_NAME_MAX = 255  # bytes, of every file system in use; longer ones fail with their own message


class FileTarget:
    """A regular file that appears under its name only when it is complete.

    Parameters
    ----------
    path
        The name it gets.
    source
        The input: a regular one lends its permissions and times, and is never replaced.
    umask
        The mask of the process, for outputs whose input has no permissions.
    force
        Replace a file of that name (a symbolic link itself, not what it points to).
    sparse
        Leave holes for runs of zeros.
    durable
        Have the data and the name on the disk when `commit` returns.
    """

    def __init__(self, path: str, source: Source, *, umask: int, force: bool, sparse: bool, durable: bool) -> None:
        self.name = path
        self.written = 0
        self._source = source
        self._umask = umask
        self._force = force
        self._sparse = sparse
        self._durable = durable
        self._temp: str | None = None
        self._fd = -1
        folder, self._base = os.path.split(path)
        try:
            self._folder = os.open(folder or ".", getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise FileError(path, f"cannot create: folder {folder or '.'}: {os_reason(error)}") from error
        try:
            with GATE:
                self._create()
        except BaseException as error:
            self.abort()
            if isinstance(error, OSError):
                raise FileError(path, f"cannot create: {os_reason(error)}") from error
            raise

    def _create(self) -> None:
        # an unnamed file leaves nothing behind even when the process is killed
        if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
            try:
                flags = os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC
                self._fd = os.open(".", flags, 0o600, dir_fd=self._folder)
                return
            except OSError as error:
                if error.errno not in {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT}:
                    raise
        temp = self._temp_name()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._fd = os.open(temp, flags, 0o600, dir_fd=self._folder)
        self._temp = temp

    def _temp_name(self) -> str:
        tag = f".{secrets.token_hex(6)}.glyd-tmp"
        stem = os.fsencode(self._base)[: _NAME_MAX - 1 - len(tag)]
        return "." + os.fsdecode(stem) + tag

    def write(self, data: memoryview) -> None:
        """Write all of data, leaving holes if asked to."""
        try:
            if self._sparse:
                self._write_sparse(data)
            else:
                self._write_data(data)
        except OSError as error:
            raise write_error(self.name, error, self.written) from error

    def _write_data(self, data: memoryview) -> None:
        while data:
            n = write_some(self._fd, data)
            self.written += n
            data = data[n:]

    def _write_sparse(self, data: memoryview) -> None:
        start = 0  # of data that is not written yet
        at = -self.written % HOLE_NBYTES  # next aligned block
        while at + HOLE_NBYTES <= len(data):
            end = at + HOLE_NBYTES
            # looking at the ends first settles nearly every block without a copy
            if data[at] or data[end - 1] or data[at:end].tobytes() != _ZEROS:
                at = end
                continue
            self._write_data(data[start:at])
            while end + HOLE_NBYTES <= len(data) and data[end : end + HOLE_NBYTES].tobytes() == _ZEROS:
                end += HOLE_NBYTES
            os.lseek(self._fd, end - at, os.SEEK_CUR)
            self.written += end - at
            start = at = end
        self._write_data(data[start:])

    def commit(self) -> None:
        """Give the file its permissions, times and name.

        Raises
        ------
        FileError
            The system refused, or the name has been taken meanwhile.
        """
        try:
            if self._sparse:
                os.ftruncate(self._fd, self.written)  # a hole at the end has to count
            self._take_over_metadata()
            if self._durable:
                os.fsync(self._fd)
        except OSError as error:
            self.abort()
            raise write_error(self.name, error, self.written) from error
        try:
            with GATE:
                self._give_name()
            if self._durable:
                _sync_folder(self.name)
        except FileExistsError:
            raise already_exists(self.name) from None
        except OSError as error:
            raise FileError(self.name, f"cannot give the finished output its name: {os_reason(error)}") from error
        finally:
            self.abort()  # what it closes and removes is only what is left over

    def _give_name(self) -> None:
        taken = status_of(self._base, self._folder)
        if taken and self._force and is_same(taken, self._source.status):
            raise same_file(self.name, self._source.name)
        if self._temp is None:
            anonymous = f"/proc/self/fd/{self._fd}"
            name = self._temp_name() if taken and self._force else self._base
            os.link(anonymous, name, dst_dir_fd=self._folder, follow_symlinks=True)
            if name == self._base:
                return
            self._temp = name
        else:
            fd, self._fd = self._fd, -1
            os.close(fd)  # network file systems report late failures here
        if self._force:
            os.rename(self._temp, self._base, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            self._temp = None
            return
        try:
            # a link, unlike a rename, never replaces what somebody else made meanwhile
            os.link(self._temp, self._base, src_dir_fd=self._folder, dst_dir_fd=self._folder, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError:  # no hard links here (FAT): reserve the name, then rename over our own file
            os.close(os.open(self._base, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=self._folder))
            os.rename(self._temp, self._base, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            self._temp = None

    def _take_over_metadata(self) -> None:
        source = self._source.status
        if not self._source.is_regular or self._source.is_stdin:
            _chmod(self._fd, 0o666 & ~self._umask)
            return
        mode = stat.S_IMODE(source.st_mode) & 0o777  # set-uid and its like are not for data
        for uid, gid in ((source.st_uid, source.st_gid), (-1, source.st_gid)):
            own = os.fstat(self._fd)
            if own.st_gid == source.st_gid and uid in {-1, own.st_uid}:
                break
            try:
                os.fchown(self._fd, uid, gid)
            except OSError:
                continue
            break
        if os.fstat(self._fd).st_gid != source.st_gid or _has_access_list(self._source.fd):
            # another group, or bits that are the mask of a list: the group gets what everybody gets
            mode = (mode & 0o707) | (mode & 0o070 & (mode & 0o007) << 3)
        _chmod(self._fd, mode)
        os.utime(self._fd, ns=(source.st_atime_ns, source.st_mtime_ns))

    def abort(self) -> None:
        """Close and remove the temporary file."""
        with GATE:
            if self._fd >= 0:
                close_quietly(self._fd)
                self._fd = -1
            if self._temp is not None:
                with contextlib.suppress(OSError):  # already failing for a reason that says more
                    os.unlink(self._temp, dir_fd=self._folder)
                self._temp = None
            if self._folder >= 0:
                close_quietly(self._folder)
                self._folder = -1


def already_exists(path: str) -> FileError:
    """Return the error for an output that is there already."""
    return FileError(path, "already exists; -f replaces it")


def same_file(path: str, source: str) -> FileError:
    """Return the error for an output that is an input."""
    return FileError(path, f"is the input {source}: reading and writing the same file would destroy it")


def is_same(a: os.stat_result, b: os.stat_result) -> bool:
    """Return whether two results are of one file."""
    return (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)


def status_of(name: str, folder: int | None = None) -> os.stat_result | None:
    """Return what is under a name (a link itself), or None."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileError(name, f"cannot look at: {os_reason(error)}") from error


def write_some(fd: int, data: memoryview) -> int:
    """Write data, perhaps not all of it; return the bytes written."""
    while True:
        try:
            return os.write(fd, data)
        except BlockingIOError:  # a pipe or terminal that somebody set to O_NONBLOCK
            select.select([], [fd], [])


def _sync_folder(path: str) -> None:
    """Have the name of a file on the disk, on systems that can promise it."""
    fd = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise
    finally:
        os.close(fd)


def close_quietly(fd: int) -> None:
    """Close a descriptor on the way out of a failure that is reported already."""
    with contextlib.suppress(OSError):
        os.close(fd)


def _chmod(fd: int, mode: int) -> None:
    with contextlib.suppress(PermissionError):  # file systems without permissions (FAT): the mount decides
        os.fchmod(fd, mode)


def _has_access_list(fd: int) -> bool:
    if not hasattr(os, "getxattr"):
        return False
    try:
        return bool(os.getxattr(fd, "system.posix_acl_access"))
    except OSError:
        return False

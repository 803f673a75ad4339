# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Outputs of the command: streams written as they come, files that appear whole or not at all.

A regular output is written to a file that has no name (where the system has such files)
or a private temporary one in the same folder, and gets its name in one step at the end.
So nobody sees half an output, nobody else can open it earlier than the input allowed, and
a failed run leaves what was there. Everything else (pipes, devices, descriptors) is
written directly and is never replaced, truncated or removed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import select
import stat
import time
from typing import TYPE_CHECKING, Protocol

from glyd_cli.errors import FileError, os_reason, write_error
from glyd_cli.signals import GATE
from glyd_cli.sources import descriptor_of

if TYPE_CHECKING:
    from glyd_cli.sources import Source

READER_WAIT_S = 2.0
"""How long a named pipe may be without a reader before it is refused as an output."""

HOLE_NBYTES = 16384
"""Aligned runs of at least this many zeros become holes."""

_ZEROS = bytes(HOLE_NBYTES)
_NAME_MAX = 255  # bytes, of every file system in use; longer ones fail with their own message


class Target(Protocol):
    """Where an output goes: any number of `write`, then `commit` or `abort`."""

    name: str
    written: int

    def write(self, data: memoryview) -> None:
        """Write all of data."""

    def commit(self) -> None:
        """Make the output final. Only after this it is safe to remove the input."""

    def abort(self) -> None:
        """Undo what can be undone. Never raises `OSError`."""


class NullTarget:
    """Takes everything and keeps nothing: the output of ``--test``."""

    name = "nothing"

    def __init__(self) -> None:
        self.written = 0

    def write(self, data: memoryview) -> None:
        """Count data."""
        self.written += len(data)

    def commit(self) -> None:
        """Do nothing."""

    def abort(self) -> None:
        """Do nothing."""


class StreamTarget:
    """A descriptor that is written in order and never positioned: no holes, also when appending.

    Parameters
    ----------
    fd
        Descriptor to write to.
    name
        Name for messages.
    owned
        Whether to close the descriptor at the end.
    """

    def __init__(self, fd: int, name: str, *, owned: bool = False) -> None:
        self._fd = fd
        self._owned = owned
        self.name = name
        self.written = 0

    def write(self, data: memoryview) -> None:
        """Write all of data."""
        try:
            self.written += _write_all(self._fd, data)
        except OSError as error:
            raise write_error(self.name, error, self.written) from error

    def commit(self) -> None:
        """Close the descriptor, and report what that reports."""
        if self._owned:
            self._owned = False
            try:
                if stat.S_ISBLK(os.fstat(self._fd).st_mode):
                    os.fsync(self._fd)
                os.close(self._fd)
            except OSError as error:
                raise write_error(self.name, error, self.written) from error

    def abort(self) -> None:
        """Close the descriptor; what has been written has been written."""
        if self._owned:
            self._owned = False
            _close_quietly(self._fd)


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

    def __init__(
        self, path: str, source: Source, *, umask: int, force: bool, sparse: bool, durable: bool
    ) -> None:
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
                self.written += _write_all(self._fd, data)
        except OSError as error:
            raise write_error(self.name, error, self.written) from error

    def _write_sparse(self, data: memoryview) -> None:
        start = 0  # of data that is not written yet
        at = -self.written % HOLE_NBYTES  # next aligned block
        while at + HOLE_NBYTES <= len(data):
            end = at + HOLE_NBYTES
            # looking at the ends first settles nearly every block without a copy
            if data[at] or data[end - 1] or data[at:end].tobytes() != _ZEROS:
                at = end
                continue
            self.written += _write_all(self._fd, data[start:at])
            while end + HOLE_NBYTES <= len(data) and data[end : end + HOLE_NBYTES].tobytes() == _ZEROS:
                end += HOLE_NBYTES
            os.lseek(self._fd, end - at, os.SEEK_CUR)
            self.written += end - at
            start = at = end
        self.written += _write_all(self._fd, data[start:])

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
        taken = _status(self._base, self._folder)
        if taken and self._force and _is_same(taken, self._source.status):
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
            os.link(
                self._temp, self._base, src_dir_fd=self._folder, dst_dir_fd=self._folder, follow_symlinks=False
            )
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
                _close_quietly(self._fd)
                self._fd = -1
            if self._temp is not None:
                try:
                    os.unlink(self._temp, dir_fd=self._folder)
                except OSError:
                    pass  # already failing for a reason that says more
                self._temp = None
            if self._folder >= 0:
                _close_quietly(self._folder)
                self._folder = -1


def open_stdout(source: Source) -> StreamTarget:
    """Return standard output as a target.

    Raises
    ------
    FileError
        It is the input file, as with ``glyd -c F >> F``, or it is not open.
    """
    return _open_descriptor(1, "standard output", source, owned=False)


def open_target(  # noqa: D417 - the rest as in FileTarget
    path: str, source: Source, *, umask: int, force: bool, sparse: bool, durable: bool
) -> Target:
    """Open an output by name.

    Parameters
    ----------
    path
        Name of the output: a new file, an old one (with `force`), a device, a named pipe
        or an open descriptor (``/dev/stdout``).

    Raises
    ------
    FileError
        It is the input under whatever name, it exists and `force` is not set, or it
        cannot be written.
    """
    number = descriptor_of(path)
    if number is not None:
        try:
            return _open_descriptor(os.dup(number), path, source, owned=True)
        except OSError as error:
            raise FileError(path, f"cannot open: {os_reason(error)}") from error
    link = _status(path)
    try:
        status = os.stat(path) if link else None
    except FileNotFoundError:  # a dangling link
        status = None
    except OSError as error:
        raise FileError(path, f"cannot open: {os_reason(error)}") from error
    if status and _is_same(status, source.status):
        raise same_file(path, source.name)
    if status and stat.S_ISDIR(status.st_mode):
        raise FileError(path, "is a directory")
    if status and not stat.S_ISREG(status.st_mode):
        return _open_special(path, status, force=force)
    if link and not force:
        raise already_exists(path)
    return FileTarget(path, source, umask=umask, force=force, sparse=sparse, durable=durable)


def _open_descriptor(fd: int, name: str, source: Source, *, owned: bool) -> StreamTarget:
    try:
        status = os.fstat(fd)
    except OSError as error:
        raise FileError(name, f"not open: {os_reason(error)}") from error
    if stat.S_ISREG(status.st_mode) and _is_same(status, source.status):
        raise same_file(name, source.name)
    return StreamTarget(fd, name, owned=owned)


def _open_special(path: str, status: os.stat_result, *, force: bool) -> StreamTarget:
    mode = status.st_mode
    if stat.S_ISSOCK(mode):
        raise FileError(path, "is a socket; pipe the output of glyd -c into a program that can connect to it")
    flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY
    if stat.S_ISBLK(mode):
        if not force:
            raise FileError(path, "is a block device; -f writes over what is on it")
        flags |= os.O_EXCL  # Linux: refuses a device that is mounted
    fd = _open_pipe(path) if stat.S_ISFIFO(mode) else _open(path, flags)
    if stat.S_IFMT(os.fstat(fd).st_mode) != stat.S_IFMT(mode):
        os.close(fd)
        raise FileError(path, "changed its kind while it was opened")
    return StreamTarget(fd, path, owned=True)


def _open(path: str, flags: int) -> int:
    try:
        return os.open(path, flags)
    except OSError as error:
        raise FileError(path, f"cannot open: {os_reason(error)}") from error


def _open_pipe(path: str) -> int:
    """Open a named pipe for writing, but do not wait for ever for a reader."""
    deadline = time.monotonic() + READER_WAIT_S
    while True:
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise FileError(path, f"cannot open: {os_reason(error)}") from error
            if time.monotonic() > deadline:
                raise FileError(path, f"nobody reads from this pipe (waited {READER_WAIT_S:g} s)") from None
            time.sleep(0.02)
            continue
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_NONBLOCK)
        return fd


def already_exists(path: str) -> FileError:
    """Return the error for an output that is there already."""
    return FileError(path, "already exists; -f replaces it")


def same_file(path: str, source: str) -> FileError:
    """Return the error for an output that is an input."""
    return FileError(path, f"is the input {source}: reading and writing the same file would destroy it")


def _is_same(a: os.stat_result, b: os.stat_result) -> bool:
    return (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)


def _status(name: str, folder: int | None = None) -> os.stat_result | None:
    """Return what is under a name (a link itself), or None."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileError(name, f"cannot look at: {os_reason(error)}") from error


def _write_all(fd: int, data: memoryview) -> int:
    done = 0
    while done < len(data):
        try:
            done += os.write(fd, data[done:])
        except BlockingIOError:  # a pipe or terminal that somebody set to O_NONBLOCK
            select.select([], [fd], [])
    return done


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


def _close_quietly(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        pass  # only on the way out of a failure that is reported


def _chmod(fd: int, mode: int) -> None:
    try:
        os.fchmod(fd, mode)
    except PermissionError:
        pass  # file systems without permissions (FAT): the mount decides


def _has_access_list(fd: int) -> bool:
    if not hasattr(os, "getxattr"):
        return False
    try:
        return bool(os.getxattr(fd, "system.posix_acl_access"))
    except OSError:
        return False

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Outputs of the command: which kind a name stands for, and those that are written directly.

Regular files are in `glyd_cli.atomic`. Everything else (pipes, devices, descriptors) is
written as it comes, and is never replaced, truncated or removed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from typing import TYPE_CHECKING, Protocol

from glyd_cli.atomic import FileTarget, already_exists, close_quietly, is_same, same_file, status_of, write_some
from glyd_cli.errors import FileError, os_reason, write_error
from glyd_cli.sources import descriptor_of

if TYPE_CHECKING:
    from glyd_cli.sources import Source

READER_WAIT_S = 2.0
"""How long a named pipe may be without a reader before it is refused as an output."""


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
            while data:
                n = write_some(self._fd, data)
                self.written += n
                data = data[n:]
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
            close_quietly(self._fd)


def open_stdout(source: Source) -> StreamTarget:
    """Return standard output as a target.

    Raises
    ------
    FileError
        It is the input file, as with ``glyd -c F >> F``, or it is not open.
    """
    return _open_descriptor(1, "standard output", source, owned=False)


def open_target(path: str, source: Source, *, umask: int, force: bool, sparse: bool, durable: bool) -> Target:
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
    link = status_of(path)
    try:
        status = os.stat(path) if link else None
    except FileNotFoundError:  # a dangling link
        status = None
    except OSError as error:
        raise FileError(path, f"cannot open: {os_reason(error)}") from error
    if status and is_same(status, source.status):
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
    if stat.S_ISREG(status.st_mode) and is_same(status, source.status):
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

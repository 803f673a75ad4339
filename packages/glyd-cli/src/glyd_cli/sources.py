# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Inputs of the command: what may be read, how it is opened, how it is read."""

from __future__ import annotations

import fcntl
import os
import re
import select
import stat
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from glyd_cli.errors import FileError, os_reason

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

STDIN = "-"

WRITER_WAIT_S = 2.0
"""How long a named pipe may be without a writer before it is refused."""

# names of descriptors this process already has; opening them again would give a
# pipe a second, unconnected end
_DESCRIPTOR_NAME = re.compile(r"/dev/fd/(\d+)|/proc/self/fd/(\d+)|/dev/(stdin|stdout|stderr)")


def descriptor_of(path: str) -> int | None:
    """Return the number when a path only names an open descriptor (``/dev/fd/63``)."""
    match = _DESCRIPTOR_NAME.fullmatch(path)
    if not match:
        return None
    if match[3]:
        return ("stdin", "stdout", "stderr").index(match[3])
    return int(match[1] or match[2])


@dataclass(slots=True)
class Source:
    """An open input.

    Attributes
    ----------
    path
        As given on the command line; ``-`` is standard input.
    fd
        Descriptor to read from.
    status
        What ``fstat`` said right after opening.
    """

    path: str
    fd: int
    status: os.stat_result
    _ahead: bytes = b""  # read while opening, see _await_writer

    @property
    def is_stdin(self) -> bool:
        """Whether this is standard input, which is not closed here."""
        return self.path == STDIN

    @property
    def name(self) -> str:
        """The name to show to people."""
        return "standard input" if self.is_stdin else self.path

    @property
    def is_regular(self) -> bool:
        """Whether this is a regular file: it has a size and can be read again."""
        return stat.S_ISREG(self.status.st_mode)

    @property
    def nbytes(self) -> int | None:
        """Bytes still to read, or None when nobody can know."""
        if not self.is_regular:
            return None
        return max(0, self.status.st_size - os.lseek(self.fd, 0, os.SEEK_CUR))

    def readinto(self, buffer: memoryview) -> int:
        """Fill the buffer as far as the input goes.

        Returns
        -------
        int
            Bytes read; fewer than the buffer holds only at the end of the input.

        Raises
        ------
        FileError
            The system could not read.
        """
        done = len(self._ahead)
        buffer[:done] = self._ahead
        self._ahead = b""
        while done < len(buffer):
            try:
                n = os.readv(self.fd, [buffer[done:]])
            except BlockingIOError:  # somebody left O_NONBLOCK on a shared pipe or terminal
                select.select([self.fd], [], [])
                continue
            except OSError as error:
                raise FileError(self.name, f"read failed after {done} bytes of a chunk: {os_reason(error)}") from error
            if n == 0:
                break
            done += n
        return done

    def close(self) -> None:
        """Close the descriptor, unless it is standard input."""
        if not self.is_stdin and self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_source(path: str) -> Source:
    """Open an input for reading.

    Regular files and symbolic links to them, pipes and standard input are read.

    Raises
    ------
    FileError
        Directories, devices and sockets, with what to do instead; named pipes that
        nobody writes to; whatever the system refuses.
    """
    if path == STDIN:
        try:
            return Source(path, 0, os.fstat(0))
        except OSError as error:
            raise FileError("standard input", f"not open: {os_reason(error)}") from error
    fd = descriptor_of(path)
    try:
        if fd is not None:
            return _checked(path, os.dup(fd))
        _refuse_special(path, os.stat(path))  # before opening: opening a device may already do something
        return _checked(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY))
    except OSError as error:
        raise FileError(path, f"cannot open: {os_reason(error)}") from error


def _checked(path: str, fd: int) -> Source:
    ahead = b""
    try:
        status = os.fstat(fd)
        _refuse_special(path, status)
        if stat.S_ISFIFO(status.st_mode) and descriptor_of(path) is None:
            ahead = _await_writer(path, fd)
        if descriptor_of(path) is None:
            flags = fcntl.fcntl(fd, fcntl.F_GETFL)
            fcntl.fcntl(fd, fcntl.F_SETFL, flags & ~os.O_NONBLOCK)
    except BaseException:
        os.close(fd)
        raise
    return Source(path, fd, status, ahead)


def _refuse_special(path: str, status: os.stat_result) -> None:
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        raise FileError(path, "is a directory; pack it first: tar -cf - DIR | glyd -o DIR.tar.glyd")
    if stat.S_ISSOCK(mode):
        raise FileError(path, "is a socket; connect to it with a program that can and pipe its output into glyd")
    if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and descriptor_of(path) is None):
        raise FileError(path, "is a device; say how much to read: head -c SIZE DEVICE | glyd -o OUT, or dd, or tar")


def _await_writer(path: str, fd: int) -> bytes:
    """Wait until a named pipe has a writer, and return the byte that finding out may have read.

    Without a writer a blocking open would wait for ever. A read that does not block tells
    the two apart: "end of file" is nobody there, "try again" is somebody who has not
    written yet.
    """
    deadline = time.monotonic() + WRITER_WAIT_S
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    while time.monotonic() < deadline:
        if poller.poll(20):  # data, or a writer that came and has closed
            return b""
        try:
            byte = os.read(fd, 1)
        except BlockingIOError:
            return b""
        if byte:
            return byte
    raise FileError(path, f"nobody writes to this pipe (waited {WRITER_WAIT_S:g} s); to wait for a writer: glyd < PIPE")


def read_all(source: Source, most: int) -> bytearray | None:
    """Read a whole input that has at most `most` bytes.

    Returns
    -------
    bytearray or None
        The content, or None (nothing read) when the input is not a regular file of
        that size.
    """
    size = source.nbytes
    if size is None or size > most:
        return None
    start = os.lseek(source.fd, 0, os.SEEK_CUR)
    data = bytearray(size + 1)
    n = source.readinto(memoryview(data))
    if n > size:  # it grew meanwhile, or has no true size (/proc): read it as a stream
        os.lseek(source.fd, start, os.SEEK_SET)
        return None
    del data[n:]
    return data

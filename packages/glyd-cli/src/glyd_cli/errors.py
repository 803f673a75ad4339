# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Exit codes of the command, its own exceptions, and how any exception becomes one line."""

from __future__ import annotations

import errno
import os
from enum import IntEnum

import glyd


class Exit(IntEnum):
    """Exit codes, part of the public interface of the command."""

    OK = 0
    USAGE = 1
    IO = 2
    CORRUPT = 3
    LIMIT = 4
    BASE = 5
    BROKEN_PIPE = 141


class UsageError(glyd.GlydError):
    """The command line asks for something that cannot be done."""


class FileError(glyd.GlydError):
    """A file cannot be read, written or replaced.

    Parameters
    ----------
    path
        The file the message is about, as the user knows it.
    what
        What happened, without the file name.
    """

    def __init__(self, path: str, what: str) -> None:
        super().__init__(what)
        self.path = path


# errno values that all mean: the output ran out of room
_NO_ROOM = {
    errno.ENOSPC: "no space left on the device",
    errno.EDQUOT: "disk quota used up",
    errno.EFBIG: "file size limit reached",
}


def write_error(path: str, error: OSError, written: int) -> Exception:
    """Turn a failed write into an error that names the output and the place.

    Parameters
    ----------
    path
        Name of the output.
    error
        What the system call raised.
    written
        Bytes that were written before.

    Returns
    -------
    Exception
        ``error`` itself for a closed pipe (the reader had enough: not a fault to talk
        about), else a `FileError`.
    """
    if isinstance(error, BrokenPipeError):
        return error
    why = _NO_ROOM.get(error.errno or 0) or os_reason(error)
    return FileError(path, f"write failed after {written} bytes: {why}")


def file_error(error: OSError, name: str) -> FileError:
    """Return an `OSError` of reading a model as a `FileError`; network libraries raise some with long texts and no number.

    Parameters
    ----------
    error
        What was raised.
    name
        What it is about when it does not say so itself.
    """
    path = os.fsdecode(error.filename) if error.filename is not None else name
    text = os_reason(error) if error.errno else str(error).strip().partition("\n")[0]
    return FileError(path, text or type(error).__name__)


def os_reason(error: OSError) -> str:
    """Return the plain reason of an `OSError`, without number and file name."""
    if error.errno:
        return os.strerror(error.errno).lower()
    return str(error) or type(error).__name__


def exit_code(error: BaseException) -> Exit:
    """Return the exit code that an exception stands for."""
    if isinstance(error, BrokenPipeError):
        return Exit.BROKEN_PIPE
    if isinstance(error, (UsageError, glyd.ParameterError)):
        return Exit.USAGE
    if isinstance(error, (glyd.MissingBaseError, glyd.WrongBaseError)):
        return Exit.BASE
    if isinstance(error, (glyd.LimitError, MemoryError)):
        return Exit.LIMIT
    if isinstance(error, glyd.FormatError):
        return Exit.CORRUPT
    return Exit.IO


def describe(error: BaseException) -> str:
    """Return what an exception says, in one line without the name of the file."""
    if isinstance(error, MemoryError):
        text = str(error) or "not enough memory"
    elif isinstance(error, OSError):
        text = os_reason(error)
    else:
        text = str(error) or type(error).__name__
    return shown(text)


def shown(text: str | os.PathLike[str]) -> str:
    r"""Return text with everything unprintable escaped, so that it stays on its line.

    File names may hold newlines, terminal escapes and bytes that are no characters.
    """
    raw = os.fspath(text)
    if raw.isprintable():
        return raw
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in raw)

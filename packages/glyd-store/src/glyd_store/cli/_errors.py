# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Exit codes, and how an exception becomes one line."""

from __future__ import annotations

import os
from enum import IntEnum

import glyd
from glyd_store._errors import IntegrityError, LockedError, ObjectNotFoundError, StoreVersionError
from glyd_store.cli._arguments import UsageError


class Exit(IntEnum):
    """Exit codes, part of the public interface of the command."""

    OK = 0
    USAGE = 1
    IO = 2
    CORRUPT = 3
    LIMIT = 4
    BASE = 5
    NOT_FOUND = 6
    LOCKED = 7
    INTERRUPTED = 130
    BROKEN_PIPE = 141


def exit_code(error: BaseException) -> Exit:
    """Return the exit code that an exception stands for."""
    if isinstance(error, BrokenPipeError):
        return Exit.BROKEN_PIPE
    if isinstance(error, (UsageError, glyd.ParameterError)):
        return Exit.USAGE
    if isinstance(error, ObjectNotFoundError):
        return Exit.NOT_FOUND
    if isinstance(error, LockedError):
        return Exit.LOCKED
    if isinstance(error, (IntegrityError, StoreVersionError)):
        return Exit.CORRUPT
    if isinstance(error, (glyd.MissingBaseError, glyd.WrongBaseError)):
        return Exit.BASE
    if isinstance(error, (glyd.LimitError, MemoryError)):
        return Exit.LIMIT
    if isinstance(error, glyd.FormatError):
        return Exit.CORRUPT
    return Exit.IO


def describe(error: BaseException, where: str = "") -> str:
    """Return what an exception says, in one line; `where` is the file of an error that names none."""
    if isinstance(error, glyd.GlydError):
        text = str(error)
    elif isinstance(error, OSError) and error.errno:
        text = os.strerror(error.errno).lower()
        path = os.fsdecode(error.filename) if error.filename else where
        text = f"{path}: {text}" if path else text
    elif isinstance(error, MemoryError):
        text = str(error) or "not enough memory"
    else:
        text = str(error) or type(error).__name__
    return shown(text)


def shown(text: str) -> str:
    """Return text with everything unprintable escaped: names may hold newlines and terminal escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

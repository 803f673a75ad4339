# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The exceptions of the store."""

from __future__ import annotations

from glyd import GlydError


class StoreError(GlydError):
    """A store cannot do what was asked; the store itself is as it was before."""


class ObjectNotFoundError(StoreError, LookupError):
    """No object of that name or id is in the store."""


class IntegrityError(StoreError):
    """Something in the store is damaged or missing.

    Parameters
    ----------
    message
        What was expected and what was found.
    key
        The file of the store that is concerned, where one is.
    advice
        What to do about it, a command where there is one.
    """

    key: str | None
    advice: str

    def __init__(self, message: str = "", *, key: str | None = None, advice: str = "") -> None:
        super().__init__(f"{message}; {advice}" if advice else message)
        self.key = key
        self.advice = advice


class IndexDamagedError(IntegrityError):
    """The index cannot be used; ``rebuild`` makes it again from the journal."""

    def __init__(self, message: str, *, key: str | None = None) -> None:
        super().__init__(message, key=key, advice="run 'rebuild' to make the index again from the journal")


class LockedError(StoreError, TimeoutError):
    """Another writer holds the lock of the store."""


class BusyError(StoreError):
    """Writers change the store faster than it can be read; trying again helps."""


class ReadOnlyError(StoreError, PermissionError):
    """The store is on media that cannot be written, or was opened for reading only."""


class StoreVersionError(StoreError):
    """The store, or an entry of its journal, is of a newer format."""

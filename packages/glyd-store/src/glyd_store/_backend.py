# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What a store needs from the place where it keeps its bytes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO


class Staged(Protocol):
    """A new file without a name."""

    @property
    def file(self) -> BinaryIO:
        """The file, for writing and reading back."""

    def publish(self, key: str, *, exclusive: bool = False) -> None:
        """Give the file its name; it is whole and durable when this returns.

        Parameters
        ----------
        key
            The name.
        exclusive
            Fail when there is a file of that name.

        Raises
        ------
        FileExistsError
            When there is one; the file stays without a name.
        """

    def discard(self) -> None:
        """Remove the file if it has no name; close it."""


class Backend(Protocol):
    """A flat set of keys with bytes.

    Missing keys raise FileNotFoundError, all other failures OSError. Any number of
    threads may read; one thread at a time writes.
    """

    url: str
    """What the user calls it."""

    private_index: bool
    """Whether the index belongs to this process or machine alone, not to the store."""

    decodes_max: int
    """Frames that a content may take at most where they are small: each of them is opened for every read."""

    @property
    def read_only(self) -> bool:
        """Whether nothing can be written here."""

    def open(self, key: str) -> BinaryIO:
        """Open for reading, able to seek."""

    def read(self, key: str) -> bytes:
        """Return all bytes of a small file."""

    def size(self, key: str) -> int:
        """Return the number of bytes."""

    def list(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield keys below a prefix that ends with a slash, in order, and their sizes."""

    def last_entry(self) -> str | None:
        """Return the last key below ``journal/``."""

    def stage(self) -> Staged:
        """Start a new file. Only holders of the lock may."""

    def delete(self, keys: Iterable[str]) -> None:
        """Remove files in this order; durable when this returns. They may be gone already."""

    def make_root(self) -> None:
        """Create what the lock needs; what lies there already must be a store or nothing."""

    def prepare(self) -> None:
        """Create what an empty store needs. Only holders of the lock may."""

    def lock(self, timeout_s: float, *, force: bool = False) -> AbstractContextManager[None]:
        """Be the one writer.

        Parameters
        ----------
        timeout_s
            Seconds to wait for another writer.
        force
            Take the lock from a holder on another machine that is known to be dead.

        Raises
        ------
        LockedError
            When the other one is not done by then.
        ReadOnlyError
            When nothing can be written here.
        """

    def index_path(self, store_id: str | None) -> str | None:
        """Return where the index lies, None: nowhere, in memory."""

    def free_reserve(self) -> bool:
        """Make room on a full disk from what is kept for that; say whether there was any."""

    def fill_reserve(self) -> None:
        """Keep room for `free_reserve` again when there is enough."""

    def clear_unfinished(self) -> None:
        """Remove what writers before left unfinished. Only holders of the lock may."""

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The journal of a store, as it lies in its backend."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

from glyd_store._entry import FORMAT, decode_entry, entry_key, entry_seq
from glyd_store._errors import BusyError, IntegrityError, StoreVersionError
from glyd_store._index import Index
from glyd_store._index_file import remove_index

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from glyd_store._backend import Backend
    from glyd_store._entry import Entry

STORE_KEY = "glyd-store.json"
APPLY_AT_ONCE = 256
"""Entries in one transaction of an index that is made: bounds memory, and pays for the commit."""

_ATTEMPTS = 20
_READ_ONCE_NBYTES = 1 << 20


def read_store_id(backend: Backend) -> str | None:
    """Return the id of a store, from its file or else from an entry; None: there is no store.

    Raises
    ------
    StoreVersionError
        When the store is of a newer format.
    """
    try:
        found = json.loads(backend.read(STORE_KEY))
        if found["format"] != FORMAT:
            raise StoreVersionError(f"{backend.url} is of store format {found['format']}, known is {FORMAT}")
        return str(found["id"])
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        pass
    for key, _ in backend.list("journal/"):
        with contextlib.suppress(IntegrityError, FileNotFoundError):  # damaged, or dropped since
            return decode_entry(backend.read(key), key).store
    return None


def journal_end(backend: Backend) -> int:
    """Return the number of the last entry, 0 when there is none."""
    key = backend.last_entry()
    return (entry_seq(key) or 0) if key else 0


def read_entry(backend: Backend, seq: int, store: str | None = None) -> Entry:
    """Return an entry.

    Raises
    ------
    IntegrityError
        When it is damaged.
    FileNotFoundError
        When it is not there.
    """
    key = entry_key(seq)
    return decode_entry(backend.read(key), key, store)


def list_entries(backend: Backend, end: int) -> tuple[list[int], int, list[IntegrityError]]:
    """Return the numbers of the entries up to one in order, their bytes, and errors of files that are no entries."""
    found, total, damaged = [], 0, []
    for key, nbytes in backend.list("journal/"):
        seq = entry_seq(key)
        if seq is None:
            damaged.append(IntegrityError(f"{key} is no name of an entry", key=key))
        elif seq <= end:
            found.append(seq)
            total += nbytes
    return found, total, damaged


def iter_entries(
    backend: Backend, store: str | None, seqs: Iterable[int], damaged: list[IntegrityError]
) -> Iterator[Entry]:
    """Yield the entries with these numbers that can be read; errors of the others are added to a list."""
    for seq in seqs:
        try:
            yield read_entry(backend, seq, store)
        except IntegrityError as error:
            damaged.append(error)
        except FileNotFoundError:
            continue  # a writer has dropped it since


def catch_up(
    backend: Backend, index: Index, store: str, at: int, last: int | None = None
) -> tuple[int, list[IntegrityError]]:
    """Take the entries after a number into an index; return the number of the last, and what could not be read.

    Parameters
    ----------
    backend, index, store
        Where the journal is, what takes it in, and the id of the store.
    at, last
        The number, and that of the last entry to take; None: the last there is.

    Raises
    ------
    FileNotFoundError
        When one is gone: what it said is in later ones, which only all together tell.
    """
    damaged: list[IntegrityError] = []
    while at < (end := journal_end(backend) if last is None else last):
        while at < end:
            entries = []
            for seq in range(at + 1, min(at + APPLY_AT_ONCE, end) + 1):
                try:
                    entries.append(read_entry(backend, seq, store))
                except IntegrityError as error:
                    damaged.append(error)
            index.apply(entries)
            at = min(at + APPLY_AT_ONCE, end)
    return at, damaged


def build_index(
    backend: Backend, path: str | None, store: str, attempts: int = _ATTEMPTS
) -> tuple[Index, list[IntegrityError]]:
    """Return a new index made from the whole journal, and what could not be read of it.

    A writer may add entries and drop some meanwhile: the index is that of a moment all the same.

    Parameters
    ----------
    backend
        Where the journal is.
    path
        Where to make the index; None: in memory, empty: in a temporary file.
    store
        Id of the store.
    attempts
        How often to begin anew at most.

    Raises
    ------
    BusyError
        When entries went each time before they were read.
    """
    for _ in range(attempts):
        # What is gone of the entries up to this one is dropped by one of them, or by one that comes after them.
        # That one is read as well, or is gone itself, and then all of it begins anew.
        end = journal_end(backend)
        index, damaged = _build_up_to(backend, path, store, end)
        try:
            damaged += catch_up(backend, index, store, end)[1]
        except FileNotFoundError:
            index.close()
            if path:
                remove_index(path)
        except BaseException:
            index.close()
            raise
        else:
            return index, damaged
    raise BusyError(f"the journal of {backend.url} changes faster than it can be read")


def _build_up_to(backend: Backend, path: str | None, store: str, end: int) -> tuple[Index, list[IntegrityError]]:
    # An entry is removed only when what it drops has been. So whoever reads a dropped entry finds the one that drops it,
    # or has found it before: if all are listed first, and read from the last to the first, or once before.
    seqs, nbytes, damaged = list_entries(backend, end)
    unread: list[IntegrityError] = []
    entries: Iterable[Entry]
    if nbytes <= _READ_ONCE_NBYTES:
        entries = list(iter_entries(backend, store, reversed(seqs), unread))[::-1]
        unread.reverse()
        dropped = {seq for entry in entries for seq in entry.drop_entries}
    else:
        dropped = {seq for entry in iter_entries(backend, store, seqs, []) for seq in entry.drop_entries}
        entries = iter_entries(backend, store, seqs, unread)
    index = Index.create(path, store)
    try:
        batch: list[Entry] = []
        for entry in entries:
            if entry.seq not in dropped:
                batch.append(entry)
            if len(batch) == APPLY_AT_ONCE:
                index.apply(batch)
                batch.clear()
        index.apply(batch)
    except BaseException:
        index.close()
        raise
    return index, [*damaged, *unread]

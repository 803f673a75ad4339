# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The journal of a store, as it lies in its backend."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

from glyd_store._entry import FORMAT, decode_entry, entry_key, entry_seq
from glyd_store._errors import IntegrityError, StoreVersionError
from glyd_store._index import Index

if TYPE_CHECKING:
    from collections.abc import Iterator

    from glyd_store._backend import Backend
    from glyd_store._entry import Entry

STORE_KEY = "glyd-store.json"
APPLY_AT_ONCE = 256
"""Entries in one transaction of an index that is made: bounds memory, and pays for the commit."""


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
        with contextlib.suppress(IntegrityError):
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


def iter_entries(backend: Backend, store: str | None, damaged: list[IntegrityError]) -> Iterator[Entry]:
    """Yield all entries that can be read, in order; errors of the others are added to a list."""
    for key, _ in backend.list("journal/"):
        if entry_seq(key) is None:
            damaged.append(IntegrityError(f"{key} is no name of an entry", key=key))
            continue
        try:
            yield decode_entry(backend.read(key), key, store)
        except IntegrityError as error:
            damaged.append(error)
        except FileNotFoundError:
            continue  # a writer has dropped it since


def build_index(backend: Backend, path: str | None, store: str) -> tuple[Index, list[IntegrityError]]:
    """Return a new index made from the whole journal, and what could not be read of it.

    Parameters
    ----------
    backend
        Where the journal is.
    path
        Where to make the index; None: in memory, empty: in a temporary file.
    store
        Id of the store.
    """
    dropped: set[int] = set()
    for entry in iter_entries(backend, store, []):
        dropped.update(entry.drop_entries)
    damaged: list[IntegrityError] = []
    index = Index.create(path, store)
    try:
        batch: list[Entry] = []
        for entry in iter_entries(backend, store, damaged):
            if entry.seq not in dropped:
                batch.append(entry)
            if len(batch) == APPLY_AT_ONCE:
                index.apply(batch)
                batch.clear()
        index.apply(batch)
    except BaseException:
        index.close()
        raise
    return index, damaged

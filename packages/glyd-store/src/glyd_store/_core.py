# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The heart of a store: its lock, its journal, its index, and the commit."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import time
from typing import TYPE_CHECKING

from glyd_store._cache import BaseCache, Memory
from glyd_store._entry import FORMAT, Entry, encode_entry, entry_key, stream_key
from glyd_store._errors import IndexDamagedError, IntegrityError, LockedError, ReadOnlyError, StoreError
from glyd_store._frames import write_all
from glyd_store._index import Index
from glyd_store._index_file import remove_index, same_file, stat_index
from glyd_store._journal import STORE_KEY, build_index, catch_up, journal_end, read_store_id
from glyd_store._lock import exclusive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from glyd_store._backend import Backend


class Core:
    """An open store.

    Parameters
    ----------
    backend
        Where its bytes are.
    lock_timeout_s
        Seconds to wait for another writer.
    break_lock
        Take the lock from a holder on another machine.
    read_only
        Refuse to write.
    """

    def __init__(
        self, backend: Backend, *, lock_timeout_s: float = 10.0, break_lock: bool = False, read_only: bool = False
    ) -> None:
        self.backend = backend
        self.lock_timeout_s = lock_timeout_s
        self.break_lock = break_lock
        self.read_only = read_only
        self.mutex = threading.RLock()
        self.clock: Callable[[], int] = time.time_ns
        self.bases = BaseCache()
        self.memory = Memory()
        self.keeps_large = False  # another large input is to come, or the second one has
        self.notes: list[str] = []
        """What was found out of order and put right on the way."""
        self._index: Index | None = None
        self._index_path: str | None = None
        self._index_file: tuple[int, ...] | None = None
        self._depth = 0  # of writing(), which may be nested
        self._writer = 0
        self._last_seq = 0

    # ---- opening

    @property
    def index(self) -> Index:
        """The index, opened for reading if need be."""
        with self.mutex:
            if self._index is not None and self._depth == 0 and self._has_moved():
                self._index = None  # another process has made it again
            if self._index is None:
                self._open_for_reading()
            assert self._index is not None  # noqa: S101 - for mypy
            return self._index

    def close(self) -> None:
        """Close the index."""
        with self.mutex:
            if self._index is not None:
                self._index.close()
                self._index = None

    def refresh(self) -> Index:
        """Return an index of all that writers have committed by now, for when something is not where the index said.

        What a writer has committed is in the index a moment later; where it could not write that, or
        where the index is a copy, it is not.
        """
        with self.mutex:
            if self._depth == 0:
                self._index = None
                self._open_for_reading(wait=False)
            assert self._index is not None  # noqa: S101 - for mypy
            return self._index

    def _stat_index(self) -> tuple[int, ...] | None:
        return None if self._index_path is None else stat_index(self._index_path)

    def _has_moved(self) -> bool:
        """Say whether the file of the index is another one than that which is open; of copies, whether it was written."""
        assert self._index is not None  # noqa: S101 - for mypy
        now = self._stat_index()
        return self._index_file != now if self._index.path is None else not same_file(self._index_file, now)

    def store_id(self) -> str | None:
        """Return the id of the store; None: there is no store here."""
        return read_store_id(self.backend)

    def require_store(self) -> str:
        """Return the id of the store.

        Raises
        ------
        StoreError
            When there is none.
        """
        store = self.store_id()
        if store is None:
            raise StoreError(f"{self.backend.url} is no store (there is no usable {STORE_KEY} and no journal)")
        return store

    def _open_for_reading(self, *, wait: bool = True) -> None:
        """Open the index; with `wait` a living writer may still have to put into it what it has just committed."""
        store = self.require_store()
        writable = not (self.read_only or self.backend.read_only)
        if not self._open_index(store, writable=writable):
            self._open_missing(store, writable=writable)
        assert self._index is not None  # noqa: S101 - for mypy
        if self._index.store != store:
            path = self._index_path
            self.close()
            raise IndexDamagedError(f"the index {path} belongs to another store, not to {store}", key=path)
        if journal_end(self.backend) > self._index.seq:
            self._catch_up_reader(store, writable=writable, wait=wait)

    def _open_index(self, store: str, *, writable: bool) -> bool:
        """Open the index where it lies; False: it is not there."""
        path = self._index_path = self.backend.index_path(store)
        self._index_file = self._stat_index()  # before it is read: what is written meanwhile shows
        if path is None:
            self._index = Index.create(None, store)
            return True
        try:
            self._index = Index.open(path, writable=writable)
        except FileNotFoundError:
            return False
        except sqlite3.OperationalError as error:
            raise OSError(5, f"the index {path} cannot be opened: {error}") from error
        if self._index.path is not None:
            self._index_file = self._stat_index()
        return True

    def _open_missing(self, store: str, *, writable: bool) -> None:
        """Make an index that is not there: a new store has none, and a power cut may take the name of a new file."""
        if self._depth or (writable and self.backend.private_index):
            self._replace_index(store)
            return
        if writable:
            with contextlib.suppress(LockedError, ReadOnlyError, OSError), self.backend.lock(0):
                if not self._open_index(store, writable=True):  # nobody has made it since
                    self._replace_index(store)
                return
        self._index, damaged = build_index(self.backend, None, store)
        self.note_damage(damaged)

    def _catch_up_reader(self, store: str, *, writable: bool, wait: bool) -> None:
        """Take in what a writer committed and did not live to put into the index."""
        assert self._index is not None  # noqa: S101 - for mypy
        if self.backend.private_index:
            self._catch_up(store)
        elif writable:
            try:
                with self.backend.lock(0):
                    self._catch_up(store)
                return
            except LockedError:
                if wait:
                    return  # its writer lives, and is about to
            except (ReadOnlyError, OSError):
                pass
        if journal_end(self.backend) > self._index.seq:
            file = self._stat_index()
            self._index, self._index_file = self._index.to_memory(), file
            self._catch_up(store)

    # ---- the journal

    def _catch_up(self, store: str) -> None:
        """Bring the index up to the journal."""
        assert self._index is not None  # noqa: S101 - for mypy
        try:
            self._last_seq, damaged = catch_up(self.backend, self._index, store, self._index.seq)
        except FileNotFoundError:
            self._replace_index(store)
            return
        self.note_damage(damaged)

    def note_damage(self, damaged: list[IntegrityError]) -> None:
        """Keep in the index what was found damaged, so that nothing new relies on it."""
        assert self._index is not None  # noqa: S101 - for mypy
        if damaged:
            with self._index.transaction():
                for error in damaged:
                    if error.key is not None:
                        self._index.db.execute("INSERT OR REPLACE INTO damage VALUES(?, ?)", (error.key, str(error)))

    def is_damaged(self, key: str) -> bool:
        """Say whether a file was found damaged."""
        return self.index.row("SELECT 1 FROM damage WHERE key = ?", key) is not None

    def _replace_index(self, store: str) -> list[IntegrityError]:
        """Make the index again and put it in place of the old one."""
        path = self.backend.index_path(store) if self._index is None or self._index.path else None
        if path is None:
            self._index, damaged = build_index(self.backend, None, store)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            # others keep an index of their own at the same place without the lock of the store
            with exclusive(path + ".lock") if self.backend.private_index else contextlib.nullcontext():
                new = path + ".new"
                remove_index(new)
                fresh, damaged = build_index(self.backend, new, store)
                fresh.close()
                self._index = None
                remove_index(path)  # a log of the old index must never meet the new one
                os.replace(new, path)
                self._index = Index.open(path, writable=True)
                self._index_path, self._index_file = path, self._stat_index()
        self._last_seq = max(journal_end(self.backend), self._index.seq)
        self.note_damage(damaged)
        return damaged

    def rebuild(self) -> list[IntegrityError]:
        """Make the index again from the journal; return what of the journal cannot be read."""
        with self.writing(use_index=False):
            return self._replace_index(self.require_store())

    # ---- writing

    @property
    def is_writing(self) -> bool:
        """Whether this thread holds the lock, through this object."""
        return self._depth > 0 and self._writer == threading.get_ident()

    def check_writable(self) -> None:
        """Raise where writing cannot work, before work is done for it.

        Raises
        ------
        ReadOnlyError
            When the store cannot be written.
        """
        if self.read_only:
            raise ReadOnlyError(f"the store {self.backend.url} was opened for reading only")
        if self.backend.read_only:
            raise ReadOnlyError(f"the store {self.backend.url} is read-only")

    @contextlib.contextmanager
    def writing(self, *, use_index: bool = True, use_reserve: bool = False) -> Iterator[None]:
        """Be the writer, with an index that is up to date.

        Parameters
        ----------
        use_index
            Open the index; False for the one operation that makes it.
        use_reserve
            On a full disk make room from the reserve: for what frees more.
        """
        with self.mutex:
            if self._depth:
                self._depth += 1
                try:
                    yield
                finally:
                    self._depth -= 1
                return
            self.check_writable()
            self.backend.make_root()
            with self.backend.lock(self.lock_timeout_s, force=self.break_lock):
                self._depth, self._writer = 1, threading.get_ident()
                try:
                    if use_reserve:
                        self.backend.free_reserve()
                    self._prepare_writing(use_index=use_index)
                    yield
                finally:
                    self._depth = 0

    def _prepare_writing(self, *, use_index: bool) -> None:
        store = self.store_id()
        if store is None:
            store = self._create_store()
        if not use_index:
            self._index = None
            return
        if self._index is not None and self._index_path is not None and (self._index.path is None or self._has_moved()):
            self._index = None  # a copy that a reader made, or one that another process has made again
        if self._index is None and not self._open_index(store, writable=True):
            self._open_missing(store, writable=True)
        self._catch_up(store)
        self.backend.clear_unfinished()
        self._remove_leftovers()

    def _create_store(self) -> str:
        self.backend.prepare()
        store = os.urandom(16).hex()
        staged = self.backend.stage()
        try:
            write_all(staged.file, json.dumps({"format": FORMAT, "id": store}).encode() + b"\n")
            staged.publish(STORE_KEY, exclusive=True)
        finally:
            staged.discard()
        self.backend.fill_reserve()
        return store

    def new_entry(self, kind: str) -> Entry:
        """Return an empty entry to fill and commit."""
        index = self.index
        return Entry(index.store, self._last_seq + 1, self.clock(), kind, int(index.meta("next_id")))

    def commit(self, entry: Entry) -> None:
        """Make an entry part of the journal and the index. This is where an operation has happened.

        Raises
        ------
        LockedError
            When another writer took the number: the lock did not hold.
        """
        assert self._index is not None  # noqa: S101 - for mypy
        key = entry_key(entry.seq)
        data = encode_entry(entry)
        entry.nbytes = len(data)
        staged = self.backend.stage()
        try:
            write_all(staged.file, data)
            staged.publish(key, exclusive=True)
        except FileExistsError:
            raise LockedError(f"another writer has committed {key}: the lock of the store does not hold") from None
        except BaseException as error:
            self._take_back(key, data, error)
            raise
        finally:
            staged.discard()
        self._last_seq = entry.seq
        try:
            self._index.apply([entry])
        except OSError:
            # it is in the journal, so it has happened; the file of the index is for the next writer
            self._index = self._index.to_memory()
            self._index.apply([entry])
        except BaseException:
            self._index = None
            raise

    def _take_back(self, key: str, data: bytes, error: BaseException) -> None:
        """Remove the entry of an operation that fails, if it is there and ours.

        What cannot be removed, the next writer takes in: the operation has then happened, unacknowledged.
        """
        try:
            if self.backend.read(key) == data:
                self.backend.delete([key])
        except FileNotFoundError:
            pass
        except OSError:
            error.glyd_uncertain = True  # type: ignore[attr-defined]
            self._index = None

    @contextlib.contextmanager
    def making_streams(self, made: list[bytes] | None = None) -> Iterator[list[bytes]]:
        """Give a list for streams that are made until the entry is there; remove them if the operation fails before.

        They stay where the entry may be there.
        """
        streams = [] if made is None else made
        try:
            yield streams
        except BaseException as error:
            if streams and not getattr(error, "glyd_uncertain", False):
                with contextlib.suppress(OSError):  # nothing points to them: compact removes them
                    self.backend.delete([stream_key(stream) for stream in streams])
            raise

    def remove(self, keys: list[str]) -> None:
        """Remove files that a committed entry drops, then forget that they were to be removed."""
        if not keys:
            return
        self.backend.delete(keys)
        index = self.index
        with index.transaction():
            index.db.executemany("DELETE FROM leftover WHERE key = ?", [(key,) for key in keys])

    def _remove_leftovers(self) -> None:
        index = self.index
        keys = [key for (key,) in index.rows("SELECT key FROM leftover ORDER BY key")]
        self.remove(keys)

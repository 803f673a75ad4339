# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The index: the state that the journal describes, in SQLite.

Everything here follows from the journal (docs/store-format.md) and can be made again
from it, but for three tables of notes: what ``check`` found damaged, how far it came, and at which
levels ``compact`` has written streams again in vain.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from glyd_store._entry import entry_key, stream_key
from glyd_store._errors import IndexDamagedError, LockedError, ReadOnlyError, StoreError, StoreVersionError
from glyd_store._index_file import BUSY_S, connect, same_file, stat_index

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from glyd_store._entry import Content, Entry

INDEX_FORMAT = 3
_IN_MEMORY_NBYTES = 64 << 20  # copies of larger ones are temporary files
_ATTEMPTS = 10
_TO_SIGNED = 1 << 63  # SQLite has signed integers

_SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE object(id INTEGER PRIMARY KEY, name BLOB NOT NULL, time INTEGER NOT NULL, content INTEGER NOT NULL,
    tags TEXT, seq INTEGER NOT NULL, deleted INTEGER);
CREATE INDEX object_name ON object(name, id);
CREATE INDEX object_content ON object(content);
CREATE INDEX object_seq ON object(seq);
CREATE INDEX object_deleted ON object(deleted) WHERE deleted IS NOT NULL;
CREATE TABLE content(id INTEGER PRIMARY KEY AUTOINCREMENT, sha256 BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, seq INTEGER NOT NULL,
    kind TEXT NOT NULL, stream BLOB, offset INTEGER, nbytes INTEGER, base BLOB, family TEXT, member INTEGER,
    xxh BLOB);
CREATE INDEX content_seq ON content(seq);
CREATE INDEX content_stream ON content(stream) WHERE stream IS NOT NULL;
CREATE INDEX content_base ON content(base) WHERE base IS NOT NULL;
CREATE INDEX content_family ON content(family, member) WHERE family IS NOT NULL;
CREATE INDEX content_payload ON content(id) WHERE kind = 'payload';
CREATE TABLE stream(id BLOB PRIMARY KEY, nbytes INTEGER NOT NULL, size INTEGER NOT NULL, seq INTEGER NOT NULL)
    WITHOUT ROWID;
CREATE TABLE fingerprint(value INTEGER, content INTEGER, PRIMARY KEY(value, content)) WITHOUT ROWID;
CREATE INDEX fingerprint_content ON fingerprint(content);
CREATE TABLE entry(seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, time INTEGER NOT NULL, nbytes INTEGER NOT NULL);
CREATE TABLE deletion(seq INTEGER NOT NULL, object INTEGER NOT NULL, PRIMARY KEY(seq, object)) WITHOUT ROWID;
CREATE TABLE leftover(key TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE gone(stream BLOB NOT NULL, stated INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(stream, stated, seq))
    WITHOUT ROWID;
CREATE TABLE damage(key TEXT PRIMARY KEY, what TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE verified(stream BLOB PRIMARY KEY, run INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE in_vain(stream BLOB PRIMARY KEY, level TEXT NOT NULL) WITHOUT ROWID;
"""


def encode_name(name: str) -> bytes:
    """Return the bytes of a name."""
    return name.encode("utf-8", "surrogateescape")


def decode_name(raw: bytes) -> str:
    """Return the name that bytes stand for."""
    return raw.decode("utf-8", "surrogateescape")


def signed(value: int) -> int:
    """Return an unsigned number of 64 bits as SQLite keeps it."""
    return value - 2 * _TO_SIGNED if value >= _TO_SIGNED else value


class Index:
    """A connection to an index.

    Parameters
    ----------
    db
        The connection, in autocommit mode.
    path
        Where it lies, for messages; None: in memory.

    Notes
    -----
    Threads may share it: a transaction of one is whole for the others. The connection is
    closed when nobody has it any more.
    """

    def __init__(self, db: sqlite3.Connection, path: str | None) -> None:
        self.db = db
        self.path = path
        self._lock = threading.RLock()

    def __del__(self) -> None:
        self.db.close()

    # ---- opening

    @classmethod
    def create(cls, path: str | None, store: str) -> Index:
        """Make an empty index in a new file; None: in memory, empty: in a temporary file."""
        index = cls(connect(":memory:" if path is None else path), path or None)
        with index._guard():
            if path:
                index.db.execute("PRAGMA journal_mode=WAL")
            index.db.executescript("BEGIN IMMEDIATE;" + _SCHEMA)
            for key, value in (("format", INDEX_FORMAT), ("store", store), ("seq", 0), ("next_id", 1)):
                index.db.execute("INSERT INTO meta VALUES(?, ?)", (key, value))
            index.db.execute("COMMIT")
        return index

    @classmethod
    def open(cls, path: str, *, writable: bool) -> Index:
        """Open the index at a path.

        Raises
        ------
        FileNotFoundError
            When there is none.
        IndexDamagedError
            When it is no index.
        """
        for _ in range(_ATTEMPTS):
            before = stat_index(path)
            if before is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            try:
                index = cls._open_once(path, writable=writable)
            except (sqlite3.Error, StoreError, OSError):
                if same_file(before, stat_index(path)):
                    raise
                continue
            if same_file(before, stat_index(path)):
                return index
            # another one was put in its place: this may be the old file with the log of the new one
            index.close()
        raise LockedError(f"the index {path} was replaced {_ATTEMPTS} times while it was opened")

    @classmethod
    def _open_once(cls, path: str, *, writable: bool) -> Index:
        uri = "file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        tries = [uri + "?mode=rw"] if writable else []
        # a WAL index can be read without writing only if its shared memory is there already, or when
        # nobody writes; what a WAL that cannot be read then holds comes from the journal
        tries += [uri + "?mode=ro", uri + "?immutable=1"]
        for uri in tries:
            index = cls(sqlite3.connect(":memory:"), path)
            try:
                with index._guard():
                    index.db = connect(uri)
                with index._guard():
                    if uri.endswith("rw"):
                        index.db.execute("PRAGMA journal_mode=WAL")
                    found = index.meta("format")
                    if not isinstance(found, int):
                        raise IndexDamagedError(f"the index {path} says that its format is {found!r}", key=path)
                    if found != INDEX_FORMAT:
                        raise StoreVersionError(
                            f"the index {path} is of format {found}, not {INDEX_FORMAT}: run rebuild"
                        )
                return index._still(path) if uri.endswith("immutable=1") else index
            except (sqlite3.OperationalError, OSError) as error:  # cannot be opened this way
                index.close()
                if uri is tries[-1] or isinstance(error, LockedError):
                    raise
            except BaseException:
                index.close()
                raise
        raise AssertionError  # the last try returns or raises

    def _still(self, path: str) -> Index:
        """Return a copy of an index that nobody seems to write: somebody may begin to, and SQLite would not look."""
        for _ in range(_ATTEMPTS):
            before = stat_index(path)
            try:
                copy = self.to_memory()
            except (sqlite3.OperationalError, IndexDamagedError):
                if before == stat_index(path):
                    raise
                continue
            if before == stat_index(path):
                return copy
            copy.close()
        raise LockedError(f"the index {path} is being written, and cannot be read beside that")

    def to_memory(self) -> Index:
        """Return a copy of its own, which a reader that may not write brings up to date."""
        pages = self.value("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
        copy = connect(":memory:" if pages <= _IN_MEMORY_NBYTES else "")
        with self._lock, self._guard():
            self.db.backup(copy)
        return Index(copy, None)

    def snapshot(self) -> None:
        """See from now on one moment, whatever others write, until `end_snapshot`."""
        with self._lock, self._guard():
            self.db.execute("BEGIN")
            self.db.execute("SELECT 1 FROM meta").fetchone()

    def end_snapshot(self) -> None:
        """See again what others write."""
        with self._lock, self._guard():
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection."""
        self.db.close()

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Turn what SQLite says of damage into an error that says what to do."""
        try:
            yield
        except sqlite3.OperationalError as error:
            text = str(error)
            if "no such table" in text or "malformed" in text or "no such column" in text:
                raise IndexDamagedError(f"the index {self.path} is damaged ({text})", key=self.path) from error
            if "disk is full" in text:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path) from error
            if "disk I/O error" in text:
                raise OSError(errno.EIO, os.strerror(errno.EIO), self.path) from error
            if "is locked" in text:
                raise LockedError(f"the index {self.path} was in use for {BUSY_S} s ({text})") from error
            if "readonly" in text:
                raise ReadOnlyError(f"the index {self.path} cannot be written ({text})") from error
            raise
        except sqlite3.DatabaseError as error:
            if isinstance(error, (sqlite3.IntegrityError, sqlite3.ProgrammingError)):
                raise
            raise IndexDamagedError(f"the index {self.path} is damaged ({error})", key=self.path) from error

    # ---- reading

    def rows(self, sql: str, *values: Any) -> list[Any]:
        """Return all rows of a query."""
        with self._lock, self._guard():
            return self.db.execute(sql, values).fetchall()

    def row(self, sql: str, *values: Any) -> Any:
        """Return the first row of a query, or None."""
        with self._lock, self._guard():
            return self.db.execute(sql, values).fetchone()

    def value(self, sql: str, *values: Any) -> Any:
        """Return the first column of the first row of a query, or None."""
        found = self.row(sql, *values)
        return None if found is None else found[0]

    def pages(self, sql: str, *values: Any, n: int = 1000) -> Iterator[Any]:
        """Yield the rows of a query that has "> ?" for its first, ascending column as last condition.

        Each page is a query of its own: no lock is held, and no snapshot kept, between them.
        """
        last: Any = None
        while True:
            found = self.rows(f"{sql} LIMIT {n}", *values, -1 if last is None else last)
            yield from found
            if len(found) < n:
                return
            last = found[-1][0]

    def meta(self, key: str) -> Any:
        """Return a value of the table of single values."""
        return self.value("SELECT value FROM meta WHERE key = ?", key)

    @property
    def seq(self) -> int:
        """Number of the last entry that is in the index."""
        found = self.meta("seq")
        if not isinstance(found, int):
            raise IndexDamagedError(f"the index {self.path} says that its last entry is {found!r}", key=self.path)
        return found

    @property
    def store(self) -> str:
        """Id of the store."""
        return str(self.meta("store"))

    # ---- changing

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Do all of it or nothing."""
        with self._lock, self._guard():
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.db.execute("COMMIT")
            except BaseException:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                raise

    def apply(self, entries: Iterable[Entry]) -> None:
        """Take entries in, in order, in one transaction; those that are in already are passed over."""
        with self.transaction():
            done = self.seq  # another process may have taken some since we looked
            for entry in entries:
                if entry.seq > done:
                    self._apply(entry)

    def _apply(self, entry: Entry) -> None:
        do = self.db.execute
        for stream in entry.streams:
            do("INSERT OR REPLACE INTO stream VALUES(?, ?, ?, ?)", (stream.id, stream.nbytes, stream.size, entry.seq))
            do("DELETE FROM leftover WHERE key = ?", (stream_key(stream.id),))
            do("DELETE FROM damage WHERE key = ?", (stream_key(stream.id),))
        for content in entry.contents:
            self._apply_content(content, entry.seq)
        for v in entry.objects:
            row = (v.id, encode_name(v.name), v.time, v.sha256, _tags_text(v.tags), entry.seq, v.deleted)
            # stands for a content whose entry is damaged, until one says more
            do(
                "INSERT OR IGNORE INTO content(sha256, size, seq, kind) VALUES(?, ?, ?, 'missing')",
                (v.sha256, v.size, entry.seq),
            )
            # restated objects keep whether they are deleted
            do(
                "INSERT INTO object(id, name, time, content, tags, seq, deleted)"
                " VALUES(?1, ?2, ?3, (SELECT id FROM content WHERE sha256 = ?4), ?5, ?6, ?7)"
                " ON CONFLICT(id) DO UPDATE SET seq = ?6 WHERE seq < ?6",
                row,
            )
        do("INSERT OR REPLACE INTO entry VALUES(?, ?, ?, ?)", (entry.seq, entry.kind, entry.time, entry.nbytes))
        for objects, deleted in ((entry.delete, entry.time), (entry.undelete, None)):
            for number in objects:
                do("UPDATE object SET deleted = ? WHERE id = ?", (deleted, number))
                do("INSERT OR REPLACE INTO deletion VALUES(?, ?)", (entry.seq, number))
        self._apply_drops(entry)
        do("UPDATE meta SET value = max(value, ?) WHERE key = 'next_id'", (entry.next_id,))
        do("UPDATE meta SET value = ? WHERE key = 'seq'", (entry.seq,))

    def _apply_content(self, content: Content, seq: int) -> None:
        do = self.db.execute
        at = content.at
        stream = at.stream or None
        row = (content.sha256, content.size, seq, at.kind, stream, at.offset, at.nbytes, content.base)
        family = (content.family, content.member) if content.family else (None, None)
        rest = (*family, content.check)
        do(
            "INSERT INTO content(sha256, size, seq, kind, stream, offset, nbytes, base, family, member, xxh)"
            " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT(sha256) DO UPDATE SET"
            " seq = ?3, kind = ?4, stream = ?5, offset = ?6, nbytes = ?7, base = ?8, family = ?9, member = ?10, xxh = ?11"
            " WHERE seq <= ?3",
            row + rest,
        )
        if content.fingerprints:
            number = do("SELECT id FROM content WHERE sha256 = ?", (content.sha256,)).fetchone()[0]
            values = [(signed(value), number) for value in content.fingerprints]
            self.db.executemany("INSERT OR IGNORE INTO fingerprint VALUES(?, ?)", values)

    def _apply_drops(self, entry: Entry) -> None:
        do = self.db.execute
        for stream in entry.drop_streams:
            # contents that nobody needs, of an entry that states objects with other contents and so remains
            left = do("SELECT id FROM content WHERE stream = ?", (stream,)).fetchall()
            self.db.executemany("DELETE FROM fingerprint WHERE content = ?", left)
            self.db.executemany(
                "UPDATE content SET kind = 'missing', stream = NULL, base = NULL, family = NULL, member = NULL"
                " WHERE id = ?",
                left,
            )
            do(
                "INSERT OR REPLACE INTO gone SELECT id, seq, ? FROM stream WHERE id = ? AND seq < ?",
                (entry.seq, stream, entry.seq),
            )
            for seq in entry.drop_entries:  # the new entry drops it instead
                do("UPDATE OR REPLACE gone SET seq = ? WHERE stream = ? AND seq = ?", (entry.seq, stream, seq))
            do("DELETE FROM stream WHERE id = ?", (stream,))
            do("DELETE FROM verified WHERE stream = ?", (stream,))
            do("DELETE FROM in_vain WHERE stream = ?", (stream,))
            do("DELETE FROM damage WHERE key = ?", (stream_key(stream),))
            do("INSERT OR REPLACE INTO leftover VALUES(?, ?)", (stream_key(stream), entry.seq))
        for seq in entry.drop_entries:
            do("DELETE FROM object WHERE seq = ?", (seq,))
            gone = do("SELECT id FROM content WHERE seq = ?", (seq,)).fetchall()
            self.db.executemany("DELETE FROM fingerprint WHERE content = ?", gone)
            self.db.executemany("DELETE FROM object WHERE content = ?", gone)  # deleted ones of other entries
            self.db.executemany("DELETE FROM content WHERE id = ?", gone)
            do("DELETE FROM deletion WHERE seq = ?", (seq,))
            do("DELETE FROM entry WHERE seq = ?", (seq,))
            do("DELETE FROM gone WHERE stated = ? OR seq = ?", (seq, seq))
            do("INSERT OR REPLACE INTO leftover VALUES(?, ?)", (entry_key(seq), entry.seq))


def _tags_text(tags: dict[str, str]) -> str | None:
    import json  # noqa: PLC0415 - most objects have none

    return json.dumps(tags, sort_keys=True) if tags else None

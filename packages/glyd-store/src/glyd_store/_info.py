# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What the store says about objects."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from glyd_store._errors import ObjectNotFoundError
from glyd_store._index import decode_name, encode_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from glyd_store._core import Core
    from glyd_store._index import Index

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class ObjectInfo:
    """An object: one version under one name.

    Attributes
    ----------
    id
        Number that no other object of the store ever has; later versions have larger ones.
    name
        Its name: any text.
    time
        When it was put, by the clock of then.
    size
        Bytes of its content.
    sha256
        Hash of its content, hexadecimal.
    stored_nbytes
        Bytes that its content takes in the store; its share, where it lies in a pack. Objects
        with the same content share them.
    n_decodes
        Frames that a read decodes: 1 … 32, more than 5 only where they are small.
    tags
        What was given with it.
    deleted
        When it was deleted; None: it was not.
    """

    __slots__ = ("deleted", "id", "n_decodes", "name", "sha256", "size", "stored_nbytes", "tags", "time")

    def __init__(
        self,
        id: int,  # noqa: A002 - what users read
        name: str,
        time: datetime,
        size: int,
        sha256: str,
        stored_nbytes: int,
        n_decodes: int,
        tags: dict[str, str],
        deleted: datetime | None = None,
    ) -> None:
        self.id = id
        self.name = name
        self.time = time
        self.size = size
        self.sha256 = sha256
        self.stored_nbytes = stored_nbytes
        self.n_decodes = n_decodes
        self.tags = tags
        self.deleted = deleted

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if isinstance(other, ObjectInfo) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.id, self.sha256))

    def __repr__(self) -> str:
        return f"ObjectInfo({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


def from_ns(ns: int) -> datetime:
    """Return a time of nanoseconds since 1970; a clock that was wrong gives the nearest one there is."""
    try:
        return _EPOCH + timedelta(microseconds=ns // 1000)
    except OverflowError:
        return datetime.max.replace(tzinfo=timezone.utc) if ns > 0 else datetime.min.replace(tzinfo=timezone.utc)


def to_ns(time: datetime) -> int:
    """Return a time as nanoseconds since 1970; without a zone it is local."""
    return (time.astimezone(timezone.utc) - _EPOCH) // timedelta(microseconds=1) * 1000


_SELECT = """
SELECT o.id, o.name, o.time, c.size, c.sha256, o.tags, o.deleted,
    CASE c.kind WHEN 'payload' THEN c.nbytes WHEN 'stream' THEN s.nbytes
        WHEN 'member' THEN CASE WHEN s.size > 0 THEN s.nbytes * c.size / s.size ELSE 0 END
        WHEN 'opened' THEN (SELECT t.nbytes FROM content b JOIN stream t ON t.id = b.stream WHERE b.sha256 = c.base)
        ELSE 0 END,
    (WITH RECURSIVE link(base, n) AS (
        SELECT c.base, 1 UNION ALL SELECT b.base, n + 1 FROM link l JOIN content b ON b.sha256 = l.base WHERE n < 100
    ) SELECT max(n) FROM link) - (c.kind = 'opened')
FROM object o JOIN content c ON c.id = o.content LEFT JOIN stream s ON s.id = c.stream
"""


def _info(row: Any) -> ObjectInfo:
    number, name, time, size, sha256, tags, deleted, nbytes, n_decodes = row
    return ObjectInfo(
        number,
        decode_name(name),
        from_ns(time),
        size,
        sha256.hex(),
        nbytes or 0,
        n_decodes,
        json.loads(tags) if tags else {},
        None if deleted is None else from_ns(deleted),
    )


def object_by_id(index: Index, number: int, *, with_deleted: bool = False) -> ObjectInfo:
    """Return an object.

    Raises
    ------
    ObjectNotFoundError
        When there is none of that id, or it was deleted.
    """
    found = index.row(f"{_SELECT} WHERE o.id = ?", number)
    if found is None:
        raise ObjectNotFoundError(f"no object has the id {number}")
    info = _info(found)
    if info.deleted is not None and not with_deleted:
        raise ObjectNotFoundError(f"object {number} ({info.name!r}) was deleted")
    return info


def resolve(core: Core, ref: str | int | ObjectInfo) -> ObjectInfo:
    """Return the object that a name (its newest version), an id or an info means.

    Raises
    ------
    ObjectNotFoundError
        When there is none.
    """
    if isinstance(ref, ObjectInfo):
        ref = ref.id
    if isinstance(ref, int):
        return object_by_id(core.index, ref)
    found = core.index.row(
        f"{_SELECT} WHERE o.name = ? AND o.deleted IS NULL ORDER BY o.id DESC LIMIT 1", encode_name(ref)
    )
    if found is None:
        raise ObjectNotFoundError(f"no object is called {ref!r}")
    return _info(found)


def iter_objects(core: Core, *, deleted: bool = False) -> Iterator[ObjectInfo]:
    """Yield all objects in order of their ids; those that were deleted instead, if asked for."""
    which = "IS NOT NULL" if deleted else "IS NULL"
    for row in core.index.pages(f"{_SELECT} WHERE o.deleted {which} AND o.id > ? ORDER BY o.id"):
        yield _info(row)


def iter_versions(core: Core, name: str) -> Iterator[ObjectInfo]:
    """Yield the versions of a name in the order in which they were put."""
    raw = encode_name(name)
    for row in core.index.pages(f"{_SELECT} WHERE o.name = ? AND o.deleted IS NULL AND o.id > ? ORDER BY o.id", raw):
        yield _info(row)


def _at(before_ns: int | None) -> str:
    """Return the condition that an object was there at a moment; None: now."""
    if before_ns is None:
        return "deleted IS NULL"
    # what has been deleted since was there at the moment
    return f"(deleted IS NULL OR deleted > {before_ns:d}) AND time <= {before_ns:d}"


def iter_newest(core: Core, before_ns: int | None = None) -> Iterator[ObjectInfo]:
    """Yield the newest version of each name, in order of names; the newest of a moment, if one is given."""
    last = b""
    while True:
        # one query: between two a writer may remove what the first one named
        rows = core.index.rows(
            f"{_SELECT} JOIN (SELECT name, max(id) AS newest FROM object WHERE name > ? AND {_at(before_ns)}"  # noqa: S608 - numbers alone
            " GROUP BY name ORDER BY name LIMIT 500) n ON n.newest = o.id ORDER BY o.name",
            last,
        )
        for row in rows:
            yield _info(row)
            last = row[1]
        if len(rows) < 500:
            return


def newest_of(core: Core, name: str, before_ns: int | None = None) -> ObjectInfo | None:
    """Return the newest version of a name, or the newest of a moment; None: there is none."""
    condition = f"SELECT max(id) FROM object WHERE name = ? AND {_at(before_ns)}"  # noqa: S608 - numbers alone
    found = core.index.row(f"{_SELECT} WHERE o.id = ({condition})", encode_name(name))
    return None if found is None else _info(found)


def iter_by_name(core: Core) -> Iterator[ObjectInfo]:
    """Yield all objects in order of names, and of versions."""
    last: tuple[bytes, int] = (b"", 0)
    while True:
        rows = core.index.rows(
            f"{_SELECT} WHERE o.deleted IS NULL AND (o.name, o.id) > (?, ?) ORDER BY o.name, o.id LIMIT 500", *last
        )
        for row in rows:
            yield _info(row)
            last = (row[1], row[0])
        if len(rows) < 500:
            return

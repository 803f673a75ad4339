# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Sums over a store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from glyd_store._info import iter_by_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from glyd_store._core import Core


@dataclass(frozen=True, slots=True)
class StoreStats:
    """Sums over a store.

    Attributes
    ----------
    n_objects, n_names, n_deleted
        Objects that are there, names they have, and objects that are deleted but not compacted.
    n_contents
        Different contents of the objects that are there.
    content_nbytes
        Bytes of all objects that are there.
    stored_nbytes
        Bytes of all streams and entries.
    """

    n_objects: int
    n_names: int
    n_deleted: int
    n_contents: int
    content_nbytes: int
    stored_nbytes: int

    @property
    def ratio(self) -> float:
        """Bytes of objects for each byte stored."""
        return self.content_nbytes / self.stored_nbytes if self.stored_nbytes else 0.0


def read_stats(core: Core) -> StoreStats:
    """Return sums over a store."""
    live = "FROM object o JOIN content c ON c.id = o.content WHERE o.deleted IS NULL"
    # one query, hence of one moment
    return StoreStats(
        *core.index.row(
            f"SELECT (SELECT count(*) {live}), (SELECT count(DISTINCT name) FROM object WHERE deleted IS NULL),"  # noqa: S608
            " (SELECT count(*) FROM object WHERE deleted IS NOT NULL),"
            f" (SELECT count(DISTINCT c.id) {live}), (SELECT coalesce(sum(c.size), 0) {live}),"
            " (SELECT coalesce(sum(nbytes), 0) FROM stream) + (SELECT coalesce(sum(nbytes), 0) FROM entry)"
        )
    )


def iter_sums(core: Core) -> Iterator[tuple[str, int, int, int]]:
    """Yield name, versions, bytes of contents and bytes stored, for each name."""
    name, n, size, stored = "", 0, 0, 0
    for info in iter_by_name(core):
        if n and info.name != name:
            yield name, n, size, stored
            n, size, stored = 0, 0, 0
        name, n, size, stored = info.name, n + 1, size + info.size, stored + info.stored_nbytes
    if n:
        yield name, n, size, stored

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Which stored content a new one is written against (docs/store-format.md, "Resemblance")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glyd_store._contents import Row, chain_of, content_by_number
from glyd_store._errors import IntegrityError
from glyd_store._index import encode_name
from glyd_store._resemblance import find_candidates

if TYPE_CHECKING:
    from glyd_store._core import Core
    from glyd_store._source import Source

DECODES_SHORT = 5
"""Frames that may be decoded for one content whatever they take."""

FOLLOWED_MAX = 1 / 8
"""Part of a content that `followed_nbytes` of its base may come to where there are more of them. Following copies
of copies then takes about as long as the content itself."""

ALIKE_MIN = 0.03
"""Share of common places from which a delta is tried without a look at samples."""


def n_members(core: Core, family: str) -> int:
    """Return the number that the next member of a family gets."""
    last = core.index.value("SELECT max(member) FROM content WHERE family = ?", family)
    return 0 if last is None else int(last) + 1


def find_base(core: Core, source: Source, name: str) -> tuple[Row, float] | None:
    """Return the content to use as base, and how alike it is (0: unknown); None: there is none."""
    found = find_candidates(core.index, source.fingerprints)
    for number, alike in found:
        if alike < ALIKE_MIN:
            break
        row = _usable(core, content_by_number(core, number))
        if row is not None:
            return row, alike
    latest = core.index.value(
        "SELECT content FROM object WHERE name = ? AND deleted IS NULL ORDER BY id DESC LIMIT 1", encode_name(name)
    )
    for number in dict.fromkeys([*([latest] if latest is not None else []), *(number for number, _ in found[:1])]):
        row = _usable(core, content_by_number(core, number))
        if row is not None:
            return row, 0.0
    return None


def _usable(core: Core, alike: Row) -> Row | None:
    """Return a content, or the best of its bases where chains would get too long; None when there is no sound one."""
    if alike.family is None or alike.kind != "stream":
        return None
    try:
        chain = chain_of(core, alike)
    except IntegrityError:
        return None
    return choose_base(core, [row for i, row in enumerate(chain) if _has_room(core, chain[i:])], chain)


def choose_base(core: Core, rooms: list[Row], chain: list[Row]) -> Row | None:
    """Return the one of a chain, of those with room for another frame, that the next member is to be based on.

    That is the newest, while it has room. Else a new chain starts, at the member with the fewest dependents, of
    these that nearest to the root: C(n + b, n) members with at most b bases have chains nested n deep, with
    the least sum of distances that there is.
    """
    if rooms and rooms[0] is chain[0]:
        return rooms[0]
    return min(
        reversed(rooms),
        key=lambda row: core.index.value("SELECT count(*) FROM content WHERE base = ?", row.sha256),
        default=None,
    )


def _has_room(core: Core, chain: list[Row]) -> bool:
    """Say whether a content, the first of a chain, is whole as far as is known, and one more frame may depend on it."""
    if any(core.index.row("SELECT 1 FROM damage WHERE key = ?", link.key) for link in chain):
        return False
    if len(chain) < DECODES_SHORT:
        return True
    return len(chain) < core.backend.decodes_max and followed_nbytes(core, chain) <= FOLLOWED_MAX * chain[0].size


def followed_nbytes(core: Core, chain: list[Row]) -> int:
    """Return a measure of what it takes to read a content through its bases: a chain, the root last.

    The bytes of each delta stand for its copies, which are followed through all frames below it.
    """
    height = len(chain) - 1
    return sum(
        (height - i) * int(core.index.value("SELECT nbytes FROM stream WHERE id = ?", link.stream))
        for i, link in enumerate(chain[:-1])
    )

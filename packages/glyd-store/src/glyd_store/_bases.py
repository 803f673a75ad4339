# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Which stored content a new one is written against (docs/store-format.md, "Resemblance")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glyd_store._contents import Row, chain_of, content_by_number, stored_of
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


def find_base(core: Core, source: Source, name: str) -> tuple[Row, float, bool] | None:
    """Find the content to use as base.

    Returns
    -------
    tuple or None
        The content; how alike the nearest one is (0: unknown); whether it is that one, not one of its
        bases, with which a new chain starts. None: there is none.
    """
    found = find_candidates(core.index, source.fingerprints)
    for number, alike in found:
        if alike < ALIKE_MIN:
            break
        usable = _usable(core, content_by_number(core, number))
        if usable is not None:
            return usable[0], alike, usable[1]
    latest = core.index.value(
        "SELECT content FROM object WHERE name = ? AND deleted IS NULL ORDER BY id DESC LIMIT 1", encode_name(name)
    )
    for number in dict.fromkeys([*([latest] if latest is not None else []), *(number for number, _ in found[:1])]):
        usable = _usable(core, content_by_number(core, number))
        if usable is not None:
            return usable[0], 0.0, usable[1]
    return None


def _usable(core: Core, alike: Row) -> tuple[Row, bool] | None:
    """Return a content, or the best of its bases where chains would get too long, and whether it is that content itself.

    None: there is no sound one.
    """
    try:
        alike = stored_of(core, alike)
        if alike.family is None or alike.kind != "stream":
            return None
        chain = chain_of(core, alike)
    except IntegrityError:
        return None
    base = choose_base(core, _with_room(core, chain), chain)
    return None if base is None else (base, base.number == alike.number)


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


def _with_room(core: Core, chain: list[Row]) -> list[Row]:
    """Return those of a chain that are whole, as far as is known, and that one more frame may depend on."""
    rooms: list[Row] = []
    upwards = zip(reversed(chain), followed_nbytes(core, chain), strict=True)
    for n_frames, (row, followed) in enumerate(upwards, start=1):
        if core.is_damaged(row.key):
            break  # and so is what depends on it
        if n_frames < DECODES_SHORT or (n_frames < core.backend.decodes_max and followed <= FOLLOWED_MAX * row.size):
            rooms.append(row)
    return rooms[::-1]


def followed_nbytes(core: Core, chain: list[Row]) -> list[int]:
    """Return a measure of what it takes to read each content of a chain through its bases, the root's first.

    The bytes of each delta stand for its copies, which are followed through all frames below it.
    """
    out = [0]
    for n_below, link in enumerate(reversed(chain[:-1]), start=1):
        nbytes = core.index.value("SELECT nbytes FROM stream WHERE id = ?", link.stream)
        out.append(out[-1] + n_below * int(nbytes))
    return out

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Which stored content a new one is written against (docs/store-format.md, "Resemblance")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glyd_store._contents import DECODES_MAX, Row, chain_of, content_by_number
from glyd_store._errors import IntegrityError
from glyd_store._index import encode_name
from glyd_store._resemblance import find_candidates

if TYPE_CHECKING:
    from glyd_store._core import Core
    from glyd_store._source import Source

GROUP = 8
"""Members of a family between two that are based on its root."""

_FIRST = (0, 0, 1, 2, 3, 2, 5, 5)
"""Bases in the first group, where the root is near: distances sum up to 10, by halving to 12."""

ALIKE_MIN = 0.03
"""Share of common places from which a delta is tried without a look at samples."""


def base_member(number: int) -> int:
    """Return the member that member ``number`` of a family is based on."""
    if number < GROUP:
        return _FIRST[number]
    if number % GROUP == 0:
        return 0
    return number & (number - 1)


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
    """Return the relative of a content that leaves chains short; None when there is no sound one."""
    if alike.family is None or alike.kind != "stream":
        return None
    number = n_members(core, alike.family)
    if alike.member == number - 1:
        wanted = core.index.value(
            "SELECT id FROM content WHERE family = ? AND member = ?", alike.family, base_member(number)
        )
        if wanted is not None:
            row = content_by_number(core, wanted)
            if _has_room(core, row):
                return row
    try:
        chain = chain_of(core, alike)
    except IntegrityError:
        return None
    return next((row for row in chain if _has_room(core, row)), None)


def _has_room(core: Core, row: Row) -> bool:
    """Say whether a content is whole, as far as is known, and one more frame may depend on it."""
    try:
        chain = chain_of(core, row)
    except IntegrityError:
        return False
    damaged = (core.index.row("SELECT 1 FROM damage WHERE key = ?", link.key) for link in chain)
    return len(chain) < DECODES_MAX and not any(damaged)

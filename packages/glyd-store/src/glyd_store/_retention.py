# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Which versions a policy keeps."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from glyd import ParameterError
from glyd_store._info import iter_by_name
from glyd_store._removal import delete_objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from glyd_store._core import Core
    from glyd_store._info import ObjectInfo


@dataclass(frozen=True, slots=True)
class Policy:
    """What to keep of each name; a version stays when any rule keeps it.

    Attributes
    ----------
    last
        The newest so many versions.
    hourly, daily, weekly, monthly, yearly
        The newest version of each of the last so many hours (days, …) that have one.
    within
        All that are younger than this.
    tags
        All that have one of these tags: pairs of key and value.
    """

    last: int = 0
    hourly: int = 0
    daily: int = 0
    weekly: int = 0
    monthly: int = 0
    yearly: int = 0
    within: timedelta | None = None
    tags: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        counts = (self.last, self.hourly, self.daily, self.weekly, self.monthly, self.yearly)
        if any(n < 0 for n in counts):
            raise ParameterError(f"a policy keeps 0 or more versions, not {min(counts)}")
        if not any(counts) and self.within is None and not self.tags:
            raise ParameterError("a policy that keeps nothing would delete everything: say what to keep")


_PERIODS: tuple[tuple[str, Callable[[datetime], Any]], ...] = (
    ("hourly", lambda t: (t.date(), t.hour)),
    ("daily", lambda t: t.date()),
    ("weekly", lambda t: t.isocalendar()[:2]),
    ("monthly", lambda t: (t.year, t.month)),
    ("yearly", lambda t: t.year),
)


def split_versions(
    versions: Iterable[ObjectInfo], policy: Policy, now: datetime
) -> tuple[list[ObjectInfo], list[ObjectInfo]]:
    """Return which versions of one name a policy keeps, and which it does not.

    Parameters
    ----------
    versions
        In the order in which they were put. The newest is always kept.
    policy
        The policy.
    now
        From when ``within`` counts. Periods are those of local time.

    Returns
    -------
    tuple
        Kept and others, both in order.
    """
    newest_first = list(versions)[::-1]
    kept: set[int] = {info.id for info in newest_first[: max(policy.last, 1)]}
    for name, period in _PERIODS:
        seen: set[Any] = set()
        for info in newest_first:
            if len(seen) >= getattr(policy, name):
                break
            mark = period(info.time.astimezone())
            if mark not in seen:
                seen.add(mark)
                kept.add(info.id)
    for info in newest_first:
        if policy.within is not None and info.time >= now - policy.within:
            kept.add(info.id)
        if any(info.tags.get(key) == value for key, value in policy.tags):
            kept.add(info.id)
    in_order = newest_first[::-1]
    return [info for info in in_order if info.id in kept], [info for info in in_order if info.id not in kept]


def prune(core: Core, policy: Policy, *, dry_run: bool) -> tuple[list[ObjectInfo], list[ObjectInfo]]:
    """Delete the versions that a policy does not keep; return those kept and the others."""
    if dry_run:
        return _split(core, policy)
    core.check_writable()
    core.require_store()
    with core.writing(use_reserve=True):  # what is kept must still be there when the others go
        kept, others = _split(core, policy)
        delete_objects(core, others)
    return kept, others


def _split(core: Core, policy: Policy) -> tuple[list[ObjectInfo], list[ObjectInfo]]:
    kept: list[ObjectInfo] = []
    others: list[ObjectInfo] = []
    now = datetime.now(timezone.utc)
    for _, versions in itertools.groupby(iter_by_name(core), key=lambda info: info.name):
        keep, drop = split_versions(versions, policy, now)
        kept += keep
        others += drop
    return kept, others

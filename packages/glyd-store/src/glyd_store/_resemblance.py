# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Which contents are alike: fingerprints, and candidates for a base (docs/store-format.md)."""

from __future__ import annotations

import json
import struct
from math import sqrt
from typing import TYPE_CHECKING

import glyd
from glyd_store._entry import FINGERPRINT_NBYTES
from glyd_store._hashing import new_sha256
from glyd_store._index import signed

if TYPE_CHECKING:
    from glyd_store._index import Index

N_FINGERPRINTS = 128
N_OF_DELTA = 32
"""What is kept of those of a content with a base: the rest were two thirds of its entry in the journal."""

_UNSIGNED = (1 << 64) - 1
_DROPPED_BITS = 64 - 8 * FINGERPRINT_NBYTES


class Sketch:
    """The smallest fingerprints of a content that comes piece by piece."""

    def __init__(self) -> None:
        self._walker = glyd.Fingerprinter()
        self._best: list[int] = []

    def update(self, chunk: bytes | memoryview) -> None:
        """Take the next piece."""
        found = self._walker.update(chunk)
        if len(self._best) == N_FINGERPRINTS:
            most = self._best[-1]
            found = [value for value in found if value < most]
        if found:
            self._best = sorted({*self._best, *found})[:N_FINGERPRINTS]  # of so few faster than a heap

    def finish(self, head: bytes) -> tuple[int, ...]:
        """Return the fingerprints, the first one of the structure if the content starts as model files do."""
        structure = model_structure(head)
        best = tuple(value >> _DROPPED_BITS for value in self._best)
        return (structure >> _DROPPED_BITS, *best) if structure is not None else best


def fingerprints_of_delta(fingerprints: tuple[int, ...]) -> tuple[int, ...]:
    """Return what is kept of the fingerprints of a content that has a base: most are those of its relatives."""
    return fingerprints[: N_OF_DELTA + 1]


def model_structure(head: bytes) -> int | None:
    """Return a fingerprint of names, types and shapes of the tensors of a safetensors file; else None."""
    if len(head) < 10 or head[8:9] != b"{":
        return None
    (n,) = struct.unpack_from("<Q", head)
    if not 2 <= n <= len(head) - 8:
        return None
    try:
        header = json.loads(head[8 : 8 + n])
        listed = sorted((name, t["dtype"], t["shape"]) for name, t in header.items() if name != "__metadata__")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return int.from_bytes(new_sha256(repr(listed).encode("utf-8", "surrogatepass")).digest()[:8], "big")


def find_candidates(index: Index, fingerprints: tuple[int, ...], limit: int = 4) -> list[tuple[int, float]]:
    """Return contents that resemble one with these fingerprints, the most alike first.

    What is as much alike as the first, as far as so few fingerprints can tell, comes in order of age, the newest first.

    Parameters
    ----------
    index
        The index.
    fingerprints
        Of the new content.
    limit
        Contents to return at most.

    Returns
    -------
    list
        Pairs of the number of a content and the estimated share of common places, 0 … 1.
    """
    if not fingerprints:
        return []
    marks = ",".join("?" * len(fingerprints))
    rows = index.rows(
        f"SELECT content, count(*) AS n FROM fingerprint WHERE value IN ({marks})"  # noqa: S608 - marks alone
        " GROUP BY content ORDER BY n DESC, content DESC LIMIT ?",
        *map(signed, fingerprints),
        4 * limit,
    )
    found = []
    mine = sorted(fingerprints)
    for content, n in rows:
        theirs = sorted(
            value & _UNSIGNED for (value,) in index.rows("SELECT value FROM fingerprint WHERE content = ?", content)
        )
        # only below the larger value of the shorter reach are both samples complete
        reach = min(mine[-1], theirs[-1])
        n_mine = sum(value <= reach for value in mine)
        n_theirs = sum(value <= reach for value in theirs)
        n_compared = max(1, min(n_mine, n_theirs))
        found.append((content, min(1.0, n / n_compared), n_compared))
    most = max((alike for _, alike, _ in found), default=0.0)

    def rank(content: int, alike: float, n_compared: int) -> tuple[bool, float, int]:
        deviation = sqrt(most * (1 - most) / n_compared)
        return (True, 0.0, content) if alike >= most - 2 * deviation else (False, alike, content)

    found.sort(key=lambda candidate: rank(*candidate), reverse=True)
    return [(content, alike) for content, alike, _ in found[:limit]]

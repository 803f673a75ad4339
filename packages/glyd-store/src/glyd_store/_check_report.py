# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What a check says."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is not as it should be.

    Attributes
    ----------
    key
        The file.
    what
        What was found, and what was expected.
    objects
        Ids and names of all objects that cannot be read, or could not after a loss of the index.
    advice
        What to do.
    """

    key: str
    what: str
    objects: tuple[tuple[int, str], ...]
    advice: str


@dataclass(slots=True)
class CheckReport:
    """What check found.

    Attributes
    ----------
    problems
        Empty: all that was looked at is sound.
    n_objects, n_entries, n_streams
        What the store holds.
    n_read, read_nbytes
        Streams that were read, this time or before an interruption, and bytes read this time.
    orphan_nbytes
        Bytes of streams that nothing needs, which compact removes.
    n_parity
        Files of parity that were read.
    """

    problems: list[Problem] = field(default_factory=list)
    n_objects: int = 0
    n_entries: int = 0
    n_streams: int = 0
    n_read: int = 0
    read_nbytes: int = 0
    orphan_nbytes: int = 0
    n_parity: int = 0

    @property
    def ok(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Packs: many small contents in one stream."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import glyd
from glyd_store._contents import find_content
from glyd_store._entry import Content, Place, Stream, Version, entry_key, stream_key
from glyd_store._frames import HashingFile, copy_content, write_frame
from glyd_store._hashing import new_sha256
from glyd_store._index import decode_name
from glyd_store._info import object_by_id
from glyd_store._journal import read_entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from glyd_store._core import Core
    from glyd_store._entry import Entry
    from glyd_store._info import ObjectInfo
    from glyd_store._put import Writer

N_WAITING = 1024
WAITING_NBYTES = 4 << 20
"""As many small contents, or as many bytes of them, become a pack."""

SEGMENT_NBYTES = 512 << 10
"""Content that is decoded for one member: about a millisecond."""


class _Member(NamedTuple):
    name: str
    sha256: bytes
    data: bytes


class _Packed(NamedTuple):
    """What a pack holds as a whole."""

    size: int
    sha256: bytes
    check: bytes | None = None


def pack_order(name: str) -> tuple[str, str]:
    """Return the key to sort members by: what is named alike lies together."""
    stem, dot, suffix = name.rpartition(".")
    return (suffix if dot else "", stem or name)


def write_pack(core: Core, entry: Entry, members: list[tuple[bytes, bytes]], level: str, made: list[bytes]) -> None:
    """Write contents as one stream and state them in an entry.

    Parameters
    ----------
    core
        The store.
    entry
        Gets the stream and the contents.
    members
        Pairs of SHA-256 and bytes, in the order in which they are to lie.
    level
        As for `glyd.compress`.
    made
        Gets the name of the stream.
    """
    total = new_sha256()
    size = 0
    for sha256, data in members:
        entry.contents.append(Content(sha256, len(data), Place("member", b"", size)))
        total.update(data)
        size += len(data)
    staged = core.backend.stage()
    try:
        out = HashingFile(staged.file)
        pieces = (data for _, data in members if data)
        write_frame(out, pieces, size, level, segment_size=SEGMENT_NBYTES)
        staged.file.seek(0)
        with glyd.open(staged.file) as frame:
            copy_content(frame, None, _Packed(size, total.digest()), "the new pack")  # type: ignore[arg-type]
        stream = out.sha256
        if core.index.row("SELECT 1 FROM stream WHERE id = ?", stream) is None:
            made.append(stream)
        staged.publish(stream_key(stream))
    finally:
        staged.discard()
    entry.streams.append(Stream(stream, out.nbytes, size))
    for content in entry.contents[-len(members) :]:
        content.at.stream = stream


class Packer:
    """Collects small objects and puts them a pack at a time.

    Parameters
    ----------
    core
        The store.
    level
        As for `glyd.compress`.
    """

    def __init__(self, core: Core, level: str) -> None:
        self._core = core
        self._level = level
        self._members: list[_Member] = []
        self._nbytes = 0

    @property
    def is_full(self) -> bool:
        """Whether it is time to flush."""
        return len(self._members) >= N_WAITING or self._nbytes >= WAITING_NBYTES

    def add(self, name: str, data: bytes, sha256: bytes) -> None:
        """Take an object; it is in the store after flush."""
        self._members.append(_Member(name, sha256, data))
        self._nbytes += len(data)

    def flush(self, writer: Writer) -> Iterator[ObjectInfo]:
        """Put what was taken, and yield what was put."""
        if not self._members:
            return
        core = self._core
        members, self._members, self._nbytes = self._members, [], 0
        with core.writing():
            entry = core.new_entry("put")
            fresh = {m.sha256: m for m in members if not writer.is_stored(m.sha256)}
            ordered = sorted(fresh.values(), key=lambda m: pack_order(m.name))
            with core.making_streams() as made:
                if ordered:
                    write_pack(core, entry, [(m.sha256, m.data) for m in ordered], self._level, made)
                first = entry.next_id
                for m in members:
                    entry.objects.append(Version(entry.next_id, m.name, entry.time, m.sha256, len(m.data), {}))
                    entry.next_id += 1
                core.commit(entry)
        for number in range(first, first + len(members)):
            yield object_by_id(core.index, number)


def pack_waiting(core: Core, level: str, *, force: bool = False) -> bool:
    """Write the small contents that wait in entries as a pack, when there are enough; say whether it was done.

    Must be called by the writer.
    """
    index = core.index
    n, nbytes = index.row("SELECT count(*), sum(size) FROM content WHERE kind = 'payload'")
    if n < 2 or not (force or n >= N_WAITING or nbytes >= WAITING_NBYTES):
        return False
    entry = core.new_entry("pack")
    members: list[_Member] = []
    dropped: list[int] = []
    total = 0
    rows = index.rows(
        "SELECT DISTINCT c.seq FROM content c WHERE c.kind = 'payload' ORDER BY c.seq LIMIT ?", 4 * N_WAITING
    )
    for (seq,) in rows:
        if total >= 2 * WAITING_NBYTES:
            break
        if core.is_damaged(entry_key(seq)):
            continue
        old = read_entry(core.backend, seq)
        names = {v.sha256: v.name for v in old.objects}
        for content in old.contents:
            row = find_content(core, content.sha256)
            if row is None or row.seq != seq or row.kind != "payload":
                continue
            data = glyd.decompress(old.payload[row.offset : row.offset + row.nbytes], max_size=row.size, threads=1)
            if new_sha256(data).digest() != row.sha256:
                break
            members.append(_Member(names.get(content.sha256, ""), content.sha256, data))
            total += len(data)
        else:
            dropped.append(seq)
    if not dropped:
        return False
    restate_objects(core, entry, dropped)
    members.sort(key=lambda m: pack_order(m.name))
    with core.making_streams() as made:
        if members:
            write_pack(core, entry, [(m.sha256, m.data) for m in members], level, made)
        entry.drop_entries = dropped
        core.commit(entry)
    core.remove([entry_key(seq) for seq in dropped])
    return True


def restate_objects(core: Core, entry: Entry, seqs: list[int], *, purged_before: int = 0) -> None:
    """State the objects of entries again in another one, which is to drop them.

    Parameters
    ----------
    core
        The store.
    entry
        Gets the objects, and whether they are deleted.
    seqs
        The entries.
    purged_before
        Objects that were deleted before this moment are left out.
    """
    for seq in seqs:
        rows = core.index.rows(
            "SELECT o.id, o.name, o.time, c.sha256, c.size, o.tags, o.deleted FROM object o"
            " JOIN content c ON c.id = o.content WHERE o.seq = ? AND (o.deleted IS NULL OR o.deleted >= ?) ORDER BY o.id",
            seq,
            purged_before,
        )
        for number, name, time, sha256, size, tags, deleted in rows:
            version = Version(number, decode_name(name), time, sha256, size, json.loads(tags) if tags else {}, deleted)
            entry.objects.append(version)
    entry.objects.sort(key=lambda v: v.id)

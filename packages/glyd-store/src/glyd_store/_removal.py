# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Deleting objects, and removing what nothing needs any more: the two phases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from glyd_store._contents import find_content, get_content
from glyd_store._entry import entry_key, entry_seq, stream_key
from glyd_store._errors import ObjectNotFoundError
from glyd_store._index import decode_name
from glyd_store._info import object_by_id, resolve
from glyd_store._packing import pack_order, pack_waiting, restate_objects, write_pack
from glyd_store._parity import lone_parity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from glyd_store._core import Core
    from glyd_store._info import ObjectInfo


@dataclass(slots=True)
class CompactReport:
    """What compact removed, or would remove.

    Attributes
    ----------
    n_objects
        Deleted objects that are now gone for good.
    n_streams, n_entries
        Files removed.
    n_orphans
        Streams among them that no entry stated: of operations that failed.
    freed_nbytes
        Bytes of all these files.
    held_nbytes
        Bytes of contents without an object that stay because other contents are based on them.
    n_recoded
        Streams that were written again at another level.
    parity_nbytes
        Bytes of parity that was written.
    """

    n_objects: int = 0
    n_streams: int = 0
    n_entries: int = 0
    n_orphans: int = 0
    freed_nbytes: int = 0
    held_nbytes: int = 0
    n_recoded: int = 0
    parity_nbytes: int = 0


def delete_objects(core: Core, refs: Iterable[int | ObjectInfo]) -> list[ObjectInfo]:
    """Delete objects: they are no longer listed, and compact removes what only they need."""
    core.check_writable()
    with core.writing(use_reserve=True):
        infos = {info.id: info for info in (resolve(core, ref) for ref in refs)}
        if infos:
            entry = core.new_entry("delete")
            entry.delete = list(infos)
            core.commit(entry)
        return list(infos.values())


def undelete_objects(core: Core, ids: Iterable[int]) -> list[ObjectInfo]:
    """Take back deletions that compact has not made good."""
    with core.writing():
        infos = {number: object_by_id(core.index, number, with_deleted=True) for number in ids}
        for number, info in infos.items():
            if info.deleted is None:
                raise ObjectNotFoundError(f"object {number} is not deleted")
            row = find_content(core, bytes.fromhex(info.sha256))
            if row is None or row.kind == "missing":
                raise ObjectNotFoundError(f"the content of object {number} is gone")
        if infos:
            entry = core.new_entry("undelete")
            entry.undelete = list(infos)
            core.commit(entry)
        return [object_by_id(core.index, number) for number in infos]


def compact(core: Core, *, grace_ns: int = 0, dry_run: bool = False, level: str = "max") -> CompactReport:
    """Remove what was deleted longer than a grace period ago, and what failed operations left."""
    if dry_run:
        report = CompactReport()
        _plan(core, core.clock() - grace_ns, report)
        _orphans(core, report)
        return report
    core.check_writable()
    with core.writing(use_reserve=True):
        report = CompactReport()
        before = core.clock() - grace_ns
        # what frees without needing room comes first: the disk may be full
        orphans = _orphans(core, report)
        core.backend.delete(orphans)
        _remove_lone_parity(core, report)
        entries, streams = _plan(core, before, report)
        if entries or streams:
            entry = core.new_entry("compact")
            entry.drop_entries, entry.drop_streams = entries, streams
            core.commit(entry)
            core.remove([*map(stream_key, streams), *map(entry_key, entries)])
            _remove_lone_parity(core, report)
        for stream in _thin_packs(core, before):
            _rewrite_pack(core, stream, before, level, report)
        pack_waiting(core, level, force=True)
        core.backend.fill_reserve()
        return report


def _remove_lone_parity(core: Core, report: CompactReport) -> None:
    lone = lone_parity(core)
    core.backend.delete([key for key, _ in lone])
    report.freed_nbytes += sum(nbytes for _, nbytes in lone)


def _mark_live(core: Core, before: int) -> None:
    """Fill the temporary table `live` with the contents that some object needs, itself or as a base."""
    db = core.index.db
    with core.index.transaction():
        db.execute("CREATE TEMP TABLE IF NOT EXISTS live(content INTEGER PRIMARY KEY)")
        db.execute("DELETE FROM live")
        db.execute(
            "INSERT OR IGNORE INTO live SELECT content FROM object WHERE deleted IS NULL OR deleted >= ?", (before,)
        )
        while True:
            added = db.execute(
                "INSERT OR IGNORE INTO live SELECT b.id FROM live JOIN content c ON c.id = live.content"
                " JOIN content b ON b.sha256 = c.base WHERE b.id NOT IN (SELECT content FROM live)"
            ).rowcount
            if added <= 0:
                return


def _plan(core: Core, before: int, report: CompactReport) -> tuple[list[int], list[bytes]]:
    """Return entries and streams that can go."""
    _mark_live(core, before)
    rows = core.index.rows
    streams = rows(
        "SELECT s.id, s.nbytes FROM stream s WHERE NOT EXISTS"
        " (SELECT 1 FROM content c JOIN live ON live.content = c.id WHERE c.stream = s.id)"
    )
    last = core.index.seq
    dead: dict[int, int] = dict(
        rows(
            "SELECT e.seq, e.nbytes FROM entry e WHERE"
            " NOT EXISTS (SELECT 1 FROM object o WHERE o.seq = e.seq AND (o.deleted IS NULL OR o.deleted >= ?))"
            " AND NOT EXISTS (SELECT 1 FROM content c JOIN live ON live.content = c.id WHERE c.seq = e.seq)"
            " AND NOT EXISTS (SELECT 1 FROM leftover l WHERE l.seq = e.seq)",
            before,
        )
    )
    # a deletion stays as long as the entry that states its object, unless that has been stated again since,
    # and what drops a stream as long as the entry that states the stream
    holds = rows(
        "SELECT d.seq, o.seq FROM deletion d JOIN object o ON o.id = d.object WHERE o.seq <= d.seq"
        " UNION SELECT g.seq, g.stated FROM gone g JOIN entry e ON e.seq = g.stated"
    )
    n_before = -1
    while n_before != len(dead):
        n_before = len(dead)
        for seq, needed_for in holds:
            if needed_for not in dead:
                dead.pop(seq, None)
    # the entry that made others superfluous is all that says so while it is the last one
    if set(dead) == {last} and not streams:
        dead.clear()
    report.n_objects += sum(core.index.value("SELECT count(*) FROM object WHERE seq = ?", seq) for seq in dead)
    report.n_streams += len(streams)
    report.n_entries += len(dead)
    report.freed_nbytes += sum(dead.values()) + sum(nbytes for _, nbytes in streams)
    report.held_nbytes += core.index.value(
        "SELECT coalesce(sum(s.nbytes), 0) FROM content c JOIN live ON live.content = c.id JOIN stream s"
        " ON s.id = c.stream WHERE c.kind = 'stream' AND NOT EXISTS (SELECT 1 FROM object o WHERE o.content = c.id"
        " AND (o.deleted IS NULL OR o.deleted >= ?))"
        " AND NOT EXISTS (SELECT 1 FROM content u JOIN object o ON o.content = u.id WHERE u.base = c.sha256"
        " AND u.kind = 'opened' AND (o.deleted IS NULL OR o.deleted >= ?))",
        before,
        before,
    )
    return sorted(dead), [stream for stream, _ in streams]


def _orphans(core: Core, report: CompactReport) -> list[str]:
    """Return streams that no entry states, unless an entry cannot be read that may."""
    known = {seq for (seq,) in core.index.rows("SELECT seq FROM entry")}
    for key, _ in core.backend.list("journal/"):
        seq = entry_seq(key)
        if seq not in known and core.index.row("SELECT 1 FROM leftover WHERE key = ?", key) is None:
            return []  # whatever this entry says may need them
    out = []
    for key, nbytes in core.backend.list("streams/"):
        name = key.rpartition("/")[2].removesuffix(".glyd")
        try:
            stream = bytes.fromhex(name)
        except ValueError:
            continue  # not ours
        if stream_key(stream) != key or core.index.row("SELECT 1 FROM stream WHERE id = ?", stream) is not None:
            continue
        out.append(key)
        report.n_orphans += 1
        report.n_streams += 1
        report.freed_nbytes += nbytes
    return out


def _thin_packs(core: Core, before: int) -> list[bytes]:
    """Return packs of which more than half is dead."""
    _mark_live(core, before)
    return [
        stream
        for (stream,) in core.index.rows(
            "SELECT s.id FROM stream s JOIN content c ON c.stream = s.id LEFT JOIN live ON live.content = c.id"
            " WHERE c.kind = 'member' GROUP BY s.id"
            " HAVING 2 * sum(CASE WHEN live.content IS NULL THEN 0 ELSE c.size END) < s.size"
        )
    ]


def _rewrite_pack(core: Core, stream: bytes, before: int, level: str, report: CompactReport) -> None:
    rows = core.index.rows(
        "SELECT c.sha256, c.seq, (SELECT name FROM object o WHERE o.content = c.id LIMIT 1) FROM content c"
        " JOIN live ON live.content = c.id WHERE c.stream = ?",
        stream,
    )
    seqs = sorted({seq for _, seq, _ in rows})
    (old_nbytes,) = core.index.row("SELECT nbytes FROM stream WHERE id = ?", stream)
    members: list[tuple[tuple[str, str], bytes, bytes]] = []
    for sha256, _, name in rows:
        row = find_content(core, sha256)
        assert row is not None  # noqa: S101 - it was there a moment ago, and we are the writer
        members.append((pack_order(decode_name(name or b"")), sha256, get_content(core, row)))
    members.sort(key=lambda m: m[0])
    entry = core.new_entry("pack")
    restate_objects(core, entry, seqs, purged_before=before)
    n_objects = sum(core.index.value("SELECT count(*) FROM object WHERE seq = ?", seq) for seq in seqs)
    with core.making_streams() as made:
        write_pack(core, entry, [(sha256, data) for _, sha256, data in members], level, made)
        entry.drop_entries = seqs
        entry.drop_streams = [stream]
        core.commit(entry)
    core.remove([stream_key(stream), *map(entry_key, seqs)])
    report.n_objects += n_objects - len(entry.objects)
    report.freed_nbytes += max(0, old_nbytes - entry.streams[0].nbytes)

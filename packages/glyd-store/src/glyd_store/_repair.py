# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Repairing what can be repaired: sidecars from the index, contents from files that have them."""

from __future__ import annotations

import hashlib
import io
import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import glyd
from glyd_store._check import Checker
from glyd_store._contents import Row, content_by_number, restated
from glyd_store._entry import FORMAT, Content, Place, Stream, entry_key, entry_seq, stream_key
from glyd_store._errors import IntegrityError
from glyd_store._frames import HashingFile, write_all, write_frame
from glyd_store._hashing import file_pieces
from glyd_store._journal import STORE_KEY
from glyd_store._packing import restate_objects
from glyd_store._parity import PERCENT, parity_stream, percent_of, recover, write_parity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from glyd_store._check_report import CheckReport
    from glyd_store._core import Core
    from glyd_store._entry import Entry


@dataclass(slots=True)
class RepairReport:
    """What repair did.

    Attributes
    ----------
    repaired
        Keys that were damaged and are no longer.
    remaining
        What check says now.
    """

    repaired: list[str] = field(default_factory=list)
    remaining: CheckReport | None = None


def repair(core: Core, sources: Iterable[str | os.PathLike[str]], level: str) -> RepairReport:
    """Repair a store; see `glyd_store.Store.repair`."""
    core.check_writable()
    report = RepairReport()
    with core.writing():
        found = Checker(core).run(1.0)
        keys = {problem.key for problem in found.problems}
        if STORE_KEY in keys:
            _write_store_file(core)
            report.repaired.append(STORE_KEY)
        _use_parity(core, keys, report)
        _refill(core, keys - set(report.repaired), sources, level, report)
        for key in sorted(keys):
            seq = entry_seq(key)
            if seq is not None and _restate(core, seq):
                report.repaired.append(key)
        report.remaining = Checker(core).run(1.0) if report.repaired else found
    return report


def _use_parity(core: Core, keys: set[str], report: RepairReport) -> None:
    """Make damaged streams again from their parity, and parity from streams."""
    for key in sorted(keys):
        if key.startswith("streams/") and recover(core.backend, bytes.fromhex(key[11:75])):
            _forget(core, key)
            report.repaired.append(key)
    for key in sorted(keys):
        stream = parity_stream(key)
        if stream is not None:
            try:
                write_parity(core.backend, stream, percent_of(core.backend, stream, PERCENT))
            except (IntegrityError, FileNotFoundError):
                continue  # the stream is damaged as well
            report.repaired.append(key)


def _write_store_file(core: Core) -> None:
    staged = core.backend.stage()
    try:
        write_all(staged.file, json.dumps({"format": FORMAT, "id": core.store_id()}).encode() + b"\n")
        staged.publish(STORE_KEY)
    finally:
        staged.discard()


def _restate(core: Core, seq: int) -> bool:
    """State in a new entry what the index knows a damaged one said; say whether all of it was."""
    index = core.index
    if index.row("SELECT 1 FROM entry WHERE seq = ?", seq) is None:
        return False  # the index does not know either
    if index.row("SELECT 1 FROM content WHERE seq = ? AND kind = 'payload'", seq) is not None:
        return False
    entry = core.new_entry("repair")
    restate_objects(core, entry, [seq])
    for (number,) in index.rows("SELECT id FROM content WHERE seq = ? AND kind != 'missing' ORDER BY id", seq):
        entry.contents.append(_content(core, content_by_number(core, number)))
    for stream, nbytes, size in index.rows("SELECT id, nbytes, size FROM stream WHERE seq = ?", seq):
        entry.streams.append(Stream(stream, nbytes, size))
    for number, deleted in index.rows(
        "SELECT d.object, o.deleted FROM deletion d JOIN object o ON o.id = d.object WHERE d.seq = ?", seq
    ):
        (entry.undelete if deleted is None else entry.delete).append(number)
    # what it dropped is still stated by older entries, and would come back with a rebuild
    entry.drop_streams = [
        stream
        for (stream,) in index.rows("SELECT DISTINCT stream FROM gone WHERE seq = ?", seq)
        if index.row("SELECT 1 FROM stream WHERE id = ?", stream) is None
    ]
    entry.drop_entries = [seq]
    core.commit(entry)
    core.remove([entry_key(seq)])
    _forget(core, entry_key(seq))
    return True


def _content(core: Core, row: Row) -> Content:
    place = Place(row.kind, row.stream or b"", row.offset or 0, row.nbytes or 0)
    return restated(core, row, place, row.base)


def _forget(core: Core, key: str) -> None:
    with core.index.transaction():
        core.index.db.execute("DELETE FROM damage WHERE key = ?", (key,))


def _files(sources: Iterable[str | os.PathLike[str]]) -> Iterator[str]:
    for source in sources:
        if os.path.isdir(source):
            for folder, _, names in sorted(os.walk(source)):
                yield from (path for name in sorted(names) if os.path.isfile(path := os.path.join(folder, name)))
        else:
            yield os.fspath(source)


def _refill(
    core: Core, keys: set[str], sources: Iterable[str | os.PathLike[str]], level: str, report: RepairReport
) -> None:
    """Store contents of damaged files again from files outside the store that have them."""
    wanted = {}
    for key in keys:
        seq = entry_seq(key)
        if seq is not None:
            rows = core.index.rows("SELECT id FROM content WHERE kind = 'payload' AND seq = ?", seq)
        elif key.startswith("streams/"):
            rows = core.index.rows("SELECT id FROM content WHERE stream = ?", bytes.fromhex(key[11:75]))
        else:
            continue
        for (number,) in rows:
            row = content_by_number(core, number)
            wanted[row.sha256] = row
    for (number,) in core.index.rows("SELECT id FROM content WHERE kind = 'missing'"):
        row = content_by_number(core, number)
        wanted[row.sha256] = row
    opened: dict[bytes, int] = {}  # contents that give such a one when they are opened, and their sizes
    for sha256 in wanted:
        opened.update(core.index.rows("SELECT sha256, size FROM content WHERE kind = 'opened' AND base = ?", sha256))
    sizes = {row.size for row in wanted.values()} | set(opened.values())
    for path in _files(sources):
        if not wanted:
            return
        if os.path.getsize(path) not in sizes:
            continue
        with open(path, "rb") as file:
            total = hashlib.sha256()
            for piece in file_pieces(file):
                total.update(piece)
        found: bytes | None = None
        name = total.digest()
        if name in opened:
            with open(path, "rb") as file:
                found = glyd.open_streams(file.read())
            name = hashlib.sha256(found or b"").digest()
        lost = wanted.pop(name, None)
        if lost is not None:
            _store_again(core, lost, path if found is None else io.BytesIO(found), level)
            report.repaired.append(lost.key)


def _store_again(core: Core, row: Row, source: str | io.BytesIO, level: str) -> None:
    """Store a content alone in place of a damaged one."""
    entry: Entry = core.new_entry("repair")
    staged = core.backend.stage()
    made: list[bytes] = []
    try:
        out = HashingFile(staged.file)
        with open(source, "rb") if isinstance(source, str) else source as file:
            write_frame(out, file_pieces(file), row.size, level)
        stream = out.sha256
        if core.index.row("SELECT 1 FROM stream WHERE id = ?", stream) is None:
            made.append(stream)
        staged.publish(stream_key(stream))
    finally:
        staged.discard()
    content = _content(core, row)
    content.at, content.base = Place("stream", stream), None
    entry.contents.append(content)
    entry.streams.append(Stream(stream, out.nbytes, row.size))
    others = core.index.row("SELECT 1 FROM content WHERE stream = ? AND id != ?", row.stream, row.number)
    if row.stream is not None and row.stream != stream and others is None:
        entry.drop_streams = [row.stream]
    with core.making_streams(made):
        core.commit(entry)
    core.remove([stream_key(dropped) for dropped in entry.drop_streams])
    _forget(core, row.key)
    _forget(core, stream_key(stream))

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Checking a store: what is damaged, and everything that depends on it."""

from __future__ import annotations

import json
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from glyd_store._check_report import CheckReport, Problem
from glyd_store._contents import find_content, hash_file, read_again, read_content
from glyd_store._entry import entry_key, entry_seq, stream_key
from glyd_store._errors import BusyError, IndexDamagedError, IntegrityError, LockedError, ReadOnlyError, StoreError
from glyd_store._index import Index, decode_name
from glyd_store._journal import STORE_KEY, build_index, catch_up, journal_end
from glyd_store._parity import parity_key, parity_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from glyd_store._core import Core

_ATTEMPTS = 10
_WITHOUT_LOCK = 3
"""Attempts after which a check takes the lock, if it can, to see the index and the journal of one moment."""

REBUILD = "run 'rebuild' to make the index again from the journal"
REPUT = "put these objects again, or run 'repair --from' with files that have their content"
REPAIR = "run 'repair' to write it again from the index"


class Checker:
    """One check of a store.

    Parameters
    ----------
    core
        The store.
    progress
        Told of a step and bytes done in it.
    """

    def __init__(self, core: Core, progress: Callable[[str, int], None] | None = None) -> None:
        self._core = core
        self._progress = progress or (lambda _step, _n: None)
        self.report = CheckReport()
        self._bad: dict[str, str] = {}  # files that were found damaged
        self._parity: set[str] = set()

    def run(self, read_data: float = 0.0, *, decode: bool = False, resume: bool = False) -> CheckReport:
        """Check; see `glyd_store.Store.check`."""
        core = self._core
        store = core.store_id()
        if store is None:
            raise StoreError(f"{core.backend.url} is no store")
        with ExitStack() as stack:
            index, truth, damaged = self._two_of_one_moment(store, stack)
            try:
                self._check_once(index, truth, damaged)
            except IndexDamagedError as error:  # in a place that was not looked at before
                self.report, self._bad, index = CheckReport(), {}, None
                self._add(error.key or "index", str(error), (), "", noted=False)
                self._check_once(index, truth, damaged)
            if index is not None:
                index.end_snapshot()
            best = index or truth
            if read_data > 0 or decode:
                self._read_streams(best, 1.0 if decode else read_data, resume=resume)
            if decode:
                self._decode(best)
            self.report.n_objects = best.value("SELECT count(*) FROM object WHERE deleted IS NULL")
            self._keep_notes(index, is_whole=read_data >= 1 or decode)
        return self.report

    def _two_of_one_moment(self, store: str, stack: ExitStack) -> tuple[Index | None, Index, list[IntegrityError]]:
        """Return the index, one made from the journal up to the same entry, and what of that cannot be read.

        A writer may go on meanwhile. Without an index, as it is damaged, the journal has to do.
        """
        core = self._core
        with ExitStack() as lock:
            for attempt in range(_ATTEMPTS):
                if attempt == _WITHOUT_LOCK and not (core.read_only or core.backend.read_only or core.is_writing):
                    lock.enter_context(core.mutex)  # first, as writers do
                    with suppress(LockedError, ReadOnlyError):
                        lock.enter_context(core.backend.lock(core.lock_timeout_s))
                found = self._try_two(store, stack)
                if found is not None:
                    return found
        raise BusyError(f"{core.backend.url} changes faster than it can be read")

    def _try_two(self, store: str, stack: ExitStack) -> tuple[Index | None, Index, list[IntegrityError]] | None:
        """Do it once; None: a writer was faster."""
        core = self._core
        try:  # in a temporary file that SQLite takes care of
            truth, damaged = build_index(core.backend, "", store, attempts=2)
        except BusyError:
            return None
        stack.callback(truth.close)
        try:
            index = _snapshot(core)
        except IndexDamagedError as error:
            self._add(error.key or "index", str(error), (), "", noted=False)
            return None, truth, damaged
        if not core.is_writing:
            stack.callback(index.close)
        if index.seq < truth.seq:
            return None  # opened between the commit of an entry and its way into the index
        end = min(index.seq, journal_end(core.backend))
        with suppress(FileNotFoundError):  # dropped since: only all that is left tells what it said
            more = catch_up(core.backend, truth, store, truth.seq, end)[1]
            return index, truth, list({error.key: error for error in (*damaged, *more)}.values())
        return None

    def _check_once(self, index: Index | None, truth: Index, damaged: list[IntegrityError]) -> None:
        """Look at everything but the bytes of streams."""
        best = index or truth
        self._check_store_file()
        for unread in damaged:
            self._entry_problem(best, unread)
        if index is not None:
            self._check_index(index, truth, {entry_seq(e.key or "") for e in damaged})
        self._check_streams(best, [e.key for e in damaged])

    def _add(
        self,
        key: str,
        what: str,
        objects: Iterable[tuple[int, str]],
        advice: str,
        *,
        noted: bool = True,
    ) -> None:
        if key.startswith("streams/") and advice == REPUT and parity_key(bytes.fromhex(key[11:75])) in self._parity:
            advice = f"run 'repair', which has parity for it; or {REPUT}"
        self.report.problems.append(Problem(key, what, tuple(objects), advice))
        if noted:
            self._bad[key] = what

    def _check_store_file(self) -> None:
        try:
            found = json.loads(self._core.backend.read(STORE_KEY))
            if found["id"] != self._core.store_id():
                raise ValueError("another id than the journal has")
        except FileNotFoundError:
            self._add(STORE_KEY, f"{STORE_KEY} is missing", (), REPAIR, noted=False)
        except (ValueError, KeyError, TypeError) as error:
            self._add(STORE_KEY, f"{STORE_KEY} is damaged: {error}", (), REPAIR, noted=False)

    # ---- journal and index

    def _entry_problem(self, index: Index, error: IntegrityError) -> None:
        seq = entry_seq(error.key or "")
        lost = self._dependents(index, "c.kind = 'payload' AND c.seq = ?", seq)
        sidecar = index.rows("SELECT id, name FROM object WHERE seq = ? AND deleted IS NULL", seq)
        objects = dict(lost) | {number: decode_name(name) for number, name in sidecar}
        known = index.row("SELECT 1 FROM entry WHERE seq = ?", seq) is not None
        advice = REPUT if lost else REPAIR if known else "what it said is lost unless the index comes back"
        self._add(error.key or "journal", str(error), sorted(objects.items()), advice)

    def _check_index(self, index: Index, truth: Index, damaged: set[int | None]) -> None:
        what = index.value("PRAGMA integrity_check(1)")
        if what != "ok":
            raise IndexDamagedError(f"the index {index.path} is damaged ({what})", key=index.path)
        here = {seq for (seq,) in index.rows("SELECT seq FROM entry")}
        there = {seq for (seq,) in truth.rows("SELECT seq FROM entry")}
        for seq in sorted(here - there - damaged):
            error = IntegrityError(f"{entry_key(seq)} is missing", key=entry_key(seq))
            damaged.add(seq)
            self._entry_problem(index, error)
        late = there - here
        skipped = damaged | late
        mine, theirs = _state(index, skipped), _state(truth, skipped)
        wrong = sorted(set(mine.items()) ^ set(theirs.items()), key=repr)
        if wrong or late:
            objects = {key[1]: decode_name(row[0]) for key, row in wrong if key[0] == "object"}
            example = f", for instance {wrong[0][0]}" if wrong else ""
            text = f"the index differs from the journal in {len(wrong) + len(late)} places{example}"
            self._add(index.path or "index", text, sorted(objects.items()), REBUILD, noted=False)

    def _dependents(self, index: Index, condition: str, *values: Any) -> list[tuple[int, str]]:
        """Return the objects whose content, or a base of it, fulfils a condition."""
        rows = index.rows(
            f"WITH RECURSIVE hit(id, sha256) AS (SELECT c.id, c.sha256 FROM content c WHERE {condition} UNION"  # noqa: S608
            " SELECT c.id, c.sha256 FROM content c JOIN hit ON c.base = hit.sha256)"
            " SELECT o.id, o.name FROM object o JOIN hit ON hit.id = o.content WHERE o.deleted IS NULL ORDER BY o.id",
            *values,
        )
        return [(number, decode_name(name)) for number, name in rows]

    # ---- streams

    def _check_streams(self, index: Index, damaged: list[str | None]) -> None:
        core = self._core
        for missing, name in index.rows(
            "SELECT o.id, o.name FROM object o JOIN content c ON c.id = o.content"
            " WHERE c.kind = 'missing' AND o.deleted IS NULL"
        ):
            what = f"nothing says where the content of object {missing} is"
            self._add(f"object {missing}", what, [(missing, decode_name(name))], REPUT, noted=False)
        there = dict(core.backend.list("streams/"))
        self._parity = {key for key, _ in core.backend.list("parity/")}
        known: set[str] = set()
        for stream, nbytes in index.pages("SELECT id, nbytes FROM stream WHERE id > ? ORDER BY id", n=1000):
            key = stream_key(stream)
            known.add(key)
            self.report.n_streams += 1
            found = there.get(key)
            if found != nbytes:
                found = self._size(key)  # put since
            if found == nbytes:
                continue
            if self._fresh(index).row("SELECT 1 FROM stream WHERE id = ?", stream) is None:
                continue  # removed since
            what = f"{key} is missing" if found is None else f"{key} has {found} bytes, expected {nbytes}"
            self._add(key, what, self._dependents(index, "c.stream = ?", stream), REPUT)
        self.report.n_entries = index.value("SELECT count(*) FROM entry")
        orphans = {key: n for key, n in there.items() if key not in known}
        if orphans:
            stated = self._fresh(index).rows("SELECT id FROM stream")
            for (stream,) in stated:
                orphans.pop(stream_key(stream), None)  # put since
        self.report.orphan_nbytes = sum(orphans.values())
        if orphans and damaged:
            for key in sorted(orphans):
                what = f"{key} is stated by no entry that can be read; {damaged[0]} may have stated it"
                self._add(key, what, (), "it holds a whole frame: decompress it by hand if its object is missed")

    def _size(self, key: str) -> int | None:
        try:
            return self._core.backend.size(key)
        except FileNotFoundError:
            return None

    def _read_streams(self, index: Index, share: float, *, resume: bool) -> None:
        core = self._core
        import random  # noqa: PLC0415 - costs 10 ms

        run = self._start_run(resume=resume)
        chosen = random.Random(core.clock())  # noqa: S311 - which ones are read need not be secret
        for stream, nbytes in index.pages("SELECT id, nbytes FROM stream WHERE id > ? ORDER BY id", n=1000):
            key = stream_key(stream)
            if key in self._bad or (share < 1 and chosen.random() >= share):
                continue
            if run is not None and index.row("SELECT 1 FROM verified WHERE stream = ? AND run = ?", stream, run):
                self.report.n_read += 1
                continue
            found = hash_file(core, key, lambda n: self._progress("read", n))
            self.report.n_read += 1
            self.report.read_nbytes += nbytes
            self._check_parity(stream)
            if found == stream:
                if run is not None:
                    self._note(index, "INSERT OR REPLACE INTO verified VALUES(?, ?)", stream, run)
            elif found is not None or self._fresh(index).row("SELECT 1 FROM stream WHERE id = ?", stream):
                what = f"{key} is damaged: its SHA-256 is {found.hex()[:16] + '…' if found else 'unreadable'}"
                self._add(key, what, self._dependents(index, "c.stream = ?", stream), REPUT)
        if run is not None:
            self._note(index, "DELETE FROM meta WHERE key = 'check_run'")

    def _note(self, index: Index, sql: str, *values: object) -> bool:
        """Keep something for later checks; say whether it was: a writer may be busy with the index for long."""
        with suppress(LockedError), index.transaction():
            index.db.execute(sql, values)
            return True
        return False

    def _check_parity(self, stream: bytes) -> None:
        key = parity_key(stream)
        if key in self._parity:
            self.report.n_parity += 1
            what = parity_problem(self._core.backend, stream)
            if what is not None:
                self._add(key, f"{key} is damaged: {what}", (), "run 'repair' to write it again", noted=False)

    def _start_run(self, *, resume: bool) -> int | None:
        """Return the number of a check that can be resumed; None where notes cannot be kept."""
        core = self._core
        if core.read_only or core.backend.read_only:
            return None
        try:
            index = core.index
        except IndexDamagedError:
            return None
        run = index.meta("check_run") if resume else None
        if run is None:
            run = core.clock()
            if not self._note(index, "INSERT OR REPLACE INTO meta VALUES('check_run', ?)", run):
                return None
        return int(run)

    def _fresh(self, index: Index) -> Index:
        """Return the index with all that is in the journal now, or the one given where it is damaged."""
        try:
            return self._core.refresh()
        except IndexDamagedError:
            return index

    def _decode(self, index: Index) -> None:
        core = self._core
        core.bases.clear()  # what counts is what the files give
        for number, sha256, size in index.pages("SELECT id, sha256, size FROM content WHERE id > ? ORDER BY id"):

            def read(sha256: bytes = sha256) -> None:
                row = find_content(core, sha256)
                if row is not None and row.key not in self._bad and row.kind != "missing":  # else known, or removed
                    read_content(core, row, None, thorough=True)

            try:
                read_again(core, read)
            except IndexDamagedError:
                return  # that is known by now, and without it nothing can be read
            except IntegrityError as error:
                if error.key not in self._bad:
                    self._add(str(error.key), str(error), self._dependents(index, "c.id = ?", number), REPUT)
            self._progress("decode", size)

    def _keep_notes(self, index: Index | None, *, is_whole: bool) -> None:
        """Keep what is damaged in the index, so that puts do not rely on it."""
        core = self._core
        if index is None or index.path is None or core.read_only or core.backend.read_only:
            return
        with suppress(LockedError), index.transaction():
            if is_whole:
                index.db.execute("DELETE FROM damage")
            for key, what in self._bad.items():
                index.db.execute("INSERT OR REPLACE INTO damage VALUES(?, ?)", (key, what))


def _snapshot(core: Core) -> Index:
    """Return an index of one moment that has all of the journal: a writer's own, else one to be closed."""
    if core.is_writing:
        return core.index
    index = core.refresh()
    if index.path is None:
        return index.to_memory()
    own = Index.open(index.path, writable=not (core.read_only or core.backend.read_only))
    if own.path is not None:
        own.snapshot()
    return own


def _state(index: Index, skipped: set[int | None]) -> dict[tuple[str, Any], tuple[Any, ...]]:
    """Return what an index says of living objects, without what some entries say."""
    out: dict[tuple[str, Any], tuple[Any, ...]] = {}
    for number, *rest, seq, content_seq in index.rows(
        "SELECT o.id, o.name, o.time, o.tags, c.sha256, c.size, c.kind, c.stream, c.offset, c.nbytes, c.base, c.xxh, o.seq,"
        " c.seq FROM object o LEFT JOIN content c ON c.id = o.content WHERE o.deleted IS NULL"
    ):
        if seq not in skipped and content_seq not in skipped:
            out["object", number] = tuple(rest)
    for stream, *rest, seq in index.rows("SELECT id, nbytes, size, seq FROM stream"):
        if seq not in skipped:
            out["stream", stream.hex()] = tuple(rest)
    return out

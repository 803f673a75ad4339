# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Writing stored contents again: alone, or at another level."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import glyd
from glyd_store._contents import find_content, open_as_base, open_content, own_file, restated, stored_of
from glyd_store._entry import Place, Stream, stream_key
from glyd_store._errors import IntegrityError, StoreError
from glyd_store._info import object_by_id, resolve
from glyd_store._put import Writer
from glyd_store._source import open_source

if TYPE_CHECKING:
    from collections.abc import Callable

    from glyd_store._contents import Row
    from glyd_store._core import Core
    from glyd_store._info import ObjectInfo
    from glyd_store._removal import CompactReport

_HEADER_NBYTES = 4096
WORTH_NBYTES = 64 << 10
"""Streams below this stay but at level ultra: the entry that moves them takes about what they can save."""

_WORTH_ULTRA_NBYTES = 4 << 10
_ENTRY_NBYTES = 700
"""What must be saved of streams below `WORTH_NBYTES`: the entry takes it."""

_MORE = 1.001
"""What may take so much more is taken all the same: it would be tried again each time."""


def rebase(core: Core, ref: str | int | ObjectInfo, level: str, threads: int = 0) -> ObjectInfo:
    """Store the content of an object alone again, for objects that are read often."""
    core.check_writable()
    with core.writing():
        info = resolve(core, ref)
        row = find_content(core, bytes.fromhex(info.sha256))
        row = None if row is None else stored_of(core, row)
        if row is None or row.base is None:
            return info
        _write_again(core, row, None, Writer(core, level, threads))
        return object_by_id(core.index, info.id)


def recode(
    core: Core, level: str, report: CompactReport, threads: int = 0, progress: Callable[[str, int], None] | None = None
) -> None:
    """Write the streams of large contents again that are of a lower level; each is an operation of its own."""
    wanted = glyd.LEVELS.index(level)
    writer = Writer(core, level, threads, progress)
    for number, _ in core.index.pages("SELECT id, size FROM content WHERE kind = 'stream' AND id > ? ORDER BY id"):
        with core.writing():
            found = core.index.row("SELECT sha256 FROM content WHERE id = ?", number)
            row = None if found is None else find_content(core, found[0])
            if row is None or row.kind != "stream" or core.is_damaged(row.key):
                continue  # removed since, or not to be had
            base = None if row.base is None else find_content(core, row.base)
            with own_file(core, row) as file:
                now = glyd.get_frame_info(file.read(_HEADER_NBYTES)).level
            # level cold has no base
            most = wanted if base is None else min(wanted, glyd.LEVELS.index("ultra"))
            nbytes = core.index.value("SELECT nbytes FROM stream WHERE id = ?", row.stream)
            is_small = nbytes < WORTH_NBYTES
            if is_small and (nbytes < _WORTH_ULTRA_NBYTES or most < glyd.LEVELS.index("ultra")):
                continue
            if now is None or glyd.LEVELS.index(now) >= most or _was_in_vain(core, row, most):
                continue
            saved = _write_again(core, row, base, writer, limit=nbytes - _ENTRY_NBYTES if is_small else _MORE * nbytes)
            if saved is None:  # it would take as long each time
                note = (row.stream, glyd.LEVELS[most])
                with suppress(OSError), core.index.transaction():  # a full disk may do without it
                    core.index.db.execute("INSERT OR REPLACE INTO in_vain VALUES(?, ?)", note)
            else:
                report.n_recoded += 1
                report.freed_nbytes += max(saved, 0)


def _was_in_vain(core: Core, row: Row, level: int) -> bool:
    """Say whether a stream was written again at this level or a higher one, and not kept."""
    found = core.index.value("SELECT level FROM in_vain WHERE stream = ?", row.stream)
    return found is not None and glyd.LEVELS.index(found) >= level


def _write_again(core: Core, row: Row, base: Row | None, writer: Writer, limit: float | None = None) -> int | None:
    """Write a content again, alone or against its base; return how much less it takes.

    With a limit, what takes more bytes is not kept: the answer is then None.
    """
    entry = core.new_entry("move")
    made: list[bytes] = []
    before = int(core.index.value("SELECT nbytes FROM stream WHERE id = ?", row.stream))
    with ExitStack() as stack:
        content = stack.enter_context(open_content(core, row))
        source = stack.enter_context(open_source(content, f"the content in {row.key}"))
        source.load(core.memory)
        source.scan(small=0)
        if source.sha256 != row.sha256:
            raise IntegrityError(
                f"the content in {row.key} has SHA-256 {source.sha256.hex()[:16]}…, expected {row.sha256.hex()[:16]}…",
                key=row.key,
            )
        decoded = None if base is None else open_as_base(core, base, stack)
        staged, out = writer.write(source, decoded)
        try:
            if limit is not None and out.nbytes > limit:
                return None
            if out.sha256 == row.stream:
                return 0
            if core.index.row("SELECT 1 FROM stream WHERE id = ?", out.sha256) is not None:
                raise StoreError(f"the stream {out.sha256.hex()} is there already, for another content")
            made.append(out.sha256)
            staged.publish(stream_key(out.sha256))
        finally:
            staged.discard()
    entry.contents.append(restated(core, row, Place("stream", out.sha256), None if base is None else base.sha256))
    entry.streams.append(Stream(out.sha256, out.nbytes, row.size))
    entry.drop_streams = [row.stream] if row.stream is not None else []
    with core.making_streams(made):
        core.commit(entry)
    core.remove([stream_key(dropped) for dropped in entry.drop_streams])
    return before - out.nbytes

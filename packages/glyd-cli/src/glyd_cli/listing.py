# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``glyd --list`` and ``glyd --info``: what is in frames, without decoding them."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import TYPE_CHECKING

import glyd
from glyd_cli.errors import Exit, FileError, describe, exit_code, shown
from glyd_cli.pipeline import seekable_file
from glyd_cli.report import print_text, ratio_text, size_text
from glyd_cli.sources import STDIN, open_source

if TYPE_CHECKING:
    from typing import IO, Any

    from glyd_cli.arguments import Options
    from glyd_cli.report import Reporter
    from glyd_cli.sources import Source

_COLUMNS = ("frames", "segments", "stored", "content", "ratio", "level", "check", "file")


@dataclasses.dataclass(slots=True)
class _Listing:
    path: str
    nbytes: int
    frames: list[glyd.FrameInfo]
    kinds: dict[str, tuple[int, int, int]]
    """Number, stored bytes and content bytes of the segments of each kind."""
    records: list[glyd.RecordsInfo]
    opened: list[glyd.OpenedInfo]

    @property
    def content(self) -> int:
        return sum(frame.content_size or 0 for frame in self.frames)

    @property
    def segments(self) -> int:
        return sum(frame.n_segments or 0 for frame in self.frames)

    def distinct(self, name: str) -> str:
        """Return the values of an attribute over all frames with content."""
        values = {str(getattr(frame, name) or "?") for frame in self.frames if not frame.is_skippable}
        return ",".join(sorted(values)) or "-"

    @property
    def bases(self) -> str:
        """Return the ids of the bases that frames need, "-" where they need none."""
        return ",".join(sorted({frame.base_id.hex() for frame in self.frames if frame.base_id})) or "-"

    def as_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "stored_nbytes": self.nbytes,
            "content_nbytes": self.content,
            "ratio": self.content / self.nbytes if self.nbytes else None,
            "n_segments": self.segments,
            "kinds": {
                kind: dict(zip(("n_segments", "stored_nbytes", "content_nbytes"), sums, strict=True))
                for kind, sums in self.kinds.items()
            },
            "frames": [_frame_as_json(frame) for frame in self.frames],
            "records": [_records_as_json(records) for records in self.records],
            "opened": [dataclasses.asdict(opened) for opened in self.opened],
        }


def _frame_as_json(frame: glyd.FrameInfo) -> dict[str, Any]:
    fields = dataclasses.asdict(frame)
    fields["base_id"] = frame.base_id.hex() if frame.base_id else None
    return fields


def _records_as_json(records: glyd.RecordsInfo) -> dict[str, Any]:
    fields = dataclasses.asdict(records)
    for column in fields["columns"]:
        column["hint"] = column["hint"].decode("utf-8", "replace")
    return fields


def list_files(options: Options, reporter: Reporter) -> Exit:
    """List the frames of every input on standard output.

    Parameters
    ----------
    options
        The command line.
    reporter
        Says what cannot be listed.

    Returns
    -------
    Exit
        The worst of all inputs.
    """
    listings: list[_Listing] = []
    worst = Exit.OK
    for path in options.files or [STDIN]:
        try:
            with open_source(path) as source:
                listings.append(_look_into(source, with_kinds=options.verb == "info"))
        except (glyd.GlydError, OSError, MemoryError) as error:
            where = error.path if isinstance(error, FileError) else "standard input" if path == STDIN else path
            reporter.error(where, describe(error))
            worst = max(worst, exit_code(error))
    if options.json:
        text = json.dumps([listing.as_json() for listing in listings], indent=2) + "\n"
    elif options.verb == "info":
        text = "\n".join(_details(listing) for listing in listings)
    else:
        text = _table(listings) if listings else ""
    print_text(text)
    return worst


def _look_into(source: Source, *, with_kinds: bool) -> _Listing:
    with seekable_file(source) as file:
        return _listing(source, file, with_kinds=with_kinds)


def verdict(identity: int, dictionary: glyd.Dictionary) -> str:
    """Say whether a dictionary is the one with an id."""
    return "the one given" if identity == dictionary.id else f"the one given is {dictionary.id:#010x}"


def details_of(source: Source, file: IO[bytes], dictionary: glyd.Dictionary) -> str:
    """Say what frames are in an input, and whether a dictionary is theirs."""
    return _details(_listing(source, file, with_kinds=True), dictionary)


def _listing(source: Source, file: Any, *, with_kinds: bool) -> _Listing:
    start = file.tell()
    frames = list(glyd.iter_frames(file))
    kinds: dict[str, tuple[int, int, int]] = {}
    records: list[glyd.RecordsInfo] = []
    opened: list[glyd.OpenedInfo] = []
    if with_kinds:  # reads the head of every segment
        file.seek(start)
        for segment in glyd.iter_segments(file):
            n, stored, content = kinds.get(segment.kind, (0, 0, 0))
            kinds[segment.kind] = (n + 1, stored + segment.stored_nbytes, content + segment.content_nbytes)
        file.seek(start)
        records.extend(glyd.iter_records(file))
        file.seek(start)
        opened.extend(glyd.iter_opened(file))
    return _Listing(source.name, file.seek(0, os.SEEK_END) - start, frames, kinds, records, opened)


def _table(listings: list[_Listing]) -> str:
    with_bases = any(each.bases != "-" for each in listings)
    rows: list[tuple[str, ...]] = [(*_COLUMNS[:-1], "base", "file") if with_bases else _COLUMNS]
    rows += [
        (
            str(len(each.frames)),
            str(each.segments),
            size_text(each.nbytes),
            size_text(each.content),
            ratio_text(each.content, each.nbytes),
            each.distinct("level"),
            each.distinct("checksum"),
            *([each.bases] if with_bases else []),
            shown(each.path),
        )
        for each in listings
    ]
    if len(listings) > 1:
        stored = sum(each.nbytes for each in listings)
        content = sum(each.content for each in listings)
        segments = sum(each.segments for each in listings)
        n_frames = sum(len(each.frames) for each in listings)
        total: tuple[str, ...] = (size_text(stored), size_text(content), ratio_text(content, stored), "", "")
        total += ("",) * with_bases + (f"{len(listings)} files",)
        rows.append((str(n_frames), str(segments), *total))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    return "".join(
        "  ".join([*(c.rjust(w) for c, w in zip(row, widths, strict=False)), row[-1]]) + "\n" for row in rows
    )


def _dictionary(identity: int, given: glyd.Dictionary | None) -> str:
    return f"    dictionary {identity:#010x}" + (f", {verdict(identity, given)}" if given else "")


def _details(listing: _Listing, given: glyd.Dictionary | None = None) -> str:
    ratio = ratio_text(listing.content, listing.nbytes)
    sizes = f"{listing.nbytes} bytes stored, {listing.content} bytes of content ({ratio})"
    lines = [f"{shown(listing.path)}: {sizes}, {len(listing.frames)} frames, {listing.segments} segments"]
    for kind, (n, stored, content) in sorted(listing.kinds.items()):
        lines.append(f"  {kind}: {n} segments, {stored} bytes stored, {content} bytes of content")
    for number, frame in enumerate(listing.frames):
        if frame.is_skippable:
            lines.append(
                f"  frame {number} at byte {frame.offset}: skippable, tag {frame.skip_tag}, {frame.frame_nbytes} bytes"
            )
            continue
        index = f"index of {frame.trailer_nbytes} bytes" if frame.trailer_nbytes else "no index"
        lines += [
            f"  frame {number} at byte {frame.offset}: format {frame.version}, level {frame.level or 'unknown'}",
            f"    content   {frame.content_size} bytes in {frame.n_segments} segments of at most {frame.segment_nbytes}",
            f"    stored    {frame.frame_nbytes} bytes: header {frame.header_nbytes}, {index}",
            f"    check     {frame.checksum} of each segment",
            *([f"    base      {frame.base_id.hex()}, {frame.base_nbytes} bytes"] if frame.base_id else []),
            *([] if frame.dictionary_id is None else [_dictionary(frame.dictionary_id, given)]),
            f"    memory    {frame.decoder_memory_nbytes} bytes to read with one thread",
        ]
    for opened in listing.opened:
        cut = ", one of them in part" if opened.is_cut else ""
        lines.append(
            f"  segment {opened.segment.index} at byte {opened.segment.offset}: {opened.n_streams} streams opened{cut}: "
            f"{opened.inside_nbytes} bytes inside, {opened.kept_nbytes} bytes kept around them, "
            f"{opened.description_nbytes} bytes describe how they were made"
        )
    for records in listing.records:
        lines += _columns(records)
    return "\n".join(lines) + "\n"


_HINT_CHARACTERS = 24
_RECORD_COLUMNS = ("table", "place", "after", "type", "bounds", "stored beside", "rows", "bytes")


def _columns(records: glyd.RecordsInfo) -> list[str]:
    """Describe a record segment and its columns, a line each."""
    segment = records.segment
    beside = {
        "model": records.model_nbytes,
        "texts of dictionaries": records.dictionaries_nbytes,
        "escapes": records.stored_escapes_nbytes,
        "kinds of rows": records.selector_nbytes,
    }
    rows = [_RECORD_COLUMNS]
    rows += [
        (
            str(column.table),
            str(column.place),
            shown(column.hint.decode("utf-8", "replace"))[-_HINT_CHARACTERS:],
            column.kind,
            f"{column.n_entries} entries"
            if column.n_entries
            else f"{column.least} .. {column.most}"
            if column.least is not None
            else "",
            column.prediction,
            str(column.n_rows),
            str(column.stored_nbytes),
        )
        for column in records.columns
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    is_text = [name in {"after", "type", "bounds", "stored beside"} for name in _RECORD_COLUMNS]
    escapes = f"{records.n_escapes} escapes of {records.escapes_nbytes} bytes"
    found = f"{records.shape}, {records.n_rows} rows in {records.n_tables} tables, {escapes}"
    return [
        f"  segment {segment.index} at byte {segment.offset}: {found}",
        "    beside columns: " + ", ".join(f"{what} {n}" for what, n in beside.items()),
        *(
            "    "
            + "  ".join(c.ljust(w) if left else c.rjust(w) for c, w, left in zip(row, widths, is_text, strict=True))
            for row in rows
        ),
    ]

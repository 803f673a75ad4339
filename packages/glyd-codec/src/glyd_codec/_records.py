# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""What record segments hold: tables and logs stored as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from glyd_codec._buffers import scratch
from glyd_codec._errors import CorruptDataError
from glyd_codec._inspect import read_stored, walk_segments
from glyd_codec._native import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO, Any

    from _typeshed import ReadableBuffer

    from glyd_codec._inspect import SegmentInfo
    from glyd_codec._source import Path, Source

_SHAPES = {1: "delimited", 2: "json", 3: "sql", 4: "log"}
_KINDS = {1: "number", 2: "time", 3: "dictionary", 4: "text", 5: "dictionary", 6: "text", 7: "dictionary"}
_PREDICTIONS = (
    "none",
    "previous",
    "linear",
    "column",
    "delta",
    "sum",
    "difference",
    "last by key",
    "same by key",
    "rank by key",
)
_COLUMNS_MAX = 4096  # native/src/record/spec.md
_ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """A column of a record segment.

    Attributes
    ----------
    table
        Number of its table: 0 is that of all rows; if there are several kinds of row, each has one more.
    place
        Number in the rows of its table, from 0. Fields that never vary are no columns.
    kind
        "number", "time", "dictionary" or "text".
    prediction
        What its values are stored beside: "none", "previous", "linear", or other columns.
    n_rows
        Rows of its table.
    n_entries
        Different texts of a dictionary, else 0.
    n_exceptions
        Different texts that are no number or time, such as those for missing values.
    least, most
        Bounds of numbers and times, as they are written; None for others. They need not occur.
    stored_nbytes
        Bytes it takes, without the texts of its dictionary.
    hint
        What stands before it in each row, the last 64 bytes of it: there names of fields are.
    """

    table: int
    place: int
    kind: str
    prediction: str
    n_rows: int
    n_entries: int
    n_exceptions: int
    least: str | None
    most: str | None
    stored_nbytes: int
    hint: bytes


@dataclass(frozen=True, slots=True)
class RecordsInfo:
    """A record segment.

    Attributes
    ----------
    segment
        Where it lies.
    shape
        "delimited", "json", "sql" or "log".
    n_rows, n_tables
        Its rows, and the tables of their columns.
    n_escapes, escapes_nbytes
        Pieces of content that are no rows, and their bytes of content.
    model_nbytes, dictionaries_nbytes, stored_escapes_nbytes, selector_nbytes
        Bytes that the description of the columns, the texts of dictionaries, the escapes and the kinds
        of rows take.
    columns
        Its columns, table by table.
    """

    segment: SegmentInfo
    shape: str
    n_rows: int
    n_tables: int
    n_escapes: int
    escapes_nbytes: int
    model_nbytes: int
    dictionaries_nbytes: int
    stored_escapes_nbytes: int
    selector_nbytes: int
    columns: tuple[ColumnInfo, ...]


def iter_records(file: Path | IO[bytes] | ReadableBuffer) -> Iterator[RecordsInfo]:
    """Describe the record segments of a file, in the order of their content.

    Parameters
    ----------
    file
        Path, binary file object that can seek, or buffer with the data.

    Yields
    ------
    RecordsInfo
        Of each segment of kind "record". The bounds of its columns tell whether rows in question can be in it.

    Raises
    ------
    FormatError
        When file is anything but whole frames, or a segment is damaged. Checks are not verified: that takes decoding.
    OSError, TypeError
        When it cannot be read so.

    Notes
    -----
    Reads the payloads of record segments, and takes memory as decoding one of them does.
    """
    for segment, source, offset, _ in walk_segments(file):
        if segment.kind == "record":
            yield _read(segment, source, offset)


def _read(segment: SegmentInfo, source: Source, offset: int) -> RecordsInfo:
    size = segment.offset + segment.stored_nbytes - offset
    payload = read_stored(segment, source, offset)
    room = lib.glyd_read_records_workspace(segment.content_nbytes)
    memory = scratch(room + _ALIGNMENT)
    address = int(ffi.cast("uintptr_t", memory))
    info = ffi.new("glyd_records_info *")
    columns = ffi.new("glyd_column_info[]", _COLUMNS_MAX)
    status = lib.glyd_read_records(
        payload, size, segment.content_nbytes, memory + -address % _ALIGNMENT, info, columns, _COLUMNS_MAX
    )
    if status != lib.GLYD_OK:
        raise CorruptDataError(f"the record segment at byte {segment.offset} is damaged", offset=segment.offset)
    return RecordsInfo(
        segment=segment,
        shape=_SHAPES.get(info.shape, str(info.shape)),
        n_rows=info.n_rows,
        n_tables=info.n_tables,
        n_escapes=info.n_escapes,
        escapes_nbytes=info.escapes_size,
        model_nbytes=info.model_stored,
        dictionaries_nbytes=info.dictionaries_stored,
        stored_escapes_nbytes=info.escapes_stored,
        selector_nbytes=info.selector_stored,
        columns=tuple(_column(columns[i]) for i in range(info.n_columns)),
    )


def _column(info: Any) -> ColumnInfo:
    kind = _KINDS[info.kind]
    is_number = kind in {"number", "time"}
    return ColumnInfo(
        table=info.table,
        place=info.place,
        kind=kind,
        prediction=_PREDICTIONS[info.prediction],
        n_rows=info.n_rows,
        n_entries=info.n_entries,
        n_exceptions=info.n_exceptions,
        least=ffi.string(info.least).decode("latin-1") if is_number else None,
        most=ffi.string(info.most).decode("latin-1") if is_number else None,
        stored_nbytes=info.stored,
        hint=bytes(ffi.buffer(info.hint, info.hint_size)),
    )

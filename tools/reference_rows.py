# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Tables of record segments and their rows, for the reference decoder (reference_record.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reference_bytes import Bytes, unzigzag
from reference_record import (
    COLUMN,
    DATE,
    DELTA,
    DICTIONARY,
    DIFFERENCE,
    FRESH,
    INTEGER,
    LAST,
    LINEAR,
    MORE,
    PAIRS_MAX,
    PREVIOUS,
    RANK,
    SAME,
    SORTED,
    SUM,
    TEXT,
    ZERO,
    Column,
    Pooled,
    Streams,
    read_streams,
    signed32,
    wrap,
)

LITERAL_MAX: Final = 1 << 16
COLUMNS_MAX: Final = 4096


def bits_of(mask: bytes, n: int) -> list[int]:
    """Return the bits of a mask, the least significant of each byte first."""
    return [mask[i // 8] >> i % 8 & 1 for i in range(n)]


def ended_text(column: Column, source: Bytes) -> bytes:
    """Take a text that ends with a byte."""
    size = source.data.find(column.end, source.at, source.end) - source.at
    source.require(0 <= size <= column.range, f"text of {size} bytes, at most {column.range}")
    text = source.take(size, "text")
    source.take(1, "end of a text")
    return text


class Table:
    """Literals and columns; later its rows."""

    def __init__(self, model: Bytes, columns_left: int) -> None:
        n = model.varint("columns")
        model.require(n <= columns_left, f"{n} columns, {columns_left} left")
        sizes = [model.varint("length of a literal") for _ in range(n + 1)]
        model.require(sum(sizes) <= LITERAL_MAX, f"{sum(sizes)} bytes of literals")
        self.literals = [model.take(size, "literal") for size in sizes]
        self.columns: list[Column] = []
        for _ in range(n):
            self.columns.append(Column(model, n, self.columns))
        model.require(len({column.place for column in self.columns}) == n, "two columns in one place")
        self.texts: list[list[bytes]] = []
        self.rows: Iterator[bytes] = iter(())

    def read(self, streams: Streams, dictionaries: Bytes, n_rows: int) -> None:
        """Take the streams of all columns and put the rows together."""
        values: list[list[int]] = []
        masks: list[list[int]] = []
        by_place: dict[int, list[bytes]] = {}
        shared: list[tuple[bytes, list[Column]]] = []
        for column in self.columns:
            mask, which = [0] * n_rows, b""
            if column.exceptions:
                stored = bits_of(streams.next((n_rows + 7) // 8), n_rows)
                other = masks[column.mask] if column.mask >= 0 else mask
                mask = [a ^ b for a, b in zip(stored, other, strict=True)]
                which = streams.next(sum(mask)) if len(column.exceptions) > 1 else bytes(sum(mask))
                streams.source.require(max(which, default=0) < len(column.exceptions), "exception without text")
            masks.append(mask)
            decoded = [0] * n_rows if column.end >= 0 else decode_values(column, self.columns, values, streams, n_rows)
            streams.source.require(all(0 <= v <= column.range for v in decoded), "value out of range")
            values.append(decoded)
            if column.kind == TEXT:
                shared.append((streams.next(is_text=True), []))
            if column.kind in {TEXT, MORE}:
                shared[-1][1].append(column)
                continue
            texts = self.column_texts(column, decoded, streams, dictionaries)
            exceptions = iter(which)
            by_place[column.place] = [
                column.exceptions[next(exceptions)] if is_exception else text
                for text, is_exception in zip(texts, mask, strict=True)
            ]
        for text, columns in shared:  # row by row, one column after the other
            source = Bytes(text, 0, len(text), bad=streams.source.bad, short=streams.source.bad)
            for column in columns:
                by_place[column.place] = []
            for r in range(n_rows):
                for column in columns:
                    by_place[column.place].append(
                        ended_text(column, source)
                        if column.end >= 0
                        else source.take(values[self.columns.index(column)][r], "text")
                    )
        self.rows = iter(
            self.literals[0]
            + b"".join(by_place[place][r] + self.literals[place + 1] for place in range(len(self.columns)))
            for r in range(n_rows)
        )

    @staticmethod
    def column_texts(column: Column, values: list[int], streams: Streams, dictionaries: Bytes) -> list[bytes]:
        """Return the text of each value."""
        if column.kind in {INTEGER, DATE}:
            return [column.text(v) for v in values]
        if column.kind == SORTED:
            lengths = [
                (dictionaries.varint("bytes in common"), dictionaries.varint("length of an entry"))
                for _ in range(column.range + 1)
            ]
            entries = [b""]
            for common, size in lengths:
                streams.source.require(common <= len(entries[-1]), "more in common than there is")
                streams.source.require(size <= dictionaries.left, "entry longer than the texts")
                entries.append(entries[-1][:common] + dictionaries.take(size, "entry"))
            streams.source.require(sum(map(len, entries)) == column.text_size, "bytes of texts")
            return [entries[v + 1] for v in values]
        if column.kind in {DICTIONARY, FRESH}:
            sizes = [dictionaries.varint("length of an entry") for _ in range(column.range + 1)]
            entries = [dictionaries.take(size, "entry") for size in sizes]
            return [entries[v] for v in values]
        raise AssertionError(column.kind)


def read_residuals(column: Column, streams: Streams, n_rows: int) -> list[int]:
    """Take planes, the low bytes first, and escapes."""
    escape = 256 ** (column.wide + 1) - 1
    stored = streams.planes(n_rows, column.wide + 1)
    escapes = streams.next()
    n, rest = divmod(len(escapes), 4)
    streams.source.require(rest == 0 and n <= n_rows, f"{len(escapes)} bytes of escapes")
    large = iter([sum(escapes[i + k * n] << (8 * k) for k in range(4)) for i in range(n)])
    out = []
    for z in stored:
        value = next(large, None) if z == escape else z
        streams.source.require(value is not None, "too few escapes")
        out.append(value or 0)
    is_id = column.prediction == RANK or (not column.is_number and column.prediction == ZERO)
    return out if is_id else [unzigzag(z) for z in out]


def entries_of(column: Column, codes: list[int], following: int, streams: Streams) -> list[int]:
    """Return the entries that codes of a dictionary in the order of its texts in the rows stand for."""
    out = []
    for code in codes:
        out.append(following if code == 0 else code - 1)
        following += code == 0
        streams.source.require(out[-1] <= column.range, f"entry {out[-1]}, at most {column.range}")
    return out


def decode_values(
    column: Column, columns: list[Column], values: list[list[int]], streams: Streams, n_rows: int
) -> list[int]:
    """Undo the prediction of a column."""
    p = column.prediction
    j = values[column.j] if column.j >= 0 else [0] * n_rows
    k = values[column.k] if column.k >= 0 else [0] * n_rows
    factor = columns[column.k].range + 1 if column.k >= 0 else 1
    keys = [a * factor + b for a, b in zip(j, k, strict=True)]
    last: dict[int, int] = {}
    if p == SAME:
        missed = bits_of(streams.next((n_rows + 7) // 8), n_rows)
        stored = streams.pairs(sum(missed), high=column.range > 255)
        fresh = iter(entries_of(column, stored, 1, streams) if column.kind == FRESH else stored)
        same = []
        for key, miss in zip(keys, missed, strict=True):
            if miss:
                last[key] = next(fresh)
            same.append(last.get(key, 0))
        return same
    starts, pairs = [0], []
    if p == RANK:
        for count in streams.pairs(column.key_size, high=True):
            starts.append(starts[-1] + count)
        streams.source.require(0 < starts[-1] <= PAIRS_MAX, f"{starts[-1]} values of keys")
        pairs = streams.pairs(starts[-1], high=column.range > 255)
    out: list[int] = []
    if column.kind == FRESH and p == ZERO:
        return entries_of(column, read_residuals(column, streams, n_rows), 0, streams)
    for r, residual in enumerate(read_residuals(column, streams, n_rows)):
        if p == RANK:
            place = (starts[keys[r]] + residual) % (1 << 32)
            streams.source.require(place < len(pairs), "rank beyond the lists")
            out.append(pairs[place])
            continue
        before, before2 = (out[r - 1] if r > 0 else 0), (out[r - 2] if r > 1 else 0)
        prediction = {
            ZERO: 0,
            PREVIOUS: before,
            LINEAR: 2 * before - before2,
            COLUMN: j[r] + column.adjust,
            DELTA: before + j[r] - (j[r - 1] if r > 0 else 0),
            SUM: j[r] + k[r] + column.adjust,
            DIFFERENCE: j[r] - k[r] + column.adjust,
            LAST: last.get(keys[r], 0),
        }[p]
        value = wrap(wrap(prediction) + residual) if column.is_clock else signed32(prediction + residual)
        last[keys[r]] = value
        streams.source.require(0 <= value <= column.range, f"value {value}, at most {column.range}")
        out.append(value)
    return out


def decode_records(payload: Bytes, content_size: int) -> bytes:
    """Decode the payload of a record segment."""
    stream_list = read_streams(payload)
    payload.require(len(stream_list) >= 4, f"{len(stream_list)} streams")
    payload.require(not isinstance(stream_list[2], Pooled), "pooled stream that is no text")
    model, texts, escapes, raw = (Bytes(s, 0, len(s), bad="corrupt", short="corrupt") for s in stream_list[:4])
    model.require(model.varint("shape") <= 255, "shape")
    n_tables, n_rows, n_escapes = (model.varint(what) for what in ("tables", "rows", "escapes"))
    model.require(1 <= n_tables <= 256 and max(n_rows, n_escapes) <= content_size, "tables, rows or escapes")
    tables: list[Table] = []
    for _ in range(n_tables):
        tables.append(Table(model, COLUMNS_MAX - sum(len(table.columns) for table in tables)))
    model.require(model.left == 0, f"{model.left} bytes behind the model")

    streams = Streams(stream_list[4:], payload)
    selector = streams.next(n_rows) if n_tables > 1 else b""
    payload.require(all(t + 1 < n_tables for t in selector), "selector of no table")
    for t, table in enumerate(tables):
        table.read(streams, texts, n_rows if t == 0 else selector.count(t - 1))
    payload.require(streams.at == len(streams.streams) and texts.left == 0, "streams or texts not used")

    out = bytearray()
    places: dict[int, list[int]] = {}
    place = 0
    for _ in range(n_escapes):
        place += escapes.varint("rows to the escape")
        places.setdefault(place, []).append(escapes.varint("bytes of the escape"))
    payload.require(escapes.left == 0 and place <= n_rows, "escapes")
    for r in range(n_rows + 1):
        for size in places.get(r, []):
            out += raw.take(size, "escape")
        if r < n_rows:
            out += next(tables[0].rows)
            if selector:
                out += next(tables[1 + selector[r]].rows)
    payload.require(raw.left == 0 and len(out) == content_size, f"{len(out)} bytes, {content_size} expected")
    return bytes(out)

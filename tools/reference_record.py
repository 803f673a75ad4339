# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Record segments of the reference decoder, in the order of native/src/record/spec.md.

The bound on a reader's memory is not held: the rest is.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

from reference_blocks import decode_lz
from reference_bytes import Bytes, unzigzag
from reference_planes import Tables, read_plane

PLANE_MAX: Final = 131_072
DEPTH_MAX: Final = 3
RANGE_MAX: Final = (1 << 31) - 16
KEYS_MAX: Final = 1 << 18
PAIRS_MAX: Final = KEYS_MAX - 1
INTEGER, DATE, DICTIONARY, TEXT, SORTED, MORE, FRESH = 1, 2, 3, 4, 5, 6, 7
ENTRIES_MAX: Final = {DICTIONARY: 65_536, SORTED: 65_536, FRESH: 65_535}
PLAIN, CLOCK, PADDED, TRIMMED, TRIMMED_1, BARE, BARE_TRIMMED, TAIL, ALIGNED = range(9)
WIDTHS: Final = {TAIL: 9, ALIGNED: 24}
DECIMALS_KEPT: Final = {TRIMMED: 0, TRIMMED_1: 1, BARE_TRIMMED: 0}
ZERO, PREVIOUS, LINEAR, COLUMN, DELTA, SUM, DIFFERENCE, LAST, SAME, RANK = range(10)
CODE_SIZES: Final = {1: 4, 2: 2, 3: 3, 4: 2, 5: 2, 6: 2, 7: 2, 8: 2}
MONTHS: Final = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
EPOCH: Final = dt.date(1970, 1, 1).toordinal()
YEAR_0_DAYS: Final = 366


def signed32(value: int) -> int:
    """Return a number modulo 2^32 as one from -2^31 on."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def wrap(value: int) -> int:
    """Bring minutes into a day."""
    value = signed32(value)
    value += 1440 if value < 0 else 0
    for _ in range(2):
        value -= 1440 if value >= 1440 else 0
    return value


class Pooled(bytes):
    """A stream that is a part of the pool."""

    __slots__ = ()


def read_streams(source: Bytes) -> list[bytes]:
    """Read the pool and all streams of a payload."""
    n, has_pool = divmod(source.varint("number of streams"), 2)
    pool = Bytes(b"", 0, 0, bad=source.bad, short=source.bad)
    if has_pool:
        size = source.varint("bytes of the pool")
        source.require(0 < size < 1 << 32, f"pool of {size} bytes")
        texts = decode_lz(source.part(source.varint("size of blocks"), "blocks"), size)
        pool = Bytes(texts, 0, size, bad=source.bad, short=source.bad)
    streams = [read_stream(source, pool) for _ in range(n)]
    source.require(pool.left == 0, f"{pool.left} bytes of the pool not used")
    source.require(source.left == 0, f"{source.left} bytes behind the streams")
    return streams


def read_stream(source: Bytes, pool: Bytes, depth: int = 0) -> bytes:
    """Read a coded stream, or take one of the pool."""
    head = source.varint("stream")
    n, mode = divmod(head, 4)
    source.require(n > 0 or mode == 0, f"empty stream of mode {mode}")
    if mode == 3:
        source.require(depth == 0, "pooled stream in a masked one")
        return Pooled(pool.take(n, "pooled stream"))
    if mode == 0:
        tables: Tables = {}
        out = b""
        while len(out) < n:
            plane = read_plane(source, "stream", min(PLANE_MAX, n - len(out)), tables).rest()
            source.require(len(plane) == min(PLANE_MAX, n - len(out)), f"plane of {len(plane)} bytes")
            out += plane
        return out
    if mode == 1:
        source.require(depth < DEPTH_MAX, "masked streams too deep")
        common = source.number(1, "common byte")
        mask = read_stream(source, pool, depth + 1)
        source.require(len(mask) == (n + 7) // 8, f"mask of {len(mask)} bytes for {n}")
        rest = Bytes(other := read_stream(source, pool, depth + 1), 0, len(other), bad=source.bad, short=source.bad)
        out = bytes(rest.number(1, "byte") if mask[i // 8] >> i % 8 & 1 else common for i in range(n))
        source.require(rest.left == 0, f"{rest.left} bytes not used")
        return out
    return decode_lz(source.part(source.varint("size of blocks"), "blocks"), n)


class Column:
    """A column of the model; ``earlier`` are those decoded before it."""

    def __init__(self, model: Bytes, n_columns: int, earlier: list[Column]) -> None:
        def number(most: int, what: str) -> int:
            value = model.varint(what)
            model.require(value <= most, f"{what} {value}, at most {most}")
            return value

        self.kind = number(FRESH, "kind")
        model.require(self.kind > 0, "kind 0")
        model.require(self.kind != MORE or any(c.kind == TEXT for c in earlier), "no text column before")
        self.place = number(n_columns - 1, "place")
        self.wide = number(3, "wide")
        n_exceptions = number(255, "exceptions")
        self.format = self.point = self.width = self.base = 0
        self.divisor = 1
        self.pattern = b""
        self.is_number = self.kind in {INTEGER, DATE}
        if self.is_number:
            if self.kind == INTEGER:
                self.format, self.point = number(ALIGNED, "format"), number(9, "point")
                self.width = number(WIDTHS.get(self.format, 18), "width")
                model.require(self.point == 0 or self.format not in {CLOCK, PADDED, TAIL}, "point of such a format")
                model.require(self.point > 0 or self.format not in {BARE, BARE_TRIMMED}, "bare without a point")
            else:
                self.pattern = model.take(number(31, "pattern length"), "pattern")
                self.check_pattern(model)
            self.base = unzigzag(model.varint("base"))
        self.range = number(ENTRIES_MAX.get(self.kind, RANGE_MAX + 1) - 1, "range")
        self.text_size = model.varint("bytes of texts") if self.kind == SORTED else 0
        self.end = number(256, "end") - 1 if self.kind in {TEXT, MORE} else -1
        if self.is_number:
            self.divisor = number(RANGE_MAX, "divisor")
            self.check_bounds(model)
        self.prediction = number(RANK, "prediction")
        self.j, self.k = number(len(earlier), "j") - 1, number(len(earlier), "k") - 1
        self.adjust = unzigzag(model.varint("adjust")) if COLUMN <= self.prediction <= DIFFERENCE else 0
        self.mask = -1
        self.exceptions: list[bytes] = []
        if n_exceptions:
            model.require(self.is_number, "exceptions of text")
            self.mask = number(len(earlier), "mask") - 1
            model.require(self.mask < 0 or bool(earlier[self.mask].exceptions), "mask of a column without exceptions")
            self.exceptions = [model.take(number(24, "length"), "exception") for _ in range(n_exceptions)]
        self.is_clock = self.kind == INTEGER and self.format == CLOCK
        self.key_size = 0
        self.check_prediction(model, earlier)

    def check_pattern(self, model: Bytes) -> None:
        """Refuse patterns that make no date-time."""
        runs: list[tuple[int, int]] = []
        for i, code in enumerate(self.pattern):
            if i and code == self.pattern[i - 1] and 1 <= code <= 9:
                runs[-1] = code, runs[-1][1] + 1
            else:
                runs.append((code, 1))
        sizes = {code: size for code, size in runs if 1 <= code <= 9}
        model.require(len(sizes) == sum(1 <= code <= 9 for code, _ in runs), "code twice")
        model.require(
            all(size == CODE_SIZES.get(code, size) and size <= 6 for code, size in sizes.items()), "code size"
        )
        month, day = (2 in sizes) + (3 in sizes), (4 in sizes) + (5 in sizes)
        self.has_day, self.has_year, self.digits = day == 1, 1 in sizes, sizes.get(9, 0)
        self.has_time = any(code in sizes for code in (6, 7, 8, 9))
        model.require(month < 2 and month == day and (self.has_day or not self.has_year), "parts of a date")
        model.require(self.has_day or self.has_time, "no date-time")

    def check_bounds(self, model: Bytes) -> None:
        """Refuse values that the text cannot show."""
        last = self.base + self.range * self.divisor
        model.require(self.divisor > 0 and abs(self.base) <= 1 << 62, "base or divisor")
        if self.kind == DATE:
            low, high = 0, 366 if self.has_day else 1
            if self.has_year:
                low = 1 - EPOCH - YEAR_0_DAYS
                high = dt.date.max.toordinal() + 1 - EPOCH
            day = 86_400 * 10**self.digits if self.has_time else 1
            model.require(low * day <= self.base and last < high * day, "date-time out of range")
        elif self.format == CLOCK:
            model.require(self.base in {0, 1} and self.range == 1439 and self.divisor == 1, "clock")
        else:
            model.require(self.format not in {PADDED, TAIL} or self.base >= 0, "negative and padded")
            model.require(self.format != TAIL or last < 10**self.width, "too large for a tail")

    def check_prediction(self, model: Bytes, earlier: list[Column]) -> None:
        """Refuse predictions that this column cannot have."""
        p = self.prediction
        model.require((p >= COLUMN) == (self.j >= 0), "j")
        model.require(self.k < 0 or p >= SUM, "k")
        model.require(self.k >= 0 or p not in {SUM, DIFFERENCE}, "no k")
        model.require(all(earlier[i].end < 0 for i in (self.j, self.k) if i >= 0), "prediction from text with an end")
        if self.kind in {TEXT, MORE}:
            model.require(p == ZERO, "prediction of text")
        elif p >= LAST:
            self.key_size = (earlier[self.j].range + 1) * (earlier[self.k].range + 1 if self.k >= 0 else 1)
            model.require(self.key_size <= KEYS_MAX, f"{self.key_size} keys")
            model.require(self.range <= 65_535 if p >= SAME else self.is_number, "prediction of such a column")
        else:
            model.require(self.is_number or p <= (self.kind == SORTED), "prediction of a dictionary")
            model.require(all(earlier[i].is_number for i in (self.j, self.k) if i >= 0), "prediction from text")

    def text(self, value: int) -> bytes:
        """Write a number or date-time."""
        x = self.base + value * self.divisor
        if self.kind == DATE:
            return self.date_text(x)
        if self.format == CLOCK:
            x = x // 60 * 100 + x % 60
        point = self.point
        digits = str(abs(x))
        if self.format in DECIMALS_KEPT:
            while point > DECIMALS_KEPT[self.format] and digits[-1] == "0":
                digits, point = digits[:-1] or "0", point - 1
        digits = digits.rjust(self.width if self.format in {PADDED, TAIL} else point + 1, "0")
        whole, rest = (digits[:-point], "." + digits[-point:]) if point else (digits, "")
        if self.format in {BARE, BARE_TRIMMED} and point and whole == "0":
            whole = ""
        if self.format == TAIL:
            whole = whole.rstrip("0")
        text = f"{'-' if x < 0 else ''}{whole}{rest}"
        return text.rjust(self.width if self.format == ALIGNED else 0).encode()

    def date_text(self, x: int) -> bytes:
        """Write a date-time."""
        unit = 10**self.digits
        day, rest = divmod(x, 86_400 * unit) if self.has_time else (x, 0)
        second, fraction = divmod(rest, unit)
        year, shift = 0, 0
        date = dt.date(1972, 1, 1)
        if self.has_year and day + EPOCH < 1:  # the year 0, which the calendar here lacks, is like 2000
            date = dt.date(2000, 1, 1) + dt.timedelta(day + EPOCH - 1 + YEAR_0_DAYS)
        elif self.has_year:
            date = dt.date.fromordinal(day + EPOCH)
            year = date.year
        elif self.has_day:
            date += dt.timedelta(day)
        parts = {
            1: f"{year + shift:04}",
            2: f"{date.month:02}",
            3: MONTHS[date.month - 1],
            4: f"{date.day:02}",
            5: f"{date.day:2}",
            6: f"{second // 3600:02}",
            7: f"{second // 60 % 60:02}",
            8: f"{second % 60:02}",
            9: f"{fraction:0{max(self.digits, 1)}}",
        }
        out, i = b"", 0
        while i < len(self.pattern):
            part = parts[self.pattern[i]].encode() if 1 <= self.pattern[i] <= 9 else self.pattern[i : i + 1]
            out += part
            i += len(part)
        return out


class Streams:
    """The streams of a payload, taken in their order."""

    def __init__(self, streams: list[bytes], source: Bytes) -> None:
        self.streams = streams
        self.at = 0
        self.source = source

    def next(self, size: int | None = None, *, is_text: bool = False) -> bytes:
        """Take the next stream, of this size."""
        self.source.require(self.at < len(self.streams), "too few streams")
        stream = self.streams[self.at]
        self.source.require(is_text or not isinstance(stream, Pooled), "pooled stream that is no text")
        self.source.require(size is None or len(stream) == size, f"stream of {len(stream)} bytes, {size} expected")
        self.at += 1
        return stream

    def planes(self, size: int, n: int) -> list[int]:
        """Take numbers of n bytes."""
        planes = [self.next(size) for _ in range(n)]
        return [sum(byte << (8 * k) for k, byte in enumerate(number)) for number in zip(*planes, strict=True)]

    def pairs(self, size: int, *, high: bool) -> list[int]:
        """Take numbers of one or two bytes."""
        return self.planes(size, 2 if high else 1)

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""`iter_records`: what record segments hold."""

from __future__ import annotations

import io
import random

import pytest
from record_more_tables import wrapped
from record_tables import CLEAN, boots

import glyd

SHAPES = {
    "csv": "delimited",
    "json": "json",
    "sql": "sql",
    "copy": "delimited",
    "log": "log",
    "calls": "log",
    "boots": "log",
    "jobs": "log",
    "wrapped": "log",
    "wrapped with spaces": "log",
    "queries": "log",
    "proxied": "log",
    "messages": "log",
    **dict.fromkeys(("pretty", "keyed", "arrays", "features", "lines", "requests"), "json"),
}


@pytest.mark.parametrize("name", CLEAN)
def test_columns_and_bytes_add_up(name):
    frame = glyd.compress(CLEAN[name], records=True)
    (segment,) = glyd.iter_segments(frame)
    (info,) = glyd.iter_records(frame)
    assert info.segment == segment
    assert info.shape == SHAPES.get(name, "delimited")
    assert info.n_rows > 1000
    stored = sum(column.stored_nbytes for column in info.columns)
    stored += info.model_nbytes + info.dictionaries_nbytes + info.stored_escapes_nbytes + info.selector_nbytes
    assert 0 < segment.stored_nbytes - stored < 40  # the header, and the number of streams
    tables = [(column.table, column.place) for column in info.columns]
    assert tables == sorted(set(tables))
    assert {table for table, _ in tables} <= set(range(info.n_tables))


def test_types_and_bounds():
    rows = [
        f"{i},2024-03-{1 + i // 60:02},{i % 40 / 4:.2f},{['red', 'green', 'blue'][i % 5 % 3]}\n" for i in range(1500)
    ]
    frame = glyd.compress("".join(rows).encode(), records=True)
    (info,) = glyd.iter_records(io.BytesIO(frame))
    numbers, times, decimals, words = info.columns
    assert (numbers.kind, numbers.least, numbers.most) == ("number", "0", "1499")
    assert (times.kind, times.least, times.most) == ("time", "2024-03-01", "2024-03-25")
    assert times.hint == b","
    assert (decimals.kind, decimals.least, decimals.most) == ("number", "0.00", "9.75")
    assert (words.kind, words.n_entries, words.least, words.most) == ("dictionary", 3, None, None)
    assert all(column.n_rows == 1500 for column in info.columns)


def test_names_stand_in_hints():
    frame = glyd.compress(CLEAN["json"], records=True)
    (info,) = glyd.iter_records(frame)
    assert any(column.hint.endswith(b'"id": ') for column in info.columns)


def test_other_segments_have_none():
    assert list(glyd.iter_records(glyd.compress(b"words " * 1000))) == []


def test_several_segments():
    frame = glyd.compress(CLEAN["csv"] * 4, records=True, segment_size=1 << 18)
    infos = list(glyd.iter_records(frame))
    assert [info.segment for info in infos] == list(glyd.iter_segments(frame))
    assert len(infos) > 2


def test_damage_is_refused_or_harmless():
    rng = random.Random(6)
    frame = glyd.compress(CLEAN["calls"][:20_000], records=True)
    refused = 0
    for _ in range(300):
        damaged = bytearray(frame)
        damaged[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)
        try:
            list(glyd.iter_records(damaged))
        except glyd.FormatError:
            refused += 1
    assert 50 < refused < 300


def test_keys_in_any_order_have_few_columns():
    (info,) = glyd.iter_records(glyd.compress(CLEAN["requests"], records=True))
    keys = {line.count(b'"') for line in CLEAN["requests"].splitlines()}
    assert len(keys) > 4
    assert info.n_tables < 40
    assert info.n_escapes < 20


def test_texts_in_json_that_are_made_alike_are_a_log():
    data = wrapped(boots(1500))
    frame = glyd.compress(data, records=True)
    assert glyd.decompress(frame) == data
    (info,) = glyd.iter_records(frame)
    assert info.shape == "log"
    assert len(frame) < 0.6 * len(glyd.compress(data))


def test_texts_in_json_that_are_not_made_alike_are_no_log():
    rng = random.Random(3)
    words = [rng.randbytes(rng.randrange(1, 5)).hex() for _ in range(900)]
    lines = "\n".join(" ".join(rng.choice(words) for _ in range(rng.randrange(8, 20))) for _ in range(1500))
    data = wrapped(lines.encode())
    frame = glyd.compress(data, records=True)
    assert glyd.decompress(frame) == data
    (info,) = glyd.iter_records(frame)
    assert info.shape == "json"

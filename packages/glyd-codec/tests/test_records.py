# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Record segments: tables come back byte for byte, odd ones too, and never take more than plain ones."""

from __future__ import annotations

import contextlib
import io
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record_odd_lines import odd_lines
from record_tables import CLEAN, LINES, RECORD_LEVELS, WORDS, odd_inputs

import glyd


def kinds(frame):
    return [segment.kind for segment in glyd.iter_segments(io.BytesIO(frame))]


def round_trip(data, level="max", **arguments):
    frame = glyd.compress(data, level, records=True, **arguments)
    assert glyd.decompress(frame) == data
    return frame


@pytest.mark.parametrize("name", CLEAN)
@pytest.mark.parametrize("level", RECORD_LEVELS)
def test_tables_become_records(name, level):
    data = CLEAN[name]
    frame = round_trip(data, level)
    assert set(kinds(frame)) == {"record"}
    assert len(frame) < 0.8 * len(glyd.compress(data, level))


@pytest.mark.parametrize("comma", [b",", b", "])
def test_dump_with_a_statement_a_row(comma):
    """As `pg_dump --inserts` and sqlite3 write them: the former puts a space after each comma."""
    rows = (line.replace(b",", comma) for line in CLEAN["csv"].splitlines()[1:4000])
    data = b"".join(b"INSERT INTO public.t (a, b) VALUES (%s);\n" % row.replace(b'"', b"'") for row in rows)
    frame = round_trip(data)
    assert set(kinds(frame)) == {"record"}
    assert len(frame) < 0.8 * len(glyd.compress(data))


def test_the_frame_says_that_it_has_records():
    frame = round_trip(CLEAN["csv"])
    plain = glyd.compress(CLEAN["csv"])
    assert glyd.get_frame_info(frame).decoder_memory_nbytes > glyd.get_frame_info(plain).decoder_memory_nbytes
    with pytest.raises(glyd.LimitError):
        glyd.Decompressor(limits=glyd.Limits(max_memory=1 << 20)).decompress(frame)
    limits = glyd.Limits(max_memory=glyd.get_frame_info(frame).decoder_memory_nbytes + (1 << 16))
    reader = glyd.Decompressor(threads=1, limits=limits)
    assert reader.decompress(frame) == CLEAN["csv"]


@pytest.mark.parametrize("value", [None, "yes", 2, "AUTO"])
def test_other_values_are_refused(value):
    with pytest.raises(glyd.ParameterError, match="records"):
        glyd.compress(b"x", records=value)


def test_what_is_no_table_stays_plain():
    noise = random.Random(4).randbytes(200_000)
    for data in (b"", b"x", b"a,b\n", noise, b"\0" * 5000, b"word " * 4000):
        assert glyd.compress(data, records="auto") == glyd.compress(data)
    assert "record" not in kinds(round_trip(noise + b"\n" * 20))


def never_larger(data, level):
    frame = round_trip(data, level)
    plain = len(glyd.compress(data, level))
    assert len(frame) <= plain
    writer = glyd.Compressor(level, records=True)
    writer.set_pledged_input_size(len(data))
    assert len(writer.compress(data) + writer.flush()) <= plain


@pytest.mark.parametrize("level", RECORD_LEVELS)
def test_a_few_bytes_less_are_not_worth_a_header(level):
    """A header that says that there may be records takes three bytes more."""
    for n in range(1, 60):
        never_larger(b"{}" * 3000 + b"\n" + b'{"a":%d}' % n * n, level)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 32), level=st.sampled_from(RECORD_LEVELS))
def test_never_larger_than_plain(seed, level):
    never_larger(odd_lines(random.Random(seed)), level)


@pytest.mark.parametrize("level", ["default", "max"])
def test_larger_segments_are_for_records_only(level):
    """What is no record is cut as without records: a few segments of noise and text that repeats in each."""
    rng = random.Random(8)
    text = b" ".join(rng.randbytes(rng.randrange(9)).replace(b"\n", b"") + b"\n" for _ in range(200_000))
    for data in (text * 9, rng.randbytes(9 << 20) + b"\n"):
        assert len(round_trip(data, level)) <= len(glyd.compress(data, level))


@pytest.mark.parametrize("threads", [1, 3])
def test_without_a_record_a_frame_says_nothing_of_records(threads):
    noise = random.Random(5).randbytes(40_000)
    for data in (b"", b"x", noise, b"\0" * 5000):
        frame = glyd.compress(data, "max", records=True, segment_size=1 << 13, threads=threads)
        assert frame == glyd.compress(data, "max", segment_size=1 << 13, threads=threads)
    some = noise + CLEAN["csv"][:90_000]  # segments of noise, then records
    frame = glyd.compress(some, "max", records=True, segment_size=1 << 13, threads=threads)
    assert {"raw", "record"} <= set(kinds(frame))
    assert glyd.decompress(frame) == some


@pytest.mark.parametrize("name", CLEAN)
def test_same_bytes_for_any_threads_and_pieces(name):
    data = CLEAN[name]
    frame = glyd.compress(data, records=True, segment_size=1 << 16, threads=1)
    assert glyd.compress(data, records=True, segment_size=1 << 16, threads=4) == frame
    for threads in (1, 3):
        writer = glyd.Compressor(records=True, segment_size=1 << 16, threads=threads)
        writer.set_pledged_input_size(len(data))
        pieces = [writer.compress(data[i : i + 7777]) for i in range(0, len(data), 7777)]
        assert b"".join(pieces) + writer.flush() == frame
    reader = glyd.Decompressor()
    got = b"".join(reader.decompress(frame[i : i + 999]) for i in range(0, len(frame), 999))
    assert got == data
    file = glyd.GlydFile(io.BytesIO(frame))
    for at in (0, 70_000, len(data) - 10, 65_535):
        file.seek(at)
        assert file.read(200) == data[at : at + 200]


ODD = list(odd_inputs())


def test_there_are_two_hundred_odd_inputs():
    assert len({name for name, _ in ODD}) == len(ODD) >= 200


@pytest.mark.parametrize(("name", "data"), ODD, ids=[name for name, _ in ODD])
def test_odd_inputs(name, data):
    frame = round_trip(data)
    assert len(frame) <= len(glyd.compress(data, "max")), name
    assert round_trip(data, "default", segment_size=1 << 15)


def test_an_odd_line_costs_little():
    clean = len(round_trip(CLEAN["csv"]))
    for odd in (b"x\n", b"1,2\n", b"\0\0\0\n", b'"unclosed\n'):
        assert len(round_trip(b"".join(LINES[:1000]) + odd + b"".join(LINES[1000:]))) < clean * 1.01 + 64


TEXT = st.text(alphabet="abc019-.,:;\" \t\n\\{}[]()'NT", max_size=12)
CELL = st.one_of(
    TEXT, st.integers(-(2**70), 2**70).map(str), st.floats().map(str), st.datetimes().map(str), st.sampled_from(WORDS)
)


@settings(max_examples=150, deadline=None)
@given(
    cells=st.lists(st.lists(CELL, min_size=1, max_size=6), min_size=1, max_size=12),
    sep=st.sampled_from([",", "\t", ";", " ", "|"]),
    end=st.sampled_from(["\n", "\r\n"]),
    repeat=st.integers(20, 200),
    level=st.sampled_from(RECORD_LEVELS),
)
def test_any_cells(cells, sep, end, repeat, level):
    lines = [sep.join(row) + end for row in cells]
    rng = random.Random(repeat)
    data = "".join(rng.choice(lines).replace("9", str(i % 10)) for i in range(repeat * 5)).encode()
    assert glyd.decompress(glyd.compress(data, level, records=True)) == data


@settings(max_examples=100, deadline=None)
@given(
    value=st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=9)),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=4)),
        max_leaves=9,
    ),
    n=st.integers(30, 300),
    ascii_only=st.booleans(),
)
def test_any_objects(value, n, ascii_only):
    rows = ({"i": i, "v": value, "w": [value] if i % 3 else i * 0.5} for i in range(n))
    data = "".join(json.dumps(row, ensure_ascii=ascii_only) + "\n" for row in rows).encode("utf-8", "surrogatepass")
    assert glyd.decompress(glyd.compress(data, records=True)) == data


@settings(max_examples=40, deadline=None)
@given(rows=st.lists(st.dictionaries(st.sampled_from("abcdefghij"), st.integers(0, 9), max_size=6), min_size=9))
def test_any_sets_of_keys(rows):
    data = "".join(json.dumps(row) + "\n" for row in rows * (3000 // len(rows))).encode()
    assert glyd.decompress(glyd.compress(data, records=True)) == data


@settings(max_examples=100, deadline=None)
@given(
    value=st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=9)),
        lambda inner: st.one_of(st.lists(inner, max_size=6), st.dictionaries(st.text(max_size=5), inner, max_size=4)),
        max_leaves=9,
    ),
    n=st.integers(30, 300),
    indent=st.sampled_from([None, 0, 2]),
    keyed=st.booleans(),
    cuts=st.tuples(st.integers(0, 3000), st.integers(0, 3000)),
)
def test_any_documents(value, n, indent, keyed, cuts):
    rows = [{"i": i, "v": value, "w": [value] if i % 3 else i * 0.5} for i in range(n)]
    data = json.dumps({str(i): row for i, row in enumerate(rows)} if keyed else rows, indent=indent).encode()
    data = data[cuts[0] : len(data) - cuts[1]]
    assert glyd.decompress(glyd.compress(data, records=True)) == data


@pytest.mark.parametrize("name", ["pretty", "keyed", "arrays"])
def test_documents_in_segments(name):
    """Segments begin within strings, rows and lists."""
    frame = round_trip(CLEAN[name], segment_size=1 << 15)
    assert set(kinds(frame)) == {"record"}


def test_brackets_without_end():
    for data in (b"[" * 200_000, b'{"a":' * 50_000, b'[{"a":1},' * 20_000 + b"]" * 90_000, b'["' + b'\\"' * 90_000):
        round_trip(data)


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(sorted(CLEAN)),
    changes=st.lists(st.tuples(st.integers(0, 1 << 30), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_damage_is_seen(name, changes):
    frame = bytearray(FRAMES[name])
    for at, value in changes:
        frame[at % len(frame)] ^= value
    if bytes(frame) == FRAMES[name]:
        return
    with contextlib.suppress(glyd.GlydError):
        assert glyd.decompress(bytes(frame), max_size=1 << 24) == CLEAN[name][:40_000]


FRAMES = {name: glyd.compress(data[:40_000], records=True) for name, data in CLEAN.items()}

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Pages of keys and values: round trips, golden pages, and a second reader written from the specification."""

from __future__ import annotations

import importlib
import random
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glyd

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "native" / "tests" / "golden_kv"
if not (GOLDEN / "manifest.txt").is_file():
    pytest.skip(f"golden pages are in a checkout only, not in an sdist: no {GOLDEN}", allow_module_level=True)

sys.path.insert(0, str(ROOT / "tools"))
reference = importlib.import_module("reference_kv")
FormatError = importlib.import_module("reference_bytes").FormatError
make_kv_quads = importlib.import_module("make_kv_quads")
sys.path.remove(str(ROOT / "tools"))

ENTRIES = [line.split() for line in (GOLDEN / "manifest.txt").read_text(encoding="utf-8").splitlines()]
FILES = {name: (int(status), int(channels), int(check, 16)) for name, status, channels, check in ENTRIES}
CATEGORIES = {10: "magic", 11: "version", 12: "feature", 13: "header", 20: "corrupt", 22: "truncated"}
CLASSES = {
    "magic": glyd.FormatError,
    "version": glyd.UnsupportedVersionError,
    "feature": glyd.UnsupportedVersionError,
    "header": glyd.CorruptDataError,
    "corrupt": glyd.CorruptDataError,
    "truncated": glyd.TruncatedError,
}


def values(rng, channels, spread=2, odd=0.0):
    """Return the values of a page, exponents by channel; ``odd``: the share of values with any bits."""
    tops = [rng.randrange(110, 130) for _ in range(channels)]
    page = bytearray()
    for _ in range(glyd.KV_TOKENS):
        for top in tops:
            bits = rng.randrange(1 << 16)
            if rng.random() >= odd:
                down = min(int(rng.expovariate(1 / spread)), 12)
                bits = bits & 0x807F | (top - down) << 7
            page += bits.to_bytes(2, "little")
    return bytes(page)


def test_the_manifest_names_every_file_once():
    assert len(FILES) == len(ENTRIES) >= 20
    assert sorted(FILES) == sorted(path.name for path in GOLDEN.glob("*.page"))
    assert {status for status, *_ in FILES.values()} == {0, *CATEGORIES}


@pytest.mark.parametrize("name", FILES)
def test_golden(name):
    data = (GOLDEN / name).read_bytes()
    status, channels, check = FILES[name]
    if status == 0:
        (info,) = glyd.read_kv_pages(data)
        assert (info.channels, info.nbytes, info.is_packed) == (channels, len(data), "noise" not in name)
        content = glyd.unpack_kv_pages(data, channels)
        assert glyd.checksum(content) == check
        assert reference.decode(data) == content
        assert glyd.pack_kv_pages(content, channels) == data
    elif data:  # no bytes are no pages
        with pytest.raises(CLASSES[CATEGORIES[status]]):
            glyd.unpack_kv_pages(data, int.from_bytes(data[4:6], "little") & ~15 or 16)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from([16, 32, 80]), st.sampled_from([0.0, 0.01, 1.0]), st.integers(1, 4))
def test_both_readers_agree(seed, channels, odd, spread):
    content = values(random.Random(seed), channels, spread, odd)
    page = glyd.pack_kv_pages(content, channels)
    assert glyd.unpack_kv_pages(page, channels) == content
    assert reference.decode(page) == content


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(1, 3))
def test_both_readers_refuse_the_same_pages(seed, n):
    rng = random.Random(seed)
    page = bytearray(glyd.pack_kv_pages(values(rng, 16, odd=0.01), 16))
    for _ in range(n):
        at = rng.choice((rng.randrange(32), rng.randrange(32, 48), rng.randrange(2096, len(page))))
        page[at] ^= 1 << rng.randrange(8)
    cut = bytes(page[: rng.choice((len(page), len(page), rng.randrange(1, len(page))))])
    try:
        expected = reference.decode(cut)
    except FormatError as error:
        with pytest.raises(CLASSES[error.category]):
            glyd.unpack_kv_pages(cut, 16)
        return
    if len(cut) == glyd.read_kv_pages(cut)[0].nbytes:
        assert glyd.unpack_kv_pages(cut, 16) == expected


def test_many_pages_on_threads():
    rng = random.Random(7)
    content = b"".join(values(rng, 64, odd=i % 3 / 2) for i in range(3)) * 30
    one = glyd.pack_kv_pages(content, 64)
    assert glyd.pack_kv_pages(content, 64, threads=3) == one
    assert [page.is_packed for page in glyd.read_kv_pages(one)] == [True, False, False] * 30
    assert glyd.unpack_kv_pages(one, 64, threads=3) == content
    out = bytearray(len(content) + 5)
    assert glyd.unpack_kv_pages(one, 64, out=out) == len(content)
    assert out == content + bytes(5)


def test_pages_by_their_places():
    rng = random.Random(8)
    each = [values(rng, 32) for _ in range(3)]
    pages = glyd.pack_kv_pages(b"".join(each), 32)
    sizes = [page.nbytes for page in glyd.read_kv_pages(pages)]
    places = [0, sizes[0], sizes[0] + sizes[1]]
    wanted = [2, 0, 2, 1]
    found = glyd.unpack_kv_pages(pages, 32, places=[places[i] for i in wanted])
    assert found == b"".join(each[i] for i in wanted)
    for place in (-1, len(pages) + 1, 1, len(pages)):
        with pytest.raises((glyd.ParameterError, glyd.FormatError)):
            glyd.unpack_kv_pages(pages, 32, places=[place])


def test_places_in_out():
    rng = random.Random(9)
    each = [values(rng, 32) for _ in range(40)]
    plain = len(each[0])
    pages = glyd.pack_kv_pages(b"".join(each), 32)
    order = list(range(40))
    rng.shuffle(order)
    out = bytearray(41 * (plain + 2))
    targets = [i * (plain + 2) for i in order]
    assert glyd.unpack_kv_pages(pages, 32, out=out, out_places=targets, threads=2) == 40 * plain
    for content, at in zip(each, targets, strict=True):
        assert out[at : at + plain + 2] == content + bytes(2)
    assert out[40 * (plain + 2) :] == bytes(plain + 2)
    one = glyd.pack_kv_pages(each[0], 32)
    for at in (-1, 1, plain + 1):
        with pytest.raises(glyd.BufferTooSmallError, match=f"at byte {at} does not fit into out, which has {plain}"):
            glyd.unpack_kv_pages(one, 32, out=bytearray(plain), out_places=[at])
    with pytest.raises(glyd.ParameterError, match=f"pages at bytes 5 and 6 of out overlap: each takes {plain}"):
        glyd.unpack_kv_pages(one * 2, 32, out=bytearray(3 * plain), out_places=[6, 5])
    with pytest.raises(glyd.ParameterError, match="out_places has 1 places for 2 pages"):
        glyd.unpack_kv_pages(one * 2, 32, out=bytearray(3 * plain), out_places=[0])


def test_bits_of_a_value():
    page = glyd.pack_kv_pages(values(random.Random(1), 128, spread=1), 128)
    assert 8 * len(page) / (128 * 128) < 11.15


def test_the_table_of_quads_is_that_of_the_costs():
    assert make_kv_quads.HEADER.read_text(encoding="ascii") == make_kv_quads.header()
    assert make_kv_quads.quads() == reference.QUADS


def test_nothing_is_no_page():
    assert glyd.pack_kv_pages(b"", 64) == b""
    assert glyd.unpack_kv_pages(b"", 64) == b""
    assert glyd.read_kv_pages(b"") == []


def test_wrong_arguments():
    page = glyd.pack_kv_pages(bytes(128 * 16 * 2), 16)
    for channels in (0, -16, 8, 24, 528, 1 << 32):
        with pytest.raises(glyd.ParameterError, match=f"multiple of 16 channels, 512 at most; not {channels}"):
            glyd.pack_kv_pages(b"", channels)
    with pytest.raises(glyd.ParameterError, match="takes 4096 bytes: 4097 are 1 too many"):
        glyd.pack_kv_pages(bytes(4097), 16)
    with pytest.raises(glyd.CorruptDataError, match="page at byte 0 has 16 channels, not 32"):
        glyd.unpack_kv_pages(page, 32)
    with pytest.raises(glyd.BufferTooSmallError, match="take 4096 bytes, out has 4095"):
        glyd.unpack_kv_pages(page, 16, out=bytearray(4095))
    with pytest.raises(glyd.FormatError, match=f"no page of keys or values at byte {len(page)}: 0000, not 9d4b"):
        glyd.read_kv_pages(page + bytes(64))

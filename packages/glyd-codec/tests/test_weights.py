# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Packs of matrices in memory: any weights come back, and what is no pack is refused."""

from __future__ import annotations

import dataclasses
import inspect
import random
import struct
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glyd

LAYOUTS = ["tiered", "mma12"]


class Weights:
    """Bytes whose text is short: hypothesis prints all arguments."""

    def __init__(self, data):
        self.data = data

    def __getitem__(self, part):
        return self.data[part]


@pytest.fixture(scope="module")
def gauss(tools):
    return Weights(tools.make_bf16(300 * 400))


def strange(gauss, rows, cols, seed, n):
    """Return weights with n random bit patterns, a row of zeros and a row of signed zeros."""
    rng = random.Random(seed)
    data = bytearray(gauss[: 2 * rows * cols])
    for _ in range(n):
        at = 2 * rng.randrange(rows * cols)
        data[at : at + 2] = rng.randbytes(2)
    if rows > 5:
        data[2 * cols : 4 * cols] = bytes(2 * cols)
        data[4 * cols : 6 * cols] = b"\0\x80" * cols
    return bytes(data)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(64, 128), (300, 400), (183, 377), (61, 1000), (1000, 119)])
def test_pack_and_unpack(gauss, layout, shape):
    rows, cols = shape
    data = strange(gauss, rows, cols, 1, 200)
    pack = glyd.pack_weights(data, rows, cols, layout=layout)
    assert type(pack) is bytes
    assert len(pack) <= 2 * rows * cols * 15 // 16
    assert glyd.unpack_weights(pack) == data
    assert type(glyd.unpack_weights(pack)) is bytearray
    info = glyd.read_weights_info(pack + b"more")
    assert (info.layout, info.rows, info.cols, info.nbytes) == (layout, rows, cols, len(pack))
    assert info.n_row_blocks == -(-rows // 64)
    assert info.n_tiles == -(-cols // info.tile_cols)
    places = [info.blocks_at, info.index_at, info.tiles_at, info.escapes_at, info.exc_places_at, info.exc_values_at]
    assert places == sorted(places)
    assert all(place % 128 == 0 for place in places)
    assert info.tiles_at + info.n_row_blocks * info.n_tiles * info.tile_nbytes <= info.escapes_at
    assert info.exc_values_at + 2 * info.n_exceptions <= info.nbytes
    assert 0 < info.block_exc_max <= info.n_exceptions
    assert (info.n_escape_units > 0) == (info.tile_escape_max > 0) == (layout == "tiered")
    with pytest.raises(dataclasses.FrozenInstanceError):
        info.rows = 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_threads_and_buffers_do_not_change_the_result(tools, layout):
    data = tools.make_bf16(1000 * 1100)
    pack = glyd.pack_weights(data, 1000, 1100, layout=layout)
    for threads in (0, 2, 7):
        assert glyd.pack_weights(data, 1000, 1100, layout=layout, threads=threads) == pack
        assert glyd.unpack_weights(pack, threads=threads) == data
    odd = memoryview(b"x" + data)[1:]
    assert glyd.pack_weights(odd, 1000, 1100, layout=layout) == pack
    assert glyd.unpack_weights(memoryview(b"x" + pack)[1:]) == data
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: glyd.pack_weights(data, 1000, 1100, layout=layout), range(8))) == {pack}


@given(
    layout=st.sampled_from(LAYOUTS),
    rows=st.integers(1, 200),
    cols=st.integers(1, 300),
    n=st.sampled_from([0, 3, 300]),
    first=st.integers(0, 200),
    count=st.integers(0, 200),
    threads=st.integers(1, 3),
)
@settings(max_examples=100, deadline=None)
def test_any_rows_of_any_shape(gauss, layout, rows, cols, n, first, count, threads):
    data = strange(gauss, rows, cols, n, n)
    pack = glyd.pack_weights(data, rows, cols, layout=layout, threads=threads)
    if pack is None:
        return
    first = min(first, rows)
    count = min(count, rows - first)
    want = data[2 * cols * first : 2 * cols * (first + count)]
    assert glyd.unpack_weights(pack, first_row=first, n_rows=count, threads=threads) == want
    assert glyd.unpack_weights(pack, first_row=first) == data[2 * cols * first :]
    out = bytearray(b"\xaa" * (len(want) + 9))
    assert glyd.unpack_weights(pack, first_row=first, n_rows=count, out=out, threads=threads) == len(want)
    assert out == want + b"\xaa" * 9


@given(st.integers(0, 1 << 30), st.integers(0, 255), st.integers(1, 40), st.sampled_from(LAYOUTS))
@settings(max_examples=50, deadline=None)
def test_exponents_anywhere(seed, lowest, spread, layout):
    rng = random.Random(seed)
    words = (
        rng.getrandbits(1) << 15 | (lowest + rng.randrange(spread)) % 256 << 7 | rng.getrandbits(7) for _ in range(8192)
    )
    data = b"".join(word.to_bytes(2, "little") for word in words)
    pack = glyd.pack_weights(data, 64, 128, layout=layout)
    assert pack is not None or spread > 3 or lowest + spread > 250 or lowest < 12
    assert pack is None or glyd.unpack_weights(pack) == data


@given(st.integers(0, 1 << 30), st.integers(1, 2), st.integers(9, 248))
@settings(max_examples=20, deadline=None)
def test_bases_take_the_fewest_bits(seed, spread, middle):
    """Base of a tiered row: the smallest of 10 … 250 that takes the fewest bits."""
    rng = random.Random(seed)
    rows, cols = 64, 256
    matrix = [[max(0, round(rng.gauss(middle, spread))) for _ in range(cols)] for _ in range(rows)]
    data = b"".join(struct.pack(f"<{cols}H", *(e << 7 | rng.getrandbits(7) | 1 for e in row)) for row in matrix)
    pack = glyd.pack_weights(data, rows, cols, layout="tiered")
    assert pack is not None  # it pays: at most 13 bits a weight, but for exponents of 0 and less
    bits = dict.fromkeys(range(3), 2) | dict.fromkeys((-1, 3, -2), 4) | dict.fromkeys((-3, 4, *range(-9, -3)), 8)
    for row, base in zip(matrix, pack[192:256], strict=True):
        counts = Counter(row)
        costs = {b: sum(n * bits.get(e - b, 56) for e, n in counts.items()) for b in range(10, 251)}
        assert base == min(costs, key=costs.get)


def test_what_does_not_pay(gauss):
    noise = random.Random(1).randbytes(2 * 256 * 256)
    assert glyd.pack_weights(noise, 256, 256) is None
    assert glyd.pack_weights(gauss[:8], 2, 2) is None
    assert glyd.pack_weights(gauss[:8192], 4096, 1, layout="mma12") is None


def test_wrong_arguments(gauss):
    data = gauss[: 2 * 64 * 128]
    pack = glyd.pack_weights(data, 64, 128)
    with pytest.raises(glyd.ParameterError, match="are 16384 bytes, not 16382") as caught:
        glyd.pack_weights(data[:-2], 64, 128)
    assert (caught.value.expected, caught.value.found) == (16384, 16382)
    for rows, cols in ((0, 128), (-1, 128), (64, 0), (1 << 37, 1), (1, 1 << 26), (1 << 36, 1 << 25)):
        with pytest.raises(glyd.ParameterError, match="not"):
            glyd.pack_weights(data, rows, cols)
    with pytest.raises(glyd.ParameterError, match="layout must be one of tiered, mma12; not 'fp8'"):
        glyd.pack_weights(data, 64, 128, layout="fp8")
    for threads in (-1, 1025):
        with pytest.raises(glyd.ParameterError):
            glyd.pack_weights(data, 64, 128, threads=threads)
        with pytest.raises(glyd.ParameterError):
            glyd.unpack_weights(pack, threads=threads)
    for first, n in ((-1, 1), (65, 0), (0, 65), (64, 1), (0, -1), (1 << 70, 1)):
        with pytest.raises(glyd.ParameterError, match="of a pack of 64 rows"):
            glyd.unpack_weights(pack, first_row=first, n_rows=n)
    with pytest.raises(glyd.BufferTooSmallError) as small:
        glyd.unpack_weights(pack, out=bytearray(16383))
    assert (small.value.expected, small.value.found) == (16384, 16383)
    with pytest.raises(TypeError):
        glyd.pack_weights("weights", 64, 128)
    with pytest.raises(TypeError):
        glyd.unpack_weights(7)
    with pytest.raises(BufferError):
        glyd.unpack_weights(pack, out=data)
    shared = bytearray(pack + bytes(16384))
    with pytest.raises(glyd.ParameterError, match="shares memory"):
        glyd.unpack_weights(memoryview(shared)[: len(pack)], out=memoryview(shared)[128:])
    assert glyd.unpack_weights(memoryview(shared)[: len(pack)], out=memoryview(shared)[len(pack) :]) == 16384
    assert shared[len(pack) :] == data


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_no_pack(gauss, layout):
    pack = glyd.pack_weights(gauss.data, 300, 400, layout=layout)
    for call in (glyd.read_weights_info, glyd.unpack_weights):
        for cut in (0, 3, 4, 127, 128, len(pack) - 1):
            with pytest.raises(glyd.TruncatedError) as caught:
                call(pack[:cut])
            assert caught.value.found == cut
            assert caught.value.expected == (len(pack) if cut >= 128 else 128)
        for at, value, error, text in (
            (0, 0, glyd.FormatError, "no pack of weights: it starts with 00474c57, not 9d474c57"),
            (4, 9, glyd.UnsupportedVersionError, "version 9, not 1"),
            (5, 7, glyd.UnsupportedVersionError, "layout 7, not one of"),
            (6, 1, glyd.CorruptDataError, "header"),
            (8, 0, glyd.CorruptDataError, "header"),
            (31, 1, glyd.CorruptDataError, "header"),
        ):
            broken = bytearray(pack)
            broken[at] = value
            with pytest.raises(error, match=text):
                call(broken)
    broken = bytearray(pack)
    broken[128 * 3 + 1] = 9  # version in the header of row block 2
    assert glyd.unpack_weights(broken, n_rows=128) == gauss[: 2 * 128 * 400]
    with pytest.raises(glyd.CorruptDataError, match="rows 128 … 299"):
        glyd.unpack_weights(broken, first_row=128)


@given(st.data(), st.sampled_from(LAYOUTS))
@settings(max_examples=200, deadline=None)
def test_changed_packs_are_refused_or_give_weights(gauss, data, layout):
    """Never a crash, and never anything but the error of a damaged pack."""
    pack = bytearray(glyd.pack_weights(strange(gauss, 120, 250, 3, 40), 120, 250, layout=layout))
    places = st.integers(0, 400) | st.integers(0, len(pack) - 1)
    for at, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=5)):
        pack[at] = value
    try:
        weights = glyd.unpack_weights(pack)
    except glyd.FormatError:
        return
    assert len(weights) == 2 * 120 * 250


def test_signatures():
    """The names and defaults that other packages build on."""
    assert str(inspect.signature(glyd.pack_weights)).startswith("(data:")
    defaults = {p.name: p.default for p in inspect.signature(glyd.unpack_weights).parameters.values()}
    del defaults["pack"]
    assert defaults == {"first_row": 0, "n_rows": None, "out": None, "threads": 1}

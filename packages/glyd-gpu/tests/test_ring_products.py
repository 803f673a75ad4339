# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Products through rings, by pairs of blocks and with split roles, compiled for the CPU (tests/emulation): every thread of every block."""

import ctypes
import struct

import numpy as np
import pytest
import torch

import glyd_codec
from glyd_gpu import LAYOUTS
from glyd_gpu._matrices import bits

GAP = 128  # what packs and tensors begin at a multiple of


@pytest.fixture(scope="module")
def split(compile_kernels):
    return compile_kernels("split_tiered.cpp").emulated_split


@pytest.fixture(scope="module")
def ring(compile_kernels):
    return compile_kernels("ring_products.cpp").emulated_ring


@pytest.fixture(scope="module")
def pair(compile_kernels):
    return compile_kernels("pair_products.cpp").emulated_pair


def aligned(data, nbytes=None):
    """Return a copy at a multiple of 128; of a number of bytes, filled with NaNs."""
    source = np.full(nbytes, 0xFF, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    buffer = np.zeros(source.size + GAP, np.uint8)
    start = -buffer.ctypes.data % GAP
    buffer[start : start + source.size] = source
    return buffer[start : start + source.size]


def matrix(rows, cols, share, special=False):
    """Return weights [rows, cols] bf16, a share of them exceptions; special: such as bf16 cannot hold beside their rows."""
    w = torch.randn(rows, cols) * 0.02
    far = torch.randn(rows, cols) * torch.exp2(torch.randint(-40, 3, (rows, cols)).float())
    w = torch.where(torch.rand(rows, cols) < share, far, w)
    if special:
        w[5, 17], w[70, 300], w[rows - 1, cols - 1], w[100] = 1e-39, -3e-39, 2.0**100, 0.0
        w[9] = 0.0
        w[9, 11], w[9, 12] = 2.0**-120, 1.0
    return w.to(torch.bfloat16)


def product(function, w, tokens, config, order=1, layout="tiered"):
    """Return the product [tokens, rows] of random activations and a bias, and what float64 gives."""
    rows, cols = w.shape
    pack = glyd_codec.pack_weights(bits(w).numpy(), rows, cols, layout=layout)
    assert pack is not None
    units, exceptions = struct.unpack_from("<QQ", pack, 32)
    meta = np.array([LAYOUTS[layout], rows, cols, units, exceptions, *struct.unpack_from("<II", pack, 48)], np.int64)
    x, bias = torch.randn(tokens, cols).to(torch.bfloat16), torch.randn(rows).to(torch.bfloat16)
    y = aligned(None, tokens * rows * 2)
    partials = aligned(None, 8 * 2 * 4 * 64 * config[0] * 4)  # eight workers
    counters = np.zeros(1024, np.uint32)
    buffers = [aligned(data) for data in (bits(x).numpy().tobytes(), bits(bias).numpy().tobytes(), pack)]
    at = [ctypes.c_void_p(each.ctypes.data) for each in (y, *buffers, meta, partials, counters)]
    numbers = (ctypes.c_int32 * len(config))(*config)
    status = function(
        at[0], at[1], tokens, at[2], at[3], ctypes.c_uint64(len(pack)), at[4], at[5], at[6], numbers, order
    )
    assert status == 0
    assert not counters.any()  # as the next launch expects them
    got = torch.from_numpy(y.view(np.int16).copy().reshape(tokens, rows)).view(torch.bfloat16)
    return got, x.double() @ w.double().t() + bias.double()


@pytest.mark.parametrize(
    ("config", "tokens"),
    [
        ((64, 2, 4, 1, 0, 0), 5),
        ((128, 2, 3, 1, 0, 0), 70),
        ((128, 2, 3, 0, 3, 0), 128),  # parts of tiles
        ((64, 2, 4, 0, 5, 2), 70),  # several tiles of tokens
    ],
)
def test_split_roles_are_close_to_float64(split, config, tokens):
    torch.manual_seed(3)
    got, want = product(split, matrix(190, 376, 0.008, special=True), tokens, config)
    error = (got.double() - want).norm(dim=0) / want.norm(dim=0)
    assert error.max().item() < 8e-3  # every row: bf16 rounds to 2^-9


def test_more_exceptions_than_are_listed(split):
    torch.manual_seed(4)
    got, want = product(split, matrix(128, 512, 0.05), 9, (64, 2, 4, 0, 7, 0))
    assert ((got.double() - want).norm(dim=0) / want.norm(dim=0)).max().item() < 8e-3


def test_bits_do_not_depend_on_the_order_of_threads(split, ring, pair):
    w = matrix(190, 640, 0.002)
    known = ((split, (64, 2, 4, 0, 4, 0)), (ring, (8, 3, 1, 1, 0, 4, 0)), (pair, (128, 6, 3, 8, 0)))
    for function, config in known:
        results = []
        for order in (1, 12345):
            torch.manual_seed(5)
            layout = "mma12" if function is pair else "tiered"
            results.append(product(function, w, 7, config, order, layout)[0])
        assert torch.equal(*(each.view(torch.int16) for each in results))


@pytest.mark.parametrize(
    ("layout", "config", "tokens"),
    [
        ("tiered", (8, 3, 1, 1, 0, 4, 0), 5),  # parts of tiles
        ("tiered", (8, 1, 3, 1, 1, 0, 2), 8),
        ("tiered", (64, 3, 1, 1, 0, 2, 1), 40),
        ("mma12", (32, 1, 2, 2, 1, 0, 0), 20),
        ("mma12", (64, 2, 1, 1, 0, 4, 2), 64),
        ("mma12", (32, 1, 2, 2, 1, 0, 0), 70),  # three tiles of 24 tokens
        ("tiered", (64, 3, 1, 1, 1, 0, 1), 100),  # two of 56
    ],
)
def test_rings_are_close_to_float64(ring, layout, config, tokens):
    torch.manual_seed(6)
    got, want = product(ring, matrix(190, 1000, 0.003, special=True), tokens, config, layout=layout)
    error = (got.double() - want).norm(dim=0) / want.norm(dim=0)
    assert error.max().item() < 8e-3


@pytest.mark.parametrize(
    ("rows", "cols", "tokens", "config", "share", "order"),
    [
        (
            190,
            1000,
            70,
            (256, 2, 1, 8, 0),
            0.003,
            1,
        ),  # more stages than the ring has; the second block's rows end early
        (600, 256, 300, (192, 4, 3, 8, 2), 0.003, 1),  # six tiles, two pairs
        (300, 576, 257, (256, 6, 3, 1, 1), 0.003, 1),  # four tiles, three pairs: one of them is cut in three
        (300, 576, 257, (256, 6, 3, 1, 1), 0.003, 2),  # threads in another order
        (64, 384, 30, (128, 8, 4, 2, 2), 0.0, 1),  # one tile in four parts; the second block has no rows
        (192, 512, 200, (128, 2, 1, 2, 0), 0.04, 1),  # more exceptions than are listed at a time
    ],
)
def test_pairs_of_blocks_are_close_to_float64(pair, rows, cols, tokens, config, share, order):
    torch.manual_seed(7)
    got, want = product(pair, matrix(rows, cols, share), tokens, config, order, "mma12")
    error = (got.double() - want).norm(dim=0) / want.norm(dim=0)
    assert error.max().item() < 8e-3

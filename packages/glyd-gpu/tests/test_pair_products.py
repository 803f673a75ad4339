# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Products by pairs of blocks, compiled for the CPU (tests/emulation): every thread of both blocks of a cluster."""

import ctypes
import struct

import numpy as np
import pytest
import torch

import glyd_codec
from glyd_gpu import LAYOUTS
from glyd_gpu._matrices import bits

GAP = 128  # what packs and tensors begin at a multiple of
COUNTERS = 1 << 20  # bytes of the workspace that are zero between launches


@pytest.fixture(scope="module")
def pair(compile_kernels):
    function = compile_kernels("pair_products.cpp").emulated_pair
    function.restype = ctypes.c_int64
    return function


def aligned(data, nbytes=None):
    """Return a copy at a multiple of 128; of a number of bytes, filled with NaNs."""
    source = np.full(nbytes, 0xFF, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    buffer = np.zeros(source.size + GAP, np.uint8)
    start = -buffer.ctypes.data % GAP
    buffer[start : start + source.size] = source
    return buffer[start : start + source.size]


def product(function, rows, cols, tokens, config, share=0.003, order=1):
    """Return the product [tokens, rows] of random weights and activations, and what float64 gives."""
    w = torch.randn(rows, cols) * 0.02
    w = torch.where(torch.rand(rows, cols) < share, w * 2.0**-12, w.sign() * w.abs().clamp(2.0**-10, 0.06))
    w = w.to(torch.bfloat16)
    pack = glyd_codec.pack_weights(bits(w).numpy(), rows, cols, layout="mma12")
    assert pack is not None
    units, exceptions = struct.unpack_from("<QQ", pack, 32)
    assert (exceptions > 0) == (share > 0)
    meta = np.array([LAYOUTS["mma12"], rows, cols, units, exceptions, *struct.unpack_from("<II", pack, 48)], np.int64)
    x, bias = torch.randn(tokens, cols).to(torch.bfloat16), torch.randn(rows).to(torch.bfloat16)
    y = aligned(None, tokens * rows * 2)
    buffers = [aligned(data) for data in (bits(x).numpy().tobytes(), bits(bias).numpy().tobytes(), pack)]
    at = [ctypes.c_void_p(each.ctypes.data) for each in (y, *buffers, meta)]
    numbers = (ctypes.c_int32 * len(config))(*config)

    def call(workspace):
        where, nbytes = (None, 0) if workspace is None else (ctypes.c_void_p(workspace.ctypes.data), workspace.size)
        return function(
            *at[:2], tokens, *at[2:4], ctypes.c_uint64(len(pack)), at[4], where, ctypes.c_int64(nbytes), numbers, order
        )

    needed = call(None)
    assert needed >= 0
    if needed:
        workspace = aligned(None, needed)
        workspace[:COUNTERS] = 0
        assert call(workspace) == needed
        assert not workspace[:COUNTERS].any()  # as the next launch expects them
    got = torch.from_numpy(y.view(np.int16).copy().reshape(tokens, rows)).view(torch.bfloat16)
    return got, x.double() @ w.double().t() + bias.double()


@pytest.mark.parametrize(
    ("rows", "cols", "tokens", "config", "share"),
    [
        (190, 1000, 70, (256, 2, 1, 8, 0), 0.003),  # more stages than the ring has; the second block's rows end early
        (600, 256, 300, (192, 4, 3, 8, 2), 0.003),  # six tiles of two pairs; nothing is left over
        (300, 576, 257, (256, 6, 3, 1, 1), 0.003),  # four tiles of three pairs: the fourth in three parts
        (64, 384, 30, (128, 8, 4, 2, 2), 0.0),  # one tile in four parts; the second block has no rows
    ],
)
def test_products_are_close_to_float64(pair, rows, cols, tokens, config, share):
    torch.manual_seed(6)
    got, want = product(pair, rows, cols, tokens, config, share)
    error = (got.double() - want).norm(dim=0) / want.norm(dim=0)
    assert error.max().item() < 8e-3  # every row: bf16 rounds to 2^-9


def test_bits_do_not_depend_on_the_order_of_threads(pair):
    results = []
    for order in (1, 12345):
        torch.manual_seed(5)
        results.append(product(pair, 190, 512, 40, (128, 6, 3, 8, 0), order=order)[0])
    assert torch.equal(*(each.view(torch.int16) for each in results))

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Staged products, compiled for the CPU (tests/emulation): what tiles decode to, and that all work is done once."""

import ctypes
import struct

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import glyd_codec
from glyd_gpu._matrices import bits

HEADER, BLOCK, TILE = 128, 128, 6144


@pytest.fixture(scope="module")
def emulated(compile_kernels):
    library = compile_kernels("staged_tiles.cpp")
    library.emulated_staged_work.restype = ctypes.c_int64
    return library


def weights(rows, cols, far):
    """Return a matrix [rows, cols] bf16 with a share of weights that are exceptions."""
    x = torch.randn((rows, cols)) * 0.02 * torch.exp2(torch.randint(-30, 30, (rows, 1)).float())
    x = torch.where(torch.rand((rows, cols)) < far, x * 2.0**-60, x)
    x[1] = -0.0
    x[3::5, 7] = float("inf")
    x[2, ::9] = 0.0
    x[rows - 1, cols - 1] = float("nan")
    return x.to(torch.bfloat16)


def sections(pack):
    """Return where tiles, places and values begin; exceptions, row blocks and tiles."""
    rows, cols = struct.unpack_from("<QQ", pack, 8)
    exceptions = struct.unpack_from("<Q", pack, 40)[0]
    blocks, tiles = -(-rows // 64), -(-cols // 64)
    first = HEADER + blocks * BLOCK
    places = first + -(-blocks * tiles * TILE // 128) * 128
    return first, places, places + -(-exceptions * 4 // 128) * 128, exceptions, blocks, tiles


def decoded(emulated, pack, block, k0, n, seed=1, claimed=None):
    first, places, values, exceptions, blocks, tiles = sections(pack)
    data = np.frombuffer(pack, np.uint8).copy()
    at = data.ctypes.data
    out = np.zeros((n, 64, 64), np.uint16)
    address = ctypes.c_void_p
    emulated.emulated_staged_tiles(
        address(out.ctypes.data), address(at + HEADER), address(at + first), address(at + places),
        address(at + values), ctypes.c_uint64(exceptions if claimed is None else claimed), blocks, tiles, block, k0, n, seed,
    )  # fmt: skip
    return out.transpose(1, 0, 2).reshape(64, n * 64)


@pytest.mark.parametrize("far", [0.0, 0.004, 0.02])
def test_every_weight_is_exact_and_in_its_place(emulated, far):
    torch.manual_seed(5)
    x = weights(120, 632, far)
    w = bits(x).numpy().view(np.uint16)
    pack = glyd_codec.pack_weights(bits(x).numpy(), *x.shape, layout="mma12")
    assert sections(pack)[3] > 0
    padded = np.zeros((128, 640), np.uint16)
    padded[:120, :632] = w
    for block, k0, n in ((0, 0, 10), (1, 0, 10), (1, 3, 5), (0, 9, 1)):
        found = decoded(emulated, pack, block, k0, n, seed=block + k0)
        rows, cols = slice(block * 64, min(block * 64 + 64, 120)), slice(k0 * 64, min((k0 + n) * 64, 632))
        assert np.array_equal(found[: rows.stop - rows.start, : cols.stop - cols.start], w[rows, cols])


def test_a_pack_that_lies_about_exceptions_stays_inside(emulated):
    """Lists that are out of order or point elsewhere: shared memory ends the program when something outside is read."""
    torch.manual_seed(6)
    x = weights(128, 256, 0.05)
    pack = bytearray(glyd_codec.pack_weights(bits(x).numpy(), *x.shape, layout="mma12"))
    _, places, _, exceptions, blocks, _ = sections(pack)
    generator = np.random.default_rng(7)
    for _ in range(4):
        damaged = bytearray(pack)
        damaged[places : places + 4 * exceptions] = generator.bytes(4 * exceptions)
        assert decoded(emulated, bytes(damaged), int(generator.integers(blocks)), 0, 4).shape == (64, 256)
    struct.pack_into("<I", pack, HEADER + 4, 0xFFFFFFFF)  # more exceptions than there are: none is read
    assert decoded(emulated, bytes(pack), 0, 0, 4).shape == (64, 256)


def work(emulated, config, rows, cols, tokens):
    """Return all segments [n, worker and five numbers] and how the work is divided."""
    divided, most = np.zeros(8, np.int32), 4096
    numbers, segments, found = (ctypes.c_int32 * 8)(*config), np.zeros((most, 5), np.int32), []
    address = ctypes.c_void_p
    workers = config[3] or -(-rows // (64 * config[1])) * -(-tokens // config[0]) * config[2]
    for worker in range(workers):
        n = emulated.emulated_staged_work(
            address(segments.ctypes.data), ctypes.c_int64(most), address(divided.ctypes.data), numbers,
            ctypes.c_int64(rows), ctypes.c_int64(cols), ctypes.c_uint64(tokens), worker,
        )  # fmt: skip
        assert 0 <= n < most
        found += [(worker, *row) for row in segments[:n].tolist()]
    return found, divided.tolist()


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([(128, 2), (128, 4), (256, 2)]),
    st.sampled_from([1, 2, 7, 114, 132]),
    st.integers(1, 16),
    st.integers(1, 5000),
    st.integers(1, 5000),
    st.integers(1, 3000),
)
def test_every_step_of_every_tile_is_done_once(emulated, tile, workers, group, rows, cols, tokens):
    found, divided = work(emulated, (*tile, 0, workers, group, 3, 3, 0), rows, cols, tokens)
    steps, row_tiles, token_tiles, _, split, split_workers, cluster, n_workers = divided
    assert (cluster, n_workers) == (1, workers)
    assert (steps, row_tiles, token_tiles) == (-(-cols // 64), -(-rows // (64 * tile[1])), -(-tokens // tile[0]))
    done = np.zeros((row_tiles * token_tiles, steps), np.int32)
    places = {}
    for worker, number, row_tile, token, k0, n in found:
        done[number, k0 : k0 + n] += 1
        places.setdefault(number, (row_tile, token))
        assert places[number] == (row_tile, token)
        assert token % tile[0] == 0
        assert n == steps or (number < split and worker < split_workers)
    assert np.array_equal(done, np.ones_like(done))
    assert len(set(places.values())) == row_tiles * token_tiles
    assert split <= workers
    assert split_workers <= workers


def test_work_is_even(emulated):
    """5120 rows and 512 tokens are 80 tiles for 132 workers: none does more than its share and a step."""
    found, divided = work(emulated, (256, 2, 0, 132, 8, 3, 3, 0), 5120, 25600, 512)
    shares = np.zeros(132, np.int64)
    for worker, *_, n in found:
        shares[worker] += n
    assert divided[4:] == [80, 132, 1, 132]
    assert shares.max() - shares.min() <= 1


@pytest.mark.parametrize("cluster", [1, 2, 3, 4])
def test_blocks_of_a_cluster_share_one_tile(emulated, cluster):
    found, divided = work(emulated, (128, 2, cluster, 0, 8, 3, 3, 0), 1000, 1100, 300)
    assert divided == [18, 8, 3, 3, 24, 24 * cluster, cluster, 24 * cluster]
    for worker, number, _, _, k0, n in found:
        assert number == worker // cluster
        assert (k0, k0 + n) == tuple((worker % cluster + k) * 18 // cluster for k in (0, 1))
    assert len(found) == 24 * cluster

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""How the ring products decode tiered tiles, compiled for the CPU (tests/emulation): every weight of the codec's packs."""

import ctypes
import struct

import numpy as np
import pytest
import torch

import glyd_codec
from glyd_gpu._matrices import bits

HEADER, BLOCK, TILE, BIAS = 128, 128, 10240, 127
SLOT_AFTER = 16  # room that a slot has behind the largest tile's escapes


@pytest.fixture(scope="module")
def emulated(compile_kernels):
    return compile_kernels("tiered_tiles.cpp")


def weights(rows, cols, kind):
    """Return a matrix [rows, cols] bf16."""
    x = torch.randn((rows, cols)) * 0.02
    if kind == "rows":
        x *= torch.exp2(torch.randint(-30, 30, (rows, 1)).float())
    elif kind == "tails":  # more than eight codes of tier 3 a thread, all of them
        far = torch.exp2(torch.randint(-9, 5, (rows, cols)).float())
        x = torch.where(torch.rand((rows, cols)) < 0.4, far, 1.5) * torch.sign(x)
    elif kind == "runs":  # threads with nothing but tier 3 beside threads without
        x = torch.sign(x) * 1.5
        x[: rows // 2, : cols // 3] *= 2.0**-7
    elif kind == "special":
        x[:, ::7] = 0.0
        x[1] = -0.0
        x[::5, 3] = float("inf")
        x[2, ::9] = 1e-40
    return x.to(torch.bfloat16)


def sections(pack):
    """Return places of rows' bases, index, tiles and escapes; row blocks and tiles."""
    rows, cols = struct.unpack_from("<QQ", pack, 8)
    blocks, tiles = -(-rows // 64), -(-cols // 128)
    index = HEADER + blocks * BLOCK
    first = index + -(-blocks * (tiles + 1) * 4 // 128) * 128
    return index, first, first + -(-blocks * tiles * TILE // 128) * 128, blocks, tiles


def order():
    """Return row and column in a tile of the weights [128 threads][64]."""
    t, j = np.meshgrid(np.arange(128), np.arange(64), indexing="ij")
    row = t // 32 * 16 + t % 32 // 4 + 8 * (j // 2 % 2)
    return row, j // 8 * 16 + j // 4 % 2 * 8 + t % 4 * 2 + j % 2


def decoded(emulated, pack, seed=1, damage=None):
    """Return what the kernels multiply, uint16 [rows, cols] in whole tiles."""
    index, first, escapes, blocks, tiles = sections(pack)
    largest = struct.unpack_from("<I", pack, 48)[0]
    row, col = order()
    out = np.zeros((blocks * 64, tiles * 128), np.uint16)
    for b in range(blocks):
        start = struct.unpack_from("<Q", pack, HEADER + b * BLOCK + 16)[0]
        units = struct.unpack_from(f"<{tiles + 1}I", pack, index + b * (tiles + 1) * 4)
        for t in range(tiles):
            at = first + (b * tiles + t) * TILE
            tile = bytes(pack[at : at + TILE])
            e = bytes(pack[escapes + (start + units[t]) * 16 : escapes + (start + units[t + 1]) * 16])
            if damage is not None:
                tile, e = damage(tile, e)
            words = np.zeros((128, 32), np.uint32)
            emulated.emulated_tiered_tile(
                words.ctypes.data_as(ctypes.c_void_p), tile, e, len(e), largest + SLOT_AFTER, seed
            )
            out[b * 64 + row, t * 128 + col] = words.view(np.uint16)
    return out


@pytest.mark.parametrize("kind", ["plain", "rows", "tails", "runs", "special"])
def test_every_weight_at_the_fixed_exponent(emulated, kind):
    torch.manual_seed(5)
    x = weights(120, 376, kind)
    pack = glyd_codec.pack_weights(bits(x).numpy(), *x.shape)
    blocks = sections(pack)[3]
    bases = np.concatenate([np.frombuffer(pack, np.uint8, 64, HEADER + b * BLOCK + 64) for b in range(blocks)])[:120]
    w = bits(x).numpy().view(np.uint16).astype(np.int64)
    exponent, d = w >> 7 & 0xFF, (w >> 7 & 0xFF) - bases[:, None].astype(np.int64)
    zero = (w & 0x7FFF) == 0
    coded = (exponent > 0) & (exponent < 255) & (d >= -9) & (d <= 4)
    expected = np.where(coded, w & 0x807F | (BIAS + d) << 7, np.where(zero, w, 0))
    found = decoded(emulated, pack)[:120, :376]
    used = bases > 0  # rows of zeros are multiplied by 0, whatever they decode to
    assert used.any()
    assert (kind == "special") == (not used.all())
    assert np.array_equal(found[used], expected[used])
    assert coded[used].mean() > 0.8


def test_damaged_tiles_stay_in_their_slot(emulated):
    """The emulated shared memory ends the program when something outside is read."""
    torch.manual_seed(6)
    pack = glyd_codec.pack_weights(bits(weights(64, 256, "tails")).numpy(), 64, 256)
    generator = np.random.default_rng(7)

    def damage(tile, e):
        tile, e = bytearray(tile), bytearray(e)
        e[:16] = generator.bytes(16)
        tile[8192:] = b"\xff" * 2048 if generator.integers(2) else generator.bytes(2048)
        return bytes(tile), bytes(e)

    for seed in range(4):
        assert decoded(emulated, pack, seed, damage).shape == (64, 256)

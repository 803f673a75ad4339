# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Attention over a paged cache: the kernel compiled for the CPU (tests/emulation), and the operator; beside float64."""

import ctypes

import pytest
import torch

from glyd_gpu import ShapeError
from glyd_gpu import _paged_attention as paged
from glyd_gpu._matrices import bits

PAGE = 16


@pytest.fixture(scope="module")
def emulated(compile_kernels):
    return compile_kernels("paged_kernels.cpp")


class Case:
    """A cache in pages of any order, in which the newest token of each sequence is not yet, and what is right."""

    def __init__(self, channels, heads, key_heads, lengths, stride=PAGE, seed=0, window=0):
        draw = torch.Generator().manual_seed(seed)
        self.window = window
        n, pages = len(lengths), max(1, -(-(window or max(lengths)) // PAGE))
        self.lengths = torch.tensor(lengths, dtype=torch.int32)
        order = torch.randperm(n * pages + 2, generator=draw)
        self.tables = order[: n * pages].view(n, pages).to(torch.int32).contiguous()
        slots = order.numel() * stride

        def normal(*shape):
            return torch.randn(shape, generator=draw).to(torch.bfloat16)

        self.k, self.v = normal(slots, key_heads, channels), normal(slots, key_heads, channels)
        # as models give them: [heads, sequences, channels] turned around
        self.q = normal(heads, n, channels).transpose(0, 1)
        self.new = normal(key_heads, n, channels).transpose(0, 1), normal(n, key_heads, channels)
        self.stride, self.scale = stride, channels**-0.5

    def expected(self):
        """Return attention in float64, and the caches with the newest tokens."""
        k, v = self.k.clone(), self.v.clone()
        out = torch.zeros(self.q.shape, dtype=torch.float64)
        groups = self.q.shape[1] // k.shape[1]
        for row, n in enumerate(self.lengths.tolist()):
            if n:
                # of a ring, the slot after the newest has the oldest
                of = torch.arange(max(0, n - self.window), n) % self.window if self.window else torch.arange(n)
                at = self.tables[row][of // PAGE].long() * self.stride + of % PAGE
                k[at[-1]], v[at[-1]] = self.new[0][row], self.new[1][row]
                keys, values = (x[at].double().repeat_interleave(groups, 1) for x in (k, v))
                weights = (torch.einsum("hd,thd->ht", self.q[row].double(), keys) * self.scale).softmax(-1)
                out[row] = torch.einsum("ht,thd->hd", weights, values)
        return out, k, v

    def run(self, emulated, splits, order=1, *, new=True):
        """Run the kernel, on caches of its own; return what it gives and the caches."""
        out, k, v = torch.full(self.q.shape, float("nan"), dtype=torch.bfloat16), self.k.clone(), self.v.clone()
        n, heads, channels = self.q.shape
        partial = torch.full((n * heads * splits * (channels + 2),), float("nan"))
        strides = [s for x in (self.q, *self.new) for s in x.stride()[:2]]
        shape = [n, heads, k.shape[1], channels, k.shape[0], self.tables.shape[1], PAGE.bit_length() - 1, self.stride]
        numbers = (ctypes.c_int64 * 16)(*shape, splits, self.window, *strides)

        def at(x):
            return ctypes.c_void_p(x.data_ptr())

        emulated.emulated_paged_attention(
            at(out), at(partial), at(self.q), at(k), at(v), at(self.new[0]) if new else None,
            at(self.new[1]) if new else None, at(self.tables), at(self.lengths), numbers,
            ctypes.c_float(self.scale), order,
        )  # fmt: skip
        return out, k, v

    def operator(self):
        """Run the operator."""
        k, v = self.k.clone(), self.v.clone()
        out = torch.ops.glyd.paged_attention(
            self.q, k, v, *self.new, self.tables, self.lengths, PAGE, self.stride, self.scale, self.window
        )
        return out, k, v


CASES = [
    (64, 3, 3, [1, 5, 0, 130], PAGE, 1, 0),
    (64, 6, 2, [70, 64], PAGE, 2, 0),
    (80, 7, 1, [33, 16], PAGE, 1, 0),
    (96, 4, 2, [100], PAGE, 7, 0),
    (128, 8, 2, [31, 90, 1], 24, 3, 0),
    (128, 20, 2, [40], PAGE, 2, 0),
    (256, 2, 1, [17, 50], PAGE, 4, 0),
    (64, 2, 1, [700, 65, 0, 64], PAGE, 4, 0),
    # rings: not full, full, gone round; of whole pages and not; of one token
    (64, 3, 3, [1, 29, 30, 31, 0, 61, 1000], PAGE, 1, 30),
    (128, 4, 2, [200, 129, 128, 127], PAGE, 3, 128),
    (256, 4, 1, [100, 7], 24, 2, 70),
    (64, 2, 1, [1, 9], PAGE, 1, 1),
]


@pytest.mark.parametrize(("channels", "heads", "key_heads", "lengths", "stride", "splits", "window"), CASES)
def test_kernel(emulated, channels, heads, key_heads, lengths, stride, splits, window):
    case = Case(channels, heads, key_heads, lengths, stride, window=window)
    expected, k, v = case.expected()
    out, found_k, found_v = case.run(emulated, splits)
    assert (out.double() - expected).norm() < 4e-3 * expected.norm()
    for found, right in ((found_k, k), (found_v, v)):
        assert torch.equal(bits(found), bits(right))  # the newest token and nothing else was written
    # the same bits whatever the order of threads, and when the newest token is in the cache already
    assert torch.equal(bits(out), bits(case.run(emulated, splits, order=77)[0]))
    case.k, case.v = k, v
    assert torch.equal(bits(out), bits(case.run(emulated, splits, new=False)[0]))


@pytest.mark.parametrize(("channels", "heads", "key_heads", "lengths", "stride", "splits", "window"), CASES)
def test_operator_on_the_cpu(channels, heads, key_heads, lengths, stride, splits, window):
    case = Case(channels, heads, key_heads, lengths, stride, splits, window)
    expected, k, v = case.expected()
    out, found_k, found_v = case.operator()
    assert (out.double() - expected).norm() < 4e-3 * expected.norm()
    assert torch.equal(bits(found_k), bits(k))
    assert torch.equal(bits(found_v), bits(v))


@pytest.mark.gpu
@pytest.mark.parametrize(("channels", "heads", "key_heads", "lengths", "stride", "splits", "window"), CASES)
def test_operator_on_cuda(channels, heads, key_heads, lengths, stride, splits, window):
    case = Case(channels, heads, key_heads, lengths, stride, splits, window)
    expected, k, v = case.expected()
    for name in ("k", "v", "q", "tables", "lengths"):
        setattr(case, name, getattr(case, name).cuda())
    case.new = tuple(x.cuda() for x in case.new)
    out, found_k, found_v = case.operator()
    assert (out.cpu().double() - expected).norm() < 4e-3 * expected.norm()
    assert torch.equal(bits(found_k.cpu()), bits(k))
    assert torch.equal(bits(found_v.cpu()), bits(v))


def test_a_table_that_lies_stays_inside(emulated):
    case = Case(64, 2, 1, [40], seed=3)
    case.tables[0, 1], case.tables[0, 2] = 1 << 30, -5
    out, _, _ = case.run(emulated, 1)
    assert out.isfinite().all()
    for window in (0, 30):
        case.lengths[0], case.window = 1 << 30, window  # more than the table has
        out, _, _ = case.run(emulated, 2)
        assert out.isfinite().all()


def test_what_does_not_fit_is_refused():
    case = Case(64, 4, 2, [9, 3])
    good = (case.q, case.k, case.v, *case.new, case.tables, case.lengths, PAGE, PAGE, 1.0)
    wrong = {
        0: (case.q.float(), "queries are bf16"),
        1: (case.k[:, :, :32], "cache of keys is contiguous"),
        2: (case.v[:-1], "cache of values is contiguous"),
        4: (case.new[1][:1], "new values are bf16"),
        5: (case.tables.long(), "tables are int32"),
        6: (case.lengths[:1], "lengths are int32"),
        7: (24, "a power of two of tokens, not 24"),
    }
    for place, (value, message) in wrong.items():
        with pytest.raises(ShapeError, match=message):
            torch.ops.glyd.paged_attention(*good[:place], value, *good[place + 1 :])
    with pytest.raises(ShapeError, match="a window of 17 tokens is in tables of as many, these have 16"):
        torch.ops.glyd.paged_attention(*good, 17)
    wide = Case(264, 1, 1, [4])
    with pytest.raises(ShapeError, match="up to 256, not 264"):
        wide.operator()


def test_ranges_of_tokens():
    assert paged.n_splits(8, 2048, 528) == 32
    assert paged.n_splits(8, 100_000, 528) == 66
    assert paged.n_splits(1024, 100_000, 528) == 1
    assert paged.n_splits(1, 10, 528) == 1


def test_fake_has_the_shape():
    out = paged._fake(torch.empty((3, 4, 64), dtype=torch.bfloat16, device="meta"))
    assert out.shape == (3, 4, 64)
    assert out.device.type == "meta"

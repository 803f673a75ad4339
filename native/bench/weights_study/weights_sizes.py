# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Bits a weight of candidate codes and of real packs.

``weights_sizes.py LIBGLYD.so [MODEL.safetensors]``: every matrix of the model, rounded to bf16, and random
matrices, as candidate codes (computed) and as mma12 and tiered packs (packed, unpacked and compared).
``weights_sizes.py LIBGLYD.so --write DIR MODEL.safetensors``: packs and matrices for ``weights_pack_check``.
"""

from __future__ import annotations

import ctypes
import json
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

EXCEPTION_BITS = 48
TIER1 = (0, 1, 2)
TIER2 = (-1, 3, -2)
TIER3 = (-3, 4, -4, -5, -6, -7, -8, -9)
TIER2_OF_8 = (-1, 3, -2, -3, -4, -5, -6, 4)
# name, tiers of exponent - base, bits a tier, bits of what no tier has
CODES = (
    ("2+3", (TIER1, TIER2_OF_8), (2, 3), EXCEPTION_BITS),
    ("2+4", (TIER1, TIER2_OF_8 + tuple(range(-14, -6)) + (5,)), (2, 4), EXCEPTION_BITS),
    ("2+2+2, raw", (TIER1, TIER2, (-3, 4, -4)), (2, 2, 2), 8),
    ("2+2+3", (TIER1, TIER2, TIER3), (2, 2, 3), EXCEPTION_BITS),
    ("2+2+4", (TIER1, TIER2, TIER3), (2, 2, 4), EXCEPTION_BITS),
)


class Shape(ctypes.Structure):
    """glyd_weights_shape."""

    _fields_ = (("layout", ctypes.c_int), ("rows", ctypes.c_uint64), ("cols", ctypes.c_uint64))


def to_bf16(x: np.ndarray) -> np.ndarray:
    """Round float32 to the nearest bf16, ties to even, as uint16."""
    u = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype(np.uint16)


def matrices(path: Path) -> Iterator[np.ndarray]:
    """Yield the 2-D float32 tensors of a safetensors file as bf16."""
    data = path.read_bytes()
    n = struct.unpack("<Q", data[:8])[0]
    for name, t in json.loads(data[8 : 8 + n]).items():
        if name != "__metadata__" and len(t["shape"]) == 2 and t["dtype"] == "F32":
            a, b = t["data_offsets"]
            yield to_bf16(np.frombuffer(data[8 + n + a : 8 + n + b], "<f4").reshape(t["shape"]))


def entropy(counts: np.ndarray) -> float:
    """Bits a symbol."""
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log2(p)).sum())


def relative_counts(w: np.ndarray, per_row: bool) -> np.ndarray:
    """Count exponent - base from -256 (index 0); zeros and what has no plain exponent at index 0."""
    e = ((w >> 7) & 0xFF).astype(np.int64)
    rows = np.bincount((np.arange(len(w))[:, None] * 256 + e).ravel(), minlength=len(w) * 256).reshape(-1, 256)
    if not per_row:
        rows = rows.sum(0, keepdims=True)
    window = rows[:, 10:251] + rows[:, 11:252] + rows[:, 12:253]
    base = window.argmax(1) + 10
    out = np.zeros(512, np.int64)
    for counts, b in zip(rows, base, strict=True):
        at = np.arange(256) - b + 256
        at[[0, 255]] = 0
        np.add.at(out, at, counts)
    return out


def code_bits(rel: np.ndarray, tiers: tuple, bits: tuple, rest: int) -> float:
    """Bits a weight of a tiered code, sign and mantissa included."""
    left = total = float(rel.sum())
    cost = 0.0
    for tier, n in zip(tiers, bits, strict=True):
        cost += left * n
        left -= sum(rel[256 + d] for d in tier)
    return 8 + (cost + left * rest) / total


def pair_bits(w: np.ndarray, n: int) -> float:
    """Bits a weight when n bits code the 2^n - 1 commonest pairs, 8 bits more any other pair of 16 exponents."""
    e = ((w >> 7) & 0xFF).astype(np.int64)
    e = e[:, : e.shape[1] // 2 * 2]
    pairs = np.bincount((e[:, 0::2] * 256 + e[:, 1::2]).ravel())
    covered = np.sort(pairs)[::-1][: 2**n - 1].sum() / pairs.sum()
    common = np.sort(np.bincount(e.ravel()))[::-1][:16].sum() / e.size
    return 8 + (n + (1 - covered) * 8) / 2 + (1 - common) * EXCEPTION_BITS


def pack(lib: ctypes.CDLL, w: np.ndarray, layout: int) -> np.ndarray:
    """Pack, unpack, compare; gives the pack, empty when it does not pay."""
    w = np.ascontiguousarray(w)
    shape = Shape(layout, *w.shape)
    out = np.zeros(max(1, lib.glyd_weights_pack_bound(ctypes.byref(shape))), np.uint8)
    n_work = lib.glyd_weights_workspace()
    work = ctypes.create_string_buffer(n_work)
    size = ctypes.c_size_t()
    status = lib.glyd_weights_pack(
        ctypes.c_void_p(out.ctypes.data),
        ctypes.c_size_t(out.size),
        ctypes.byref(shape),
        ctypes.c_void_p(w.ctypes.data),
        work,
        ctypes.c_size_t(n_work),
        0,
        ctypes.byref(size),
    )
    if status != 0:
        raise RuntimeError(f"packing failed with status {status}")
    if size.value == 0:
        return out[:0]
    back = np.zeros_like(w)
    status = lib.glyd_weights_unpack_rows(
        ctypes.c_void_p(back.ctypes.data),
        ctypes.c_size_t(back.nbytes),
        ctypes.c_void_p(out.ctypes.data),
        size,
        ctypes.c_uint64(0),
        ctypes.c_uint64(len(w)),
        work,
        ctypes.c_size_t(n_work),
        0,
    )
    if status != 0 or not np.array_equal(back, w):
        raise RuntimeError(f"a {w.shape} matrix did not come back, status {status}")
    return out[: size.value].copy()


def report(lib: ctypes.CDLL, name: str, ws: list[np.ndarray]) -> None:
    """Print one line a base rule and one of real packs."""
    n = sum(w.size for w in ws)

    def mean(f: Callable[[np.ndarray], float]) -> float:
        return sum(f(w) * w.size for w in ws) / n

    floor = mean(lambda w: 8 + entropy(np.bincount(((w >> 7) & 0xFF).ravel())))
    print(f"{name}: {n} weights, entropy floor {floor:.3f}")
    for per_row in (False, True):
        rel = [relative_counts(w, per_row) for w in ws]
        cells = [f"{code} {sum(code_bits(r, t, b, x) * r.sum() for r in rel) / n:.3f}" for code, t, b, x in CODES]
        print(f"  base a {'row' if per_row else 'matrix'}: " + ", ".join(cells))
    print("  pairs: " + ", ".join(f"{k} bits {mean(lambda w, k=k: pair_bits(w, k)):.3f}" for k in (4, 5, 6)))
    for layout, label in ((1, "mma12"), (2, "tiered")):
        done = [(w, pack(lib, w, layout)) for w in ws]
        size = sum(p.nbytes or w.nbytes for w, p in done)  # what does not pay stays bf16
        exceptions = sum(int(p[40:48].view(np.uint64)[0]) for _, p in done if p.size)
        print(
            f"  packed {label}: {8 * size / n:.3f} bits a weight, {exceptions} exceptions ({100 * exceptions / n:.4f}%)"
        )


def write(lib: ctypes.CDLL, folder: Path, model: Path) -> None:
    """Write packs and their matrices: some of the model, and odd shapes with zeros and special values."""
    rng = np.random.default_rng(2)
    ws = [w for w in matrices(model) if 100_000 < w.size < 1_000_000][:6]
    odd = to_bf16(rng.standard_normal((577, 1000)) * 0.02)
    places = rng.integers(0, odd.size, 3000)
    odd.ravel()[places] = rng.integers(0, 65536, 3000)
    odd.ravel()[places[::3]] = 0x8000
    odd[7] = 0
    ws.append(odd)
    folder.mkdir(parents=True, exist_ok=True)
    for i, w in enumerate(ws):
        w.tofile(folder / f"{i}.bf16")
        for layout, label in ((1, "mma12"), (2, "tiered")):
            pack(lib, w, layout).tofile(folder / f"{i}.{label}")


def main() -> None:
    """Run the study."""
    lib = ctypes.CDLL(sys.argv[1])
    lib.glyd_weights_pack_bound.restype = ctypes.c_uint64
    lib.glyd_weights_workspace.restype = ctypes.c_size_t
    if sys.argv[2:3] == ["--write"]:
        write(lib, Path(sys.argv[3]), Path(sys.argv[4]))
        return
    rng = np.random.default_rng(1)
    for path in sys.argv[2:]:
        report(lib, Path(path).name, list(matrices(Path(path))))
    shape = (2048, 4096)
    for sigma in (0.02, 0.0157, 0.025):
        report(lib, f"Gaussian, sigma {sigma}", [to_bf16(rng.standard_normal(shape) * sigma)])
    for spread in (0.3, 0.6):
        scale = np.exp(spread * rng.standard_normal((shape[0], 1)))
        report(lib, f"Gaussian, row scales log-normal {spread}", [to_bf16(rng.standard_normal(shape) * 0.02 * scale)])
    report(lib, "Student t, 4 degrees", [to_bf16(rng.standard_t(4, shape) * 0.02)])
    report(lib, "Laplace", [to_bf16(rng.laplace(0, 0.02, shape))])


if __name__ == "__main__":
    main()

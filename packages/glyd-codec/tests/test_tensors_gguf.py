# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Tensors of GGUF files in frames; files that lie are refused in little time and memory."""

from __future__ import annotations

import io
import random
import struct

import pytest

import glyd

Q8_0, BF16, F32, NEWER = 8, 30, 0, 99
VALUES = (
    (b"general.architecture", 8, struct.pack("<Q", 5) + b"llama"),
    (b"llama.context_length", 4, struct.pack("<I", 4096)),
    (b"llama.rope.scale", 6, struct.pack("<f", 0.5)),
    (b"split", 7, b"\1"),
    (b"tokens", 9, struct.pack("<IQ", 8, 3) + b"".join(struct.pack("<Q", len(t)) + t for t in (b"a", b"", b"bcd"))),
    (b"scores", 9, struct.pack("<IQ3f", 6, 3, 1, 2, 3)),
    (b"nested", 9, struct.pack("<IQIQ2HIQ", 9, 2, 2, 2, 7, 8, 8, 0)),
)


@pytest.fixture(scope="module")
def tensors(tools):
    rng = random.Random(1)
    return [
        (b"blk.0.w", (64, 30), BF16, tools.make_bf16(64 * 30)),
        (b"blk.0.q", (96, 5), Q8_0, rng.randbytes(5 * 3 * 34)),
        (b"norm", (7,), F32, rng.randbytes(28)),
        (b"newer", (64, 2), NEWER, b""),
    ]


@pytest.fixture(scope="module")
def content(tools, tensors):
    return tools.make_gguf(tensors, VALUES)


def opened(data, framework="bytes"):
    return glyd.open_tensors(io.BytesIO(data), framework)


def test_tensors(tensors, content):
    for packed in (glyd.compress(content), glyd.compress(content, segment_size=1 << 11), content):
        with opened(packed) as file:
            assert file.keys() == ["blk.0.q", "blk.0.w", "newer", "norm"]
            for name, _, _, data in tensors[:3]:
                assert file.get_tensor(name.decode()) == data
            assert file.metadata() == {
                "general.architecture": "llama",
                "llama.context_length": "4096",
                "llama.rope.scale": "0.5",
                "split": "True",
            }
            q, w = file.get_slice("blk.0.q"), file.get_slice("blk.0.w")
            assert (q.get_dtype(), q.get_shape()) == ("Q8_0", [5, 102])
            assert (w.get_dtype(), w.get_shape()) == ("BF16", [30, 64])
            assert q[2:4] == tensors[1][3][204:408]
            assert w[3] == tensors[0][3][384:512]
            assert file.get_slice("newer").get_dtype() == "type 99"
            with pytest.raises(glyd.ParameterError, match="type 99"):
                file.get_tensor("newer")


def test_as_numpy(tensors, content):
    np = pytest.importorskip("numpy")
    with opened(glyd.compress(content), "numpy") as file:
        blocks = file.get_tensor("blk.0.q")
        assert (blocks.shape, blocks.dtype) == ((5, 102), np.uint8)
        assert file.get_tensor("norm").tobytes() == tensors[2][3]


def numbers(*pairs):
    return b"".join(value.to_bytes(size, "little") for value, size in pairs)


def lies():
    """Case M5: headers that lie, each with its reason."""
    for n_tensors, n_values in ((1 << 63, 0), (1, 1 << 63), (1 << 40, 1 << 40)):
        yield b"GGUF" + numbers((3, 4), (n_tensors, 8), (n_values, 8)) + bytes(100)
    one_value = b"GGUF" + numbers((3, 4), (0, 8), (1, 8))
    key = numbers((1, 8)) + b"k"
    yield one_value + numbers((1 << 60, 8)) + bytes(50)
    yield one_value + numbers((1 << 17, 8)) + bytes(1 << 18)
    yield one_value + key + numbers((99, 4)) + bytes(50)
    yield one_value + key + numbers((8, 4), (1 << 30, 8)) + bytes(50)
    yield one_value + key + numbers((9, 4), (4, 4), (1 << 62, 8)) + bytes(50)
    yield one_value + key + numbers((9, 4), (8, 4), (1 << 62, 8)) + bytes(50)
    yield one_value + key + numbers((9, 4), (77, 4), (1, 8)) + bytes(50)
    yield one_value + key + numbers((9, 4)) + numbers((9, 4), (1, 8)) * 10_000 + bytes(50)
    yield one_value + key + numbers((9, 4), (9, 4), (1 << 60, 8)) + bytes(50)
    for alignment in (0, 3, 4, 1 << 30):
        yield one_value + numbers((17, 8)) + b"general.alignment" + numbers((4, 4), (alignment, 4)) + bytes(64)
    one_tensor = b"GGUF" + numbers((3, 4), (1, 8), (0, 8)) + numbers((1, 8)) + b"w"
    for n_dims in (9, 10**6, (1 << 32) - 1):
        yield one_tensor + numbers((n_dims, 4)) + bytes(200)
    for dims, kind, begin in (
        ((1 << 63,), BF16, 0),
        ((1 << 32, 1 << 32, 2), BF16, 0),
        ((1,), BF16, 1 << 62),
        ((1,), BF16, 7),
        ((33,), Q8_0, 0),
        ((32, 1 << 50), Q8_0, 0),
        ((100,), F32, 0),
    ):
        yield one_tensor + numbers((len(dims), 4), *((d, 8) for d in dims), (kind, 4), (begin, 8)) + bytes(200)
    twice = numbers((1, 8)) + b"w" + numbers((1, 4), (1, 8), (BF16, 4), (0, 8))
    yield b"GGUF" + numbers((3, 4), (2, 8), (0, 8)) + twice * 2 + bytes(200)
    for version in (0, 1, 4, 3 << 24):
        yield b"GGUF" + numbers((version, 4), (0, 8), (0, 8)) + bytes(50)


def test_lies_are_refused():
    for data in lies():
        for stored in (data, glyd.compress(data, "fast")):
            with pytest.raises(glyd.FormatError):
                opened(stored)


def test_cut_files_are_refused(content):
    for size in range(4, len(content) - 32, 61):
        with pytest.raises(glyd.FormatError):
            opened(content[:size])


def test_changed_files_never_crash(content):
    rng = random.Random(2)
    for _ in range(2000):
        changed = bytearray(content)
        changed[rng.randrange(500)] ^= 1 << rng.randrange(8)
        try:
            with opened(changed) as file:
                for name in file.keys():  # noqa: SIM118  no dict
                    part = file.get_slice(name)
                    if not part.get_dtype().startswith("type"):
                        file.get_tensor(name)
        except glyd.FormatError:
            pass

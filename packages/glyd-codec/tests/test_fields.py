# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Models in ordinary frames: what is split into fields, what it saves, and that every byte comes back."""

from __future__ import annotations

import array
import contextlib
import io
import random
import struct
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glyd

LEVELS = ("turbo", "fast", "default", "max")
GGUF_BF16 = 30


def kinds(packed):
    return {segment.kind for segment in glyd.iter_segments(packed)}


def q8_0(n_blocks, seed=1):
    rng = random.Random(seed)
    scales = struct.pack(f"<{n_blocks}e", *(0.001 + 0.001 * rng.random() for _ in range(n_blocks)))
    return b"".join(scales[2 * i : 2 * i + 2] + rng.randbytes(32) for i in range(n_blocks))


@pytest.fixture(scope="module")
def bf16(tools):
    return tools.make_bf16(40_000)


@pytest.fixture(scope="module")
def floats():
    rng = random.Random(3)
    return array.array("f", (rng.gauss(0, 1) for _ in range(20_000))).tobytes()


@pytest.fixture(scope="module")
def halves():
    rng = random.Random(4)
    return struct.pack("<40000e", *(rng.gauss(0, 0.02) for _ in range(40_000)))


@pytest.mark.parametrize("level", LEVELS)
def test_savings(level, tools, bf16, floats, halves):
    """A third of bf16, a sixth of fp32, a tenth of fp16 at every level, threads or not, streamed or not."""
    for dtype, shape, content, most in (
        ("BF16", (200, 200), bf16, 0.69),
        ("F32", (100, 200), floats, 0.86),
        ("F16", (200, 200), halves, 0.89),
    ):
        data = tools.make_safetensors({"w": (dtype, shape, content)})
        packed = glyd.compress(data, level)
        assert kinds(packed) == {"weights"}
        assert len(packed) < most * len(data)
        assert glyd.decompress(packed) == data
        assert glyd.compress(data, level, threads=2) == packed
        streamed = tools.stream(data, level=level)
        assert len(streamed) < most * len(data)
        assert glyd.decompress(streamed) == data


def test_the_choice(tools, bf16):
    data = tools.make_safetensors({"w": ("BF16", (200, 200), bf16)})
    assert kinds(glyd.compress(data)) == {"weights"}
    assert "weights" not in kinds(glyd.compress(data, weights=False))
    assert "weights" not in kinds(glyd.compress(bf16))  # does not start like a model
    assert kinds(glyd.compress(bf16, weights=True)) == {"weights"}
    text = b"a line of a text that is no model, %d\n" * 3000
    assert glyd.compress(text, weights=True) == glyd.compress(text)
    for wrong in ("on", None, 1, "Auto"):
        with pytest.raises(glyd.ParameterError, match="weights must be"):
            glyd.compress(data, weights=wrong)
        with pytest.raises(glyd.ParameterError, match="weights must be"):
            glyd.Compressor(weights=wrong)
    with glyd.open(out := io.BytesIO(), "wb", weights=False) as file:
        file.write(data)
    assert "weights" not in kinds(out.getvalue())


def test_other_containers(tools, bf16):
    """GGUF, zips of PyTorch and NumPy, .npy and old pickles of PyTorch."""
    numpy_file = (
        b"\x93NUMPY\1\0\x76\0" + b"{'descr': '<u2', 'fortran_order': False, 'shape': (40000,)}".ljust(117) + b"\n"
    )
    pickle = bytes.fromhex("80028a0a6cfc9c46f9206aa85019") + b"." + bf16
    files = [tools.make_gguf([(b"w", (200, 200), GGUF_BF16, bf16)]), numpy_file + bf16, pickle]
    for first in ("archive/data.pkl", "w.npy"):
        with zipfile.ZipFile(out := io.BytesIO(), "w") as archive:
            archive.writestr(first, b"head")
            archive.writestr("archive/data/0", bf16)
        files.append(out.getvalue())
    for data in files:
        packed = glyd.compress(data)
        assert len(packed) < 0.69 * len(data)
        assert glyd.decompress(packed) == data
    with zipfile.ZipFile(out := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"head" * 1000)
    assert "weights" not in kinds(glyd.compress(out.getvalue()))


def test_blocks_of_gguf(tools):
    """Q8_0 gains by its scales, whatever phase its blocks have in a segment."""
    data = tools.make_gguf([(b"a", (3200,), 0, bytes(100)), (b"w", (32, 20_000), 8, q8_0(20_000))])
    for segment_size in (None, 1 << 16, 100_001):
        packed = glyd.compress(data, segment_size=segment_size)
        assert len(packed) < 0.99 * len(data)
        assert glyd.decompress(packed) == data


def test_small_models_save_too(tools):
    """A tensor of 8 KiB already gains a quarter."""
    data = tools.make_gguf([(b"blk.0.attn_q.weight", (64, 64), GGUF_BF16, tools.make_bf16(4096))])
    assert len(glyd.compress(data)) < 0.75 * len(data)


def test_cut_at_every_64_bytes(tools):
    """Case M5: a model cut anywhere is plain data."""
    rng = random.Random(5)
    halves = struct.pack("<512e", *(rng.gauss(0, 0.02) for _ in range(512)))
    data = tools.make_gguf(
        [(b"h", (512,), 1, halves), (b"b", (512,), GGUF_BF16, tools.make_bf16(512)), (b"q", (960,), 8, q8_0(30))]
    )
    for size in range(0, len(data), 64):
        for level in ("fast", "max"):
            packed = glyd.compress(data[:size], level)
            assert glyd.decompress(packed) == data[:size]
            assert len(packed) <= size + 40


def hostile_headers():
    """Case M5: GGUF and safetensors headers that lie."""

    def numbers(*pairs):
        return b"".join(value.to_bytes(size, "little") for value, size in pairs)

    for n_tensors in (0, 1, 1 << 63):
        for n_keys in (0, 1, 1 << 63):
            head = b"GGUF" + numbers((3, 4), (n_tensors, 8), (n_keys, 8))
            yield head
            for key_size in (0, 1 << 60):
                yield head + numbers((key_size, 8))
            for value_type in (4, 9, 99):
                yield head + numbers((1, 8)) + b"k" + numbers((value_type, 4)) + numbers((9, 4), (1 << 60, 8)) * 10_000
            for alignment in (0, 3, 1 << 30):
                yield head + numbers((17, 8)) + b"general.alignment" + numbers((4, 4), (alignment, 4))
            for n_dims in (0, 5, 10**6, (1 << 32) - 1):
                for dims in ((0,), (1 << 63,), (1 << 32, 1 << 32, 2)):
                    yield (
                        head
                        + numbers((1, 8))
                        + b"w"
                        + numbers((n_dims, 4), *((d, 8) for d in dims), (255, 4), (1 << 62, 8))
                    )
    for size in (2, 3, 1 << 20, 1 << 29, 1 << 30, (1 << 64) - 1):
        for text in (b"{}", b'{"a":{"dtype":"BF16","shape":[1' + b"0" * 500, b'{"' * 20_000):
            yield numbers((size, 8)) + text


def test_hostile_headers(bf16):
    for head in hostile_headers():
        for data in (head, head + bf16[:3000]):
            assert glyd.decompress(glyd.compress(data, "fast")) == data


def test_odd_numbers_come_back():
    """Every pattern of 16 bits, infinities, NaNs with payloads, and tensors that start at odd bytes."""
    patterns = struct.pack("<65536H", *range(65536))
    for shift in range(5):
        data = bytes(shift) + patterns * 2 + struct.pack("<4000f", *([float("nan"), float("inf"), -0.0, 1e-45] * 1000))
        for level in LEVELS:
            assert glyd.decompress(glyd.compress(data, level, weights=True)) == data


def test_seeks_in_models(tools):
    data = tools.make_safetensors({"w": ("BF16", (1000, 500), tools.make_bf16(500_000))})
    packed = glyd.compress(data, segment_size=1 << 16)
    rng = random.Random(6)
    with glyd.open(io.BytesIO(packed)) as file:
        for _ in range(50):
            at, size = rng.randrange(len(data)), rng.randrange(100_000)
            file.seek(at)
            assert file.read(size) == data[at : at + size]


def test_damaged_models_are_refused(tools, bf16):
    data = tools.make_safetensors({"w": ("BF16", (200, 200), bf16)})
    packed = glyd.compress(data)
    rng = random.Random(7)
    for _ in range(500):
        damaged = bytearray(packed)
        damaged[rng.randrange(len(packed))] ^= 1 << rng.randrange(8)
        with contextlib.suppress(glyd.FormatError):
            assert glyd.decompress(damaged) == data  # only where a bit means nothing
    for size in range(0, len(packed), 997):
        with pytest.raises(glyd.FormatError):
            glyd.decompress(packed[:size])


@pytest.mark.parametrize("more_header", [0, 24])
def test_differences_to_a_base(tools, more_header):
    """A model trained a little further takes a fraction of itself; so read and written in every way."""
    rng = random.Random(8)
    old = tools.make_bf16(150_000)
    new = bytearray(old)
    for i in range(0, len(new), 2):
        if rng.random() < 0.3:
            value = int.from_bytes(new[i : i + 2], "little") + rng.choice((-2, -1, 1, 2))
            new[i : i + 2] = (value & 0xFFFF).to_bytes(2, "little")
    before = tools.make_safetensors({"w": ("BF16", (500, 300), old)})
    after = tools.make_safetensors({"w": ("BF16", (500, 300), bytes(new))}, padding=more_header)
    base = glyd.Base(before)
    for level in LEVELS:
        packed = glyd.compress(after, level, base=base)
        assert len(packed) < 0.2 * len(after)
        assert glyd.decompress(packed, base=before) == after
    assert tools.stream(after, base=base, segment_size=1 << 16) != packed
    assert glyd.decompress(tools.stream(after, base=base, segment_size=1 << 16), base=base) == after
    with glyd.open(io.BytesIO(packed), base=base) as file:
        file.seek(100_001)
        assert file.read(1000) == after[100_001:101_001]
    with glyd.open_tensors(io.BytesIO(packed), "bytes", base=base) as file:
        assert file.get_slice("w")[100:102] == new[60_000:61_200]
    with pytest.raises(glyd.MissingBaseError):
        glyd.decompress(packed)
    with pytest.raises(glyd.WrongBaseError):
        glyd.decompress(packed, base=before + b"x")
    for _ in range(200):
        damaged = bytearray(packed)
        damaged[rng.randrange(len(packed))] ^= 1 << rng.randrange(8)
        with contextlib.suppress(glyd.GlydError):
            assert glyd.decompress(damaged, base=base) == after


def test_tensors_are_found_by_their_names(tools):
    """Trained further, in another order, under longer names, beside new ones, in one of several shards."""
    rng = random.Random(13)
    old = {f"layers.{i}.w": tools.make_bf16(20_000 + 1000 * i, seed=20 + i) for i in range(8)}
    new = {}
    for name, data in old.items():
        values = array.array("H", data)
        for i in range(len(values)):
            if rng.random() < 0.5:
                values[i] = max(0, min(65535, values[i] + rng.choice((-2, -1, 1, 2))))
        new[name] = values.tobytes()
    other = list(new.items())
    rng.shuffle(other)

    def model(items):
        return tools.make_safetensors({name: ("BF16", (len(data) // 2,), data) for name, data in items})

    halves = list(old.items())
    base = [model(halves[:4]), model(halves[4:])]
    for content, against in (
        (model(other), [model(old.items())]),
        (model([(f"model.{name}", data) for name, data in other]), [model(old.items())]),
        (model([("a", tools.make_bf16(1001)), *other]), base),
        (model(other[2:5]), base),
    ):
        for threads in (1, 3):
            frame = glyd.compress(content, base=against, threads=threads, segment_size=1 << 17)
            assert len(frame) < 0.25 * len(content)
            assert glyd.decompress(frame, base=against) == content
        streamed = tools.stream(content, base=against, segment_size=1 << 17)
        assert len(streamed) < 0.25 * len(content)
        assert glyd.decompress(streamed, base=against) == content


def test_what_is_nearly_the_base_is_copied(tools):
    """Tensors that did not change are copies, not differences, which take a bit a number at least."""
    rng = random.Random(11)
    rows = tools.make_bf16(200_000)
    more = tools.make_bf16(4_000, seed=12)
    changed = bytearray(rows)
    for at in (5_000, 123_456, 390_000):
        changed[at : at + 8] = rng.randbytes(8)
    before = tools.make_safetensors({"w": ("BF16", (500, 400), rows)})
    after = tools.make_safetensors({"new": ("BF16", (4000,), more), "w": ("BF16", (500, 400), bytes(changed))})
    packed = glyd.compress(after, base=before)
    assert len(packed) < len(more) + 600
    assert {segment.kind for segment in glyd.iter_segments(packed)} == {"base"}
    assert glyd.decompress(packed, base=before) == after


def test_a_base_of_another_model_costs_nothing(tools, bf16):
    data = tools.make_safetensors({"w": ("BF16", (200, 200), bf16)})
    other = tools.make_safetensors({"w": ("BF16", (200, 200), tools.make_bf16(40_000, seed=9))})
    assert len(glyd.compress(data, base=other)) < len(glyd.compress(data)) + 100
    assert len(glyd.compress(data, base=data)) < 200


@given(
    st.lists(
        st.tuples(st.sampled_from(("bf16", "f32", "f64", "blocks", "text", "zeros", "noise")), st.integers(0, 5000)),
        max_size=6,
    ),
    st.sampled_from(LEVELS),
    st.sampled_from((None, 1 << 10, 1 << 12, 1 << 20)),
)
@settings(max_examples=60, deadline=None)
def test_any_mixture_comes_back(parts, level, segment_size):
    rng = random.Random(10)
    makers = {
        "bf16": lambda n: b"".join(struct.pack("<f", rng.gauss(0, 1))[2:] for _ in range(n)),
        "f32": lambda n: array.array("f", (rng.gauss(0, 1) for _ in range(n))).tobytes(),
        "f64": lambda n: array.array("d", (rng.gauss(0, 1) for _ in range(n))).tobytes(),
        "blocks": lambda n: q8_0(n // 10),
        "text": lambda n: (b"words of a text " * n)[:n],
        "zeros": bytes,
        "noise": rng.randbytes,
    }
    data = b"".join(makers[kind](size) for kind, size in parts)
    packed = glyd.compress(data, level, segment_size=segment_size, weights=True)
    assert glyd.decompress(packed) == data
    assert len(packed) < len(data) + 100 + len(data) // 50
    changed = bytearray(data)
    for i in range(0, len(changed), 97):
        changed[i] ^= 1
    against = glyd.compress(changed, level, segment_size=segment_size, weights=True, base=data)
    assert glyd.decompress(against, base=data) == changed

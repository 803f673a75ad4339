# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Tensors of safetensors files in frames: read one by one and in parts, written, refused when broken."""

from __future__ import annotations

import io
import itertools
import json
import random
import sys

import pytest

import glyd

try:
    import numpy as np
except ModuleNotFoundError:  # what needs it is skipped, and says so
    np = None
with_numpy = pytest.mark.skipif(np is None, reason="numpy is not installed")


@pytest.fixture(scope="module")
def tensors(tools):
    rng = random.Random(1)
    return {
        "layers.0.w": ("BF16", (64, 1000), tools.make_bf16(64_000)),
        "layers.1.w": ("BF16", (3, 40, 100), tools.make_bf16(12_000, seed=2)),
        "norm": ("F32", (500,), rng.randbytes(2000)),
        "ids": ("I64", (4, 5), rng.randbytes(160)),
        "empty": ("F16", (0, 7), b""),
        "one": ("U8", (), b"\7"),
    }


@pytest.fixture(scope="module")
def content(tools, tensors):
    return tools.make_safetensors(tensors, {"format": "pt", "note": "a\nb"})


def opened(data, framework="bytes", **options):
    return glyd.open_tensors(io.BytesIO(data), framework, **options)


def test_names_and_bytes(tools, tensors, content):
    for packed in (
        glyd.compress(content),
        glyd.compress(content, "fast", segment_size=1 << 12),
        tools.stream(content, segment_size=1 << 14),
        glyd.compress(content[:100_000]) + tools.skippable(b"note") + glyd.compress(content[100_000:]),
        content,  # no frames at all
    ):
        with opened(packed) as file:
            assert file.keys() == sorted(tensors)
            assert file.offset_keys() == list(tensors)
            assert file.metadata() == {"format": "pt", "note": "a\nb"}
            for name, (dtype, shape, data) in tensors.items():
                assert file.get_tensor(name) == data
                part = file.get_slice(name)
                assert (part.get_dtype(), part.get_shape()) == (dtype, list(shape))
            with pytest.raises(KeyError, match="no tensor 'layers'"):
                file.get_tensor("layers")


def test_rows_as_bytes(tensors, content):
    data = tensors["layers.0.w"][2]
    with opened(glyd.compress(content, segment_size=1 << 13)) as file:
        part = file.get_slice("layers.0.w")
        assert part[:] == part[...] == data
        assert part[5] == part[-59] == data[10_000:12_000]
        assert part[5:9] == data[10_000:18_000]
        assert part[60:99] == data[120_000:]
        assert part[9:5] == b""
        assert part[3, 10:20] == data[6020:6040]
        assert part[3, 10] == data[6020:6022]
        for wrong in (64, -65, (0, 1000), (0, 0, 0), (..., ...)):
            with pytest.raises(IndexError):
                part[wrong]
        with pytest.raises(TypeError):
            part["a"]
        for wrong in (slice(None, None, 2), (slice(None), 3)):
            with pytest.raises(glyd.ParameterError, match="leading dimension"):
                part[wrong]
        assert file.get_slice("one")[()] == b"\7"


@with_numpy
def test_slices_are_those_of_numpy(tensors, content):
    whole = {"ids": np.frombuffer(tensors["ids"][2], np.int64).reshape(4, 5)}
    whole["norm"] = np.frombuffer(tensors["norm"][2], np.float32)
    ones = [
        0,
        2,
        -1,
        slice(None),
        slice(1, 3),
        slice(3, 1),
        slice(None, None, 2),
        slice(None, None, -1),
        slice(3, 0, -2),
    ]
    keys = [*ones, ..., (), (..., 1), (..., slice(2))]
    with opened(glyd.compress(content, segment_size=1 << 10), "numpy") as file:
        for key in [*keys, *itertools.product(ones, ones)]:
            got = file.get_slice("ids")[key]
            np.testing.assert_array_equal(got, whole["ids"][key])
            assert got.dtype == np.int64
        for key in keys[:-2]:
            np.testing.assert_array_equal(file.get_slice("norm")[key], whole["norm"][key])
        empty = file.get_tensor("empty")
        assert (empty.shape, empty.dtype) == ((0, 7), np.float16)
        assert file.get_tensor("one") == np.uint8(7)
        array = file.get_tensor("ids")
        array[:] = 0  # memory of its own
        np.testing.assert_array_equal(file.get_tensor("ids"), whole["ids"])


@with_numpy
def test_bf16_as_numpy(tensors, content):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    with opened(glyd.compress(content), "np") as file:
        array = file.get_tensor("layers.0.w")
        assert array.dtype == ml_dtypes.bfloat16
        assert array.tobytes() == tensors["layers.0.w"][2]
        np.testing.assert_array_equal(
            file.get_slice("layers.1.w")[1, 5:7, ::3], file.get_tensor("layers.1.w")[1, 5:7, ::3]
        )


@with_numpy
def test_what_is_not_installed_is_named(monkeypatch, content):
    for module, framework in (("ml_dtypes", "numpy"), ("numpy", "np"), ("torch", "pt")):
        with monkeypatch.context() as patched, opened(glyd.compress(content), framework) as file:
            patched.setitem(sys.modules, module, None)
            with pytest.raises(ImportError, match=f"needs {module}: pip install {module}"):
                file.get_tensor("layers.0.w")
    with pytest.raises(glyd.ParameterError, match="framework must be"):
        opened(content, "jax")


def test_torch(tmp_path, tensors, content):
    torch = pytest.importorskip("torch")
    with opened(glyd.compress(content), "pt") as file:
        for name, (_, shape, data) in tensors.items():
            tensor = file.get_tensor(name)
            assert tuple(tensor.shape) == shape
            assert bytes(tensor.contiguous().reshape(-1).view(torch.uint8).numpy() if tensor.numel() else b"") == data
        assert file.get_tensor("layers.0.w").dtype == torch.bfloat16
        assert torch.equal(file.get_slice("layers.0.w")[3:5, ::7], file.get_tensor("layers.0.w")[3:5, ::7])
    saved = {"a": torch.randn(30, 20, dtype=torch.bfloat16).T, "b": torch.arange(5), "c": torch.zeros(0, 3)}
    glyd.save_file(saved, tmp_path / "m.glyd")
    loaded = glyd.load_file(tmp_path / "m.glyd", "torch")
    assert all(torch.equal(loaded[name], saved[name]) for name in saved)


@with_numpy
def test_save_and_load(tmp_path):
    rng = np.random.default_rng(1)
    saved = {
        "w": rng.normal(size=(300, 200)).astype(np.float32)[::2],  # not contiguous
        "big": np.arange(100, dtype=">i4"),
        "flag": np.array([True, False]),
        "none": np.zeros((0, 4), np.float64),
        "number": np.array(2.5, np.float16),
    }
    path = tmp_path / "model.safetensors.glyd"
    glyd.save_file(saved, path, {"format": "np"})
    loaded = glyd.load_file(path)
    assert list(loaded) == ["none", "big", "w", "number", "flag"]
    for name, array in saved.items():
        np.testing.assert_array_equal(loaded[name], array)
        assert loaded[name].shape == array.shape
    with glyd.open_tensors(path) as file:
        assert file.metadata() == {"format": "np"}
    # what the library of safetensors reads
    library = pytest.importorskip("safetensors.numpy")
    theirs = library.load(glyd.decompress(path.read_bytes()))
    assert theirs.keys() == saved.keys()
    for name, array in saved.items():
        np.testing.assert_array_equal(theirs[name], array)


@with_numpy
def test_wrong_tensors_leave_what_was_there(tmp_path):
    path = tmp_path / "m.glyd"
    path.write_bytes(b"before")
    good = np.zeros(3)
    for wrong, error in (
        ({"a": [1, 2]}, TypeError),
        ({"a": np.array(["text"])}, glyd.ParameterError),
        ({"__metadata__": good}, glyd.ParameterError),
        ({1: good}, glyd.ParameterError),
    ):
        with pytest.raises(error):
            glyd.save_file(wrong, path)
    with pytest.raises(glyd.ParameterError, match="metadata"):
        glyd.save_file({"a": good}, path, {"a": 1})
    with pytest.raises(FileNotFoundError):
        glyd.save_file({"a": good}, tmp_path / "none" / "m.glyd")
    assert path.read_bytes() == b"before"
    assert [p.name for p in tmp_path.iterdir()] == ["m.glyd"]


def test_only_what_is_needed_is_fetched(tools):
    """One tensor, and one row, of a large file cost the index, the header and their own segments."""
    n, rows, row = 40, 100, 1000
    tensors = {f"t{i:02}": ("BF16", (rows, row), tools.make_bf16(100, seed=i) * row) for i in range(n)}
    packed = glyd.compress(tools.make_safetensors(tensors), segment_size=1 << 15)
    source = tools.Counting(packed)
    with glyd.open_tensors(source, "bytes") as file:
        source.reset()
        assert file.get_tensor("t17") == tensors["t17"][2]
        assert source.n_bytes <= 9 * ((1 << 15) + 100)
        source.reset()
        assert file.get_slice("t30")[50] == tensors["t30"][2][100_000:102_000]
        assert source.n_bytes <= 2 * ((1 << 15) + 100)


@pytest.mark.parametrize("size", [2 << 30])
def test_a_tensor_of_a_file_of_2_gib(tools, size):
    """The same in a file of 2 GiB: zeros, which stand in few bytes, around one tensor of numbers."""
    data = tools.make_bf16(1 << 20)
    before, after = (1 << 30) + 12_345 * 2, size - (1 << 30) - len(data)
    places = {
        "a": (0, before),
        "w": (before, before + len(data)),
        "z": (before + len(data), before + len(data) + after),
    }
    entries = {
        name: {"dtype": "BF16", "shape": [(end - begin) // 2], "data_offsets": [begin, end]}
        for name, (begin, end) in places.items()
    }
    header = json.dumps(entries).encode()
    compressor = glyd.Compressor("turbo", segment_size=1 << 20)
    zeros = bytes(1 << 24)
    out = [compressor.compress(len(header).to_bytes(8, "little") + header)]
    for count in (before, None, after):
        if count is None:
            out.append(compressor.compress(data))
            continue
        out += [compressor.compress(zeros[: min(len(zeros), count - i)]) for i in range(0, count, len(zeros))]
    source = tools.Counting(b"".join([*out, compressor.flush()]))
    with glyd.open_tensors(source, "bytes") as file:
        assert source.n_bytes < 200_000  # the index
        source.reset()
        assert file.get_tensor("w") == data
        assert source.n_bytes < 0.69 * len(data) + (3 << 20) // 2
        source.reset()
        assert file.get_slice("w")[1000:3000] == data[2000:6000]
        assert source.n_bytes < 2 << 20


def test_broken_files_are_refused(content, tools):
    packed = glyd.compress(content)
    for data, error in (
        (b"", glyd.TruncatedError),
        (b"a text", glyd.TruncatedError),
        (glyd.compress(b""), glyd.TruncatedError),
        (glyd.compress(b"a text that is no model"), glyd.FormatError),
        (packed[: len(packed) // 2], glyd.FormatError),
        (glyd.compress(content[:-1]), glyd.TruncatedError),
        (glyd.compress(content + b"a"), glyd.FormatError),
        (glyd.compress((1 << 40).to_bytes(8, "little") + b"{}"), glyd.FormatError),
        (glyd.compress(b"\x02\0\0\0\0\0\0\0[]"), glyd.FormatError),
        (glyd.compress(tools.make_safetensors({"a": ("F32", (2,), b"abcd")})), glyd.FormatError),
    ):
        with pytest.raises(error):
            opened(data)
    for wrong in (7, b"bytes"):
        with pytest.raises(TypeError):
            glyd.open_tensors(wrong)
    with pytest.raises(io.UnsupportedOperation):
        glyd.open_tensors(tools.Slow(packed))
    with pytest.raises(glyd.LimitError):
        opened(packed, limits=glyd.Limits(max_output=1000))


def test_damage_shows_where_it_is(tensors, content):
    packed = bytearray(glyd.compress(content, segment_size=1 << 14))
    packed[len(packed) // 3] ^= 1
    with opened(packed) as file:
        with pytest.raises(glyd.FormatError):
            file.get_tensor("layers.0.w")
        assert file.get_tensor("ids") == tensors["ids"][2]

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Data and sources that the tests share."""

from __future__ import annotations

import array
import io
import json
import random
import struct
import sys
from pathlib import Path

import pytest

import glyd
from glyd_codec._native import ffi, lib  # noqa: TID251  to make frames that no writer makes

sys.path.insert(0, str(Path(__file__).parent))  # tables that several test modules import, wherever pytest runs

WORDS = (
    b"frame segment block plane literal match offset window level index trailer header check of the a in to is "
    b"and, for. with\n from that bytes reader writer"
).split(b" ")


def make_text(size: int, seed: int = 1) -> bytes:
    """Return words in random order: matches and skewed literals at every scale."""
    rng = random.Random(seed)
    out = b" ".join(rng.choices(WORDS, k=size // 4 + 1))
    return out[:size]


class Slow(io.RawIOBase):
    """A pipe-like source: a few bytes a read, no seek."""

    def __init__(self, data: bytes, step: int = 11) -> None:
        self._data = io.BytesIO(data)
        self._step = step

    def readable(self) -> bool:
        return True

    def readinto(self, out) -> int:
        part = self._data.read(min(len(out), self._step))
        out[: len(part)] = part
        return len(part)


class ShortReads(io.BytesIO):
    """A source that can seek and gives less than asked for."""

    def read(self, size=-1):
        return super().read(min(size, 1000) if size and size > 0 else 1000)

    def read1(self, size=-1):
        return self.read(size)

    def readinto(self, out):
        part = self.read(len(out))
        out[: len(part)] = part
        return len(part)


class Counting(io.BytesIO):
    """A source that counts what is fetched from it."""

    n_bytes = 0
    n_reads = 0

    def read(self, size=-1):
        return self._count(super().read(size))

    def read1(self, size=-1):
        return self._count(super().read1(size))

    def readinto(self, out):
        n = super().readinto(out)
        self.n_bytes += n
        self.n_reads += 1
        return n

    def _count(self, data):
        self.n_bytes += len(data)
        self.n_reads += 1
        return data

    def reset(self):
        self.n_bytes = self.n_reads = 0


def stream(data: bytes, step: int = 997, **options) -> bytes:
    """Compress piece by piece, size unknown."""
    compressor = glyd.Compressor(**options)
    out = [compressor.compress(data[i : i + step]) for i in range(0, len(data), step)]
    return b"".join([*out, compressor.flush()])


def skippable(data: bytes, tag: int = 7) -> bytes:
    """Return a skippable frame (docs/format.md)."""
    head = bytes.fromhex("9d474c53") + struct.pack("<IQ", tag, len(data))
    return head + checksum32(head) + data


def checksum32(data: bytes) -> bytes:
    """Return the 4-byte check of the format."""
    return (lib.glyd_checksum(ffi.from_buffer(data), len(data)) & 0xFFFFFFFF).to_bytes(4, "little")


def seal(header: bytes) -> bytes:
    """Return a frame header with its check."""
    return header + checksum32(header)


def make_bf16(size: int, seed: int = 1, scale: float = 0.02) -> bytes:
    """Return bf16 weights of a Gaussian."""
    rng = random.Random(seed)
    wide = array.array("f", (rng.gauss(0, scale) for _ in range(size))).tobytes()
    out = bytearray(2 * size)
    out[0::2], out[1::2] = wide[2::4], wide[3::4]
    return bytes(out)


def make_safetensors(tensors, metadata=None, padding: int = 0, order=None) -> bytes:
    """Return a safetensors file: tensors maps names to dtype, shape, bytes; order is that of the data."""
    header = {} if metadata is None else {"__metadata__": metadata}
    places, data = {}, b""
    for name in order or tensors:
        places[name] = [len(data), len(data) + len(tensors[name][2])]
        data += tensors[name][2]
    for name, (dtype, shape, _) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": places[name]}
    text = json.dumps(header).encode() + b" " * padding
    return len(text).to_bytes(8, "little") + text + data


def make_sparse_model(folder, shapes, config=None, n_shards=1):
    """Write bf16 weight files of any size that take no disk."""
    folder.mkdir(exist_ok=True)
    names = list(shapes)
    weight_map = {}
    for s in range(n_shards):
        header, at = {}, 0
        for name in names[s::n_shards]:
            nbytes = 2
            for side in shapes[name]:
                nbytes *= side
            header[name] = {"dtype": "BF16", "shape": shapes[name], "data_offsets": [at, at + nbytes]}
            at += nbytes
        text = json.dumps(header).encode()
        file_name = "model.safetensors" if n_shards == 1 else f"model-{s}.safetensors"
        weight_map |= dict.fromkeys(header, file_name)
        with open(folder / file_name, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            file.truncate(8 + len(text) + at)
    if n_shards > 1:
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))


GGUF_VALUES = ((b"general.architecture", 8, struct.pack("<Q", 5) + b"llama"),)


def make_gguf(tensors, values=GGUF_VALUES, align=32) -> bytes:
    """Return a GGUF file of version 3: tensors is (name, dims, type, bytes), values (key, type, bytes)."""

    def text(value):
        return struct.pack("<Q", len(value)) + value

    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values))
    head += b"".join(text(key) + struct.pack("<I", kind) + value for key, kind, value in values)
    data = b""
    for name, dims, kind, content in tensors:
        head += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, len(data))
        data += content + bytes(-len(content) % align)
    return head + bytes(-len(head) % align) + data


class Tools:
    """What tests share, as one fixture: test modules cannot import each other."""

    make_text = staticmethod(make_text)
    make_bf16 = staticmethod(make_bf16)
    make_safetensors = staticmethod(make_safetensors)
    make_gguf = staticmethod(make_gguf)
    make_sparse_model = staticmethod(make_sparse_model)
    stream = staticmethod(stream)
    skippable = staticmethod(skippable)
    seal = staticmethod(seal)
    checksum32 = staticmethod(checksum32)
    Slow = Slow
    ShortReads = ShortReads
    Counting = Counting


@pytest.fixture(scope="session")
def tools():
    return Tools


@pytest.fixture(scope="session")
def text() -> bytes:
    return make_text(700_000)


@pytest.fixture(scope="session")
def noise() -> bytes:
    return random.Random(2).randbytes(300_000)


@pytest.fixture(scope="session")
def parts(noise) -> list[bytes]:
    """Contents of several frames: plain, empty, streamed, noise, one byte."""
    return [
        b"first frame\n" * 500,
        b"",
        b"second, a stream of unknown size\n" * 9000,
        noise[:70_000],
        b"z",
        make_text(150_000),
    ]


@pytest.fixture(scope="session")
def frames(parts) -> list[bytes]:
    """Frames of these parts, made in every way, with trailers and without."""
    return [
        glyd.compress(parts[0]),
        glyd.compress(parts[1]),
        stream(parts[2], segment_size=1 << 14),
        glyd.compress(parts[3], "fast"),
        stream(parts[4]),
        glyd.compress(parts[5], "default", segment_size=1 << 12, checksum=False),
    ]


@pytest.fixture(scope="session")
def joined(frames) -> bytes:
    """All of them in a row, skippable frames between."""
    return (
        frames[0] + skippable(b"") + frames[1] + b"".join(frames[2:4]) + skippable(b"note" * 99) + b"".join(frames[4:])
    )


@pytest.fixture(scope="session")
def content(parts) -> bytes:
    return b"".join(parts)

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""The package against the reference decoder (tools/), which was written from the format pages alone."""

from __future__ import annotations

import array
import importlib
import io
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import glyd
from glyd_codec._native import ffi, lib  # noqa: TID251 -- the hash of the core itself

TOOLS = Path(__file__).resolve().parents[3] / "tools"
if not (TOOLS / "reference_decoder.py").is_file():
    pytest.skip(f"the reference decoder is in a checkout only, not in an sdist: no {TOOLS}", allow_module_level=True)

sys.path.insert(0, str(TOOLS))
reference = importlib.import_module("reference_decoder")
fields_generator = importlib.import_module("fields_generator")
fine_generator = importlib.import_module("fine_generator")
writer = importlib.import_module("frame_writer")
generator = importlib.import_module("frame_generator")
breaker = importlib.import_module("frame_breaker")
xxh3_64 = importlib.import_module("reference_xxh3").xxh3_64
sys.path.remove(str(TOOLS))

N_STREAMS = int(os.environ.get("GLYD_REFERENCE_STREAMS", "250"))  # more for a longer search
N_MUTATIONS = int(os.environ.get("GLYD_REFERENCE_MUTATIONS", "1500"))
LEVELS = ("turbo", "fast", "default", "max", "high", "ultra")
CLASSES = {
    "magic": glyd.FormatError,
    "version": glyd.UnsupportedVersionError,
    "feature": glyd.UnsupportedVersionError,
    "header": glyd.CorruptDataError,
    "corrupt": glyd.CorruptDataError,
    "checksum": glyd.ChecksumError,
    "truncated": glyd.TruncatedError,
    "trailing": glyd.CorruptDataError,
}


def outcome(read, data):
    """Return the content, or the class of the error."""
    try:
        return read(data)
    except glyd.FormatError as error:
        return type(error)


def reference_outcome(data):
    try:
        return reference.decode(data)
    except reference.FormatError as error:
        return CLASSES[error.category]


def read_opened(data):
    with glyd.open(io.BytesIO(data)) as file:
        return file.read()


def test_hash_is_the_same():
    rng = random.Random(1)
    for size in (*range(600), 1023, 1024, 1025, 1088, 2048, 2049, 5000, 70_000):
        data = rng.randbytes(size)
        assert xxh3_64(data) == lib.glyd_checksum(ffi.from_buffer(data), size), size


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("options", [{}, {"segment_size": 1 << 12}, {"checksum": False}])
def test_reference_reads_what_the_package_writes(level, options, tools, noise):
    records = b"".join(i.to_bytes(4, "little") + b"ab\0" + bytes([i * i & 255]) for i in range(4000))
    text = tools.make_text(60_000)
    for data in (b"", b"x", text, text[:300], noise[:20_000], records, bytes(400_000), text + noise[:5000] + text):
        assert reference.decode(glyd.compress(data, level, **options)) == data
        assert reference.decode(tools.stream(data, level=level, **options)) == data


@pytest.mark.parametrize("level", LEVELS)
def test_reference_reads_models(level, tools):
    tensors = {
        "a": ("BF16", (100, 70), tools.make_bf16(7000)),
        "b": ("F32", (3000,), array.array("f", (random.Random(1).gauss(0, 1) for _ in range(3000))).tobytes()),
        "c": ("I64", (900,), array.array("q", range(900)).tobytes()),
    }
    data = tools.make_safetensors(tensors)
    packed = glyd.compress(data, level)
    assert [s.kind for s in glyd.iter_segments(packed)] == ["weights"]
    assert reference.decode(packed) == data
    assert reference.decode(glyd.compress(data, level, segment_size=1 << 12)) == data


def test_generated_streams():
    n_bytes = 0
    for seed in range(N_STREAMS):
        makers = (generator.valid_stream, fine_generator.valid_fine_frame, fields_generator.valid_weights_frame)
        make = makers[max(0, seed % 4 - 1)]
        data, content = make(random.Random(seed))
        where = f"{make.__name__}(random.Random({seed}))"
        assert reference.decode(data) == content, where
        for read in (glyd.decompress, read_opened, lambda d: glyd.decompress(d, threads=2)):
            assert outcome(read, data) == content, where
        n_bytes += len(data)
    assert n_bytes > 100 * N_STREAMS


@pytest.mark.parametrize("group", breaker.GROUPS, ids=lambda group: group.__name__)
def test_rules(group):
    """Every broken frame is refused, with the right error; its valid neighbour is read."""
    seen = set()
    for case in group():
        assert case.name not in seen
        seen.add(case.name)
        want = case.content if case.category is None else CLASSES[case.category]
        for read in (reference_outcome, glyd.decompress, read_opened):
            got = outcome(read, case.data)
            assert got == want, case.name
    assert len(seen) > 5


def mutate(rng, payload):
    """Change a byte or two, more often where the fields are."""
    payload = bytearray(payload)
    for _ in range(rng.choice((1, 1, 1, 2))):
        i = rng.choice((rng.randrange(len(payload)), rng.randrange(min(len(payload), 40))))
        kind = rng.random()
        if kind < 0.6:
            payload[i] ^= 1 << rng.randrange(8)
        elif kind < 0.8:
            payload[i] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        elif kind < 0.9 and len(payload) > 1:
            del payload[i]
        else:
            payload.insert(i, rng.choice((0, 255, payload[i])))
    return bytes(payload)


def test_changed_payloads_are_read_alike():
    """Both decoders refuse the same ones, and read the same bytes from the others."""
    n_read = n_refused = 0
    for seed in range(N_MUTATIONS):
        rng = random.Random(seed)
        makers = (generator.lz_segment, fine_generator.fine_segment, fields_generator.weights_segment)
        make = makers[max(0, seed % 4 - 1)]
        segment = make(rng, 1 << rng.choice((6, 9, 12)))
        segment.payload = mutate(rng, segment.payload)
        data = writer.frame([segment], known_size=True, with_trailer=False)
        want = reference_outcome(data)
        assert outcome(glyd.decompress, data) == want, seed
        n_read += isinstance(want, bytes)
        n_refused += not isinstance(want, bytes)
    assert min(n_read, n_refused) > N_MUTATIONS // 10


def test_command(tmp_path):
    path = tmp_path / "file.glyd"
    path.write_bytes(glyd.compress(b"content" * 99))
    command = [sys.executable, str(TOOLS / "reference_decoder.py"), str(path)]
    assert subprocess.run(command, check=True, capture_output=True).stdout == b"content" * 99
    path.write_bytes(path.read_bytes()[:-1])
    done = subprocess.run(command, check=False, capture_output=True)
    assert done.returncode == 1
    assert done.stderr.startswith(b"truncated, byte ")
    assert done.stdout == b""

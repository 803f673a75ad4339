# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Base segments against the reference decoder (tools/), which was written from the format pages alone."""

from __future__ import annotations

import importlib
import random
import sys
from pathlib import Path

import pytest

import glyd

TOOLS = Path(__file__).resolve().parents[3] / "tools"
if not (TOOLS / "reference_decoder.py").is_file():
    pytest.skip(f"the reference decoder is in a checkout only, not in an sdist: no {TOOLS}", allow_module_level=True)

sys.path.insert(0, str(TOOLS))
reference = importlib.import_module("reference_decoder")
generator = importlib.import_module("base_generator")
xxh3_128 = importlib.import_module("reference_xxh3").xxh3_128
sys.path.remove(str(TOOLS))

CLASSES = {
    "header": glyd.CorruptDataError,
    "corrupt": glyd.CorruptDataError,
    "feature": glyd.UnsupportedVersionError,
    "truncated": glyd.TruncatedError,
    "checksum": glyd.ChecksumError,
    "base missing": glyd.MissingBaseError,
    "base wrong": glyd.WrongBaseError,
}


def outcome(data, base):
    try:
        return glyd.decompress(data, base=base)
    except glyd.GlydError as error:
        return type(error)


def reference_outcome(data, base):
    try:
        return reference.decode(data, base)
    except reference.FormatError as error:
        return CLASSES[error.category]


@pytest.mark.parametrize("size", [*range(18), 64, 128, 129, 240, 241, 500, 1024, 1025, 9000])
def test_ids(size):
    data = random.Random(size).randbytes(size)
    assert glyd.Base(data).id == xxh3_128(data).to_bytes(16, "big")


@pytest.mark.parametrize("seed", range(60))
def test_what_the_library_writes(seed):
    rng = random.Random(seed)
    base, new = generator.versions(rng)
    for level in (level for level in glyd.LEVELS if level != "cold"):  # which takes no base
        frame = glyd.compress(new, level, base=base, segment_size=rng.choice([None, 1024, 4096]))
        assert reference.decode(frame, base) == new
        assert reference_outcome(frame, None) is glyd.MissingBaseError
        assert reference_outcome(frame, base + b"?") is glyd.WrongBaseError


@pytest.mark.parametrize("seed", range(250))
def test_what_no_encoder_writes(seed):
    rng = random.Random(seed)
    frame, base, content = generator.valid_frame(rng)
    assert reference.decode(frame, base) == content
    assert glyd.decompress(frame, base=base) == content


@pytest.mark.parametrize("seed", range(150))
def test_differences_that_no_encoder_writes(seed):
    """Small ones; every tenth so large that loops take many numbers at once, some of them with several blocks."""
    most = 400_000 if seed % 50 == 49 else 60_000 if seed % 10 == 9 else 4096
    frame, base, content = generator.valid_difference_frame(random.Random(seed), most)
    assert reference.decode(frame, base) == content
    assert glyd.decompress(frame, base=base) == content


@pytest.mark.parametrize("kind", ["bf16", "fp16", "fp32"])
@pytest.mark.parametrize("share", [0.02, 0.3, 1])
def test_differences_that_the_library_writes(kind, share):
    """Numbers trained further: few, some and all of them changed, in groups of what they were."""
    base, content = generator.trained(random.Random(f"{kind} {share}"), kind, 9000, share)
    frame = glyd.compress(content, base=base)
    assert {segment.kind for segment in glyd.iter_segments(frame)} == {"weights"}
    assert len(frame) < len(glyd.compress(content)) * 0.95
    assert reference.decode(frame, base) == content
    assert glyd.decompress(frame, base=base) == content


@pytest.mark.parametrize("seed", range(160))
def test_what_is_broken(seed):
    """Bytes changed, without a check to see it: both read the same or refuse."""
    rng = random.Random(seed)
    make = generator.valid_frame if seed < 120 else generator.valid_difference_frame
    frame, base, _ = make(rng, check_kind=0)
    first = glyd.get_frame_info(frame).header_nbytes
    for _ in range(20):
        broken = bytearray(frame)
        for _ in range(rng.randint(1, 3)):
            broken[rng.randrange(first, len(broken))] = rng.choice([0, 1, 15, 16, 127, 128, 255, rng.randrange(256)])
        found, wanted = outcome(bytes(broken), base), reference_outcome(bytes(broken), base)
        # with several faults either may be named
        assert found == wanted or (not isinstance(found, bytes) and not isinstance(wanted, bytes))


@pytest.mark.parametrize(
    ("data", "base", "category"), generator.broken_headers().values(), ids=generator.broken_headers()
)
def test_headers(data, base, category):
    assert reference_outcome(data, base) is CLASSES[category]
    assert outcome(data, base) is CLASSES[category]
    with pytest.raises(CLASSES[category]):
        glyd.Decompressor(base=base).decompress(data)

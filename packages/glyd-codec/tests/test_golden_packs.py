# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Golden packs and packed models, and packs against a second reader written from their specification."""

from __future__ import annotations

import hashlib
import importlib
import os
import random
import sys
from pathlib import Path

import pytest

import glyd

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "native" / "tests" / "golden_packs"
if not (GOLDEN / "manifest.txt").is_file():
    pytest.skip(f"golden packs are in a checkout only, not in an sdist: no {GOLDEN}", allow_module_level=True)

sys.path.insert(0, str(ROOT / "tools"))
reference = importlib.import_module("reference_weights")
sys.path.remove(str(ROOT / "tools"))

ENTRIES = [line.split() for line in (GOLDEN / "manifest.txt").read_text(encoding="utf-8").splitlines()]
FILES = {name: (int(s), int(layout), int(rows), int(cols), int(c, 16)) for name, s, layout, rows, cols, c in ENTRIES}
ORIGINALS = [line.split() for line in (GOLDEN / "models.txt").read_text(encoding="utf-8").splitlines()]
CATEGORIES = {10: "magic", 11: "version", 12: "feature", 13: "header", 20: "corrupt", 22: "truncated"}
CLASSES = {
    "magic": glyd.FormatError,
    "version": glyd.UnsupportedVersionError,
    "feature": glyd.UnsupportedVersionError,
    "header": glyd.CorruptDataError,
    "corrupt": glyd.CorruptDataError,
    "truncated": glyd.TruncatedError,
}
N_CHANGED = int(os.environ.get("GLYD_REFERENCE_PACKS", "150"))  # more for a longer search


def test_the_manifest_names_every_file_once():
    assert len(FILES) == len(ENTRIES) >= 40
    assert sorted(FILES) == sorted(path.name for path in GOLDEN.glob("*.pack"))
    assert {status for status, *_ in FILES.values()} == {0, *CATEGORIES}


@pytest.mark.parametrize("name", FILES)
def test_package(name):
    data = (GOLDEN / name).read_bytes()
    status, layout, rows, cols, check = FILES[name]
    if status == 0:
        weights = glyd.unpack_weights(data)
        assert glyd.checksum(weights) == check
        layout_name = {1: "mma12", 2: "tiered"}[layout]
        info = glyd.read_weights_info(data)
        assert (info.layout, info.rows, info.cols, info.nbytes) == (layout_name, rows, cols, len(data))
        assert glyd.pack_weights(weights, rows, cols, layout=layout_name) == data
    else:
        with pytest.raises(glyd.FormatError) as caught:
            glyd.unpack_weights(data)
        assert type(caught.value) is CLASSES[CATEGORIES[status]]


@pytest.mark.parametrize("name", FILES)
def test_reference(name):
    data = (GOLDEN / name).read_bytes()
    status, *_, check = FILES[name]
    if status == 0:
        assert glyd.checksum(reference.decode(data)) == check
    else:
        with pytest.raises(reference.FormatError) as caught:
            reference.decode(data)
        assert caught.value.category == CATEGORIES[status]


@pytest.mark.parametrize("layout", ["tiered", "mma12"])
def test_model(tmp_path, layout):
    folder = GOLDEN / f"model-{layout}"
    assert glyd.verify_model(folder).n_packed == 2
    report = glyd.unpack_model(folder, tmp_path / "b")
    assert report.layout == layout
    found = sorted(path for path in (tmp_path / "b").rglob("*") if path.is_file())
    assert [path.relative_to(tmp_path / "b").as_posix() for path in found] == [name for name, *_ in ORIGINALS]
    for path, (_, nbytes, sha256) in zip(found, ORIGINALS, strict=True):
        assert path.stat().st_size == int(nbytes)
        assert hashlib.sha256(path.read_bytes()).hexdigest() == sha256
    again = tmp_path / "p"
    glyd.pack_model(tmp_path / "b", again, layout)
    for path in again.rglob("*.safetensors"):  # what a packer must write; blobs may come to be others
        assert path.read_bytes() == (folder / path.name).read_bytes()


def outcome(read, data):
    """Return the weights, or the class of the error."""
    try:
        return bytes(read(data))
    except glyd.FormatError as error:
        return type(error)
    except reference.FormatError as error:
        return CLASSES[error.category]


def changed(rng, pack, info):
    """Return a pack with a byte or two changed, mostly where they decide something."""
    data = bytearray(pack)
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.choice((
            rng.randrange(128), rng.randrange(128, info.tiles_at), rng.randrange(info.tiles_at, len(data)),
            info.escapes_at + rng.randrange(64), info.exc_places_at + rng.randrange(64),
        ))  # fmt: skip
        at = min(at, len(data) - 1)
        data[at] = rng.choice((data[at] ^ 1 << rng.randrange(8), rng.randrange(256), 0, 255))
    return data if rng.random() > 0.05 else data[: rng.randrange(len(data))]


@pytest.mark.parametrize("layout", ["tiered", "mma12"])
def test_both_readers_agree(tools, layout):
    """On packs with every kind of weight, and on what is left of them after changes."""
    rng = random.Random(f"{layout}")
    gauss = tools.make_bf16(126 * 250)
    outcomes = set()
    n = 0
    while n < N_CHANGED:
        rows, cols = rng.choice(((60, 120), (64, 128), (61, 250), (120, 128), (126, 125)))
        weights = bytearray(gauss[: 2 * rows * cols])
        for _ in range(rng.choice((0, 5, 300))):
            at = 2 * rng.randrange(rows * cols)
            weights[at : at + 2] = rng.choice((b"\x80\x7f", b"\1\0", b"\0\x80", b"\0\0", rng.randbytes(2)))
        row = rng.randrange(rows)
        weights[2 * row * cols : 2 * (row + 1) * cols] = bytes(2 * cols)
        pack = glyd.pack_weights(weights, rows, cols, layout=layout)
        if pack is None:
            continue
        assert reference.decode(pack) == weights
        info = glyd.read_weights_info(pack)
        for _ in range(6):
            data = bytes(changed(rng, pack, info))
            result = outcome(reference.decode, data)
            assert outcome(glyd.unpack_weights, data) == result
            outcomes.add(result if isinstance(result, type) else bytes)
            n += 1
    assert {bytes, glyd.CorruptDataError} <= outcomes

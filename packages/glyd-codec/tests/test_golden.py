# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Golden files: what they hold is pinned, for the package and for the reference decoder.

The native test of the same files runs every CPU variant over them.
"""

from __future__ import annotations

import importlib
import io
import sys
from pathlib import Path

import pytest

import glyd
from glyd_codec._native import ffi, lib  # noqa: TID251 -- the hash of the core itself

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "native" / "tests" / "golden"
if not (GOLDEN / "manifest.txt").is_file():
    pytest.skip(f"golden files are in a checkout only, not in an sdist: no {GOLDEN}", allow_module_level=True)

ENTRIES = [line.split() for line in (GOLDEN / "manifest.txt").read_text(encoding="utf-8").splitlines()]
FILES = {name: (int(status), int(size), int(check, 16)) for name, status, size, check in ENTRIES}
CLASSES = {
    10: glyd.FormatError,
    11: glyd.UnsupportedVersionError,
    12: glyd.UnsupportedVersionError,
    13: glyd.CorruptDataError,
    20: glyd.CorruptDataError,
    21: glyd.ChecksumError,
    22: glyd.TruncatedError,
    23: glyd.CorruptDataError,
}


@pytest.fixture(scope="module")
def reference():
    sys.path.insert(0, str(ROOT / "tools"))
    yield importlib.import_module("reference_decoder")
    sys.path.remove(str(ROOT / "tools"))


def check_content(name: str, content: bytes) -> None:
    _, size, check = FILES[name]
    assert len(content) == size
    assert lib.glyd_checksum(ffi.from_buffer(content), size) == check


def read_opened(data: bytes) -> bytes:
    with glyd.open(io.BytesIO(data)) as file:
        return file.read()


def test_the_manifest_names_every_file_once():
    assert len(FILES) == len(ENTRIES) > 100
    assert sorted(FILES) == sorted(path.relative_to(GOLDEN).as_posix() for path in GOLDEN.rglob("*.glyd"))
    assert {status for status, _, _ in FILES.values()} == {0, *CLASSES}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("read", [glyd.decompress, read_opened])
def test_package(name, read):
    data = (GOLDEN / name).read_bytes()
    status = FILES[name][0]
    if status == 0:
        check_content(name, read(data))
    else:
        with pytest.raises(glyd.FormatError) as caught:
            read(data)
        assert type(caught.value) is CLASSES[status]


@pytest.mark.parametrize("name", FILES)
def test_reference_decoder(name, reference):
    data = (GOLDEN / name).read_bytes()
    status = FILES[name][0]
    if status == 0:
        check_content(name, reference.decode(data))
    else:
        categories = ("magic", "version", "feature", "header", "corrupt", "checksum", "truncated", "trailing")
        with pytest.raises(reference.FormatError) as caught:
            reference.decode(data)
        assert caught.value.category == dict(zip(CLASSES, categories, strict=True))[status]

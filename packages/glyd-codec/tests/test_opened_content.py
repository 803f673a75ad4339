# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Opened content: the streams in it come back bit for bit, and broken input is refused."""

from __future__ import annotations

import gzip
import importlib
import io
import mmap
import random
import sys
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glyd
from glyd_codec import _opened

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "native" / "tests" / "golden_opened"
if not (GOLDEN / "manifest.txt").is_file():
    pytest.skip(f"golden files are in a checkout only, not in an sdist: no {GOLDEN}", allow_module_level=True)

sys.path.insert(0, str(ROOT / "tools"))
reference = importlib.import_module("reference_opened_content")
sys.path.remove(str(ROOT / "tools"))

ENTRIES = [line.split() for line in (GOLDEN / "manifest.txt").read_text(encoding="utf-8").splitlines()]
FILES = {name: (int(status), int(size), int(check, 16)) for name, status, size, check in ENTRIES}
CLASSES = {10: glyd.FormatError, 20: glyd.CorruptDataError, 22: glyd.TruncatedError}
LINES = b"".join(b"%d,%d,name%d,%d.25\n" % (i, i * i % 977, i % 13, i % 100) for i in range(4000))


def archive(lines: bytes) -> bytes:
    """Return a zip file with three members, one of them stored."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as members:
        for i, kind in enumerate((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)):
            name = zipfile.ZipInfo(f"member {i}", (2026, 1, 1, 0, 0, 0))
            members.writestr(name, lines[i * 1000 :], kind)
    return file.getvalue()


def test_the_manifest_is_complete():
    assert sorted(FILES) == sorted(path.name for path in GOLDEN.glob("*.opened"))
    assert {status for status, *_ in FILES.values()} == {0, *CLASSES}


@pytest.mark.parametrize("name", FILES)
def test_golden(name):
    data = (GOLDEN / name).read_bytes()
    status, size, check = FILES[name]
    if status:
        with pytest.raises(CLASSES[status]):
            glyd.close_streams(data)
        return
    content = glyd.close_streams(data)
    assert (len(content), glyd.checksum(content)) == (size, check)
    assert reference.decode_content(data) == content
    assert glyd.open_streams(content) == data


@pytest.mark.parametrize("data", [gzip.compress(LINES, mtime=0), archive(LINES), b"head" + zlib.compress(LINES, 9)])
def test_what_is_inside_lies_there_as_it_is(data):
    opened = glyd.open_streams(data)
    assert LINES[2000:] in opened
    assert glyd.close_streams(memoryview(opened)) == data
    assert glyd.close_streams(opened, max_size=len(data)) == data
    with pytest.raises(glyd.LimitError, match=f"allowed {len(data) - 1}, needed {len(data)}"):
        glyd.close_streams(opened, max_size=len(data) - 1)


def test_versions_of_archives_have_in_common_what_is_inside():
    changed = LINES.replace(b"17,name3,", b"18,name3,", 3)
    old, new = archive(LINES), archive(changed)
    assert len(glyd.compress(glyd.open_streams(new), base=glyd.open_streams(old))) < 700
    assert len(glyd.compress(new, base=old)) > 3000


@pytest.mark.parametrize("data", [b"", b"a", LINES, random.Random(1).randbytes(20_000), b"\x1f\x8b\x08\0"])
def test_nothing_to_open(data):
    assert glyd.open_streams(data) is None


def test_too_much():
    with mmap.mmap(-1, (1 << 28) + 1) as data, pytest.raises(glyd.ParameterError, match="268435457"):
        glyd.open_streams(data)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.sampled_from((LINES[:6000], b"abc" * 2000, random.Random(2).randbytes(3000))),
            st.integers(0, 9),
            st.sampled_from((15, 31)),
            st.integers(1, 9),
            st.integers(0, 4),
            st.binary(max_size=20),
        ),
        min_size=1,
        max_size=3,
    ),
    st.integers(0, 300),
)
def test_any_streams(streams, cut):
    data = b""
    for content, level, wbits, memory, strategy, between in streams:
        packer = zlib.compressobj(level, zlib.DEFLATED, wbits, memory, strategy)
        data += packer.compress(content) + packer.flush() + between
    data = data[: max(len(data) - cut, 1)]
    opened = glyd.open_streams(data)
    assert opened is None or glyd.close_streams(opened) == data


SMALL = archive(LINES[: len(LINES) // 10])
OPENED = glyd.open_streams(SMALL)


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 1 << 30), st.integers(1, 255))
def test_damage(place, change):
    """It is refused, or gives something else: whoever keeps opened content keeps a check."""
    opened = bytearray(OPENED)
    where = place % len(opened) if place % 3 else place % 24
    opened[where] ^= change
    try:
        found = glyd.close_streams(opened, max_size=2 * len(SMALL))
    except (glyd.FormatError, glyd.LimitError):
        return
    assert where >= 8
    assert len(found) <= 2 * len(SMALL)


def test_what_does_not_come_back_is_not_opened(monkeypatch):
    """Unless the caller sees to it."""
    opened = glyd.open_streams(SMALL)
    assert opened is not None
    assert glyd.open_streams(SMALL, verify=False) == opened
    assert glyd.open_streams(memoryview(SMALL).cast("b")) == opened

    def broken(data, **options):
        raise glyd.CorruptDataError("this is not what was opened")

    for close in (broken, lambda data, **options: SMALL[:-1] + b"?"):
        monkeypatch.setattr(_opened, "close_streams", close)
        assert glyd.open_streams(SMALL) is None
        assert glyd.open_streams(SMALL, verify=False) == opened

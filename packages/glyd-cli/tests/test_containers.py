# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Opened containers: --open, --no-open, --content, and what -v and --info say."""

import gzip
import io
import json
import zipfile

import pytest

ROWS = b"".join(b"%d,%d,name%d\n" % (i, i * i % 977, i % 13) for i in range(6000))


@pytest.fixture
def log(tmp_path):
    (tmp_path / "log.gz").write_bytes(gzip.compress(ROWS, mtime=0))
    return tmp_path / "log.gz"


def kinds(glyd, name):
    return set(json.loads(glyd("--info", "--json", name).out)[0]["kinds"])


@pytest.mark.parametrize(
    ("flags", "is_opened"),
    [(("--ultra",), True), (("--cold",), True), (("--high",), False), (("--ultra", "--no-open"), False),
     (("--high", "--open"), True)],
)  # fmt: skip
def test_open_and_back(glyd, log, flags, is_opened):
    glyd(*flags, "log.gz")
    assert ("opened" in kinds(glyd, "log.gz.glyd")) == is_opened
    assert glyd("-dc", "log.gz.glyd").out == log.read_bytes()
    glyd("--test", "log.gz.glyd")


def test_content(glyd, log, tmp_path):
    glyd("-19", "log.gz")
    assert glyd("--content", "log.gz.glyd").out == ROWS
    glyd("--content", "log.gz.glyd", "-o", "log")
    assert (tmp_path / "log").read_bytes() == ROWS
    piped = (tmp_path / "log.gz.glyd").read_bytes()
    assert glyd("--content", input=piped).out == ROWS
    glyd.fail("--content", "--memory", "1M", "log.gz.glyd", code=4)


def test_content_of_what_is_closed(glyd, log):
    glyd("-9", "log.gz")
    assert "--open" in glyd.fail("--content", "log.gz.glyd", code=2)


def test_content_that_is_not_complete(glyd, tmp_path):
    """A stream that was cut is not passed off as its content."""
    half = gzip.compress(ROWS * 8, mtime=0)[:-9000]
    (tmp_path / "half.gz").write_bytes(half)
    glyd("-19", "half.gz")
    assert "in part" in glyd.fail("--content", "half.gz.glyd", code=2)
    assert glyd("--content", "half.gz.glyd", code=2).out == b""
    assert glyd("-dc", "half.gz.glyd").out == half


def test_verbose_and_info_say_what_was_opened(glyd, tmp_path):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("rows.csv", ROWS)
        archive.writestr("tiny", b"tiny")
    (tmp_path / "a.zip").write_bytes(target.getvalue())
    told = glyd("-19", "-v", "a.zip").err
    assert "zip: 1 streams opened" in told
    assert "stays closed: too short to gain" in told
    info = glyd("--info", "a.zip.glyd").out.decode()
    assert f"1 streams opened: {len(ROWS)} bytes inside" in info
    [listed] = json.loads(glyd("--info", "--json", "a.zip.glyd").out)
    assert listed["opened"][0]["inside_nbytes"] == len(ROWS)


def test_options_that_contradict(glyd, log):
    assert "--content" in glyd.fail("-d", "--open", "log.gz", code=1)
    glyd.fail("--open", "--base", "log.gz", "log.gz", code=1)
    glyd.fail("--content", "-d", "log.gz", code=1)

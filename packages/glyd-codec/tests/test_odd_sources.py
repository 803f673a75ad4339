# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Sources that do not end, or do not keep to the rules: an error soon, no endless work."""

from __future__ import annotations

import io

import pytest

import glyd

ENOUGH_NBYTES = 1 << 26  # nothing here needs as much input to see that it is wrong


class Endless:
    """Gives the same bytes for ever; asked for all of them it gives a large part."""

    def __init__(self, start: bytes, rest: bytes) -> None:
        self._start = start
        self._rest = rest
        self.n_given = 0

    def read(self, size=-1):
        if self.n_given > ENOUGH_NBYTES:
            pytest.fail(f"{self.n_given} bytes were read and no error was seen")
        out, self._start = self._start, b""
        out = out or self._rest * (-(-(size if size > 0 else 1 << 20) // len(self._rest)))
        self.n_given += len(out)
        return out


class EndlessWithSeek(Endless):
    def seekable(self):
        return True

    def tell(self):
        return 0

    def seek(self, place, whence=0):
        return place


@pytest.mark.parametrize("limits", [None, glyd.Limits(max_output=1000)])
@pytest.mark.parametrize("kind", [Endless, EndlessWithSeek])
def test_read_of_an_endless_source_that_is_no_frame(kind, limits):
    source = kind(b"", b"x")
    with pytest.raises(glyd.FormatError, match="not a glyd frame at byte 0"):
        glyd.open(source, limits=limits).read()
    assert source.n_given <= 1 << 20


def test_read_of_an_endless_source_stops_at_the_limit():
    frame = glyd.compress(b"x" * 100)
    with pytest.raises(glyd.LimitError, match="max_output"):
        glyd.open(Endless(frame, frame), limits=glyd.Limits(max_output=1000)).read()


def test_read_of_frames_with_endless_garbage_behind():
    with pytest.raises(glyd.CorruptDataError, match="after the last frame"):
        glyd.open(Endless(glyd.compress(b"x" * 100), b"garbage")).read()


class Text:
    """A file opened as text by mistake."""

    def read(self, size=-1):
        return "text"

    def tell(self):
        return 0

    def seek(self, place, whence=0):
        return place


def test_source_of_text():
    for read in (lambda f: f.read(), lambda f: f.read(5)):
        with pytest.raises(TypeError):
            read(glyd.open(Text()))


class Miscounting(io.BytesIO):
    """Says that it read more or fewer bytes than there was room for."""

    n_said = 0

    def readinto(self, out):
        return self.n_said or super().readinto(out)


@pytest.mark.parametrize("n_said", [-1, 1 << 20])
def test_source_that_miscounts(tools, n_said):
    text = tools.make_text(20_000)
    source = Miscounting(glyd.compress(text, segment_size=1 << 12))
    file = glyd.open(source)
    assert file.seek(9000) == 9000
    source.n_said = n_said
    with pytest.raises(OSError, match=f"read {n_said} bytes of "):
        file.read(5)


class TooMuch:
    """Gives more than it is asked for."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)
        self.n_more = 0

    def read(self, size=-1):
        return self._data.read(size + self.n_more if size >= 0 else -1)

    def tell(self):
        return self._data.tell()

    def seek(self, place, whence=0):
        return self._data.seek(place, whence)


def test_source_that_gives_too_much(tools):
    text = tools.make_text(20_000)
    source = TooMuch(glyd.compress(text, segment_size=1 << 12))
    source.n_more = 5
    assert glyd.open(source).read() == text
    source.seek(0)
    source.n_more = 0
    file = glyd.open(source)
    file.seek(9000)
    source.n_more = 5
    with pytest.raises(OSError, match="the source says that it read"):
        file.read(5)

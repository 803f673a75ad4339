# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""The exceptions: their tree, what they carry, and that they travel between processes."""

from __future__ import annotations

import copy
import pickle

import pytest

import glyd
from glyd_codec import _errors
from glyd_codec._native import ffi, lib  # noqa: TID251  its statuses are what is tested

TREE = {
    glyd.GlydError: (Exception,),
    glyd.FormatError: (glyd.GlydError, ValueError),
    glyd.CorruptDataError: (glyd.FormatError,),
    glyd.ChecksumError: (glyd.FormatError,),
    glyd.TruncatedError: (glyd.FormatError, EOFError),
    glyd.UnsupportedVersionError: (glyd.FormatError,),
    glyd.ParameterError: (glyd.GlydError, ValueError),
    glyd.BufferTooSmallError: (glyd.GlydError, ValueError),
    glyd.LimitError: (glyd.GlydError, ValueError),
    glyd.MissingBaseError: (glyd.GlydError, LookupError),
    glyd.WrongBaseError: (glyd.GlydError, ValueError),
}


@pytest.mark.parametrize(("kind", "bases"), TREE.items())
def test_tree(kind, bases):
    assert kind.__bases__ == bases
    assert issubclass(kind, glyd.GlydError)


@pytest.mark.parametrize("kind", TREE)
def test_copies_keep_everything(kind):
    error = kind("message", offset=1, expected=2, found=3)
    if kind is glyd.LimitError:
        error = kind("message", limit="max_output", offset=1, expected=2, found=3)
    for other in (copy.copy(error), copy.deepcopy(error), *(pickle.loads(pickle.dumps(error, n)) for n in range(2, 6))):
        assert type(other) is kind
        assert str(other) == "message"
        assert vars(other) == vars(error)
        assert (other.offset, other.expected, other.found) == (1, 2, 3)
    bare = pickle.loads(pickle.dumps(kind("message")))
    assert (bare.offset, bare.expected, bare.found) == (None, None, None)


def test_real_ones_travel():
    frame = glyd.compress(b"x" * 100)
    for call in (
        lambda: glyd.decompress(frame[:-1]),
        lambda: glyd.decompress(frame + b"?"),
        lambda: glyd.decompress(frame, max_size=3),
        lambda: glyd.compress(b"", "none"),
    ):
        with pytest.raises(glyd.GlydError) as caught:
            call()
        other = pickle.loads(pickle.dumps(caught.value))
        assert str(other) == str(caught.value)
        assert vars(other) == vars(caught.value)


def test_every_status_has_its_exception():
    statuses = {name: getattr(lib, name) for name in dir(lib) if name.startswith("GLYD_E_")}
    assert len(statuses) >= 19
    for name, status in statuses.items():
        error = ffi.new("glyd_error *", {"status": status, "offset": 5, "expected": 70, "found": 80})
        made = _errors.status_error(status, error, shift=1000)
        if name == "GLYD_E_MEMORY":
            assert type(made) is MemoryError
            continue
        assert isinstance(made, glyd.GlydError)
        assert type(made) is not glyd.GlydError or name == "GLYD_E_STATE"
        assert (made.offset, made.expected, made.found) == (1005, 70, 80)
        assert "1005" in str(made)
        assert "70" in str(made) or "0x46" in str(made) or f"starts with {70:016x}" in str(made)
        assert "80" in str(made) or "0x50" in str(made) or f"given has {80:016x}" in str(made)
        assert isinstance(_errors.status_error(status), glyd.GlydError)


def test_texts_are_phrases():
    texts = {_errors.status_text(getattr(lib, name)) for name in dir(lib) if name.startswith("GLYD_E_")}
    assert len(texts) >= 19  # each its own
    assert _errors.status_text(12345)

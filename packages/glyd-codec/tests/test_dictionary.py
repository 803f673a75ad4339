# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Dictionaries and objects."""

from __future__ import annotations

import pickle
import random
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glyd


def documents(n: int, seed: int = 1) -> list[bytes]:
    rng = random.Random(seed)
    names = ["alice", "bob", "carol", "dave"]
    return [
        b'{"id": %d, "user": "%s", "tags": ["red", "green"], "score": %.3f, "active": %s}\n'
        % (rng.randrange(10**6), rng.choice(names).encode(), rng.random() * 100, rng.choice([b"true", b"false"]))
        for _ in range(n)
    ]


@pytest.fixture(scope="module")
def dictionary() -> glyd.Dictionary:
    return glyd.train_dictionary(documents(2000), size=16384)


def test_objects_take_far_fewer_bytes_than_frames(dictionary: glyd.Dictionary) -> None:
    fresh = documents(200, seed=2)
    packed = [dictionary.compress(d) for d in fresh]
    assert [dictionary.decompress(p) for p in packed] == fresh
    assert sum(map(len, packed)) < 0.5 * sum(map(len, fresh))
    assert sum(map(len, packed)) < 0.5 * sum(len(glyd.compress(d)) for d in fresh)


def test_several_objects_in_a_row(dictionary: glyd.Dictionary) -> None:
    parts = [b"", b"x", *documents(5, seed=3), b"\0" * 70000]
    assert dictionary.decompress(b"".join(map(dictionary.compress, parts))) == b"".join(parts)


@given(data=st.binary(max_size=3000), checksum=st.booleans())
@settings(max_examples=200, deadline=None)
def test_anything_comes_back(dictionary: glyd.Dictionary, data: bytes, *, checksum: bool) -> None:
    packed = dictionary.compress(data, checksum=checksum)
    assert len(packed) <= len(data) + 19
    assert dictionary.decompress(packed) == data


@given(samples=st.lists(st.binary(max_size=200), max_size=30))
@settings(max_examples=25, deadline=None)
def test_any_samples_will_do(samples: list[bytes]) -> None:
    d = glyd.train_dictionary(samples, size=4096)
    assert d.nbytes <= 4096
    assert glyd.train_dictionary(iter(samples), size=4096).data == d.data
    assert d.decompress(d.compress(b"abc" * 50)) == b"abc" * 50


def test_the_dictionary_can_be_kept(dictionary: glyd.Dictionary) -> None:
    again = glyd.Dictionary(dictionary.data)
    assert (again.id, again.nbytes, again.data) == (dictionary.id, dictionary.nbytes, dictionary.data)
    document = documents(1, seed=4)[0]
    assert again.decompress(dictionary.compress(document)) == document
    assert again.compress(document) == dictionary.compress(document)
    assert pickle.loads(pickle.dumps(dictionary)).id == dictionary.id
    assert f"{dictionary.id:#010x}" in repr(dictionary)


def test_threads_share_a_dictionary(dictionary: glyd.Dictionary) -> None:
    results: dict[int, bool] = {}

    def work(number: int) -> None:
        mine = documents(300, seed=number)
        results[number] = all(dictionary.decompress(dictionary.compress(d)) == d for d in mine)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict.fromkeys(range(4), True)


def test_wrong_input_is_named(dictionary: glyd.Dictionary) -> None:
    packed = dictionary.compress(documents(1, seed=5)[0])
    other = glyd.train_dictionary(documents(2000, seed=9), size=8192)
    with pytest.raises(glyd.WrongBaseError, match=f"{dictionary.id:#x}.*{other.id:#x}"):
        other.decompress(packed)
    with pytest.raises(glyd.TruncatedError, match="within the object that starts at byte 0"):
        dictionary.decompress(packed[:-1])
    with pytest.raises(glyd.TruncatedError, match="0 bytes"):
        dictionary.decompress(b"")
    with pytest.raises(glyd.CorruptDataError, match="no frame"):
        dictionary.decompress(packed + b"junk")
    with pytest.raises(glyd.FormatError, match="not a glyd frame"):
        dictionary.decompress(b"junk")
    flipped = bytearray(packed)
    flipped[-1] ^= 16
    with pytest.raises(glyd.FormatError):
        dictionary.decompress(flipped)
    with pytest.raises(glyd.LimitError, match="max_size"):
        dictionary.decompress(packed, max_size=10)
    with pytest.raises(glyd.LimitError, match="max_output"):
        dictionary.decompress(packed, limits=glyd.Limits(max_output=10))
    with pytest.raises(glyd.ParameterError, match="16777216"):
        dictionary.compress(bytes((16 << 20) + 1))
    with pytest.raises(glyd.FormatError, match="dictionary"):
        glyd.decompress(packed)


def test_a_damaged_dictionary_is_refused(dictionary: glyd.Dictionary) -> None:
    with pytest.raises(glyd.FormatError):
        glyd.Dictionary(b"nothing of the kind")
    with pytest.raises(glyd.TruncatedError):
        glyd.Dictionary(dictionary.data[:-1])
    for at in range(0, dictionary.nbytes, 301):
        broken = bytearray(dictionary.data)
        broken[at] ^= 1
        with pytest.raises(glyd.FormatError):
            glyd.Dictionary(broken)


def test_parameters_of_training() -> None:
    for size in (2047, (1 << 21)):
        with pytest.raises(glyd.ParameterError, match=str(size)):
            glyd.train_dictionary([b"x"], size=size)
    with pytest.raises(TypeError, match="one by one"):
        glyd.train_dictionary(b"one piece")
    with pytest.raises(TypeError):
        glyd.train_dictionary(["text"])


def test_objects_say_what_they_are(dictionary: glyd.Dictionary) -> None:
    content = documents(1, seed=3)[0]
    packed = dictionary.compress(content)
    info = glyd.read_object_info(packed + b"more")
    assert info == glyd.ObjectInfo(dictionary.id, len(content), len(packed), "compact", 4)
    assert glyd.read_object_info(dictionary.compress(b"\x00\xff", checksum=False)).form == "raw"
    with pytest.raises(glyd.TruncatedError):
        glyd.read_object_info(packed[:-1])
    with pytest.raises(glyd.FormatError):
        glyd.read_object_info(content)

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Bundles of many small objects."""

from __future__ import annotations

import io
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glyd


def objects(n: int) -> list[bytes]:
    rng = random.Random(7)
    return [
        b'{"id": %d, "kind": "event", "at": %d, "value": %d}\n' % (i, 1_700_000_000 + 7 * i, rng.randrange(1000))
        for i in range(n)
    ]


def test_objects_by_place(tmp_path: Path) -> None:
    path, content = tmp_path / "events.bundle", objects(30000)
    assert glyd.pack_objects(content, path) == 30000
    assert path.stat().st_size < sum(map(len, content)) / 8
    with glyd.Bundle(path) as bundle:
        assert len(bundle) == 30000
        assert bundle.names is None
        assert bundle.nbytes == sum(map(len, content))
        for place in (0, 17, 29999, -1, 12345, 11000):
            assert bundle[place] == content[place]
        assert bundle[100:110] == content[100:110]
        assert list(bundle) == content
        assert bundle.find(0) == 0
        assert bundle.find(bundle.nbytes - 1) == 29999
        for wrong in (30000, -30001):
            with pytest.raises(IndexError, match=str(wrong)):
                bundle[wrong]


def test_objects_by_name(tmp_path: Path) -> None:
    content = {f"doc/{i}.json": data for i, data in enumerate(objects(500))}
    content["пусто ☃"] = b""
    path = tmp_path / "docs.bundle"
    glyd.pack_objects(content, path, level="default")
    with glyd.Bundle(path) as bundle:
        assert bundle.names == list(content)
        assert "doc/3.json" in bundle
        assert "doc/3" not in bundle
        assert {name: bundle[name] for name in content} == content
        with pytest.raises(KeyError, match="doc/3"):
            bundle["doc/3"]


def test_every_reader_of_frames_reads_the_content(tmp_path: Path) -> None:
    content = objects(1000)
    path = tmp_path / "b"
    glyd.pack_objects(iter(content), path)
    assert glyd.decompress(path.read_bytes()) == b"".join(content)


@given(
    content=st.lists(st.binary(max_size=3000), max_size=40),
    group=st.integers(1024, 5000),
)
@settings(max_examples=40, deadline=None)
def test_any_objects_come_back(content: list[bytes], group: int) -> None:
    file = io.BytesIO()
    assert glyd.pack_objects(content, file, group_size=group) == len(content)
    bundle = glyd.Bundle(file.getvalue())
    assert [bundle[i] for i in reversed(range(len(content)))] == content[::-1]


def test_names_for_all_or_none_and_each_once(tmp_path: Path) -> None:
    path = tmp_path / "b"
    path.write_bytes(b"what was there")
    for wrong, message in (
        ([("a", b"1"), b"2"], "object 1 has no name"),
        ([b"1", ("a", b"2")], "object 1 has a name"),
        ([("a", b"1"), ("a", b"2")], "two objects"),
    ):
        with pytest.raises(glyd.ParameterError, match=message):
            glyd.pack_objects(wrong, path)  # type: ignore[arg-type]
        assert path.read_bytes() == b"what was there"
        assert list(tmp_path.iterdir()) == [path]


def test_damage_is_found() -> None:
    file = io.BytesIO()
    glyd.pack_objects(objects(2000), file, group_size=4096)
    good = file.getvalue()
    for cut in (0, 10, len(good) - 1, len(good) - 30):
        with pytest.raises(glyd.FormatError):
            glyd.Bundle(good[:cut])
    with pytest.raises(glyd.FormatError, match="no bundle"):
        glyd.Bundle(glyd.compress(bytes(1000)))
    rng = random.Random(3)
    content = objects(2000)
    for at in [*range(len(good) - 200, len(good)), *(rng.randrange(len(good)) for _ in range(200))]:
        broken = bytearray(good)
        broken[at] ^= 1 << rng.randrange(8)
        wrong: list[Any] = []
        try:
            with glyd.Bundle(broken) as bundle:
                wrong = [i for i in (0, 999, 1999) if bundle[i] != content[i]]
        except (glyd.GlydError, IndexError):
            continue
        assert not wrong


def bundle_of_index(body: bytes) -> bytes:
    packed = glyd.compress(body, "turbo", weights=False)
    tail = len(packed).to_bytes(8, "little") + (glyd.checksum(packed) & 0xFFFFFFFF).to_bytes(4, "little") + b"GLYDBNDL"
    head = bytes.fromhex("9d474c53") + b"BNDL" + (len(packed) + len(tail)).to_bytes(8, "little")
    head += (glyd.checksum(head) & 0xFFFFFFFF).to_bytes(4, "little")
    return glyd.compress(b"") + head + packed + tail


def test_small_index_of_millions_of_objects_keeps_within_max_memory() -> None:
    n = 100_000
    body = b"\xa0\x8d\x06\0" + bytes(n)
    hostile = bundle_of_index(body)
    assert len(hostile) < 500
    tracemalloc.start()
    for allowed in (1, len(body) - 1, len(body), 50 * n):  # the first two before it is restored
        with pytest.raises(glyd.LimitError, match="max_memory"):
            glyd.Bundle(hostile, limits=glyd.Limits(max_memory=allowed))
    assert tracemalloc.get_traced_memory()[1] < 4 * len(body)
    with glyd.Bundle(hostile, limits=glyd.Limits(max_memory=60 * n)) as bundle:
        assert tracemalloc.get_traced_memory()[1] < 60 * n
        assert len(bundle) == n
    tracemalloc.stop()


@pytest.mark.parametrize("size", [10**6, 2**63, 2**69])
def test_sizes_beyond_the_content(size: int) -> None:
    number = bytearray()  # a varint
    while size >= 128:
        number.append(size & 127 | 128)
        size >>= 7
    hostile = bundle_of_index(b"\2\0" + bytes([*number, size]) + b"\1")
    for place in range(2):
        with pytest.raises(glyd.FormatError):
            glyd.Bundle(hostile)[place]


def test_within_a_file(tmp_path: Path) -> None:
    path = tmp_path / "b"
    with path.open("wb") as file:
        file.write(b"before")
        glyd.pack_objects([b"one", b"two"], file)
    with path.open("rb") as file:
        file.seek(6)
        bundle = glyd.Bundle(file)
        assert list(bundle) == [b"one", b"two"]
        bundle.close()
        assert not file.closed

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Opened containers: gzip, zip and PNG files come back bit for bit, and what is inside can be read by itself."""

from __future__ import annotations

import gzip
import io
import random
import struct
import zipfile
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glyd

WORDS = [b"alpha", b"beta ", b"gamma\n", b"delta=", b"12345", b"<td>", b"</td>\n", b"2026-11-30T12:00:00Z "]


def text(n_words: int, seed: int) -> bytes:
    chosen = random.Random(seed)
    return b"".join(
        chosen.choice(WORDS) if chosen.random() < 0.99 else chosen.randbytes(chosen.randrange(9))
        for _ in range(n_words)
    )


def table(n_rows: int) -> bytes:
    return b"".join(b"%d,%d,name%d,%d.25\n" % (i, i * i % 977, i % 13, i % 100) for i in range(n_rows))


def stream(content: bytes, level: int = 6, *, wbits: int = 31, memory: int = 8, strategy: int = 0) -> bytes:
    packer = zlib.compressobj(level, zlib.DEFLATED, wbits, memory, strategy)
    return packer.compress(content) + packer.flush()


def opened(data: bytes, level: str = "ultra", **options: object) -> tuple[bytes, list[glyd.OpenedInfo]]:
    """Compress opened, check that it comes back, and return the frame and what was opened."""
    frame = glyd.compress(data, level, containers=True, **options)  # type: ignore[arg-type]
    assert glyd.decompress(frame) == data
    assert frame == glyd.compress(data, level, containers=True, threads=1, **options)  # type: ignore[arg-type]
    return frame, list(glyd.iter_opened(frame))


def png(width: int, height: int, idat: int) -> tuple[bytes, bytes]:
    """Return an image with data in chunks of `idat` bytes, and its rows."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = b"".join(b"\x01" + bytes((x * y // 7) & 255 for x in range(width)) for y in range(height))
    data = zlib.compress(rows, 9)
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = [chunk(b"IDAT", data[i : i + idat]) for i in range(0, len(data), idat)]
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(parts) + chunk(b"IEND", b""), rows


@pytest.mark.parametrize("level", range(1, 10))
def test_every_level_of_zlib_is_predicted(level):
    """What zlib writes takes a description of a few bytes."""
    content = text(30_000, level)
    data = stream(content, level)
    frame, [info] = opened(data)
    assert (info.n_streams, info.is_cut, info.inside_nbytes, info.kept_nbytes) == (1, False, len(content), 18)
    assert info.description_nbytes < 60
    assert b"".join(glyd.iter_inside(frame)) == content


@pytest.mark.parametrize("memory", [1, 5, 8, 9])
@pytest.mark.parametrize("strategy", [zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_RLE, zlib.Z_FIXED])
def test_other_settings_of_zlib(memory, strategy):
    content = text(12_000, 5) + bytes(3000) + random.Random(3).randbytes(5000)
    data = stream(content, memory=memory, strategy=strategy)
    _, [info] = opened(data)
    assert info.inside_nbytes == len(content)
    assert info.description_nbytes < len(data) // 10 + 60


def test_several_members():
    parts = [text(n, n) for n in (10, 3000, 4000, 5)]
    data = b"".join(gzip.compress(part, level, mtime=0) for part, level in zip(parts, (1, 6, 9, 6), strict=True))
    frame, [info] = opened(data, "ultra")
    assert info.n_streams >= 3
    assert b"".join(glyd.iter_inside(frame)) in {b"".join(parts), b"".join(parts[:-1]), b"".join(parts[1:-1])}
    assert len(frame) < len(data) * 0.95


def test_flushes_and_what_follows():
    """Sync and full flushes inside a stream, and bytes after it."""
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    data = b""
    for seed, mode in enumerate((zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH, zlib.Z_PARTIAL_FLUSH, zlib.Z_FINISH)):
        data += packer.compress(text(4000, seed)) + packer.flush(mode)
    _, [info] = opened(b"before " + data + b" after, which is no stream")
    assert info.inside_nbytes == sum(len(text(4000, seed)) for seed in range(4))
    assert info.description_nbytes < 1500


def test_zip():
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(40):
            archive.writestr(f"folder/name-{i}.py", text(600, i))
        archive.writestr("stored.bin", b"as it is" * 40, zipfile.ZIP_STORED)
    data = target.getvalue()
    frame, [info] = opened(data, "ultra")
    assert info.n_streams == 40
    assert b"".join(glyd.iter_inside(frame)) == b"".join(text(600, i) for i in range(40))
    assert len(frame) < 0.9 * len(glyd.compress(data, "ultra", containers=False))


@pytest.mark.parametrize("idat", [1000, 8192, 1 << 20])
def test_png(idat):
    data, rows = png(400, 300, idat)
    frame, [info] = opened(data)
    assert (info.n_streams, info.inside_nbytes) == (1, len(rows))
    assert b"".join(glyd.iter_inside(frame)) == rows


def test_streams_of_zlib_in_other_files():
    content = text(2000, 1)
    data = b"%PDF-1.7 stream\n" + zlib.compress(content) + b"\nendstream" + text(500, 2)
    frame, [info] = opened(data)
    assert info.n_streams == 1
    assert b"".join(glyd.iter_inside(frame)) == content


def test_auto_is_for_ultra_and_cold():
    data = gzip.compress(text(8000, 1), mtime=0)
    kinds = {level: [s.kind for s in glyd.iter_segments(glyd.compress(data, level))] for level in glyd.LEVELS}
    assert {level for level, found in kinds.items() if "opened" in found} == {"ultra", "cold"}
    assert all(
        "opened" not in [s.kind for s in glyd.iter_segments(glyd.compress(data, level, containers=False))]
        for level in glyd.LEVELS
    )


def test_content_without_streams_is_stored_as_ever():
    """No record, no memory, no byte for containers that are not there."""
    plain = text(3000, 4)
    for level in ("ultra", "cold"):
        assert glyd.compress(plain, level) == glyd.compress(plain, level, containers=False)


@pytest.mark.parametrize("level", ["ultra", "cold", "high"])
@pytest.mark.parametrize("is_pledged", [False, True])
def test_stream_of_pieces(level, is_pledged):
    data = gzip.compress(table(4000), mtime=0)
    compressor = glyd.Compressor(level, containers=True if level == "high" else "auto")
    if is_pledged:
        compressor.set_pledged_input_size(len(data))
    frame = b"".join(compressor.compress(data[i : i + 1000]) for i in range(0, len(data), 1000)) + compressor.flush()
    assert [segment.kind for segment in glyd.iter_segments(frame)] == ["opened"]
    decoder = glyd.Decompressor()
    assert b"".join(decoder.decompress(frame[i : i + 700]) for i in range(0, len(frame), 700)) == data
    assert glyd.open(io.BytesIO(frame)).read() == data


def test_empty_stream_at_levels_that_look_first():
    for level in ("ultra", "cold"):
        assert glyd.decompress(glyd.Compressor(level).flush()) == b""


def test_parts_of_a_file():
    """Segments are read by themselves: a cut stream is opened as far as its segment reaches."""
    data = gzip.compress(table(20_000), mtime=0)
    frame, infos = opened(data, segment_size=1 << 15)
    assert infos[0].is_cut
    with glyd.open(io.BytesIO(frame)) as file:
        file.seek(len(data) // 2)
        assert file.read(1000) == data[len(data) // 2 :][:1000]


def test_records_inside():
    """A table in a gzip file becomes columns."""
    rows = table(20_000)
    data = gzip.compress(rows, mtime=0)
    frame, [info] = opened(data, records=True)
    assert info.inside_nbytes == len(rows)
    assert len(frame) < 0.7 * len(opened(data)[0])


def test_survey():
    data = gzip.compress(text(3000, 1), mtime=0) + b"between" + gzip.compress(b"small", mtime=0)
    first, second = glyd.survey_streams(data)
    assert (first.kind, first.outcome, first.offset, first.content_nbytes) == ("gzip", "opened", 10, len(text(3000, 1)))
    assert (second.kind, second.outcome) == ("gzip", "small")
    assert glyd.survey_streams(b"") == []


def test_limits_of_reading_inside():
    data = gzip.compress(bytes(1 << 20) + text(4000, 1), mtime=0)
    frame, [info] = opened(data)
    with pytest.raises(glyd.LimitError):
        list(glyd.iter_inside(frame, limits=glyd.Limits(max_output=info.inside_nbytes - 1)))
    with pytest.raises(glyd.LimitError):
        list(glyd.iter_inside(frame, limits=glyd.Limits(max_memory=1 << 20)))
    with pytest.raises(glyd.LimitError):
        glyd.decompress(frame, limits=glyd.Limits(max_memory=1 << 20))


def test_wrong_arguments():
    with pytest.raises(glyd.ParameterError):
        glyd.compress(b"x", containers="yes")  # type: ignore[arg-type]
    with pytest.raises(glyd.ParameterError):
        glyd.compress(b"x", base=b"y", containers=True)
    assert glyd.decompress(glyd.compress(b"x", "ultra", base=b"y"), base=b"y") == b"x"


def test_bombs_stay_closed_or_small():
    """A stream of a thousand times its size is not opened beyond what a segment of that size may hold."""
    data = gzip.compress(bytes(100 << 20), mtime=0)
    _, infos = opened(data)
    assert all(info.inside_nbytes <= 64 * len(data) + (1 << 20) for info in infos)


@given(
    st.lists(st.binary(max_size=300), max_size=8).map(b"".join) | st.integers(0, 3000).map(lambda n: text(n, n)),
    st.integers(0, 9),
    st.integers(1, 9),
    st.sampled_from([zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE, zlib.Z_FIXED]),
    st.integers(9, 15),
    st.binary(max_size=20),
)
@settings(max_examples=60, deadline=None)
def test_any_stream_comes_back(content, level, memory, strategy, window, around):
    data = around + stream(content, level, wbits=window + 16, memory=memory, strategy=strategy) + around
    opened(data)


def is_found(frame):
    """Return whether damage is found; where it is not, it was in bits that say nothing, and the content is right."""
    try:
        content = glyd.decompress(frame)
    except glyd.GlydError:
        return True
    assert content == _FILE
    return False


def test_damage_to_single_bits_is_found():
    """All but the bits after the last ones of planes and codes, which readers need not look at."""
    unseen = 0
    for place in range(len(_FRAME)):
        for bit in range(8):
            frame = bytearray(_FRAME)
            frame[place] ^= 1 << bit
            unseen += not is_found(frame)
    assert unseen <= len(_FRAME) * 8 // 100


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_damage_is_never_restored_wrong(data):
    frame = bytearray(_FRAME)
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] ^= data.draw(st.integers(1, 255))
    if frame == _FRAME:
        return
    is_found(frame)
    try:
        inside = b"".join(glyd.iter_inside(bytes(frame)))
    except glyd.GlydError:
        return
    assert inside in {_CONTENT, b""}


_CONTENT = text(1500, 77)
_FILE = gzip.compress(_CONTENT, mtime=0)
_FRAME = glyd.compress(_FILE, "ultra", containers=True)

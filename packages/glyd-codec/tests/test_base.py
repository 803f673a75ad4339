# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Frames against a base: what is found, what is refused, and that nothing else is needed to read them."""

from __future__ import annotations

import io
import itertools
import random
import tarfile
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glyd

RNG = random.Random(5)
NOISE = RNG.randbytes(3_000_000)
LINES = b"".join(b"%07d a line of %s\n" % (i, RNG.randbytes(9).hex().encode()) for i in range(60_000))
LEVELS = tuple(level for level in glyd.LEVELS if level != "cold")
SIZES = (0, 1, 6, 15, 16, 31, 32, 40, 1000, 70_000)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("base_size", SIZES)
def test_small_pairs(level, base_size):
    base = NOISE[:base_size]
    for size in SIZES:
        for new in (NOISE[:size], NOISE[size // 2 :][:size], b"ab" * (size // 2)):
            frame = glyd.compress(new, level, base=base)
            assert glyd.decompress(frame, base=base) == new
            info = glyd.get_frame_info(frame)
            assert (info.base_nbytes, info.content_size) == (base_size, len(new))
            assert info.base_id == glyd.Base(base).id


@pytest.mark.parametrize("level", LEVELS)
def test_noise_between_copies(level):
    """Noise of which nothing is in the base is not compared with it; text among it is."""
    base = NOISE[:1_000_000]
    noise = random.Random(6).randbytes(600_000)
    new = b"".join(noise[i * 150_000 :][:150_000] + base[i * 250_000 :][:200_000] for i in range(4))
    frame = glyd.compress(new, level, base=base)
    assert glyd.decompress(frame, base=base) == new
    assert len(frame) <= len(noise) + 1000
    mixed = new.replace(noise[:150_000], noise[:75_000] + LINES[: len(LINES) // 2])
    old = base + LINES[: len(LINES) // 2]
    frame = glyd.compress(mixed, level, base=old)
    assert glyd.decompress(frame, base=old) == mixed
    assert len(frame) <= len(noise) - 75_000 + 1000


def test_level_cold_takes_no_base():
    with pytest.raises(glyd.ParameterError, match="base"):
        glyd.compress(b"new", "cold", base=b"old")


def test_the_id_is_xxh3_128():
    assert glyd.Base(b"").id.hex() == "99aa06d3014798d86001c324468d497f"
    assert glyd.Base(b"abc").id.hex() == "06b05ab6733a618578af5f94892f3950"
    data = bytes(range(256)) * 64
    assert glyd.Base(data).nbytes == 16384
    for size in (0, 1, 3, 16, 17, 128, 129, 240, 241, 1024, 1025, len(data)):
        assert glyd.checksum128(memoryview(data)[:size]) == glyd.Base(data[:size]).id
    with pytest.raises(TypeError):
        glyd.checksum128("text")


@pytest.mark.parametrize("level", LEVELS)
def test_common_content_costs_next_to_nothing(level):
    data = NOISE + LINES
    assert len(glyd.compress(data, level, base=data)) <= 300
    changed = data[:2_000_000] + b"?" + data[2_000_001:]
    assert len(glyd.compress(changed, level, base=data)) <= 400
    moved = data[1_234_567:] + data[:1_234_567]
    frame = glyd.compress(moved, level, base=data)
    assert len(frame) <= 400
    assert glyd.decompress(frame, base=data) == moved


@pytest.mark.parametrize("joined_in_memory", [0, 64 << 20])
def test_several_bases(tmp_path, monkeypatch, joined_in_memory):
    monkeypatch.setattr("glyd_codec._base._JOINED_IN_MEMORY", joined_in_memory)
    (tmp_path / "lines").write_bytes(LINES)
    sources = (NOISE, tmp_path / "lines", io.BytesIO(b""))
    new = NOISE[1_000_000:2_000_000] + LINES[:500_000] + NOISE[:1_000_000] + LINES[500_000:]
    with glyd.Base(*sources) as both:
        assert (both.nbytes, both.id) == (len(NOISE + LINES), glyd.Base(NOISE + LINES).id)
        frame = glyd.compress(new, base=both)
        assert len(frame) < 400
        assert glyd.decompress(frame, base=both) == new
    assert glyd.decompress(frame, base=NOISE + LINES) == new
    for other in (glyd.Base(LINES, NOISE), glyd.Base(NOISE), glyd.Base(NOISE, LINES, b"x")):
        with pytest.raises(glyd.WrongBaseError):
            glyd.decompress(frame, base=other)
    assert glyd.Base(b"", b"").nbytes == 0


def test_several_bases_are_taken_as_a_list(tmp_path):
    path = tmp_path / "older"
    path.write_bytes(LINES)
    new = LINES[:1_000_000] + NOISE[5_000:]
    frame = glyd.compress(new, base=[NOISE, path])
    assert frame == glyd.compress(new, base=glyd.Base(NOISE + LINES))
    assert glyd.decompress(frame, base=(NOISE, LINES)) == new
    assert glyd.decompress_into(frame, bytearray(len(new)), base=[NOISE, LINES]) == len(new)
    with glyd.open(path.with_suffix(".glyd"), "wb", base=[NOISE, path]) as file:
        file.write(new)
    with glyd.open(path.with_suffix(".glyd"), base=(NOISE, path)) as file:
        file.seek(1_500_000)
        assert file.read() == new[1_500_000:]
    with pytest.raises(glyd.WrongBaseError):
        glyd.decompress(frame, base=[LINES, NOISE])
    with pytest.raises(glyd.ParameterError, match="empty"):
        glyd.decompress(frame, base=[])


def test_the_order_of_several_bases_is_found():
    parts = [NOISE[:1000], LINES[:3000], b"", NOISE[5000:5100]]
    name = glyd.get_frame_info(glyd.compress(b"new", base=parts[:2] + parts[3:])).base_id
    with glyd.Base(*parts) as base:
        assert base.find_order(base.id) == (0, 1, 2, 3)
        order = base.find_order(name)
        assert b"".join(parts[i] for i in order) == parts[0] + parts[1] + parts[3]
        assert base.find_order(glyd.Base(LINES[:3000]).id[:8]) in {(1, 2), (2, 1), (1,)}
        assert base.find_order(glyd.Base(b"other").id) is None
    assert glyd.Base(parts[3], parts[1], parts[0]).find_order(name) == (2, 1, 0)
    assert glyd.Base(NOISE).find_order(glyd.Base(NOISE).id) == (0,)
    with pytest.raises(ValueError, match="closed"):
        base.find_order(name)
    with pytest.raises(ValueError, match="at most 4"):
        glyd.Base(*parts, b"x").find_order(name)
    with pytest.raises(ValueError, match="of frames"):
        glyd.Base.from_frames(glyd.compress(LINES)).find_order(name)


def test_records_against_a_base_take_the_smaller():
    """Rows in another order have little in common with the base: columns are less than copies."""
    rng = random.Random(14)
    rows = [b"%d,2024-05-%02d,%s,%d.%02d\n" % (70_000 + 3 * i, i % 28 + 1, rng.choice((b"open", b"paid", b"sent")),
            rng.randrange(900), rng.randrange(100)) for i in range(20_000)]  # fmt: skip
    old = b"id,day,state,sum\n" + b"".join(rows)
    rng.shuffle(rows)
    new = b"id,day,state,sum\n" + b"".join(rows)
    copies, columns = len(glyd.compress(new, base=old)), len(glyd.compress(new, records=True))
    frame = glyd.compress(new, base=old, records=True)
    assert glyd.decompress(frame, base=old) == new
    assert len(frame) <= min(copies, columns) + 40
    assert columns < copies
    changed = old[:100_000] + b"1,2,3,4\n" + old[100_000:]
    assert len(glyd.compress(changed, base=old, records=True)) < 300


def archive(files, folder, mtime, form):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as made:
        for path, data in files:
            member = tarfile.TarInfo(f"{folder}/{path}")
            member.size, member.mtime = len(data), mtime
            made.addfile(member, io.BytesIO(data))
    return out.getvalue()


@pytest.mark.parametrize(
    ("form", "most"), [(tarfile.USTAR_FORMAT, 12_000), (tarfile.GNU_FORMAT, 17_000), (tarfile.PAX_FORMAT, 14_000)]
)
def test_members_of_archives_are_found_by_their_names(form, most):
    """Small files in another order, each changed a little, in a folder that is named after another version."""
    rng = random.Random(8)
    words = [rng.randbytes(rng.randrange(2, 6)).hex().encode() for _ in range(2000)]
    files = [
        (f"some/{'long/' * (i % 29)}folder/f{i:04}.txt", b" ".join(rng.choices(words, k=rng.randrange(60, 400))))
        for i in range(500)
    ]
    old = archive(files, "v1.0", 1_700_000_000.5 if form == tarfile.PAX_FORMAT else 1_700_000_000, form)
    changed = [(path, data[:50] + b"?" + data[51:200] + b"new" + data[200:]) for path, data in files]
    rng.shuffle(changed)
    new = archive(changed, "v1.1-rc2", 1_700_009_999.5 if form == tarfile.PAX_FORMAT else 1_700_009_999, form)
    frame = glyd.compress(new, base=old)
    assert len(frame) < most
    assert glyd.decompress(frame, base=old) == new
    turned = new[len(new) // 1024 * 512 :] + new[: len(new) // 1024 * 512]
    frame = glyd.compress(turned, base=old)
    assert len(frame) < most + 100
    assert glyd.decompress(frame, base=old) == turned


def edited(data, seed):
    rng = random.Random(seed)
    out = bytearray(data)
    for _ in range(60):
        at = rng.randrange(len(out))
        match rng.randrange(4):
            case 0:
                out[at : at + rng.randrange(300)] = b""
            case 1:
                out[at:at] = rng.randbytes(rng.randrange(300))
            case 2:
                out[at : at + 12] = b"%012d" % rng.randrange(10**12)
            case _:
                begin = rng.randrange(len(out))
                out[at:at] = out[begin : begin + rng.randrange(5000)]
    return bytes(out)


@pytest.mark.parametrize("level", LEVELS)
def test_same_bytes_for_any_number_of_threads(level):
    new = edited(LINES, 1)
    frames = {glyd.compress(new, level, base=LINES, threads=n, segment_size=1 << 18) for n in (1, 2, 3, 7)}
    assert len(frames) == 1
    (frame,) = frames
    assert len(frame) < len(new) // 20
    for n in (1, 2, 5):
        assert glyd.decompress(frame, base=LINES, threads=n) == new


def test_a_chain_of_versions():
    versions = [LINES]
    for i in range(10):
        versions.append(edited(versions[-1], i))
    frames = [glyd.compress(new, base=old) for old, new in itertools.pairwise(versions)]
    content = versions[0]
    for frame, version in zip(frames, versions[1:], strict=True):
        content = glyd.decompress(frame, base=content)
        assert content == version
    assert sum(map(len, frames)) < len(LINES) // 10


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.binary(max_size=200), max_size=8),
    st.lists(st.one_of(st.integers(0, 7), st.binary(max_size=60)), max_size=20),
    st.integers(0, 3),
    st.sampled_from(LEVELS),
    st.sampled_from([None, 1024, 4096]),
)
def test_any_pieces(pieces, order, repeat, level, segment_size):
    base = b"".join(pieces) * (repeat + 1)
    new = b"".join(
        (pieces[part] * 3 if part < len(pieces) else b"") if isinstance(part, int) else part for part in order
    )
    new *= 2 * repeat + 1
    frame = glyd.compress(new, level, base=base, segment_size=segment_size)
    assert glyd.decompress(frame, base=base) == new
    d = glyd.Decompressor(base=base, threads=1)
    assert b"".join(d.decompress(frame[i : i + 1]) for i in range(len(frame))) == new


BASE = LINES[:400_000]
NEW = edited(BASE, 3)
FRAME = glyd.compress(NEW, base=BASE)
WRONG = {
    "one byte changed": BASE[:200_000] + b"\0" + BASE[200_001:],
    "first byte changed": b"\0" + BASE[1:],
    "last byte changed": BASE[:-1] + b"\0",
    "two bytes swapped": BASE[:7] + BASE[8:9] + BASE[7:8] + BASE[9:],
    "longer": BASE + b"\n",
    "shorter": BASE[:-1],
    "empty": b"",
    "new content": NEW,
}


def readers(frame, **options):
    yield lambda: glyd.decompress(frame, **options)
    yield lambda: glyd.decompress_into(frame, bytearray(len(NEW)), **options)
    yield lambda: glyd.Decompressor(**options).decompress(frame)
    yield lambda: glyd.open(io.BytesIO(frame), **options).read()
    yield lambda: glyd.open(io.BytesIO(frame), **options).read(10)

    def seek():
        with glyd.open(io.BytesIO(frame), **options) as file:
            file.seek(1000)
            return file.read(10)

    yield seek


@pytest.mark.parametrize("base", WRONG.values(), ids=WRONG)
def test_wrong_bases(base):
    for read in readers(FRAME, base=base):
        with pytest.raises(glyd.WrongBaseError, match="base is not the one") as caught:
            read()
        assert caught.value.expected == int.from_bytes(glyd.Base(BASE).id[:8], "big")
        assert caught.value.found == int.from_bytes(glyd.Base(base).id[:8], "big")


def test_no_base():
    for read in readers(FRAME):
        with pytest.raises(glyd.MissingBaseError, match="none was given"):
            read()


def test_sizes_and_segments_need_no_base():
    assert glyd.get_frame_info(FRAME).content_size == len(NEW)
    assert [s.kind for s in glyd.iter_segments(FRAME)] == ["base"]
    with glyd.open(io.BytesIO(FRAME)) as file:
        assert file.size == len(NEW)


def test_a_base_that_is_not_needed_is_not_used():
    assert glyd.decompress(glyd.compress(NEW), base=BASE) == NEW
    both = glyd.compress(NEW) + FRAME
    assert glyd.decompress(both, base=BASE) == NEW * 2
    with glyd.open(io.BytesIO(both), base=BASE) as file:
        assert file.read() == NEW * 2


def test_where_bases_come_from(tmp_path):
    path = tmp_path / "base"
    path.write_bytes(b"head" + BASE)
    with path.open("rb") as file:
        file.seek(4)
        sources = [BASE, bytearray(BASE), memoryview(BASE), io.BytesIO(BASE), glyd.Base(BASE), file]
        assert {glyd.Base(s).id for s in sources if not isinstance(s, (io.BytesIO, glyd.Base))} == {glyd.Base(BASE).id}
        for source in sources:
            frame = glyd.compress(NEW, base=source)
            assert frame == FRAME
    path.write_bytes(BASE)
    for source in (path, str(path)):
        assert glyd.decompress(FRAME, base=source) == NEW
    path.write_bytes(b"")
    assert glyd.decompress(glyd.compress(NEW, base=path), base=b"") == NEW
    with pytest.raises(OSError, match="directory"):
        glyd.Base(tmp_path)
    with pytest.raises(FileNotFoundError):
        glyd.compress(NEW, base=tmp_path / "nothing")
    with pytest.raises(TypeError):
        glyd.Base(5)


def test_files_and_seeks():
    out = io.BytesIO()
    with glyd.open(out, "wb", base=BASE, segment_size=1 << 16, threads=2) as file:
        for i in range(0, len(NEW), 10_000):
            file.write(NEW[i : i + 10_000])
    with glyd.open(io.BytesIO(out.getvalue()), base=BASE) as file:
        rng = random.Random(1)
        for _ in range(100):
            at = rng.randrange(len(NEW))
            file.seek(at)
            assert file.read(500) == NEW[at : at + 500]


def test_a_closed_base():
    base = glyd.Base(BASE)
    with glyd.open(io.BytesIO(FRAME), base=base) as file:
        base.close()
        assert file.read() == NEW  # opened before
    with pytest.raises(ValueError, match="closed"):
        glyd.decompress(FRAME, base=base)
    base.close()
    with glyd.Base(BASE) as base:
        assert glyd.decompress(FRAME, base=base) == NEW


def test_threads_share_a_base():
    base = glyd.Base(BASE)
    found = []

    def work():
        frame = glyd.compress(NEW, base=base, threads=1)
        found.append(frame == FRAME and glyd.decompress(frame, base=base, threads=1) == NEW)

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [True] * 6


def test_long_goes_without_a_base():
    with pytest.raises(glyd.ParameterError, match="exclude"):
        glyd.compress(NEW, base=BASE, long=True)


@pytest.mark.parametrize("seed", range(40))
def test_damaged_frames(seed):
    """Whatever is changed, the content is right or an error is raised."""
    rng = random.Random(seed)
    base = LINES[:60_000]
    new = edited(base, seed)
    frame = glyd.compress(new, rng.choice(LEVELS), base=base, segment_size=1 << 14, checksum=bool(seed % 2))
    for _ in range(40):
        broken = bytearray(frame)
        for _ in range(rng.randrange(1, 4)):
            broken[rng.randrange(56, len(broken))] = rng.randrange(256)
        try:
            content = glyd.decompress(broken, base=base)
        except glyd.FormatError:
            continue
        assert content == new or not seed % 2

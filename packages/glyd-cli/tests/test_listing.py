# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
import json
import random
import struct

import glyd as codec


def test_table(glyd, tmp_path, text, big):
    (tmp_path / "a.glyd").write_bytes(codec.compress(text, "max"))
    (tmp_path / "b.glyd").write_bytes(codec.compress(big, "fast") + codec.compress(b"x", "turbo"))
    lines = glyd("--list", "a.glyd", "b.glyd").out.decode().splitlines()
    assert lines[0].split() == ["frames", "segments", "stored", "content", "ratio", "level", "check", "file"]
    assert lines[1].split()[0:2] == ["1", "1"]
    assert lines[1].endswith("a.glyd")
    assert lines[2].split()[0] == "2"
    assert "fast,turbo" in lines[2]
    assert lines[3].endswith("2 files")
    assert len(glyd("-l", "a.glyd").out.splitlines()) == 2


def test_json_and_info(glyd, tmp_path, text, big):
    data = codec.compress(big, "fast") + codec.compress(text, "max", checksum=False)
    (tmp_path / "b.glyd").write_bytes(data)
    for verb in ("--list", "--info"):
        (one,) = json.loads(glyd(verb, "--json", "b.glyd").out)
        assert one["path"] == "b.glyd"
        assert one["stored_nbytes"] == len(data)
        assert one["content_nbytes"] == len(big) + len(text)
        assert [f["level"] for f in one["frames"]] == ["fast", "max"]
        assert [f["checksum"] for f in one["frames"]] == ["xxh3-64", "none"]
        assert one["frames"][1]["offset"] == one["frames"][0]["frame_nbytes"]
        assert one["n_segments"] == sum(f["n_segments"] for f in one["frames"])
    text = glyd("--info", "b.glyd").out.decode()
    assert "frame 1 at byte" in text
    assert f"{len(big)} bytes in" in text


def test_models_and_kinds_of_segments(glyd, tmp_path):
    """Numbers of a model are split into fields, unless that is not wanted; --info says what became of them."""
    rng = random.Random(1)
    numbers = b"".join(struct.pack("<f", rng.gauss(0, 0.02))[2:] for _ in range(60_000))
    header = b'{"w":{"dtype":"BF16","shape":[60000],"data_offsets":[0,120000]}}'
    model = len(header).to_bytes(8, "little") + header + numbers
    for size in (30_000, len(model)):  # in one piece, and as a stream
        (tmp_path / "m").write_bytes(model[:size])
        glyd("-f", "m", "-o", "with.glyd")
        glyd("-f", "--no-weights", "m", "-o", "without.glyd")
        for name, kind in (("with.glyd", "weights"), ("without.glyd", "raw")):
            glyd("-f", "-d", name, "-o", "back")
            assert (tmp_path / "back").read_bytes() == model[:size]
            stored = (tmp_path / name).stat().st_size
            assert (stored < 0.69 * size) == (kind == "weights")
            (one,) = json.loads(glyd("--info", "--json", name).out)
            assert one["kinds"].keys() == {kind}
            assert one["kinds"][kind]["content_nbytes"] == size
            assert f"  {kind}: 1 segments" in glyd("--info", name).out.decode()


def test_standard_input(glyd, tmp_path, big):
    frame = codec.compress(big, "default")
    (tmp_path / "f.glyd").write_bytes(frame)
    (piped,) = json.loads(glyd("-l", "--json", input=frame).out)
    with (tmp_path / "f.glyd").open("rb") as f:
        (opened,) = json.loads(glyd("-l", "--json", "-", stdin=f).out)
    assert piped == opened
    assert piped["content_nbytes"] == len(big)


def test_skippable_frames(glyd, tmp_path, text):
    head = bytes.fromhex("9d474c53") + struct.pack("<IQ", 7, 5)
    # the check of the header is in the frame itself: let the codec tell what it expects
    frame = codec.compress(text)
    (tmp_path / "f.glyd").write_bytes(frame + head + bytes(4) + b"12345")
    assert "f.glyd" in glyd.fail("--list", "f.glyd", code=3)


def test_what_cannot_be_listed_does_not_stop_the_rest(glyd, tmp_path, text):
    (tmp_path / "a.glyd").write_bytes(codec.compress(text))
    (tmp_path / "bad.glyd").write_bytes(b"no frame")
    done = glyd("--list", "bad.glyd", "a.glyd", "missing", code=3)
    assert done.out.decode().splitlines()[1].endswith("a.glyd")
    assert done.err.count("\n") == 2
    assert json.loads(glyd("--list", "--json", "bad.glyd", code=3).out) == []


def test_listing_a_large_file_reads_little_of_it(glyd, tmp_path):
    """Only header and index: a hole where the segments would be does not matter to it."""
    data = random.Random(1).randbytes(64 << 20)
    (tmp_path / "f").write_bytes(data)
    glyd("-q", "-1", "f")
    frame = tmp_path / "f.glyd"
    size = frame.stat().st_size
    with frame.open("r+b") as f:
        f.seek(1 << 20)
        f.write(bytes(1000))  # damage in the middle: listing does not read it, testing does
    (one,) = json.loads(glyd("--list", "--json", "f.glyd").out)
    assert one["content_nbytes"] == len(data)
    assert one["stored_nbytes"] == size
    glyd.fail("--test", "f.glyd", code=3)


def test_columns_of_records(glyd, tmp_path):
    """--info says what became of the fields of a table, and where its bytes went."""
    rows = [f'{{"id": {i}, "user": "{["anna", "bob", "cleo"][i % 3]}", "ms": {i % 50}}}\n' for i in range(2000)]
    (tmp_path / "t.jsonl").write_text("".join(rows))
    glyd("-r", "t.jsonl", "-o", "t.glyd")
    lines = glyd("--info", "t.glyd").out.decode().splitlines()
    assert any("json, 2000 rows in 1 tables" in line for line in lines)
    (user,) = (line.split() for line in lines if '"user":' in line)
    assert "dictionary" in user
    assert "2000" in user
    (one,) = json.loads(glyd("--info", "--json", "t.glyd").out)
    (records,) = one["records"]
    assert [(c["kind"], c["least"], c["most"]) for c in records["columns"]][::2] == [
        ("number", "0", "1999"),
        ("number", "0", "49"),
    ]
    (plain,) = json.loads(glyd("--list", "--json", "t.glyd").out)
    assert plain["records"] == []

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
import importlib.util
import json
import math
import re
import subprocess
import sys

import pytest

import glyd as codec
from glyd_cli.bench.codecs import Codec, find_codecs
from glyd_cli.bench.measure import MismatchError, Row, measure
from glyd_cli.bench.summary import geometric_mean, mean_rows, pick, slots

HAS = {name: importlib.util.find_spec(name) is not None for name in ("zstandard", "lz4", "matplotlib")}
FAST = ("-b", "--seconds=0.01", "--limit=100K")


def test_table(glyd, tmp_path, text):
    (tmp_path / "f").write_bytes(text)
    out = glyd(*FAST, "-T2", "f").out.decode()
    for name in ("glyd turbo", "glyd fast", "glyd default", "glyd max", "glyd max T2", "xz -6", "xz -9e", "zlib -6"):
        assert f" {name} " in out
    for module, name in (("zstandard", "zstd -19"), ("lz4", "lz4")):
        assert (f"│ {name} " in out) == HAS[module]
    for module, name in (("zstandard", "zstd"), ("lz4", "lz4")):
        assert (f"{name} is not installed here: pip install {module}" in out) == (not HAS[module])
    assert "Pick " in out
    assert "102 kB" in out


def test_json_has_true_sizes(glyd, tmp_path, text):
    (tmp_path / "f").write_bytes(text)
    facts = json.loads(glyd(*FAST, "--json", "-T1", "f").out)
    (file,) = facts["files"]
    assert file["nbytes"] == 100 << 10
    rows = {row["codec"]: row for row in file["rows"]}
    for level in codec.LEVELS:
        row = rows[f"glyd {level}"]
        assert row["stored_nbytes"] == len(codec.compress(text[: 100 << 10], level))
        assert row["ratio"] == pytest.approx((100 << 10) / row["stored_nbytes"])
        for way in ("write_mb_s", "read_mb_s"):  # whatever the machine and its load: the unit is right
            assert 0.001 < row[way] < 200_000
        assert 0 <= row["write_memory_nbytes"] < 64 << 20
    assert not any(" T" in name for name in rows)
    assert facts["pick"]["level"] in codec.LEVELS
    assert facts["machine"]["glyd"] == codec.__version__


def test_standard_input_and_refusals(glyd, tmp_path, text):
    assert " glyd max " in glyd(*FAST, "-T1", input=text).out.decode()
    (tmp_path / "empty").write_bytes(b"")
    assert "is empty" in glyd.fail(*FAST, "empty", code=2)
    assert "no such file" in glyd.fail(*FAST, "missing", code=2)


@pytest.mark.skipif(not HAS["matplotlib"], reason="matplotlib is not installed (extra bench)")
@pytest.mark.parametrize("ending", ["png", "svg"])
def test_plot(glyd, tmp_path, text, ending):
    (tmp_path / "f").write_bytes(text)
    glyd(*FAST, "f", "--plot", f"p.{ending}")
    head = (tmp_path / f"p.{ending}").read_bytes()[:400]
    assert head.startswith(b"\x89PNG") if ending == "png" else b"<svg" in head


@pytest.mark.skipif(HAS["matplotlib"], reason="matplotlib is installed: the line that asks for it cannot be shown")
def test_plot_says_what_to_install(glyd, tmp_path, text):
    (tmp_path / "f").write_bytes(text)
    assert "pip install" in glyd.fail(*FAST, "f", "--plot", "p.png", code=1)


def test_corpus_as_markdown(tmp_path, text):
    for name in ("a|b", "c"):
        (tmp_path / name).write_bytes(text[:50000])
    (tmp_path / "empty").write_bytes(b"")
    args = [sys.executable, "-I", "-m", "glyd_cli.bench", tmp_path, "--markdown", "--seconds=0.005", "--threads=1"]
    done = subprocess.run(list(map(str, args)), capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "| glyd max |" in done.stdout
    assert "a\\|b" in done.stdout
    assert ("| glyd max | zstd -3 |" in done.stdout) == HAS["zstandard"]
    assert ("| glyd default | lz4 |" in done.stdout) == HAS["lz4"]


def test_a_codec_that_loses_bytes_is_caught(text):
    codecs = [Codec("bad", "glyd", 1, lambda d: d[:-1], lambda d, _out: d + b"?")]
    with pytest.raises(MismatchError, match="bad does not restore"):
        measure("f", text, codecs, seconds=0.01, memory=False)


def test_every_codec_found_restores(text):
    for each in find_codecs(2)[0]:
        for data in (text[:3000], b"x"):
            assert each.decompress(each.compress(data), bytearray(len(data))) == data


def row(name, nbytes, stored, write_s, read_s):
    made = Row(Codec(name, name.split()[0], 1, None, None), nbytes, stored)
    made.write_s, made.read_s = list(write_s), list(read_s)
    return made


def test_figures():
    from glyd_cli.bench.measure import FileResult

    peer = row("zstd -3", 1000, 500, [2.0, 2.0, 8.0], [1.0, 1.0, 1.0])
    ours = row("glyd max", 1000, 400, [1.0, 1.0, 4.0], [0.5, 0.25, 0.5])
    assert ours.write_times(peer) == 2
    assert ours.read_times(peer) == 2
    assert ours.ratio == 2.5
    other = row("zstd -3", 1000, 200, [1.0], [1.0])
    worse = row("glyd max", 1000, 250, [1.0], [2.0])
    results = [FileResult("a", 1000, [peer, ours]), FileResult("b", 1000, [other, worse])]
    (slot,) = slots(results, 1)
    assert slot.nbytes == pytest.approx(math.sqrt(0.8 * 1.25))
    assert slot.worst_nbytes == (1.25, "b")
    assert slot.read == pytest.approx(1.0)
    assert slot.worst_read == (0.5, "b")
    assert geometric_mean([1, 100]) == pytest.approx(10)
    part = FileResult("c", 2000, [peer, ours])
    assert math.isnan(mean_rows([part])[0][1])


def test_pick_prefers_what_costs_less_in_total():
    from glyd_cli.bench.measure import FileResult

    fast = row("glyd turbo", 10**9, 9 * 10**8, [1.0], [0.1])
    small = row("glyd max", 10**9, 3 * 10**8, [5.0], [0.5])
    level, reason = pick([FileResult("a", 10**9, [fast, small])])
    assert level == "max"
    assert "16.6 s" in reason  # 5 + 10 · 0.5 + 11 · 0.3 / 0.5
    assert "21.8 s" in reason  # 1 + 10 · 0.1 + 11 · 0.9 / 0.5


@pytest.mark.skipif(not (HAS["matplotlib"] and HAS["zstandard"]), reason="glyd-cli[bench] is not installed")
def test_records_by_kind(tmp_path):
    """Columns are measured beside levels, and drawn by kind of file."""
    rows = [f"{i},{i * i % 97},{i % 7}\n" for i in range(4000)]
    (tmp_path / "a.csv").write_text("".join(rows))
    (tmp_path / "b.log").write_text("".join(f"2024-01-02 03:04:{i % 60:02} user {i} has gone\n" for i in range(2000)))
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    picture, levels = pictures / "kinds.svg", pictures / "levels.svg"
    arguments = ["--records", "--threads=1", "--seconds=0.01", "--json", f"--kinds={picture}", f"--levels={levels}"]
    done = subprocess.run(
        [sys.executable, "-m", "glyd_cli.bench", *arguments, str(tmp_path)], capture_output=True, check=True, text=True
    )
    for file in json.loads(done.stdout)["files"]:
        stored = {row["codec"]: row["stored_nbytes"] for row in file["rows"]}
        assert stored["glyd max -r"] < stored["glyd max"]
        assert "glyd ultra -r" in stored
    assert "zstd -19 = 1" in picture.read_text()
    assert "csv" in picture.read_text()
    drawn = levels.read_text()
    for kind, of in (("csv", "1 file"), ("log", "1 file"), ("all", "2 files")):
        titles = re.findall(rf"<!-- {kind} \({of}, [^)]*\): (\w+) -->", drawn)
        assert titles == ["writing", "reading"]

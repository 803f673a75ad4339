# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
import os
import random
import subprocess
import time

import pytest

import glyd as codec

LEVELS = ["--turbo", "-t", "--fast", "-1", "--default", "--max", "-9"]


@pytest.mark.parametrize("level", LEVELS)
def test_round_trip_by_names(glyd, tmp_path, text, level):
    f = tmp_path / "f.txt"
    f.write_bytes(text)
    done = glyd(level, f)
    assert f.read_bytes() == text
    frame = (tmp_path / "f.txt.glyd").read_bytes()
    assert len(frame) < len(text)
    assert codec.decompress(frame) == text
    assert "f.txt.glyd" in done.err
    assert "MB/s" in done.err
    assert done.err.count("\n") == 1
    f.unlink()
    glyd("-d", tmp_path / "f.txt.glyd")
    assert f.read_bytes() == text


@pytest.mark.parametrize(
    "n", [0, 1, 2, 4095, 1 << 20, (1 << 20) + 1, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, (8 << 20) + 5]
)
def test_sizes_around_every_border(glyd, tmp_path, big, n):
    (tmp_path / "f").write_bytes(big[:n])
    for flags in (("-T1",), ("-T3",)):
        glyd("-f", "-q", *flags, "f")
        glyd("-d", "-f", "-q", *flags, "f.glyd", "-o", "g")
        assert (tmp_path / "g").read_bytes() == big[:n]
    piped = glyd("-c", input=big[:n]).out
    assert glyd("-dc", input=piped).out == big[:n]


def test_same_bytes_for_every_number_of_threads(glyd, tmp_path, big):
    (tmp_path / "f").write_bytes(big)
    frames = {glyd("-c", "-9", f"-T{n}", "f").out for n in (0, 1, 2, 5)}
    assert len(frames) == 1


def test_long(glyd, tmp_path):
    part = random.Random(1).randbytes(10 << 20)  # repeats at a distance no plain segment spans
    (tmp_path / "f").write_bytes(part + part)
    plain, far = (glyd("-c", "-9", *flags, "f").out for flags in ((), ("--long",)))
    assert codec.get_frame_info(plain).n_segments == 4
    assert codec.get_frame_info(far).n_segments == 1
    assert len(far) < 0.6 * len(plain)
    glyd("--long", "--max", "-k", "f")
    assert glyd("-dc", "f.glyd").out == part + part


def test_dense(glyd, tmp_path):
    part = random.Random(2).randbytes(10 << 20)
    (tmp_path / "f").write_bytes(part + part)
    plain, dense = (glyd("-c", "--high", *flags, "f").out for flags in (("-T2",), ("-T2", "--dense")))
    assert codec.get_frame_info(plain).n_segments == 2
    assert codec.get_frame_info(dense).n_segments == 1
    assert len(dense) < 0.6 * len(plain)
    assert glyd("-c", "--high", "-T1", "--dense", "f").out == dense
    assert glyd("-dc", input=dense).out == part + part
    assert "--dense goes with" in glyd.fail("--dense", "-1", "f", code=1)


def test_several_files_and_the_worst_exit_code(glyd, tmp_path, text):
    for name in "abc":
        (tmp_path / name).write_bytes(text + name.encode())
    done = glyd("a", "missing", "b", ".", "c", code=2)
    assert "glyd: missing: cannot open: no such file or directory" in done.err
    assert "glyd: .: is a directory" in done.err
    assert "3 files" in done.err
    for name in "abc":
        (tmp_path / name).unlink()
    (tmp_path / "b.glyd").write_bytes((tmp_path / "b.glyd").read_bytes()[:-5])
    glyd("-d", "a.glyd", "b.glyd", "missing", "c.glyd", code=3)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "a.glyd", "b.glyd", "c", "c.glyd"]
    glyd.fail("-q", "--test", "a.glyd", "b.glyd", "c.glyd", code=3)


def test_output_into_a_folder(glyd, tmp_path, text):
    (tmp_path / "out").mkdir()
    (tmp_path / "sub").mkdir()
    for name in ("a", "b", "sub/a"):
        (tmp_path / name).write_bytes(text + name.encode())
    glyd("a", "b", "-o", "out")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["a.glyd", "b.glyd"]
    glyd("-d", "out/a.glyd", "out/b.glyd", "-o", "sub", "-f")
    assert (tmp_path / "sub/a").read_bytes() == text + b"a"
    glyd.fail("a", "b", "-o", "file", code=1)
    glyd.fail("-", "-o", "out", code=1, input=b"x")
    before = (tmp_path / "out/a.glyd").read_bytes()
    err = glyd.fail("-qf", "a", "sub/a", "-o", "out", code=2)  # both want out/a.glyd
    assert "is the input" in err
    assert (tmp_path / "out/a.glyd").read_bytes() == before


def test_an_output_never_replaces_another_input(glyd, tmp_path, text):
    (tmp_path / "a").write_bytes(text)
    (tmp_path / "a.glyd").write_bytes(b"precious")
    glyd("-f", "a", "a.glyd", code=2)
    assert (tmp_path / "a.glyd").read_bytes() == b"precious"


def test_standard_streams(glyd, tmp_path, text):
    (tmp_path / "f").write_bytes(text)
    frame = glyd(input=text).out
    assert glyd("-", input=text).out == frame
    assert glyd("-d", "-", input=frame).out == text
    assert glyd("-d", input=frame).err == ""
    assert glyd("-d", "-v", input=frame).err != ""
    assert glyd("-o", "-", "f").out == glyd("-c", "f").out
    glyd("-o", "z", input=text)
    assert (tmp_path / "z").read_bytes() == frame
    assert glyd("-c", "f", "-", input=b"more").out != b""
    assert glyd("-dc", input=glyd("-c", "f", "-", input=b"more").out).out == text + b"more"
    with (tmp_path / "f").open("rb") as f:
        assert glyd("-dc", input=glyd(stdin=f).out).out == text
    assert not (tmp_path / "-.glyd").exists()


def test_stdin_positioned_in_a_file_is_read_from_there(glyd, tmp_path, big):
    (tmp_path / "f").write_bytes(big)
    with (tmp_path / "f").open("rb") as f:
        os.lseek(f.fileno(), 1000, os.SEEK_SET)
        assert codec.decompress(glyd(stdin=f).out) == big[1000:]


def test_no_clobber_without_force(glyd, tmp_path, text):
    (tmp_path / "f").write_bytes(text)
    (tmp_path / "f.glyd").write_bytes(b"old")
    assert "already exists; -f" in glyd.fail("f", code=2)
    assert (tmp_path / "f.glyd").read_bytes() == b"old"
    (tmp_path / "o").symlink_to("nowhere")
    assert "already exists" in glyd.fail("f", "-o", "o", code=2)
    glyd("-f", "f")
    assert codec.decompress((tmp_path / "f.glyd").read_bytes()) == text
    glyd.fail("-d", "f.glyd", code=2)
    glyd("-d", "-f", "f.glyd")


def test_no_clobber_is_decided_at_the_end(glyd, tmp_path):
    """What another program makes meanwhile stays."""
    process = glyd.start("-o", "out", stdin=subprocess.PIPE)
    process.stdin.write(b"x" * 100)
    process.stdin.flush()
    time.sleep(0.4)
    (tmp_path / "out").write_bytes(b"made meanwhile")
    _, err = process.communicate(b"y")
    assert process.returncode == 2, err
    assert b"already exists" in err
    assert (tmp_path / "out").read_bytes() == b"made meanwhile"
    assert os.listdir(tmp_path) == ["out"]


def test_remove(glyd, tmp_path, text, big):
    f = tmp_path / "f"
    for data in (text, big):
        f.write_bytes(data)
        glyd("--rm", "f")
        assert not f.exists()
        glyd("-d", "--rm", "f.glyd")
        assert os.listdir(tmp_path) == ["f"]
        assert f.read_bytes() == data
    glyd("--rm", "-c", "f")
    glyd("--rm", "-o", "/dev/null", "f")
    glyd("f")
    glyd("--rm", "--test", "f.glyd")
    assert f.exists()
    assert (tmp_path / "f.glyd").exists()
    glyd.fail("--rm", "f", code=2)  # the output exists
    (tmp_path / "l").symlink_to("f")
    glyd.fail("--rm", "l", code=1)
    assert f.read_bytes() == big
    assert (tmp_path / "l").is_symlink()
    (tmp_path / "f.glyd").write_bytes((tmp_path / "f.glyd").read_bytes()[:-9])
    glyd.fail("-d", "--rm", "-f", "f.glyd", code=3)
    assert f.read_bytes() == big
    assert (tmp_path / "f.glyd").exists()


def test_file_that_grows_while_it_is_read(glyd, tmp_path, big):
    """A log that is written to: everything that was there comes back, and --rm keeps it."""
    f = tmp_path / "f"
    f.write_bytes(big)
    os.mkfifo(tmp_path / "p")
    process = glyd.start("-9", "-T1", "--rm", "f", "-o", "p")
    reader = os.open(tmp_path / "p", os.O_RDONLY)
    first = os.read(reader, 10)  # it has begun, and waits for us when the pipe is full
    with f.open("ab") as more:
        more.write(b"later" * 100000)
    frame = first
    while part := os.read(reader, 1 << 20):
        frame += part
    os.close(reader)
    _, err = process.communicate()
    assert process.returncode == 0, err
    assert codec.decompress(frame)[: len(big)] == big
    assert f.exists()


def test_names(glyd, tmp_path, text):
    names = [
        "ü ñ 漢字",
        "new\nline",
        "tab\t",
        "-dash",
        "--",
        "a" * 240,
        "sp ace.glyd.x",
        "\x1b[31mred",
        os.fsdecode(b"\xff\xfe"),
    ]
    for name in names:
        (tmp_path / name).write_bytes(text)
    done = glyd("--", *names)
    assert done.err.count("\n") == len(names) + 1
    assert "\x1b" not in done.err
    for name in names:
        (tmp_path / name).unlink()
    glyd("-d", "--", *[name + ".glyd" for name in names])
    assert all((tmp_path / name).read_bytes() == text for name in names)
    assert glyd("--list", "--json", "--", *[name + ".glyd" for name in names]).out.isascii()
    (tmp_path / ("b" * 255)).write_bytes(text)  # no room for the suffix
    assert "too long" in glyd.fail("b" * 255, code=2)


def test_suffix(glyd, tmp_path, text):
    (tmp_path / "f.glyd").write_bytes(text)
    assert "-f compresses it once more" in glyd.fail("f.glyd", code=1)
    glyd("-f", "f.glyd")
    assert (tmp_path / "f.glyd.glyd").exists()
    (tmp_path / "g").write_bytes((tmp_path / "f.glyd.glyd").read_bytes())
    assert "-o or -c" in glyd.fail("-d", "g", code=1)
    assert glyd("-dc", "g").out == text
    (tmp_path / ".glyd").write_bytes(b"x")
    glyd.fail("-d", ".glyd", code=1)
    assert (tmp_path / ".glyd").read_bytes() == b"x"


def test_quiet_and_verbose(glyd, tmp_path, text):
    (tmp_path / "f").write_bytes(text)
    assert glyd("-q", "f").err == ""
    assert glyd("-q", "--test", "f.glyd").err == ""
    assert glyd("--test", "f.glyd").err.startswith("f.glyd: ok, ")
    assert "level max" in glyd("-v", "-f", "-9", "f").err
    assert glyd("-c", "f").err == ""
    assert glyd.fail("-q", "missing", code=2) != ""


def test_checks(glyd, tmp_path, text):
    (tmp_path / "f").write_bytes(text)
    with_check, without = glyd("-c", "f").out, glyd("-c", "--no-check", "f").out
    assert codec.get_frame_info(with_check).checksum != "none"
    assert codec.get_frame_info(without).checksum == "none"
    bad = bytearray(with_check)
    bad[len(bad) // 2] ^= 1
    (tmp_path / "bad.glyd").write_bytes(bad)
    for flags in (("--test",), ("-d", "-o", "x"), ("-dc",)):
        glyd.fail(*flags, "bad.glyd", code=3)
    assert not (tmp_path / "x").exists()


def test_memory_limit(glyd, tmp_path, big):
    (tmp_path / "f").write_bytes(big)
    glyd("f")
    for flags in (("-dc",), ("--test",), ("-d", "-o", "x")):
        err = glyd.fail(*flags, "--memory=1M", "f.glyd", code=4)
        assert "max_memory" in err
        assert "1048576" in err
    assert not (tmp_path / "x").exists()
    assert glyd("-dc", "-T1", "--memory=32M", "f.glyd").out == big


@pytest.mark.parametrize("what", ["empty", "text", "cut header", "cut", "one byte less", "garbage", "zeros", "version"])
def test_broken_input(glyd, tmp_path, text, what):
    whole = codec.compress(text)
    version = bytearray(whole)
    version[4] = 9
    data = {
        "empty": b"", "text": b"no frame at all\n", "cut header": whole[:9], "cut": whole[: len(whole) // 2],
        "one byte less": whole[:-1], "garbage": whole + b"zzz\n", "zeros": whole + bytes(512), "version": bytes(version),
    }[what]  # fmt: skip
    (tmp_path / "f.glyd").write_bytes(data)
    (tmp_path / "old").write_bytes(b"old")
    for flags in (("-d", "f.glyd"), ("-d", "-f", "f.glyd", "-o", "old"), ("--test", "f.glyd"), ("--list", "f.glyd")):
        err = glyd.fail(*flags, code=3)
        assert "f.glyd" in err
    glyd("-dc", input=data, code=3)
    assert (tmp_path / "old").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["f.glyd", "old"]


def test_concatenated_frames_are_one_content(glyd, tmp_path, text, big):
    frames = [codec.compress(text), codec.compress(b""), glyd("-c", "-1", input=big).out, codec.compress(b"z", "turbo")]
    (tmp_path / "f.glyd").write_bytes(b"".join(frames))
    want = text + big + b"z"
    glyd("-d", "f.glyd")
    assert (tmp_path / "f").read_bytes() == want
    assert glyd("-dc", input=b"".join(frames)).out == want
    for bad in (b"".join(frames)[:-3], frames[0] + frames[2][:-9], frames[0] + b"yyy\n"):
        glyd("-dc", input=bad, code=3)
        (tmp_path / "bad.glyd").write_bytes(bad)
        glyd.fail("-d", "bad.glyd", code=3)
        assert not (tmp_path / "bad").exists()


def test_a_failure_stops_what_goes_to_one_stream(glyd, tmp_path, big):
    """After half a content nothing may follow on standard output as if it were whole."""
    frame = codec.compress(big)
    (tmp_path / "bad.glyd").write_bytes(frame[: len(frame) // 2])
    (tmp_path / "good.glyd").write_bytes(codec.compress(b"good"))
    done = glyd("-dc", "bad.glyd", "good.glyd", code=3)
    assert done.out
    assert big.startswith(done.out)
    assert not done.out.endswith(b"good")


def test_what_was_read_before_a_failure_is_written():
    """A writer that had not begun yet wrote nothing of it, so that the next content followed."""
    from glyd_cli.pipeline import WriteBehind

    class Slow:
        def __init__(self):
            self.found = b""

        def write(self, data):
            time.sleep(0.05)
            self.found += data

    target = Slow()
    with pytest.raises(ValueError, match="damaged"), WriteBehind(target) as behind:
        for piece in (b"one ", b"two ", b"three"):
            behind.put(memoryview(piece))
        raise ValueError("damaged")
    assert target.found == b"one two three"


def test_proc_files(glyd):
    if not os.path.exists("/proc/cpuinfo"):
        pytest.skip("no /proc on this system")
    assert codec.decompress(glyd("-c", "/proc/version").out) == open("/proc/version", "rb").read()


def test_peak_memory_is_bounded(glyd, tmp_path):
    noise = random.Random(3).randbytes(1 << 20)
    with (tmp_path / "f").open("wb") as f:
        for i in range(400):
            f.write(noise[i:] + noise[:i])
    for args in (("-9", "-T2", "-q", "f"), ("-d", "-T2", "-q", "f.glyd", "-o", "g")):
        process = glyd.start(*args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        peak = usage.ru_maxrss * (1 if os.uname().sysname == "Darwin" else 1024)
        assert peak < 256 << 20, peak
    assert subprocess.run(["cmp", "f", "g"], cwd=tmp_path).returncode == 0


def test_after_a_failure_the_next_file_is_not_touched_by_the_last_one(glyd, tmp_path, big):
    """Reading ahead and writing behind end with their file, whose descriptors the next one gets."""
    bad = codec.compress(big)
    for i in range(6):
        (tmp_path / f"bad{i}.glyd").write_bytes(bad[:400] + b"damage" + bad[406:])
        (tmp_path / f"good{i}.glyd").write_bytes(codec.compress(big[i:], "fast"))
    names = [f"{kind}{i}.glyd" for i in range(6) for kind in ("bad", "good")]
    glyd("-d", *names, code=3)
    for i in range(6):
        assert not (tmp_path / f"bad{i}").exists()
        assert (tmp_path / f"good{i}").read_bytes() == big[i:]

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Holes, pipes, devices, sockets, folders, links: equal bytes or one line, never a hang."""

import fcntl
import os
import shlex
import socket
import stat
import subprocess
import threading
import time

import pytest

import glyd as codec

HOLE = 16 << 20


@pytest.fixture
def sparse(tmp_path):
    """Hole, data, hole, data in the middle of a block, hole up to the end."""
    with (tmp_path / "s").open("wb") as f:
        f.seek(HOLE)
        f.write(b"data" * 5000)
        f.seek(2 * HOLE + 777)
        f.write(b"x")
        f.truncate(3 * HOLE + 5)
    return (tmp_path / "s").read_bytes()


def used(path):
    return os.stat(path).st_blocks * 512


def shell(glyd, script, code=0):
    script = f'set -o pipefail; glyd() {{ {shlex.quote(str(glyd.path))} "$@"; }}; {script}'
    done = subprocess.run(["bash", "-c", script], cwd=glyd.folder, capture_output=True, timeout=glyd.hang_s)
    assert done.returncode == code, done.stderr
    return done


def test_holes_come_back(glyd, tmp_path, sparse):
    glyd("-q", "s")
    for flags, has_holes in (((), True), (("--sparse",), True), (("--no-sparse",), False)):
        glyd("-q", "-d", "-f", *flags, "s.glyd", "-o", "o")
        assert (tmp_path / "o").read_bytes() == sparse
        assert (used(tmp_path / "o") < 1 << 20) == has_holes


@pytest.mark.parametrize("content", [b"", b"\0", bytes(16384), bytes(16383), b"a" + bytes(1 << 20), bytes(1 << 20) + b"a",
                                     bytes(5 << 20), (bytes(16384) + b"b") * 300])  # fmt: skip
def test_zeros_at_every_end(glyd, tmp_path, content):
    (tmp_path / "f").write_bytes(content)
    glyd("-q", "f")
    glyd("-q", "-d", "-f", "f.glyd")
    assert (tmp_path / "f").read_bytes() == content


def test_appending_leaves_no_holes(glyd, tmp_path, sparse):
    glyd("-q", "s")
    for flags in ("", "--sparse"):
        (tmp_path / "l").write_bytes(b"head")
        shell(glyd, f"glyd -d -c {flags} s.glyd >>l")
        assert (tmp_path / "l").read_bytes() == b"head" + sparse
        (tmp_path / "l").write_bytes(b"old content that is longer than nothing")
        shell(glyd, f"glyd -d -c {flags} s.glyd 1<>l")  # from the start, over what is there
        assert (tmp_path / "l").read_bytes() == sparse
        shell(glyd, f"(printf head; glyd -d {flags} s.glyd -o /dev/stdout; printf tail) >l")
        assert (tmp_path / "l").read_bytes() == b"head" + sparse + b"tail"


def test_through_pipes(glyd, tmp_path, sparse):
    glyd("-q", "s")
    shell(glyd, "glyd -d -c --sparse s.glyd | cmp - s")
    shell(glyd, "glyd -c <(cat s) | glyd -d -c | cmp - s")
    shell(glyd, "glyd -dc <(cat s.glyd) | cmp - s")
    shell(glyd, "cat s | glyd | cat | glyd -d | cmp - s")
    shell(glyd, "glyd -c <(true) | glyd -d | cmp - /dev/null")
    shell(glyd, "glyd s -o >(cat >q; mv q p); until [ -e p ]; do sleep 0.05; done; glyd -dc p | cmp - s")
    shell(glyd, "glyd --test <(cat s.glyd); glyd --list - <s.glyd; cat s.glyd | glyd --info")


def test_dev_null_stays(glyd, tmp_path, sparse):
    before = os.stat("/dev/null")
    glyd("-q", "s")
    for flags in ((), ("-f",)):
        glyd("-d", *flags, "s.glyd", "-o", "/dev/null")
        glyd(*flags, "s", "-o", "/dev/null")
        glyd.fail("-d", "--memory=1K", *flags, "s.glyd", "-o", "/dev/null", code=4)
    (tmp_path / "null").symlink_to("/dev/null")
    glyd("-f", "s", "-o", "null")
    assert (tmp_path / "null").is_symlink()
    after = os.stat("/dev/null")
    assert stat.S_ISCHR(after.st_mode)
    assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)


def test_pipe_without_a_writer(glyd, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    assert "-o or -c" in glyd.fail("fifo", code=1)
    waiting = [("-c", "fifo"), ("fifo", "-o", "x"), ("-dc", "fifo"), ("--test", "fifo"), ("--list", "fifo")]
    start = time.monotonic()
    for process in [glyd.start(*args) for args in waiting]:
        _, err = process.communicate(timeout=glyd.hang_s)
        assert process.returncode == 2
        assert err.count(b"\n") == 1
        assert b"nobody writes to this pipe" in err
    assert time.monotonic() - start < 60  # 2 s each, side by side; the rest is a slow machine
    assert os.listdir(tmp_path) == ["fifo"]


@pytest.mark.parametrize("first", ["writer", "glyd", "silent writer"])
def test_pipe_with_a_writer(glyd, tmp_path, text, first):
    os.mkfifo(tmp_path / "fifo")

    def write():
        if first == "glyd":
            time.sleep(0.7)
        with (tmp_path / "fifo").open("wb") as f:
            if first == "silent writer":
                time.sleep(3)  # longer than a pipe may be without any writer
            f.write(text)

    writer = threading.Thread(target=write)
    writer.start()
    assert codec.decompress(glyd("-c", "fifo").out) == text
    writer.join()


def test_pipe_as_output(glyd, tmp_path, text):
    (tmp_path / "f").write_bytes(text)
    os.mkfifo(tmp_path / "fifo")
    assert "nobody reads" in glyd.fail("f", "-o", "fifo", code=2)
    got = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "fifo").read_bytes()))
    reader.start()
    glyd("-f", "f", "-o", "fifo")
    reader.join()
    assert codec.decompress(got[0]) == text
    assert stat.S_ISFIFO(os.stat(tmp_path / "fifo").st_mode)


def test_reader_that_has_enough(glyd, tmp_path, big):
    (tmp_path / "f").write_bytes(big)
    glyd("-q", "f")
    for args in (("-c", "f"), ("-dc", "f.glyd")):
        read, write = os.pipe()
        process = glyd.start(*args, stdout=write)
        os.close(write)
        os.read(read, 10)
        os.close(read)
        _, err = process.communicate(timeout=glyd.hang_s)
        assert (process.returncode, err) == (141, b"")
    shell(glyd, "glyd -dc f.glyd | head -c 5 >/dev/null", code=141)
    shell(glyd, "glyd --help | true; [ ${PIPESTATUS[0]} = 0 -o ${PIPESTATUS[0]} = 141 ]")
    assert (tmp_path / "f").read_bytes() == big


def test_refused_inputs(glyd, tmp_path, monkeypatch):
    (tmp_path / "dir").mkdir()
    server = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(tmp_path)
    server.bind("sock")
    try:
        for args in ((), ("-c",), ("-d", "-c"), ("--test",), ("--list",), ("-b",), ("-f", "-o", "x"), ("-f", "--rm")):
            assert "tar" in glyd.fail(*args, "dir", code=2)
            assert "socket" in glyd.fail(*args, "sock", code=2)
            assert "head -c" in glyd.fail(*args, "/dev/zero", code=2)
    finally:
        server.close()
    assert "is a socket" in glyd.fail("-o", "sock", code=2, input=b"x")
    assert sorted(os.listdir(tmp_path)) == ["dir", "sock"]


@pytest.mark.parametrize("rights", [(), ("-c",)])
def test_links_are_followed_for_reading(glyd, tmp_path, text, rights):
    (tmp_path / "real").write_bytes(text)
    (tmp_path / "l").symlink_to("real")
    out = glyd(*rights, "l").out
    frame = out if rights else (tmp_path / "l.glyd").read_bytes()
    assert codec.decompress(frame) == text
    assert (tmp_path / "l").is_symlink()
    (tmp_path / "gone").symlink_to("nowhere")
    glyd.fail(*rights, "gone", code=2)
    (tmp_path / "loop").symlink_to("loop")
    glyd.fail(*rights, "loop", code=2)


def test_descriptor_as_output(glyd, tmp_path, text):
    (tmp_path / "f").write_bytes(text)
    shell(glyd, "glyd f -o /dev/stdout | glyd -dc | cmp - f")
    shell(glyd, "glyd -f f -o /dev/fd/3 3>z; glyd -dc z | cmp - f")
    assert "cannot open" in glyd.fail("f", "-o", "/dev/fd/77", code=2)
    assert "cannot open" in glyd.fail("/dev/fd/77", "-c", code=2)


def test_closed_standard_streams(glyd, tmp_path, text):
    (tmp_path / "f").write_bytes(text)
    shell(glyd, "glyd f 0<&- 1>&- 2>&-")
    assert codec.decompress((tmp_path / "f.glyd").read_bytes()) == text
    shell(glyd, "glyd -c f >&-", code=2)
    shell(glyd, "glyd -c <&- >x", code=2)
    shell(glyd, "glyd --help >&-", code=2)
    shell(glyd, "glyd -d -f f.glyd 2>&-")
    shell(glyd, "glyd missing 2>&-", code=2)
    assert (tmp_path / "f").read_bytes() == text


def test_streams_that_do_not_block(glyd, tmp_path, big):
    """Another program may have left O_NONBLOCK on a pipe that we inherit."""
    out_read, out_write = os.pipe()
    in_read, in_write = os.pipe()
    for fd in (out_write, in_read):
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_NONBLOCK)
    process = glyd.start("-1", stdin=in_read, stdout=out_write)
    os.close(in_read)
    os.close(out_write)

    def feed():
        time.sleep(0.3)
        with os.fdopen(in_write, "wb") as f:
            f.write(big)

    feeder = threading.Thread(target=feed)
    feeder.start()
    frame = b""
    while part := os.read(out_read, 1 << 16):
        frame += part
        if len(frame) < 1 << 18:
            time.sleep(0.01)
    os.close(out_read)
    feeder.join()
    assert process.wait(glyd.hang_s) == 0
    assert codec.decompress(frame) == big


@pytest.mark.skipif(os.geteuid() != 0 or not os.path.exists("/dev/loop-control"), reason="needs root and loop devices")
def test_block_device(glyd, tmp_path, text):
    with (tmp_path / "disk").open("wb") as f:
        f.truncate(8 << 20)
    made = subprocess.run(["losetup", "-f", "--show", tmp_path / "disk"], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no loop device here: {made.stderr.strip()}")
    device = made.stdout.strip()
    try:
        (tmp_path / "z").write_bytes(codec.compress(text + bytes(1 << 20)))
        assert "-f writes over" in glyd.fail("-d", "z", "-o", device, code=2)
        with open(device, "wb") as f:
            f.write(b"\xff" * (2 << 20))
        glyd("-d", "-f", "z", "-o", device)
        with open(device, "rb") as f:
            assert f.read(len(text) + (1 << 20)) == text + bytes(1 << 20)
        assert stat.S_ISBLK(os.stat(device).st_mode)
        assert "is a device" in glyd.fail("-c", device, code=2)
    finally:
        subprocess.run(["losetup", "-d", device], check=False)

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The installed ``glyd-store`` as a subprocess."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).parent / "glyd-store"
HANG_S = 300  # what takes longer will never end; ten times as slow as here is not hung
BAD = (b"Traceback", b"Exception ignored", b"internal error")


class Command:
    def __init__(self, folder):
        self.folder = folder

    def __call__(self, *args, code=0, input=b"", **kw):  # noqa: A002 - as subprocess.run has it
        words = [str(COMMAND), *map(os.fspath, args)]
        done = subprocess.run(words, input=input, capture_output=True, cwd=self.folder, timeout=HANG_S, **kw)
        assert done.returncode == code, (args, done.returncode, done.stderr)
        assert not any(bad in done.stderr for bad in BAD), done.stderr
        if code not in (0, 3):
            assert done.stderr.count(b"\n") <= 2, done.stderr
            assert b"glyd-store: " in done.stderr
        return done.stdout


@pytest.fixture(autouse=True)
def signals_as_in_a_terminal():
    """Shells start what runs in the background with signals ignored, and children inherit that."""
    old = {n: signal.signal(n, signal.SIG_DFL) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in old.items():
        signal.signal(number, handler)


@pytest.fixture
def run(tmp_path):
    return Command(tmp_path)


def noise(n, seed=1):
    return random.Random(seed).randbytes(n)


def test_a_day(run, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"first\n" * 100)
    run("s", "put", "a.txt", "--tag", "k=v")
    (tmp_path / "a.txt").write_bytes(b"second\n" * 100)
    assert json.loads(run("s", "put", "a.txt", "--json"))["id"] == 2
    run("s", "put", "-", "--name", "piped", input=noise(300_000))
    assert run("s", "get", "a.txt") == b"second\n" * 100
    assert run("s", "get", "1") == run("s", "get", "@1") == b"first\n" * 100
    run("s", "get", "piped", "-o", "out")
    assert (tmp_path / "out").read_bytes() == noise(300_000)
    assert run("s", "get", "piped", "--range", "10-19") == noise(300_000)[10:20]
    assert run("s", "get", "piped", "--range", "299990-") == noise(300_000)[299_990:]
    listed = [json.loads(line) for line in run("s", "list", "--all", "--json").splitlines()]
    assert [(x["id"], x["name"], x["tags"]) for x in listed] == [
        (1, "a.txt", {"k": "v"}),
        (2, "a.txt", {}),
        (3, "piped", {}),
    ]
    assert run("s", "list").count(b"\n") == 2
    assert run("s", "versions", "a.txt").count(b"\n") == 2
    assert b"piped" in run("s", "find", "pi*")
    assert json.loads(run("s", "stats", "--json"))["n_objects"] == 3
    assert b"a.txt" in run("s", "du")
    run("s", "restore", "there")
    assert (tmp_path / "there" / "a.txt").read_bytes() == b"second\n" * 100
    run("s", "restore", "there", code=2)
    assert (
        b"would"
        in subprocess.run([COMMAND, "s", "prune", "--keep-last", "1", "-n"], cwd=tmp_path, capture_output=True).stderr
    )
    run("s", "prune", "--keep-last", "1")
    assert run("s", "list", "--deleted").count(b"\n") == 1
    run("s", "undelete", "1")
    run("s", "delete", "@1")
    assert json.loads(run("s", "compact", "--json"))["n_objects"] == 1
    run("s", "rebase", "piped")
    run("s", "check", "--read-data")
    run("s", "check", "--read-data=50%")
    run("s", "rebuild")
    run("s", "repair")
    assert json.loads(run("audit", "a.txt", "--json"))["content_nbytes"] == 700
    assert b"glyd-store 0." in run("--version")
    assert b"--command" in run("s", "put", "--help")


def test_refusals(run, tmp_path):
    run(code=1)
    run("s", code=1)
    run("s", "frob", code=1)
    run("s", "put", code=1)
    run("s", "put", "-", code=1)
    run("s", "put", "a", "b", "--name", "c", code=1)
    run("s", "put", "--command", "true", code=1)
    run("s", "prune", code=1)
    run("s", "get", "x", "--range", "9-1", code=1)
    run("s", "list", code=2)
    run("s", "put", "missing", code=2)
    run("s", "put", ".", code=2)
    run("s", "put", "-", "--name", "a", input=b"1")
    run("s", "get", "x", code=6)
    run("s", "get", "99", code=6)
    run("s", "delete", "99", code=6)
    run("s", "get", "a", "--range", "5-", code=1)
    run("s", "get", "a", "-o", "no/such/folder", code=2)
    run("s", "undelete", "a", code=1)
    assert not (tmp_path / "no").exists()


def test_dumps_that_fail_leave_no_version(run, tmp_path):
    run("s", "put", "--command", "echo good", "--name", "db")
    run("s", "put", "--command", "echo partial; exit 3", "--name", "db", code=2)
    run("s", "put", "--command", "echo partial; kill -9 $$", "--name", "db", code=2)
    run("s", "put", "--command", "true", "--name", "db", code=2)
    run("s", "put", "-", "--name", "db", code=2)
    assert run("s", "get", "db") == b"good\n"
    assert run("s", "versions", "db").count(b"\n") == 1
    run("s", "put", "-", "--name", "db", "--allow-empty")
    run("s", "put", "--command", "true", "--name", "db", "--allow-empty")
    assert run("s", "get", "db") == b""
    assert run("s", "versions", "db").count(b"\n") == 3
    run("s", "check")


def test_closed_pipe(run, tmp_path):
    run("s", "put", "-", "--name", "a", input=noise(5_000_000))
    process = subprocess.Popen([COMMAND, "s", "get", "a"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.read(5)
    process.stdout.close()
    assert process.wait(HANG_S) == 141
    assert process.stderr.read() == b""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals(run, tmp_path, number):
    run("s", "put", "-", "--name", "a", input=b"1")
    process = subprocess.Popen(
        [COMMAND, "s", "put", "--command", "echo begun >&2; exec sleep 600", "--name", "b"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
    )
    assert process.stderr.readline() == b"begun\n"
    process.send_signal(number)
    assert process.wait(HANG_S) == 128 + number
    assert b"Traceback" not in process.stderr.read()  # ends when the command that was started has ended, too
    assert run("s", "list").count(b"\n") == 1
    run("s", "check")


def test_a_signal_while_a_command_starts_leaves_nothing_behind(tmp_path, monkeypatch):
    """It came between the start of a dump and the line that knew of it, and the dump went on."""
    from glyd_store import run_command

    started = []
    popen = subprocess.Popen

    def start(*args, **kw):
        started.append(popen(*args, **kw))
        signal.raise_signal(signal.SIGTERM)
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", start)
    code = run_command([str(tmp_path / "s"), "put", "--command", "exec sleep 600", "--name", "b"])
    assert code == 128 + signal.SIGTERM
    assert started[0].returncode == -signal.SIGKILL
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_ignored_signals_stay_ignored(run, tmp_path):
    """What nohup relies on."""
    process = subprocess.Popen(
        [COMMAND, "s", "put", "--command", "echo begun >&2; sleep 1; echo good", "--name", "b"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert process.stderr.readline() == b"begun\n"
    process.send_signal(signal.SIGHUP)
    assert process.wait(HANG_S) == 0
    assert run("s", "get", "b") == b"good\n"


def test_names_cannot_move_the_terminal(run):
    run("s", "put", "-", "--name", "\x1b[2Jbad\nname", input=b"1")
    for verb in (("list",), ("du",), ("find", "*")):
        assert b"\x1b" not in run("s", *verb)
        assert b"\\x1b[2Jbad\\nname" in run("s", *verb)


def test_damage_has_its_exit_code(run, tmp_path):
    run("s", "put", "-", "--name", "a", input=noise(300_000))
    (stream,) = (tmp_path / "s" / "streams").glob("*/*.glyd")
    data = bytearray(stream.read_bytes())
    data[1000] ^= 1
    stream.write_bytes(data)
    run("s", "check")
    out = run("s", "check", "--read-data", code=3)
    assert stream.name.encode() in out
    assert b"concerns 1  a" in out
    assert b"repair --from" in out
    found = json.loads(run("s", "check", "--read-data", "--json", code=3))
    assert found["problems"][0]["objects"] == [{"id": 1, "name": "a"}]
    run("s", "get", "a", "-o", "out", code=3)
    assert not (tmp_path / "out").exists()
    run("s", "restore", "all", "--keep-going", code=3)
    (tmp_path / "original").write_bytes(noise(300_000))
    run("s", "repair", "--from", "original")
    assert run("s", "get", "a") == noise(300_000)


def test_locked(run, tmp_path):
    run("s", "put", "-", "--name", "a", input=b"1")
    code = "import glyd_store, sys\nwith glyd_store.Store('s').writing():\n print(1, flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        other.stdout.readline()
        run("s", "put", "-", "--name", "a", "--wait", "0", input=b"2", code=7)
        assert run("s", "get", "a") == b"1"
    run("s", "put", "-", "--name", "a", "--wait", "0", input=b"2")


def as_nobody():
    os.setgid(65534)
    os.setuid(65534)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become somebody else")
@pytest.mark.parametrize("how", ["clean", "unclean"])
def test_media_that_cannot_be_written(run, tmp_path, how):
    run("s", "put", "-", "--name", "a", input=noise(400_000))
    if how == "unclean":  # a log of the index is left
        code = "import glyd_store, os\ns = glyd_store.Store('s')\ns.put('b', b'late')\nos._exit(1)"
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path)
        assert (tmp_path / "s" / "index.sqlite-wal").exists()
        (tmp_path / "s" / "index.sqlite-shm").unlink()
    for folder, _, names in os.walk(tmp_path / "s"):
        os.chmod(folder, 0o555)
        for name in names:
            os.chmod(os.path.join(folder, name), 0o444)
    place = tmp_path
    while place != place.parent:  # pytest keeps its folders to itself
        if place.stat().st_uid == os.getuid() and not place.stat().st_mode & 1:
            os.chmod(place, 0o755)
        place = place.parent
    try:
        subprocess.run([COMMAND, "--version"], preexec_fn=as_nobody, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"nobody cannot run the command here: {error}")
    options = {"preexec_fn": as_nobody, "env": {"HOME": "/nonexistent", "PATH": os.environ["PATH"]}}
    assert run("s", "get", "a", **options) == noise(400_000)
    for verb in ("list", "stats", "du", "check"):
        run("s", verb, **options)
    assert run("s", "versions", "a", **options).count(b"\n") == 1
    if how == "unclean":
        assert run("s", "get", "b", **options) == b"late"
    (tmp_path / "file").write_bytes(b"1")
    os.chmod(tmp_path / "file", 0o644)
    for words in (("put", "file"), ("delete", "a"), ("compact",)):
        done = subprocess.run([COMMAND, "s", *words], cwd=tmp_path, capture_output=True, **options)
        assert done.returncode == 2, done
        assert b"read-only" in done.stderr
        assert done.stderr.count(b"\n") == 1

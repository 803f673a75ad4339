# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The installed ``glyd`` as a subprocess, in a folder of its own for each test."""

import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

GLYD = Path(sys.executable).parent / "glyd"
HANG_S = 300  # what takes longer will never end; ten times as slow as here is not hung
BAD = (b"Traceback", b"Segmentation", b"Exception ignored", b"internal error")


class Command:
    """Runs the command and checks what must hold for every run."""

    hang_s = HANG_S

    def __init__(self, folder):
        self.folder = folder
        self.path = GLYD

    def start(self, *args, **kw):
        kw.setdefault("stdin", subprocess.DEVNULL)
        kw.setdefault("stdout", subprocess.PIPE)
        kw.setdefault("stderr", subprocess.PIPE)
        kw.setdefault("cwd", self.folder)
        return subprocess.Popen([os.fspath(GLYD), *map(os.fspath, args)], **kw)

    def __call__(self, *args, code=0, input=None, timeout=HANG_S, umask=None, fsize=None, **kw):  # noqa: A002 - as subprocess.run has it
        def prepare():
            if umask is not None:
                os.umask(umask)
            if fsize is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (fsize, fsize))

        if input is not None:
            kw["stdin"] = subprocess.PIPE
        process = self.start(*args, preexec_fn=prepare, **kw)
        try:
            out, err = process.communicate(input, timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            pytest.fail(f"glyd {args} ran past {timeout} s; it said {err!r}")
        err = err or b""
        assert process.returncode == code, (args, process.returncode, err)
        assert not any(bad in err for bad in BAD), err
        if code not in (0, 141):
            assert b"glyd: " in err, err
            assert err.endswith(b"\n"), err
        return Done(out, err.decode())

    def wait_until_it_listens(self, process):
        """Wait until a command has taken over SIGTERM, which Python itself leaves alone.

        Sooner, a signal meets Python as it starts, which has other exit codes for that.
        """
        status = f"/proc/{process.pid}/status"
        if not os.path.exists(status):
            time.sleep(3)
            return
        end = time.monotonic() + HANG_S
        while process.poll() is None:
            assert time.monotonic() < end, "it took no signals over"
            with open(status) as file:
                caught = next((line for line in file if line.startswith("SigCgt")), "SigCgt: 0")  # none when it ended
            if int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1:
                return
            time.sleep(0.002)

    def fail(self, *args, code, lines=1, **kw):
        """Run what must be refused in one line."""
        done = self(*args, code=code, **kw)
        assert done.err.count("\n") == lines, done.err
        return done.err


class Done:
    def __init__(self, out, err):
        self.out, self.err = out, err


@pytest.fixture
def glyd(tmp_path):
    return Command(tmp_path)


@pytest.fixture(scope="session")
def text():
    """300 KB that compress well but not to nothing."""
    rng = random.Random(1)
    words = [bytes(rng.choices(b"abcdefghij", k=rng.randint(2, 9))) for _ in range(500)]
    sentences = [b" ".join(rng.choices(words, k=8)) for _ in range(200)]  # long enough for the matches of every level
    return b" ".join(rng.choice(sentences) + b"," + rng.choice(words) for _ in range(7000))[:300_000]


@pytest.fixture(scope="session")
def big(text):
    """25 MB: several segments for every thread."""
    return b"".join(b"%d" % i + text for i in range(84))


@pytest.fixture
def left_over(tmp_path):
    """Names in the folder that no test made: temporary files."""
    return lambda: sorted(name for name in os.listdir(tmp_path) if "glyd-tmp" in name)


@pytest.fixture(autouse=True)
def _default_signals():
    """A parent that ignores signals would hand that down to every command."""
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, old)

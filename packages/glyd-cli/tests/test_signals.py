# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Stopped at any moment: no half file, no traceback, the exit code says which signal it was."""

import functools
import os
import random
import signal
import subprocess
import time

import pytest

import glyd as codec
from glyd_cli.signals import Interrupted, StopGate


@pytest.fixture
def work(tmp_path, big):
    (tmp_path / "f").write_bytes(big * 2)
    (tmp_path / "f.z").write_bytes(codec.compress(big * 2, "turbo"))
    return big * 2


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(("args", "name"), [(("-9", "f"), "f"), (("-d", "--rm", "f.z"), "f.z")])
def test_stopped_at_random_moments(glyd, tmp_path, work, signum, args, name):
    rng = random.Random(signum)
    codes = set()
    (tmp_path / "o").write_bytes(b"older")
    i = 0
    while i < 7 or (128 + signum not in codes and i < 60):  # some more where each was done before its signal
        # under nohup, say, the signal is ignored, and the command honours that: not what is tested here
        unignored = functools.partial(signal.signal, signum, signal.SIG_DFL)
        process = glyd.start("-q", "-f", *args, "-o", "o", stderr=subprocess.PIPE, preexec_fn=unignored)
        if i:  # the first time, wherever it is
            glyd.wait_until_it_listens(process)
        time.sleep(0.15 * rng.random() if i < 7 else 0)
        process.send_signal(signum)
        if rng.random() < 0.3:
            process.send_signal(signum)  # impatient
        _, err = process.communicate(timeout=glyd.hang_s)
        i += 1
        codes.add(process.returncode)
        names = sorted(os.listdir(tmp_path))
        if process.returncode == 0:  # it was faster
            codec.decompress((tmp_path / "o").read_bytes()) if name == "f" else None
            if name == "f.z":
                assert (tmp_path / "o").read_bytes() == work
                (tmp_path / "f.z").write_bytes(codec.compress(work, "turbo"))
            (tmp_path / "o").write_bytes(b"older")
            continue
        if process.returncode == -signum:  # before the first line of the command ran
            continue
        if i == 1 and process.returncode == 1 and b"glyd_cli" not in err:  # while Python itself started
            continue
        assert process.returncode == 128 + signum, err
        assert err == b"", err
        assert names == ["f", "f.z", "o"]
        out = (tmp_path / "o").read_bytes()
        if out != b"older":  # it came when the output had just got its name: then all of it is there
            assert (codec.decompress(out) if name == "f" else out) == work
            (tmp_path / "o").write_bytes(b"older")
    assert codes & {128 + signum}


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_stopped_while_waiting(glyd, tmp_path, signum):
    """For input that does not come, or an output that nobody reads."""
    process = glyd.start("-o", "x", stdin=subprocess.PIPE)
    glyd.wait_until_it_listens(process)
    time.sleep(0.2)
    process.send_signal(signum)
    assert process.wait(glyd.hang_s) == 128 + signum
    process.stdin.close()
    assert os.listdir(tmp_path) == []
    (tmp_path / "f").write_bytes(random.Random(signum).randbytes(1 << 22))
    process = glyd.start("-c", "-1", "f", stdout=subprocess.PIPE)
    glyd.wait_until_it_listens(process)
    time.sleep(0.2)
    process.send_signal(signum)
    assert process.wait(glyd.hang_s) == 128 + signum
    assert process.stderr.read() == b""


def test_ignored_signals_stay_ignored(glyd, tmp_path, work):
    """What nohup and background jobs of scripts rely on."""
    process = glyd.start("-q", "-9", "f", "-o", "o", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    time.sleep(0.1)
    process.send_signal(signal.SIGHUP)
    assert process.wait(glyd.hang_s) == 0
    assert codec.decompress((tmp_path / "o").read_bytes()) == work


def test_killed_outright_leaves_nothing_where_files_can_be_nameless(glyd, tmp_path, work):
    if not hasattr(os, "O_TMPFILE"):
        pytest.skip("this system has no nameless files")
    try:
        os.close(os.open(tmp_path, os.O_TMPFILE | os.O_WRONLY))
    except OSError as error:
        pytest.skip(f"this file system has no nameless files: {error}")
    process = glyd.start("-q", "-9", "-T1", "f", "-o", "o")
    time.sleep(0.15)
    process.kill()
    process.wait(glyd.hang_s)
    assert sorted(set(os.listdir(tmp_path)) - {"o"}) == ["f", "f.z"]


def test_gate_delays_signals_and_takes_one():
    gate = StopGate()
    with pytest.raises(Interrupted) as stop, gate:
        with gate:
            gate._on_signal(signal.SIGTERM, None)
        done = True
    assert done
    assert stop.value.signum == signal.SIGTERM
    gate._on_signal(signal.SIGINT, None)  # once is enough
    assert gate.signum == signal.SIGTERM
    with pytest.raises(Interrupted):
        gate.check()
    with gate:
        pass
    fresh = StopGate()
    fresh.check()
    with pytest.raises(Interrupted):
        fresh._on_signal(signal.SIGINT, None)
    fresh._raised_at -= 60  # cleaning up hangs: the next one counts again
    with pytest.raises(Interrupted):
        fresh._on_signal(signal.SIGINT, None)


def test_stopping_is_not_lost_in_code_that_fails_to_clean_up(monkeypatch, capfd):
    """argparse does: an exception in its middle becomes an AttributeError."""
    from glyd_cli import __main__, arguments, signals

    def parse(_words):
        try:
            signals.GATE._on_signal(signal.SIGTERM, None)
        finally:
            raise AttributeError("no attribute 'save_nargs'")

    gate = StopGate()
    for module in (signals, __main__):
        monkeypatch.setattr(module, "GATE", gate)
    monkeypatch.setattr(gate, "install", lambda: None)
    monkeypatch.setattr(gate, "retire", lambda: None)
    monkeypatch.setattr(arguments, "parse", parse)
    assert __main__.main(["f"]) == 128 + signal.SIGTERM
    assert capfd.readouterr().err == ""

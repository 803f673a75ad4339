# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What is different when a person sits in front of it."""

import os
import pty
import select
import subprocess
import threading
import time

import glyd as codec


class Terminal:
    """A pseudo terminal whose output is collected."""

    def __init__(self):
        self.main, self.side = pty.openpty()
        self.text = b""

    def collect(self, process):
        os.close(self.side)
        while True:
            ended = process.poll() is not None  # asked first: what it wrote before is there by now
            ready, _, _ = select.select([self.main], [], [], 0 if ended else 0.1)
            if ready:
                try:
                    part = os.read(self.main, 65536)
                except OSError:  # the other side is closed
                    break
                if not part:
                    break
                self.text += part
            elif ended:
                break
        process.wait(300)
        os.close(self.main)
        return self.text


def slowly(pipe, data, seconds):
    with pipe:
        for i in range(0, len(data), 1 << 20):
            pipe.write(data[i : i + (1 << 20)])
            time.sleep(seconds / (len(data) >> 20))


def test_progress_bar_on_a_terminal_only(glyd, tmp_path, big):
    for flags, drawn in (((), True), (("-q",), False)):
        terminal = Terminal()
        process = glyd.start(*flags, "-f", "-1", "-T1", "-o", "z", stdin=subprocess.PIPE, stderr=terminal.side,
                             env={**os.environ, "TERM": "xterm", "COLUMNS": "100"})  # fmt: skip
        feeder = threading.Thread(target=slowly, args=(process.stdin, big, 1.5))
        feeder.start()
        text = terminal.collect(process)
        feeder.join()
        assert process.returncode == 0, text
        assert (b"standard input" in text and b"\x1b[" in text) == drawn
        assert codec.decompress((tmp_path / "z").read_bytes()) == big
    process = glyd.start("-f", "-1", "-o", "z", stdin=subprocess.PIPE)
    slowly(process.stdin, big, 1)
    process.stdin = None
    assert b"\x1b" not in process.communicate()[1]


def test_compressed_data_does_not_go_to_a_terminal(glyd, tmp_path, text):
    (tmp_path / "f").write_bytes(text)
    for args in (("-c", "f"), ()):
        terminal = Terminal()
        process = glyd.start(*args, stdin=subprocess.PIPE, stdout=terminal.side)
        process.stdin.close()
        assert terminal.collect(process) == b""
        assert process.returncode == 1
        assert b"not for a terminal" in process.stderr.read()
    terminal = Terminal()
    process = glyd.start("-c", "-f", "f", stdout=terminal.side)
    assert terminal.collect(process)
    assert process.returncode == 0
    (tmp_path / "t.glyd").write_bytes(codec.compress(b"words\n"))
    terminal = Terminal()
    process = glyd.start("-dc", "t.glyd", stdout=terminal.side, stderr=terminal.side)
    assert terminal.collect(process) == b"words\r\n"


def test_nothing_to_do_says_so_instead_of_waiting(glyd):
    for args, word in (((), b"glyd --help"), (("-d",), b"is a terminal"), (("-b",), b"needs a FILE")):
        terminal = Terminal()
        process = glyd.start(*args, stdin=terminal.side)
        _, err = process.communicate(timeout=glyd.hang_s)
        assert process.returncode == 1
        assert word in err
        os.close(terminal.side)
        os.close(terminal.main)

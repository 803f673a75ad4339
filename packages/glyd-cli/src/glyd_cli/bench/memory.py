# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Working memory of a call: what it takes beside its input and its output.

Each call runs in a fresh process that has loaded the library and used it once on a few
bytes. The process resets the peak of its resident memory (Linux), makes the call, and
reports how far the peak rose, less the size of the result. Elsewhere the peak cannot be
reset, and what loading took before may hide a part of a small rise.

Run as ``python -m glyd_cli.bench.memory NAME THREADS DIRECTION SIZE FILE``.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from glyd_cli.bench.codecs import Codec

_STATUS = "/proc/self/status"


def working_memory(codec: Codec, content: bytes, frame: bytes) -> tuple[int, int]:
    """Return the bytes that compressing and restoring take beside input and output.

    Raises
    ------
    RuntimeError
        The measuring process failed.
    """
    with tempfile.NamedTemporaryFile() as raw, tempfile.NamedTemporaryFile() as packed:
        raw.write(content)
        packed.write(frame)
        raw.flush()
        packed.flush()
        return (
            _in_process(codec, "compress", len(content), raw.name),
            _in_process(codec, "decompress", len(content), packed.name),
        )


def _in_process(codec: Codec, direction: str, size: int, path: str) -> int:
    command = [sys.executable, "-m", __name__, codec.name, str(codec.threads), direction, str(size), path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"measuring the memory of {codec.name} failed: {done.stderr.strip()[-300:]}")
    return int(done.stdout)


def _peak_nbytes() -> int:
    if os.path.exists(_STATUS):
        return _status("VmHWM")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _status(name: str) -> int:
    with open(_STATUS, encoding="ascii") as file:
        line = next(line for line in file if line.startswith(name + ":"))
    return int(line.split()[1]) * 1024


def _reset_peak() -> int:
    """Reset the peak where that can be done, and return what to count from."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:
        return _peak_nbytes()
    return _status("VmRSS")


def _main(name: str, threads: str, direction: str, size: str, path: str) -> None:
    from glyd_cli.bench.codecs import find_codecs  # noqa: PLC0415 - not needed by who starts this

    codec = next(codec for codec in find_codecs(int(threads))[0] if codec.name == name)
    sample = b"a few bytes, then a few bytes more"
    codec.decompress(codec.compress(sample), bytearray(len(sample)))
    with open(path, "rb") as file:
        data = file.read()
    out = bytearray(int(size))
    out[::4096] = b"x" * len(out[::4096])  # its pages are there before the call, not because of it
    before = _reset_peak()
    result = codec.compress(data) if direction == "compress" else codec.decompress(data, out)
    print(max(0, _peak_nbytes() - before - (0 if result is out else len(result))))


if __name__ == "__main__":
    _main(*sys.argv[1:])

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Time every codec on a file, in turn, round by round, and compare what comes back.

How it is measured: all codecs run in this process on the same bytes object. A round
calls each codec once for each direction (very short calls several times), so that a
slow moment of the machine hits all of them; what is shown is the median over the
rounds, and for ``×`` the median of the ratios within the rounds. glyd, zstd and lz4
restore into a buffer that is there already; compressed results are allocated by each
call, from memory that stays with the process, because fetching fresh pages from the
system would cost fast codecs more than their own work. A codec that would need far more than its time for one call
gets the first part of the file, and its row says how much.
"""

from __future__ import annotations

import ctypes
import gc
import statistics
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from glyd_cli.bench.memory import working_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from glyd_cli.bench.codecs import Codec

PROBE_NBYTES = 1 << 20
"""First bytes of a file that decide whether a codec is slow on it."""

SAMPLE_S = 0.004
"""A sample of time is at least this long; shorter calls are repeated within it."""

CALL_ROOM = 10
"""A single call may take this many times the time a codec has for all its rounds: a ratio
over the whole file is worth that, and slow codecs need no median."""

ROUNDS_MAX = 1000

_M_MMAP_MAX = -4  # options of mallopt in glibc
_M_TRIM_THRESHOLD = -1


class MismatchError(Exception):
    """A codec did not give back what it was given."""


@dataclass(slots=True)
class Row:
    """Result of one codec on one file; times by round, in seconds for all of `nbytes`."""

    codec: Codec
    nbytes: int
    stored: int = 0
    write_s: list[float] = field(default_factory=list)
    read_s: list[float] = field(default_factory=list)
    write_memory: int | None = None
    read_memory: int | None = None

    @property
    def ratio(self) -> float:
        """Content size by stored size."""
        return self.nbytes / self.stored

    @property
    def write_speed(self) -> float:
        """Bytes of content compressed in a second."""
        return self.nbytes / statistics.median(self.write_s)

    @property
    def read_speed(self) -> float:
        """Bytes of content restored in a second."""
        return self.nbytes / statistics.median(self.read_s)

    def write_times(self, peer: Row) -> float:
        """How many times as fast as the peer this writes."""
        return self._times(self.write_s, peer, peer.write_s)

    def read_times(self, peer: Row) -> float:
        """How many times as fast as the peer this reads."""
        return self._times(self.read_s, peer, peer.read_s)

    def _times(self, own: list[float], peer: Row, others: list[float]) -> float:
        scale = self.nbytes / peer.nbytes
        return scale * statistics.median(b / a for a, b in zip(own, others, strict=False))


@dataclass(slots=True)
class FileResult:
    """All rows of one file."""

    name: str
    nbytes: int
    rows: list[Row]

    def row(self, name: str) -> Row | None:
        """Return the row of a codec, if it was measured."""
        return next((row for row in self.rows if row.codec.name == name), None)


def measure(
    name: str,
    data: bytes,
    codecs: list[Codec],
    *,
    seconds: float,
    memory: bool = True,
    on_step: Callable[[str], None] = lambda _: None,
) -> FileResult:
    """Measure codecs on the content of a file.

    Parameters
    ----------
    name
        Of the file, for the result.
    data
        Its content, at least one byte.
    codecs
        What to measure.
    seconds
        Time for each codec and direction; every codec gets one round at least.
    memory
        Whether to measure memory as well, in a process of its own for each call.
    on_step
        Told what is being done.

    Raises
    ------
    MismatchError
        A codec did not restore the content.
    """
    keep_freed_memory()
    rows: list[Row] = []
    frames: list[bytes] = []
    buffers: dict[int, bytearray] = {}
    for codec in codecs:
        on_step(f"{codec.name}: first call")
        part = _fitting_part(codec, data, seconds)
        start = time.perf_counter()
        frame = codec.compress(part)
        write_s = time.perf_counter() - start
        out = buffers.setdefault(len(part), bytearray(len(part)))
        if codec.decompress(frame, out) != part:
            raise MismatchError(f"{codec.name} does not restore {name}")
        row = Row(codec, len(part), len(frame))
        if write_s > seconds:  # slow: the first call is the measurement
            row.write_s.append(write_s)
            row.read_s.append(_time(lambda: codec.decompress(frame, out))[0])  # noqa: B023 - called at once
        rows.append(row)
        frames.append(frame)
    parts = {row.nbytes: data[: row.nbytes] for row in rows}
    gc.collect()
    gc.disable()
    try:
        _run_rounds(rows, frames, parts, buffers, seconds, on_step)
    finally:
        gc.enable()
    if memory:
        for row, frame in zip(rows, frames, strict=True):
            on_step(f"{row.codec.name}: memory")
            row.write_memory, row.read_memory = working_memory(row.codec, parts[row.nbytes], frame)
    return FileResult(name, len(data), rows)


def _run_rounds(
    rows: list[Row],
    frames: list[bytes],
    parts: dict[int, bytes],
    buffers: dict[int, bytearray],
    seconds: float,
    on_step: Callable[[str], None],
) -> None:
    """Time all codecs in turn until the typical one has had its time.

    All that are as fast as that get the same rounds: they meet the same moments of the
    machine. Slower ones leave when their time is up.
    """
    spent = [2 * seconds if row.write_s else 0.0 for row in rows]
    for number in range(ROUNDS_MAX):
        due = [i for i in range(len(rows)) if spent[i] < 2 * seconds]
        if number and (not due or statistics.median(spent) >= 2 * seconds):
            return
        on_step(f"round {number + 1}")
        for i in due:
            row, frame, part, out = rows[i], frames[i], parts[rows[i].nbytes], buffers[rows[i].nbytes]
            compress, decompress = row.codec.compress, row.codec.decompress
            write_s, cost = _time(lambda: compress(part))  # noqa: B023 - called at once
            read_s, more = _time(lambda: decompress(frame, out))  # noqa: B023 - called at once
            row.write_s.append(write_s)
            row.read_s.append(read_s)
            spent[i] += cost + more


def keep_freed_memory() -> None:
    """Let freed buffers stay with the process, where the C library can do that (glibc)."""
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, ctypes.c_int(2**31 - 1))


def _fitting_part(codec: Codec, data: bytes, seconds: float) -> bytes:
    """Return data, or the first 2^n MiB of it if one call would take more than `CALL_ROOM` times `seconds`."""
    if len(data) <= PROBE_NBYTES:
        return data
    probe = data[:PROBE_NBYTES]
    start = time.perf_counter()
    codec.compress(probe)
    speed = PROBE_NBYTES / (time.perf_counter() - start)
    part = PROBE_NBYTES
    while part * 2 <= speed * seconds * CALL_ROOM and part < len(data):
        part *= 2
    # a whole file that takes twice the time is better than half of it
    return data if part * 2 >= len(data) else data[:part]


def _time(call: Callable[[], object]) -> tuple[float, float]:
    """Return the time of one call, and the time that measuring it took."""
    start = time.perf_counter()
    call()
    once = time.perf_counter() - start
    if once >= SAMPLE_S:
        return once, once
    n = int(SAMPLE_S / max(once, 1e-7)) + 1
    again = time.perf_counter()
    for _ in range(n):
        call()
    end = time.perf_counter()
    return (end - again) / n, end - start

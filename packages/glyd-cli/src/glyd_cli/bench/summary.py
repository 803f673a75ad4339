# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What measurements say: geometric means over files, levels against their peers, a level to pick."""

from __future__ import annotations

import math
import os
import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING

from glyd_cli.bench.codecs import versions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from glyd_cli.bench.measure import FileResult, Row

SLOTS = (
    ("glyd turbo", "lz4"),
    ("glyd fast", "lz4"),
    ("glyd default", "lz4"),
    ("glyd max", "zstd -3"),
    ("glyd high", "zstd -9"),
    ("glyd ultra", "zstd -19"),
)
"""Each level and the compressor it is to replace."""

PICK_READS = 10
PICK_LINK = 500e6
"""The use a level is picked for: written once and read this many times, to and from
something that moves this many bytes a second (a plain SSD, a 4 Gbit/s network)."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A level against its peer over files; figures are geometric means unless they say worst.

    Attributes
    ----------
    nbytes, worst_nbytes
        Compressed size by that of the peer, and the largest one with its file.
    write, read, worst_read
        Speed by that of the peer, and the slowest with its file.
    """

    level: str
    peer: str
    nbytes: float
    worst_nbytes: tuple[float, str]
    write: float
    read: float
    worst_read: tuple[float, str]


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of positive values, NaN when there are none."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def slots(results: list[FileResult], threads: int) -> list[Slot]:
    """Compare each level with its peer, with one thread and with all of them."""
    pairs = list(SLOTS)
    if threads > 1:
        pairs += [(f"{level} T{threads}", peer) for level, peer in SLOTS]
    found = []
    for level, peer in pairs:
        both = [(r.name, a, b) for r in results if (a := r.row(level)) and (b := r.row(peer)) and a.nbytes == b.nbytes]
        if not both:
            continue
        sizes = [(a.stored / b.stored, name) for name, a, b in both]
        reads = [(a.read_times(b), name) for name, a, b in both]
        found.append(
            Slot(
                level,
                peer,
                geometric_mean(value for value, _ in sizes),
                max(sizes),
                geometric_mean(a.write_times(b) for _, a, b in both),
                geometric_mean(value for value, _ in reads),
                min(reads),
            )
        )
    return found


def partial_names(results: list[FileResult]) -> list[str]:
    """Return the codecs that were too slow for some whole file: their ratios compare with nothing."""
    partial = {row.codec.name for result in results for row in result.rows if row.nbytes != result.nbytes}
    return [row.codec.name for row in results[0].rows if row.codec.name in partial]


def mean_rows(results: list[FileResult]) -> list[tuple[str, float, float, float]]:
    """Return name, ratio, write and read speed of each codec, as geometric means over the files.

    The ratio is NaN for codecs that did not get all bytes of all files.
    """
    names = [row.codec.name for row in results[0].rows]
    partial = partial_names(results)
    out = []
    for name in names:
        rows = [row for result in results if (row := result.row(name))]

        def mean(value: Callable[[Row], float], rows: list[Row] = rows) -> float:
            return geometric_mean(value(row) for row in rows)

        out.append(
            (
                name,
                math.nan if name in partial else mean(lambda r: r.ratio),
                mean(lambda r: r.write_speed),
                mean(lambda r: r.read_speed),
            )
        )
    return out


def pick(results: list[FileResult]) -> tuple[str, str] | None:
    """Return the level to use on such data and the reason, or None without measurements."""
    rows = [row for row in mean_rows(results) if row[0].startswith("glyd ") and " T" not in row[0]]
    if not rows:
        return None

    def seconds(row: tuple[str, float, float, float]) -> float:
        _, ratio, write, read = row
        return 1e9 / write + PICK_READS * 1e9 / read + (1 + PICK_READS) * 1e9 / ratio / PICK_LINK

    rows.sort(key=seconds)
    best, second = rows[0], rows[1]
    reason = (
        f"{best[1]:.2f} times smaller, written at {best[2] / 1e6:,.0f} and read at {best[3] / 1e6:,.0f} MB/s: "
        f"writing 1 GB once to a {PICK_LINK / 1e6:g} MB/s disk and reading it {PICK_READS} times from there takes "
        f"{seconds(best):.1f} s, with {second[0].removeprefix('glyd ')} {seconds(second):.1f} s"
    )
    smallest = max(rows, key=lambda row: row[1])
    if smallest is not best:
        reason += f"; {smallest[0].removeprefix('glyd ')} is the smallest ({smallest[1]:.2f} times)"
    return best[0].removeprefix("glyd "), reason


def machine() -> dict[str, str]:
    """Describe what the figures were measured on."""
    cpu = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            cpu = next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        pass  # not Linux, or not a CPU with a name
    return {
        "cpu": cpu,
        "cpus": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **versions(),
    }


def as_json(results: list[FileResult], missing: dict[str, str], threads: int) -> dict[str, Any]:
    """Return everything that was measured, for ``--json``."""
    picked = pick(results)
    return {
        "machine": machine(),
        "not_installed": missing,
        "files": [
            {"name": result.name, "nbytes": result.nbytes, "rows": [_row(result, row) for row in result.rows]}
            for result in results
        ],
        "slots": [
            {
                "level": slot.level,
                "peer": slot.peer,
                "bytes_ratio": slot.nbytes,
                "worst_bytes_ratio": slot.worst_nbytes[0],
                "write_times": slot.write,
                "read_times": slot.read,
                "worst_read_times": slot.worst_read[0],
            }
            for slot in slots(results, threads)
        ],
        "pick": {"level": picked[0], "reason": picked[1]} if picked else None,
    }


def _row(result: FileResult, row: Row) -> dict[str, Any]:
    out: dict[str, Any] = {
        "codec": row.codec.name,
        "threads": row.codec.threads,
        "content_nbytes": row.nbytes,
        "stored_nbytes": row.stored,
        "ratio": row.ratio,
        "write_mb_s": row.write_speed / 1e6,
        "read_mb_s": row.read_speed / 1e6,
        "write_memory_nbytes": row.write_memory,
        "read_memory_nbytes": row.read_memory,
        "rounds": len(row.write_s),
    }
    for peer in ("lz4", "zstd -3"):
        other = result.row(peer)
        key = peer.replace(" -", "")
        out[f"write_times_{key}"] = row.write_times(other) if other else None
        out[f"read_times_{key}"] = row.read_times(other) if other else None
    return out

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Measurements as tables: for a terminal, and as Markdown."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING

from glyd_cli.bench.summary import machine, mean_rows, pick, slots
from glyd_cli.errors import shown
from glyd_cli.report import size_text

if TYPE_CHECKING:
    from glyd_cli.bench.measure import FileResult, Row

_MEANING = (
    "Geometric means over all files; bytes: compressed size by that of the peer; write, read: how many times as "
    "fast. Worst: the one file on which it looks worst."
)

PLAIN_WIDTH = 140
"""Characters of a line where there is no terminal to ask."""


def file_table(result: FileResult, *, width: int | None, color: bool) -> str:
    """Return the table of one file.

    Parameters
    ----------
    result
        Its measurements.
    width
        Characters of a line; None: `PLAIN_WIDTH`.
    color
        Whether the terminal takes colors.
    """
    from rich.console import Console  # noqa: PLC0415 - takes long to load
    from rich.table import Table  # noqa: PLC0415

    table = Table(title=f"{shown(result.name)}, {size_text(result.nbytes)}", title_justify="left")
    table.add_column("")
    for name in ("ratio", "write\nMB/s", "read\nMB/s", "write ×\nzstd -3", "read ×\nzstd -3"):
        table.add_column(name, justify="right")
    for name in ("write ×\nlz4", "read ×\nlz4", "memory\nwrite", "memory\nread", "first"):
        table.add_column(name, justify="right")
    family = result.rows[0].codec.family
    for row in result.rows:
        if row.codec.family != family:
            table.add_section()
            family = row.codec.family
        table.add_row(*_cells(result, row), style="bold" if row.codec.family == "glyd" else None)
    out = io.StringIO()
    Console(file=out, width=width or PLAIN_WIDTH, force_terminal=color, color_system="auto" if color else None).print(
        table
    )
    return out.getvalue()


def _cells(result: FileResult, row: Row) -> list[str]:
    times = []
    for name in ("zstd -3", "lz4"):
        peer = result.row(name)
        times += [f"{row.write_times(peer):.2f}", f"{row.read_times(peer):.2f}"] if peer else ["-", "-"]
    memory = [size_text(m) if m is not None else "-" for m in (row.write_memory, row.read_memory)]
    part = "" if row.nbytes == result.nbytes else size_text(row.nbytes)
    speeds = [_speed(row.write_speed), _speed(row.read_speed)]
    return [row.codec.name, f"{row.ratio:.3f}", *speeds, *times, *memory, part]


def _speed(value: float) -> str:
    return f"{value / 1e6:,.0f}" if value >= 10e6 else f"{value / 1e6:.1f}"


def closing_text(results: list[FileResult], missing: dict[str, str]) -> str:
    """Return what follows the tables: the level to pick, what is missing, how it was measured."""
    lines = []
    picked = pick(results)
    if picked:
        lines.append(f"Pick {picked[0]}: {picked[1]}.")
    lines += [f"{name} is not installed here: {how}" for name, how in missing.items()]
    lines.append(
        "Medians of rounds in one process; × are medians of ratios within rounds. memory: beside input and output. "
        "first: bytes used, where not all (slow)."
    )
    return "\n".join(lines) + "\n"


def markdown(results: list[FileResult], missing: dict[str, str], threads: int) -> str:
    """Return everything as Markdown, for a corpus of files."""
    facts = machine()
    libraries = ", ".join(f"{name} {facts[name]}" for name in ("glyd", "zstd", "lz4", "zlib") if name in facts)
    lines = [
        f"Measured on {facts['cpu']}, {facts['cpus']} CPUs, {facts['system']}, Python {facts['python']}; {libraries}.",
        *(f"Not installed: {name}." for name in missing),
        "",
        "### Levels against their peers",
        "",
        _MEANING,
        "",
        "| level | peer | bytes | worst bytes | write | read | worst read |",
        "| --- | --- | ---: | --- | ---: | ---: | --- |",
    ]
    for slot in slots(results, threads):
        (size, size_name), (read, read_name) = slot.worst_nbytes, slot.worst_read
        lines.append(
            f"| {slot.level} | {slot.peer} | {slot.nbytes:.3f} | {size:.3f} {_cell(size_name)} | {slot.write:.2f} "
            f"| {slot.read:.2f} | {read:.2f} {_cell(read_name)} |"
        )
    lines += [
        "",
        "### All of them",
        "",
        f"Geometric means over {len(results)} files; no ratio where a codec was too slow for all bytes of a file.",
        "",
        "| | ratio | write MB/s | read MB/s |",
        "| --- | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {n} | {'-' if math.isnan(ratio) else f'{ratio:.3f}'} | {_speed(w)} | {_speed(r)} |"
        for n, ratio, w, r in mean_rows(results)
    ]
    columns = [
        row.codec.name
        for row in results[0].rows
        if row.codec.threads == 1 and (row.codec.family == "glyd" or row.codec.name in {"lz4", "zstd -3"})
    ]
    lines += ["", "### By file", "", "Ratio, write and read in MB/s, one thread.", ""]
    lines += [f"| file | {' | '.join(columns)} |", f"| --- |{' --- |' * len(columns)}"]
    for result in results:
        cells = [
            f"{row.ratio:.3f}, {_speed(row.write_speed)} / {_speed(row.read_speed)}" if row else "-"
            for row in (result.row(name) for name in columns)
        ]
        lines.append(f"| {_cell(result.name)} ({size_text(result.nbytes)}) | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return shown(text).replace("|", "\\|")

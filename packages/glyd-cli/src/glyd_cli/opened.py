# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Opened containers: ``glyd --content``, and what -v says about gzip, zip and PNG files."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

import glyd
from glyd_cli.errors import FileError
from glyd_cli.pipeline import seekable_file
from glyd_cli.report import size_text

if TYPE_CHECKING:
    from glyd_cli.arguments import Options
    from glyd_cli.report import Job
    from glyd_cli.sources import Source
    from glyd_cli.targets import Target

_REASONS = {
    "invalid": "no stream, or one of an unusual form",
    "small": "too short to gain",
    "unlike": "made too unlike zlib for opening to pay",
}
_LINES_MAX = 20


def read_content(source: Source, target: Target, options: Options, job: Job) -> tuple[int, int]:
    """Write what the streams in a compressed container hold, decompressed, into a target.

    Returns
    -------
    tuple of int
        Bytes written, bytes of the frames.

    Raises
    ------
    FileError
        Nothing in the input was opened when it was compressed, or not all of a stream.
    FormatError, LimitError
        As for reading.
    """
    with seekable_file(source) as file:
        start = file.tell()
        opened = list(glyd.iter_opened(file))
        if not opened:
            raise FileError(source.name, "no gzip, zip or PNG content in it was opened (--open when compressing)")
        cut = next((info for info in opened if info.is_cut), None)
        if cut is not None:
            raise FileError(
                source.name,
                f"a stream in it was opened in part only, up to {cut.inside_nbytes} bytes of its content: "
                "restore the file with -d and decompress that",
            )
        file.seek(start)
        content = 0
        for part in glyd.iter_inside(file, limits=glyd.Limits(max_memory=options.memory)):
            target.write(memoryview(part))
            content += len(part)
        stored = file.seek(0, os.SEEK_END) - start
    job.advance(stored)
    return content, stored


def describe_streams(content_path: str, frame_path: str) -> list[str]:
    """Say which streams of a file were opened and which stayed closed, a line each.

    Parameters
    ----------
    content_path, frame_path
        What was compressed, and what it became.
    """
    counts: Counter[tuple[str, str]] = Counter()
    sizes: Counter[tuple[str, str]] = Counter()
    closed: list[str] = []
    with open(content_path, "rb") as file:
        for segment in glyd.iter_segments(frame_path):
            file.seek(segment.content_offset)
            for stream in glyd.survey_streams(file.read(segment.content_nbytes)):
                outcome = stream.outcome if segment.kind == "opened" or stream.outcome != "opened" else "closed"
                key = (stream.kind, outcome)
                counts[key] += 1
                sizes[key] += stream.stored_nbytes
                if outcome not in {"opened", "closed"}:
                    place = segment.content_offset + stream.offset
                    closed.append(f"    {stream.kind} stream at byte {place} stays closed: {_REASONS[outcome]}")
    lines = [
        f"  {kind}: {n} streams {'opened' if outcome == 'opened' else 'stay closed'}, {size_text(sizes[kind, outcome])}"
        for (kind, outcome), n in sorted(counts.items())
    ]
    lines += closed[:_LINES_MAX]
    if len(closed) > _LINES_MAX:
        lines.append(f"    and {len(closed) - _LINES_MAX} more")
    return lines

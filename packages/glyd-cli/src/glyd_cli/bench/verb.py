# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``glyd -b FILE…``, and what ``python -m glyd_cli.bench`` shares with it."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

from glyd_cli.bases import open_bases
from glyd_cli.bench.codecs import find_codecs
from glyd_cli.bench.measure import MismatchError, measure
from glyd_cli.bench.summary import as_json
from glyd_cli.bench.tables import closing_text, file_table
from glyd_cli.errors import Exit, FileError, UsageError
from glyd_cli.report import print_text
from glyd_cli.sources import STDIN, open_source

if TYPE_CHECKING:
    from collections.abc import Callable

    import glyd
    from glyd_cli.arguments import Options
    from glyd_cli.bench.codecs import Codec
    from glyd_cli.bench.measure import FileResult
    from glyd_cli.report import Reporter


def bench_files(options: Options, reporter: Reporter) -> Exit:
    """Measure every level on every input and print the tables.

    Returns
    -------
    Exit
        OK, or CORRUPT when a compressor did not give back what it was given.

    Raises
    ------
    UsageError
        The plot asked for cannot be drawn.
    FileError
        An input cannot be read, or has nothing in it.
    """
    if options.plot:
        from glyd_cli.bench.plot import check_plot  # noqa: PLC0415 - only for plots

        check_plot(options.plot)
    if not options.files and os.isatty(0):
        raise UsageError("-b needs a FILE to measure on")
    with open_bases(options.bases) as base:
        return _bench(options, reporter, base)


def _bench(options: Options, reporter: Reporter, base: glyd.Base | None) -> Exit:
    threads = options.n_threads
    codecs, missing = find_codecs(threads, base)
    results: list[FileResult] = []
    is_terminal = os.isatty(1)
    width = shutil.get_terminal_size().columns if is_terminal else None
    for path in options.files or [STDIN]:
        try:
            result = measure_file(
                path,
                codecs,
                seconds=options.seconds,
                limit=options.limit,
                memory=base is None,  # measured in processes of its own, which have no base
                on_step=_step(path, reporter),
            )
        except MismatchError as error:
            reporter.error(path, str(error))
            return Exit.CORRUPT
        results.append(result)
        if not options.json:
            print_text(file_table(result, width=width, color=is_terminal) + "\n")
    if options.json:
        print_text(json.dumps(as_json(results, missing, threads), indent=2) + "\n")
    else:
        print_text(closing_text(results, missing))
    if options.plot:
        from glyd_cli.bench.plot import draw  # noqa: PLC0415 - only for plots

        try:
            draw(results, options.plot)
        except OSError as error:
            raise FileError(options.plot, f"cannot write the plot: {error.strerror}") from error
        reporter.say(f"plot written to {options.plot}")
    return Exit.OK


def measure_file(
    path: str,
    codecs: list[Codec],
    *,
    seconds: float,
    limit: int | None,
    memory: bool = True,
    on_step: Callable[[str], None] = lambda _: None,
) -> FileResult:
    """Measure codecs on a file, or on its first bytes.

    Raises
    ------
    FileError
        It cannot be read, or is empty.
    MismatchError
        A codec does not restore it.
    """
    with open_source(path) as source:
        parts = []
        left = limit
        while left is None or left > 0:
            chunk = bytearray(min(left or 1 << 24, 1 << 24))
            n = source.readinto(memoryview(chunk))
            parts.append(memoryview(chunk)[:n])
            if n < len(chunk):
                break
            left = None if left is None else left - n
        data = b"".join(parts)
        if not data:
            raise FileError(source.name, "is empty: nothing to measure on")
        return measure(source.name, data, codecs, seconds=seconds, memory=memory, on_step=on_step)


def _step(path: str, reporter: Reporter) -> Callable[[str], None]:
    return lambda step: reporter.detail(f"{path}: {step}")

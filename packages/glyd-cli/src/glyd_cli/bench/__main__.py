# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Measure over a corpus: ``python -m glyd_cli.bench DIR|FILE… [--markdown | --json] [--plot FILE]``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from glyd_cli.arguments import size
from glyd_cli.bench.codecs import find_codecs
from glyd_cli.bench.summary import as_json
from glyd_cli.bench.tables import closing_text, file_table, markdown
from glyd_cli.bench.verb import measure_file


def main() -> int:
    """Measure all files and print one report; what is being done goes to standard error."""
    parser = argparse.ArgumentParser(prog="python -m glyd_cli.bench", description=main.__doc__)
    parser.add_argument("paths", metavar="DIR|FILE", nargs="+", help="files, or folders with files (not deeper)")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--plot", metavar="FILE", help="draw ratio against speed as .png or .svg")
    parser.add_argument("--seconds", type=float, default=1.0, help="time a codec, direction and file (1)")
    parser.add_argument("--limit", type=size, help="first bytes of each file to use")
    parser.add_argument("--threads", type=int, default=_n_cpus(), help="of the parallel rows; 1: none (one a CPU)")
    parser.add_argument("--memory", action="store_true", help="measure memory as well")
    parser.add_argument("--records", action="store_true", help="measure columns (-r) as well")
    parser.add_argument("--kinds", metavar="FILE", help="draw bytes and reads by kind of file as .png or .svg")
    parser.add_argument("--levels", metavar="FILE", help="draw ratio against speed by kind of file as .png or .svg")
    parser.add_argument("--only", action="append", metavar="NAME", help="only codecs whose name starts so; repeatable")
    options = parser.parse_args()
    codecs, missing = find_codecs(options.threads, records=options.records)
    if options.only:
        codecs = [codec for codec in codecs if codec.name.startswith(tuple(options.only))]
        if not codecs:
            parser.error("no codec of that name")
    for plot in filter(None, (options.plot, options.kinds, options.levels)):
        from glyd_cli.bench.plot import check_plot  # noqa: PLC0415 - only for plots

        check_plot(plot)
    results = []
    for path in _files(options.paths):
        print(f"measuring {path}", file=sys.stderr, flush=True)
        result = measure_file(str(path), codecs, seconds=options.seconds, limit=options.limit, memory=options.memory)
        result.name = path.name
        results.append(result)
    if options.json:
        print(json.dumps(as_json(results, missing, options.threads), indent=2))
    elif options.markdown:
        print(markdown(results, missing, options.threads), end="")
    else:
        for result in results:
            print(file_table(result, width=None, color=False))
        print(closing_text(results, missing), end="")
    if options.plot:
        from glyd_cli.bench.plot import draw  # noqa: PLC0415 - only for plots

        draw(results, options.plot)
    if options.kinds:
        from glyd_cli.bench.plot_kinds import draw_kinds  # noqa: PLC0415 - only for plots

        draw_kinds(results, options.kinds)
    if options.levels:
        from glyd_cli.bench.plot_levels import draw_levels  # noqa: PLC0415 - only for plots

        draw_levels(results, options.levels)
    return 0


def _files(paths: list[str]) -> list[Path]:
    out: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            out += sorted(each for each in path.iterdir() if each.is_file() and each.stat().st_size)
        else:
            out.append(path)
    return out


def _n_cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if __name__ == "__main__":
    sys.exit(main())

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Try other values of the constants that decide what a level of coded blocks finds.

    python tools/tune_levels.py --level 6 DEPTH=32,128 EVERY=32u --files FILE…

Each NAME=VALUE is put into a copy of ``native/`` in the place of the ``#define`` of that name, one at a time,
``native/bench/bench_coded.c`` is built with it (libzstd is needed) and run over the files: bytes beside those
of the values as they are, file by file, their geometric mean, and the same for write and read speed. Tune on
files that no benchmark of the project uses.
"""

from __future__ import annotations

import argparse
import math
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

NATIVE: Final = Path(__file__).resolve().parent.parent / "native"
UNITS: Final = ("common", "bitstream", "huffman", "match", "block")
ROW: Final = re.compile(r"^(\S+) +(\d+) +([\d.]+) +([\d.]+) +([\d.]+)")


def build(folder: Path, name: str, value: str) -> Path:
    """Return the benchmark with one constant changed; an empty name changes none."""
    copy = folder / "native"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(NATIVE, copy, ignore=shutil.ignore_patterns("tests", "fuzz"))
    sources = [path for unit in UNITS for path in sorted((copy / "src" / unit).glob("*.c"))]
    n_changed = 0
    for path in (path for unit in UNITS for path in (copy / "src" / unit).iterdir() if name):
        text, n = re.subn(
            rf"^(#define {re.escape(name)}) \S+", rf"\1 {value}", path.read_text("utf-8"), flags=re.MULTILINE
        )
        n_changed += n
        if n:
            path.write_text(text, "utf-8")
    if name and n_changed != 1:
        raise SystemExit(f"#define {name}: {n_changed} found, 1 expected")
    program = folder / "bench"
    flags = ["-std=c11", "-O3", "-D_DEFAULT_SOURCE", f"-I{copy / 'include'}", f"-I{copy / 'src'}"]
    files = [str(path) for path in [*sources, copy / "bench" / "bench_coded.c"]]
    subprocess.run(["cc", *flags, *files, "-o", str(program), "-lzstd", "-lm", "-lpthread"], check=True)
    return program


def measure(program: Path, level: int, most: int, files: list[str]) -> dict[str, tuple[float, float, float]]:
    """Return bytes, write and read beside zstd -3, by file."""
    command = [str(program), "-L", str(level), "-w", "1", "-r", "3", "-n", str(most), "-s", "32768", *files]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    rows = [match for line in lines if (match := ROW.match(line)) and not line.startswith("zstd")]
    return {m[1]: (float(m[3]), float(m[4]), float(m[5])) for m in rows}


def variants(constants: list[str]) -> Iterator[tuple[str, str]]:
    """Return name and value of each variant."""
    for constant in constants:
        name, _, values = constant.partition("=")
        yield from ((name, value) for value in values.split(","))


def main() -> int:
    """Print a row for each value."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--level", type=int, default=6, help="level id (6: ultra)")
    parser.add_argument("--most", type=int, default=2_000_000, help="first bytes of each file")
    parser.add_argument("constants", metavar="NAME=VALUE,…", nargs="+")
    parser.add_argument("--files", nargs="+", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = measure(build(folder, "", ""), options.level, options.most, options.files)
        for constant, value in variants(options.constants):
            after = measure(build(folder, constant, value), options.level, options.most, options.files)
            ratios = [[a / b for a, b in zip(after[file], before[file], strict=True)] for file in before]
            means = [math.exp(sum(map(math.log, column)) / len(ratios)) for column in zip(*ratios, strict=True)]
            each = " ".join(f"{row[0]:.4f}" for row in ratios)
            sys.stdout.write(
                f"{constant}={value}: bytes {means[0]:.4f} ({each}), write {means[1]:.2f}, read {means[2]:.2f}\n"
            )
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Hold the house rules about source files that no other tool holds.

1. A file of ``native/src`` includes its own unit and units to its left in
   `UNITS`, never one to its right.
2. Encoders and decoders never reach each other, not even through other headers.
3. C file names are unique in the repository.
4. Files are at most 800 lines (C) or 400 lines (Python) long, or say why not:
   a line ``File length: <reason>`` among their first 30.
5. Every source file carries the SPDX header of the folder it lives in.

Run from the root of the repository; prints one line a violation.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

UNITS = (
    "common",
    "bitstream",
    "deflate",
    "huffman",
    "match",
    "weights",
    "kv",
    "fields",
    "record",
    "base",
    "filter",
    "block",
    "cold",
    "object",
    "segment",
    "frame",
    "api",
)
C_SUFFIXES = {".c", ".h", ".S", ".cu", ".cuh"}
MAX_LINES = {".py": 400, **dict.fromkeys(C_SUFFIXES, 800)}
SKIPPED_FOLDERS = {".git", ".nox", "build", "dist", "__pycache__"}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
LENGTH_REASON = re.compile(r"File length: \S+")

CORE_LICENCE = "BSD-3-Clause OR GPL-2.0-only"
LICENCES = (
    ("packages/glyd-cli/", "BUSL-1.1"),
    ("packages/glyd-gpu/", "BUSL-1.1"),
    ("packages/glyd-store/", "BUSL-1.1"),
    ("examples/", "Apache-2.0"),
    ("", CORE_LICENCE),
)


def source_files(root: Path) -> list[Path]:
    """Return all C and Python files, and shell scripts, relative to the root."""
    wanted = {*MAX_LINES, ".sh"}
    found = []
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        hidden = any(part in SKIPPED_FOLDERS or part.startswith(".") for part in relative.parts[:-1])
        if path.is_file() and path.suffix in wanted and not hidden:
            found.append(relative)
    return found


def role(path: Path) -> str:
    """Say whether a file belongs to an encoder, a decoder or neither, by its name."""
    for name in ("encode", "decode"):
        if name in path.stem.split("_"):
            return name
    return ""


class IncludeGraph:
    """Which file of ``native/src`` includes which.

    Parameters
    ----------
    root
        Folder that holds ``native``.
    """

    def __init__(self, root: Path) -> None:
        self.source = root / "native" / "src"
        self.public = root / "native" / "include"
        self.files = sorted(p for p in self.source.rglob("*") if p.suffix in C_SUFFIXES) if self.source.is_dir() else []
        self.problems: list[str] = []
        self.edges = {path: self._includes(path) for path in self.files}

    def _includes(self, path: Path) -> list[Path]:
        found = []
        for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
            candidates = [self.source / name, path.parent / name, self.public / name]
            target = next((c.resolve() for c in candidates if c.is_file()), None)
            if target is None:
                self.problems.append(f"{self._show(path)}: includes {name!r}, which is in no include folder")
            elif target.is_relative_to(self.source.resolve()):
                found.append(self.source / target.relative_to(self.source.resolve()))
        return found

    def _show(self, path: Path) -> str:
        return f"native/src/{path.relative_to(self.source)}"

    def _unit(self, path: Path) -> str:
        return path.relative_to(self.source).parts[0]

    def check_directions(self) -> list[str]:
        """Return the includes that go to the right, and units that the list lacks."""
        problems = []
        for path, targets in self.edges.items():
            unit = self._unit(path)
            if unit not in UNITS:
                problems.append(f"{self._show(path)}: unit {unit!r} is not in the list of units")
                continue
            for target in targets:
                other = self._unit(target)
                if other in UNITS and UNITS.index(other) > UNITS.index(unit):
                    problems.append(f"{self._show(path)}: {unit} includes {self._show(target)}, to its right")
        return problems

    def check_roles(self) -> list[str]:
        """Return the encoders that reach decoders, or the other way round, with the path."""
        problems = []
        for start in self.files:
            mine = role(start)
            if not mine or self._unit(start) == "api":
                continue
            trail = {start: [start]}
            queue = [start]
            while queue:
                path = queue.pop()
                for target in self.edges.get(path, []):
                    if target in trail:
                        continue
                    trail[target] = [*trail[path], target]
                    queue.append(target)
                    if role(target) not in {"", mine}:
                        problems.append("an encoder and a decoder meet: " + " → ".join(map(self._show, trail[target])))
        return problems


def check_names(files: list[Path]) -> list[str]:
    """Return C files that share their name."""
    first: dict[str, Path] = {}
    problems = []
    for path in files:
        if path.suffix not in C_SUFFIXES:
            continue
        other = first.setdefault(path.name, path)
        if other is not path:
            problems.append(f"{path}: same file name as {other}")
    return problems


def check_text(root: Path, path: Path) -> list[str]:
    """Return what is wrong with the length and the header of one file."""
    problems = []
    text = (root / path).read_text(encoding="utf-8")
    lines = text.splitlines()
    limit = MAX_LINES.get(path.suffix)
    head = "\n".join(lines[:30])
    if limit is not None and len(lines) > limit and not LENGTH_REASON.search(head):
        problems.append(f"{path}: {len(lines)} lines, at most {limit} (or say why: 'File length: …')")
    licence = next(name for folder, name in LICENCES if path.as_posix().startswith(folder))
    # in two parts, so that these lines are not taken for a header of this file
    for tag, value in (
        ("SPDX-FileCopyright" + "Text:", "2026 The glyd authors"),
        ("SPDX-License-" + "Identifier:", licence),
    ):
        if not any(tag in line and line.split(tag)[1].strip(" */") == value for line in lines[:10]):
            problems.append(f"{path}: lacks '{tag} {value}' among its first 10 lines")
    return problems


def main() -> int:
    """Check the tree that the current folder is the root of."""
    root = Path.cwd()
    files = source_files(root)
    graph = IncludeGraph(root)
    problems = [*graph.problems, *graph.check_directions(), *graph.check_roles(), *check_names(files)]
    for path in files:
        problems += check_text(root, path)
    for problem in problems:
        print(problem)
    print(
        f"check_native_includes: {len(files)} source files, {len(graph.files)} in native/src, {len(problems)} problems"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Hold the names of a version together: ``check_version.py PACKAGE [TAG]``.

``_version.py``, the newest heading of the changelog, the tag
(``glyd-<package>-vX.Y.Z``) when one is given, and for the codec the numbers in
``glyd.h`` must agree. A tag also needs the changelog to give a date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def find(pattern: str, path: Path) -> re.Match[str]:
    """Return the first match in a file; exit with its name when there is none."""
    match = re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        sys.exit(f"{path.relative_to(ROOT)}: nothing matches {pattern}")
    return match


def header_version() -> str:
    """Return the version that the C header states."""
    header = ROOT / "native" / "include" / "glyd" / "glyd.h"
    parts = ("MAJOR", "MINOR", "PATCH")
    return ".".join(find(rf"^#define GLYD_VERSION_{part} (\d+)$", header)[1] for part in parts)


def problems_of(name: str, tag: str | None) -> list[str]:
    """Return what disagrees."""
    package = ROOT / "packages" / f"glyd-{name}"
    version = find(r'^__version__(?:: \w+)? = "([^"]+)"$', package / "src" / f"glyd_{name}" / "_version.py")[1]
    release, status = find(r"^## (\S+) \((.+)\)$", package / "CHANGELOG.md").groups()
    problems = []
    if release != version:
        problems.append(f"newest changelog entry is {release}, the package says {version}")
    if name == "codec" and header_version() != version:
        problems.append(f"glyd.h says {header_version()}, the package says {version}")
    if tag is not None and tag != f"glyd-{name}-v{version}":
        problems.append(f"tag is {tag}, expected glyd-{name}-v{version}")
    if tag is not None and not re.fullmatch(r"\d{4}-\d\d-\d\d", status):
        problems.append(f"changelog entry {release} is {status!r}, a release needs its date there")
    return problems


def main() -> int:
    """Check the package of the command line."""
    if len(sys.argv) not in {2, 3}:
        print(__doc__, file=sys.stderr)
        return 2
    problems = problems_of(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else None)
    for problem in problems:
        print(f"glyd-{sys.argv[1]}: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

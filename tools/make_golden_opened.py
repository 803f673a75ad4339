# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Write golden files of opened content, in native/tests/golden_opened, with the glyd that is installed.

    python tools/make_golden_opened.py

Contents are those of the golden frames with opened segments. manifest.txt has a line for each file: name, the
status that reading it must give (status.h; 0 is success), bytes of the content and their XXH3-64, as
reference_opened_content.py reads it. Files once released stay: a change here may add to them, never alter what is there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import glyd
from make_golden_packs import STATUS
from reference_bytes import FormatError
from reference_opened_content import decode_content
from reference_xxh3 import xxh3_64

TESTS: Final = Path(__file__).resolve().parent.parent / "native" / "tests"
GOLDEN: Final = TESTS / "golden_opened"


def files() -> Iterator[tuple[str, bytes]]:
    """Return opened content, and broken ones."""
    opened = b""
    for path in sorted((TESTS / "golden" / "opened").glob("*.glyd")):
        found = glyd.open_streams(glyd.decompress(path.read_bytes()))
        if found is not None:
            yield path.stem, found
            opened = found
    yield "broken-magic", b"glydopnD" + opened[8:]
    yield "broken-long", opened + b"\0"
    for n in (0, 4, 8, 9, 20, len(opened) // 2, len(opened) - 1):
        yield f"cut-{n}", opened[:n]
    yield "broken-no-content", opened[:8] + b"\0" + opened[10:]
    yield "broken-much-content", opened[:8] + b"\xff\xff\xff\xff\x0f" + opened[10:]
    yield "broken-description", opened[:-40] + bytes(byte ^ 0x55 for byte in opened[-40:])


def line(name: str, data: bytes) -> str:
    """Return the line of the manifest."""
    try:
        content = decode_content(data)
    except FormatError as error:
        return f"{name} {STATUS[error.category]} 0 0\n"
    return f"{name} 0 {len(content)} {xxh3_64(content):016x}\n"


def main() -> int:
    """Write what is missing, and the manifest of all."""
    GOLDEN.mkdir(exist_ok=True)
    for name, data in files():
        path = GOLDEN / f"{name}.opened"
        if not path.exists():
            path.write_bytes(data)
    lines = [line(path.name, path.read_bytes()) for path in sorted(GOLDEN.glob("*.opened"))]
    (GOLDEN / "manifest.txt").write_text("".join(lines), encoding="utf-8")
    sys.stdout.write(f"{len(lines)} files\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Write the golden pages of keys and values, in native/tests/golden_kv, with the glyd that is installed.

    python tools/make_golden_kv.py

manifest.txt has a line for each page: name, the status that reading it must give (status.h; 0 is success),
channels, and XXH3-64 of the values as reference_kv.py reads them. Files once released stay: a change here may
add to them, never alter what is there.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import glyd
from make_golden_packs import STATUS, bf16
from reference_bytes import FormatError
from reference_kv import TOKENS, bases_place, decode, slab_nbytes
from reference_xxh3 import xxh3_64

GOLDEN: Final = Path(__file__).resolve().parent.parent / "native" / "tests" / "golden_kv"


def values(channels: int, kind: str) -> bytes:
    """Return the values of a page: channels of their own size, with what ``kind`` names."""
    rng = random.Random(f"{channels} {kind}")  # noqa: S311 -- test data
    scale = [2 ** rng.gauss(0, 3) for _ in range(channels)]
    page = [[bf16(rng.gauss(0, s)) for s in scale] for _ in range(TOKENS)]
    for _ in range(0 if kind == "even" else TOKENS * channels // 100):
        t, c = rng.randrange(TOKENS), rng.randrange(channels)
        if kind == "special":  # infinities, NaNs, subnormals, zeros, anything
            page[t][c] = rng.choice((0x7F80, 0xFF80, 0x7FC1, 0xFFFF, 1, 0x807F, 0, 0x8000, rng.randrange(1 << 16)))
        elif kind == "zeros":
            page[t][c] = 0x8000
    if kind == "zeros":
        for row in page:
            row[3] = rng.choice((0, 0x8000))
    if kind == "noise":
        page = [[rng.randrange(1 << 16) for _ in scale] for _ in page]
    return b"".join(value.to_bytes(2, "little") for row in page for value in row)


def pages() -> Iterator[tuple[str, bytes]]:
    """Return pages of several head sizes, and broken ones."""
    for channels, kind in (
        (64, "even"), (16, "special"), (96, "zeros"), (128, "special"), (80, "even"), (256, "even"), (16, "noise"),
    ):  # fmt: skip
        yield f"{channels}-{kind}", glyd.pack_kv_pages(values(channels, kind), channels)
    page = glyd.pack_kv_pages(values(80, "special"), 80)
    bases_at = bases_place(80)
    codes_at = bases_at + 80 + 32 * 80
    lists_at = bases_at + 80 + 4 * slab_nbytes(80)
    places_at = lists_at + 2 * int.from_bytes(page[30:32], "little")
    for name, at, value in (
        ("magic", 1, 0x58), ("version", 2, 2), ("form", 3, 2), ("channels", 4, 0x51), ("tokens", 6, 64), ("size", 8, 1),
        ("exceptions", 12, 250), ("codes", 14, 1), ("ends", 17, 0xFF), ("base", bases_at, 9), ("code", codes_at, 0xFFFF),
        ("word", lists_at, 0xFFFF), ("place", places_at + 1, 255),
    ):  # fmt: skip
        broken = bytearray(page)
        nbytes = 2 if value > 255 else 1
        broken[at : at + nbytes] = value.to_bytes(nbytes, "little")
        yield f"broken-{name}", bytes(broken)
    for cut in (0, 1, 2, 31, 32, len(page) - 1):
        yield f"cut-{cut}", page[:cut]
    page = glyd.pack_kv_pages(values(16, "special"), 16)  # four lists of eight that there is room for
    yield "broken-unused-list", page[:24] + b"\x01" + page[25:]


def line(name: str, data: bytes) -> str:
    """Return the line of the manifest, as the reference decoder reads the file."""
    try:
        content = decode(data)
    except FormatError as error:
        return f"{name} {STATUS[error.category]} 0 0\n"
    return f"{name} 0 {int.from_bytes(data[4:6], 'little')} {xxh3_64(content):016x}\n"


def main() -> int:
    """Write all files."""
    GOLDEN.mkdir(exist_ok=True)
    lines = []
    for old in GOLDEN.glob("*.page"):
        old.unlink()
    for name, data in pages():
        (GOLDEN / f"{name}.page").write_bytes(data)
        lines.append(line(f"{name}.page", data))
    (GOLDEN / "manifest.txt").write_text("".join(sorted(lines)), encoding="utf-8")
    sys.stdout.write(f"{len(lines)} pages\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Write native/include/glyd/kv_quads.h: which four exponents of keys or values have a code of their own.

    python tools/make_kv_quads.py [--check]

A distance costs what COSTS says, in thirds of a bit near enough, and the four of a code cost LIMIT at most together;
codes number such quads by what they cost together, those of one cost in lexicographic
order. So a page that has fewer codes has the cheaper ones. ``--check`` compares instead of writing.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Final

COSTS: Final = (25, 8, 1, 0, 3, 6, 9, 13, 16, 20, 23)
LIMIT: Final = 26
HEADER: Final = Path(__file__).resolve().parent.parent / "native" / "include" / "glyd" / "kv_quads.h"
TOP: Final = """\
/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Codes of four exponents in pages of keys and values (native/src/kv/spec.md,
 * "Codes"), made by tools/make_kv_quads.py. A word has the four distances, the
 * first one in the low byte. Compiles as C, C++ and CUDA.
 */
#ifndef GLYD_KV_QUADS_H
#define GLYD_KV_QUADS_H

"""


def quads() -> list[tuple[int, ...]]:
    """Return the distances of every code, in order."""
    every = itertools.product(range(len(COSTS)), repeat=4)
    costs = {quad: sum(COSTS[distance] for distance in quad) for quad in every}
    return sorted((quad for quad in costs if costs[quad] <= LIMIT), key=lambda quad: (costs[quad], quad))


def header() -> str:
    """Return the header file."""
    words = [f"0x{sum(distance << 8 * i for i, distance in enumerate(quad)):08X}" for quad in quads()]
    rows = [", ".join(words[first : first + 10]) for first in range(0, len(words), 10)]
    costs = ", ".join(map(str, COSTS))
    return (
        TOP
        + f"#define GLYD_KV_COST_LIMIT {LIMIT}\n"
        + f"#define GLYD_KV_QUADS {len(words)}\n\n"
        + f"/* clang-format off */\n#define GLYD_KV_COSTS {{{costs}}}\n"
        + "#define GLYD_KV_QUAD_TABLE { \\\n"
        + ", \\\n".join(rows)
        + "}\n/* clang-format on */\n\n#endif\n"
    )


def main() -> int:
    """Write or compare."""
    text = header()
    if "--check" in sys.argv[1:]:
        return int(HEADER.read_text(encoding="ascii") != text)
    HEADER.write_text(text, encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())

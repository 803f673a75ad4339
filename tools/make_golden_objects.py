# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Write the golden files of objects, in native/tests/golden_objects, with the glyd package that is installed.

dictionary-N.bin is a dictionary, N-NAME.object an object of it; manifest.txt has a line for each object: name,
size and XXH3-64 of the content, as the reference decoder reads it. Files once released stay.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Final

import glyd
from reference_objects import Dictionary, decode_object
from reference_xxh3 import xxh3_64

GOLDEN: Final = Path(__file__).resolve().parent.parent / "native" / "tests" / "golden_objects"


def document(rng: random.Random, i: int) -> bytes:
    """Return a made document."""
    words = [rng.choice(("north", "south", "east", "west")) for _ in range(rng.randrange(1, 12))]
    return f'{{"number": {i}, "way": "{" ".join(words)}", "far": {rng.random():.4f}}}\n'.encode()


def main() -> int:
    """Write the files and the manifest."""
    GOLDEN.mkdir(exist_ok=True)
    lines = []
    rng = random.Random(1)  # noqa: S311 -- test data
    for n, size in enumerate((4096, 20000)):
        dictionary = glyd.train_dictionary([document(rng, i) for i in range(300 * (n + 1))], size=size)
        (GOLDEN / f"dictionary-{n}.bin").write_bytes(dictionary.data)
        reference = Dictionary(dictionary.data)
        contents = {
            "empty": b"",
            "short": b"north",
            "noise": rng.randbytes(100),
            "long-literals": rng.randbytes(150).hex().encode() + b"east west " * 3,
            "long-matches": b"south " * 500,
            **{f"document-{i}": document(rng, i) for i in range(4)},
            "documents": b"".join(document(rng, i) for i in range(20)),
            "large": b"".join(document(rng, i) for i in range(120)),
            "many-literals": rng.randbytes(5000).hex().encode() + b"north " * 20,
        }
        for name, content in contents.items():
            data = dictionary.compress(content, checksum=name != "short")
            if decode_object(data, reference) != content:
                raise AssertionError(f"{n}-{name}: the reference decoder reads something else")
            (GOLDEN / f"{n}-{name}.object").write_bytes(data)
            lines.append(f"{n}-{name} {len(content)} {xxh3_64(content):x}")
    (GOLDEN / "manifest.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Write the golden files of frames with a dictionary, in native/tests/golden_dictionary, with the package installed.

NAME.glyd is a frame for dictionary.bin; manifest.txt has a line for each: name, the status that reading it with
that dictionary must give (status.h; 0 is success), and size and XXH3-64 of the content, as the reference decoder
reads it. Files once released stay.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Final

import frame_writer as w
import glyd
from make_golden_objects import document
from reference_bytes import FormatError
from reference_decoder import decode, memory_code_for
from reference_xxh3 import xxh3_64

GOLDEN: Final = Path(__file__).resolve().parent.parent / "native" / "tests" / "golden_dictionary"
STATUS: Final = {"header": 13, "feature": 12, "corrupt": 20, "dictionary wrong": 33}
KIND: Final = 10
RECORD: Final = 3


def documents(seed: int, n: int) -> bytes:
    """Return made documents, one after the other."""
    rng = random.Random(seed)  # noqa: S311 -- test data
    return b"".join(document(rng, i) for i in range(n))


def encoded(dictionary: glyd.Dictionary) -> dict[str, bytes]:
    """Return what the library writes."""
    frames = {}
    for level in glyd.LEVELS:
        content = documents(7, 8)
        frames[f"encoded-{level}"] = glyd.compress(content, level, dictionary=dictionary)  # type: ignore[arg-type]
        frames[f"encoded-{level}-segments"] = glyd.compress(
            documents(8, 12),
            level,  # type: ignore[arg-type]
            dictionary=dictionary,
            segment_size=1024,
        )
    rows = b"".join(b"%d,%d,north,%d\n" % (i, i * i % 977, i // 7) for i in range(600))
    frames["encoded-rows"] = glyd.compress(rows, records=True, dictionary=dictionary)
    frames["encoded-empty"] = glyd.compress(b"", dictionary=dictionary)
    frames["encoded-noise"] = glyd.compress(random.Random(1).randbytes(700), dictionary=dictionary)  # noqa: S311
    long = documents(9, 40) * ((1 << 20) // len(documents(9, 40)) + 1) + documents(10, 30)
    for level in ("default", "max"):
        frames[f"encoded-{level}-long"] = glyd.compress(long, level, dictionary=dictionary)  # type: ignore[arg-type]
    return frames


def broken(dictionary: glyd.Dictionary) -> dict[str, bytes]:
    """Return frames that break one rule each."""
    name = dictionary.id.to_bytes(4, "little")
    content = b"raw content!"
    blocks = b"\x00\x0c\x0c" + content  # a raw block

    def one(payload: bytes, extensions: bytes = w.extension(RECORD, name), **more: object) -> bytes:
        segment = w.Segment(KIND, content, payload)
        return w.frame([segment], known_size=True, extensions=extensions, has_dictionary=True, **more)  # type: ignore[arg-type]

    others = dict.fromkeys(("has_base", "has_records", "has_opened"), False)
    record = w.extension(RECORD, name)
    base = w.extension(1, bytes(16) + w.varint(12))
    return {
        "valid-raw-block": one(b"\x00" + blocks),
        "broken-no-record": w.frame([w.Segment(KIND, content, b"\x00" + blocks)], known_size=True),
        "broken-record-twice": one(b"\x00" + blocks, record + record),
        "broken-record-short": w.frame([w.raw(content)], known_size=True, extensions=w.extension(RECORD, name[:3])),
        "broken-record-long": w.frame([w.raw(content)], known_size=True, extensions=w.extension(RECORD, name + b"\0")),
        "broken-record-other": one(b"\x00" + blocks, w.extension(RECORD, bytes([name[0] ^ 1]) + name[1:])),
        "broken-record-and-base": one(b"\x00" + blocks, base + record, has_base=True),
        "broken-memory-code": one(b"\x00" + blocks, memory=w.memory_code(16, 12)),
        "broken-form": one(b"\x02" + blocks),
        "broken-form-cold": one(b"\x01" + bytes(8)),
        "broken-learnt-too-much": one(
            b"\x01" + bytes(8),
            record + w.extension(7, b""),
            memory=memory_code_for(1 << 16, 12, has_dictionary=True, has_cold=True, **others),
        ),
        "broken-nothing-after-form": one(b"\x00"),
        "broken-bytes-after-blocks": one(b"\x00" + blocks + b"\x00"),
        "broken-blocks-short": one(b"\x00" + blocks[:-1]),
    }


def line(name: str, data: bytes, dictionary: bytes) -> str:
    """Return the line of the manifest for a frame."""
    try:
        content = decode(data, None, dictionary)
    except FormatError as error:
        return f"{name} {STATUS[error.category]} 0 0"
    return f"{name} 0 {len(content)} {xxh3_64(content):x}"


def main() -> int:
    """Write the files and the manifest."""
    GOLDEN.mkdir(exist_ok=True)
    rng = random.Random(1)  # noqa: S311 -- test data
    dictionary = glyd.train_dictionary([document(rng, i) for i in range(300)], size=4096)
    (GOLDEN / "dictionary.bin").write_bytes(dictionary.data)
    lines = []
    for name, data in sorted({**encoded(dictionary), **broken(dictionary)}.items()):
        (GOLDEN / f"{name}.glyd").write_bytes(data)
        lines.append(line(name, data, dictionary.data))
    (GOLDEN / "manifest.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

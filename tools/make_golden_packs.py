# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Write the golden packs and the golden packed model, in native/tests/golden_packs, with the glyd that is installed.

    python tools/make_golden_packs.py

manifest.txt has a line for each pack: name, the status that reading it must give (status.h; 0 is success),
layout, rows, columns, and XXH3-64 of the weights as reference_weights.py reads them. ``model`` is a packed
directory; models.txt has size and SHA-256 of each file of its original. Files once released stay: a change
here may add to them, never alter what is there.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import glyd
from reference_bytes import FormatError
from reference_weights import decode
from reference_xxh3 import xxh3_64

GOLDEN: Final = Path(__file__).resolve().parent.parent / "native" / "tests" / "golden_packs"
STATUS: Final = {"magic": 10, "version": 11, "feature": 12, "header": 13, "corrupt": 20, "truncated": 22}
LAYOUTS: Final = {"mma12": 1, "tiered": 2}


def bf16(value: float) -> int:
    """Return the bits of a float, cut to bf16."""
    return int.from_bytes(struct.pack("<f", value)[2:], "little")


def weights(rows: int, cols: int, kind: str) -> bytes:
    """Return a matrix: Gaussian, with what ``kind`` names."""
    rng = random.Random(f"{rows} {cols} {kind}")  # noqa: S311 -- test data
    scale = [0.02 * (2 ** rng.gauss(0, 2) if kind == "scaled" else 1) for _ in range(rows)]
    matrix = [[bf16(rng.gauss(0, scale[r])) for _ in range(cols)] for r in range(rows)]
    for _ in range(0 if kind == "plain" else rows * cols // 100):
        r, c = rng.randrange(rows), rng.randrange(cols)
        if kind == "special":  # infinities, NaNs, subnormals, zeros, anything
            matrix[r][c] = rng.choice((0x7F80, 0xFF80, 0x7FC1, 0xFFFF, 1, 0x807F, 0, 0x8000, rng.randrange(1 << 16)))
        elif kind == "zeros":
            matrix[r % 7 * (rows // 7)] = [rng.choice((0, 0x8000)) for _ in range(cols)]
            matrix[r][c] = 0x8000
    return b"".join(struct.pack(f"<{cols}H", *row) for row in matrix)


def packs() -> Iterator[tuple[str, bytes]]:
    """Return packs of every layout, and broken ones."""
    for layout in LAYOUTS:
        pack: bytes | None = None
        for rows, cols, kind in ((64, 128, "plain"), (61, 125, "special"), (120, 128, "zeros"), (64, 256, "scaled")):
            pack = glyd.pack_weights(weights(rows, cols, kind), rows, cols, layout=layout)  # type: ignore[arg-type]
            if pack is None:
                raise AssertionError(f"{rows} x {cols} {kind} does not pay in {layout}")
            yield f"{layout}-{rows}x{cols}-{kind}", pack
        assert pack is not None  # noqa: S101 -- for the type checker
        for name, at, value in (
            ("magic", 3, 0x58), ("version", 4, 2), ("feature", 5, 3), ("rows", 8, 0), ("cols", 19, 4), ("size", 24, 1),
            ("escapes", 36, 1), ("exceptions", 44, 1), ("tile-escape-max", 49, 0x18), ("unused", 127, 1),
        ):  # fmt: skip
            header = bytearray(pack[:128])
            header[at] = value
            yield f"{layout}-header-{name}", bytes(header)
        for cut in (0, 3, 4, 127, 128):
            yield f"{layout}-cut-{cut}", pack[:cut]
    pack = glyd.pack_weights(weights(64, 128, "special"), 64, 128)
    if pack is None:
        raise AssertionError("the pack to break does not pay")
    info = glyd.read_weights_info(pack)
    for name, at, value in (
        ("block-version", 129, 2), ("block-rows", 130, 63), ("base", 192, 9), ("index", info.index_at, 1),
        ("warp", info.escapes_at + 2, 0), ("place", info.exc_places_at + 3, 255),
    ):  # fmt: skip
        broken = bytearray(pack)
        broken[at] = value
        yield f"broken-{name}", bytes(broken)


def line(name: str, data: bytes) -> str:
    """Return the line of the manifest, as the reference decoder reads the file."""
    try:
        content = decode(data)
    except FormatError as error:
        return f"{name} {STATUS[error.category]} 0 0 0 0\n"
    layout, rows, cols = data[5], int.from_bytes(data[8:16], "little"), int.from_bytes(data[16:24], "little")
    return f"{name} 0 {layout} {rows} {cols} {xxh3_64(content):016x}\n"


def safetensors(tensors: dict[str, tuple[str, list[int], bytes]], padding: int) -> bytes:
    """Return a weight file."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(raw)]}
        at += len(raw)
    text = json.dumps(header).encode() + b" " * padding
    return len(text).to_bytes(8, "little") + text + b"".join(raw for _, _, raw in tensors.values())


def model(folder: Path) -> None:
    """Write a checkpoint of two weight files."""
    first = {
        "embed.weight": ("BF16", [64, 128], weights(64, 128, "plain")),
        "norm.weight": ("BF16", [128], weights(1, 128, "plain")),
    }
    second = {
        "experts": ("BF16", [2, 32, 128], weights(64, 128, "special")),
        "scale": ("F32", [3], struct.pack("<3f", 1, 2, 3)),
    }
    names = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    weight_map = dict.fromkeys(first, names[0]) | dict.fromkeys(second, names[1])
    files = {
        names[0]: safetensors(first, 5),
        names[1]: safetensors(second, 0),
        "model.safetensors.index.json": json.dumps({"metadata": {}, "weight_map": weight_map}, indent=2).encode(),
        "config.json": b'{"model_type":  "golden"}\n',
        "tokenizer/vocab.txt": b"a\nb\n",
    }
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def main() -> int:
    """Write all files."""
    GOLDEN.mkdir(exist_ok=True)
    lines = []
    for old in GOLDEN.glob("*.pack"):
        old.unlink()
    for name, data in packs():
        (GOLDEN / f"{name}.pack").write_bytes(data)
        lines.append(line(f"{name}.pack", data))
    (GOLDEN / "manifest.txt").write_text("".join(sorted(lines)), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        model(source)
        for layout in ("tiered", "mma12"):
            out = GOLDEN / f"model-{layout}"
            shutil.rmtree(out, ignore_errors=True)
            glyd.pack_model(source, out, layout)
        paths = sorted(path for path in source.rglob("*") if path.is_file())
        hashes = [(p.relative_to(source).as_posix(), p.read_bytes()) for p in paths]
        text = "".join(f"{name} {len(data)} {hashlib.sha256(data).hexdigest()}\n" for name, data in hashes)
        (GOLDEN / "models.txt").write_text(text, encoding="utf-8")
    sys.stdout.write(f"{len(lines)} packs\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

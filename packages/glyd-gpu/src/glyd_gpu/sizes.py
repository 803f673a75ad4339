# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``python -m glyd_gpu.sizes MODEL…``: what every matrix of a model takes in both layouts.

Each matrix is packed, unpacked, and compared bit for bit. Beside the layouts
stands the entropy floor: sign and mantissa, and the entropy of the exponents of
each matrix, which no code of single weights goes below.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch

from glyd_gpu._checkpoint import Source, check_dtypes, read_sources
from glyd_gpu._errors import ParameterError
from glyd_gpu._meta import LAYOUTS, PackedMeta


@dataclass
class Row:
    """Matrices of one place in the layers of a model, or all of them.

    Attributes
    ----------
    name
        Of the tensors, with ``*`` for numbers.
    shape
        Of one; the largest where they differ.
    n_matrices, n_weights
        How many.
    entropy_bits
        8 + entropy of the exponents, mean over the weights.
    nbytes
        By layout; matrices that do not pay count as bf16.
    plain
        Matrices that do not pay, by layout.
    wrong
        Matrices, by layout, that came back with other bits: none, unless there is a bug.
    """

    name: str
    shape: tuple[int, ...] = ()
    n_matrices: int = 0
    n_weights: int = 0
    entropy_bits: float = 0.0
    nbytes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(LAYOUTS, 0))
    plain: dict[str, int] = field(default_factory=lambda: dict.fromkeys(LAYOUTS, 0))
    wrong: dict[str, int] = field(default_factory=lambda: dict.fromkeys(LAYOUTS, 0))

    def bits(self, layout: str) -> float:
        """Return bits a weight."""
        return 8 * self.nbytes[layout] / self.n_weights

    def add(self, other: Row) -> None:
        """Count another row in."""
        total = self.n_weights + other.n_weights
        self.entropy_bits = (self.entropy_bits * self.n_weights + other.entropy_bits * other.n_weights) / total
        self.shape = max(self.shape, other.shape)
        self.n_matrices += other.n_matrices
        self.n_weights = total
        for mine, theirs in ((self.nbytes, other.nbytes), (self.plain, other.plain), (self.wrong, other.wrong)):
            for layout, value in theirs.items():
                mine[layout] += value


def entropy_bits(weights: torch.Tensor) -> float:
    """Return 8 + the entropy of the exponents."""
    exponents = (weights.view(torch.int16).reshape(-1).to(torch.int32) >> 7) & 0xFF
    counts = torch.bincount(exponents, minlength=256).double()
    shares = counts[counts > 0] / counts.sum()
    return 8 - float((shares * shares.log2()).sum())


def measure(weights: torch.Tensor, name: str, layouts: Sequence[str] = tuple(LAYOUTS)) -> Row:
    """Pack a matrix in every layout, unpack it and compare.

    Parameters
    ----------
    weights
        bf16, two dimensions or a stack of three.
    name
        Of the row.
    layouts
        To measure.
    """
    matrix = weights.reshape(-1, weights.shape[-1]).contiguous()
    row = Row(name, tuple(weights.shape), 1, matrix.numel(), entropy_bits(matrix))
    for layout in layouts:
        pack = torch.ops.glyd.pack(matrix, LAYOUTS[layout])
        if not pack.numel():
            row.nbytes[layout] = 2 * matrix.numel()
            row.plain[layout] = 1
            continue
        row.nbytes[layout] = pack.numel()
        values = PackedMeta.from_tensor(pack).as_list()
        back = torch.ops.glyd.unpack(pack, values)
        row.wrong[layout] = int(not torch.equal(back.view(torch.int16), matrix.view(torch.int16)))
    return row


def model_files(name: str) -> list[str]:
    """Return the safetensors files of a directory or of a model of the hub.

    Raises
    ------
    ParameterError
        There are none.
    """
    folder = name
    if not os.path.isdir(name):
        from huggingface_hub import snapshot_download  # noqa: PLC0415 - not needed for directories

        folder = snapshot_download(name, allow_patterns=["*.safetensors", "*.json"])
    files = sorted(entry.path for entry in os.scandir(folder) if entry.name.endswith(".safetensors"))
    if not files:
        raise ParameterError(f"{name}: no .safetensors file")
    return files


def matrices(sources: Sequence[Source], device: torch.device) -> Iterator[tuple[Source, torch.Tensor]]:
    """Give every matrix of a checkpoint as bf16."""
    for source in sources:
        if len(source.shape) not in {2, 3} or 0 in source.shape:
            continue
        if source.meta is None and source.dtype not in {"BF16", "F32"}:
            continue
        data = torch.from_numpy(np.fromfile(source.path, dtype=np.uint8, count=source.nbytes, offset=source.offset))
        data = data.to(device)
        if source.meta is not None:
            yield source, torch.ops.glyd.unpack(data, source.meta.as_list()).view(source.shape)
        else:
            kind = torch.bfloat16 if source.dtype == "BF16" else torch.float32
            yield source, data.view(kind).to(torch.bfloat16).view(source.shape)


def model_rows(name: str, device: torch.device) -> list[Row]:
    """Return a row for each kind of matrix of a model, and the total last."""
    sources = list(read_sources(model_files(name)).values())
    check_dtypes(sources)
    rows: dict[str, Row] = {}
    total = Row("all")
    for source, weights in matrices(sources, device):
        kind = re.sub(r"(?<=\.)\d+(?=\.)", "*", source.name)
        row = measure(weights, kind)
        rows.setdefault(kind, Row(kind)).add(row)
        total.add(row)
    if not rows:
        raise ParameterError(f"{name}: no bf16 matrix")
    return [*rows.values(), total]


def _line(row: Row) -> str:
    shape = "×".join(map(str, row.shape)) if row.name != "all" else ""
    cells = [
        f"{row.name:<48.48} {row.n_matrices:>6} {shape:>18} {2 * row.n_weights / 1e9:>9.3f} {row.entropy_bits:>8.3f}"
    ]
    for layout in LAYOUTS:
        note = f"({row.plain[layout]} bf16)" if row.plain[layout] else ""
        cells.append(f"{row.nbytes[layout] / 1e9:>9.3f} {row.bits(layout):>7.3f} {note:<10}")
    wrong = sum(row.wrong.values())
    cells.append("exact" if not wrong else f"{wrong} WRONG")
    return " ".join(cells)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    parser = argparse.ArgumentParser("python -m glyd_gpu.sizes", description=str(__doc__).split("\n\n", maxsplit=1)[0])
    parser.add_argument("models", nargs="+", metavar="MODEL", help="a directory, or a name of the Hugging Face hub")
    parser.add_argument("--device", help="where to pack (default: cuda when there is one)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args(arguments)
    device = torch.device(options.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    results: dict[str, Any] = {}
    wrong = 0
    for name in options.models:
        rows = model_rows(name, device)
        wrong += sum(rows[-1].wrong.values())
        if options.json:
            results[name] = [
                asdict(row) | {"bits_per_weight": {layout: row.bits(layout) for layout in LAYOUTS}} for row in rows
            ]
            continue
        titles = [f"{'matrices':<48} {'number':>6} {'shape':>18} {'bf16 GB':>9} {'entropy':>8}"]
        titles += [f"{layout + ' GB':>9} {'bits':>7} {'':<10}" for layout in LAYOUTS]
        print(f"{name}\n{' '.join(titles)}")
        for row in rows:
            print(_line(row))
    if options.json:
        print(json.dumps(results, indent=2))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

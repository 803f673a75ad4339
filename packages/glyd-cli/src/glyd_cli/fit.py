# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``glyd fit``: what a model takes and which GPUs it fits, before anything is downloaded."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import glyd
from glyd_cli.errors import Exit, file_error, shown
from glyd_cli.machine import PACKED_KV_SHARE
from glyd_cli.report import print_text, size_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from glyd_cli.arguments import Options

_LAYOUTS = ("bf16", "tiered", "mma12")


def fit_model(options: Options) -> Exit:
    """Print what `glyd.fit` finds.

    Raises
    ------
    FileError
        A file or server cannot be read.
    GlydError
        The model is broken, or an argument is.
    """
    model = options.files[0]
    try:
        report = glyd.fit(model, gpu=options.gpu, context=options.context, revision=options.revision)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise file_error(error, model) from error
    if options.json:
        print_text(json.dumps(dataclasses.asdict(report), indent=2) + "\n")
    else:
        print_text("\n".join(_lines(report)) + "\n")
    return Exit.OK


def _lines(report: glyd.FitReport) -> list[str]:
    stored = ", ".join(f"{size_text(nbytes)} {dtype}" for dtype, nbytes in report.dtypes.items())
    packed = f", packed ({report.packed})" if report.packed else ""
    limit = f" (of {report.max_context:,})" if report.max_context else ""
    lines = [f"{shown(report.model)}: {report.n_parameters / 1e9:.3g} G parameters, {stored}{packed}", ""]
    rows: list[tuple[str, ...]] = [("", "weights", "KV cache", "overhead", "in all")]
    for layout in _LAYOUTS:
        found = report.weights[layout]
        about = "" if found.basis.startswith("headers") else "~"
        sizes = (report.kv_nbytes, found.overhead_nbytes, found.total_nbytes)
        rows.append((layout, about + size_text(found.nbytes), *(_size(nbytes) for nbytes in sizes)))
    lines += _table(rows)
    lines += ["", f"at a context of {report.context:,} tokens{limit}, one sequence; ~ is an estimate, on the high side"]
    if report.kv_basis:
        packed = size_text(int(PACKED_KV_SHARE * report.kv_nbytes)) if report.kv_nbytes else "?"
        lines.append(f"KV cache: {report.kv_basis}; about {packed} with --kv packed, where all layers see all tokens")
    lines += [f"note: {note}" for note in report.notes]
    if any(value is not None for gpu in report.gpus for value in gpu.fits.values()):
        rows = [("GPU", "memory", *_LAYOUTS)]
        for gpu in report.gpus:
            cells = (_verdict(gpu.fits[layout], gpu.max_context[layout]) for layout in _LAYOUTS)
            rows.append((gpu.name, size_text(gpu.nbytes), *cells))
        lines += ["", *_table(rows), "", "yes, no: whether that context fits; up to: the largest that does"]
    return lines


def _size(nbytes: int | None) -> str:
    return "?" if nbytes is None else size_text(nbytes)


def _verdict(fits: bool | None, most: int | None) -> str:
    if fits is None or most is None:
        return "?"
    if not most:
        return "no"
    return f"{'yes' if fits else 'no'}, up to {most:,}"


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]

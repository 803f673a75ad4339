# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Ratio against speed by kind of file as a picture: all levels and other compressors, a row for each kind."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from glyd_cli.bench.plot import label_points, panel
from glyd_cli.bench.plot_kinds import files_by_kind
from glyd_cli.bench.summary import machine, mean_rows
from glyd_cli.report import size_text

if TYPE_CHECKING:
    from glyd_cli.bench.measure import FileResult


def draw_levels(results: list[FileResult], path: str) -> None:
    """Draw a row of two panels, writing and reading, for each kind of file into a .png or .svg file.

    Codecs that were too slow for all bytes of all files of a kind are left out there.
    """
    import matplotlib as mpl  # noqa: PLC0415 - an extra, and slow to load

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "glyd"
    from matplotlib import pyplot as plt  # noqa: PLC0415

    kinds = files_by_kind(results)
    figure, panels = plt.subplots(
        len(kinds), 2, figsize=(13, 0.6 + 4.4 * len(kinds)), sharey="row", squeeze=False, layout="constrained"
    )
    drawn = []
    for (kind, files), row in zip(kinds.items(), panels, strict=True):
        means = [mean for mean in mean_rows(files) if not math.isnan(mean[1])]
        n_files = "1 file" if len(files) == 1 else f"{len(files)} files"
        total = size_text(sum(file.nbytes for file in files))
        for axes, column, title in ((row[0], 0, "writing"), (row[1], 1, "reading")):
            points = [(name, (write, read)[column] / 1e6, ratio) for name, ratio, write, read in means]
            panel(axes, points, f"{kind} ({n_files}, {total}): {title}")
            drawn.append((axes, points))
        row[0].set_ylabel("ratio: content size by stored size")
    figure.supxlabel(
        f"MB/s, geometric means, one thread unless labelled (T: threads); {machine()['cpu']}",
        fontsize=9,
        color="#555555",
    )
    figure.canvas.draw()
    for axes, points in drawn:
        label_points(axes, points)
    figure.savefig(path, dpi=80, metadata={"Date": None} if path.lower().endswith(".svg") else None)
    plt.close(figure)

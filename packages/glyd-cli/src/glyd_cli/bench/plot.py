# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Ratio against speed as a picture: writing on the left, reading on the right."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from glyd_cli.bench.summary import machine, mean_rows, partial_names
from glyd_cli.errors import UsageError, shown
from glyd_cli.report import size_text

if TYPE_CHECKING:
    from typing import Any

    from glyd_cli.bench.measure import FileResult

_COLORS = {"glyd": "#0b6e4f", "zstd": "#c8553d", "lz4": "#3d5a98", "xz": "#8a6fae", "zlib": "#8b8b8b"}
_PLACES = [(r, a) for r in (9, 16, 25, 36, 50) for a in (90, 45, 135, 0, 180, -45, -135, -90)]
"""Where a label may go around its point: distance in points, angle in degrees, best first."""


def check_plot(path: str) -> None:
    """Refuse a plot that could not be drawn, before anything is measured.

    Raises
    ------
    UsageError
        The name has another ending than .png or .svg, or matplotlib is missing.
    """
    import importlib.util  # noqa: PLC0415 - only for plots

    if not path.lower().endswith((".png", ".svg")):
        raise UsageError(f"--plot draws .png and .svg, not {shown(path)}")
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError("--plot needs matplotlib: pip install 'glyd-cli[bench]'")


def draw(results: list[FileResult], path: str) -> None:
    """Draw the geometric means over all files into a .png or .svg file."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra, and slow to load

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    rows = [row for row in mean_rows(results) if not math.isnan(row[1])]
    partial = partial_names(results)
    figure, panels = plt.subplots(1, 2, figsize=(13, 6.2), sharey=True, layout="constrained")
    drawn = []
    for axes, column, title in ((panels[0], 0, "Writing"), (panels[1], 1, "Reading")):
        points = [(name, (write, read)[column] / 1e6, ratio) for name, ratio, write, read in rows]
        panel(axes, points, title)
        drawn.append((axes, points))
    panels[0].set_ylabel("ratio: content size by stored size")
    names = shown(results[0].name.rsplit("/", 1)[-1]) if len(results) == 1 else f"{len(results)} files, geometric means"
    total = size_text(sum(result.nbytes for result in results))
    figure.suptitle(f"{names}, {total}", x=0.01, ha="left", fontsize=13, fontweight="bold")
    facts = machine()
    missing = f"; too slow for the whole: {', '.join(partial)}" if partial else ""
    figure.supxlabel(
        f"MB/s, one thread unless labelled (T: threads); {facts['cpu']}{missing}", fontsize=9, color="#555555"
    )
    figure.canvas.draw()
    for axes, points in drawn:
        label_points(axes, points)
    figure.savefig(path, dpi=160)
    plt.close(figure)


def panel(axes: Any, points: list[tuple[str, float, float]], title: str) -> None:
    """Draw ratio against speed of named points, those of a family as a line."""
    from matplotlib.ticker import LogLocator, NullFormatter  # noqa: PLC0415 - an extra, and slow to load

    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xscale("log")
    axes.grid(visible=True, which="major", color="#e4e4e4", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.margins(0.12, 0.12)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    lines: dict[tuple[str, bool], list[tuple[float, float]]] = {}
    for name, speed, ratio in points:
        lines.setdefault((name.split()[0], " T" in name), []).append((speed, ratio))
    for (family, is_parallel), line in lines.items():
        axes.plot(
            *zip(*line, strict=True),
            color=_COLORS[family],
            marker="o",
            markersize=7 if family == "glyd" else 5.5,
            markerfacecolor="white" if is_parallel else _COLORS[family],
            linewidth=1.6 if family == "glyd" else 1.0,
            linestyle=":" if is_parallel else "-",
            zorder=3 if family == "glyd" else 2,
        )


def label_points(axes: Any, points: list[tuple[str, float, float]]) -> None:
    """Put a label beside each point where it covers no point, no other label, and hardly a line."""
    from matplotlib import patheffects  # noqa: PLC0415 - an extra, and slow to load

    renderer = axes.figure.canvas.get_renderer()
    scale = axes.figure.dpi / 72
    frame = axes.get_window_extent(renderer)
    spots = [axes.transData.transform((x, y)) for _, x, y in points]
    along_lines = [spot for line in axes.get_lines() for spot in _samples(axes, line)]
    taken: list[Any] = []
    for (name, *_), (x, y) in zip(points, spots, strict=True):
        family = name.split()[0]
        label = axes.annotate(
            name,
            (x, y),
            xycoords="figure pixels",
            ha="center",
            va="center",
            fontsize=8.5,
            color=_COLORS[family],
            fontweight="bold" if family == "glyd" else "normal",
        )
        size = label.get_window_extent(renderer)
        width, height = size.width, size.height
        best: tuple[Any, float, float, Any, int] = ((math.inf,), x, y, None, 0)
        for radius, angle in _PLACES:
            along, up = math.cos(math.radians(angle)), math.sin(math.radians(angle))
            cx = x + along * (radius * scale + width / 2)
            cy = y + up * (radius * scale + height / 2)
            box = (cx - width / 2, cy - height / 2, cx + width / 2, cy + height / 2)
            clashes = sum(_overlap(box, other) for other in taken)
            clashes += sum(_overlap(box, (px - 4, py - 4, px + 4, py + 4)) for px, py in spots)
            outside = box[0] < frame.x0 or box[2] > frame.x1 + 8 or box[1] < frame.y0 or box[3] > frame.y1 + 8
            crossed = any(box[0] < px < box[2] and box[1] < py < box[3] for px, py in along_lines)
            cost = (clashes + 2 * outside, crossed, radius)
            if cost < best[0]:
                best = (cost, cx, cy, box, radius)
        label.remove()
        _, cx, cy, box, radius = best
        inverse = axes.transData.inverted()
        place = inverse.transform((cx, cy))
        arrow = {"arrowstyle": "-", "color": "#bbbbbb", "linewidth": 0.7, "shrinkA": 0, "shrinkB": 4}
        axes.annotate(
            name,
            xy=inverse.transform((x, y)),
            xytext=place,
            ha="center",
            va="center",
            fontsize=8.5,
            color=_COLORS[family],
            fontweight="bold" if family == "glyd" else "normal",
            arrowprops=arrow if radius > 16 else None,
            zorder=5,
            path_effects=[patheffects.withStroke(linewidth=2.5, foreground="white")],
        )
        taken.append(box)


def _samples(axes: Any, line: Any) -> list[tuple[float, float]]:
    """Return places on the screen along a line."""
    spots = [tuple(spot) for spot in axes.transData.transform(line.get_xydata())]
    out = []
    for (x0, y0), (x1, y1) in itertools.pairwise(spots):
        out += [(x0 + (x1 - x0) * i / 40, y0 + (y1 - y0) * i / 40) for i in range(41)]
    return out


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]

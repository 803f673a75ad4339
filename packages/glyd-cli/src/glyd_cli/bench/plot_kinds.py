# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Bytes and reads by kind of file as a picture: columns beside levels and beside other compressors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glyd_cli.bench.summary import geometric_mean, machine

if TYPE_CHECKING:
    from typing import Any

    from glyd_cli.bench.measure import FileResult

SIZE_PEER = "zstd -19"
READ_PEER = "zstd -3"
_SHOWN = ("glyd max -r", "glyd ultra -r", "glyd max", "glyd ultra", "zstd -3", "zstd -19", "xz -9e")
_COLORS = ("#0b6e4f", "#064a35", "#7fb8a2", "#4f8f78", "#e3a598", "#c8553d", "#8a6fae")


def kind_of(name: str) -> str:
    """Return the kind of a file, by the end of its name."""
    return name.rsplit(".", 1)[-1].lower() if "." in name else "other"


def files_by_kind(results: list[FileResult]) -> dict[str, list[FileResult]]:
    """Return the files of each kind, and all of them as "all" where there are several kinds."""
    kinds: dict[str, list[FileResult]] = {}
    for result in results:
        kinds.setdefault(kind_of(result.name), []).append(result)
    kinds = dict(sorted(kinds.items()))
    if len(kinds) > 1:
        kinds["all"] = results
    return kinds


def by_kind(results: list[FileResult]) -> dict[str, dict[str, tuple[float, float]]]:
    """Compare codecs with their peers for each kind of file.

    Returns
    -------
    dict
        Of each kind, and of "all": of each codec, bytes by those of `SIZE_PEER` and read speed by that of
        `READ_PEER`, geometric means over the files that both had whole.
    """
    return {kind: _means(files) for kind, files in files_by_kind(results).items()}


def _means(files: list[FileResult]) -> dict[str, tuple[float, float]]:
    out = {}
    for name in _SHOWN:
        sizes, reads = [], []
        for file in files:
            row, by_size, by_read = file.row(name), file.row(SIZE_PEER), file.row(READ_PEER)
            if row and by_size and by_read and row.nbytes == by_size.nbytes == by_read.nbytes:
                sizes.append(row.stored / by_size.stored)
                reads.append(row.read_times(by_read))
        if sizes:
            out[name] = geometric_mean(sizes), geometric_mean(reads)
    return out


def draw_kinds(results: list[FileResult], path: str) -> None:
    """Draw bars of all kinds into a .png or .svg file."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra, and slow to load

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "glyd"
    from matplotlib import pyplot as plt  # noqa: PLC0415

    kinds = by_kind(results)
    figure, panels = plt.subplots(1, 2, figsize=(13, 1.6 + 1.15 * len(kinds)), sharey=True, layout="constrained")
    for axes, column, title in (
        (panels[0], 0, f"Stored bytes, {SIZE_PEER} = 1: shorter is better"),
        (panels[1], 1, f"Read speed, {READ_PEER} = 1: longer is better"),
    ):
        _bars(axes, kinds, column)
        axes.set_title(title, loc="left", fontsize=11)
    counts = {kind: sum(kind in {"all", kind_of(r.name)} for r in results) for kind in kinds}
    panels[0].set_yticks(range(len(kinds)), [f"{kind}\n{counts[kind]} files" for kind in kinds])
    panels[0].invert_yaxis()
    panels[1].legend(fontsize=8.5, frameon=False, loc="lower right")
    figure.supxlabel(f"geometric means over files, one thread; {machine()['cpu']}", fontsize=9, color="#555555")
    figure.savefig(path, dpi=160, metadata={"Date": None} if path.lower().endswith(".svg") else None)
    plt.close(figure)


def _bars(axes: Any, kinds: dict[str, dict[str, tuple[float, float]]], column: int) -> None:
    names = [name for name in _SHOWN if any(name in of for of in kinds.values())]
    height = 0.84 / max(len(names), 1)
    for i, name in enumerate(names):
        places = [k + (i - (len(names) - 1) / 2) * height for k, of in enumerate(kinds.values()) if name in of]
        values = [of[name][column] for of in kinds.values() if name in of]
        bars = axes.barh(places, values, height * 0.9, color=_COLORS[_SHOWN.index(name)], label=name)
        axes.bar_label(bars, fmt="%.2f", padding=2, fontsize=7, color="#444444")
    axes.axvline(1, color="#888888", linewidth=0.8, linestyle=":")
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What the command prints: tables, JSON, progress."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from glyd_store.cli._errors import shown

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator

    from glyd_store._info import ObjectInfo


def size_text(nbytes: float) -> str:
    """Return a size for people."""
    if nbytes < 1000:
        return f"{nbytes:.0f} B"
    for unit in ("kB", "MB", "GB", "TB"):
        nbytes /= 1000
        if nbytes < 999.95 or unit == "TB":
            break
    return f"{nbytes:.1f} {unit}"


def as_json(info: ObjectInfo, **more: object) -> str:
    """Return an object as a line of JSON."""
    found: dict[str, object] = {
        "id": info.id,
        "name": info.name,
        "time": info.time.isoformat(),
        "size": info.size,
        "sha256": info.sha256,
        "stored_nbytes": info.stored_nbytes,
        "n_decodes": info.n_decodes,
        "tags": info.tags,
    }
    if info.deleted is not None:
        found["deleted"] = info.deleted.isoformat()
    return json.dumps({**found, **more})


def print_objects(found: Iterable[ObjectInfo], options: argparse.Namespace) -> None:
    """Print objects, one a line."""
    for info in found:
        if options.json:
            print(as_json(info))
            continue
        time = info.time.astimezone().strftime("%Y-%m-%d %H:%M:%S")
        tags = "".join(f"  {shown(key)}={shown(value)}" for key, value in info.tags.items())
        sizes = f"{size_text(info.size):>10} {size_text(info.stored_nbytes):>10}"
        print(f"{info.id:>8}  {time}  {sizes}  {shown(info.name)}{tags}")


def print_facts(found: dict[str, object], options: argparse.Namespace) -> None:
    """Print named facts."""
    if options.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        label = name.removesuffix("_nbytes").removeprefix("n_").replace("_", " ")
        text = size_text(value) if name.endswith("_nbytes") and isinstance(value, (int, float)) else str(value)
        print(f"{label:<18} {text}")


@contextmanager
def progress(options: argparse.Namespace, total: int | None) -> Iterator[Callable[[str, int], None] | None]:
    """Yield what is to be told of progress; it draws on a terminal, and nowhere else.

    Parameters
    ----------
    options
        Quiet and JSON draw nothing.
    total
        Bytes of one step, or None.
    """
    if options.quiet or options.json or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - 100 ms, for terminals only
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description:<7}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, object] = {}

        def tell(step: str, n: int) -> None:
            if step not in tasks:
                tasks[step] = bars.add_task(step, total=total)
            bars.advance(tasks[step], n)  # type: ignore[arg-type]

        yield tell

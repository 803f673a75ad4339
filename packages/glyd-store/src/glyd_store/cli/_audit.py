# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``audit``: what a store would save on files, estimated from a sample."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

from glyd_store._errors import StoreError
from glyd_store._store import Store
from glyd_store.cli._report import print_facts, size_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator
    from typing import BinaryIO


class _Head:
    """The first bytes of a file, as a file that cannot seek."""

    def __init__(self, file: BinaryIO, left: int) -> None:
        self._file = file
        self._left = left

    def read(self, n: int) -> bytes:
        """Return the next bytes."""
        data = self._file.read(min(n, self._left))
        self._left -= len(data)
        return data


def _walk(path: str) -> Iterator[tuple[str, int]]:
    if os.path.isfile(path):
        yield path, os.path.getsize(path)
        return
    if not os.path.isdir(path):
        raise StoreError(f"{path} is no file or folder")
    for folder, _, names in os.walk(path):
        for name in sorted(names):
            full = os.path.join(folder, name)
            if os.path.isfile(full) and not os.path.islink(full):
                yield full, os.path.getsize(full)


def audit(options: argparse.Namespace) -> int:
    """Print what a store would save."""
    if options.path.startswith("s3://"):
        from glyd_store._s3 import iter_bucket, open_object  # noqa: PLC0415 - needs the extra

        listed = list(iter_bucket(options.path))
        opener: Callable[[str], BinaryIO] = open_object
    else:
        listed = list(_walk(options.path))
        opener = _open_file
    total = sum(size for _, size in listed)
    if not total:
        raise StoreError(f"{options.path} holds no bytes")
    budget = options.sample * 1_000_000
    chosen = _choose(listed, budget)
    store = Store("memory:", level=options.level, threads=options.threads)
    taken = 0
    for path, size in chosen:
        n = min(size, budget - taken)
        with opener(path) as file:
            store.put(path, _Head(file, n))  # type: ignore[arg-type]
        taken += n
    found = store.stats()
    whole = total * found.stored_nbytes / max(taken, 1)
    price = options.price / 1e12
    facts: dict[str, object] = {
        "n_files": len(listed),
        "content_nbytes": total,
        "sample_nbytes": taken,
        "stored_estimate_nbytes": int(whole),
        "ratio": round(taken / max(found.stored_nbytes, 1), 2),
        "price_now_month": round(total * price, 2),
        "price_stored_month": round(whole * price, 2),
    }
    print_facts(facts, options)
    if not options.json and not options.quiet:
        kept = f"{size_text(total)} would take about {size_text(whole)}"
        print(f"{kept}: estimated from {size_text(taken)}; versions outside the sample save more")
    return 0


def _open_file(path: str) -> BinaryIO:
    return open(path, "rb")


def _choose(listed: list[tuple[str, int]], budget: int) -> list[tuple[str, int]]:
    """Return files to look at: runs of neighbours, as versions of one thing are listed side by side."""
    if sum(size for _, size in listed) <= budget:
        return listed
    rng = random.Random(0)  # noqa: S311 - the same sample every time
    starts = list(range(0, len(listed), 8))
    rng.shuffle(starts)
    chosen: list[tuple[str, int]] = []
    left = budget
    for start in starts:
        for path, size in listed[start : start + 8]:
            if left <= 0:
                return chosen
            if size:
                chosen.append((path, size))
                left -= size
    return chosen

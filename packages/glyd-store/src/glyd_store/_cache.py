# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Memory that is used again: bases that were decoded lately, and room to read and decode into."""

from __future__ import annotations

import mmap
import os
import threading
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import glyd

IN_MEMORY_NBYTES = 64 << 20
"""Contents up to this are held in memory as a whole; larger ones go through it piece by piece."""

BASE_IN_MEMORY_NBYTES = 256 << 20
"""Bases up to this are decoded into memory; larger ones into a temporary file, which takes longer."""

LOADED_NBYTES = 256 << 20
"""Inputs up to this are held in memory from the second one on that is larger than `IN_MEMORY_NBYTES`: they come one
after the other, then, and each is the base of the next, which would have to be decoded into as much memory."""

LOADED_SHARE = 16
"""That is, where the machine has so many times the memory."""

CACHE_NBYTES = LOADED_NBYTES
N_CACHED = 1
"""Most versions are based on the one before. Each more is memory that is touched for the first time."""

KEPT_NBYTES = 256 << 20
_SLACK = 1 << 20
_LARGE_MIN = 4 << 20
_LARGE_MAX = 128 << 20  # what a machine has used lately, and has at hand


class BaseCache:
    """The contents that were used last as bases, or may be next: of versions put one after the other, the one before.

    Parameters
    ----------
    most, n_most
        Bytes of content to keep, and number of contents.

    Notes
    -----
    Threads may share it.
    """

    def __init__(self, most: int = CACHE_NBYTES, n_most: int = N_CACHED) -> None:
        self._lock = threading.Lock()
        self._bases: OrderedDict[bytes, glyd.Base] = OrderedDict()
        self._most = most
        self._n_most = n_most
        self._nbytes = 0

    def get(self, sha256: bytes) -> glyd.Base | None:
        """Return the content with a hash, if it is here."""
        with self._lock:
            base = self._bases.get(sha256)
            if base is not None:
                self._bases.move_to_end(sha256)
            return base

    def put(self, sha256: bytes, base: glyd.Base) -> None:
        """Keep a content in memory, and let go of those not used for longest. Nobody may close it any more."""
        if base.nbytes > self._most:
            return
        with self._lock:
            old = self._bases.pop(sha256, None)
            self._nbytes += base.nbytes - (old.nbytes if old is not None else 0)
            self._bases[sha256] = base
            while self._nbytes > self._most or len(self._bases) > self._n_most:
                _, dropped = self._bases.popitem(last=False)
                self._nbytes -= dropped.nbytes

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._bases.clear()
            self._nbytes = 0


class Memory:
    """Memory that is used again: where it is fresh, its pages cost more than reading or decoding into them.

    Notes
    -----
    Threads may share it. What is lent is free again when no view of it is left.
    """

    def __init__(self, most: int = KEPT_NBYTES) -> None:
        self._lock = threading.Lock()
        self._most = most
        self._blocks: list[bytearray | mmap.mmap] = []

    def lend(self, n: int) -> memoryview:
        """Return n bytes of memory with anything in them."""
        with self._lock:
            free = [block for block in self._blocks if _is_free(block)]
            block = min((b for b in free if n <= len(b) <= 2 * n + _SLACK), key=len, default=None)
            if block is None:
                block = _new_block(n + n // 8 + 1)  # the next version is a little larger
                self._blocks.append(block)
                kept = sum(map(len, self._blocks))
                for old in free:
                    if kept > self._most:
                        kept -= len(old)
                        self._blocks.remove(old)
            return memoryview(block)[:n]

    def clear(self) -> None:
        """Let go of the memory."""
        with self._lock:
            self._blocks.clear()


def loaded_max() -> int:
    """Return the bytes of an input that this machine, or the group of processes, has memory for."""
    return min(LOADED_NBYTES, _memory_nbytes() // LOADED_SHARE)


def _memory_nbytes() -> int:
    try:
        nbytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not a system that says so
        return 0
    with suppress(OSError, ValueError), open("/sys/fs/cgroup/memory.max", "rb") as file:
        nbytes = min(nbytes, int(file.read(32)))  # "max": there is no limit
    return max(nbytes, 0)


def _new_block(n: int) -> bytearray | mmap.mmap:
    """Return memory, in large pages where the system has them: faulting it in then takes a sixth of the time."""
    if not _LARGE_MIN <= n <= _LARGE_MAX or not hasattr(mmap, "MADV_HUGEPAGE"):
        return bytearray(n)
    block = mmap.mmap(-1, n, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a system without them
        block.madvise(mmap.MADV_HUGEPAGE)
    return block


def _is_free(block: bytearray | mmap.mmap) -> bool:
    """Say whether no view of a block is left: only then its size can be changed."""
    try:
        if isinstance(block, bytearray):
            block.append(block.pop())
        else:
            block.resize(len(block))
    except BufferError:
        return False
    return True

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Memory that is used again: bases that were decoded lately, and room to decode into."""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import glyd

IN_MEMORY_NBYTES = 64 << 20
"""Contents up to this are held in memory as a whole; larger ones go through it piece by piece."""

CACHE_NBYTES = 128 << 20
_SPARE = 4


class BaseCache:
    """The contents that were used last as bases, or may be next: of versions put one after the other, the one before.

    Parameters
    ----------
    most
        Bytes of content to keep.

    Notes
    -----
    Threads may share it.
    """

    def __init__(self, most: int = CACHE_NBYTES) -> None:
        self._lock = threading.Lock()
        self._bases: OrderedDict[bytes, glyd.Base] = OrderedDict()
        self._most = most
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
            while self._nbytes > self._most:
                _, dropped = self._bases.popitem(last=False)
                self._nbytes -= dropped.nbytes

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._bases.clear()
            self._nbytes = 0


class Scratch:
    """Memory to decode into: fresh memory costs more than decoding.

    Notes
    -----
    Threads may share it; each gets memory of its own, and one piece is kept.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: bytearray | None = None

    @contextmanager
    def lend(self, n: int) -> Iterator[memoryview]:
        """Yield n bytes of memory with anything in them."""
        with self._lock:
            memory, self._kept = self._kept, None
        if memory is None or len(memory) < n:
            memory = bytearray(n + n // _SPARE)  # the next version is a little larger
        with memoryview(memory) as whole, whole[:n] as view:
            yield view
        with self._lock:
            self._kept = memory if len(memory) <= IN_MEMORY_NBYTES + IN_MEMORY_NBYTES // _SPARE else None

    def clear(self) -> None:
        """Let go of the memory."""
        with self._lock:
            self._kept = None

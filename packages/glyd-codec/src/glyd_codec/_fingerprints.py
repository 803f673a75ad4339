# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""`Fingerprinter`: which contents are alike."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from glyd_codec._buffers import borrow, scratch
from glyd_codec._native import ffi, lib

if TYPE_CHECKING:
    from typing import Any

    from _typeshed import ReadableBuffer

_PIECE_NBYTES = 4 << 20  # room for fingerprints stays at 512 KiB


class Fingerprinter:
    """Find values that contents with common parts have in common.

    A fingerprint depends on 64 bytes of content and nothing else, and the places that have
    one, about one in 4,096, are chosen by these bytes: what is inserted or removed before
    them changes nothing. They are the same on every machine and in every version.

    Notes
    -----
    Content comes piece by piece; how it is cut makes no difference. Threads may share an
    object: its methods run one at a time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = ffi.new("glyd_fingerprint_state *")

    def update(self, data: ReadableBuffer) -> list[int]:
        """Take the next piece of content and return its fingerprints.

        Parameters
        ----------
        data
            Any C-contiguous buffer; read in place.

        Returns
        -------
        list of int
            Numbers below 2^64, in the order of their places.

        Notes
        -----
        The GIL is released.
        """
        src = borrow(data)
        try:
            with self._lock:
                return self._walk(src, len(src))
        finally:
            ffi.release(src)

    def _walk(self, src: Any, size: int) -> list[int]:
        room = min(size, _PIECE_NBYTES) // int(lib.GLYD_FINGERPRINT_SPACING) + 2
        out = ffi.cast("uint64_t *", memory := scratch(8 * room))
        found: list[int] = []
        for start in range(0, size, _PIECE_NBYTES):
            n = min(_PIECE_NBYTES, size - start)
            n_found = lib.glyd_fingerprints(self._state, src + start, n, out)
            found += ffi.unpack(out, n_found) if n_found else []
        del memory
        return found

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""The check that frames and packed models carry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glyd_codec._buffers import borrow, to_bytes
from glyd_codec._native import ffi, lib

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def checksum(data: ReadableBuffer) -> int:
    """Return XXH3 (64 bits, seed 0) of data: finds damage, does not stop a forger.

    Parameters
    ----------
    data
        Any C-contiguous buffer; read in place.

    Returns
    -------
    int
        0 … 2^64 − 1.

    Raises
    ------
    TypeError, BufferError
        For data that is no C-contiguous buffer.

    Notes
    -----
    The GIL is released.
    """
    src = borrow(data)
    try:
        return int(lib.glyd_checksum(src, len(src)))
    finally:
        ffi.release(src)


def checksum128(data: ReadableBuffer) -> bytes:
    """Return XXH3 (128 bits, seed 0) of data, in its canonical order: what names bases, and ``xxh128sum`` prints.

    Parameters
    ----------
    data
        Any C-contiguous buffer; read in place.

    Returns
    -------
    bytes
        16 bytes.

    Raises
    ------
    TypeError, BufferError
        For data that is no C-contiguous buffer.

    Notes
    -----
    The GIL is released.
    """
    src = borrow(data)
    try:
        out = ffi.new("uint8_t[16]")
        lib.glyd_checksum128(src, len(src), out)
        return to_bytes(out, 16)
    finally:
        ffi.release(src)

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""How the process of the command keeps memory; a program that uses `Store` decides that for itself."""

from __future__ import annotations

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # <malloc.h>
_KEPT_NBYTES = 256 << 20
_BLOCK_NBYTES = 128 << 20
_BLOCK_NBYTES_OLD = 32 << 20  # what glibc took up to 2.34


def keep_freed() -> None:
    """Let glibc keep blocks that are freed: each version is compressed in the memory of the one before.

    Left to itself it gives blocks of more than 32 MiB back to the system and gets them again, page by page, for
    the next version: a tenth of the time of a put. Other C libraries are left as they are.
    """
    import ctypes  # noqa: PLC0415 - costs 1.2 ms

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # no such function; Windows has no name for the program itself
        return
    mallopt(_M_TRIM_THRESHOLD, _KEPT_NBYTES)
    if not mallopt(_M_MMAP_THRESHOLD, _BLOCK_NBYTES):
        mallopt(_M_MMAP_THRESHOLD, _BLOCK_NBYTES_OLD)

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Segments stored with a dictionary for the reference decoder: docs/format.md in plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reference_blocks import decode_lz
from reference_cold import decode_cold
from reference_cold_tables import model_memory

if TYPE_CHECKING:
    from reference_bytes import Bytes

FIRST: Final = 1 << 20
LEARNT_MAX: Final = 128


def dictionary_memory(content: int) -> tuple[int, int]:
    """Return what is added to the memory of a frame, and the least that a cold record adds."""
    return FIRST + (1 << 20), model_memory(min(content, FIRST) + (1 << 20))


def decode_dictionary(payload: Bytes, size: int, dictionary: bytes, *, has_cold: bool) -> bytes:
    """Return the content of a segment of this size; dictionary is the content of one."""
    form = payload.number(1, "form")
    payload.require(form <= has_cold, f"form {form}")
    if form == 1:
        payload.require(size <= FIRST, f"{size} bytes, at most {FIRST} expected")
        payload.require(len(dictionary) // LEARNT_MAX <= size, f"{len(dictionary)} bytes learnt for {size}")
        return decode_cold(payload, size, dictionary)
    if size <= FIRST:
        return decode_lz(payload, size, dictionary)
    first = decode_lz(payload.part(payload.varint("size of the first blocks"), "first blocks"), FIRST, dictionary)
    return first + decode_lz(payload, size - FIRST, first)

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Opened content for the reference decoder: native/src/deflate/spec.md, "Opened content"."""

from __future__ import annotations

from typing import Final

from reference_bytes import Bytes, FormatError
from reference_opened import area_max, rebuild

CONTENT_MAX: Final = 1 << 28
MAGIC: Final = b"glydopnd"


def decode_content(data: bytes) -> bytes:
    """Return the content of which these bytes are opened content."""
    if data[: len(MAGIC)] != MAGIC[: len(data)]:
        raise FormatError("magic", 0, f"{data[: len(MAGIC)]!r}, expected {MAGIC!r}")
    source = Bytes(data, 0, len(data), bad="corrupt", short="corrupt")
    if len(data) < len(MAGIC):
        raise FormatError("truncated", 0, f"{len(data)} bytes, {len(MAGIC)} expected")
    source.take(len(MAGIC), "magic")
    size = source.varint("content")
    source.require(1 <= size <= CONTENT_MAX, f"{size} bytes of content")
    n_streams = source.varint("streams") >> 1
    inside, kept, described = (source.varint(what) for what in ("bytes inside", "bytes kept", "description"))
    is_sound = n_streams > 0 and inside + kept <= area_max(size) and kept <= size
    source.require(is_sound, f"{n_streams} streams, {inside} and {kept} bytes")
    source.require(inside + kept + described == source.left, f"{inside}, {kept}, {described} bytes, {source.left} left")
    parts = source.take(inside, "inside"), source.take(kept, "kept")
    return rebuild(source.part(described, "description"), size, n_streams, *parts)

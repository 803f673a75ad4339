# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Filtered segments that keep or break each rule of native/src/filter/spec.md; see frame_breaker.py."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import frame_writer as w
from block_breaker import Case, good
from frame_writer import Segment, frame

FILTERED: Final = 8


def filtered(head: bytes, changed: bytes, content: bytes = b"", *, tail: bytes = b"") -> bytes:
    """Return a frame of a segment: head, a raw block of the changed content."""
    payload = head + w.block(0, 0, len(changed), changed) + tail
    return frame([Segment(FILTERED, content or changed, payload)], check_kind=2 if content else 0)


def filter_cases() -> Iterator[Case]:
    """Rules about filters."""
    # call to the start, jump to place 7, then a jcc and a mov out of range, and what is no instruction at the end
    code = b"\xe8" + struct.pack(">i", 0) + b"\xe9" + struct.pack(">i", 7) + b"\x0f\x84" + struct.pack(">i", -3)
    code += b"\x48\x8b\x05" + struct.pack(">i", 1000) + b"\xe8\x01\x02\x03"
    back = b"\xe8" + struct.pack("<i", -5) + b"\xe9" + struct.pack("<i", -3) + b"\x0f\x84" + struct.pack("<i", -3 + 27)
    back += b"\x48\x8b\x05" + struct.pack("<i", 1000) + b"\xe8\x01\x02\x03"
    yield good("filter-x86", filtered(b"\1", code, back), back)
    words = struct.pack("<4I", 0x94000000, 0x94000000, 0x97FFFFFF, 0x90000005) + b"abc"
    relative = struct.pack("<4I", 0x94000000, 0x97FFFFFF, 0x97FFFFFD, 0x90000005) + b"abc"
    yield good("filter-arm64", filtered(b"\2", words, relative), relative)
    yield good("filter-delta-bytes", filtered(b"\3\0", b"\1\1\1\xff", b"\1\2\3\2"), b"\1\2\3\2")
    stereo = struct.pack("<6H", 1, 10, 65535, 1, 2, 65535) + b"x"
    levels = struct.pack("<6H", 1, 10, 0, 11, 2, 10) + b"x"
    yield good("filter-delta-stereo", filtered(b"\3\5", stereo, levels), levels)
    yield good("filter-delta-short", filtered(b"\3\x3e", b"abc", b"abc"), b"abc")
    for kind in (0, 4, 128, 255):
        yield Case(f"filter-{kind}", filtered(bytes([kind]), b"abc"), "corrupt")
    for shape in (3, 7, 64, 128):
        yield Case(f"filter-delta-{shape}", filtered(bytes([3, shape]), b"abc"), "corrupt")
    yield Case("filter-alone", frame([Segment(FILTERED, b"abc", b"\3")]), "corrupt")
    yield Case("filter-no-blocks", frame([Segment(FILTERED, b"abc", b"\1")]), "corrupt")
    yield Case("filter-bytes-left", filtered(b"\1", b"abc", tail=b"\0"), "corrupt")
    changed = filtered(b"\1", code, back)
    yield Case("filter-check", changed.replace(code[:5], b"\xe8\0\0\0\1"), "checksum")

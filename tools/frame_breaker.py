# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Frames that break one rule of the format each, named after it, with the category that refuses them.

Every case has a valid frame beside it that differs in nothing else (the pages' limits, met exactly, are
among them), so that a reader that refuses too much is found as well. Cases are in the order of the pages.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Final

import frame_writer as w
from block_breaker import A, Case, block_cases, good, plain_cases
from coded_breaker import carried_cases, coded_cases, far_cases, plane_cases
from fields_breaker import fields_cases, piece_cases
from filter_breaker import filter_cases
from fine_breaker import changed_cases, context_cases, near_cases, offset_cases, run_cases
from frame_writer import Segment, extension, frame, raw, skippable

HELLO: Final = [raw(b"hello world")]


# ---- streams, headers, trailers --------------------------------------------


def stream_cases() -> Iterator[Case]:
    """Rules about the content of a file and skippable frames."""
    one = frame(HELLO, known_size=True, with_trailer=False)
    note = skippable(b"note", 7)
    yield Case("stream-empty", b"", "truncated")
    yield good("stream-empty-frame", frame([], known_size=True, with_trailer=False), b"")
    yield good("stream-skippable-alone", note, b"")
    yield good("stream-of-frames", one + note + frame(HELLO) + skippable(b""), b"hello world" * 2)
    yield Case("magic-wrong", b"\x9dGLX" + one[4:], "magic")
    yield Case("magic-wrong-short", b"\x9dX", "magic")
    yield Case("magic-half", one[:3], "truncated")
    yield Case("trailing-zero", one + b"\0", "trailing")
    yield Case("trailing-text", one + note + b"text", "trailing")
    yield Case("trailing-half-magic", one + one[:2], "truncated")
    yield Case("truncated-second-frame", one + one[:-1], "truncated")
    yield Case("skippable-check", skippable(b"note", check_xor=1), "header")
    yield Case("skippable-short", note[:-1], "truncated")
    yield Case("skippable-short-head", note[:19], "truncated")
    yield Case("skippable-of-2^64-1", skippable(b"note", size=(1 << 64) - 1), "truncated")


def header_cases() -> Iterator[Case]:
    """Rules about headers."""
    memory = w.memory_code(16, 11)

    def known(**breaks: Any) -> bytes:
        return frame(HELLO, known_size=True, with_trailer=False, **breaks)

    yield good("header-size-known", known())
    yield good("header-size-unknown", frame(HELLO))
    yield good("header-size-and-trailer", frame(HELLO, known_size=True))
    yield good("header-level-unheard-of", known(level=255))
    yield Case("version-0", known(version=0), "version")
    yield Case("version-2", known(version=2, check_xor=1), "version")
    yield Case("header-check", known(check_xor=1), "header")
    yield Case("header-check-before-feature", known(check_xor=1, flags_xor=0x20), "header")
    for flag in (0x20, 0x40, 0x80):
        yield Case(f"flag-{flag:#x}", known(flags_xor=flag), "feature")
    yield Case("segment-check-3", known(check_kind=3), "feature")
    yield Case("trailer-flag-missing", frame(HELLO, with_trailer=False), "header")
    for log in (0, 9, 31, 255):
        yield Case(f"segment-log-{log}", known(segment_log=log, memory=memory), "header")
    yield good("segment-log-10", known(segment_log=10))
    yield good("segment-log-30", known(segment_log=30))
    yield Case("memory-code-low", known(memory=memory - 1), "header")
    yield Case("memory-code-high", known(memory=memory + 1), "header")
    yield Case("memory-code-low-size-unknown", frame(HELLO, memory=w.memory_code(16, None) - 1), "header")
    yield Case("memory-code-high-size-unknown", frame(HELLO, memory=w.memory_code(16, None) + 1), "header")
    yield Case("size-varint-not-canonical", known(size_field=b"\x8b\x00"), "header")
    yield Case("size-varint-11-bytes", known(size_field=b"\xff" * 10 + b"\x01"), "header")
    yield Case("size-of-2^64", known(size_field=b"\xff" * 9 + b"\x02"), "header")
    yield Case("size-of-2^63", known(content_size=1 << 63), "header")
    even, odd = extension(4, b"data"), extension(5, b"data")
    yield good("extensions-none", known(extensions=b""))
    yield good("extension-even", known(extensions=even + extension((1 << 64) - 2, b"")))
    yield Case("extension-odd", known(extensions=even + odd), "feature")
    yield Case("extension-odd-then-malformed", known(extensions=odd + b"\x04\x05"), "header")
    yield Case("extension-past-end", known(extensions=even[:-1]), "header")
    yield Case("extension-type-alone", known(extensions=even + b"\x04"), "header")
    yield Case("extension-type-not-canonical", known(extensions=b"\x84\x00\x00"), "header")
    yield Case("extension-length-not-canonical", known(extensions=b"\x04\x80\x00"), "header")
    yield Case("extensions-size-not-canonical", known(extensions=even, extensions_size=b"\x86\x00"), "header")
    yield Case("extensions-size-over-2^20", known(extensions=b"", extensions_size=w.varint((1 << 20) + 1)), "header")
    yield Case("extensions-short", known(extensions=even)[:14], "truncated")


def segment_cases() -> Iterator[Case]:
    """Rules about segments."""
    two = w.block(0, 0, 1, A) * 2

    def one(*, trailer: bool = True, check_kind: int = 0, **fields: Any) -> bytes:
        segment = dataclasses.replace(Segment(w.RAW, b"aa", b"aa"), **fields)
        return frame([segment], known_size=not trailer, with_trailer=trailer, check_kind=check_kind)

    yield good("segment-raw", one(), b"aa")
    yield good("segment-fill", one(kind=w.FILL, payload=A), b"aa")
    yield good("segment-lz", one(kind=w.LZ, payload=two), b"aa")
    for kind in (100, 127, 128, 255):
        yield Case(f"segment-kind-{kind}", one(kind=kind), "feature")
        yield Case(f"segment-kind-{kind}-size-known", one(kind=kind, trailer=False), "feature")
    yield Case("segment-of-0", one(content_size=0, payload=b""), "corrupt")
    yield good("segment-of-most", frame([raw(bytes(1024))], segment_log=10), bytes(1024))
    yield Case("segment-of-more", frame([raw(bytes(1025))], segment_log=10), "corrupt")
    yield Case("segment-of-2^40", one(content_size=1 << 40), "corrupt")
    yield Case("segment-of-2^64", one(size_fields=b"\xff" * 9 + b"\x02\x02"), "corrupt")
    yield Case("segment-size-not-canonical", one(size_fields=b"\x82\x00\x02"), "corrupt")
    yield Case("payload-size-not-canonical", one(size_fields=b"\x02\x82\x00"), "corrupt")
    yield Case("payload-size-over", one(kind=w.LZ, payload=two + bytes(4099 - len(two))), "corrupt")
    yield Case("payload-size-2^63", one(kind=w.LZ, payload_size=1 << 63), "corrupt")
    yield Case("raw-payload-long", one(payload=b"aaa"), "corrupt")
    yield Case("raw-payload-short", one(payload=A), "corrupt")
    yield Case("fill-payload-long", one(kind=w.FILL, payload=b"aa"), "corrupt")
    yield Case("fill-payload-empty", one(kind=w.FILL, payload=b""), "corrupt")
    for check_kind in (1, 2):
        for name, kind, payload in (("raw", w.RAW, b"aa"), ("fill", w.FILL, A), ("lz", w.LZ, two)):
            fields: dict[str, Any] = {"kind": kind, "payload": payload, "check_kind": check_kind}
            yield good(f"check-{check_kind}-{name}", one(**fields), b"aa")
            yield Case(f"check-{check_kind}-{name}-wrong", one(check_xor=128, **fields), "checksum")
    for trailer in (False, True):
        suffix = "-and-trailer" * trailer
        yield Case(
            f"size-known-low{suffix}", frame(HELLO, known_size=True, with_trailer=trailer, content_size=10), "corrupt"
        )
    yield Case("size-known-high", frame(HELLO, known_size=True, with_trailer=False, content_size=12), "truncated")
    yield Case("size-known-high-and-trailer", frame(HELLO, known_size=True, content_size=12), "corrupt")
    full = frame([*HELLO, *HELLO], check_kind=1, known_size=True)
    for size in range(4, len(full)):
        yield Case(f"truncated-at-{size}", full[:size], "truncated")


def trailer_cases() -> Iterator[Case]:
    """Rules about trailers."""
    head = w.header(segment_log=16)
    part = HELLO[0].bytes(0)

    def index(*entries: tuple[int, int]) -> bytes:
        return head + part + w.trailer(len(head) + len(part), 16, entries)

    for known in (False, True):
        suffix = "-size-known" * known
        for name in ("content", "frame", "size", "check"):
            breaks: dict[str, Any] = {f"trailer_{name}_xor": 1}
            broken = frame(HELLO, known_size=known, **breaks)
            yield Case(f"trailer-{name}{suffix}", broken, "corrupt")
        yield Case(f"trailer-count-low{suffix}", frame(HELLO * 2, known_size=known, trailer_n=b"\1"), "corrupt")
        yield Case(f"trailer-count-high{suffix}", frame(HELLO * 2, known_size=known, trailer_n=b"\3"), "corrupt")
    yield good("index-right", index((11, len(part))))
    yield Case("index-content-size", index((12, len(part))), "corrupt")
    yield Case("index-stored-size", index((11, len(part) + 1)), "corrupt")
    yield Case("index-one-more", index((11, len(part)), (1, 5)), "corrupt")
    yield Case("index-none", index(), "corrupt")
    yield Case("index-split", index((5, 7), (6, len(part) - 7)), "corrupt")
    yield Case("trailer-count-huge", frame(HELLO, trailer_n=w.varint(1 << 40)), "corrupt")
    yield Case("trailer-count-not-canonical", frame(HELLO, trailer_n=b"\x81\x00"), "corrupt")
    segment_there = frame(HELLO, known_size=True)[: -len(w.trailer(0, 16, [(11, 11)]))] + part + bytes(30)
    yield Case("segment-where-trailer-must-be", segment_there, "corrupt")


GROUPS: Final[tuple[Callable[[], Iterator[Case]], ...]] = (
    stream_cases,
    header_cases,
    segment_cases,
    trailer_cases,
    block_cases,
    plain_cases,
    coded_cases,
    carried_cases,
    far_cases,
    plane_cases,
    piece_cases,
    fields_cases,
    context_cases,
    run_cases,
    changed_cases,
    offset_cases,
    near_cases,
    filter_cases,
)


def cases() -> Iterator[Case]:
    """Return all cases."""
    for group in GROUPS:
        yield from group()

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""LZ segments that break one rule of blocks, or of plain blocks, each; see frame_breaker.py."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import frame_writer as w
from frame_writer import Plain, Segment, frame

A: Final = b"a"


class Case(NamedTuple):
    """A stream; category is None for a valid one, whose content then counts."""

    name: str
    data: bytes
    category: str | None
    content: bytes = b""


def good(name: str, data: bytes, content: bytes = b"hello world") -> Case:
    """Return a valid case."""
    return Case(name, data, None, content)


# ---- blocks ----------------------------------------------------------------


def lz(content: bytes, *blocks: bytes) -> bytes:
    """Return a frame of one LZ segment, checked: wrong content is told from refused content."""
    return frame(
        [Segment(w.LZ, content, b"".join(blocks))], known_size=True, with_trailer=False, check_kind=1, segment_log=19
    )


def block_cases() -> Iterator[Case]:
    """Rules about blocks of all types."""
    a = w.block(0, 0, 1, A)
    yield good("block-raw", lz(b"aa", w.block(0, 0, 2, b"aa")), b"aa")
    yield good("block-fill", lz(b"aa", w.block(1, 0, 2, A)), b"aa")
    yield good("block-of-most", lz(A * (1 << 18), w.block(1, 0, 1 << 18, A)), A * (1 << 18))
    yield Case("block-of-more", lz(A * ((1 << 18) + 1), w.block(1, 0, (1 << 18) + 1, A)), "corrupt")
    yield Case("block-of-0", lz(b"aa", w.block(0, 0, 0, b""), w.block(0, 0, 2, b"aa")), "corrupt")
    yield Case("block-past-segment", lz(b"aa", a, w.block(1, 0, 2, A)), "corrupt")
    yield Case("blocks-end-early", lz(b"aa", a), "corrupt")
    yield Case("bytes-after-blocks", lz(b"aa", a, a, b"\0"), "corrupt")
    yield Case("block-after-blocks", lz(b"aa", a, a, a), "corrupt")
    for flag in (1, 2, 4, 8, 16, 32):
        yield Case(f"block-raw-flag-{flag}", lz(A, w.block(0, flag, 1, A)), "corrupt")
        yield Case(f"block-fill-flag-{flag}", lz(A, w.block(1, flag, 1, A)), "corrupt")
    yield Case("block-raw-short", lz(b"aa", w.block(0, 0, 2, A)), "corrupt")
    yield Case("block-raw-long", lz(A, w.block(0, 0, 1, b"aa")), "corrupt")
    yield Case("block-fill-long", lz(b"aa", w.block(1, 0, 2, b"aa")), "corrupt")
    yield Case("block-fill-empty", lz(b"aa", w.block(1, 0, 2, b"")), "corrupt")
    yield Case("block-body-past-payload", lz(A, w.block(0, 0, 1, A, body_size=2)), "corrupt")
    yield Case("block-body-2^63", lz(A, w.block(0, 0, 1, A, body_size=1 << 63)), "corrupt")
    yield Case("block-size-not-canonical", lz(A, b"\0\x81\0\1a"), "corrupt")
    yield Case("block-body-size-not-canonical", lz(A, b"\0\1\x81\0a"), "corrupt")
    yield Case("block-head-alone", lz(b"aa", a, b"\0"), "corrupt")


def plain_cases() -> Iterator[Case]:
    """Rules about plain blocks: a base case of 20 bytes, then one field changed."""
    # 2 literals, match of 7 at 1; 9 literals (escape), match of 2 at 2
    text = b"abbbbbbbbcdefghijkjk"

    def token(n_literals: int, code: int, f: int = 0) -> int:
        return n_literals | code << 3 | f << 7

    base = Plain(
        base=1, offsets=[1, 2], tokens=[token(2, 6), token(7, 1)], ll_escapes=[2], literals=b"abcdefghijk",
    )  # fmt: skip

    def one(content: bytes = text, **fields: Any) -> bytes:
        return lz(content, dataclasses.replace(base, **fields).bytes(len(content)))

    yield good("plain", one(), text)
    for flag in (4, 8, 16, 32):
        yield Case(f"plain-flag-{flag}", one(flags_xor=flag), "corrupt")
    yield Case("plain-match-base-0", one(base=0, tokens=[token(2, 7), token(7, 2)]), "corrupt")
    yield Case("plain-no-sequences", lz(A, Plain(literals=A).bytes(1)), "corrupt")
    yield Case("plain-literals-left", one(literals=base.literals + A), "corrupt")
    yield Case("plain-literals-short", one(literals=base.literals[:-1]), "corrupt")
    yield Case("plain-content-short", one(text + A), "corrupt")
    yield Case("plain-offset-0", one(offsets=[0, 2]), "corrupt")
    yield Case("plain-offset-before-segment", one(offsets=[3, 2]), "corrupt")
    yield Case("plain-offset-before-segment-by-far", one(offsets=[65535, 2]), "corrupt")
    yield Case("plain-match-past-block", one(tokens=[token(2, 6), token(7, 2)]), "corrupt")
    yield Case("plain-literals-past-block", one(ll_escapes=[100]), "corrupt")
    yield Case("plain-ll-escape-missing", one(ll_escapes=[], literals=b"abcdefghi", counts={}), "corrupt")
    yield Case("plain-ll-escape-left", one(ll_escapes=[2, 0]), "corrupt")
    yield Case("plain-ml-escape-left", one(ml_escapes=[0]), "corrupt")
    yield Case("plain-ml-escape-missing", one(tokens=[token(2, 15), token(7, 1)]), "corrupt")
    yield Case("plain-third-byte-left", one(thirds=[0]), "corrupt")
    yield Case("plain-third-byte-missing", one(tokens=[token(2, 6, 1), token(7, 1)]), "corrupt")
    yield good("plain-third-byte-0", one(tokens=[token(2, 6, 1), token(7, 1)], thirds=[0]), text)
    yield Case("plain-third-byte-1", one(tokens=[token(2, 6, 1), token(7, 1)], thirds=[1]), "corrupt")
    yield Case("plain-long-left", one(longs=b"\0"), "corrupt")
    yield Case("plain-offset-left", one(offsets=[1, 2, 1]), "corrupt")
    yield Case("plain-offset-missing", one(offsets=[1]), "corrupt")
    for name, value in (("n", 3), ("n_ll", 3), ("n_ml", 3), ("n_off", 3), ("n_far", 3), ("n_long", 13)):
        yield Case(f"plain-{name}-over", one(counts={name: value}), "corrupt")
        yield Case(f"plain-{name}-2^63", one(counts={name: 1 << 63}), "corrupt")
    table = bytes([9] * 6 + [7] + [2] * 8)
    own: dict[str, Any] = {"own_lengths": table, "tokens": [token(2, 6), token(7, 14)]}
    yield good("plain-own-lengths", one(**own), text)
    yield good(
        "plain-own-lengths-base", one(**{**own, "tokens": [token(2, 15), token(7, 14)], "ml_escapes": [6]}), text
    )
    yield Case("plain-own-length-0", one(**{**own, "own_lengths": b"\0" + table[1:]}), "corrupt")
    repeat: dict[str, Any] = {"repeat_form": True}
    yield good("plain-repeat-form", one(**repeat), text)
    first: dict[str, Any] = {**repeat, "tokens": [token(2, 6, 1), token(7, 1)]}
    yield good("plain-repeat-first", one(**first, offsets=[2]), text)
    yield Case("plain-repeat-offset-left", one(**first), "corrupt")
    yield good("plain-repeat-third-0", one(**repeat, offsets=[1 | 1 << 15, 2], thirds=[0]), text)
    yield Case("plain-repeat-third-missing", one(**repeat, offsets=[1 | 1 << 15, 2]), "corrupt")
    yield Case("plain-repeat-offset-0", one(**repeat, offsets=[1 << 15, 2], thirds=[0]), "corrupt")
    # one literal, a match of 255 + more
    long = Plain(offsets=[1], tokens=[token(1, 15)], ml_escapes=[239], longs=b"\0", literals=A)
    for more in (0, 127, 128, 16384, (1 << 18) - 256):
        content = A * (256 + more)
        yield good(
            f"plain-long-{more}",
            lz(content, dataclasses.replace(long, longs=w.varint(more)).bytes(len(content))),
            content,
        )
    for name, longs in (
        ("missing", b""),
        ("not-canonical", b"\x80\0"),
        ("past-block", b"\1"),
        ("over", w.varint((1 << 18) + 1)),
        ("cut", b"\x80"),
    ):
        yield Case(f"plain-long-{name}", lz(A * 256, dataclasses.replace(long, longs=longs).bytes(256)), "corrupt")
    start = w.block(0, 0, 1, A)
    for n, category in ((1 << 16, None), ((1 << 16) + 1, "corrupt")):
        many = Plain(offsets=[1] * n, tokens=[token(0, 2)] * n).bytes(3 * n)
        content = A * (3 * n + 1)
        yield Case("plain-sequences-" + ("over" if category else "most"), lz(content, start, many), category, content)

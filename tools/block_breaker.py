# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""LZ segments that break one rule of the block and Huffman pages each; see frame_breaker.py."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import frame_writer as w
from frame_writer import Plain, Segment, frame, plane

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


# ---- coded blocks ----------------------------------------------------------

TWO_CODES: Final = {97: 1, 98: 1}


def coded(
    content_size: int, *, own: bytes | None = None, raw_bits: bytes = b"", longs: list[int] | None = None, flags_xor: int = 0,
    written: dict[str, bytes] | None = None, **planes: bytes,
) -> bytes:  # fmt: skip
    """Return a coded block: planes are raw but for those in written."""
    out = {name: plane(planes.get(name, b"")) for name in w.CODED_PLANES[:5]}
    if "lows" in planes:
        out["lows"] = plane(planes["lows"])
    for i in range(3 * (longs is not None)):
        out[f"long_{i}"] = plane(bytes(value >> (8 * i) & 255 for value in longs or []))
    return w.CodedBody(out | (written or {}), own_lengths=own, raw_bits=raw_bits, flags_xor=flags_xor).bytes(
        content_size
    )


def command(n_literals: int, code: int, which: int) -> int:
    """Return a command byte."""
    return n_literals | code << 2 | which << 6


def coded_cases() -> Iterator[Case]:
    """Rules about coded blocks: a base case, then one field changed."""
    # 3 literals, match of 4 at 1 (slot 0); 5 literals, match of 21 at 9 (a new offset, with one raw bit); 1 literal
    text = b"abccccc" + b"defgh" + b"ccccdefghccccdefghccc" + b"i"
    values = {
        "literals": b"abcdefghi", "commands": bytes([command(3, 0, 0), command(3, 15, 3)]), "ll_escapes": b"\0\2",
        "ml_escapes": b"\2", "offset_codes": b"\x08",
    }  # fmt: skip

    def one(content: bytes = text, raw_bits: bytes = b"\0", **changed: Any) -> bytes:
        return lz(content, coded(len(content), **{**values, "raw_bits": raw_bits, **changed}))

    yield good("coded", one(), text)
    yield good("coded-padding", one(raw_bits=b"\xfe"), text)
    for flag in (8, 16, 32):
        yield Case(f"coded-flag-{flag}", one(flags_xor=flag), "corrupt")
    yield good("coded-no-sequences", lz(b"aaa", coded(3, literals=b"aaa")), b"aaa")
    yield Case("coded-nothing", lz(b"aaa", coded(3)), "corrupt")
    for name, value in values.items():
        yield Case(f"coded-{name}-left", one(**{name: value + value[-1:]}), "corrupt")
        yield Case(f"coded-{name}-missing", one(**{name: value[:-1]}), "corrupt")
    yield Case("coded-content-short", one(text + A), "corrupt")
    yield Case("coded-match-past-block", one(ml_escapes=b"\4"), "corrupt")
    yield Case("coded-match-past-block-by-far", one(ml_escapes=b"\xc8"), "corrupt")
    yield Case("coded-raw-bits-left", one(raw_bits=b"\0\0"), "corrupt")
    yield Case("coded-raw-bits-missing", one(raw_bits=b""), "corrupt")
    yield Case("coded-offset-before-segment", one(offset_codes=b"\x0a"), "corrupt")
    yield Case("coded-slot-before-segment", one(commands=bytes([command(3, 0, 1), command(3, 15, 3)])), "corrupt")
    yield Case("coded-lows-left", one(lows=b"\0"), "corrupt")
    yield good("coded-lows-empty", one(lows=b""), text)
    for code in (199, 200, 255):
        yield Case(
            f"coded-offset-code-{code}",
            one(offset_codes=bytes([code]), raw_bits=bytes(3 if code < 200 else code >> 6)),
            "corrupt",
        )
    most = 1 << 18
    content = A * (1 + most)
    for n, category in ((1 << 16, None), ((1 << 16) + 1, "corrupt")):
        blocks = [w.block(0, 0, 1, A), coded(most, written={"commands": plane(bytes(n), 1)})]
        yield Case("coded-sequences-" + ("over" if category else "most"), lz(content, *blocks), category, content)
    table = bytes([4, 9, 12, 21, *range(30, 40), 254])
    own: dict[str, Any] = {"own": table, "ml_escapes": b"", "commands": bytes([command(3, 0, 0), command(3, 3, 3)])}
    yield good("coded-own-lengths", one(**own), text)
    yield good("coded-own-lengths-escape", one(own=table, ml_escapes=b"\x11"), text)
    for name, wrong in (("3", b"\3" + table[1:]), ("255", table[:-1] + b"\xff"), ("equal", b"\4\4" + table[2:])):
        yield Case(f"coded-own-lengths-{name}", one(**{**own, "own": wrong}), "corrupt")

    # one literal, then a match as long as what is left
    def match(content_size: int, escape: int = 255, **changed: Any) -> bytes:
        args: dict[str, Any] = {
            "literals": A,
            "commands": bytes([command(1, 15, 0)]),
            "ml_escapes": bytes([escape]),
            **changed,
        }
        return lz(A * content_size, coded(content_size, **args))

    for size in (255, 256, 65535, 65536, (1 << 18) - 1):
        yield good(f"coded-long-{size}", match(size + 1, longs=[size]), A * (size + 1))
    for escape, limit in ((235, False), (236, True), (254, True)):
        size = 300 if limit else 254
        changed = {"longs": [size]} if limit else {}
        yield good(f"coded-escape-{escape}", match(size + 1, escape, **changed), A * (size + 1))
    yield good("coded-own-escape-250", match(255, 250, own=table), A * 255)
    yield good("coded-own-escape-251", match(301, 251, own=table, longs=[300]), A * 301)
    yield Case("coded-long-254", match(255, longs=[254]), "corrupt")
    yield Case("coded-long-past-block", match(256, longs=[256]), "corrupt")
    yield Case("coded-long-2^24-1", match(256, longs=[(1 << 24) - 1]), "corrupt")
    yield Case("coded-long-planes-missing", match(256), "corrupt")
    yield Case("coded-long-left", match(256, longs=[255, 255]), "corrupt")
    yield Case("coded-long-planes-empty", lz(A, coded(1, literals=A, longs=[])), "corrupt")
    for i in range(3):
        uneven = {f"long_{i}": plane(bytes([255 * (i == 0), 0]))}
        yield Case(f"coded-long-planes-uneven-{i}", match(256, longs=[255], written=uneven), "corrupt")
    n = 514
    many: dict[str, Any] = {
        "commands": bytes([command(3, 15, 0)]) * n,
        "ll_escapes": b"\xff" * n,
        "ml_escapes": b"\xff" * n,
    }
    for more, category in ((0, None), (1, "corrupt")):
        longs = [255] * (2 * n + more)  # 1,028 and one more
        block = coded(510 * n, literals=A * (255 * n), longs=longs, **many)
        yield Case("coded-long-" + ("over" if category else "most"), lz(A * (510 * n), block), category, A * (510 * n))


def carried_cases() -> Iterator[Case]:
    """Rules about what coded blocks carry from one to the next."""
    ab = b"ab" * 100

    def literals(mode: int, content: bytes = ab) -> bytes:
        return coded(len(content), written={"literals": plane(content, mode, TWO_CODES)})

    plain = Plain(offsets=[1], tokens=[1], literals=b"x").bytes(2)
    yield good("table-own-then-last", lz(ab * 2, literals(2), literals(3)), ab * 2)
    yield good(
        "table-kept-over-others",
        lz(ab * 2 + b"xx" + ab, literals(2), literals(0), plain, literals(3)),
        ab * 2 + b"xx" + ab,
    )
    yield Case("table-none", lz(ab, literals(3)), "corrupt")
    yield Case(
        "table-of-segment-before", frame([Segment(w.LZ, ab, literals(2)), Segment(w.LZ, ab, literals(3))]), "corrupt"
    )
    other = {"literals": plane(A * 12, 2, {97: 1, 1: 1}), "commands": plane(b"\1\1", 3, {97: 1, 1: 1})}
    yield Case("table-of-other-kind", lz(A * 20, coded(20, written=other)), "corrupt")
    low = {"long_0": plane(b"\x01", 2, {0: 1, 1: 1}), "long_1": plane(b"\x01", 3, {0: 1, 1: 1})}
    args: dict[str, Any] = {
        "literals": A,
        "commands": bytes([command(1, 15, 0)]),
        "ml_escapes": b"\xff",
        "longs": [257],
    }
    yield Case("table-of-other-long-plane", lz(A * 258, coded(258, **args, written=low)), "corrupt")
    # the first block puts 3 into the front slot; the second uses it
    first = coded(7, literals=b"abc", commands=bytes([command(3, 0, 3)]), ll_escapes=b"\0", offset_codes=b"\2")
    second = coded(4, commands=bytes([command(0, 0, 0)]))
    yield good("slots-carried", lz(b"abcabcabcab", first, second), b"abcabcabcab")
    text = b"abcabca" + b"xx" + b"axxa"
    yield good("slots-carried-over-others", lz(text, first, plain, second), text)
    both = frame(
        [
            Segment(w.LZ, b"abcabca", first),
            Segment(w.LZ, b"aaaaa", coded(5, literals=A, commands=bytes([command(1, 0, 0)]))),
        ]
    )
    yield good("slots-of-segment-anew", both, b"abcabcaaaaaa")


def plane_cases() -> Iterator[Case]:
    """Rules about Huffman planes, on literals."""

    def one(content: bytes, written: bytes) -> bytes:
        return lz(content, coded(len(content), written={"literals": written}))

    def bits(*items: tuple[str, int]) -> bytes:
        out = w.BitWriter()
        for kind, value in items:
            out.gamma(value) if kind == "gamma" else out.put(1 << value, value + 1)
        return out.bytes()

    for mode in (0, 1):
        yield good(f"plane-mode-{mode}", one(b"aaa", plane(b"aaa", mode)), b"aaa")
    yield Case("plane-fill-cut", lz(b"aaa", w.block(3, 0, 3, b"\x0d")), "corrupt")
    yield Case("plane-raw-cut", lz(b"aaa", w.block(3, 0, 3, b"\x0caa")), "corrupt")
    for mode in (1, 2, 3):
        yield Case(
            f"plane-empty-mode-{mode}", lz(A, coded(1, literals=A, written={"commands": bytes([mode])})), "corrupt"
        )
    yield Case("plane-size-not-canonical", one(b"aaa", b"\x8c\0aaa"), "corrupt")
    yield Case("plane-too-long", one(b"aaa", plane(b"aaaa")), "corrupt")
    yield Case("plane-too-long-2^62", one(b"aaa", w.varint((1 << 64) - 4)), "corrupt")
    chain = {i: min(i + 1, 11) for i in range(12)}
    flat = dict.fromkeys(range(256), 8)
    edge = {0: 1, 255: 1}
    for name, lengths, symbols in (("chain", chain, range(12)), ("flat", flat, range(256)), ("edge", edge, (0, 255))):
        for n in (1, 2, 255, 256, 257, 1023, 1024, 1025, 3000):
            content = bytes(symbols[(i * i + i // 7) % len(symbols)] for i in range(n))
            yield good(f"plane-{name}-{n}", one(content, plane(content, 2, lengths)), content)
    ab = (b"ab" * 600)[:1200]
    for n in (2, 300, 1200):
        parts = w.streams(ab[:n], TWO_CODES)
        head = w.varint(n * 4 + 2) + w.code_lengths(TWO_CODES)

        def streams(changed: list[bytes], n: int = n, head: bytes = head) -> bytes:
            return one(ab[:n], head + w.join_streams(changed, n))

        yield good(f"streams-{n}", streams(parts), ab[:n])
        yield Case(f"streams-{n}-last-long", streams([*parts[:-1], parts[-1] + b"\0"]), "corrupt")
        yield Case(f"streams-{n}-last-short", streams([*parts[:-1], parts[-1][:-1]]), "corrupt")
        for i in range(len(parts) - 1):
            yield Case(f"streams-{n}-{i}-long", streams([*parts[:i], parts[i] + b"\0", *parts[i + 1 :]]), "corrupt")
            yield Case(f"streams-{n}-{i}-short", streams([*parts[:i], parts[i][:-1], *parts[i + 1 :]]), "corrupt")
            yield Case(f"streams-{n}-{i}-empty", streams([*parts[:i], b"", *parts[i + 1 :]]), "corrupt")
    two = w.streams(ab[:300], TWO_CODES)
    head = w.varint(300 * 4 + 2) + w.code_lengths(TWO_CODES)
    yield Case("stream-size-not-canonical", one(ab[:300], head + b"\x93\0" + b"".join(two)), "corrupt")
    yield Case("stream-size-past-plane", one(ab[:300], head + w.varint(1 << 40) + b"".join(two)), "corrupt")
    yield Case(
        "stream-sizes-past-plane",
        one(ab, w.varint(4802) + w.code_lengths(TWO_CODES) + b"\xff" * 14 + bytes(150)),
        "corrupt",
    )

    def code(*items: tuple[str, int]) -> bytes:
        return one(ab[:2], w.varint(2 * 4 + 2) + bits(*items) + b"\2" + bytes(9))

    a = ("gamma", 98)  # 97 unused symbols, then a
    yield Case("code-length-0", code(a, ("gamma", 2), ("zeros", 13), ("zeros", 0)), "corrupt")
    yield Case("code-length-12", code(a, ("gamma", 2), ("zeros", 10), ("zeros", 0)), "corrupt")
    yield Case("code-length-unary-endless", code(a, ("gamma", 2), ("zeros", 200)), "corrupt")
    yield Case("code-gamma-endless", code(("zeros", 60)), "corrupt")
    yield Case("code-sum-over", code(a, ("gamma", 3), ("zeros", 11), ("zeros", 0), ("zeros", 0)), "corrupt")
    yield Case("code-sum-over-in-end", code(a, ("gamma", 3), ("zeros", 11), ("zeros", 2), ("zeros", 1)), "corrupt")
    yield Case(
        "code-sum-under", code(a, ("gamma", 1), ("zeros", 11), ("gamma", 158), ("gamma", 1), ("zeros", 2)), "corrupt"
    )
    yield Case("code-symbol-256", code(("gamma", 257), ("gamma", 1), ("zeros", 11)), "corrupt")
    yield Case("code-symbol-256-in-run", code(("gamma", 256), ("gamma", 2), ("zeros", 11), ("zeros", 0)), "corrupt")
    yield Case("code-cut", lz(b"ab", coded(2, written={"literals": b"\x0a\x40"})), "corrupt")

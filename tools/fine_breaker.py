# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""LZ segments that break one rule of fine blocks or of planes with contexts each; see frame_breaker.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import frame_writer as w
from block_breaker import A, Case, good, lz
from coded_breaker import coded, command
from frame_writer import Segment, frame

FINE: Final = 8  # flags of a fine block, to be set by flags_xor
NEAR: Final = 16
TWO: Final = {97: 1, 98: 1}


def fine_plane(content: bytes, mode: int = 0, rest: bytes | None = None) -> bytes:
    """Return a fine plane, raw unless rest is what follows the head."""
    return w.varint(len(content) << 3 | mode) + (content if rest is None else rest)


def fine(content_size: int, *, flags: int = FINE, written: dict[str, bytes] | None = None, **planes: Any) -> bytes:
    """Return a fine block: its fine planes are raw but for those in written."""
    raw = {name: fine_plane(planes.pop(name, b"")) for name in ("literals", "commands", "offset_codes")}
    return coded(content_size, written=raw | (written or {}), flags_xor=flags, **planes)


def map_bits(numbers: list[int], width: int) -> bytes:
    """Return a map."""
    bits = w.BitWriter()
    for number in numbers:
        bits.put(number, width)
    return bits.bytes()


def bits_of(*zeros: int) -> bytes:
    """Return so many zero bits and a one, for each."""
    bits = w.BitWriter()
    for count in zeros:
        bits.put(1 << count, count + 1)
    return bits.bytes()


def changed_cases() -> Iterator[Case]:
    """Rules about code lengths as differences from the last ones."""
    text = b"aababaaab" * 30
    own = fine_plane(text, 2, w.code_lengths(TWO) + w.join_streams(w.streams(text, TWO), len(text)))

    def block(content: bytes, differences: bytes, lengths: dict[int, int]) -> bytes:
        plane = fine_plane(content, 7, differences + w.join_streams(w.streams(content, lengths), len(content)))
        return fine(len(content), written={"literals": plane})

    first = fine(len(text), written={"literals": own})
    for name, lengths in (
        ("same", TWO), ("removed", {97: 1, 99: 1}), ("more", {97: 1, 98: 2, 100: 2}), ("before", {0: 1, 97: 2, 98: 2}),
        ("all-others", {1: 1, 255: 1}), ("last", {97: 1, 98: 2, 255: 2}),
    ):  # fmt: skip
        content = bytes(sorted(lengths)) * 90
        data = lz(text + content, first, block(content, w.differences(TWO, lengths), lengths))
        yield good(f"fine-changed-{name}", data, text + content)
    for name, differences in (
        ("length-0", bits_of(1, 2)), ("length-13", bits_of(24, 0)), ("kraft-over", bits_of(2, 0, 0, 10)), ("new-length-0", bits_of(2, 0, 0, 11)),
        ("past-255", bits_of(22, 22, 8) + b"\xff" * 30),
    ):  # fmt: skip
        yield Case(f"fine-changed-{name}", lz(text * 2, first, block(text, differences, TWO)), "corrupt")
    alone = block(text, w.differences(TWO, TWO), TWO)
    yield Case("fine-changed-none", lz(text, alone), "corrupt")
    before = [Segment(w.LZ, text, first), Segment(w.LZ, text, alone)]
    yield Case("fine-changed-of-segment-before", frame(before), "corrupt")


def streams(content: bytes, *, last_size: int = 0) -> bytes:
    """Return the eight streams of a, b and what costs no bits: one bit for each b after anything and a after a."""
    chunk = -(-len(content) // 8)
    parts = []
    for at in range(0, 8 * chunk, chunk):
        bits = w.BitWriter()
        for i, symbol in enumerate(content[at : at + chunk]):
            if i == 0 or content[at + i - 1] == 97:  # after b there is a, in no bits
                bits.put(symbol - 97, 1)
        parts.append(bits.bytes())
    sizes = [len(part) for part in parts[:7]]
    sizes[6] += last_size
    return b"".join(size.to_bytes(2, "little") for size in sizes) + b"".join(parts)


def context_cases() -> Iterator[Case]:
    """Rules about planes with contexts: a base case, then one field changed."""
    text = b"aababaaab" * 30
    # table 0: a and b; table 1: a alone, after b. Contexts: 0, a, b
    codes = w.code_lengths(TWO)
    tables = b"\2\2" + codes + b"a" + map_bits([0, 0, 1], 1)

    def literals(mode: int = 4, head: bytes = tables, content: bytes = text, **more: Any) -> bytes:
        plane = fine_plane(content, mode, head + streams(content, **more))
        return fine(len(content), written={"literals": plane})

    yield good("fine-contexts", lz(text, literals()), text)
    yield good("fine-contexts-padding", lz(text, literals(head=tables[:-1] + bytes([tables[-1] | 0xF8]))), text)
    yield good("fine-contexts-last", lz(text * 2, literals(), literals(5, b"")), text * 2)
    yield good("fine-contexts-least", lz(text[:256], literals(content=text[:256])), text[:256])
    yield Case("fine-contexts-few", lz(text[:255], literals(content=text[:255])), "corrupt")
    yield Case("fine-contexts-none", lz(text, literals(5, b"")), "corrupt")
    before = [Segment(w.LZ, text, literals()), Segment(w.LZ, text, literals(5, b""))]
    yield Case("fine-contexts-of-segment-before", frame(before), "corrupt")
    yield Case("fine-changes-none", lz(text, literals(6, b"\0\0")), "corrupt")
    for name, head, content in (
        ("no", b"\0\0", text), ("single", b"\2\2a", text), ("same", b"\1\0" + w.differences(TWO, TWO), text),
        ("to-code", b"\3\2" + w.differences(TWO, TWO) + b"a", text),
    ):  # fmt: skip
        yield good(f"fine-changes-{name}", lz(text * 2, literals(), literals(6, head)), text + content)
    for name, head in (
        ("table-2", b"\4\0"), ("single-unchanged", b"\0\2a"), ("length-0", b"\1\0" + bits_of(2, 1)),
        ("kraft-over", b"\1\0" + bits_of(2, 0, 0, 10)), ("length-13", b"\1\0" + bits_of(24, 0)),
    ):  # fmt: skip
        yield Case(f"fine-changes-{name}", lz(text * 2, literals(), literals(6, head)), "corrupt")
    for n in (0, 1, 9, 255):
        yield Case(f"fine-tables-{n}", lz(text, literals(head=bytes([n]) + tables[1:])), "corrupt")
    yield Case("fine-singles-more", lz(text, literals(head=b"\2\6" + tables[2:])), "corrupt")
    three = b"\3\6" + codes + b"aa"
    yield good("fine-map-two-bits", lz(text, literals(head=three + map_bits([0, 0, 2], 2))), text)
    yield Case("fine-map-over", lz(text, literals(head=three + map_bits([0, 0, 3], 2))), "corrupt")
    yield Case(
        "fine-map-missing", lz(text, fine(len(text), written={"literals": fine_plane(text, 4, tables[:-1])})), "corrupt"
    )
    yield Case("fine-stream-size", lz(text, literals(last_size=1)), "corrupt")
    over = fine(len(text) - 1, written={"literals": fine_plane(text, 4, tables + streams(text))})
    yield Case("fine-plane-over", lz(text[:-1], over), "corrupt")
    commands = {"commands": fine_plane(A * 300, 4, b"\7\x7f" + A * 7 + map_bits([0, 0], 3) + bytes(14))}
    yield Case("fine-command-tables", lz(A * 4000, fine(4000, written=commands)), "corrupt")


def run_cases() -> Iterator[Case]:
    """Rules about contexts of literals that the commands give."""
    n = 200
    pair = bytes([command(2, 0, 0)])  # two literals, and three bytes at offset 1
    content = b"abbbb" * n
    # Two tables of one symbol, a and b: no bits. Contexts: 0, a, b, then those of runs
    head = b"\x82\3ab"
    tables = head + map_bits([0, 1, 1] + [0] * 96, 1)
    text = (b"a" + b"b" * 49) * 8  # without commands

    def block(
        literals: bytes = text, commands: bytes = b"", *, mode: int = 4, rest: bytes = tables, **args: Any
    ) -> bytes:
        plane = fine_plane(literals, mode, rest + bytes(14))
        size = args.pop("size", len(content))
        return fine(size, written={"literals": plane}, commands=commands, **args)

    pairs: dict[str, Any] = {"literals": b"ab" * n, "commands": pair * n}
    yield good("fine-runs", lz(content, block(**pairs)), content)
    yield good("fine-runs-last", lz(content * 2, block(**pairs), block(**pairs, mode=5, rest=b"")), content * 2)
    yield good("fine-runs-changes", lz(content * 2, block(**pairs), block(**pairs, mode=6, rest=b"\1\1a")), content * 2)
    alone = block(mode=5, rest=b"", size=len(text))
    yield good("fine-runs-none", lz(content + text, block(**pairs), alone), content + text)
    by_command = [c in (1, 0x39) for c in range(256) if c & 3 and not c & 4]
    more: dict[str, tuple[int, int, int, dict[str, Any]]] = {
        "one": (command(1, 0, 0), 1, 3, {}),
        "escape": (command(3, 0, 0), 19, 3, {"ll_escapes": b"\x10"}),
        "match-escape": (command(1, 15, 0), 1, 162, {"ml_escapes": b"\x90"}),
        "long": (command(3, 0, 0), 300, 3, {"ll_escapes": b"\xff", "longs": [300]}),
        "long-match": (command(2, 15, 0), 2, 300, {"ml_escapes": b"\xff", "longs": [300]}),
    }
    for name, (code, n_literals, length, args) in more.items():
        literals, rest = text, tables
        if n_literals == 1:  # this literal is another by the command
            literals, rest = b"b" + text[1:], head + map_bits([0, 1, 1, *by_command], 1)
        whole = literals[:n_literals] + literals[n_literals - 1 : n_literals] * length + literals[n_literals:]
        data = block(literals, bytes([code]), rest=rest, size=len(whole), **args)
        yield good(f"fine-runs-{name}", lz(whole, data), whole)
    broken: dict[str, dict[str, Any]] = {
        "literals-few": {"literals": b"ab" * (n - 1)},
        "escapes-none": {"commands": pair * (n - 1) + bytes([command(3, 0, 0)])},
        "escapes-few": {"commands": bytes([command(3, 0, 0)]) * n, "ll_escapes": b"\0" * 100},
        "match-escapes-none": {"commands": pair * (n - 1) + bytes([command(2, 15, 0)])},
        "longs-none": {"commands": bytes([command(3, 0, 0)]) + pair * (n - 1), "ll_escapes": b"\xff"},
        "longs-few": {"commands": bytes([command(3, 15, 0)]) + pair * 5, "ll_escapes": b"\xff", "ml_escapes": b"\xff",
                      "longs": [300]},
        "map-missing": {"rest": head},
        "tables-9": {"rest": b"\x89" + tables[1:]},
        "tables-none": {"rest": b"\x80" + tables[1:]},
    }  # fmt: skip
    for name, wrong in broken.items():
        yield Case(f"fine-runs-{name}", lz(content, block(**(pairs | wrong))), "corrupt")
    flagged = fine_plane(pair * 300, 4, b"\x81\1" + pair + bytes(1 + 14))
    long = b"abbbb" * 300
    data = fine(len(long), literals=b"ab" * 300, written={"commands": flagged})
    yield Case("fine-runs-of-commands", lz(long, data), "corrupt")


def offset_cases() -> Iterator[Case]:
    """Rules about the contexts of offset codes, and about lengths of fine blocks."""
    n = 300
    # a literal, then matches of 3 at offset 1 (code 0, no bits), as new offsets all
    commands = bytes([command(1, 0, 3)]) + bytes([command(0, 0, 3)]) * (n - 1)
    content = A * (1 + 3 * n)
    tables = b"\1\1\0"

    def block(count: int = n, rest: bytes = tables, size: int = len(content), **changed: Any) -> bytes:
        plane = fine_plane(bytes(count), 4, rest + bytes(14))
        args = {"literals": A, "commands": commands, **changed}
        return fine(size, written={"offset_codes": plane}, **args)

    yield good("fine-offsets", lz(content, block()), content)
    yield Case("fine-offsets-over", lz(content, block(n + 1)), "corrupt")
    yield Case("fine-offsets-left", lz(content, block(n - 1)), "corrupt")
    yield Case("fine-offset-tables", lz(content, block(rest=b"\6\x3f" + bytes(6) + bytes(24))), "corrupt")
    table = bytes([2, *range(10, 23), 254])
    short = A * (1 + 2 * n)
    yield good("fine-lengths-2", lz(short, block(own=table, size=len(short))), short)
    yield Case("fine-lengths-1", lz(short, block(own=b"\1" + table[1:], size=len(short))), "corrupt")
    escape = bytes([command(1, 15, 0)])
    for own, size in ((None, 19), (table, 3)):
        data = fine(size + 1, literals=A, commands=escape, ml_escapes=b"\1", own=own)
        yield good(f"fine-escape-{size}", lz(A * (size + 1), data), A * (size + 1))


def near_cases() -> Iterator[Case]:
    """Rules about offsets near those of slots, which are 1, 4 and 8."""

    def one(code: int, content: bytes, raw_bits: bytes = b"", flags: int = FINE | NEAR) -> bytes:
        """Return five literals and a match of three."""
        return lz(
            content, fine(8, flags=flags, literals=b"abcde", commands=bytes([command(3, 0, 3)]), ll_escapes=b"\2",
            offset_codes=bytes([code]), raw_bits=raw_bits),
        )  # fmt: skip

    for name, code, raw_bits, offset in (
        ("above-0", 200, b"", 2), ("above-1", 201, b"", 3), ("above-2", 202, b"\1", 5), ("slot-1-above-0", 218, b"", 5),
        ("slot-1-below-0", 227, b"", 3), ("slot-1-below-2", 229, b"\1", 1), ("slot-2-below-3", 248, b"\3", 3),
    ):  # fmt: skip
        content = b"abcde" + (b"abcde"[-offset:] * 3)[:3]
        yield good(f"near-{name}", one(code, content, raw_bits), content)
    for name, code, raw_bits in (
        ("to-0", 209, b""), ("to-0-of-slot-2", 248, b"\0"), ("below-0", 217, b"\0"), ("below-0-by-1", 210, b""),
        ("before-segment", 203, b"\0"), ("before-segment-slot-2", 236, b""), ("before-segment-by-far", 208, b"\0"),
        ("code-254", 254, b""), ("code-255", 255, b""),
    ):  # fmt: skip
        yield Case(f"near-{name}", one(code, b"abcdeabc", raw_bits), "corrupt")
    yield Case("near-flag-missing", one(218, b"abcdeabc", flags=FINE), "corrupt")
    yield Case("near-flag-alone", one(218, b"abcdeabc", flags=NEAR), "corrupt")

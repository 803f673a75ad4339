# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""LZ segments that break one rule of coded blocks or of Huffman planes each; see frame_breaker.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import frame_writer as w
from block_breaker import A, Case, good, lz
from frame_writer import Plain, Segment, frame, plane

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


def far_cases() -> Iterator[Case]:
    """Offsets at the ends of their ranges: 32 bytes at the start, fill blocks up to where a match is as far as it gets."""
    start = bytes(range(32))

    def one(offset: int, block: bytes) -> tuple[bytes, bytes]:
        fills = [min(1 << 18, offset - 27 - at) for at in range(0, offset - 27, 1 << 18)]
        payload = w.block(0, 0, 32, start) + b"".join(w.block(1, 0, size, b"f") for size in fills)
        content = start + b"f" * (offset - 27) + start[5:13]
        segment = Segment(w.LZ, content, payload + block)
        return frame([segment], known_size=True, with_trailer=False, segment_log=26), content

    for offset in (1 << 15, (1 << 16) - 1, 1 << 16, 1 << 23, (1 << 24) - 1):
        plain = Plain(base=8, offsets=[offset & 0xFFFF], tokens=[1 << 7], thirds=[offset >> 16])
        yield good(f"far-plain-{offset}", *one(offset, plain.bytes(8)))
    for offset in ((1 << 15) + 1, (1 << 16) - 1, (1 << 23) - 1):
        plain = Plain(base=8, offsets=[offset & 0x7FFF | 1 << 15], tokens=[0], thirds=[offset >> 15], repeat_form=True)
        yield good(f"far-plain-repeat-form-{offset}", *one(offset, plain.bytes(8)))
    for n_bits in (7, 8, 9, 16, 20):
        for lows in (False, True):
            for v in ((8 << n_bits), (16 << n_bits) - 1):
                split = 8 if lows and n_bits >= 8 else 0
                x = v & (1 << n_bits) - 1
                changed: dict[str, Any] = {"lows": bytes([x & 255]) if split else b""} if lows else {}
                bits = (x >> split).to_bytes((n_bits - split + 7) // 8, "little")
                code = bytes([n_bits << 3 | v >> n_bits & 7])
                block = coded(8, commands=bytes([command(0, 4, 3)]), offset_codes=code, raw_bits=bits, **changed)
                yield good(f"far-coded-{v - 7}{'-lows' * lows}", *one(v - 7, block))


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

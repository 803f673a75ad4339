# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Write the parts of frames byte by byte, as docs/format.md and the spec pages say.

For tests of decoders: nothing is chosen and nothing checked here, so that frames which no encoder would
write, and broken ones, can be put together (frame_generator.py, frame_breaker.py).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from reference_xxh3 import xxh3_64

FRAME_MAGIC: Final = bytes.fromhex("9D474C59")
SKIPPABLE_MAGIC: Final = bytes.fromhex("9D474C53")
RAW, FILL, LZ, WEIGHTS = 1, 2, 3, 6
CHECK_SIZES: Final = (0, 4, 8, 8)
CODE_BITS_MAX: Final = 11

# ---- numbers ---------------------------------------------------------------


def varint(value: int) -> bytes:
    """Return the canonical varint."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def zigzag(value: int) -> int:
    """Map 0, -1, 1, -2, … to 0, 1, 2, 3, … of these."""
    return 2 * value if value >= 0 else -2 * value - 1


def check(data: bytes, size: int = 4) -> bytes:
    """Return the low bytes of the hash."""
    return xxh3_64(data).to_bytes(8, "little")[:size]


class BitWriter:
    """A string of bits, least significant first in each byte."""

    def __init__(self) -> None:
        self.value = 0
        self.size = 0

    def put(self, value: int, count: int) -> None:
        """Append an integer of so many bits."""
        self.value |= value << self.size
        self.size += count

    def gamma(self, value: int) -> None:
        """Append an Elias gamma code."""
        k = value.bit_length() - 1
        self.put(1 << k, k + 1)
        self.put(value - (1 << k), k)

    def bytes(self) -> bytes:
        """Return the bits, zeros after the last."""
        return self.value.to_bytes((self.size + 7) // 8, "little")


# ---- frames ----------------------------------------------------------------


def memory_code(
    segment_log: int, content_size: int | None, *, has_base: bool = False, has_dictionary: bool = False
) -> int:
    """Return the smallest code that is enough."""
    content = min(1 << segment_log, 1 << 62 if content_size is None else content_size)
    code = 0
    need = (3 if has_base else 2) * content + 4096 + (3 if has_dictionary else 1) * (1 << 20)
    while (8 + code % 8) << (code // 8 + 10) < need:
        code += 1
    return code


def header(
    *,
    content_size: int | None = None,
    check_kind: int = 0,
    trailer: bool = True,
    segment_log: int = 16,
    level: int = 0,
    extensions: bytes | None = None,
    has_base: bool = False,
    has_dictionary: bool = False,
    size_field: bytes | None = None,
    extensions_size: bytes | None = None,
    memory: int | None = None,
    flags_xor: int = 0,
    version: int = 1,
    check_xor: int = 0,
) -> bytes:
    """Return a frame header; the arguments from size_field on are there to break it."""
    flags = check_kind | (content_size is not None) << 2 | trailer << 3 | (extensions is not None) << 4
    out = FRAME_MAGIC + bytes([version, flags ^ flags_xor, level, segment_log])
    code = memory_code(segment_log, content_size, has_base=has_base, has_dictionary=has_dictionary)
    out += bytes([code if memory is None else memory])
    if content_size is not None:
        out += varint(content_size) if size_field is None else size_field
    if extensions is not None:
        out += varint(len(extensions)) if extensions_size is None else extensions_size
        out += extensions
    return out + bytes([check(out)[0] ^ check_xor]) + check(out)[1:]


def extension(record_type: int, data: bytes) -> bytes:
    """Return an extension record."""
    return varint(record_type) + varint(len(data)) + data


@dataclass
class Segment:
    """A segment; the fields from sizes on break it."""

    kind: int
    content: bytes
    payload: bytes
    content_size: int | None = None
    payload_size: int | None = None
    size_fields: bytes | None = None
    check_xor: int = 0

    def bytes(self, check_kind: int) -> bytes:
        """Return header and payload."""
        content_size = len(self.content) if self.content_size is None else self.content_size
        payload_size = len(self.payload) if self.payload_size is None else self.payload_size
        sizes = varint(content_size) + varint(payload_size) if self.size_fields is None else self.size_fields
        hashed = bytearray(check(self.content, CHECK_SIZES[check_kind]))
        if hashed:
            hashed[-1] ^= self.check_xor
        return bytes([self.kind]) + sizes + hashed + self.payload


def raw(content: bytes) -> Segment:
    """Return a raw segment."""
    return Segment(RAW, content, content)


def trailer(
    frame_size_before: int,
    segment_log: int,
    entries: Sequence[tuple[int, int]],
    *,
    n: bytes | None = None,
    content_xor: int = 0,
    frame_xor: int = 0,
    size_xor: int = 0,
    check_xor: int = 0,
) -> bytes:
    """Return a trailer for segments of these content and stored sizes; the last arguments break it."""
    out = b"\0" + (varint(len(entries)) if n is None else n)
    before = (1 << segment_log, 0)
    for entry in entries:
        out += varint(zigzag(entry[0] - before[0])) + varint(zigzag(entry[1] - before[1]))
        before = entry
    size = len(out) + 24
    content = sum(entry[0] for entry in entries)
    out += struct.pack("<QQI", content ^ content_xor, (frame_size_before + size) ^ frame_xor, size ^ size_xor)
    return out + bytes([check(out)[0] ^ check_xor]) + check(out)[1:]


def frame(
    segments: Iterable[Segment],
    *,
    known_size: bool = False,
    with_trailer: bool = True,
    check_kind: int = 0,
    segment_log: int = 16,
    **breaks: Any,
) -> bytes:
    """Return a frame; breaks are arguments of header, or of trailer with a prefix "trailer_"."""
    segments = list(segments)
    in_trailer = {k.removeprefix("trailer_"): v for k, v in breaks.items() if k.startswith("trailer_")}
    in_header = {k: v for k, v in breaks.items() if not k.startswith("trailer_")}
    if known_size:
        in_header.setdefault("content_size", sum(len(s.content) for s in segments))
    out = header(check_kind=check_kind, trailer=with_trailer, segment_log=segment_log, **in_header)
    parts = [segment.bytes(check_kind) for segment in segments]
    out += b"".join(parts)
    if with_trailer:
        entries = [(len(s.content), len(part)) for s, part in zip(segments, parts, strict=True)]
        out += trailer(len(out), segment_log, entries, **in_trailer)
    return out


def skippable(data: bytes, tag: int = 0, *, size: int | None = None, check_xor: int = 0) -> bytes:
    """Return a skippable frame."""
    out = SKIPPABLE_MAGIC + struct.pack("<IQ", tag, len(data) if size is None else size)
    return out + bytes([check(out)[0] ^ check_xor]) + check(out)[1:] + data


def piece(piece_type: int, content_size: int, body: bytes, *, body_size: int | None = None) -> bytes:
    """Return a piece of a weights segment."""
    size = len(body) if body_size is None else body_size
    return bytes([piece_type]) + varint(content_size) + varint(size) + body


# ---- blocks ----------------------------------------------------------------


def block(block_type: int, flags: int, content_size: int, body: bytes, *, body_size: int | None = None) -> bytes:
    """Return a block; flags from bit 2 on."""
    size = len(body) if body_size is None else body_size
    return bytes([block_type | flags << 2]) + varint(content_size) + varint(size) + body


@dataclass
class Plain:
    """The planes of a plain block; counts replaces the numbers of the same names in the head."""

    base: int = 1
    own_lengths: bytes | None = None
    repeat_form: bool = False
    offsets: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    ll_escapes: list[int] = field(default_factory=list)
    ml_escapes: list[int] = field(default_factory=list)
    thirds: list[int] = field(default_factory=list)
    longs: bytes = b""
    literals: bytes = b""
    counts: dict[str, int] = field(default_factory=dict)
    flags_xor: int = 0

    def bytes(self, content_size: int) -> bytes:
        """Return the block."""
        counts = {
            "n": len(self.tokens),
            "n_ll": len(self.ll_escapes),
            "n_ml": len(self.ml_escapes),
            "n_off": len(self.offsets),
            "n_far": len(self.thirds),
            "n_long": len(self.longs),
        } | self.counts
        body = b"".join(varint(count) for count in counts.values()) + bytes([self.base]) + (self.own_lengths or b"")
        body += struct.pack(f"<{len(self.offsets)}H", *self.offsets)
        body += bytes(self.tokens + self.ll_escapes + self.ml_escapes + self.thirds) + self.longs + self.literals
        flags = (self.own_lengths is not None) | self.repeat_form << 1
        return block(2, flags ^ self.flags_xor, content_size, body)


CODED_PLANES: Final = (
    "literals",
    "commands",
    "ll_escapes",
    "ml_escapes",
    "offset_codes",
    "lows",
    "long_0",
    "long_1",
    "long_2",
)


@dataclass
class CodedBody:
    """The planes of a coded block, each written already; a plane that is absent has no bytes."""

    planes: dict[str, bytes]
    own_lengths: bytes | None = None
    raw_bits: bytes = b""
    flags_xor: int = 0

    def bytes(self, content_size: int) -> bytes:
        """Return the block."""
        flags = (self.own_lengths is not None) | ("long_0" in self.planes) << 1 | ("lows" in self.planes) << 2
        order = (*CODED_PLANES[1:], "literals") if self.flags_xor & 8 else CODED_PLANES  # of fine blocks
        body = (self.own_lengths or b"") + b"".join(self.planes.get(name, b"") for name in order)
        return block(3, flags ^ self.flags_xor, content_size, body + self.raw_bits)


def append_match(out: bytearray, length: int, offset: int) -> None:
    """Append a match."""
    start = len(out) - offset
    period = bytes(out[start : start + length])
    out += (period * (length // len(period) + 1))[:length]


def near_offset(slots: list[int], code: int, extra: int) -> int:
    """Return the offset of a near code, less 200, and what its extra bits begin with; not always a good one."""
    slot, below, power = slots[code // 18], code // 9 % 2, code % 9
    x = extra & (1 << max(power - 1, 0)) - 1
    low, high = (1, 1) if power == 0 else (2, 2) if power == 1 else ((1 << power - 1) + 1 + x, (1 << power) - x)
    return slot - high if below else slot + low


# ---- planes ----------------------------------------------------------------


def code_lengths(lengths: dict[int, int]) -> bytes:
    """Return the bytes of code lengths: symbol -> bits."""
    bits = BitWriter()
    symbols = sorted(lengths)
    expected, previous, i = 0, 7, 0
    while i < len(symbols):
        bits.gamma(symbols[i] - expected + (expected == 0))
        run = 1
        while i + run < len(symbols) and symbols[i + run] == symbols[i] + run:
            run += 1
        bits.gamma(run)
        for symbol in symbols[i : i + run]:
            zeros = zigzag(lengths[symbol] - previous)
            bits.put(1 << zeros, zeros + 1)
            previous = lengths[symbol]
        i += run
        expected = symbols[i - 1] + 1
    return bits.bytes()


def differences(before: dict[int, int], lengths: dict[int, int]) -> bytes:
    """Return the bytes of code lengths as differences from others."""
    bits = BitWriter()
    for symbol, length in sorted(before.items()):
        zeros = zigzag(lengths.get(symbol, CODE_BITS_MAX + 1) - length)
        bits.put(1 << zeros, zeros + 1)
    gap = 1
    kraft = sum(1 << (CODE_BITS_MAX - lengths[symbol]) for symbol in lengths.keys() & before.keys())
    for symbol in sorted(set(range(256)) - before.keys()):
        if kraft == 1 << CODE_BITS_MAX:
            break
        if symbol not in lengths:
            gap += 1
            continue
        bits.gamma(gap)
        bits.put(1 << (CODE_BITS_MAX - lengths[symbol]), CODE_BITS_MAX - lengths[symbol] + 1)
        kraft += 1 << (CODE_BITS_MAX - lengths[symbol])
        gap = 1
    return bits.bytes()


def canonical(lengths: dict[int, int]) -> dict[int, tuple[int, int]]:
    """Return symbol -> (code, bits), the code with its first bit lowest."""
    codes = {}
    code = before = 0
    for length, symbol in sorted((length, symbol) for symbol, length in lengths.items()):
        code <<= length - before
        before = length
        codes[symbol] = (int(f"{code:0{length}b}"[::-1], 2), length)
        code += 1
    return codes


def streams(content: bytes, lengths: dict[int, int]) -> list[bytes]:
    """Return the streams of a coded plane."""
    codes = canonical(lengths)
    n_streams = 1 if len(content) < 256 else 2 if len(content) < 1024 else 8
    out = []
    for i in range(n_streams):
        # through text: joining is linear, where a growing integer is not
        bits = "".join(f"{code:0{size}b}"[::-1] for code, size in map(codes.__getitem__, content[i::n_streams]))
        out.append(int(bits[::-1], 2).to_bytes((len(bits) + 7) // 8, "little"))
    return out


def join_streams(parts: Sequence[bytes], n: int) -> bytes:
    """Return sizes and streams of a plane of n bytes."""
    sizes = b"" if n < 256 else varint(len(parts[0])) if n < 1024 else struct.pack("<7H", *map(len, parts[:7]))
    return sizes + b"".join(parts)


def plane(
    content: bytes, mode: int = 0, lengths: dict[int, int] | None = None, *, n: int | None = None, mode_bits: int = 2
) -> bytes:
    """Return a plane; lengths are the code of modes 2 and 3."""
    out = varint((len(content) if n is None else n) << mode_bits | mode)
    if mode == 0 or not content:
        return out + content
    if mode == 1:
        return out + content[:1]
    return (
        out
        + (code_lengths(lengths or {}) if mode == 2 else b"")
        + join_streams(streams(content, lengths or {}), len(content))
    )

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Opened payloads for the reference decoder: native/src/deflate/spec.md, descriptions and streams."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from reference_deflate import (
    DISTANCES,
    FIXED,
    LITLENS,
    ORDER,
    Model,
    Settings,
    Token,
    code_lengths,
    distance_code,
    item_at,
    item_size,
    length_code,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from reference_bytes import Bytes

M32: Final = 0xFFFFFFFF
TOKENS_MAX: Final = 1 << 20
BREAKS_MAX: Final = 65536
BREAK: Final = 12
AREA_MAX: Final = 1 << 28
INNER_MAX: Final = 1 << 26
ITEM_BITS: Final = {16: 2, 17: 3, 18: 7}


def area_max(content: int) -> int:
    """Return the most bytes that a segment of this content may have inside."""
    return min(64 * content + (1 << 20), AREA_MAX)


def opened_memory(content: int) -> tuple[int, int]:
    """Return what the memory code adds, and the content that segments inside count with."""
    return area_max(content) + (8 << 20), max(content, min(area_max(content), INNER_MAX))


class Code:
    """Bits by chances that learn, all of them by name."""

    def __init__(self, source: Bytes) -> None:
        self.source = source
        self.low, self.high, self.code = 0, M32, int.from_bytes(source.take(4, "code"), "big")
        self.chances: dict[Hashable, tuple[int, int]] = defaultdict(lambda: (1 << 21, 0))

    def bit(self, p: int) -> int:
        """Read a bit that is 1 with p of 65536."""
        middle = self.low + ((self.high - self.low) * p >> 16)
        bit = int(self.code <= middle)
        self.low, self.high = (self.low, middle) if bit else (middle + 1, self.high)
        while (self.low ^ self.high) < 1 << 24:
            self.low, self.high = self.low << 8 & M32, (self.high << 8 | 255) & M32
            self.code = (self.code << 8 | self.source.number(1, "code")) & M32
        return bit

    def flag(self, *name: Hashable) -> int:
        """Read a bit by a chance."""
        p, seen = self.chances[name]
        bit = self.bit(max(p >> 6, 1))
        rate = 2 * seen + 3
        p = p + ((1 << 22) - 1 - p) * 2 // rate if bit else p - p * 2 // rate
        self.chances[name] = (p, min(seen + 1, 127))
        return bit

    def plain(self, bits: int) -> int:
        """Read bits that are as often 0 as 1."""
        value = 0
        for _ in range(bits):
            value = value << 1 | self.bit(1 << 15)
        return value

    def tree(self, bits: int, *name: Hashable) -> int:
        """Read a number of so many bits."""
        node = 1
        for _ in range(bits):
            node = node << 1 | self.flag(*name, node)
        return node - (1 << bits)

    def number(self, *name: Hashable) -> int:
        """Read a number of any size."""
        n = 0
        while n < 31 and self.flag(*name, "length", n):
            n += 1
        high = min(n, 2)
        value = 1 << high | self.tree(high, *name, "high", n)
        return (value << (n - high) | self.plain(n - high)) - 1


class Sink:
    """Bits of a stream."""

    def __init__(self) -> None:
        self.out = bytearray()
        self.bits = self.count = 0

    def put(self, value: int, n: int) -> None:
        """Append n bits, the lowest first."""
        self.bits |= value << self.count
        self.count += n
        while self.count >= 8:
            self.out.append(self.bits & 255)
            self.bits >>= 8
            self.count -= 8


def codes_of(lengths: list[int]) -> dict[int, tuple[int, int]]:
    """Return the canonical code of each symbol, bits turned round, and its length."""
    codes, code = {}, 0
    for bits in range(1, 16):
        for symbol in (s for s, n in enumerate(lengths) if n == bits):
            codes[symbol] = (int(f"{code & ((1 << bits) - 1):0{bits}b}"[::-1], 2), bits)
            code += 1
        code <<= 1
    return codes


class Stream:
    """A stream that is made from its content and description."""

    def __init__(self, code: Code, settings: Settings, content: bytes) -> None:
        self.code, self.content = code, content
        self.model = Model(settings, content)
        self.at = self.history = 0
        self.sink = Sink()

    def require(self, is_right: bool, what: str) -> None:
        """Refuse the payload."""
        self.code.source.require(is_right, what)

    def make(self) -> bytes:
        """Return the stream."""
        flag = self.code.flag
        while True:
            self.block()
            is_last = flag("last", self.at == len(self.content))
            self.flush(is_last)
            if is_last:
                break
            if self.at == len(self.content) and flag("cut"):
                return bytes(self.sink.out)
        self.require(self.at == len(self.content), "a stream ends before its content")
        padding = self.code.plain(7) if flag("padding", 1) else 0
        rest = -self.sink.count % 8
        self.sink.put(padding & ((1 << rest) - 1), rest)
        return bytes(self.sink.out)

    def flush(self, is_last: int) -> None:
        """Write the block that was read."""
        self.sink.put(is_last | self.type << 1, 3)
        if self.type == 0:
            rest = -self.sink.count % 8
            self.sink.put(self.stored_padding & ((1 << rest) - 1), rest)
            self.sink.put(len(self.stored) | (len(self.stored) ^ 0xFFFF) << 16, 32)
            self.sink.out += self.stored
            return
        if self.type == 1:
            litlens, distances = codes_of(FIXED), codes_of([5] * 32)
        else:
            self.put_header()
            litlens, distances = codes_of(self.lengths[: self.n_litlens]), codes_of(self.lengths[self.n_litlens :])
        for length, value in self.tokens:
            if not length:
                self.sink.put(*litlens[value])
                continue
            symbol, bits, extra = length_code(length)
            self.sink.put(*litlens[symbol])
            self.sink.put(extra, bits)
            symbol, bits, extra = distance_code(value)
            self.sink.put(*distances[symbol])
            self.sink.put(extra, bits)
        self.sink.put(*litlens[256])

    def put_header(self) -> None:
        """Write the header of a dynamic block."""
        self.sink.put(self.n_litlens - 257, 5)
        self.sink.put(len(self.lengths) - self.n_litlens - 1, 5)
        self.sink.put(self.n_header - 4, 4)
        for symbol in ORDER[: self.n_header]:
            self.sink.put(self.header[symbol], 3)
        codes = codes_of(self.header)
        for symbol, extra in self.items:
            self.sink.put(*codes[symbol])
            self.sink.put(extra, ITEM_BITS.get(symbol, 0))

    def block(self) -> None:
        """Read a block up to its last flag."""
        code, left = self.code, len(self.content) - self.at
        if code.flag("stored", left == 0):
            self.type = 0
            n = code.number("stored size")
            self.require(n <= min(left, 0xFFFF), f"stored block of {n} bytes, {left} left")
            self.stored_padding = code.plain(7) if code.flag("padding", 0) else 0
            self.stored = self.content[self.at : self.at + n]
            self.at += n
            self.model.has_match = False
            return
        n_tokens = None if code.flag("by rule") else code.number("tokens")
        self.read_tokens(n_tokens)
        counts = Counter(length_code(length)[0] if length else value for length, value in self.tokens)
        counts[256] = 1
        far = Counter(distance_code(value)[0] for length, value in self.tokens if length)
        self.counts = [counts[i] for i in range(LITLENS)], [far[i] for i in range(DISTANCES)]
        litlens, distances = (code_lengths(c, 15) for c in self.counts)
        while len(litlens) > 257 and not litlens[-1]:
            litlens.pop()
        while len(distances) > 1 and not distances[-1]:
            distances.pop()
        self.type = 1 if code.flag("fixed", self.is_fixed(litlens, distances)) else 2
        if self.type == 2:
            self.read_header(litlens, distances)

    def read_tokens(self, n_tokens: int | None) -> None:
        """Read the tokens of a block: so many, or by the rule."""
        model, start = self.model, self.at
        self.tokens: list[Token] = []
        while True:
            left = len(self.content) - self.at
            if n_tokens is None and (left == 0 or model.block_ends(self.tokens, self.at - start)):
                return
            if len(self.tokens) == n_tokens:
                return
            self.require(left > 0 and len(self.tokens) < TOKENS_MAX, "a block of too many tokens")
            if len(self.tokens) % 256 == 0:
                self.require(model.steps <= 512 * len(self.content) + (1 << 22), "a stream of too many candidates")
            predicted = model.predict(self.at)
            is_later = int(model.later is not None)
            kind = 2 + (predicted[0] > 4) + (predicted[0] > 8) if predicted[0] else is_later
            is_right = self.code.flag("right", self.history, kind)
            token = predicted if is_right else self.other(predicted, kind)
            self.history = (self.history << 1 | (1 - is_right)) & 7
            model.accept(self.at, predicted, token)
            self.at += token[0] or 1
            self.tokens.append(token)

    def other(self, predicted: Token, kind: int) -> Token:
        """Read a token that was not predicted."""
        code, model = self.code, self.model
        if predicted[0] and code.flag("literal", kind):
            return 0, self.content[self.at]
        if kind == 1 and code.flag("match before") and model.match:
            return model.match
        is_same = int(predicted[0] > 0 and code.flag("same length", kind))
        length = predicted[0] if is_same else code.tree(8, "length", kind) + 3
        self.require(length <= len(self.content) - self.at, f"a match of {length} bytes")
        rank = code.number("rank", is_same)
        if rank:
            distance = model.candidate(self.at, length, rank - 1)
            self.require(distance > 0, f"no candidate of rank {rank - 1}")
            return length, distance
        distance = code.number("distance") + 1
        self.require(distance <= min(self.at, 32768), f"distance {distance} at {self.at}")
        same = all(self.content[self.at + k] == self.content[self.at + k - distance] for k in range(length))
        self.require(same, "a match that is none")
        return length, distance

    def is_fixed(self, litlens: list[int], distances: list[int]) -> bool:
        """Return whether zlib would write this as a fixed block."""
        items = self.items_of(litlens) + self.items_of(distances)
        header = code_lengths([sum(s == i for s, _ in items) for i in range(19)], 7)
        n_header = max(4, 1 + max(i for i, s in enumerate(ORDER) if header[s]))
        dynamic = 14 + 3 * n_header + sum(header[s] + ITEM_BITS.get(s, 0) for s, _ in items)
        fixed = 0
        for i, n in enumerate(self.counts[0]):
            bits = 0 if i < 265 or i == 285 else (i - 261) // 4
            dynamic += n * ((litlens[i] if i < len(litlens) else -bits) + bits)
            fixed += n * (FIXED[i] + bits)
        for i, n in enumerate(self.counts[1]):
            bits = max((i - 2) // 2, 0)
            dynamic += n * ((distances[i] if i < len(distances) else -bits) + bits)
            fixed += n * (5 + bits)
        return (fixed + 10) // 8 <= (dynamic + 10) // 8

    @staticmethod
    def items_of(lengths: list[int]) -> list[tuple[int, int]]:
        """Return the items that zlib writes for the lengths of one code."""
        items, i = [], 0
        while i < len(lengths):
            items.append(item_at(lengths, i))
            i += item_size(*items[-1])
        return items

    def read_header(self, litlens: list[int], distances: list[int]) -> None:
        """Read how the header differs from the predicted one."""
        code = self.code

        def count(which: int, predicted: int) -> int:
            return predicted if code.flag("same count", which) else code.tree(5, "count", which)

        n_litlens = 257 + count(0, len(litlens) - 257)
        n_distances = 1 + count(1, len(distances) - 1)
        self.require(n_litlens <= LITLENS and n_distances <= DISTANCES, f"{n_litlens} and {n_distances} codes")
        parts = []
        for guess, n in ((litlens, n_litlens), (distances, n_distances)):
            is_same = code.flag("same lengths")
            part = []
            for i in range(n):
                expected = guess[i] if i < len(guess) else 0
                is_expected = is_same or code.flag("same length of", expected)
                part.append(expected if is_expected else code.tree(4, "code length"))
            parts.append(part)
        self.n_litlens, self.lengths = n_litlens, parts[0] + parts[1]
        self.read_items(parts)
        header = code_lengths([sum(s == i for s, _ in self.items) for i in range(19)], 7)
        if not code.flag("same header codes"):
            header = [code.tree(3, "header code") for _ in range(19)]
        used = max([4, *(i + 1 for i, s in enumerate(ORDER) if header[s])])
        self.header, self.n_header = header, 4 + count(2, used - 4)
        self.require(used <= self.n_header <= 19, f"{self.n_header} header codes, {used} used")
        self.require(all(header[s] for s, _ in self.items), "an item without a code")
        for counts, part in zip(self.counts, parts, strict=True):
            self.require(all(i < len(part) and part[i] for i, n in enumerate(counts) if n), "a symbol without a code")

    def read_items(self, parts: list[list[int]]) -> None:
        """Read how the items differ from the predicted ones."""
        code, i, n = self.code, 0, len(self.lengths)
        self.items: list[tuple[int, int]] = []
        while i < n:
            is_first = i < self.n_litlens
            symbol, extra = item_at(parts[not is_first], i - (0 if is_first else self.n_litlens))
            if not code.flag("same item", symbol >= 16):
                symbol = code.tree(5, "item")
                extra = code.plain(7) if symbol >= 16 else 0
                self.require(symbol < 19 and extra >> ITEM_BITS.get(symbol, 0) == 0, f"item {symbol}")
            size = item_size(symbol, extra)
            self.require(size <= n - i and not (symbol == 16 and i == 0), f"item of {size} lengths")
            value = symbol if symbol < 16 else self.lengths[i - 1] if symbol == 16 else 0
            self.require(all(x == value for x in self.lengths[i : i + size]), "items of other lengths")
            self.items.append((symbol, extra))
            i += size


def decode_opened(payload: Bytes, size: int, decode_inner: Callable[[Bytes, int, int], bytes]) -> bytes:
    """Return the content of an opened payload; decode_inner reads one of the segments inside."""
    n_streams = payload.varint("streams") >> 1
    inside = payload.varint("bytes inside")
    kept = payload.varint("bytes kept")
    described = payload.varint("bytes of the description")
    area_size = inside + kept
    payload.require(n_streams > 0 and area_size <= area_max(size) and kept <= size, f"{inside} and {kept} bytes inside")
    payload.require(described <= payload.left, f"description of {described} bytes, {payload.left} left")
    segments = payload.part(payload.left - described, "segments")
    area = bytearray()
    while len(area) < area_size:
        area += decode_inner(segments, min(area_max(size), INNER_MAX), area_size - len(area))
    segments.require(segments.left == 0, f"{segments.left} bytes after the segments")
    return rebuild(payload, size, n_streams, bytes(area[:inside]), bytes(area[inside:]))


def rebuild(description: Bytes, size: int, n_streams: int, inside: bytes, kept: bytes) -> bytes:
    """Make all streams again."""
    code = Code(description)
    out = bytearray()
    settings = Settings()
    for _ in range(n_streams):
        gap, content = code.number("gap"), code.number("content")
        n_breaks = code.number("breaks") if code.flag("broken") else 0
        if not code.flag("same settings"):
            names = ("level", 4), ("filtered", 1), ("memory", 4), ("window", 4), ("gzip", 1)
            settings = Settings(*(code.tree(bits, name) for name, bits in names))
        is_valid = settings.level <= 10 and 1 <= settings.memory <= 9 and 9 <= settings.window <= 15
        description.require(is_valid and n_breaks <= BREAKS_MAX and content < 1 << 31, f"settings {settings}")
        breaks: list[int] = []
        for _ in range(n_breaks):
            before = breaks[-1] if breaks else 0
            breaks.append(before if code.flag("same break") else code.number("break"))
        enough = gap + BREAK * n_breaks <= len(kept) and content <= len(inside)
        description.require(enough, f"{gap} bytes kept and {content} inside, {len(kept)} and {len(inside)} left")
        out += kept[:gap]
        kept = kept[gap:]
        stream = Stream(code, settings, inside[:content]).make()
        inside = inside[content:]
        for part in breaks:
            description.require(part <= len(stream), f"a part of {part} bytes, {len(stream)} left")
            out += stream[:part] + kept[:BREAK]
            stream, kept = stream[part:], kept[BREAK:]
        out += stream
        description.require(len(out) <= size, f"streams of {len(out)} bytes, {size} expected")
    out += kept
    description.require(not inside and len(out) == size, f"{len(inside)} bytes left, {len(out)} of {size}")
    description.require(description.left == 0, f"{description.left} bytes after the description")
    return bytes(out)

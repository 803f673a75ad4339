# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""The model of zlib for the reference decoder: native/src/deflate/spec.md in plain Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

ORDER: Final = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15)
LITLENS: Final = 286
DISTANCES: Final = 30
LEVELS: Final = {
    1: (4, 4, 8, 4), 2: (4, 5, 16, 8), 3: (4, 6, 32, 32), 4: (4, 4, 16, 16), 5: (8, 16, 32, 32),
    6: (8, 16, 128, 128), 7: (8, 32, 128, 256), 8: (32, 128, 258, 1024), 9: (32, 258, 258, 4096),
}  # fmt: skip
RANK_MAX: Final = 256
FIXED: Final = [8] * 144 + [9] * 112 + [7] * 24 + [8] * 8

Token = tuple[int, int]
"""Length and distance of a match; (0, byte) is a literal."""


def length_code(length: int) -> tuple[int, int, int]:
    """Return the code of a match length, how many bits follow it, and their value."""
    if length == 258:
        return 285, 0, 0
    v = length - 3
    bits = max(v.bit_length() - 3, 0)
    return 257 + 4 * bits + (v >> bits), bits, v & ((1 << bits) - 1)


def distance_code(distance: int) -> tuple[int, int, int]:
    """Return the same of a distance."""
    v = distance - 1
    bits = max(v.bit_length() - 2, 0)
    return 2 * bits + (v >> bits), bits, v & ((1 << bits) - 1)


def code_lengths(counts: list[int], longest: int) -> list[int]:
    """Return the lengths of the code that zlib makes for these counts."""
    counts = list(counts)
    used = [i for i, count in enumerate(counts) if count]
    while len(used) < 2:
        last = max(used, default=-1)
        extra = last + 1 if last < 2 else 0
        counts[extra] = 1
        used.append(extra)
    heap = Heap(used, counts)
    parent: dict[int, int] = {}
    order = []
    node = len(counts)
    while len(heap.at) > 1:
        a = heap.take()
        b = heap.at[0]
        order += [a, b]
        parent[a] = parent[b] = node
        heap.join(a, b, node)
        node += 1
    depth = {node - 1: 0}
    overflow = 0
    histogram = [0] * (longest + 2)
    lengths = [0] * len(counts)
    for each in reversed(order):
        depth[each] = depth[parent[each]] + 1
        if depth[each] > longest:
            depth[each] = longest
            overflow += 1
        if each < len(counts):
            lengths[each] = depth[each]
            histogram[depth[each]] += 1
    if not overflow:
        return lengths
    while overflow > 0:
        bits = max(b for b in range(1, longest) if histogram[b])
        histogram[bits] -= 1
        histogram[bits + 1] += 2
        histogram[longest] -= 1
        overflow -= 2
    leaves = iter(each for each in order if each < len(counts))
    for bits in range(longest, 0, -1):
        for _ in range(histogram[bits]):
            lengths[next(leaves)] = bits
    return lengths


class Heap:
    """A binary heap of nodes, least count first; of equal counts the shallower node is less."""

    def __init__(self, nodes: list[int], counts: list[int]) -> None:
        self.key = {node: (counts[node], 0) for node in nodes}
        self.at = list(nodes)
        for k in reversed(range(len(nodes) // 2)):
            self.sink(k)

    def sink(self, k: int) -> None:
        """Let the node at place k go down to where no child is less."""
        node = self.at[k]
        while (child := 2 * k + 1) < len(self.at):
            if child + 1 < len(self.at) and self.key[self.at[child + 1]] <= self.key[self.at[child]]:
                child += 1
            if self.key[node] <= self.key[self.at[child]]:
                break
            self.at[k] = self.at[child]
            k = child
        self.at[k] = node

    def take(self) -> int:
        """Remove the least."""
        node = self.at[0]
        self.at[0] = self.at[-1]
        self.at.pop()
        self.sink(0)
        return node

    def join(self, a: int, b: int, node: int) -> None:
        """Put a node with two children in the place of the least, which is one of them."""
        (count, depth), (other, height) = self.key[a], self.key[b]
        self.key[node] = (count + other, max(depth, height) + 1)
        self.at[0] = node
        self.sink(0)


def item_at(lengths: list[int], i: int) -> tuple[int, int]:
    """Return the header item that zlib writes at place i: symbol and repeats beyond the least."""
    run = 1
    while run < 138 and i + run < len(lengths) and lengths[i + run] == lengths[i]:
        run += 1
    if lengths[i] == 0 and run >= 3:
        return (18, run - 11) if run >= 11 else (17, run - 3)
    if lengths[i] and i and lengths[i - 1] == lengths[i] and run >= 3:
        return 16, min(run, 6) - 3
    return lengths[i], 0


def item_size(symbol: int, extra: int) -> int:
    """Return how many lengths an item stands for."""
    return 1 if symbol < 16 else extra + (11 if symbol == 18 else 3)


@dataclass
class Settings:
    """How a stream was made."""

    level: int = 6
    filtered: int = 0
    memory: int = 8
    window: int = 15
    gzip: int = 0


@dataclass
class Model:
    """What zlib would do next."""

    settings: Settings
    data: bytes
    inserted: int = 0
    heads: dict[int, int] = field(default_factory=dict)
    before: dict[int, int] = field(default_factory=dict)
    match: Token | None = None  # of the next place, if has_match
    has_match: bool = False
    later: Token | None = None
    steps: int = 0

    def insert(self, at: int) -> None:
        """Insert all places up to this one."""
        log = self.settings.memory + 7
        shift = (log + 2) // 3
        while self.inserted <= at:
            a, b, c = self.data[self.inserted : self.inserted + 3]
            key = (a << 2 * shift ^ b << shift ^ c) & ((1 << log) - 1)
            self.before[self.inserted & ((1 << self.settings.window) - 1)] = self.heads.get(key, 0)
            self.heads[key] = self.inserted
            self.inserted += 1

    def previous(self, at: int) -> int:
        """Return the place before this one with the same hash; 0: none."""
        return self.before.get(at & ((1 << self.settings.window) - 1), 0)

    def common(self, a: int, b: int, most: int) -> int:
        """Return how many bytes are the same."""
        n = 0
        while n < most and self.data[a + n] == self.data[b + n]:
            n += 1
        return n

    def search(self, at: int, longer: int) -> Token | None:
        """Look for a match of more than so many bytes."""
        left = len(self.data) - at
        if left < 3:
            return None
        self.insert(at)
        good, _, nice, chain = LEVELS[self.settings.level]
        reach = (1 << self.settings.window) - 262
        most = min(left, 258)
        candidate = self.previous(at)
        if candidate == 0 or at - candidate > reach or longer >= most:
            return None
        chain = chain // 4 if longer >= good else chain
        best, where = longer, 0
        while True:
            self.steps += 1
            n = self.common(at, candidate, most)
            if n > best:
                best, where = n, candidate
                if n >= min(nice, left) or n == most:
                    break
            candidate = self.previous(candidate)
            if candidate <= max(at - reach, 0):
                break
            chain -= 1
            if chain == 0:
                self.steps += 1
                break
        if not where:
            return None
        distance = at - where
        is_weak = (best <= 5 and self.settings.filtered) or (best == 3 and distance > 4096)
        return None if self.settings.level >= 4 and is_weak else (best, distance)

    def predict(self, at: int) -> Token:
        """Return the next token."""
        level = self.settings.level
        literal = (0, self.data[at])
        self.later = None
        if level == 0:
            return literal
        if level == 10:
            n = self.common(at, at - 1, min(258, len(self.data) - at)) if at else 0
            return (n, 1) if n >= 3 else literal
        if not self.has_match:
            self.match = self.search(at, 2)
        self.has_match = False
        if self.match is None:
            return literal
        if level < 4 or self.match[0] >= LEVELS[level][1] or at + 1 == len(self.data):
            return self.match
        self.later = self.search(at + 1, self.match[0])
        return literal if self.later else self.match

    def accept(self, at: int, predicted: Token, token: Token) -> None:
        """Go on after the token that is there."""
        level = self.settings.level
        if level in {0, 10}:
            return
        if not token[0]:
            self.has_match = predicted == token and self.later is not None
            self.match = self.later
            return
        self.has_match = False
        if level < 4 and token[0] > LEVELS[level][1]:
            self.inserted = max(self.inserted, at + token[0])

    def candidate(self, at: int, length: int, rank: int) -> int:
        """Return the distance of a candidate by its rank among those of at least so many bytes; 0: none."""
        if self.settings.level in {0, 10} or len(self.data) - at < length or rank >= RANK_MAX:
            return 0
        self.insert(at)
        limit = max(at - ((1 << self.settings.window) - 262), 0)
        place = at
        for _ in range(rank + 1):
            for _ in range(RANK_MAX):
                place = self.previous(place)
                if place <= limit:
                    return 0
                self.steps += 1
                if self.common(at, place, length) == length:
                    break
            else:
                return 0
        return at - place

    def block_ends(self, tokens: list[Token], size: int) -> bool:
        """Return whether a block ends here by the rule."""
        n = len(tokens)
        if n >= (32767 if self.settings.gzip else (1 << (self.settings.memory + 6)) - 1):
            return True
        if not self.settings.gzip or n == 0 or n % 4096 or self.settings.level <= 2:
            return False
        far = [distance_code(distance)[1] for length, distance in tokens if length]
        return len(far) < n // 2 and (8 * n + sum(5 + bits for bits in far)) // 8 < size // 2

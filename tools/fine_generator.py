# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Frames with fine blocks that no encoder would write: any tables, any map; see frame_generator.py."""

from __future__ import annotations

from random import Random
from typing import Final

import frame_writer as w
from frame_generator import CodedState, coded_block, random_code
from reference_fine import GIVEN, RUN, RUNS, TABLES_MAX

KINDS: Final = {"literals": "literals", "commands": "commands", "offset_codes": "offset codes"}


class FineState(CodedState):
    """What fine blocks carry on in a segment."""

    def __init__(self) -> None:
        super().__init__()
        self.contexts: dict[str, tuple[list[dict[int, int]], dict[int, int]]] = {}
        self.runs_have_contexts = False

    def write_plane(self, rng: Random, name: str, content: bytes) -> bytes:
        """Return a plane in any of the modes that can hold it, the fine ones included."""
        if name not in KINDS:
            return super().write_plane(rng, name, content)
        if len(content) < 256 or rng.random() < 0.3:
            if content and name in self.tables and rng.random() < 0.4:
                return self.write_changed(rng, name, content)
            return self.write_mode(rng, name, content, 3)
        old = self.contexts.get(name)
        again = old and rng.random() < 0.7
        if name == "literals" and not again:
            self.runs_have_contexts = rng.random() < 0.6
        contexts = self.contexts_of(name, content)
        by_context: dict[int, set[int]] = {}
        for context, symbol in zip(contexts, content, strict=True):
            by_context.setdefault(context, set()).add(symbol)
        if old and again:
            codes, numbers = old
            if all(symbols <= codes[numbers.get(c, 0)].keys() for c, symbols in by_context.items()):
                return w.varint(len(content) << 3 | 5) + self.streams(content, contexts, codes, numbers)
            return self.write_changes(rng, name, content, contexts, by_context)
        codes, numbers, tables = self.tables_of(rng, name, by_context)
        self.contexts[name] = codes, numbers
        return w.varint(len(content) << 3 | 4) + tables + self.streams(content, contexts, codes, numbers)

    def write_changed(self, rng: Random, name: str, content: bytes) -> bytes:
        """Return a plane whose own table is written as differences from the last one."""
        before, now = self.tables[name], random_code(rng, content)
        if rng.random() < 0.5 and set(content) <= before.keys():
            now = before
        self.tables[name] = now
        parts = w.join_streams(w.streams(content, now), len(content))
        return w.varint(len(content) << 3 | 7) + w.differences(before, now) + parts

    def write_changes(
        self, rng: Random, name: str, content: bytes, contexts: list[int], by_context: dict[int, set[int]]
    ) -> bytes:
        """Return a plane by the last tables, but for those that cannot hold it, and some more."""
        codes, numbers = self.contexts[name]
        codes = list(codes)
        changed = singles = 0
        tables = b""
        for k, before in enumerate(codes):
            symbols = set().union(*(by_context[c] for c in by_context if numbers.get(c, 0) == k))
            if symbols <= before.keys() and rng.random() < 0.7:
                continue
            changed |= 1 << k
            symbols = symbols or {rng.randrange(256)}
            if len(symbols) == 1 and rng.random() < 0.5:
                codes[k] = dict.fromkeys(symbols, 0)
                singles |= 1 << k
                tables += bytes(symbols)
            else:
                codes[k] = random_code(rng, bytes(sorted(symbols)))
                tables += w.differences(before, codes[k]) if min(before.values()) else w.code_lengths(codes[k])
        self.contexts[name] = codes, numbers
        head = w.varint(len(content) << 3 | 6) + bytes([changed, singles])
        return head + tables + self.streams(content, contexts, codes, numbers)

    def contexts_of(self, name: str, content: bytes) -> list[int]:
        """Return the context of each byte."""
        if name == "offset_codes":
            return [command & 63 for command in self.commands if command >= 192]
        chunk = -(-len(content) // 8)
        before = [0 if i % chunk == 0 else content[i - 1] for i in range(len(content))]
        if name != "literals" or not self.runs_have_contexts:
            return before
        return [RUN + run if run else context for run, context in zip(self.runs, before, strict=True)]

    def tables_of(
        self, rng: Random, name: str, by_context: dict[int, set[int]]
    ) -> tuple[list[dict[int, int]], dict[int, int], bytes]:
        """Return codes (a single symbol has 0 bits), the number of each context's code, and both as they are stored."""
        n = rng.randint(1, TABLES_MAX[KINDS[name]])
        given = name == "offset_codes"
        numbers = {c: rng.randrange(n) for c in sorted(by_context)}
        codes: list[dict[int, int]] = []
        singles = 0
        tables = b""
        for k in range(n):
            symbols = set().union(*(by_context[c] for c in numbers if numbers[c] == k)) or {rng.randrange(256)}
            if len(symbols) == 1 and rng.random() < 0.8:
                codes.append(dict.fromkeys(symbols, 0))
                singles |= 1 << k
                tables += bytes(symbols)
            else:
                codes.append(random_code(rng, bytes(sorted(symbols))))
                tables += w.code_lengths(codes[-1])
        listed = list(range(GIVEN)) if given else sorted({0}.union(*codes))
        if name == "literals" and self.runs_have_contexts:
            listed += [RUN + run for run in RUNS]
        bits = w.BitWriter()
        for context in listed:
            number = numbers.setdefault(context, rng.randrange(n))
            bits.put(number, (n - 1).bit_length())
        head = n | 128 * (name == "literals" and self.runs_have_contexts)
        return codes, numbers, bytes([head, singles]) + tables + bits.bytes()

    @staticmethod
    def streams(content: bytes, contexts: list[int], codes: list[dict[int, int]], numbers: dict[int, int]) -> bytes:
        """Return the eight streams and their sizes."""
        canonical = [w.canonical(code) if min(code.values()) else dict.fromkeys(code, (0, 0)) for code in codes]
        chunk = -(-len(content) // 8)
        parts = []
        for at in range(0, 8 * chunk, chunk):
            bits = w.BitWriter()
            for context, symbol in zip(contexts[at : at + chunk], content[at : at + chunk], strict=True):
                bits.put(*canonical[numbers.get(context, 0)][symbol])
            parts.append(bits.bytes())
        return b"".join(len(part).to_bytes(2, "little") for part in parts[:7]) + b"".join(parts)


def fine_segment(rng: Random, most: int) -> w.Segment:
    """Return an LZ segment of at most so many bytes, in fine and other coded blocks."""
    while True:
        out = bytearray()
        fine, other = FineState(), CodedState()
        other.slots, other.tables = fine.slots, fine.tables
        payload = b""
        for _ in range(rng.randint(1, 4)):
            size = rng.randint(1, max(1, (most - len(out)) // rng.choice((1, 2, 8))))
            if size > most - len(out):
                break
            is_fine = rng.random() < 0.8
            state = fine if is_fine else other
            payload += coded_block(rng, out, size, state, fine=is_fine)
            fine.slots = other.slots = state.slots
        if len(payload) <= len(out) + 4096:
            return w.Segment(w.LZ, bytes(out), payload)


def valid_fine_frame(rng: Random) -> tuple[bytes, bytes]:
    """Return a frame of one to three segments of fine blocks, and its content."""
    segments = [fine_segment(rng, 1 << rng.choice((9, 13, 14))) for _ in range(rng.randint(1, 3))]
    return w.frame(segments), b"".join(segment.content for segment in segments)

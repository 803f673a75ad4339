# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Cold payloads for the reference decoder: native/src/cold/spec.md in plain Python, about 3 KB a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reference_cold_tables import (
    BINARY,
    CONTEXTS,
    LOGIT_MAX,
    M32,
    NEUTRAL,
    ROWS,
    STEP_SCALE,
    STEPS,
    Place,
    clamp,
    class_of,
    curves,
    join,
    low_logit,
    match_log,
    mix,
    near,
    states,
    table_log,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from reference_bytes import Bytes


class Gate:
    """Is it the expected byte? Four adaptive probabilities, weighed."""

    def __init__(self, log: int) -> None:
        self.shift = 32 - log
        self.maps: list[dict[int, tuple[int, int]]] = [{}, {}, {}, {}]  # probability of 22 bits, count
        self.weights: dict[int, list[int]] = {}
        self.p = 0

    def ask(self, model: Model, byte: int, length: int, misses: int) -> int:
        """Return the chance of the expected byte, 0: the gate is not used."""
        place = model.place
        column = min(place.field_column, 255)
        self.keys = (
            class_of(length) * 4 + misses,
            mix((model.last4 & 255) << 8 | byte) >> self.shift,
            mix(((model.last4 & 0xFFFFFF) << 8 | byte) & M32) >> self.shift,
            mix(join((place.field << 8 | column) & M32, misses << 8 | byte)) >> self.shift,
        )
        squash, stretch = curves()
        entries = [m.get(k, (0xF8000000 >> 10, 0)) for m, k in zip(self.maps, self.keys, strict=True)]
        self.x = [near(stretch, p >> 6) for p, _ in entries]
        self.w = self.weights.setdefault(class_of(length), [1 << 14] * 4)
        total = sum(x * w for x, w in zip(self.x, self.w, strict=True)) >> 16
        self.p = squash[min(max(total, 0), LOGIT_MAX) + LOGIT_MAX]
        return self.p if self.p >= 65300 else 0

    def learn(self, hit: int) -> None:
        """Learn whether it was the expected byte."""
        error = ((hit << 16) - self.p) >> 4
        for i in range(4):
            self.w[i] = clamp(self.w[i] + ((self.x[i] * error + (1 << 13)) >> 14), 1 << 20)
            p, n = self.maps[i].get(self.keys[i], (0xF8000000 >> 10, 0))
            p += (((1 << 22) - 1 if hit else 0) - p) * (655360 // (10 * n + 16)) >> 16
            self.maps[i][self.keys[i]] = (p, min(n + 1, 255))


class Table:
    """Slots of one context: lines of four slots, each a tag and 15 states."""

    def __init__(self, log: int) -> None:
        self.shift = 32 - (log - 6)
        self.lines: dict[int, list[list[int]]] = {}

    def line(self, h: int) -> list[list[int]]:
        """Return the line of a hash."""
        tag = h & 255 or 1
        at = h >> self.shift
        pair = [self.lines.setdefault(i, [[0] * 16 for _ in range(4)]) for i in (at, at ^ 1)]
        for line in pair:
            if line[0][0] == tag:
                return line
        line = pair[1] if pair[1][0][1] < pair[0][0][1] else pair[0]
        line[:] = [[0] * 16 for _ in range(4)]
        line[0][0] = tag
        return line


def half(line: list[list[int]], tag: int) -> list[int]:
    """Return the slot of the second half of a byte."""
    for slot in line[1:]:
        if slot[0] == tag:
            return slot
    slot = min(line[1:], key=lambda s: s[1])
    slot[:] = [tag] + [0] * 15
    return slot


class Model:
    """All that is known of the content so far."""

    def __init__(self, profile: int, content: int) -> None:
        self.profile = profile
        self.data = bytearray()
        self.last4 = self.last8 = 0
        self.place = Place()
        log = table_log(content)
        self.final_log = min(log - 6, 13)
        self.gate = Gate(self.final_log)
        self.tables = [Table(log) for _ in range(CONTEXTS - 1)]
        self.order1: dict[tuple[int, int], list[int]] = {}
        self.match_log = match_log(content)
        self.matches: list[dict[int, int]] = [{}, {}]
        self.match = [0, 0, 0]  # place, length, misses
        self.long_hash = self.near_line = self.far_line = 0
        self.after1, self.after2 = [0] * 256, [0] * 65536
        first = states()[1]
        self.state_maps = [[NEUTRAL] + [(p, low_logit(p)) for p in first[1:]] for _ in range(CONTEXTS)]
        for maps in self.state_maps:
            maps[0] = NEUTRAL
        self.maps: dict[object, tuple[int, int]] = {}
        self.mixers: dict[tuple[int, int], list[int]] = {}
        self.finals: dict[int, list[int]] = {}
        squash = curves()[0]
        self.steps = [squash[LOGIT_MAX + clamp((i << 16) // STEP_SCALE - LOGIT_MAX)] for i in range(STEPS)]
        self.stages: dict[int, list[int]] = {}

    def contexts(self) -> list[int]:
        """Return the hashes of the contexts of the next byte."""
        c4, c8, p, pos = self.last4, self.last8, self.place, len(self.data)
        c1 = c4 & 255
        above = self.data[p.above] if p.above else 0
        above_next = self.data[p.above + 1] if p.above and p.above + 1 < pos else 0
        two = above << 8 | above_next
        after1, after2 = self.after1[c1] & 0xFFFF, self.after2[c4 & 0xFFFF] & 0xFFFFFF
        h = [0, c4 & 0xFFFF, c4 & 0xFFFFFF, c4, join(c4, c8 & 0xFF), join(c4, c8 & 0xFFFF)]
        if self.profile == ROWS:
            field = join(p.field, p.field_hash)
            h += [join(p.word, c1), field, join(join(p.field, p.field_column), two)]
            h += [join(field, p.hash_of[(p.field - 1) % 256]), join(join(p.field, p.above_hash), p.field_hash)]
            h += [join(join(p.field, two), c4 & 0xFFFF), join(p.word, p.word1)]
            self.select = (min(p.field, 31) << 3 | min(p.field_column, 7), above)
        elif self.profile == BINARY:
            h += [c4 & 0xFF00FF00, c4 & 0x00FFFF00, join(c4 & 0xFFFF0000, c8 & 0xFF), join(p.code, p.code_state)]
            h += [join(p.code, c1), join(after1, c1), join(after2, c1)]
            self.select = ((pos & 3) << 3 | p.code_state, c4 >> 8 & 255)
        else:
            h += [join(p.word, c1), join(p.word, p.word1), join(p.word, join(p.word1, p.word2))]
            h += [join(c1, above << 8 | min(p.column, 255)), join(p.word, p.marks)]
            h += [(c4 & 0xF0F0FF) | 0x1000000, join(after2, c1)]
            self.select = (min(p.column, 255), c4 >> 8 & 255)
        return [mix((v * 0x9E3779B1 + i * 0x632BE5AB) & M32) for i, v in enumerate(h)]

    def begin_byte(self) -> None:
        """Find the slots of the next byte."""
        hashes = self.contexts()
        self.lines = [t.line(h) for t, h in zip(self.tables, hashes[1:], strict=True)]
        self.slots = [self.order1.setdefault((self.last4 & 255, 0), [0] * 16)] + [line[0] for line in self.lines]
        self.order = max((i for i in range(1, 6) if self.slots[i][1]), default=0)
        pos = len(self.data)
        self.rate = 5 if pos < 8192 else 6 if pos < 131072 else 7
        self.bits = self.node = 1

    def begin_half(self) -> None:
        """Find the slots of the second half."""
        key = (self.last4 & 255, (self.bits & 15) + 1)
        self.slots = [self.order1.setdefault(key, [0] * 16)] + [half(line, self.bits) for line in self.lines]
        self.node = 1

    def code_bit(
        self, get_bit: Callable[[int], int], shift: int, expected: int, failed: int, row_class: tuple[int, int]
    ) -> int:
        """Read one bit: predict, read, learn."""
        bits, length_class, grade = self.bits, *row_class
        keys: list[object] = [None, None]
        row = bits
        is_expected = expected >> (shift + 1) == bits
        if is_expected:
            byte = expected & 255
            bit = byte >> shift & 1
            keys = [("failed", shift, bit) if failed else ("length", length_class, bit), ("byte", failed, byte, shift)]
            row = 2048 + (byte << 3 | shift) if failed else bits + 256 * (1 + grade * 2 + bit)
        entries = [maps[slot[self.node]] for maps, slot in zip(self.state_maps, self.slots, strict=True)]
        for key in keys:
            start = NEUTRAL
            if key is not None and key[0] != "byte":  # type: ignore[index]
                p = 3 << 18 if key[2] else 1 << 18  # type: ignore[index]
                start = (p, low_logit(p))
            entries.append(self.maps.get(key, start))
        x = [v for p, logit in entries for v in (logit, ((p >> 4) - 32768) >> 5)] + [256, 0]
        rows = (self.order << 8 | self.last4 & 255, row, self.select[0] << 3 | shift, self.select[1] << 3 | shift)
        weights = [self.mixers.setdefault((s, r), [2600, 0] * 16) for s, r in enumerate(rows)]
        squash = curves()[0]
        logits = []
        for w in weights:
            total = sum(a * b for a, b in zip(x, w, strict=True)) & M32
            logits.append(clamp((total - (total >> 31 << 32)) >> 14))
        final = self.finals.setdefault(is_expected << 8 | bits, [1 << 12] * 4)
        logit = clamp(sum(a * b for a, b in zip(logits, final, strict=True)) >> 14)
        p_final = squash[logit + LOGIT_MAX]
        place = (logit + LOGIT_MAX) * STEP_SCALE
        part, step = place >> 4 & 4095, place >> 16
        stage_row = (((self.last4 & 0xFFFF) << 8 | bits) * 0x9E3779B1 & M32) >> (32 - self.final_log)
        stage = self.stages.setdefault(stage_row, list(self.steps))
        chance = p_final + ((stage[step] * (4096 - part) + stage[step + 1] * part) >> 12) >> 1
        bit = get_bit(max(1, chance))

        target = bit << 16
        for w, value in zip(weights, logits, strict=True):
            error = (target - squash[value + LOGIT_MAX]) * 750 >> 12
            for i, a in enumerate(x):
                w[i] = max(-32768, min(32767, w[i] + ((a * error + (1 << 14)) >> 15)))
        error = (target - p_final) >> 4
        for i in range(4):
            final[i] = clamp(final[i] + ((logits[i] * error + (1 << 15)) >> 16), 65535)
        following = states()[0][bit]
        for i, (before, _) in enumerate(entries):
            p = before + ((((1 << 20) - 1 if bit else 0) - before) >> self.rate)
            if i < CONTEXTS:
                slot = self.slots[i]
                self.state_maps[i][slot[self.node]] = (p, low_logit(p))
                slot[self.node] = following[slot[self.node]]
            elif keys[i - CONTEXTS] is not None:
                self.maps[keys[i - CONTEXTS]] = (p, low_logit(p))
        reached = 65535 if bit else 0
        stage[step] += (reached - stage[step]) * (4096 - part) >> 18
        stage[step + 1] += (reached - stage[step + 1]) * part >> 18
        self.bits, self.node = bits << 1 | bit, self.node << 1 | bit
        return bit

    def advance(self, byte: int) -> None:
        """Take the byte that came."""
        match, data = self.match, self.data
        if self.gate.p:
            self.gate.learn(int(data[match[0]] == byte))
        self.after2[self.last4 & 0xFFFF] = (self.after2[self.last4 & 0xFFFF] << 8 | byte) & M32
        self.after1[self.last4 & 255] = (self.after1[self.last4 & 255] << 8 | byte) & M32
        self.last8 = (self.last8 << 8 | self.last4 >> 24) & M32
        self.last4 = (self.last4 << 8 | byte) & M32
        data.append(byte)
        self.place.advance(self.profile, data)
        if match[0]:
            if data[match[0]] == byte:
                match[1] = min(match[1] + 1, 65535)
                if match[1] >= 16:
                    match[2] = 0
            else:
                match[1] = 0
                match[2] += 1
            match[0] = 0 if match[2] > 8 else match[0] + 1
        self.long_hash = (self.long_hash + byte + 1) * (0x2F0B4C47 << 2) & M32
        far = self.far_line << 4 | (byte * 0x9E3779B1 & M32) >> 28
        near_key = self.near_line << 4 | (byte * 0x9E3779B1 & M32) >> 28
        self.far_line = (self.long_hash * 0x9E3779B1 & M32) >> (36 - self.match_log)
        if match[1] < 16:
            for table, key, least in ((0, far, 16), (1, near_key, 6)):
                at = self.matches[table].get(key, 0)
                n = 0
                while at and n < 32 and n < at and data[at - 1 - n] == data[len(data) - 1 - n]:
                    n += 1
                if at and n >= least and n > match[1]:
                    match[:] = [at, n, 0]
        self.matches[0][far] = self.matches[1][near_key] = len(data)
        self.near_line = mix((self.last4 * 0x9E3779B1 + (self.last8 & 255)) & M32) >> (32 - (self.match_log - 4))


def code_byte(model: Model, get_bit: Callable[[int], int], known: int | None = None) -> None:
    """Take a byte by what get_bit says of its bits, or learn a known one."""
    at, length, misses = model.match
    expected, model.gate.p, row_class, gate = 0, 0, (0, 0), 0
    if at:
        misses = min(misses, 3)
        kind = class_of(length)
        expected = model.data[at] + 256
        row_class = (kind * 4 + misses, 0 if kind < 16 else 1 if kind < 24 else 2)
        gate = model.gate.ask(model, expected & 255, length, misses) if length >= 64 else 0
    if gate and (get_bit(gate) if known is None else known == expected & 255):
        model.advance(expected & 255)
        return
    model.begin_byte()
    for shift in reversed(range(8)):
        bit = get_bit if known is None else lambda _, shift=shift: known >> shift & 1
        model.code_bit(bit, shift, expected, int(gate > 0), row_class)
        if shift == 4:
            model.begin_half()
    model.advance(model.bits & 255)


def decode_cold(payload: Bytes, size: int, before: bytes = b"") -> bytes:
    """Return the content of a cold payload; the model learns what is before it first."""
    profile = payload.number(1, "profile")
    payload.require(profile <= ROWS, f"profile {profile}")
    low, high, code = 0, M32, int.from_bytes(payload.take(4, "code"), "big")

    def get_bit(p: int) -> int:
        nonlocal low, high, code
        middle = low + ((high - low) * p >> 16)
        bit = int(code <= middle)
        low, high = (low, middle) if bit else (middle + 1, high)
        while (low ^ high) < 1 << 24:
            low, high = low << 8 & M32, (high << 8 | 255) & M32
            code = (code << 8 | payload.number(1, "code")) & M32
        return bit

    model = Model(profile, len(before) + size)
    for byte in before:
        code_byte(model, get_bit, byte)
    for _ in range(size):
        code_byte(model, get_bit)
    payload.require(payload.left == 0, f"{payload.left} bytes after the code")
    return bytes(model.data[len(before) :])

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Make valid frames from a seed that use all the format allows, most of it what no encoder would write.

    python tools/frame_generator.py FOLDER COUNT [SEED]

writes COUNT streams and their contents, for testing any decoder.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import frame_writer as w

BLOCK_MAX: Final = 1 << 18
SEQUENCES_MAX: Final = 1 << 16
LONG_LENGTHS_MAX: Final = 1028
EDGES: Final = (
    1,
    2,
    3,
    4,
    6,
    7,
    8,
    15,
    16,
    17,
    31,
    32,
    33,
    63,
    64,
    65,
    253,
    254,
    255,
    256,
    257,
    511,
    512,
    1023,
    1024,
    1025,
)

Random = random.Random


def pick_size(rng: Random, most: int) -> int:
    """Return a size from 1 to most, small ones and edges more often."""
    choice = rng.random()
    if choice < 0.4:
        return rng.randint(1, min(most, 40))
    if choice < 0.6:
        return min(most, rng.choice(EDGES))
    if choice < 0.95:
        return rng.randint(1, min(most, 3000))
    return rng.randint(1, most)


def pick_literals(rng: Random, size: int) -> bytes:
    """Return bytes of one, few, skewed or all values."""
    alphabet = rng.choice((1, 2, 3, 20, 256))
    first = rng.randrange(257 - alphabet)
    if rng.random() < 0.5:
        return bytes(first + int(alphabet * rng.random() ** 3) for _ in range(size))
    return bytes(first + rng.randrange(alphabet) for _ in range(size))


def pick_offset(rng: Random, most: int) -> int:
    """Return an offset from 1 to most: near, on an edge, or anywhere."""
    choice = rng.random()
    if choice < 0.35:
        return rng.randint(1, min(most, 64))
    if choice < 0.5:
        return most
    if choice < 0.65:
        return min(most, max(1, (1 << rng.randint(1, 24)) + rng.randint(-8, 8)))
    return rng.randint(1, most)


# ---- plain blocks ----------------------------------------------------------


def plain_block(rng: Random, out: bytearray, size: int) -> bytes | None:
    """Append the content of a plain block to out and return the block, or None where there is no room for a match."""
    end = len(out) + size
    wanted = rng.choice((1, 2, 15, 16, 17, 31, 33, 100, 1000, SEQUENCES_MAX))
    b = w.Plain(base=rng.choice((1, 1, 2, 4, 8, 100, 240, 255, rng.randint(1, 255))), repeat_form=rng.random() < 0.5)
    if rng.random() < 0.5:
        values = (range(1, 8), range(1, 40), range(1, 256), (1, 254, 255))[rng.randrange(4)]
        b.own_lengths = bytes(rng.choice(values) for _ in range(15))
    long_chance = rng.choice((0, 0.02, 0.5))
    before = 1

    def pick_more(length: int, room: int) -> tuple[int, bytes]:
        if length < 255:
            return length, b""
        more = min(rng.choice((0, 1, 127, 128, 16383, 16384, rng.randint(0, BLOCK_MAX))), max(0, room - 255))
        return length + more, w.varint(more)

    def pick_literal_length(room: int) -> tuple[int, int, list[int], bytes]:
        if rng.random() < 0.6:
            n = rng.randint(0, 6)
            return n, n, [], b""
        escape = rng.choice((0, 1, 247, 248, 249, 255)) if rng.random() < long_chance else rng.randint(0, 12)
        n, more = pick_more(min(255, 7 + escape), room)
        return n, 7, [escape], more

    def pick_match_length(room: int) -> tuple[int, int, list[int], bytes]:
        code = rng.randrange(16)
        if code < 15:
            n, more = pick_more(b.own_lengths[code] if b.own_lengths else min(255, b.base + code), room)
            return n, code, [], more
        escape = rng.randint(200, 255) if rng.random() < long_chance else rng.randint(0, 9)
        n, more = pick_more(min(255, b.base + escape + (0 if b.own_lengths else 15)), room)
        return n, code, [escape], more

    misses = 0
    while len(b.tokens) < wanted and misses < 20:
        room = end - len(out)
        n_literals, field, ll_escape, ll_more = pick_literal_length(room - 1)
        length, code, ml_escape, ml_more = pick_match_length(room - n_literals)
        held = len(out) + n_literals
        f = rng.randrange(2)
        words, thirds = [], []
        most = min(held, (1 << 16) - 1)
        if b.repeat_form and f:
            offset = before
        elif f or b.repeat_form:
            bits = 15 if b.repeat_form else 16
            far = f or rng.random() < 0.5
            offset = pick_offset(rng, min(held, (1 << (8 + bits if far else bits)) - 1)) if held else 1
            if far:
                thirds = [offset >> bits]
            words = [offset & (1 << bits) - 1 | (b.repeat_form and far) << 15]
            f = 0 if b.repeat_form else 1
        else:
            offset = pick_offset(rng, most) if held else 1
            words = [offset]
        if n_literals + length > room or offset > held:
            misses += 1
            continue
        before = offset
        b.tokens.append(field | code << 3 | f << 7)
        b.ll_escapes += ll_escape
        b.ml_escapes += ml_escape
        b.longs += ll_more + ml_more
        b.offsets += words
        b.thirds += thirds
        literals = pick_literals(rng, n_literals)
        b.literals += literals
        out += literals
        w.append_match(out, length, offset)
    if not b.tokens:
        return None
    rest = pick_literals(rng, end - len(out))
    b.literals += rest
    out += rest
    return b.bytes(size)


# ---- coded blocks ----------------------------------------------------------


def random_code(rng: Random, content: bytes) -> dict[int, int]:
    """Return the lengths of a complete code with these symbols, and perhaps others."""
    symbols = set(content)
    others = [s for s in range(256) if s not in symbols]
    symbols.update(rng.sample(others, min(len(others), rng.choice((0, 0, 1, 3, len(others))))))
    if len(symbols) == 1:
        symbols.add(others[0])
    leaves = [1, 1]
    deep = rng.random()
    while len(leaves) < len(symbols):
        choices = [i for i, length in enumerate(leaves) if length < w.CODE_BITS_MAX]
        # always the deepest gives a chain, which must leave room for the rest
        i = max(choices, key=leaves.__getitem__) if rng.random() < deep else rng.choice(choices)
        leaves[i] += 1
        leaves.append(leaves[i])
    rng.shuffle(leaves)
    return dict(zip(symbols, leaves, strict=True))


class CodedState:
    """What coded blocks carry on in a segment."""

    def __init__(self) -> None:
        self.slots = [1, 4, 8]
        self.tables: dict[str, dict[int, int]] = {}
        self.commands = b""  # of the block that is being written
        self.runs = bytearray()  # what contexts of its literals are given

    def write_plane(self, rng: Random, name: str, content: bytes) -> bytes:
        """Return a plane in any of the modes of all planes that can hold it."""
        return self.write_mode(rng, name, content, 2)

    def write_mode(self, rng: Random, name: str, content: bytes, mode_bits: int) -> bytes:
        """Return the same with so many bits of the head for the mode."""
        if not content:
            return w.plane(b"")
        modes = [0, 2, 2]
        if len(set(content)) == 1:
            modes.append(1)
        if set(content) <= self.tables.get(name, {}).keys():
            modes += [3, 3]
        mode = rng.choice(modes)
        if mode == 2:
            self.tables[name] = random_code(rng, content)
        return w.plane(content, mode, self.tables.get(name), mode_bits=mode_bits)


def coded_block(rng: Random, out: bytearray, size: int, state: CodedState, *, fine: bool = False) -> bytes:
    """Append the content of a coded block to out and return the block."""
    end = len(out) + size
    wanted = rng.choice((0, 1, 2, 15, 16, 17, 33, 100, 255, 256, 1023, 1024, 2000, SEQUENCES_MAX))
    first, least = (3, 2) if fine else (4, 4)
    lengths = bytes(sorted(rng.sample(range(least, 255), 15))) if rng.random() < 0.5 else None
    escape_base = least if lengths else first + 15
    low_plane = rng.random() < 0.5
    long_chance = rng.choice((0, 0, 0.02, 0.6))
    near_chance = rng.choice((0, 0.1, 0.9)) if fine else 0
    planes, state.runs = {name: bytearray() for name in w.CODED_PLANES}, bytearray()
    longs: list[int] = []
    raw_bits = w.BitWriter()

    def pick_long(room: int) -> int:
        return min(max(255, room), rng.choice((255, 256, 257, 65535, 65536, rng.randint(255, BLOCK_MAX))))

    def pick_literal_length(room: int) -> tuple[int, int, list[int], list[int]]:
        if rng.random() < long_chance and len(longs) + 2 <= LONG_LENGTHS_MAX:
            n = pick_long(room)
            return n, 3, [255], [n]
        if rng.random() < 0.7:
            n = rng.randint(0, 2)
            return n, n, [], []
        escape = rng.randint(0, 12) if rng.random() < 0.9 else rng.randint(0, 251)
        return 3 + escape, 3, [escape], []

    def pick_match_length(room: int) -> tuple[int, int, list[int], list[int]]:
        if rng.random() < long_chance and len(longs) + 2 <= LONG_LENGTHS_MAX:
            n = pick_long(room)
            return n, 15, [255], [n]
        code = rng.randrange(16)
        if code < 15:
            return lengths[code] if lengths else first + code, code, [], []
        escape = rng.randint(0, 12) if rng.random() < 0.9 else rng.randint(0, 254 - escape_base)
        return escape_base + escape, 15, [escape], []

    misses = 0
    while len(planes["commands"]) < wanted and misses < 20:
        room = end - len(out)
        n_literals, ll_code, ll_escape, ll_long = pick_literal_length(room - 4)
        length, ml_code, ml_escape, ml_long = pick_match_length(room - n_literals)
        held = len(out) + n_literals
        which = rng.randrange(4)
        near = None
        if which == 3 and near_chance and rng.random() < near_chance:
            near = rng.randrange(54), rng.randrange(128)
            offset = w.near_offset(state.slots, *near)
        else:
            offset = state.slots[which] if which < 3 else pick_offset(rng, min(held, (1 << 28) - 8)) if held else 1
        if n_literals + length > room or not 1 <= offset <= held:
            misses += 1
            continue
        if near:
            planes["offset_codes"].append(200 + near[0])
            n_bits = max(near[0] % 9 - 1, 0)
            raw_bits.put(near[1] & (1 << n_bits) - 1, n_bits)
        elif which == 3:
            n_bits = (offset + 7).bit_length() - 4
            x = (offset + 7) & (1 << n_bits) - 1
            planes["offset_codes"].append(n_bits << 3 | (offset + 7) >> n_bits & 7)
            if low_plane and n_bits >= 8:
                planes["lows"].append(x & 255)
                raw_bits.put(x >> 8, n_bits - 8)
            else:
                raw_bits.put(x, n_bits)
        else:
            del state.slots[which]
        state.slots = [offset, *state.slots][:3]
        planes["commands"].append(ll_code | ml_code << 2 | which << 6)
        state.runs += bytes([planes["commands"][-1] & 0xFB]) + bytes(n_literals - 1) if n_literals else b""
        planes["ll_escapes"] += bytes(ll_escape)
        planes["ml_escapes"] += bytes(ml_escape)
        longs += ll_long + ml_long
        literals = pick_literals(rng, n_literals)
        planes["literals"] += literals
        out += literals
        w.append_match(out, length, offset)
    rest = pick_literals(rng, end - len(out))
    planes["literals"] += rest
    out += rest

    for i in range(3):
        planes[f"long_{i}"] += bytes(value >> (8 * i) & 255 for value in longs)
    absent = (() if low_plane else ("lows",)) + (() if longs else ("long_0", "long_1", "long_2"))
    state.commands = bytes(planes["commands"])
    state.runs += bytes(len(rest))
    written = {n: state.write_plane(rng, n, bytes(p)) for n, p in planes.items() if n not in absent}
    return w.CodedBody(
        written, own_lengths=lengths, raw_bits=raw_bits.bytes(), flags_xor=8 * fine | 16 * (near_chance > 0)
    ).bytes(size)


# ---- segments and frames ---------------------------------------------------


def lz_segment(rng: Random, most: int) -> w.Segment:
    """Return an LZ segment of random blocks."""
    out = bytearray()
    payload = b""
    state = CodedState()
    preferred = rng.choice((None, 2, 3))
    for _ in range(rng.choice((1, 1, 2, 3, 5, 9))):
        if len(out) == most:
            break
        size = pick_size(rng, min(BLOCK_MAX, most - len(out)))
        block_type = rng.randrange(4) if preferred is None or rng.random() < 0.2 else preferred
        written = plain_block(rng, out, size) if block_type == 2 else None
        if block_type == 3:
            written = coded_block(rng, out, size, state)
        elif written is None:
            content = pick_literals(rng, 1) * size if block_type == 1 else pick_literals(rng, size)
            out += content
            written = w.block(1, 0, size, content[:1]) if block_type == 1 else w.block(0, 0, size, content)
        payload += written
    if len(payload) > len(out) + 4096:  # wasteful code tables can do that
        return w.raw(bytes(out))
    return w.Segment(w.LZ, bytes(out), payload)


def any_segment(rng: Random, most: int) -> w.Segment:
    """Return a segment of any kind."""
    choice = rng.random()
    if choice < 0.8:
        return lz_segment(rng, most)
    size = pick_size(rng, min(most, 1 << 18))
    if choice < 0.9:
        return w.raw(pick_literals(rng, size))
    content = pick_literals(rng, 1)
    return w.Segment(w.FILL, content * size, content)


def valid_frame(rng: Random, make: Callable[[Random, int], w.Segment] = any_segment) -> tuple[bytes, bytes]:
    """Return a frame and its content."""
    segment_log = rng.choice((10, 11, 14, 16, 18, 19, 20))
    segments = [make(rng, 1 << segment_log) for _ in range(rng.choice((0, 1, 1, 1, 2, 3, 7)))]
    known_size = rng.random() < 0.5
    extensions = None
    if rng.random() < 0.2:
        records = [(2 * rng.randrange(1 << rng.randint(1, 62)), rng.randbytes(rng.randint(0, 40))) for _ in range(3)]
        extensions = b"".join(w.extension(*record) for record in records[: rng.randint(0, 3)])
    data = w.frame(
        segments,
        known_size=known_size,
        with_trailer=not known_size or rng.random() < 0.5,
        check_kind=rng.randrange(3),
        segment_log=rng.randint(segment_log, 30) if known_size else segment_log,
        level=rng.choice((0, 1, 2, 3, 4, 5, 255)),
        extensions=extensions,
    )
    return data, b"".join(segment.content for segment in segments)


def valid_stream(rng: Random) -> tuple[bytes, bytes]:
    """Return one or more frames and skippable frames, and their content."""
    data = content = b""
    while not data or rng.random() < 0.25:
        if rng.random() < 0.15:
            data += w.skippable(rng.randbytes(rng.choice((0, 1, 15, 200))), rng.randrange(1 << 32))
        else:
            more, more_content = valid_frame(rng)
            data, content = data + more, content + more_content
    return data, content


def main() -> int:
    """Write streams into a folder."""
    if len(sys.argv) not in {3, 4}:
        sys.stderr.write("usage: frame_generator.py FOLDER COUNT [SEED]\n")
        return 2
    folder, count, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(seed, seed + count):
        data, content = valid_stream(random.Random(i))  # noqa: S311 -- test data
        (folder / f"{i}.glyd").write_bytes(data)
        (folder / f"{i}.expect").write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())

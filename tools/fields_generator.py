# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Make valid weights segments from a seed: any layout, cut and mode of planes; see frame_generator.py."""

from __future__ import annotations

from typing import Final

import frame_writer as w
from frame_generator import CodedState, Random, any_segment, lz_segment, pick_literals, pick_size, valid_frame

PIECE_MAX: Final = 40_000


def fields_body(rng: Random, most: int) -> tuple[bytes, bytes]:
    """Return the body of a fields piece and its content."""
    moved = most >= 8 and rng.random() < 0.4
    if moved:
        runs = [1] * rng.choice((2, 4, 8))
    else:
        runs = [rng.choice((1, 1, 2, 3, 16, 32, 255)) for _ in range(rng.randint(1, 16))]
    while sum(runs) > most:
        runs.pop()
    runs = runs or [1]
    n, cut = most // sum(runs), rng.randrange(4)
    body = bytes([len(runs) - 1 | moved << 4 | cut << 5, *runs])
    elements = [bytearray() for _ in range(n)]
    state = CodedState()
    per_block = (1 << (18 - cut)) // sum(runs)
    for start in range(0, n, per_block):
        block = elements[start : start + per_block]
        for j, run in enumerate(runs):
            plane = pick_literals(rng, len(block) * run)
            body += state.write_plane(rng, str(j), plane)
            for i, element in enumerate(block):
                element.extend(plane[i * run : (i + 1) * run])
    for element in elements:
        if moved:
            high = int.from_bytes(element[-2:], "little")
            element[-2:] = (high >> 1 | (high & 1) << 15).to_bytes(2, "little")
    return body, b"".join(elements)


def weights_segment(rng: Random, most: int) -> w.Segment:
    """Return a weights segment of random pieces, or a raw one where they take too much."""
    out = bytearray()
    payload = b""
    while len(out) < most and (not out or rng.random() < 0.6):
        size = pick_size(rng, min(PIECE_MAX, most - len(out)))
        piece_type = rng.choice((0, 1, 2, 2, 2, 2))
        if piece_type == 2:
            body, content = fields_body(rng, size)
        elif piece_type == 1 and (lz := lz_segment(rng, size)).kind == w.LZ:
            body, content = lz.payload, lz.content
        else:
            piece_type, body = 0, pick_literals(rng, size)
            content = body
        payload += w.piece(piece_type, len(content), body)
        out += content
    if len(payload) > len(out) + 4096:
        return w.raw(bytes(out))
    return w.Segment(w.WEIGHTS, bytes(out), payload)


def valid_weights_frame(rng: Random) -> tuple[bytes, bytes]:
    """Return a frame of weights segments among others, and its content."""
    return valid_frame(rng, lambda r, most: (weights_segment if r.random() < 0.8 else any_segment)(r, most))

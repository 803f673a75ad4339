# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Weights segments of the reference decoder, in the order of native/src/fields/spec.md."""

from __future__ import annotations

from typing import Final

from reference_blocks import decode_lz
from reference_bytes import Bytes
from reference_planes import Tables, read_plane

BLOCK_LOG: Final = 18


def move_sign_back(element: bytearray) -> None:
    """Rotate the last two bytes, a little-endian number, by one bit to the right."""
    high = int.from_bytes(element[-2:], "little")
    element[-2:] = (high >> 1 | (high & 1) << 15).to_bytes(2, "little")


def decode_fields(body: Bytes, content_size: int) -> bytes:
    """Decode the body of a fields piece."""
    head = body.number(1, "runs and flags")
    body.require(head < 128, f"flags {head:#x} of a fields piece")
    runs = body.take((head & 15) + 1, "runs")
    body.require(min(runs) >= 1, "run of 0 bytes")
    period, sign_moved = sum(runs), bool(head & 16)
    body.require(not sign_moved or (max(runs) == 1 and period in {2, 4, 8}), f"sign moved in runs {list(runs)}")
    body.require(content_size % period == 0, f"{content_size} bytes of elements of {period}")
    per_block = (1 << (BLOCK_LOG - (head >> 5 & 3))) // period
    last_tables: Tables = {}
    out = bytearray()
    left = content_size // period
    while left:
        n = min(left, per_block)
        planes = []
        for j, run in enumerate(runs):
            plane = read_plane(body, f"run {j}", n * run, last_tables).rest()
            body.require(len(plane) == n * run, f"plane of {len(plane)} bytes, {n * run} expected")
            planes.append(plane)
        for i in range(n):
            element = bytearray()
            for run, plane in zip(runs, planes, strict=True):
                element += plane[i * run : (i + 1) * run]
            if sign_moved:
                move_sign_back(element)
            out += element
        left -= n
    body.require(body.left == 0, f"{body.left} bytes after the last block")
    return bytes(out)


def decode_weights(payload: Bytes, content_size: int) -> bytes:
    """Decode the payload of a weights segment."""
    out = bytearray()
    while len(out) < content_size:
        piece_type = payload.number(1, "piece type")
        payload.require(piece_type <= 2, f"piece type {piece_type}")
        size = payload.varint("piece content size")
        payload.require(1 <= size <= content_size - len(out), f"piece of {size} bytes, {content_size - len(out)} left")
        body_size = payload.varint("piece body size")
        body = payload.part(body_size, "piece body")
        if piece_type == 0:
            payload.require(body_size == size, f"raw piece: {body_size} bytes for {size}")
            out += body.take(size, "raw piece")
        elif piece_type == 1:
            out += decode_lz(body, size)
        else:
            out += decode_fields(body, size)
    payload.require(payload.left == 0, f"{payload.left} bytes after the last piece")
    return bytes(out)

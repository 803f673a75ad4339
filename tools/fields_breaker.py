# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Weights segments that break one rule each; see frame_breaker.py."""

from __future__ import annotations

from collections.abc import Iterator

import frame_writer as w
from block_breaker import Case, good
from frame_writer import Segment, frame, piece, plane

TEXT = bytes.fromhex("123456789abcdef0")
LOW, HIGH = TEXT[0::2], TEXT[1::2]


def weights(content: bytes, *pieces: bytes) -> bytes:
    """Return a frame of one weights segment, checked: wrong content is told from refused content."""
    segment = Segment(w.WEIGHTS, content, b"".join(pieces))
    return frame([segment], known_size=True, with_trailer=False, check_kind=1, segment_log=19)


def piece_cases() -> Iterator[Case]:
    """Rules about pieces."""
    two = piece(0, 2, b"aa")
    lz = w.block(1, 0, 2, b"a")
    yield good("piece-raw", weights(b"aa", two), b"aa")
    yield good("piece-lz", weights(b"aa", piece(1, 2, lz)), b"aa")
    yield good("pieces", weights(b"aaaaaa", two, piece(1, 2, lz), piece(2, 2, b"\0\2" + plane(b"aa"))), b"aaaaaa")
    for piece_type in (3, 4, 128, 255):
        yield Case(f"piece-type-{piece_type}", weights(b"aa", piece(piece_type, 2, b"aa")), "corrupt")
    yield Case("piece-of-0", weights(b"aa", piece(0, 0, b""), two), "corrupt")
    yield Case("piece-past-segment", weights(b"aaa", two, two), "corrupt")
    yield Case("pieces-end-early", weights(b"aaa", two), "corrupt")
    yield Case("bytes-after-pieces", weights(b"aa", two, b"\0"), "corrupt")
    yield Case("piece-after-pieces", weights(b"aa", two, two), "corrupt")
    yield Case("piece-raw-short", weights(b"aa", piece(0, 2, b"a")), "corrupt")
    yield Case("piece-raw-long", weights(b"aa", piece(0, 2, b"aaa")), "corrupt")
    yield Case("piece-body-past-payload", weights(b"aa", piece(0, 2, b"aa", body_size=3)), "corrupt")
    yield Case("piece-lz-short", weights(b"aa", piece(1, 2, lz[:-1])), "corrupt")
    yield Case("piece-lz-long", weights(b"aa", piece(1, 2, lz + b"\0")), "corrupt")
    yield Case("piece-lz-empty", weights(b"aa", piece(1, 2, b"")), "corrupt")
    # the match of 4 at 1 reaches back over the start of its piece
    match = w.Plain(base=4, offsets=[1], tokens=[0]).bytes(4)
    yield Case("piece-lz-reaches-back", weights(b"aaaaaa", two, piece(1, 4, match)), "corrupt")
    yield Case("piece-size-not-canonical", weights(b"aa", b"\0\x82\x00\2aa"), "corrupt")


def fields_cases() -> Iterator[Case]:
    """Rules about the body of fields pieces."""
    planes = plane(LOW) + plane(HIGH)

    def one(body: bytes, content: bytes = TEXT) -> bytes:
        return weights(content, piece(2, len(content), body))

    yield good("fields-two-runs", one(b"\1\1\1" + planes), TEXT)
    yield good("fields-one-run", one(b"\0\2" + plane(TEXT)), TEXT)
    yield good("fields-unlike-runs", one(b"\1\1\3" + plane(b"\x12\x9a") + plane(TEXT[1:4] + TEXT[5:])), TEXT)
    yield good("fields-cut", one(b"\x61\1\1" + planes), TEXT)
    moved = [int.from_bytes(TEXT[i : i + 2], "little") for i in range(0, 8, 2)]
    moved = [(h << 1 | h >> 15) & 0xFFFF for h in moved]
    halves = plane(bytes(h & 255 for h in moved)) + plane(bytes(h >> 8 for h in moved))
    yield good("fields-sign-moved", one(b"\x11\1\1" + halves), TEXT)
    yield Case("fields-reserved-flag", one(b"\x81\1\1" + planes), "corrupt")
    yield Case("fields-run-of-0", one(b"\2\1\1\0" + planes + plane(b"")), "corrupt")
    yield Case("fields-sign-of-one-byte", one(b"\x10\1" + plane(TEXT)), "corrupt")
    yield Case("fields-sign-of-three-bytes", one(b"\x12\1\1\1" + planes, TEXT[:6]), "corrupt")
    yield Case("fields-sign-of-a-run", one(b"\x10\2" + plane(TEXT)), "corrupt")
    yield Case("fields-sign-of-unlike-runs", one(b"\x12\1\1\2" + planes), "corrupt")
    yield Case("fields-no-multiple", one(b"\2\1\1\1" + planes), "corrupt")
    yield Case("fields-empty", one(b""), "corrupt")
    yield Case("fields-runs-missing", one(b"\x0f\1"), "corrupt")
    yield Case("fields-plane-missing", one(b"\1\1\1" + plane(LOW)), "corrupt")
    yield Case("fields-plane-extra", one(b"\1\1\1" + planes + plane(LOW)), "corrupt")
    yield Case("fields-plane-short", one(b"\1\1\1" + plane(LOW[:3]) + plane(HIGH)), "corrupt")
    yield Case("fields-plane-long", one(b"\1\1\1" + plane(LOW) + plane(HIGH + b"a")), "corrupt")
    yield Case("fields-plane-absent", one(b"\1\1\1" + plane(b"") + plane(HIGH)), "corrupt")
    yield good("fields-fill", one(b"\1\1\1" + plane(b"aaaa", 1) + plane(b"bbbb", 1), b"abababab"), b"abababab")
    code = {97: 1, 98: 1}
    abab = b"abba" * 64
    yield good("fields-coded", one(b"\1\1\1" + plane(abab, 2, code) + plane(bytes(256)), b"".join(bytes([c, 0]) for c in abab)), b"".join(bytes([c, 0]) for c in abab))  # fmt: skip
    yield Case("fields-no-last-table", one(b"\0\1" + plane(abab, 3, code), abab), "corrupt")
    # tables belong to their run: that of run 0 is none for run 1
    yield Case("fields-table-of-another-run", one(b"\1\1\1" + plane(abab, 2, code) + plane(abab, 3, code), b"".join(bytes([c, c]) for c in abab)), "corrupt")  # fmt: skip
    first = piece(2, 256, b"\0\1" + plane(abab, 2, code))
    second = piece(2, 256, b"\0\1" + plane(abab, 3, code))
    yield Case("fields-table-of-another-piece", weights(abab * 2, first, second), "corrupt")
    # two blocks of 2^15 bytes: the second uses the table of the first
    block = abab * (1 << 7)
    two = plane(block, 2, code) + plane(block, 3, code)
    yield good("fields-two-blocks", one(b"\x60\1" + two, block * 2), block * 2)
    yield Case("fields-block-of-more", one(b"\x60\1" + plane(block * 2, 2, code), block * 2), "corrupt")

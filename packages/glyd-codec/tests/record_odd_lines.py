# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Lines that are nearly records: keys that come and go, fields that say anything, damage, long runs."""

from __future__ import annotations

import json

_WORDS = (
    "alpha",
    "",
    "get",
    "POST",
    'x"y',
    "a\\b",
    "null",
    "0001",
    "127.0.0.1",
    "2026-11-30T12:00:00Z",
    "-3.5e10",
    "\0",
)
_DAMAGE = (b"\0", b"\xff\xfe", b"\r\n", b"\n", b'"', b"{", b"}", b"\\", b"\xed\xa0\x80")
_RUNS = (b"a", b"[", b'{"a":', b'"', b"\\", b"{}", b"1,", b'{"k":1}')


def _value(rng, depth):
    kind = rng.randrange(7 if depth < 3 else 5)
    if kind < 2:
        return rng.randrange(-5, 10 ** rng.randrange(1, 20))
    if kind == 2:
        return rng.choice(_WORDS) * rng.randrange(1, 3)
    if kind == 3:
        return rng.choice((None, True, False, rng.random()))
    if kind == 4:
        return f"{rng.getrandbits(32):08x}"
    inner = [_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return inner if kind == 5 else {f"{rng.choice(_WORDS)}{i}": value for i, value in enumerate(inner)}


def _objects(rng, n):
    keys = [rng.choice(_WORDS) + str(i) for i in range(rng.randrange(1, 12))]
    share, comma, colon = rng.random(), rng.choice((",", ", ")), rng.choice((":", ": ", ":  "))
    for i in range(n):
        some = [key for key in keys if rng.random() < share]
        if rng.random() < 0.3:
            rng.shuffle(some)
        pairs = [json.dumps(key) + colon + json.dumps(_value(rng, 0) if rng.random() < 0.8 else i) for key in some]
        yield "{" + comma.join(pairs) + "}"


def _log(rng, n):
    words = (*_WORDS, "user", "id=", "[", "] ", "(", ")", ": ", "=")
    shapes = [[rng.choice(words) for _ in range(rng.randrange(1, 9))] for _ in range(rng.randrange(1, 6))]
    time = rng.randrange(10**9)
    for _ in range(n):
        time += rng.randrange(3)
        fields = (word + (str(rng.randrange(10**6)) if rng.random() < 0.5 else "") for word in rng.choice(shapes))
        yield " ".join([str(time) if rng.random() < 0.95 else "-", *fields])


def _table(rng, n):
    columns, separator = rng.randrange(1, 20), rng.choice(",;\t| ")
    for _ in range(n):
        yield separator.join(str(_value(rng, 3)) if rng.random() < 0.9 else "" for _ in range(columns))


def _damaged(rng, data):
    out = bytearray(data)
    for _ in range(rng.choice((0, 0, 1, 3, 30))):
        at, kind = rng.randrange(len(out) + 1), rng.randrange(4)
        if kind == 0:
            out[at:at] = rng.choice(_DAMAGE)
        elif kind == 1:
            del out[at : at + rng.randrange(1, 50)]
        elif kind == 2:
            out[at : at + 1] = rng.randbytes(1)
        else:
            out[at:at] = out[at // 2 : at // 2 + rng.randrange(3000)]
    if rng.random() < 0.05:
        out[len(out) // 2 : len(out) // 2] = b"x" * rng.randrange(200_000)
    return bytes(out)


def odd_lines(rng):
    """Make up to some hundred kilobytes of them."""
    if rng.random() < 0.2:
        run = rng.choice(_RUNS)
        return _damaged(rng, run * rng.randrange(1, 200_000 // len(run)))
    lines = rng.choice((_objects, _objects, _log, _table))(rng, rng.choice((1, 5, 50, 400, 1500)))
    data = rng.choice(("\n", "\n", "\n", "\r\n", "\r", "\0")).join(lines).encode() + rng.choice((b"", b"\n"))
    return _damaged(rng, data)[: rng.choice((1 << 20, 100_000, 5000, 100))]

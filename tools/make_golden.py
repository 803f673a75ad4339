# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Write the golden files: frames whose reading is pinned, in native/tests/golden.

    python tools/make_golden.py            rules/ and generated/, from the tools alone
    python tools/make_golden.py encoded    encoded/, with the glyd package that is installed; cold, opened: those folders

``rules`` are the cases of frame_breaker.py, ``generated`` streams of frame_generator.py, ``encoded`` what
the library writes at each level. manifest.txt has a line for each file: name, the status that reading it
must give (status.h; 0 is success), and size and XXH3-64 of the content. Files once released stay: a change
here may add to them, never alter what is there.
"""

from __future__ import annotations

import random
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fields_generator import valid_weights_frame
from fine_generator import valid_fine_frame
from frame_breaker import cases
from frame_generator import valid_stream
from reference_bytes import FormatError
from reference_decoder import decode
from reference_xxh3 import xxh3_64

GOLDEN: Final = Path(__file__).resolve().parent.parent / "native" / "tests" / "golden"
STATUS: Final = {
    "magic": 10,
    "version": 11,
    "feature": 12,
    "header": 13,
    "corrupt": 20,
    "checksum": 21,
    "truncated": 22,
    "trailing": 23,
}
FILE_MAX: Final = 3000  # bytes; larger cases are read by the tests that make them
CONTENT_MAX: Final = 600_000
CUTS: Final = 5  # of every so many cut places one becomes a file
GENERATED: Final = 40


def rules() -> Iterator[tuple[str, bytes]]:
    """Return the cases of the rules that are small."""
    n_cuts = 0
    for case in cases():
        is_cut = case.name.startswith("truncated-at-")
        n_cuts += is_cut
        if len(case.data) <= FILE_MAX and len(case.content) <= CONTENT_MAX and not (is_cut and n_cuts % CUTS):
            kind = case.category or "valid"
            yield f"rules/{kind}/{case.name.replace('^', '-')}.glyd", case.data


def generated() -> Iterator[tuple[str, bytes]]:
    """Return the first generated streams that are small."""
    for prefix, make in (("", valid_stream), ("weights-", valid_weights_frame), ("fine-", valid_fine_frame)):
        n_files = 0
        for seed in range(1000):
            data, _ = make(random.Random(seed))  # noqa: S311 -- test data
            if 200 <= len(data) <= FILE_MAX:
                yield f"generated/{prefix}{seed:03}.glyd", data
                n_files += 1
            if n_files == GENERATED:
                break


def sample(size: int, seed: int) -> bytes:
    """Return lines with words and numbers, some noise, a table of integers and a run."""
    rng = random.Random(seed)  # noqa: S311 -- test data
    words = [bytes(rng.choices(b"etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(60)]
    out = bytearray()
    while len(out) < size:
        kind = rng.random()
        if kind < 0.8:
            out += b"%d %b\n" % (rng.randrange(5000), b" ".join(rng.choices(words, k=6)))
        elif kind < 0.9:
            out += b"".join((1000 + 3 * i).to_bytes(4, "little") for i in range(rng.randrange(30)))
        elif kind < 0.95:
            out += rng.randbytes(rng.randrange(40))
        else:
            out += bytes(rng.randrange(600))
    return bytes(out[:size])


def model(size: int) -> bytes:
    """Return a file that starts like safetensors and holds bf16 numbers, Q8_0 blocks and words."""
    rng = random.Random(size)  # noqa: S311 -- test data
    out = bytearray((24).to_bytes(8, "little") + b'{"a":{"dtype":"BF16"}}  ')
    while len(out) < size // 2:
        out += struct.pack("<f", rng.gauss(0, 0.02))[2:]
    while len(out) < size - size // 8:
        out += struct.pack("<e", 0.001 + rng.random() / 1000) + rng.randbytes(32)
    return bytes(out) + sample(size - len(out), 7)


def tables() -> Iterator[tuple[str, bytes]]:
    """Return a table, objects, tuples, two tables of a dump, logs, decimals and columns at fixed places."""
    rng = random.Random(9)  # noqa: S311 -- test data
    rows = [
        (i, rng.randrange(90), rng.choice(["north", "south"]), rng.randrange(9000), i // 7 % 24) for i in range(400)
    ]
    day = "2024-02-{:02} {:02}:{:02}:{:02}"
    csv = [
        f"{i},{a},{i + a},{w},{n / 8:.3f},{n / 4:g},{day.format(1 + i // 40, h, i % 60, a % 60)},{i % 97:05},"
        f"{'NA' if a == 7 else h * 100 + i % 60},{w}{n}\n"
        for i, a, w, n, h in rows
    ]
    yield "table", "".join(["i,a,b,w,x,y,t,p,c,s\n", *csv]).encode()
    objects = [
        f'{{"id": {i}, "at": "{day.format(3, h, i % 60, 0)}", "w": "{w}", "n": {n}'
        + (', "tags": [1, 2]}\n' if i % 5 else "}\n")
        for i, a, w, n, h in rows
    ]
    yield "objects", "".join(objects).encode()
    tuples = [",".join(f"({i},'{w} {a}',{n})" for i, a, w, n, _ in rows[at : at + 50]) for at in range(0, 400, 50)]
    yield "tuples", "".join(f"INSERT INTO t VALUES {t};\n" for t in tuples).encode()  # noqa: S608 -- test data
    one = "".join(f"{i}\t{a}\t{w}\n" for i, a, w, _, _ in rows)
    two = "".join(f"{n}\t{i}\n" for i, _, _, n, _ in rows)
    yield "dump", f"COPY a FROM stdin;\n{one}\\.\n\nCOPY b FROM stdin;\n{two}\\.\n".encode()
    lines = [
        f"Feb {1 + i // 80:2} {h:02}:{i % 60:02}:00 host app[{a % 3}]: "
        + (f"took {n / 10} ms\n" if a % 2 else f'read "{w}{a}" = {n}\n')
        for i, a, w, n, h in rows
    ]
    yield "log", "".join(lines).encode()
    names = sorted({f"{w}{a:02}{n % 7}" for _, a, w, n, _ in rows})
    people = [
        f"{name},{1_700_000_000_000_000 + n * 77_777_777},{n * 4000 + a},{name} of {w}{n},{a}-{n}-{i}\n"
        for (i, a, w, n, _), name in zip(rows, names, strict=False)
    ]
    yield "sorted", "".join(people).encode()
    calls = [
        f"2024-02-03 {h:02}:{i % 60:02}:00,{a:03} [{w}-{i % 3}] {'INFO' if a % 3 else 'WARN'} app.{w}.Main - "
        + (f"took {n / 10} ms from 10.0.{i % 200}.{a}\n" if a % 2 else f"read {n} of {a}\n")
        for i, a, w, n, h in rows
    ]
    yield "calls", "".join(calls).encode()
    boots = [
        f"Feb {1 + i // 80:2} {h:02}:{i % 60:02}:00 host {w}d[{a % 3}]: "
        + " ".join(f"{w[k % 5]}{n * (k + 1) % 61:x}" for k in range(a % 11))
        + "\n"
        for i, a, w, n, h in rows
    ]
    yield "boots", "".join(boots).encode()
    decimals = [
        f"{i},{rng.uniform(-9, 9)!r},{rng.gauss(0, 1):.12f}".rstrip("0") + f",{rng.uniform(0, 1):.3f}\n"
        for i in range(1100)
    ]
    yield "decimals", "".join(decimals).replace(",0.", ",.").replace(",-0.", ",-.").encode()
    ids = [f"{w}-{n % 211:03}{a:02},{n % 211:03} of {w},{n // 20:05x}{w[0]},{i % 7}\n" for i, a, w, n, _ in rows]
    yield "ids", "".join(ids).encode()
    columns = [f"{i:6}{n / 16:12.4f} {a * 7919:9}  {w:8}{(n - 4500) * a:10}\n" for i, a, w, n, _ in rows]
    yield "columns", "".join(columns).encode()


def numbers_and_code() -> Iterator[tuple[str, bytes]]:
    """Return content that filters change: calls of few places from many, a walk of 16-bit numbers."""
    rng = random.Random(9)  # noqa: S311 -- test data
    x86, arm64, walk, level = bytearray(), bytearray(), bytearray(), 0
    targets = [rng.randrange(8000) for _ in range(32)]
    for i in range(0, 8000, 8):
        target = rng.choice(targets)
        x86 += b"\xe8" + struct.pack("<i", target - i - 5) + bytes((target * k >> 4) & 255 for k in (3, 5, 7))
        arm64 += struct.pack("<I", 0x94000000 | (target - i // 4) % (1 << 26)) + struct.pack(
            "<I", target * 77 % (1 << 32)
        )
        level += rng.randrange(-7, 9)
        walk += struct.pack("<H", level % 65536)
    yield "x86", bytes(x86)
    yield "arm64", bytes(arm64)
    yield "delta", bytes(walk + walk[::-1]) * 2


def edited(content: bytes) -> bytes:
    """Return the content and a copy that lost or gained a few bytes here and there."""
    rng = random.Random(1)  # noqa: S311 -- test data
    out = bytearray(content)
    at = 0
    while at < len(content):
        n = rng.randint(8, 40)
        out += content[at : at + n] + rng.randbytes(rng.randint(0, 3))
        at += n + rng.randint(0, 3)
    return bytes(out)


def encoded() -> Iterator[tuple[str, bytes]]:
    """Return frames that the library writes."""
    import glyd  # noqa: PLC0415 -- the other parts do without

    for level in ("turbo", "fast", "default", "max", "high", "ultra"):
        for size in (0, 1, 100, 8000):
            yield f"encoded/{level}-{size}.glyd", glyd.compress(sample(size, size), level)
        yield f"encoded/{level}-segments.glyd", glyd.compress(sample(6000, 1), level, segment_size=1 << 11)
        yield f"encoded/{level}-unchecked.glyd", glyd.compress(sample(3000, 2), level, checksum=False)
        yield f"encoded/{level}-noise.glyd", glyd.compress(random.Random(3).randbytes(500), level)  # noqa: S311
        yield f"encoded/{level}-run.glyd", glyd.compress(b"r" * 300_000, level)
        yield f"encoded/{level}-weights.glyd", glyd.compress(model(20_000), level)
        yield f"encoded/{level}-weights-segments.glyd", glyd.compress(model(6000), level, segment_size=1 << 11)
        yield f"encoded/{level}-far.glyd", glyd.compress(sample(2000, 4) + bytes(100_000) + sample(2000, 4), level)
        writer = glyd.Compressor(level)
        data = writer.compress(sample(2500, 5)) + writer.compress(sample(2500, 6)) + writer.flush()
        yield f"encoded/{level}-size-unknown.glyd", data
    for name, content in numbers_and_code():
        yield f"encoded/filtered-{name}-high.glyd", glyd.compress(content, "high", weights=False)
        yield f"encoded/filtered-{name}-ultra.glyd", glyd.compress(content, "ultra", weights=False)
    yield "encoded/near-ultra.glyd", glyd.compress(edited(sample(6000, 7)), "ultra")
    for name, content in tables():
        yield f"encoded/records-{name}-default.glyd", glyd.compress(content, "default", records=True)
        yield f"encoded/records-{name}-max.glyd", glyd.compress(content, "max", records=True)


def cold() -> Iterator[tuple[str, bytes]]:
    """Return cold frames that the library writes; small ones, as the reference decoder reads 1.5 KB a second."""
    import glyd  # noqa: PLC0415 -- the other parts do without

    for size in (1, 100, 1500):
        yield f"cold/sample-{size}.glyd", glyd.compress(sample(size, size), "cold")
    for name, content in tables():
        if name == "log":  # far repeats, so that the gate is asked, and is wrong
            yield "cold/far.glyd", glyd.compress(content[:900] + content[:500] + b"!" + content[:900], "cold")
            yield "cold/segments.glyd", glyd.compress(content[:2500], "cold", segment_size=1 << 10)
        yield f"cold/{name}.glyd", glyd.compress(content[:1500], "cold")
    yield "cold/numbers.glyd", glyd.compress(model(400), "cold", weights=False)


def opened() -> Iterator[tuple[str, bytes]]:
    """Return frames with opened segments: streams of zlib, and some that it would not write."""
    import zlib  # noqa: PLC0415

    import glyd  # noqa: PLC0415

    def stream(content: bytes, level: int, strategy: int = 0, memory: int = 8) -> bytes:
        packer = zlib.compressobj(level, zlib.DEFLATED, 31, memory, strategy)
        part = len(content) // 2
        return (
            packer.compress(content[:part])
            + packer.flush(zlib.Z_SYNC_FLUSH)
            + packer.compress(content[part:])
            + packer.flush()
        )

    table = dict(tables())["table"]
    for level in (1, 3, 4, 6, 9):
        yield f"opened/zlib-{level}.glyd", glyd.compress(stream(table + sample(600, level), level), "ultra")
    for strategy in (1, 2, 3, 4):
        data = stream(table + sample(600, strategy), 6, strategy, 2)
        yield f"opened/strategy-{strategy}.glyd", glyd.compress(data, "ultra")
    members = b"head" + stream(table, 9) + b"between" + stream(table[::-1], 1) + stream(table[:900], 6) + b"tail"
    yield "opened/members.glyd", glyd.compress(members, "high", containers=True)
    yield "opened/cut.glyd", glyd.compress(stream(table * 2, 1)[:-300], "max", containers=True, records=True)
    yield "opened/records.glyd", glyd.compress(stream(table * 2, 6), "max", containers=True, records=True)
    yield "opened/cold.glyd", glyd.compress(stream(table[:1200], 6), "cold", containers=True)
    rows = zlib.compress(table, 9)
    chunks = [rows[i : i + 900] for i in range(0, len(rows), 900)]
    image = b"".join(
        len(c).to_bytes(4, "big") + b"IDAT" + c + zlib.crc32(b"IDAT" + c).to_bytes(4, "big") for c in chunks
    )
    yield "opened/image.glyd", glyd.compress(b"\x89PNG\r\n\x1a\n" + image, "high", containers=True)


def line(name: str, data: bytes) -> str:
    """Return the line of the manifest, as the reference decoder reads the file."""
    try:
        content = decode(data)
    except FormatError as error:
        return f"{name} {STATUS[error.category]} 0 0\n"
    return f"{name} 0 {len(content)} {xxh3_64(content):016x}\n"


def main() -> int:
    """Write the files of some parts and the manifest of all."""
    by_library = {"encoded": encoded, "cold": cold, "opened": opened}
    if len(sys.argv) > 2 or sys.argv[1:2] not in ([], *([name] for name in by_library)):
        sys.stderr.write("usage: make_golden.py [encoded | cold | opened]\n")
        return 2
    parts = {name: by_library[name] for name in sys.argv[1:]} or {"rules": rules, "generated": generated}
    for make in parts.values():
        for name, data in make():
            path = GOLDEN / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                path.write_bytes(data)
    names = sorted(path.relative_to(GOLDEN).as_posix() for path in GOLDEN.rglob("*.glyd"))
    lines = [line(name, (GOLDEN / name).read_bytes()) for name in names]
    (GOLDEN / "manifest.txt").write_text("".join(lines), encoding="utf-8")
    sys.stdout.write(f"{len(lines)} files, {sum((GOLDEN / name).stat().st_size for name in names)} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

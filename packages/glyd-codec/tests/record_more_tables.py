# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""More tables for the tests of record segments: decimals, columns at fixed places, documents of JSON, lines that name
what other lines named, lines inside objects of JSON, and logs that look like tables."""

from __future__ import annotations

import json
import random


def decimals(n, seed=7):
    """Rows with decimals of more digits than a column holds, in quotes or not, some of few digits or none, and
    decimals as statistics programs write them, without a 0 before the point."""
    rng = random.Random(seed)
    out = ["i,sensor,charge,time,double,quoted,mixed,small,bare,short\n"]
    for i in range(n):
        small = f"{rng.gauss(0, 1) / 1000:.12f}"
        mixed = rng.choice(["0", "1", "0.5", "NA"]) if i % 9 == 0 else repr(rng.uniform(-5, 5))
        bare = f"{rng.gauss(0, 1):.7g}".replace("0.", ".", 1)
        short = f"{rng.gauss(0, 1):.3f}".replace("0.", ".", 1)
        time = f"2024-03-{1 + i // 1440:02} {i // 60 % 24:02}:{i % 60:02}:00"
        out.append(
            f'{i},sensor-{rng.randrange(40)},{rng.randrange(100)}%,{time},{rng.uniform(-500, 500)!r},"{rng.uniform(0, 9)!r}",{mixed},{small},{bare},{short}\n'
        )
    return "".join(out).encode()


def jobs(n, seed=9):
    """Lines of several kinds that name the same jobs, and words of one another."""
    rng = random.Random(seed)
    words = [rng.randbytes(rng.randrange(2, 6)).hex() for _ in range(90)]
    out = []
    for i in range(n):
        job, first = rng.randbytes(8).hex(), " ".join(rng.choice(words) for _ in range(6))
        time = f"2024-02-03 04:{i // 60 % 60:02}:{i % 60:02}"
        out.append(f"{time} INFO queue: job {job} begun: {first}\n")
        if i % 5 == 2:
            out.append(f"{time} WARN queue: slow after {rng.randrange(900)} ms\n")
        if i % 7 != 3:
            out.append(f"{time} INFO worker: {rng.randrange(999)} rows by {job} with {first} and no more\n")
    return "".join(out).encode()


def wrapped(lines, seed=10, *, spaced=False):
    """Lines of a log as texts of JSON objects, with quotes and ends of lines escaped."""
    rng = random.Random(seed)
    out = []
    for i, line in enumerate(lines.decode().splitlines()):
        row = {"log": f'{line} "GET /{rng.randrange(90)} {rng.choice(["ok", "not"])}" \\\n', "stream": "stdout"}
        row["time"] = f"2024-02-03T04:{i // 60 % 60:02}:{i % 60:02}.{rng.randrange(10**9):09}Z"
        out.append(json.dumps(row, separators=None if spaced else (",", ":")) + "\n")
        if i % 400 == 7:
            out.append('{"log":"' + "no more " * rng.randrange(9) + "\n")
    return "".join(out).encode()


def queries(n, seed=12):
    """Lines of a name server: each name is made of other words, and stands in a line twice."""
    rng = random.Random(seed)
    words = ["api", "cdn", "mail", "db", "auth", "node-7", "us-east-1", "b2b", "metrics", "img"]
    names = [".".join(rng.choice(words) for _ in range(rng.randrange(1, 4))) for _ in range(300)]
    out = []
    for i in range(n):
        name = f"{rng.choice(names)}.{rng.choice(['example', 'test', 'internal'])}"
        client = f"client @0x7f{rng.randrange(4):09x} 10.0.0.{rng.randrange(60)}#{rng.randrange(1024, 65536)}"
        time = f"03-Feb-2024 04:{i // 60 % 60:02}:{i % 60:02}.{rng.randrange(1000):03}"
        out.append(f"{time} {client} ({name}): query: {name} IN {rng.choice(['A', 'AAAA', 'MX'])} + (10.0.0.1)\n")
        if i % 2 == 0:
            out.append(f"{time} {client} ({name}): query failed (REFUSED) for {name}/IN/A at query.c:5708\n")
    return "".join(out).encode()


def proxied(n, seed=13):
    """Lines of a proxy: nearly all have as many semicolons, in the names of browsers."""
    rng = random.Random(seed)
    systems = ["Windows NT 10.0; Win64; x64", "X11; Linux x86_64; rv:120.0", "Linux; Android 13; Pixel 7"]
    out = []
    for i in range(n):
        time = f"03/Feb/2024:04:{i // 60 % 60:02}:{i % 60:02}.{rng.randrange(1000):03}"
        agent = f"Mozilla/5.0 ({rng.choice(systems)}) Version/{rng.randrange(90, 130)}"
        path = f"/{rng.choice(['c', 'p', 'api/v2'])}/{rng.choice(['boots', 'lamps', 'toys'])}-{rng.randrange(999)}"
        sizes = f"0/0/{rng.randrange(9)}/{rng.randrange(80)} 200 {rng.randrange(100, 4000)}"
        out.append(f'10.0.0.{rng.randrange(40)}:{rng.randrange(65536)} [{time}] www {sizes} {{{agent}}} "GET {path}"\n')
    return "".join(out).encode()


def messages(n, seed=14):
    """Lines of JSON of a service, of which messages are less than half."""
    rng = random.Random(seed)
    out = []
    for i in range(n):
        text = rng.choice(
            [
                f"Token validated for user {rng.randrange(900)} in {rng.randrange(99)} ms",
                f"Request GET /{rng.choice('abcd')}/{rng.choice(['x', 'y'])}-{rng.randrange(99)} completed with status 200",
                f"Item {rng.randrange(9000)} added to cart {rng.randrange(400)}: total={rng.random() * 300:.2f}",
            ]
        )
        row = {"timestamp": f"2024-02-03T04:{i // 60 % 60:02}:{i % 60:02}.{rng.randrange(10**6):06}Z", "event": text}
        row |= {"level": rng.choice(["info", "debug"]), "logger": f"shop.{rng.choice(['cart', 'auth'])}", "pid": 4711}
        out.append(json.dumps(row) + "\n")
    return "".join(out).encode()


def requests(n, seed=15):
    """Lines of JSON whose keys come in any order, and are not always there."""
    rng = random.Random(seed)
    out = []
    for i in range(n):
        headers = {
            "Id": [rng.randbytes(4).hex()],
            "User-Agent": [f"Agent/{rng.randrange(1, 40)}.0 (X11; Linux x86_64)"],
            "Accept": ["*/*"],
            "Referer": [f"https://shop.example/p/{rng.randrange(300)}"],
            "Cookie": [f"lang={rng.choice(['en', 'de'])}; seen={rng.randrange(9)}"],
        }
        keys = rng.sample(list(headers), rng.randrange(2, 6))
        row = {"level": "info", "ts": 1.7e9 + i / 8, "request": {"uri": f"/a/{rng.randrange(90)}"}}
        row["request"]["headers"] = {key: headers[key] for key in keys}
        row |= {"status": rng.choice([200, 404]), "size": rng.randrange(3000)}
        if i % 300 == 7:
            row["error"] = f"dialing 10.0.0.{rng.randrange(9)}: refused"
        out.append(json.dumps(row, separators=(",", ":")) + "\n")
        if i % 500 == 3:
            out.append('{"level":"info","ts":\n')
    return "".join(out).encode()


def columns(n, seed=8):
    """Lines of columns at fixed places, and a few others."""
    rng = random.Random(seed)
    out = ["# made of numbers\n"]
    for i in range(n):
        name = rng.choice(["alpha", "beta", "a longer name", ""])
        out.append(f"{i:7}{rng.gauss(0, 90):12.4f} {rng.randrange(10**9):11}  {name:14}{rng.uniform(0, 9):9.3f}\n")
        if i % 500 == 9:
            out.append("a line of another length\n")
    return "".join(out).encode()


def documents(lines, seed=6):
    """Return JSON documents of the objects of some lines: an array of objects over several lines, an object of
    objects on one, arrays of values, features of a map, and lines of points. Keys are optional and nested."""
    rng = random.Random(seed)
    rows = [json.loads(line) for line in lines.splitlines()]
    for i, row in enumerate(rows):
        row["name"] = rng.choice(
            ["a, b", 'say "[x]"', "}{", "\\", "caf\N{LATIN SMALL LETTER E WITH ACUTE}", "two\nlines"]
        )
        row["at"] = [round(rng.uniform(-180, 180), 5), round(rng.uniform(-90, 90), 5)]
        if i % 11 == 0:
            row["note"] = None
    features = [
        {"type": "Feature", "properties": row, "geometry": {"type": "Point", "coordinates": row["at"]}} for row in rows
    ]
    arrays = [list(row.values()) for row in rows]
    yield "pretty", json.dumps({"version": 1, "rows": rows}, indent=2)
    yield "keyed", json.dumps({str(1000 + 7 * i): row for i, row in enumerate(rows)}, ensure_ascii=False)
    yield "arrays", json.dumps({"fields": list(rows[0]), "data": arrays}, separators=(",", ":"))
    yield "features", json.dumps({"type": "FeatureCollection", "features": features})
    walks = [
        [[round(rng.uniform(0, 90), 4), i % 90] for i in range(rng.randrange(5, 60))] for _ in range(len(rows) // 20)
    ]
    yield "lines", json.dumps([{"id": i, "line": line} for i, line in enumerate(walks)])

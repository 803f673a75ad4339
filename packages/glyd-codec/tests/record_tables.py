# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Tables for the tests of record segments: plain ones, and ones with something odd in them."""

from __future__ import annotations

import json
import random

from record_more_tables import columns, decimals, documents, jobs, messages, proxied, queries, requests, wrapped

import glyd

RECORD_LEVELS = tuple(level for level in glyd.LEVELS if level != "cold")  # which has a model of its own

WORDS = [
    "",
    "NA",
    "north",
    "a,b",
    'say "x"',
    "0",
    "007",
    "-0",
    "1e400",
    "1.50",
    "1,5",
    "\N{LATIN SMALL LETTER U WITH DIAERESIS}ber",
    "NULL",
    "\\N",
    "2024-02-30",
]


def table(n, seed=1, sep=",", end="\n", first=0):
    """Rows with integers, decimals, dates, times, words, text and columns that follow from others."""
    rng = random.Random(seed)
    out = []
    for i in range(first, first + n):
        a, b = rng.randrange(1000), rng.randrange(60)
        minute = 300 + 7 * (i % 90)
        fields = [
            i,
            a,
            a + b,
            f"{a / 8:.3f}",
            f"{a / 4:g}",
            f"{minute // 60}{minute % 60:02}",
            f"2024-{1 + i // 3000 % 12:02}-{1 + i // 100 % 28:02}T{i // 60 % 24:02}:{i % 60:02}:{b:02}.{a:03}Z",
            ["north", "south", "NA"][rng.randrange(3)],
            "" if b == 7 else rng.choice(["x1", "x2", "x3"]),
            f"{i % 97:05}",
            rng.randbytes(rng.randrange(9)).hex(),
        ]
        out.append(sep.join(map(str, fields)) + end)
    return "".join(out).encode()


def objects(n, seed=2):
    rng = random.Random(seed)
    rows = []
    for i in range(n):
        row = {"ts": f"2024-05-{1 + i // 2000:02}T{i // 90 % 24:02}:{i // 3 % 60:02}:{i % 60:02}Z", "id": i}
        row["user"] = {"name": rng.choice(["ann", "bob"]), "age": rng.choice([None, 31, 47])}
        if i % 5 == 0:
            row["tags"] = [rng.randrange(9) for _ in range(rng.randrange(4))]
        rows.append(json.dumps(row) + "\n")
    return "".join(rows).encode()


def statements(n, per=50):
    rows = [f"({i},'it''s {i % 7}',{i * 13 % 1000}.5,NULL,'2024-01-{1 + i // 100 % 28:02} 10:00:00')" for i in range(n)]
    parts = [",".join(rows[i : i + per]) for i in range(0, n, per)]
    return ("CREATE TABLE t (x int);\n" + "".join(f"INSERT INTO `t` VALUES {p};\n" for p in parts)).encode()


def dump(n):
    one = b"".join(b"%d\t%d\t\\N\tword %d\n" % (i, i * i, i % 5) for i in range(n))
    two = b"".join(b"%d\t2024-01-01 00:%02d:00\n" % (i, i % 60) for i in range(n))
    return b"COPY a (x, y, z, w) FROM stdin;\n" + one + b"\\.\n\nCOPY b (x, y) FROM stdin;\n" + two + b"\\.\n"


def log(n, seed=3):
    rng = random.Random(seed)
    out = []
    for i in range(n):
        head = f"2024-06-{1 + i // 9000:02} {i // 400 % 24:02}:{i // 7 % 60:02}:{i % 60:02}.{rng.randrange(1000):03} [{rng.choice([17, 4242, 90210])}] "
        out.append(
            head
            + rng.choice(
                [
                    f"INFO: request {i} took {rng.randrange(90)}.{rng.randrange(10)} ms\n",
                    f"WARN: user {rng.choice(['ann', 'bob', 'eve'])} of host h{i % 13} failed to log in\n",
                    f'DEBUG: open("/var/tmp/f{rng.randrange(50)}", 0x{i * 77:x}) = {rng.randrange(-1, 9)}\n',
                    f"INFO: {' '.join(rng.choice(['one', 'two', 'three']) for _ in range(rng.randrange(7)))}\n",
                ]
            )
        )
    return "".join(out).encode()


def people(n, seed=4):
    """Rows in the order of their names, with large and long numbers, times finer than a column holds, and text
    that comes up again in the row."""
    rng = random.Random(seed)
    names = sorted(f"{rng.choice(WORDS[2:4])}{rng.randrange(n):04}"[:40] for _ in range(n))
    out = []
    for i, name in enumerate(names):
        city = rng.randbytes(4).hex() + "ville"
        ip = ".".join(str(rng.randrange(256)) for _ in range(4))
        moment = f"20{rng.randrange(10, 30)}-03-{1 + i % 28:02} 04:{i % 60:02}:09.{rng.randrange(10**6):06}"
        digits = f"{rng.randrange(10**15, 10**16)},{rng.randrange(10**7)},{rng.randrange(10**9) / 1000:.3f}"
        out.append(
            f'"{name}";{city};{city} old town;{digits.replace(",", ";")};{ip};{moment};{rng.randrange(1 << 27)}\n'
        )
    return "".join(out).encode()


def calls(n, seed=5):
    """Lines whose level, thread and logger vary on their own, and a few that begin otherwise."""
    rng = random.Random(seed)
    out = []
    for i in range(n):
        head = f"2024-02-03 04:{i // 60 % 60:02}:{i % 60:02},{rng.randrange(1000):03} [{rng.choice(['main', 'io'])}"
        head += f"-{rng.randrange(3)}] {rng.choice(['INFO', 'WARN', 'DEBUG'])} app.{rng.choice(['db', 'web'])}.Main - "
        mac = "52:54:00:0a:" + ":".join(f"{rng.randrange(256):02x}" for _ in range(2))
        tails = [f"took {rng.randrange(99) / 10} ms from {mac}", f"read {rng.randrange(99)} of {i}", "done"]
        out.append(head + rng.choice(tails) + "\n")
        if i % 97 == 5:
            out.append(f"Error: no row {i}\n\tat app.db.Pool.get(Pool.java:{rng.randrange(99)})\n")
    return "".join(out).encode()


def boots(n, seed=6):
    """Lines that have little in common but the fields they begin with; some have no rest."""
    rng = random.Random(seed)
    words = [rng.randbytes(rng.randrange(1, 5)).hex() for _ in range(60)]
    out = []
    for i in range(n):
        name = rng.choice(["kernel", f"cron[{rng.choice([71, 904])}]", f"sshd[{700 + i // 300}]"])
        rest = " ".join(rng.choice(words) for _ in range(rng.randrange(0, 5)))
        second = i * 11 + rng.randrange(9)
        out.append(f"Feb  3 0{second // 3600 % 10}:{second // 60 % 60:02}:{second % 60:02} host2 {name}: {rest}\n")
    return "".join(out).encode()


def notes(n, end, seed=7):
    """Rows with numbers and a long text; some texts have these bytes in them, quoted."""
    rng = random.Random(seed)
    words = [rng.randbytes(rng.randrange(1, 5)).hex() for _ in range(60)]
    out = []
    for i in range(n):
        text = " ".join(rng.choice(words) for _ in range(rng.randrange(3, 9)))
        numbers = f"{i * 37},2024-02-{1 + i // 100:02} 10:{i % 60:02}:00,{rng.randrange(99)}"
        out.append(f'{numbers},"{text}{end if i % 9 == 1 else ""}"\n')
    return "".join(out).encode()


CLEAN = {
    "csv": table(3000),
    "tsv": table(3000, sep="\t"),
    "semicolons": table(3000, sep=";"),
    "crlf": table(3000, end="\r\n"),
    "json": objects(3000),
    "sql": statements(3000),
    "copy": dump(3000),
    "log": log(3000),
    "people": people(2000),
    "calls": calls(3000),
    "decimals": decimals(3000),
    "columns": columns(3000),
    **{name: text.encode() for name, text in documents(objects(2000, 6))},
    "boots": boots(3000),
    "jobs": jobs(1500),
    "wrapped": wrapped(calls(1500)),
    "queries": queries(1500),
    "proxied": proxied(1500),
    "messages": messages(2500),
    "requests": requests(2000),
    "wrapped with spaces": wrapped(calls(1500, 11), spaced=True),
    "notes": notes(2000, "\n"),
    "notes with zeros": notes(2000, "\n\0"),
    "notes with all ends": notes(2000, "\n\0\t"),
}
LINES = CLEAN["csv"].splitlines(keepends=True)


def odd_inputs():
    """Return tables with something odd in them, each once."""
    csv = CLEAN["csv"]

    def put(at, *odd):
        return b"".join(LINES[:at]) + b"".join(odd) + b"".join(LINES[at:])

    yield "byte-order mark", b"\xef\xbb\xbf" + csv
    yield "utf-16", csv.decode().encode("utf-16")
    yield "latin-1", put(7, b"1,\xfc,\xff\n" * 3)
    yield "old mac", csv.replace(b"\n", b"\r")
    yield "mixed ends", b"".join(x.replace(b"\n", b"\r\n") if i % 7 == 0 else x for i, x in enumerate(LINES))
    yield "no end", csv[:-1]
    yield "cut", csv[:-25]
    yield "header", b"i,a,b,c,d,e,f,g,h,i,j\n" + csv
    yield "ragged", put(500, b"1,2\n", b"1" + b",2" * 30 + b"\n", b"\n", b",,,,,,,,,,\n")
    yield (
        "quotes",
        put(
            900,
            b'1,"a\nb",3,4,5,6,7,8,9,10,11\n',
            b'"unclosed,2,3,4,5,6,7,8,9,10,11\n',
            b'1,"a""b",3,4,5,6,7,8,9,10,"x"\r\n',
        ),
    )
    yield "nul bytes", put(1000, b"\0" * 3000 + b"\n", b"1,\0,3,4,5,6,7,8,9,10,11\n")
    yield "huge line", put(1500, b"x" * 2_000_000 + b"\n")
    yield "huge field", put(1500, b"1,2,3,4,5,6,7,8,9,10," + b"y" * 300_000 + b"\n")
    yield "only newlines", b"\n" * 20_000
    yield "only separators", b",,,\n" * 20_000
    yield "one column", b"".join(b"%d\n" % (i * i) for i in range(5000))
    yield "empty columns", b"1,,\n" * 5000
    yield "constant rows", b"1,2,3\n" * 5000
    yield "wide", b"\n".join(b",".join(b"%d" % (i * j % 97) for j in range(900)) for i in range(60)) + b"\n"
    yield "very wide", b"\n".join(b",".join(b"%d" % (i * j % 97) for j in range(3000)) for i in range(60)) + b"\n"
    yield "rows alike to the last", csv * 3
    yield "separators change", csv + table(900, 3, ";") + table(900, 4, "\t")
    numbers = [
        0,
        -1,
        1,
        255,
        256,
        65535,
        65536,
        2**31 - 17,
        2**31,
        -(2**31),
        2**53,
        2**61,
        2**62,
        2**63,
        10**18,
        10**19,
    ]
    for n in numbers:
        yield f"number {n}", b"".join(b"%d,%d,%d\n" % (i, n, n - i % 3) for i in range(400))
        yield f"one number {n}", b"".join(b"%d,%d\n" % (i, n if i == 200 else i * 3) for i in range(400))
    for word in [
        *WORDS,
        "+1",
        " 1",
        "1 ",
        "1.",
        ".5",
        "0.0",
        "-0.00",
        "0x1f",
        "1e5",
        "NaN",
        "Infinity",
        "00",
        "--1",
        "1-1",
    ]:
        text = word.encode()
        yield (
            f"word {word!r}",
            b"".join(
                b"%d,%d.%02d,%d\n" % (i, i, i % 100, i % 9) + (b"%d,%s,1\n" % (i, text) if i % 40 == 0 else b"")
                for i in range(600)
            ),
        )
        yield f"always {word!r}", b"".join(b"%d,%s,%s\n" % (i, text, text if i % 3 else b"7") for i in range(600))
    times = [
        "2024-02-29",
        "1900-02-29",
        "2023-02-29",
        "0000-01-01",
        "9999-12-31",
        "1969-12-31",
        "24:00:00",
        "23:59:60",
        "23:59:59",
        "2024-06-30T23:59:60Z",
        "2016-12-31 23:59:60",
        "01/Jan/2024:00:00:00",
        "31/Feb/2024:00:00:00",
        "Jan  1 00:00:00",
        "Jan 01 00:00:00",
        "Feb 29 12:00:00",
        "1/2/2024",
        "31/12/2024",
        "12/31/2024",
        "2024-01-01T00:00:00.123456",
        "2024-01-01T00:00:00.123456789",
        "2024-01-01T00:00:00,5+02:00",
    ]
    for time in times:
        yield (
            f"time {time}",
            b"".join(
                b"%d,2024-03-%02d %02d:%02d:00,%s\n"
                % (
                    i,
                    1 + i // 100 % 28,
                    i % 24,
                    i % 60,
                    time.encode() if i % 9 == 0 else b"2024-01-%02d" % (1 + i % 28),
                )
                for i in range(700)
            ),
        )
        yield f"all {time}", b"".join(b"%d,%s,x\n" % (i, time.encode()) for i in range(300))
        yield f"json {time}", b"".join(b'{"t": "%s", "n": %d}\n' % (time.encode(), i) for i in range(300))
    data = CLEAN["json"]
    rows = data.splitlines(keepends=True)
    legal = [
        b"{}\n",
        b"[]\n",
        b"1\n",
        b'"x"\n',
        b"null\n",
        b'{"id":1,"id":2}\n',
        b'{"":0}\n',
        b'{"a\\u0062":"\\ud800 \\" \\\\"}\n',
        b'{ "ts" : 1 ,\t"id":2 }\n',
        b"  {}\r\n",
        b'{"a":[{"b":[1]}]}\n',
    ]
    broken = [
        b'{"id":1,}\n',
        b'{"id":1\n',
        b"{'id':1}\n",
        b"}\n",
        b"[[[\n",
        b'"\n',
        b'{"a":\n',
        b'{"a":}\n',
        b'{"a":"\\\n',
        b"{" * 3000 + b"\n",
        b'{"bad":"\xff\xfe"}\n',
    ]
    for odd in legal + broken:
        yield f"json {odd[:12]!r}", b"".join(rows[:800]) + odd + b"".join(rows[800:])
        yield f"json often {odd[:12]!r}", b"".join(x + (odd if i % 11 == 0 else b"") for i, x in enumerate(rows[:900]))
    yield "json deep", b'{"a":' * 1000 + b"1" + b"}" * 1000 + b"\n" + data
    yield "json keys differ", b"".join(b'{"k%d":%d}\n' % (i * 7919 % 10007, i) for i in range(2000))
    yield "json pretty", json.dumps([json.loads(r) for r in rows[:500]], indent=1).encode()
    yield "json cut", data[:-9]
    yield "json crlf", data.replace(b"\n", b"\r\n")
    sql = CLEAN["sql"]
    for odd in (
        b"(1,2)",
        b"('never closed",
        b"-- note\n",
        b"INSERT INTO u (a,b) VALUES (1,2),(3,4);\n",
        b"(((1)))",
        b"VALUES (",
        b"'",
        b"\\",
        b"(),()",
    ):
        yield f"sql {odd!r}", sql[:40_000] + odd + sql[40_000:]
        yield f"sql front {odd!r}", odd + sql
        yield f"sql end {odd!r}", sql + odd
    yield "sql spaces", sql.replace(b",", b", ")
    yield "sql some spaces", sql[:50_000] + sql[50_000:60_000].replace(b",", b", ") + sql[60_000:]
    yield "sql spaces before only", sql.replace(b",", b" ,")
    yield "sql cut", sql[:-30]
    yield "sql one a line", b"".join(b"INSERT INTO t VALUES(%d,'x%d');\n" % (i, i % 5) for i in range(2000))
    yield "sql backslashes", b"INSERT INTO t VALUES " + b",".join(b"(%d,'a\\'b,(')" % i for i in range(2000)) + b";\n"
    copy = CLEAN["copy"]
    yield "copy cut", copy[:-9]
    yield "copy tabs", copy.replace(b"word", b"wo\trd", 40)

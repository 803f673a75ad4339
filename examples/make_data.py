# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: Apache-2.0
"""Make data of everyday kinds: the same files for the same scale, everywhere.

``python make_data.py FOLDER [--scale N]`` writes a service log, a telemetry
table, JSON events, an SQL dump and random bytes, N times about 2 MB each.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

START = datetime(2026, 3, 1, tzinfo=timezone.utc)
ROUTES = ("/", "/login", "/api/v1/orders", "/api/v1/orders/{}", "/api/v1/users/{}", "/static/app.{}.js", "/health")
WORDS = (  # noqa: SIM905  a table of words reads better so
    "connection accepted closed timeout retry queue worker started finished flushed segment index upstream "
    "cache miss hit evicted session token renewed expired request response header body checksum verified"
).split()


def service_log(rng: random.Random, count: int) -> Iterator[str]:
    """Yield lines of a web service's log: requests, sometimes a sentence."""
    now = START
    hosts = [f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(1, 255)}" for _ in range(400)]
    for _ in range(count):
        now += timedelta(milliseconds=int(rng.expovariate(1 / 40)))
        stamp = now.isoformat(timespec="milliseconds")
        if rng.random() < 0.15:
            text = " ".join(rng.choices(WORDS, k=rng.randrange(4, 12)))
            yield f"{stamp} INFO worker-{rng.randrange(16)} {text} id={rng.getrandbits(48):012x}\n"
        else:
            route = rng.choice(ROUTES).format(min(99999, int(rng.paretovariate(0.7))))
            status = rng.choices((200, 304, 404, 500), (90, 6, 3, 1))[0]
            size, spent = int(rng.lognormvariate(7, 1.5)), rng.lognormvariate(2, 0.8)
            yield f'{stamp} {rng.choice(hosts)} "GET {route} HTTP/1.1" {status} {size} {spent:.1f}ms\n'


def telemetry(rng: random.Random, count: int) -> Iterator[str]:
    """Yield rows of a CSV table of slowly moving measurements."""
    yield "time,device,temperature,humidity,voltage,rssi,state\n"
    state = {f"sensor-{n:04d}": [20 + rng.gauss(0, 4), 50.0, 3.3] for n in range(200)}
    for row in range(count):
        device = rng.choice(list(state))
        values = state[device]
        values[0] += rng.gauss(0, 0.05)
        values[1] += rng.gauss(0, 0.2)
        values[2] -= 1e-5
        mode = rng.choices(("ok", "idle", "charging", "fault"), (80, 15, 4, 1))[0]
        numbers = f"{values[0]:.2f},{values[1]:.1f},{values[2]:.3f},{-40 - rng.randrange(50)}"
        yield f"{(START + timedelta(seconds=row)).isoformat()},{device},{numbers},{mode}\n"


def events(rng: random.Random, count: int) -> Iterator[str]:
    """Yield JSON lines as an event bus would carry them."""
    for n in range(count):
        event = {
            "id": f"{rng.getrandbits(64):016x}",
            "type": rng.choice(("order.created", "order.paid", "user.updated", "item.viewed")),
            "at": (START + timedelta(seconds=n * 3)).isoformat(),
            "actor": {"id": int(rng.paretovariate(0.8)) % 100_000, "plan": rng.choice(("free", "team", "business"))},
            "items": [{"sku": f"SKU-{rng.randrange(5000):05d}", "n": rng.randrange(1, 5)} for _ in range(3)],
            "ok": rng.random() < 0.97,
        }
        yield json.dumps(event) + "\n"


def sql_dump(rng: random.Random, count: int) -> Iterator[str]:
    """Yield the rows of a dump of one table."""
    yield "COPY public.customers (id, name, city, balance, note) FROM stdin;\n"
    for n in range(count):
        name = "".join(rng.choices("aeioubcdfghklmnprstvwyz", k=rng.randrange(4, 11))).title()
        city = rng.choice(("Lisbon", "Osaka", "Bergen", "Quito", "Tartu", "Accra", "Hobart"))
        yield f"{n}\t{name}\t{city}\t{rng.uniform(0, 9000):.2f}\t{' '.join(rng.choices(WORDS, k=5))}\n"
    yield "\\.\n"


TEXTS: dict[str, tuple[Callable[[random.Random, int], Iterator[str]], int]] = {
    "service.log": (service_log, 23_000),
    "telemetry.csv": (telemetry, 31_000),
    "events.jsonl": (events, 8_000),
    "customers.sql": (sql_dump, 31_000),
}


def make(folder: Path, scale: int = 1) -> list[Path]:
    """Write all files; return their paths.

    Parameters
    ----------
    folder
        Existing folder to write into.
    scale
        How many times about 2 MB each file has.
    """
    paths = []
    for name, (generate, count) in TEXTS.items():
        path = folder / name
        with path.open("w", encoding="utf-8", newline="\n") as out:
            out.writelines(generate(random.Random(name), count * scale))
        paths.append(path)
    noise = folder / "random.bin"
    noise.write_bytes(random.Random(0).randbytes(scale << 20))
    return [*paths, noise]


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=int, default=1)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for path in make(options.folder, options.scale):
        print(f"{path.stat().st_size:12,} {path}")


if __name__ == "__main__":
    main()

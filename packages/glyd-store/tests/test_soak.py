# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``kill -9`` at any moment, again and again: what was acknowledged stays.

``GLYD_STORE_SOAK_S`` seconds (default 6), at moments drawn from ``GLYD_STORE_SEED``.
"""

import os
import random
import subprocess
import sys
import time

from glyd_store import Store

SECONDS = float(os.environ.get("GLYD_STORE_SOAK_S", "6"))
SEED = int(os.environ.get("GLYD_STORE_SEED", "1"))

WORK = """
import random, sys
from glyd_store import Store
store, seed = Store(sys.argv[1], level="turbo", threads=1), int(sys.argv[2])
rng = random.Random(seed)
base = random.Random(1).randbytes(300_000)
store.put("first", b"first %d" % seed)
say = lambda *words: print(*words, flush=True)
n = 0
while True:
    n += 1
    name = f"n{rng.randrange(30)}"
    kind = rng.randrange(12)
    if kind < 4:
        key = f"{seed}-{n}"
        info = store.put(name, key.encode() * rng.randrange(1, 300), tags={"key": key})
        say("put", info.id, info.sha256)
    elif kind < 8:
        cut = rng.randrange(len(base))
        info = store.put(name, base[:cut] + b"%d" % n + base[cut:])
        say("put", info.id, info.sha256)
    elif kind == 8:
        for info in store.put_many([(f"m{i}", b"%d %d %d" % (seed, n, i)) for i in range(20)]):
            say("put", info.id, info.sha256)
    elif kind == 9:
        some = rng.sample([i.id for i in store.list()] or [0], 1)
        if some != [0]:
            say("deleting", some[0])
            store.delete(some)
            say("deleted", some[0])
    elif kind == 10:
        store.compact()
    else:
        try:
            store.rebase(name)
        except LookupError:
            pass
"""


def test_kill(tmp_path):
    there, unsure, gone = {}, set(), set()
    rng = random.Random(SEED)
    print(f"seed {SEED}")
    end = time.monotonic() + SECONDS
    n_kills = 0
    while time.monotonic() < end or n_kills < 3:
        n_kills += 1
        command = [sys.executable, "-c", WORK, str(tmp_path / "s"), str(n_kills)]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first = worker.stdout.readline() if n_kills % 3 else ""  # every third may be killed before it has done a thing
        time.sleep(0.2 + rng.random() * 1.2)
        worker.kill()
        out, err = worker.communicate()
        out = first + out
        assert not err, err
        for line in out.splitlines(keepends=True):
            if not line.endswith("\n"):
                continue  # not acknowledged
            what, number, *rest = line.split()
            number = int(number)
            if what == "put":
                there[number] = rest[0]
            elif what == "deleting":
                unsure.add(number)
            else:
                unsure.discard(number)
                there.pop(number, None)
                gone.add(number)
        if not there:
            continue
        with Store(tmp_path / "s") as store:
            listed = {info.id: info.sha256 for info in store.list()}
            for number in unsure - set(listed):
                there.pop(number, None)
            unsure.clear()
            assert not gone & set(listed)
            assert there.items() <= listed.items()
            for number in rng.sample(sorted(listed), min(20, len(listed))):
                store.get(number)  # checks the hash
            report = store.check(read_data=1)
            assert report.ok, report.problems
    with Store(tmp_path / "s") as store:
        for number in there:
            store.get(number)
        assert store.rebuild() == []
        assert store.check(decode=True).ok
    print(f"{n_kills} kills, {len(there)} objects")

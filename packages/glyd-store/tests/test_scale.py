# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Many objects, and objects larger than the memory there is."""

import os
import random
import resource
import subprocess
import sys
import time

import pytest

from glyd_store import Store

IS_SOAK = "GLYD_STORE_SOAK_S" in os.environ
N_OBJECTS = 100_000 if IS_SOAK else 5_000


def lower_quartile(times):
    """Return what most calls take at most, but those that something else held up."""
    return sorted(times)[len(times) // 4]


def test_many_objects(tmp_path):
    """Opening, putting and getting take no longer with 100,000 objects than with few; memory stays."""
    clock = time.process_time  # what the disk and other programs take is not ours
    store = Store(tmp_path / "s", level="fast", threads=1)
    times = {}
    for n in (1000, N_OBJECTS):
        have = store.stats().n_objects if n > 1000 else 0
        for info in store.put_many((f"dir{i % 100}/object {i}", b"object %d\n" % i * (i % 40)) for i in range(have, n)):
            last = info
        gets, puts, opens = [], [], []
        for i in random.Random(n).sample(range(1, n), 100):
            start = clock()
            store.get(i)
            gets.append(clock() - start)
        for i in range(20):
            start = clock()
            store.put(f"extra {n} {i}", b"extra %d %d" % (n, i))
            puts.append(clock() - start)
        for _ in range(5):
            store.close()
            start = clock()
            store = Store(tmp_path / "s", level="fast", threads=1)
            store.info(f"extra {n} 3")
            opens.append(clock() - start)
        times[n] = tuple(map(lower_quartile, (gets, puts, opens)))
    assert last.id >= N_OBJECTS - 1000
    print({n: [f"{1000 * t:.2f} ms" for t in found] for n, found in times.items()})
    few, many = times[1000], times[N_OBJECTS]
    assert many[2] < 0.5
    assert many[0] < 3 * few[0] + 0.002
    assert many[1] < 3 * few[1] + 0.020
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{peak:.0f} MiB at most")
    code = (
        "import resource, sys, time\n"
        "from glyd_store import Store\n"
        "s = Store(sys.argv[1], level='fast', threads=1)\n"
        "s.put('x', b'1'); s.get('object 17') if 0 else s.get(17)\n"
        "n = sum(1 for _ in s.list())\n"
        "r = s.check()\n"
        "assert r.ok, r.problems[:3]\n"
        "s.rebuild()\n"
        "print(n, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)\n"
    )
    found = subprocess.run([sys.executable, "-c", code, str(tmp_path / "s")], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    n, mib = map(int, found.stdout.split())
    print(f"{n} objects: put, get, list, check and rebuild in {mib} MiB")
    assert n >= N_OBJECTS
    assert mib <= 300


@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_DATA to count anonymous memory, as Linux does")
def test_object_larger_than_memory(tmp_path):
    """An object, and a version of it that is stored against it, of more bytes than may be allocated."""
    size = (1500 if IS_SOAK else 600) << 20
    limit = (700 if IS_SOAK else 400) << 20
    code = (
        "import random, resource, sys, hashlib\n"
        "size, limit = int(sys.argv[2]), int(sys.argv[3])\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))\n"
        "from glyd_store import Store\n"
        "class Made:\n"
        "    def __init__(self, edit): self.left, self.edit, self.n = size, edit, 0\n"
        "    def read(self, n):\n"
        "        n = min(n, self.left, 1 << 20); self.left -= n; self.n += 1\n"
        "        seed = self.n + (1000000 if self.edit and self.n % 50 == 0 else 0)\n"
        "        return (random.Random(seed).randbytes(n // 8) * 9)[:n]\n"
        "class Sum:\n"
        "    def __init__(self): self.h = hashlib.sha256()\n"
        "    def write(self, b): self.h.update(b); return len(b)\n"
        "s = Store(sys.argv[1], level='turbo', threads=1)\n"
        "for edit in (False, True):\n"
        "    i = s.put('big', Made(edit)); out = Sum(); s.get_into(i, out)\n"
        "    assert out.h.hexdigest() == i.sha256 and i.size == size\n"
        "    print(i.n_decodes, i.stored_nbytes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)\n"
        "with s.open('big') as f:\n"
        "    f.seek(size - 5); assert len(f.read()) == 5\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "s"), str(size), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    assert done.stdout.splitlines()[1].startswith("2 ")

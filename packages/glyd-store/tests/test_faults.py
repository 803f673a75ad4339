# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Every operation of every kind of work fails once in every way: nothing acknowledged is lost.

For each scenario and each operation in it: EIO, ENOSPC, and a power cut after which the
disk holds what a disk may hold (see sim_disk), with an index of now or of before. Then
the store must open, give back all that was acknowledged, be clean in `check`, and work.
``GLYD_STORE_FAULTS`` says about how many faults to inject (default 600).
"""

import gzip
import os
import random
import shutil
import sys
import tempfile

import pytest

from glyd_store import Store, _packing, _put, _recode
from glyd_store._index import Index

sys.path.insert(0, os.path.dirname(__file__))
from sim_disk import PowerLoss, SimBackend, SimDisk

N_FAULTS = int(os.environ.get("GLYD_STORE_FAULTS", "600"))


def noise(n, seed):
    return random.Random(seed).randbytes(n)


TEXT = b"".join(b"line %d of a dump %d\n" % (i, i * i) for i in range(600))
BIG = noise(9000, 1) + TEXT
PACKED = [gzip.compress(TEXT + b"version %d" % i, mtime=0) for i in range(3)]  # stored as what is inside


class Bench:
    """A store on a simulated disk, and what was acknowledged about it."""

    def __init__(self, folder):
        self.folder = folder
        self.path = os.path.join(folder, "index.sqlite")
        self.disk = SimDisk()
        self.objects = {}  # id → (name, content): must be there
        self.gone = set()  # ids that must not be listed
        self.unsure = set()  # ids that an operation under way was deleting

    def open(self):
        return Store(SimBackend(self.disk, self.path), level="turbo", threads=1, open_streams=True)

    def put(self, store, name, data):
        info = store.put(name, data)
        self.objects[info.id] = (name, data)
        return info.id

    def delete(self, store, ids):
        ids = list(ids)
        self.unsure |= set(ids)
        doomed = {i: self.objects.pop(i) for i in ids}
        store.delete(ids)
        self.gone |= set(doomed)

    def verify(self, store):
        for number, (name, data) in self.objects.items():
            assert store.info(number).name == name
            assert store.get(number) == data, (number, name)
        listed = {info.id for info in store.list()}
        assert listed >= set(self.objects)
        assert not listed & self.gone
        for number in self.unsure & listed:
            store.get(number)
        report = store.check(read_data=1)
        assert report.ok, report.problems


def base_state(bench):
    """Some of everything: alone, against a base, duplicates, packs, waiting small ones, deleted ones."""
    with bench.open() as store:
        bench.put(store, "big", BIG)
        bench.put(store, "big", BIG[:3000] + b"changed" + BIG[3000:])
        bench.put(store, "dup", BIG)
        bench.put(store, "packed", PACKED[0])
        bench.put(store, "packed", PACKED[1])
        bench.put(store, "alone", noise(5000, 7))
        for i in range(3):
            bench.put(store, f"small{i}", b"small %d" % i * 20)
        for info in store.put_many([(f"many{i}.txt", b"many %d\n" % i * 9) for i in range(5)]):
            bench.objects[info.id] = (info.name, b"many %d\n" % int(info.name[4]) * 9)
        first = [i for i, (name, _) in bench.objects.items() if name in {"alone", "many0.txt", "small1"}]
        bench.delete(store, first)
    bench.unsure = set()


def put_large(bench, store):
    bench.put(store, "new", noise(7000, 3) + TEXT)


def put_with_parity(bench, store):
    store.parity = 25
    bench.put(store, "new", noise(6000, 8))
    store.compact()


def put_version(bench, store):
    bench.put(store, "big", BIG[:5000] + b"changed again" + BIG[5100:])


def put_opened(bench, store):
    bench.put(store, "packed", PACKED[2])


def put_small(bench, store):
    bench.put(store, "tiny", b"tiny")


def put_duplicate(bench, store):
    bench.put(store, "copy", BIG)


def put_packed(bench, store):
    """The put that fills the waiting room: a pack is written."""
    for i in range(3):
        bench.put(store, f"last{i}", b"last %d" % i * 30)


def put_many(bench, store):
    data = {f"p{i}": b"p %d" % i * 40 for i in range(6)}
    for info in store.put_many(list(data.items())):
        bench.objects[info.id] = (info.name, data[info.name])


def delete(bench, store):
    bench.delete(store, [i for i, (name, _) in bench.objects.items() if name in {"dup", "many1.txt", "small0"}])


def compact(bench, store):
    store.compact()


def delete_and_compact(bench, store):
    names = {"big", "dup", "packed", "many1.txt", "many2.txt", "many3.txt", "small0", "small2"}
    bench.delete(store, [i for i, (name, _) in bench.objects.items() if name in names])
    store.compact()


def recode(bench, store):
    store.compact(level="ultra")


def rebase(bench, store):
    store.rebase(next(i for i, (name, data) in bench.objects.items() if name == "big" and data != BIG))


def rebuild(bench, store):
    store.rebuild()


def first_put(bench, store):
    bench.put(store, "first", noise(4000, 5))


SCENARIOS = {
    f.__name__: f
    for f in (
        put_large, put_with_parity, put_version, put_opened, put_small, put_duplicate, put_packed, put_many,
        delete, compact, delete_and_compact, recode, rebase, rebuild, first_put,
    )
}  # fmt: skip


@pytest.fixture(scope="module")
def small_limits():
    """The sizes at which the store changes its ways, made small: the ways are the same."""
    patch = pytest.MonkeyPatch()
    patch.setattr(_put, "SMALL_NBYTES", 2000)
    patch.setattr(_packing, "N_WAITING", 6)
    patch.setattr(_recode, "WORTH_NBYTES", 0)
    apply = Index.apply

    def counted(self, entries):
        disk = getattr(self, "disk", None) or CURRENT[0]
        disk.op("index", "before")
        apply(self, entries)
        disk.op("index", "after")

    patch.setattr(Index, "apply", counted)
    yield
    patch.undo()


CURRENT = [None]


class Prepared:
    """A state to start from, copied for each run."""

    def __init__(self, tmp, empty):
        self.tmp = tmp
        self.bench = Bench(tempfile.mkdtemp(dir=tmp))
        CURRENT[0] = self.bench.disk
        if not empty:
            base_state(self.bench)

    def copy(self):
        bench = Bench(tempfile.mkdtemp(dir=self.tmp))
        bench.disk = self.bench.disk.snapshot()
        bench.objects, bench.gone = dict(self.bench.objects), set(self.bench.gone)
        for name in os.listdir(self.bench.folder):
            shutil.copy(os.path.join(self.bench.folder, name), bench.folder)
        CURRENT[0] = bench.disk
        return bench


def run_once(prepared, work, fail_at, mode, seed):
    """Return the number of operations, and whether the fault happened."""
    bench = prepared.copy()
    try:
        bench.disk.arm(fail_at, mode)
        known = dict(bench.objects)
        store = bench.open()
        died = False
        try:
            work(bench, store)
        except (OSError, PowerLoss) as error:
            if not bench.disk.fired:
                raise  # not ours
            died = isinstance(error, PowerLoss)
        n_ops, fired = bench.disk.n_ops, bench.disk.fired
        store.close()
        if bench.disk.is_dead:
            bench.disk.power_cycle(seed)
            if seed % 4 == 0:  # the index lost what it had not put into its main file
                for name in os.listdir(bench.folder):
                    os.unlink(os.path.join(bench.folder, name))
                for name in os.listdir(prepared.bench.folder) if seed % 8 else ():  # or all of it
                    shutil.copy(os.path.join(prepared.bench.folder, name), bench.folder)
        bench.disk.fail_at = None
        if work is first_put and not bench.objects:
            pass  # there may be no store yet
        else:
            with bench.open() as store:
                bench.verify(store)
        assert died or mode != "kill" or not fired or set(bench.objects) >= set(known) - bench.unsure
        with bench.open() as store:
            bench.put(store, "after", b"works " * 50)
            bench.put(store, "after large", noise(5000, seed))
            bench.verify(store)
            store.compact()
            bench.verify(store)
        if seed % 3 == 0:
            with bench.open() as store:
                assert store.rebuild() == []
                bench.verify(store)
        return n_ops, fired
    finally:
        shutil.rmtree(bench.folder, ignore_errors=True)


@pytest.fixture(scope="module")
def states(small_limits):
    folder = tempfile.mkdtemp(prefix="glyd-faults-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    yield {False: Prepared(folder, False), True: Prepared(folder, True)}
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("name", SCENARIOS)
def test_faults(name, states, record_property):
    work = SCENARIOS[name]
    prepared = states[work is first_put]
    n_ops, _ = run_once(prepared, work, None, "eio", 0)
    assert n_ops > 10
    wanted = max(N_FAULTS // len(SCENARIOS), 1)
    modes = [("eio", 0), ("enospc", 1), *(("kill", seed) for seed in range(max(1, wanted // n_ops - 2)))]
    runs = [(at, mode, seed) for at in range(n_ops) for mode, seed in modes]
    random.Random(name).shuffle(runs)
    n_fired = 0
    for at, mode, seed in runs[: max(wanted, 1)]:
        try:
            _, fired = run_once(prepared, work, at, mode, seed * n_ops + at)
        except BaseException as error:
            error.add_note(f"{name}: operation {at} of {n_ops}, {mode}, seed {seed * n_ops + at}") if hasattr(
                error, "add_note"
            ) else None
            raise
        n_fired += fired is not None
    record_property("faults", n_fired)
    print(f"{name}: {n_ops} operations, {n_fired} faults")
    assert n_fired >= 0.9 * min(wanted, len(runs))

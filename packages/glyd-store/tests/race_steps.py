# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What readers and writers do that race with each other (see racing), and what readers must then see."""

import gzip
import random
from contextlib import suppress
from datetime import datetime, timezone

from glyd_store import ObjectNotFoundError, Policy, Store

BEFORE_S = 1_000_000_000
"""A moment after the first state and before all steps, by the clocks here."""


def noise(n, seed):
    return random.Random(seed).randbytes(n)


TEXT = b"".join(b"line %d of a dump %d\n" % (i, i * i) for i in range(600))
BIG = noise(9000, 1) + TEXT
LATER = BIG[:3000] + b"changed" + BIG[3000:]
PACKED = [gzip.compress(TEXT + b"version %d" % i, mtime=0) for i in range(3)]  # stored as what is inside


# ---- states


def fill(store):
    """Some of everything: alone, against a base, duplicates, packs, waiting small ones, deleted ones."""
    store._core.clock = Clock((BEFORE_S - 1000) * 10**9)
    store.put("big", BIG)
    store.put("big", LATER)
    store.put("packed", PACKED[0])
    store.put("dup", BIG)
    store.put("packed", PACKED[1])
    store.put("alone", noise(5000, 7))
    for i in range(3):
        store.put(f"small{i}", b"small %d" % i * 20)
    list(store.put_many([(f"many{i}.txt", b"many %d\n" % i * 9) for i in range(5)]))
    store.delete([i.id for i in store.list() if i.name in {"alone", "many0.txt", "small1"}])
    store.put("big", LATER[:6000] + b"again" + LATER[6000:])


class States:
    """All states that the store was in: of each, names and contents by id."""

    def __init__(self, store):
        self.all = []
        self.add(store)

    def add(self, store):
        self.all.append({info.id: (info.name, store.get(info)) for info in store.list()})

    def newest(self, state):
        return {name: data for _, (name, data) in sorted(state.items())}


# ---- what writers do


class Clock:
    """A second a look, so that a moment between two operations can be named."""

    def __init__(self, start):
        self.now = start

    def __call__(self):
        self.now += 10**9
        return self.now


def put_version(store):
    store.put("big", BIG[:5000] + b"changed again" + BIG[5100:])


def put_opened(store):
    store.put("packed", PACKED[2])


def put_small(store):
    store.put("tiny", b"tiny")


def put_packed(store):
    """The put that fills the waiting room: a pack is written, entries go."""
    for i in range(3):
        store.put(f"last{i}", b"last %d" % i * 30)


def delete(store):
    store.delete([i.id for i in store.list() if i.name in {"dup", "many1.txt", "small0"}])


def compact(store):
    store.compact()


def delete_and_compact(store):
    names = {"dup", "many1.txt", "many2.txt", "many3.txt", "small0", "small2"}
    firsts = {next((i.id for i in store.list() if i.name == name), None) for name in ("big", "packed")}
    store.delete([i.id for i in store.list() if i.name in names or i.id in firsts])
    store.compact()


def delete_all_versions(store):
    store.delete([i.id for i in store.list() if i.name in {"big", "packed"}])
    store.compact()


def prune_and_compact(store):
    store.prune(Policy(last=1))
    store.compact()


def recode(store):
    store.compact(level="ultra")


def rebase(store):
    for name in ("big", "packed"):
        with suppress(ObjectNotFoundError):
            store.rebase(name)


def add_parity(store):
    store.parity = 25
    store.compact()


def rebuild(store):
    assert store.rebuild() == []


def storm(store):
    """Packs and moves one after the other: what was dropped first is dropped by what is dropped as well."""
    put_packed(store)
    rebase(store)
    put_version(store)
    delete_and_compact(store)
    put_packed(store)
    rebase(store)
    store.compact()
    put_small(store)


STEPS = {
    f.__name__: f
    for f in (
        put_version, put_opened, put_small, put_packed, delete, compact, delete_and_compact, delete_all_versions,
        prune_and_compact, recode, rebase, add_parity, rebuild, storm,
    )
}  # fmt: skip


# ---- what readers do


def read_list(store, states, _out):
    found = {info.id: (info.name, info.size) for info in store.list()}
    assert found in [{i: (name, len(data)) for i, (name, data) in state.items()} for state in states.all]


def read_newest(store, states, _out):
    found = {info.name: info.size for info in store.newest()}
    wanted = [{name: len(data) for name, data in states.newest(state).items()} for state in states.all]
    assert found in wanted, (found, wanted)


def read_versions(store, states, _out):
    try:
        found = [info.id for info in store.versions("big")]
    except ObjectNotFoundError:
        found = []
    assert found in [[i for i, (name, _) in state.items() if name == "big"] for state in states.all]


def read_sums(store, states, _out):
    found = store.stats()
    assert (found.n_objects, found.content_nbytes, found.n_names) in [
        (len(s), sum(len(data) for _, data in s.values()), len({name for name, _ in s.values()})) for s in states.all
    ]
    by_name = {name: (n, size) for name, n, size, _ in store.du()}
    wanted = []
    for state in states.all:
        sums = {}
        for name, data in state.values():
            n, size = sums.get(name, (0, 0))
            sums[name] = n + 1, size + len(data)
        wanted.append(sums)
    assert by_name in wanted


def _of(states, ref, name, data):
    """Assert that content is what a reference meant in some state."""
    if isinstance(ref, int):
        assert any(state.get(ref, ("", None))[1] == data for state in states.all), (ref, name)
    else:
        assert data in [states.newest(state).get(ref) for state in states.all], ref


def _may_be_gone(states, ref):
    return any(ref not in (state if isinstance(ref, int) else states.newest(state)) for state in states.all)


def _read_each(store, states, read):
    for ref in [*sorted(states.all[0]), "big", "packed", "small2", "many3.txt"]:
        try:
            data = read(ref)
        except ObjectNotFoundError:
            assert _may_be_gone(states, ref), ref
        else:
            _of(states, ref, "", data)


def read_get(store, states, _out):
    _read_each(store, states, store.get)


def read_into(store, states, out):
    def read(ref):
        store.get_into(ref, out / "file")
        return (out / "file").read_bytes()

    _read_each(store, states, read)
    assert [f.name for f in out.iterdir()] == ["file"]  # nothing temporary is left


def read_open(store, states, _out):
    def read(ref):
        with store.open(ref) as file:
            size = file.seek(0, 2)
            half = size // 2
            file.seek(half)
            late = file.read()
            file.seek(0)
            return file.read(half) + late

    _read_each(store, states, read)


def read_held(store, states, _out):
    """Files that are open while others are read."""
    opened = []
    for ref in sorted(states.all[0]):
        with suppress(ObjectNotFoundError):
            opened.append((ref, store.open(ref)))
    for ref, file in opened:
        with file:
            try:
                file.seek(10)
                tail = file.read()
                file.seek(0)
                _of(states, ref, "", file.read(10) + tail)
            except ObjectNotFoundError:
                assert _may_be_gone(states, ref), ref


def read_restore(store, states, out):
    found = {info.name: data for info, path in store.restore(out / "all") for data in [open(path, "rb").read()]}
    _check_restored(states, found)


def _check_restored(states, found):
    newest = [states.newest(state) for state in states.all]
    for name, data in found.items():
        assert data in [state.get(name) for state in newest], name
    assert set(found) >= set.intersection(*map(set, newest))


def read_at_a_moment(store, states, out):
    """As it was before all steps, of what is left: a version that was removed for good leaves the one before."""
    then = datetime.fromtimestamp(BEFORE_S, timezone.utc)
    found = {info.name: open(path, "rb").read() for info, path in store.restore(out / "then", at=then)}
    before = states.all[0]
    for name, data in found.items():
        assert (name, data) in before.values(), name
    left = set.intersection(*map(set, states.all))
    for number, (name, data) in before.items():
        if number in left and number == max(i for i, (other, _) in before.items() if other == name):
            assert found.get(name) == data, name


def read_check(store, _states, _out):
    report = store.check()
    assert report.ok, report.problems


def read_check_data(store, _states, _out):
    report = store.check(read_data=1)
    assert report.ok, report.problems


def read_check_decode(store, _states, _out):
    report = store.check(decode=True)
    assert report.ok, report.problems


VERBS = {
    f.__name__.removeprefix("read_"): f
    for f in (
        read_list, read_newest, read_versions, read_sums, read_get, read_into, read_open, read_held, read_restore,
        read_at_a_moment, read_check, read_check_data, read_check_decode,
    )
}  # fmt: skip


OPTIONS = {"level": "turbo", "threads": 1, "open_streams": True}


def run_once(racer, verb, step, at, out, make_backend, make_reader=None, *, is_warm, keep_writer):
    """Run a verb in whose operations `at` a step is done; return the number of operations.

    Parameters
    ----------
    racer, verb, step, at
        Who runs what, and before which operations.
    out
        A new folder for what is written outside the store.
    make_backend, make_reader
        Return a backend of the store, which `fill` has filled; of readers where theirs is another.
    is_warm
        Whether the reader has looked at the store before.
    keep_writer
        Whether the writer stays open after its step.
    """
    writer = Store(make_backend(), lock_timeout_s=0, **OPTIONS)
    writer._core.clock = Clock((BEFORE_S + 1000) * 10**9)
    with Store(make_backend(), **OPTIONS) as first:
        states = States(first)
    reader = Store((make_reader or make_backend)(), **OPTIONS)
    if is_warm:
        list(reader.list())

    def do():
        STEPS[step](writer)
        states.add(writer)
        if not keep_writer:
            writer.close()

    with racer.racing(at, do):
        VERBS[verb](reader, states, out)
    reader.close()
    writer.close()
    return racer.n_ops

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Random work, step by step against a dict."""

import os
import random
import shutil
import tempfile

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from glyd_store import ObjectNotFoundError, Store, _packing, _put

STEPS = int(os.environ.get("GLYD_STORE_STEPS", "500"))
PER_RUN = 50

BLOCKS = [random.Random(i).randbytes(1500) for i in range(6)]
NAMES = st.sampled_from(["a", "b", "a/b", "..", "été"])


@pytest.fixture(autouse=True)
def small_limits(monkeypatch):
    monkeypatch.setattr(_put, "SMALL_NBYTES", 2000)
    monkeypatch.setattr(_packing, "N_WAITING", 8)


class Machine(RuleBasedStateMachine):
    """`objects` is what a store is: ids with names and contents, in order."""

    n_steps = 0

    def __init__(self):
        super().__init__()
        self.folder = None
        self.objects, self.deleted, self.largest = {}, {}, 0

    @initialize(in_memory=st.booleans())
    def start(self, in_memory):
        self.folder = None if in_memory else tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        self.store = Store(self.folder or "memory:", level="turbo", threads=1)

    def teardown(self):
        if self.folder:
            self.store.close()
            shutil.rmtree(self.folder)

    def _added(self, info, name, data):
        assert info.id > self.largest
        assert (info.name, info.size) == (name, len(data))
        assert info.n_decodes <= 32
        self.largest = info.id
        self.objects[info.id] = (name, data)

    @rule(name=NAMES, data=st.binary(max_size=300))
    def put_small(self, name, data):
        self._added(self.store.put(name, data), name, data)

    @rule(name=NAMES, blocks=st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=6), tail=st.binary(max_size=50))
    def put_large(self, name, blocks, tail):
        data = b"".join(blocks) + tail
        self._added(self.store.put(name, data), name, data)

    @rule(items=st.lists(st.tuples(NAMES, st.binary(max_size=3000)), max_size=12))
    def put_many(self, items):
        infos = list(self.store.put_many(items))
        assert sorted((i.name, i.size) for i in infos) == sorted((n, len(d)) for n, d in items)
        left = list(items)
        for info in sorted(infos, key=lambda i: i.id):
            item = next(x for x in left if x[0] == info.name and self.store.get(info) == x[1])
            left.remove(item)
            self._added(info, *item)

    @precondition(lambda self: self.objects)
    @rule(data=st.data())
    def delete(self, data):
        some = data.draw(st.lists(st.sampled_from(sorted(self.objects)), min_size=1, max_size=6, unique=True))
        self.store.delete(some)
        for number in some:
            self.deleted[number] = self.objects.pop(number)

    @precondition(lambda self: self.deleted)
    @rule(data=st.data())
    def undelete(self, data):
        number = data.draw(st.sampled_from(sorted(self.deleted)))
        self.store.undelete([number])
        self.objects[number] = self.deleted.pop(number)

    @rule(level=st.sampled_from([None, None, "high"]))
    def compact(self, level):
        self.store.compact(level=level)
        self.deleted.clear()

    @precondition(lambda self: self.objects)
    @rule(data=st.data())
    def rebase(self, data):
        number = data.draw(st.sampled_from(sorted(self.objects)))
        assert self.store.rebase(number).n_decodes == 1

    @precondition(lambda self: self.largest)
    @rule()
    def rebuild(self):
        assert self.store.rebuild() == []

    @rule()
    def reopen(self):
        if self.folder:
            self.store.close()
            self.store = Store(self.folder, level="turbo", threads=1)

    @precondition(lambda self: self.largest)
    @rule()
    def check(self):
        report = self.store.check(decode=True)
        assert report.ok, report.problems

    @invariant()
    def same_as_the_dict(self):
        if self.folder is None and not hasattr(self, "store"):
            return
        Machine.n_steps += 1
        if not self.largest:
            return
        assert [i.id for i in self.store.list()] == sorted(self.objects)
        newest = {}
        for number, (name, data) in sorted(self.objects.items()):
            newest[name] = data
            assert self.store.get(number) == data
        for name in ("a", "b", "a/b", "..", "été"):
            if name in newest:
                assert self.store.get(name) == newest[name]
            else:
                with pytest.raises(ObjectNotFoundError):
                    self.store.get(name)


Machine.TestCase.settings = settings(
    max_examples=max(STEPS // PER_RUN, 1),
    stateful_step_count=PER_RUN,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def test_machine():
    from hypothesis.stateful import run_state_machine_as_test

    Machine.n_steps = 0
    run_state_machine_as_test(Machine, settings=Machine.TestCase.settings)
    print(f"{Machine.n_steps} steps")
    assert Machine.n_steps >= STEPS / 3

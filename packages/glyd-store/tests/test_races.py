# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Between any two operations of a reader a writer may do anything: readers see whole states.

Every verb that reads is run again and again, each time with a step of a writer before another of
its operations (see racing): it must give what was there before the step or after it, or say that
an object was deleted; ``check`` must find nothing. ``GLYD_STORE_RACES`` says how many runs to do for
each verb (default 40; 0: all there are).
"""

import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from glyd_store import Store, _packing, _put, _recode

sys.path.insert(0, os.path.dirname(__file__))
from race_steps import OPTIONS, STEPS, VERBS, fill, run_once
from racing import RaceLocal, RaceMemory, Racer

N_RUNS = int(os.environ.get("GLYD_STORE_RACES", "40"))


def remove_index(store):
    for name in list(store.iterdir()):
        if name.name.startswith("index.sqlite"):
            name.unlink()


KINDS = {
    "writable": (False, None),
    "read-only": (True, None),
    "no index": (True, remove_index),
    "memory": None,
}


@pytest.fixture(scope="module")
def racer():
    """The sizes at which the store changes its ways are small, and each call of the index can be raced."""
    patch = pytest.MonkeyPatch()
    patch.setattr(_put, "SMALL_NBYTES", 2000)
    patch.setattr(_packing, "N_WAITING", 6)
    patch.setattr(_recode, "WORTH_NBYTES", 0)
    racer = Racer()
    racer.wrap_index(patch)
    yield racer
    patch.undo()


class Places:
    """Copies of a store that is filled once, of each kind."""

    def __init__(self, racer, folder):
        self.racer, self.folder = racer, folder
        self.files = {}
        for backend in (RaceLocal(folder / "template", racer), RaceMemory(self.files, racer)):
            with Store(backend, **OPTIONS) as store:
                fill(store)

    def run(self, kind, verb, step, at, **how):
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            out = Path(name) / "out"
            out.mkdir()
            racer = self.racer
            if kind == "memory":
                files = dict(self.files)
                return run_once(racer, verb, step, at, out, lambda: RaceMemory(files, racer), **how)
            read_only, prepare = KINDS[kind]
            path = Path(name) / "s"
            shutil.copytree(self.folder / "template", path)
            if prepare:
                prepare(path)
            return run_once(
                racer, verb, step, at, out, lambda: RaceLocal(path, racer),
                lambda: RaceLocal(path, racer, read_only=read_only), **how,
            )  # fmt: skip


@pytest.fixture(scope="module")
def places(racer):
    folder = tempfile.mkdtemp(prefix="glyd-races-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    yield Places(racer, Path(folder))
    shutil.rmtree(folder)


def sample(name, n_ops, n_runs):
    """Return runs: kind, step, before which operations it is done, whether the reader is warm and the writer stays."""
    runs = [(kind, step, at, is_warm) for (kind, is_warm), n in n_ops.items() for step in STEPS for at in range(n)]
    rng = random.Random(name)
    rng.shuffle(runs)
    if n_runs:
        del runs[n_runs:]
    # and in some of them again a little later: what was looked up anew has moved once more
    return [
        (kind, step, (at,) if i % 3 else (at, at + rng.randrange(1, 12)), is_warm, i % 2 == 0)
        for i, (kind, step, at, is_warm) in enumerate(runs)
    ]


@pytest.mark.parametrize("verb", VERBS)
def test_readers_see_whole_states(verb, places):
    n_ops = {
        (kind, is_warm): places.run(kind, verb, "put_small", (), is_warm=is_warm, keep_writer=False)
        for kind in KINDS
        for is_warm in (False, True)
    }
    assert min(n_ops.values()) > 1
    failed = []
    for kind, step, at, is_warm, keep_writer in sample(verb, n_ops, N_RUNS):
        try:
            places.run(kind, verb, step, at, is_warm=is_warm, keep_writer=keep_writer)
        except Exception as error:
            where = f"{kind}, {step} before {at}, warm: {is_warm}, writer stays: {keep_writer}"
            failed.append(f"{where}: {type(error).__name__}: {error}"[:400])
    print(f"{verb}: operations {n_ops}")
    assert not failed, "\n".join(failed)

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Threads, processes and signals."""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import pickle
import random
import subprocess
import sys
import threading
import time

import pytest

import glyd


def run_threads(n, work):
    """Run work(i) in n threads at once; raise what any of them raised."""
    faults = []
    barrier = threading.Barrier(n)

    def body(i):
        try:
            barrier.wait()
            work(i)
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=body, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]


def test_calls_from_many_threads(text, noise):
    jobs = [(text[i * 1000 : i * 50_000], level) for i in range(1, 8) for level in glyd.LEVELS]
    frames = [glyd.compress(data, level) for data, level in jobs]

    def work(i):
        order = list(range(len(jobs)))
        random.Random(i).shuffle(order)
        for k in order:
            data, level = jobs[k]
            assert glyd.compress(data, level, threads=2) == frames[k]
            assert glyd.decompress(frames[k], threads=2) == data

    run_threads(6, work)


def test_the_gil_is_released(text):
    """While one thread is inside a long call another one runs on."""
    data = text * 40
    ticks, stop = [0], threading.Event()

    def tick():
        while not stop.is_set():
            ticks[0] += 1
            time.sleep(0.0002)

    thread = threading.Thread(target=tick)
    thread.start()
    before = ticks[0]
    glyd.compress(data, threads=1)
    during = ticks[0] - before
    stop.set()
    thread.join()
    assert during > 5


def test_one_compressor_shared(text):
    """Each call is taken whole, in some order."""
    c = glyd.Compressor(segment_size=1 << 14)
    pieces = [bytes([65 + i]) * 5000 for i in range(8)]
    out, lock = [], threading.Lock()

    def work(i):
        for _ in range(20):
            with lock:
                out.append(c.compress(pieces[i]))

    run_threads(8, work)
    content = glyd.decompress(b"".join(out) + c.flush())
    assert sorted(content[i : i + 5000] for i in range(0, len(content), 5000)) == sorted(pieces * 20)


def test_objects_misused_at_once(text):
    """Without any order nothing sensible comes out, and nothing worse than an exception."""
    frame = glyd.compress(text, segment_size=1 << 13)
    c, d = glyd.Compressor(segment_size=1 << 12), glyd.Decompressor()
    f = glyd.open(io.BytesIO(frame), threads=2)
    sink = io.BytesIO()
    w = glyd.open(sink, "wb", segment_size=1 << 12)

    def work(i):
        rng = random.Random(i)
        for _ in range(60):
            at = rng.randrange(len(text))
            c.compress(text[at : at + 3000], rng.choice([0, 0, 1, 2]))
            with contextlib.suppress(glyd.GlydError, EOFError):
                d.decompress(frame[at // 9 : at // 9 + 500], 1000)
            f.seek(at)
            assert f.read(100) in text
            assert f.size == len(text)
            w.write(text[:1000])
            w.flush() if i == 0 else None

    run_threads(6, work)
    w.close()
    assert glyd.decompress(sink.getvalue()) == text[:1000] * 360


def test_reads_and_close_at_once(text):
    frame = glyd.compress(text, segment_size=1 << 13)
    for _ in range(10):
        f = glyd.open(io.BytesIO(frame))

        def work(i, f=f):
            try:
                for at in range(0, 300_000, 7000):
                    f.seek(at)
                    f.read(5000)
                    if i == 0 and at > 100_000:
                        f.close()
            except ValueError as error:
                assert "closed" in str(error)  # noqa: PT017

        run_threads(4, work)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_goes_on(text):
    """No thread is kept, so a child can go on with every object."""
    frame = glyd.compress(text, segment_size=1 << 14, threads=4)
    c, d = glyd.Compressor(threads=4, segment_size=1 << 14), glyd.Decompressor(threads=4)
    f = glyd.open(io.BytesIO(frame), threads=4)
    head = c.compress(text[:300_000])
    half = d.decompress(frame[: len(frame) // 2])
    f.seek(1000)
    f.read(200_000)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            assert glyd.decompress(head + c.compress(text[300_000:]) + c.flush()) == text
            assert half + d.decompress(frame[len(frame) // 2 :]) == text
            assert f.read() == text[201_000:]
            assert glyd.decompress(glyd.compress(text, threads=4), threads=4) == text
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert glyd.decompress(head + c.compress(text[300_000:]) + c.flush()) == text
    assert f.read() == text[201_000:]


def test_worker_processes(text):
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        frames = pool.map(glyd.compress, [text[:1000], text])
        assert pool.map(glyd.decompress, frames) == [text[:1000], text]
        with pytest.raises(glyd.TruncatedError) as caught:
            pool.apply(glyd.decompress, (frames[0][:-1],))
        assert caught.value.offset is not None


def test_objects_do_not_pretend_to_travel():
    for thing in (glyd.Compressor(), glyd.Decompressor(), glyd.open(io.BytesIO(b""))):
        with pytest.raises(TypeError):
            pickle.dumps(thing)


NO_THREADS = """
import io, os, glyd
text = bytes(range(256)) * 2000
c, d = glyd.Compressor(threads=4, segment_size=1 << 13), glyd.Decompressor(threads=4)
frame = c.compress(text) + c.flush()
assert d.decompress(frame) == text
assert glyd.decompress(frame, threads=4) == text
f = glyd.open(io.BytesIO(frame), threads=4)
f.seek(5)
assert f.read() == text[5:]
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads the way Linux shows them")
def test_no_thread_is_left():
    run = subprocess.run([sys.executable, "-c", NO_THREADS], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["1"]

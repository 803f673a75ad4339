# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Stores in a bucket, against a simulated service that fails, breaks off and answers half."""

import os
import random
import sys
import threading

import pytest

boto3 = pytest.importorskip("boto3", reason="needs the extra s3")
moto = pytest.importorskip("moto", reason="needs moto[s3]")

from botocore.awsrequest import AWSResponse  # noqa: E402
from botocore.config import Config  # noqa: E402
from botocore.exceptions import ConnectionClosedError  # noqa: E402

import glyd_store._s3_calls as calls  # noqa: E402
from glyd_store import IndexDamagedError, LockedError, ObjectNotFoundError, Store, StoreError, _packing, _put  # noqa: E402  # noqa: E402
from glyd_store._s3 import S3Backend, split_url  # noqa: E402

sys.path.insert(0, os.path.dirname(__file__))
from race_steps import fill as fill_for_races  # noqa: E402
from race_steps import run_once  # noqa: E402
from racing import Racer  # noqa: E402

N_RACES = int(os.environ.get("GLYD_STORE_RACES", "10"))


def noise(n, seed):
    return random.Random(seed).randbytes(n)


BODY = b"".join(b"row %d of a table, %d\n" % (i, i * i) for i in range(40_000))


@pytest.fixture
def service(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "us-east-1" if "REGION" in name else "test")
    monkeypatch.setattr(calls.time, "sleep", lambda _s: None)
    with moto.mock_aws():
        new_client().create_bucket(Bucket="bucket")
        yield


def new_client(attempts=5):
    config = Config(retries={"mode": "standard", "max_attempts": attempts}, region_name="us-east-1")
    return boto3.client("s3", config=config)


def open_store(cache, client=None, **options):
    options.setdefault("level", "fast")
    return Store(S3Backend("s3://bucket/some/prefix", cache, client or new_client()), **options)


def fill(store):
    wanted = {}
    for name, data in (
        ("a", BODY),
        ("a", BODY[:50_000] + b"edit" + BODY[50_000:]),
        ("b", noise(400_000, 1)),
        ("c", b"small"),
    ):
        wanted[store.put(name, data).id] = data
    return wanted


def verify(store, wanted):
    assert {info.id for info in store.list()} >= set(wanted)
    for number, data in wanted.items():
        assert store.get(number) == data
    report = store.check(read_data=1)
    assert report.ok, report.problems


def test_all_verbs(service, tmp_path):
    store = open_store(tmp_path / "cache")
    wanted = fill(store)
    verify(store, wanted)
    assert store.info(2).n_decodes == 2
    with store.open("b") as file:
        file.seek(300_000)
        assert file.read(10) == wanted[3][300_000:300_010]
    store.rebase(2)
    assert store.info(2).n_decodes == 1
    store.delete([1])
    assert store.compact().n_streams == 1
    del wanted[1]
    verify(store, wanted)
    with pytest.raises(ObjectNotFoundError):
        store.get(1)
    # another machine, which has nothing but the bucket
    other = open_store(tmp_path / "other")
    verify(other, wanted)
    assert list(other.restore(tmp_path / "out"))
    other.put("d", BODY + b"more")
    wanted[5] = BODY + b"more"
    verify(other, wanted)
    store.put("e", b"by the first again")
    verify(store, {**wanted, 6: b"by the first again"})


def test_lost_cache(service, tmp_path):
    with open_store(tmp_path / "cache") as store:
        wanted = fill(store)
    (index,) = (tmp_path / "cache").glob("*/index.sqlite")
    index.write_bytes(b"not an index" * 1000)
    store = open_store(tmp_path / "cache")
    with pytest.raises(IndexDamagedError, match="rebuild"):
        store.get(1)
    assert store.rebuild() == []
    verify(store, wanted)


def answers(status):
    def handle(request, **_kw):
        body = b"<Error><Code>%s</Code><Message>slow down</Message></Error>"
        code = {500: b"InternalError", 503: b"SlowDown"}[status]

        class Raw:
            def stream(self, **_k):
                yield body % code

            def read(self, *_a):
                return body % code

        return AWSResponse(request.url, status, {"content-type": "application/xml"}, Raw())

    return handle


def reset(request, **_kw):
    raise ConnectionClosedError(endpoint_url=request.url)


class Flaky:
    """Makes about one request in `every` fail, before it reached the service or after."""

    def __init__(self, client, seed, every=4):
        self.rng, self.every, self.n = random.Random(seed), every, 0
        self.last = False
        client.meta.events.register_first("before-send.s3", self.before)
        client.meta.events.register_last("response-received.s3", self.after)
        get = client.get_object

        def half(**kw):
            answer = get(**kw)
            if self.rng.random() < 0.15:
                self.n += 1
                body = answer["Body"].read()
                answer["Body"] = type("Half", (), {"read": lambda _self: body[: len(body) // 2]})()
            return answer

        client.get_object = half

    def before(self, request, **kw):
        if self.last or self.rng.randrange(self.every):  # never twice in a row: attempts are limited
            self.last = False
            return None
        self.n += 1
        self.last = True
        return self.rng.choice((answers(500), answers(503), reset))(request, **kw)

    def after(self, **_kw):
        return None


@pytest.mark.parametrize("seed", range(6))
def test_flaky_service(service, tmp_path, seed):
    client = new_client()
    flaky = Flaky(client, seed)
    store = open_store(tmp_path / "cache", client)
    wanted = fill(store)
    verify(store, wanted)
    store.delete([1])
    store.compact()
    del wanted[1]
    store.rebase(2)
    verify(store, wanted)
    assert flaky.n > 10
    verify(open_store(tmp_path / "other"), wanted)


class DeadLink:
    """A link that breaks for good at a request, before or after the service has done it."""

    def __init__(self, client, at, after):
        self.n, self.at, self.late = 0, at, after
        client.meta.events.register_first("before-send.s3", self.before)
        if after:
            make = client._make_api_call

            def call(name, params):
                self.check()
                found = make(name, params)
                if self.n == self.at:
                    self.n += 1
                    raise ConnectionClosedError(endpoint_url="gone after")
                self.n += 1
                return found

            client._make_api_call = call

    def check(self):
        if self.n > self.at:
            raise ConnectionClosedError(endpoint_url="gone")

    def before(self, request, **_kw):
        if self.late:
            return
        self.n += 1
        if self.n > self.at:
            raise ConnectionClosedError(endpoint_url=request.url)


@pytest.mark.parametrize("after", [False, True])
def test_link_breaks_at_every_request(service, tmp_path, after):
    base = open_store(tmp_path / "base")
    wanted = {base.put("b", BODY[:300_000]).id: BODY[:300_000]}
    n_done = 0
    for at in range(0, 400, 7):
        client = new_client(attempts=1)
        link = DeadLink(client, at, after)
        store = open_store(tmp_path / "cache", client, break_lock=True)
        try:
            info = store.put("x", BODY[at:300_000])
            wanted[info.id] = BODY[at:300_000]
            store.delete([info.id])
            del wanted[info.id]
            store.compact()
            n_done += 1
        except (OSError, LockedError):
            pass
        store.close()
        good = open_store(tmp_path / "cache", break_lock=True)
        assert {info.id for info in good.list()} >= set(wanted)
        for number in list(wanted)[-2:]:
            assert good.get(number) == wanted[number]
        report = good.check()
        assert report.ok, (at, report.problems)
        good.put("lock", b"taken %d" % at)
        good.close()
        if n_done:
            break
    assert n_done, "the work never ended"
    assert link.n > 15
    verify(open_store(tmp_path / "last", break_lock=True), wanted)


def test_two_writers(service, tmp_path):
    """Two machines at once: each waits for the other, and nothing is lost."""
    errors, done = [], {}

    def work(k):
        store = open_store(tmp_path / f"cache{k}", lock_timeout_s=60)
        try:
            for i in range(6):
                data = b"%d of %d " % (i, k) * 100
                done[store.put(f"w{k}", data).id] = data
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors
    assert len(done) == 12
    verify(open_store(tmp_path / "other"), done)


def test_two_writers_without_a_lock(service, tmp_path, monkeypatch):
    """Should the lock fail, the one that comes second has committed nothing, and says so."""
    from contextlib import nullcontext

    monkeypatch.setattr(S3Backend, "lock", lambda *_a, **_k: nullcontext())
    first = open_store(tmp_path / "1")
    first.put("a", b"one")
    second = open_store(tmp_path / "2")
    second.put("a", b"two")
    core = second._core
    with core.writing():
        entry = core.new_entry("put")
        first.put("a", b"three")  # in between
        with pytest.raises(LockedError, match="another writer"):
            core.commit(entry)
    assert [first.get(i.id) for i in open_store(tmp_path / "3").list()] == [b"one", b"two", b"three"]


def test_lock_of_a_dead_writer_is_taken_over(service, tmp_path):
    client = new_client()
    store = open_store(tmp_path / "1", lock_timeout_s=0.1)
    store.put("a", b"1")
    alive = b'{"host": "elsewhere", "boot": "x", "pid": 1, "start": "1"}\n0000'
    client.put_object(Bucket="bucket", Key="some/prefix/lock", Body=alive)
    with pytest.raises(LockedError, match="process 1 on elsewhere"):
        store.put("a", b"2")
    open_store(tmp_path / "2", break_lock=True).put("a", b"2")
    from glyd_store._owner import current_owner

    me = current_owner()
    dead = me.to_json().replace(str(me.pid).encode(), b"999999999")
    client.put_object(Bucket="bucket", Key="some/prefix/lock", Body=dead + b"0000")
    store.put("a", b"3")
    assert store.get("a") == b"3"


def test_large_streams_go_up_in_parts(service, tmp_path, monkeypatch):
    import glyd_store._s3 as s3

    monkeypatch.setattr(s3, "_PART_NBYTES", 5 << 20)
    store = open_store(tmp_path / "cache")
    data = noise(11_000_000, 3)
    store.put("large", data)
    assert store.get("large") == data
    head = new_client().list_objects_v2(Bucket="bucket", Prefix="some/prefix/streams/")["Contents"][0]
    assert "-" in head["ETag"]  # of an upload in parts
    assert store.check(read_data=1).ok


class RaceClients:
    """Clients of one bucket: the requests of all of them are counted by a racer."""

    def __init__(self, racer):
        self.racer = racer

    def __call__(self):
        client = new_client()
        make = client._make_api_call

        def call(name, params):
            self.racer.tick()
            return make(name, params)

        client._make_api_call = call
        return client


@pytest.mark.parametrize("verb", ["get", "held", "restore", "check_decode"])
def test_readers_see_whole_states(verb, service, tmp_path, monkeypatch):
    """As test_races has it for folders: before any request of a reader another machine may do anything."""
    monkeypatch.setattr(_put, "SMALL_NBYTES", 2000)
    monkeypatch.setattr(_packing, "N_WAITING", 6)
    monkeypatch.setattr("glyd_store._s3._READ_AHEAD_NBYTES", 4096)  # several requests for a file
    racer = Racer()
    racer.wrap_index(monkeypatch)
    clients = RaceClients(racer)
    with open_store(tmp_path / "fill", clients(), level="turbo", threads=1) as store:
        fill_for_races(store)
    plain = new_client()
    keys = [found["Key"] for found in plain.list_objects_v2(Bucket="bucket")["Contents"]]
    bodies = {key: plain.get_object(Bucket="bucket", Key=key)["Body"].read() for key in keys}
    n_done = 0

    def run(step, at, **how):
        nonlocal n_done
        n_done += 1
        for found in plain.list_objects_v2(Bucket="bucket").get("Contents", []):
            plain.delete_object(Bucket="bucket", Key=found["Key"])
        for key, body in bodies.items():
            plain.put_object(Bucket="bucket", Key=key, Body=body)
        (tmp_path / f"out{n_done}").mkdir()
        turn = iter(range(9))

        def backend():
            cache = tmp_path / f"cache{n_done}-{next(turn)}"
            return S3Backend("s3://bucket/some/prefix", cache, clients())

        return run_once(racer, verb, step, at, tmp_path / f"out{n_done}", backend, **how)

    rng = random.Random(verb)
    n_ops = {is_warm: run("put_small", (), is_warm=is_warm, keep_writer=False) for is_warm in (False, True)}
    for step in ("put_packed", "delete_all_versions", "rebase", "storm", "recode"):
        for _ in range(max(N_RACES // 10, 1)):
            is_warm = rng.random() < 0.5
            at = rng.randrange(n_ops[is_warm])
            try:
                run(step, (at,), is_warm=is_warm, keep_writer=True)
            except BaseException:
                print(f"{step} before {at} of {n_ops[is_warm]}, warm: {is_warm}")
                raise


def test_urls():
    assert split_url("s3://b/p/q/") == ("b", "p/q/")
    assert split_url("s3://b") == ("b", "")
    with pytest.raises(ValueError, match="no s3"):
        split_url("s3:///p")


def test_missing_bucket(service, tmp_path):
    store = Store(S3Backend("s3://nowhere/x", tmp_path, new_client()))
    with pytest.raises((StoreError, OSError)):
        store.put("a", b"1")
    with pytest.raises((StoreError, OSError)):
        store.get("a")

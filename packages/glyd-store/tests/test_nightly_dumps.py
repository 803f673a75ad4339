# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The example of nightly dumps, with a real PostgreSQL where one is installed."""

import glob
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve()
HANG_S = 600  # what takes longer will never end
SCRIPT = next(
    (
        p / "examples" / "nightly-pg-dump" / "glyd-dump.sh"
        for p in HERE.parents
        if (p / "examples" / "nightly-pg-dump").is_dir()
    ),
    None,
)
COMMAND = Path(sys.executable).parent / "glyd-store"
BINARIES = sorted(glob.glob("/usr/lib/postgresql/*/bin")) or [os.path.dirname(shutil.which("initdb") or "")]


@pytest.mark.skipif(SCRIPT is None, reason="the examples are not here: tests run without the repository")
@pytest.mark.skipif(not BINARIES[-1], reason="no PostgreSQL is installed")
def test_nightly_dumps():
    # not below pytest's folder, which nobody else may enter
    # and near the root: a socket's path holds about 100 bytes
    with tempfile.TemporaryDirectory(dir="/tmp" if len(tempfile.gettempdir()) > 60 else None) as folder:
        os.chmod(folder, 0o711)
        nightly_dumps(Path(folder))


def nightly_dumps(tmp_path):
    data, sockets = tmp_path / "data", tmp_path / "run"
    sockets.mkdir()
    become = None
    if os.getuid() == 0:  # PostgreSQL refuses to run as root
        import pwd

        try:
            user = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("no user postgres, and PostgreSQL does not run as root")
        os.chown(sockets, user.pw_uid, user.pw_gid)
        data.mkdir()
        os.chown(data, user.pw_uid, user.pw_gid)

        def become():
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)

    # policies go by local days: it is noon here, so that no test runs across midnight
    noon = f"GLYD{time.gmtime().tm_hour - 12:+d}"
    path = f"{BINARIES[-1]}:{os.environ['PATH']}"
    env = {
        **os.environ,
        "PATH": path,
        "PGHOST": str(sockets),
        "PGUSER": "postgres",
        "GLYD_STORE": str(COMMAND),
        "TZ": noon,
    }

    def server(*words):
        done = subprocess.run(words, env=env, preexec_fn=become, stderr=subprocess.PIPE, timeout=HANG_S, cwd=sockets)
        assert done.returncode == 0, (words, done.stderr)

    def sql(text):
        subprocess.run(
            ["psql", "-q", "-d", "shop", "-c", text], env=env, check=True, capture_output=True, timeout=HANG_S
        )

    def dump(database):
        return subprocess.run(
            ["sh", SCRIPT, tmp_path / "archive", database], env=env, capture_output=True, timeout=HANG_S
        )

    server("initdb", "-D", str(data), "-A", "trust", "-U", "postgres")
    options = f"-k {shlex.quote(str(sockets))} -c listen_addresses= -c fsync=off"
    server("pg_ctl", "-D", str(data), "-o", options, "-l", str(sockets / "log"), "-w", "start")
    try:
        server("createdb", "shop")
        sql("CREATE TABLE t AS SELECT i, md5(i::text) AS m FROM generate_series(1, 20000) AS i")
        for night in range(3):
            sql(f"INSERT INTO t SELECT i, 'night {night}' FROM generate_series(1, 50) AS i")
            done = dump("shop")
            assert done.returncode == 0, done.stderr
        assert dump("no such database").returncode == 2
        listed = subprocess.run(
            [COMMAND, tmp_path / "archive", "list", "--all", "--json"], capture_output=True, check=True
        )
        infos = [json.loads(line) for line in listed.stdout.splitlines()]
        # three dumps of one day: the policy keeps the last of them
        assert [info["name"] for info in infos] == ["shop.sql"]
        found = subprocess.run([COMMAND, tmp_path / "archive", "get", "shop.sql"], capture_output=True, check=True)
        assert found.stdout.count(b"night 2") == 50
        assert b"PostgreSQL database dump complete" in found.stdout
        kept = subprocess.run(
            [COMMAND, tmp_path / "archive", "list", "--deleted", "--json"], capture_output=True, check=True
        )
        older = [json.loads(line) for line in kept.stdout.splitlines()]
        assert len(older) == 2  # a day of grace
        assert infos[0]["stored_nbytes"] < older[0]["stored_nbytes"] / 20
    finally:
        server("pg_ctl", "-D", str(data), "-m", "fast", "stop")

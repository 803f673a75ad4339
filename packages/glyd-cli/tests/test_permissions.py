# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""An output is never open to more people than its input, not for a moment either."""

import os
import shutil
import stat
import subprocess
import threading

import pytest

import glyd as codec
from glyd_cli.atomic import FileTarget
from glyd_cli.sources import open_source

IS_ROOT = os.geteuid() == 0


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o400, 0o444, 0o755])
@pytest.mark.parametrize("umask", [0o077, 0])
def test_mode_and_times_are_those_of_the_input(glyd, tmp_path, text, mode, umask):
    f = tmp_path / "f"
    f.write_bytes(text)
    os.utime(f, ns=(1_000_000_000_123_456_789, 1_100_000_000_987_654_321))
    os.chmod(f, mode)
    glyd("-q", "f", umask=umask)
    assert mode_of(tmp_path / "f.glyd") == mode
    assert os.stat(tmp_path / "f.glyd").st_mtime_ns == 1_100_000_000_987_654_321
    glyd("-q", "-d", "f.glyd", "-o", "g", umask=umask)
    assert mode_of(tmp_path / "g") == mode
    assert os.stat(tmp_path / "g").st_mtime_ns == 1_100_000_000_987_654_321


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o027, 0o640), (0, 0o666)])
def test_from_standard_input_the_umask_decides(glyd, tmp_path, umask, mode):
    glyd("-o", "z", input=b"x", umask=umask)
    assert mode_of(tmp_path / "z") == mode
    glyd("-d", "-o", "x", input=(tmp_path / "z").read_bytes(), umask=umask)
    assert mode_of(tmp_path / "x") == mode


@pytest.mark.parametrize("bits", [0o4755, 0o2755, 0o1777, 0o6711])
def test_set_uid_and_its_like_are_not_copied(glyd, tmp_path, text, bits):
    (tmp_path / "f").write_bytes(text)
    os.chmod(tmp_path / "f", bits)
    glyd("-q", "f")
    assert mode_of(tmp_path / "f.glyd") == bits & 0o777
    glyd("-q", "-d", "f.glyd", "-o", "g")
    assert mode_of(tmp_path / "g") == bits & 0o777


def watch(folder, stop, found):
    while not stop.is_set():
        for name in os.listdir(folder):
            try:
                if mode_of(folder / name) & 0o077:
                    found.append(name)
            except FileNotFoundError:
                continue


@pytest.mark.parametrize("force", [(), ("-f",)])
def test_nobody_else_can_open_the_output_while_it_is_written(glyd, tmp_path, big, force):
    (tmp_path / "s").write_bytes(big)
    os.chmod(tmp_path / "s", 0o600)
    stop, found = threading.Event(), []
    watcher = threading.Thread(target=watch, args=(tmp_path, stop, found))
    watcher.start()
    try:
        for _ in range(3):
            for name in ("s.glyd", "o"):
                (tmp_path / name).unlink(missing_ok=True)
                if force:
                    fd = os.open(tmp_path / name, os.O_CREAT | os.O_WRONLY, 0o600)
                    os.close(fd)
            glyd("-q", *force, "s", umask=0)
            glyd("-q", "-d", *force, "s.glyd", "-o", "o", umask=0)
    finally:
        stop.set()
        watcher.join()
    assert found == []


@pytest.mark.parametrize("anonymous", [True, False])
def test_named_temporary_files_where_there_are_no_nameless_ones(tmp_path, monkeypatch, anonymous):
    if not anonymous:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    (tmp_path / "f").write_bytes(b"f")
    os.chmod(tmp_path / "f", 0o640)
    for force in (False, True):
        with open_source(str(tmp_path / "f")) as source:
            target = FileTarget(str(tmp_path / "o"), source, umask=0, force=force, sparse=False, durable=True)
            during = [p for p in os.listdir(tmp_path) if p not in {"f", "o"}]
            assert len(during) == (0 if anonymous and hasattr(os, "O_TMPFILE") else 1)
            assert all(mode_of(tmp_path / p) == 0o600 for p in during)
            target.write(memoryview(b"content"))
            target.commit()
            assert sorted(os.listdir(tmp_path)) == ["f", "o"]
            assert (tmp_path / "o").read_bytes() == b"content"
            assert mode_of(tmp_path / "o") == 0o640
            target = FileTarget(str(tmp_path / "n"), source, umask=0, force=force, sparse=False, durable=False)
            target.write(memoryview(b"content"))
            target.abort()
            assert sorted(os.listdir(tmp_path)) == ["f", "o"]


@pytest.mark.parametrize("anonymous", [True, False])
def test_the_name_is_never_taken_from_somebody_else(tmp_path, monkeypatch, anonymous):
    if not anonymous:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    (tmp_path / "f").write_bytes(b"f")
    with open_source(str(tmp_path / "f")) as source:
        target = FileTarget(str(tmp_path / "o"), source, umask=0, force=False, sparse=False, durable=False)
        target.write(memoryview(b"ours"))
        (tmp_path / "o").write_bytes(b"theirs")
        with pytest.raises(codec.GlydError, match="already exists"):
            target.commit()
    assert (tmp_path / "o").read_bytes() == b"theirs"
    assert sorted(os.listdir(tmp_path)) == ["f", "o"]


def test_no_hard_links_here(tmp_path, monkeypatch):
    """File systems such as FAT: the name is reserved, then our own empty file is replaced."""
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)

    def no_link(*_, **__):
        raise PermissionError(1, "no links")

    monkeypatch.setattr(os, "link", no_link)
    (tmp_path / "f").write_bytes(b"f")
    with open_source(str(tmp_path / "f")) as source:
        for taken in (False, True):
            target = FileTarget(str(tmp_path / "o"), source, umask=0, force=False, sparse=False, durable=False)
            target.write(memoryview(b"ours"))
            if taken:
                (tmp_path / "o").write_bytes(b"theirs")
                with pytest.raises(codec.GlydError, match="already exists"):
                    target.commit()
                assert (tmp_path / "o").read_bytes() == b"theirs"
            else:
                target.commit()
                assert (tmp_path / "o").read_bytes() == b"ours"
    assert sorted(os.listdir(tmp_path)) == ["f", "o"]


@pytest.mark.skipif(not IS_ROOT, reason="only root can give files away")
def test_owner_is_kept(glyd, tmp_path, text):
    (tmp_path / "f").write_bytes(text)
    os.chown(tmp_path / "f", 1234, 4321)
    os.chmod(tmp_path / "f", 0o640)
    glyd("-q", "f")
    now = os.stat(tmp_path / "f.glyd")
    assert (now.st_uid, now.st_gid, stat.S_IMODE(now.st_mode)) == (1234, 4321, 0o640)


@pytest.mark.skipif(not IS_ROOT, reason="only root can run as somebody else")
@pytest.mark.parametrize(("groups", "want"), [([4321], (4321, 0o640)), ([], (777, 0o600))])
def test_another_group_gets_what_everybody_gets(tmp_path, groups, want):
    """What only one group may read is not opened to another one: the group of whoever runs glyd."""
    os.chmod(tmp_path, 0o777)
    (tmp_path / "f").write_bytes(b"f")
    os.chown(tmp_path / "f", 1234, 4321)
    os.chmod(tmp_path / "f", 0o640)
    with open_source(str(tmp_path / "f")) as source:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.chdir(tmp_path)
                os.setgroups(groups)
                os.setresgid(777, 777, 777)
                os.setresuid(777, 777, 777)
                FileTarget("o", source, umask=0, force=False, sparse=False, durable=False).commit()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
    now = os.stat(tmp_path / "o")
    assert (now.st_gid, stat.S_IMODE(now.st_mode)) == want


@pytest.mark.skipif(shutil.which("setfacl") is None, reason="setfacl is not installed")
def test_access_lists_do_not_widen_the_group(glyd, tmp_path, text):
    (tmp_path / "f").write_bytes(text)
    os.chmod(tmp_path / "f", 0o600)
    if subprocess.run(["setfacl", "-m", "u:1234:rw", tmp_path / "f"], capture_output=True).returncode:
        pytest.skip("this file system has no access lists")
    assert mode_of(tmp_path / "f") == 0o660  # the mask, not what the group may
    glyd("-q", "f")
    assert mode_of(tmp_path / "f.glyd") == 0o600

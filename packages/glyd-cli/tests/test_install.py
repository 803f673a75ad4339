# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""scripts/install.sh: what it refuses leaves nothing behind; ``nox -s install`` runs it to the end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "install.sh"
WHEELS = os.environ.get("GLYD_TEST_WHEELS")
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the script is not beside these tests")


@pytest.fixture
def install(tmp_path):
    """Run the script in a home of its own."""
    home = tmp_path / "home"
    home.mkdir()

    def run(*args, code, **env):
        path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
        kept = {k: v for k, v in os.environ.items() if k.startswith(("PIP_", "UV_", "SSL_")) or k.endswith("_proxy")}
        base = {**kept, "HOME": os.fspath(home), "PATH": path, "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(["sh", SCRIPT, *args], env={**base, **env}, capture_output=True, text=True, timeout=300)
        assert done.returncode == code, done.stderr
        return done

    run.home = home
    return run


def files_in(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() or p.is_symlink())


def test_one_function_called_on_the_last_line():
    """A download that is cut short runs nothing."""
    lines = SCRIPT.read_text(encoding="utf-8").splitlines()
    assert lines[-1] == 'main "$@"'
    cut = "\n".join(lines[:-1]) + "\n"
    done = subprocess.run(["sh"], input=cut, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_refusals_leave_nothing(install):
    assert "usage: install.sh" in install("--everything", code=1).stderr
    assert "HOME is not set" in install(code=1, HOME="").stderr
    assert files_in(install.home) == []


@pytest.mark.skipif(WHEELS is None, reason="takes wheels of all packages and an index: nox -s install")
def test_from_nothing_and_again(install):
    done = install("--no-models", code=0, GLYD_WHEELS=WHEELS)
    assert "ok  codec" in done.stdout
    command = install.home / ".local" / "bin" / "glyd"
    data = install.home / "data"
    data.write_bytes(bytes(100_000))
    subprocess.run([command, data], check=True, timeout=60)
    subprocess.run([command, "--test", f"{data}.glyd"], check=True, timeout=60)
    subprocess.run([command, "store", "--help"], check=True, timeout=60, stdout=subprocess.DEVNULL)
    # a run that fails leaves the command that was there
    failed = install("--no-models", code=1, GLYD_WHEELS=os.fspath(install.home))
    assert "must hold one wheel like" in failed.stderr
    subprocess.run([command, "--version"], check=True, timeout=60, stdout=subprocess.DEVNULL)
    install("--no-models", code=0, GLYD_WHEELS=WHEELS)
    share = install.home / ".local" / "share" / "glyd"
    assert sorted(p.name for p in share.iterdir()) == ["env", "uv-0.13.9"]

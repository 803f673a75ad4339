# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
import re
import resource
import subprocess
import sys

import pytest

from glyd_cli.arguments import OBJECT_VERBS, build_model_parser, build_parser, parse
from glyd_cli.errors import UsageError
from glyd_cli.helptext import HELP


def test_help_names_every_option_and_no_other():
    known = {s for p in (build_parser(), build_model_parser()) for a in p._actions for s in a.option_strings}
    named = set(re.findall(r"(?<![\w-])(--?[a-zA-Z0-9][\w-]*)", HELP.split("FILES AND SAFETY")[0]))
    named = {re.sub(r"^(-[Tt])\d+$", r"\1", n) for n in named}
    assert known <= named
    assert named <= known | {"-cf"}


def test_help_and_version(glyd):
    assert glyd("--help").out.decode() == HELP
    assert glyd("-h").out.decode() == HELP
    assert all(len(line) <= 80 for line in HELP.splitlines())
    assert re.fullmatch(rb"glyd \d+\.\d+\.\d+ \(glyd-codec \d+\.\d+\.\d+\)\n", glyd("--version").out)


def cpu_s(run, *args):
    """Return the CPU time of what a call starts; other work on the machine does not count."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(*args)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_starts_fast(glyd):
    """Beside Python that does nothing, so that the speed of the machine does not count either."""
    bare = [sys.executable, "-I", "-c", "pass"]
    ours = min(cpu_s(glyd, "--version") for _ in range(7))
    python = min(cpu_s(subprocess.run, bare) for _ in range(7))
    assert ours < 15 * python, (ours, python)


def test_nothing_heavy_is_loaded():
    code = "import sys, glyd_cli.convert, glyd_cli.listing; print([m for m in ('rich', 'numpy', 'matplotlib') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_module_runs_too(tmp_path):
    done = subprocess.run([sys.executable, "-I", "-m", "glyd_cli", "--version"], capture_output=True, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith(b"glyd ")


@pytest.mark.parametrize(
    "flags",
    [
        ("--nope",), ("-Z",), ("-5",), ("-T",), ("-Tx",), ("-T-1",), ("-T999",), ("--memory", "x"), ("--memory=0",),
        ("-d", "--test"), ("-c", "-o", "x"), ("-q", "-v"), ("--long",), ("--json",), ("--memory=1G",),
        ("--plot", "x.png"), ("--seconds=0", "-b"), ("-o", ""), ("-o", "x", "--list"), ("-", "-"), ("--comp",),
        ("--limit=1M",), ("-l", "-b"), ("--plot=x.gif", "-b"),
    ],
)  # fmt: skip
def test_wrong_usage(glyd, flags, tmp_path):
    (tmp_path / "f").write_bytes(b"x")
    assert "glyd --help" in glyd.fail(*flags, "f", code=1)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f"]


@pytest.mark.parametrize("verb", OBJECT_VERBS)
def test_a_file_called_as_a_verb_needs_a_path(glyd, verb, tmp_path):
    (tmp_path / verb).write_bytes(b"x")
    assert "required" in glyd.fail(verb, code=1)
    glyd(f"./{verb}")
    assert (tmp_path / f"{verb}.glyd").exists()


def test_flags_in_any_order_and_together():
    a = parse(["-dc", "x", "-T4", "-k", "y", "-f"])
    assert (a.verb, a.to_stdout, a.files, a.threads, a.remove, a.force) == (
        "decompress",
        True,
        ["x", "y"],
        4,
        False,
        True,
    )
    assert parse(["-9qo", "out", "f"]).output == "out"
    assert parse(["-T", "3", "f"]).threads == 3
    assert parse(["f", "--memory=64M", "-d"]).memory == 64 << 20
    assert parse(["--rm", "-k", "f"]).remove is False
    assert parse(["-k", "--rm", "f"]).remove is True
    assert [parse([f, "x"]).level for f in ("-t", "--turbo", "-1", "--fast", "--default", "-9", "--max", "--high", "-19", "--ultra")] == [
        "turbo", "turbo", "fast", "fast", "default", "max", "max", "high", "ultra", "ultra",
    ]  # fmt: skip
    assert parse(["x"]).level == "default"
    assert parse(["--sparse", "x"]).sparse is True
    assert parse(["--no-sparse", "x"]).sparse is False
    assert parse(["x"]).sparse is None


def test_double_dash_ends_options():
    assert parse(["-k", "a", "--", "-d", "--", "store"]).files == ["a", "-d", "--", "store"]
    assert parse(["--", "store"]).files == ["store"]


@pytest.mark.parametrize(
    ("word", "nbytes"), [("1", 1), ("2k", 2048), ("1.5K", 1536), ("64MiB", 64 << 20), ("3gb", 3 << 30)]
)
def test_sizes(word, nbytes):
    assert parse(["-d", "--memory", word, "x"]).memory == nbytes


@pytest.mark.parametrize("word", ["9" * 400 + "T", "8388608T", "", "-1", "1x", "K", "0.0001k", "1e3"])
def test_wrong_sizes(word):
    with pytest.raises(UsageError):
        parse(["-d", f"--memory={word}", "x"])


def test_store_says_what_to_install_or_runs(glyd, tmp_path):
    try:
        import glyd_store  # noqa: F401 - whether it is there
    except ImportError:
        assert "glyd-cli[store]" in glyd.fail("store", "s", "list", code=1)
        return
    glyd("store", "s", "put", "-", "--name", "a", input=b"1")
    assert glyd("store", "s", "get", "a").out == b"1"

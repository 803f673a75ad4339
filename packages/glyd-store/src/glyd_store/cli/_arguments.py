# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The command line: what may be said and what it means."""

from __future__ import annotations

import argparse
import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NoReturn

import glyd
from glyd_store._retention import Policy

if TYPE_CHECKING:
    from collections.abc import Sequence

VERBS_WITHOUT_STORE = ("audit", "completion")

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400, "y": 365 * 86_400}

_EPILOG = """\
STORE is a folder, or s3://bucket/prefix. OBJECT is a name (its newest version), an id, or @ID where
a name looks like one. Exit codes: 0 ok, 1 usage, 2 input, output or a read-only store, 3 damaged data,
4 limit, 5 missing base, 6 no such object, 7 locked by another writer.
"""


class UsageError(glyd.GlydError):
    """The command line asks for something that cannot be done."""


class Parser(argparse.ArgumentParser):
    """Raises `UsageError` where argparse would print and exit."""

    def error(self, message: str) -> NoReturn:
        """Raise."""
        raise UsageError(message.removeprefix("argument "))


def _duration(text: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,9}(?:\.\d+)?)([smhdwy])", text.strip().lower())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration (like 90m, 36h, 7d, 2w)")
    return timedelta(seconds=float(match[1]) * _UNITS_S[match[2]])


def _time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time (like 2026-11-30 or 2026-11-30T18:00)") from None


def _share(text: str) -> float:
    try:
        value = float(text.rstrip("%")) / 100
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share (like 5%)")
    return value


def _tag(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is no tag (like host=db1)")
    return key, value


def _range(text: str) -> tuple[int, int | None]:
    match = re.fullmatch(r"(\d{1,18})-(\d{0,18})", text)
    if match is None or (match[2] and int(match[2]) < int(match[1])):
        raise argparse.ArgumentTypeError(f"{text!r} is no range of bytes (like 0-99, 100-: the last is included)")
    return int(match[1]), int(match[2]) + 1 if match[2] else None


def _threads(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 256:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of threads (0 … 256; 0: one a CPU)")
    return int(text)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of versions")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1e7:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return value


def _common() -> Parser:
    common = Parser(add_help=False, argument_default=argparse.SUPPRESS)
    add = common.add_argument
    add("--json", action="store_true", help="print facts as JSON, one object a line")
    add("-q", "--quiet", action="store_true", help="print nothing but errors and what was asked for")
    add("-T", "--threads", type=_threads, metavar="N", help="threads, 0: one a CPU (default)")
    add("--cache", metavar="DIR", help="where the index of a store in a bucket is kept")
    add("--wait", type=_seconds, metavar="S", help="seconds to wait for another writer (default 10)")
    add("--break-lock", action="store_true", help="take the lock from a writer on another machine that is dead")
    return common


def build_parser(prog: str) -> Parser:
    """Return the parser of the whole command."""
    common = _common()
    parser = Parser(
        prog=prog,
        usage=f"{prog} STORE VERB …   (or: {prog} audit PATH, {prog} completion SHELL)",
        description="Versioned archives: every new version is stored against what it most resembles.",
        epilog=_EPILOG,
        parents=[common],
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument("store", metavar="STORE")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=Parser)

    def verb(name: str, text: str) -> argparse.ArgumentParser:
        return verbs.add_parser(
            name, help=text, description=text[0].upper() + text[1:] + ".", parents=[common], allow_abbrev=False,
            prog=f"{prog} STORE {name}",
        )  # fmt: skip

    p = verb("put", "store files, standard input (-) or what a command prints, as newest versions")
    p.add_argument("files", nargs="*", metavar="FILE")
    p.add_argument("--name", help="name to store under (default: the path as given)")
    p.add_argument("--level", choices=glyd.LEVELS, default="max")
    p.add_argument("--tag", type=_tag, action="append", default=[], metavar="K=V")
    p.add_argument("--command", metavar="CMD", help="run CMD in a shell and store what it prints, if it ends with 0")
    p.add_argument("--allow-empty", action="store_true", help="store empty standard input, or output of CMD, too")

    p = verb("get", "write the content of an object")
    p.add_argument("object", metavar="OBJECT")
    p.add_argument("-o", "--output", metavar="OUT", help="file to write (default: standard output)")
    p.add_argument("--range", type=_range, metavar="A-B", help="only these bytes, the last one included")

    p = verb("list", "list the newest version of every name")
    p.add_argument("--all", action="store_true", help="all versions")
    p.add_argument("--deleted", action="store_true", help="what is deleted and not compacted")
    p = verb("versions", "list the versions of a name")
    p.add_argument("name", metavar="NAME")
    p = verb("find", "list the names that match a pattern")
    p.add_argument("pattern", metavar="GLOB")
    verb("stats", "print sums: objects, bytes, ratio")
    verb("du", "print bytes by name")

    p = verb("restore", "write the newest version of every name below a folder")
    p.add_argument("out", metavar="OUT")
    p.add_argument("--at", type=_time, metavar="TIME", help="as the store was at a time")
    p.add_argument("--keep-going", action="store_true", help="go on after objects that cannot be read")

    p = verb("delete", "delete objects; compact frees their space")
    p.add_argument("objects", nargs="+", metavar="OBJECT")
    p = verb("undelete", "take deletions back that were not compacted")
    p.add_argument("objects", nargs="+", metavar="ID")
    p = verb("prune", "delete versions that no rule keeps; the newest of a name always stays")
    for name in ("last", "hourly", "daily", "weekly", "monthly", "yearly"):
        p.add_argument(f"--keep-{name}", type=_count, default=0, metavar="N", dest=name)
    p.add_argument("--keep-within", type=_duration, metavar="AGE", dest="within")
    p.add_argument("--keep-tag", type=_tag, action="append", default=[], metavar="K=V", dest="tags")
    p.add_argument("-n", "--dry-run", action="store_true")
    p = verb("compact", "free the space of what was deleted")
    p.add_argument("-n", "--dry-run", action="store_true")
    p.add_argument(
        "--grace",
        type=_duration,
        default=timedelta(0),
        metavar="AGE",
        help="but keep what was deleted less than AGE ago",
    )
    p = verb("rebase", "store objects alone again, for those read often")
    p.add_argument("objects", nargs="+", metavar="OBJECT")
    p.add_argument("--level", choices=glyd.LEVELS, default="max")

    p = verb("check", "look for damage and name all that depends on it")
    p.add_argument(
        "--read-data",
        nargs="?",
        const=1.0,
        default=0.0,
        type=_share,
        metavar="SHARE",
        help="read the streams too: all, or a random share like =5%%",
    )
    p.add_argument("--decode", action="store_true", help="read all and decode every object")
    p.add_argument("--resume", action="store_true", help="go on where a check was interrupted")
    p = verb("repair", "write damaged sidecars again; recover contents from files")
    p.add_argument("--from", nargs="+", default=[], metavar="PATH", dest="sources")
    verb("rebuild", "make the index again from the journal")
    return parser


def build_audit_parser(prog: str) -> Parser:
    """Return the parser of ``audit``."""
    parser = Parser(
        prog=f"{prog} audit", parents=[_common()], allow_abbrev=False,
        description="Estimate from a sample what a store would save on a folder, or on s3://bucket/prefix.",
    )  # fmt: skip
    parser.add_argument("path", metavar="PATH")
    parser.add_argument("--level", choices=glyd.LEVELS, default="max")
    parser.add_argument("--sample", type=int, default=256, metavar="MB", help="megabytes to look at (default 256)")
    parser.add_argument(
        "--price", type=float, default=23.0, metavar="P", help="price of a terabyte and month (default 23)"
    )
    return parser


def build_completion_parser(prog: str) -> Parser:
    """Return the parser of ``completion``."""
    parser = Parser(prog=f"{prog} completion", description="Print a completion script for a shell.")
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"))
    return parser


def parse(argv: Sequence[str], prog: str) -> argparse.Namespace:
    """Understand a command line.

    Raises
    ------
    UsageError
        When it cannot be understood.
    """
    words = list(argv)
    if words[:1] == ["audit"]:
        return _fill(build_audit_parser(prog).parse_args(words[1:]), "audit")
    if words[:1] == ["completion"]:
        return _fill(build_completion_parser(prog).parse_args(words[1:]), "completion")
    if "--version" in words[:1]:
        return _fill(argparse.Namespace(), "version")
    options = _fill(build_parser(prog).parse_args(words))
    if options.verb == "put":
        _check_put(options)
    if options.verb == "prune":
        values = {name: getattr(options, name) for name in ("last", "hourly", "daily", "weekly", "monthly", "yearly")}
        options.policy = Policy(**values, within=options.within, tags=tuple(options.tags))
    if options.verb == "check" and options.resume and not (options.read_data or options.decode):
        raise UsageError("--resume goes with --read-data or --decode")
    return options


def _fill(options: argparse.Namespace, verb: str | None = None) -> argparse.Namespace:
    if verb is not None:
        options.verb = verb
    defaults = {"json": False, "quiet": False, "threads": 0, "cache": None, "wait": 10.0, "break_lock": False}
    for name, value in defaults.items():
        if not hasattr(options, name):
            setattr(options, name, value)
    return options


def _check_put(options: argparse.Namespace) -> None:
    if options.command is not None and (options.files or options.name is None):
        raise UsageError("--command takes no files, and needs --name")
    if options.command is None and not options.files:
        raise UsageError("put takes files, '-' for standard input, or --command")
    if options.name is not None and len(options.files) > 1:
        raise UsageError("--name goes with one file")
    if "-" in options.files and options.name is None:
        raise UsageError("standard input needs --name")
    if options.files.count("-") > 1:
        raise UsageError("standard input ('-') can be read only once")

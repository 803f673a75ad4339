# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The command line: what may be said and what it means."""

from __future__ import annotations

import argparse
import os
import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NoReturn

import glyd

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

VERBS_WITHOUT_STORE = ("audit", "completion")

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400, "y": 365 * 86_400}

_EPILOG = """\
STORE is a folder, or s3://bucket/prefix. OBJECT is a name (its newest version), an id, or @ID where
a name looks like one. Exit codes: 0 ok, 1 usage, 2 input, output or a read-only store, 3 damaged data,
4 limit, 5 missing base, 6 no such object, 7 locked by another writer.
"""


class UsageError(glyd.GlydError):
    """The command line asks for something that cannot be done."""


def _formatter(prog: str) -> argparse.HelpFormatter:
    """Return what formats help, as wide as the terminal; left to itself it loads ``shutil`` for each command."""
    try:
        width = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
    except (ValueError, OSError):
        width = 80
    return argparse.HelpFormatter(prog, width=width - 2)


class Parser(argparse.ArgumentParser):
    """Raises `UsageError` where argparse would print and exit."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=_formatter, **options)

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


def _percent(text: str) -> float:
    return 100 * _share(text)


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


def _nothing(_p: argparse.ArgumentParser) -> None:
    """Add no arguments."""


def _put(p: argparse.ArgumentParser) -> None:
    p.add_argument("files", nargs="*", metavar="FILE")
    p.add_argument("--name", help="name to store under (default: the path as given)")
    p.add_argument("--level", choices=glyd.LEVELS, default="max")
    p.add_argument("--tag", type=_tag, action="append", default=[], metavar="K=V")
    p.add_argument("--command", metavar="CMD", help="run CMD in a shell and store what it prints, if it ends with 0")
    p.add_argument(
        "--parity", type=_percent, default=0.0, metavar="P%", help="percentage of parity for what others depend on"
    )
    p.add_argument(
        "--open",
        action="store_true",
        help="store what gzip, zip and PNG files hold, not their compressed bytes: a part of the room, but slow",
    )
    p.add_argument("--allow-empty", action="store_true", help="store empty standard input, or output of CMD, too")


def _get(p: argparse.ArgumentParser) -> None:
    p.add_argument("object", metavar="OBJECT")
    p.add_argument("-o", "--output", metavar="OUT", help="file to write (default: standard output)")
    p.add_argument("--range", type=_range, metavar="A-B", help="only these bytes, the last one included")


def _tensors(p: argparse.ArgumentParser) -> None:
    p.add_argument("object", metavar="OBJECT", help="a name (its newest version), @ID, or an id that is no name")
    p.add_argument("--tensor", metavar="NAME", help="write the bytes of this one")
    p.add_argument("-o", "--output", metavar="OUT")


def _list(p: argparse.ArgumentParser) -> None:
    p.add_argument("--all", action="store_true", help="all versions")
    p.add_argument("--deleted", action="store_true", help="what is deleted and not compacted")


def _versions(p: argparse.ArgumentParser) -> None:
    p.add_argument("name", metavar="NAME")


def _find(p: argparse.ArgumentParser) -> None:
    p.add_argument("pattern", metavar="GLOB")


def _restore(p: argparse.ArgumentParser) -> None:
    p.add_argument("out", metavar="OUT")
    p.add_argument("--at", type=_time, metavar="TIME", help="as the store was at a time")
    p.add_argument("--keep-going", action="store_true", help="go on after objects that cannot be read")


def _delete(p: argparse.ArgumentParser) -> None:
    p.add_argument("objects", nargs="+", metavar="OBJECT")


def _undelete(p: argparse.ArgumentParser) -> None:
    p.add_argument("objects", nargs="+", metavar="ID")


def _prune(p: argparse.ArgumentParser) -> None:
    for name in ("last", "hourly", "daily", "weekly", "monthly", "yearly"):
        p.add_argument(f"--keep-{name}", type=_count, default=0, metavar="N", dest=name)
    p.add_argument("--keep-within", type=_duration, metavar="AGE", dest="within")
    p.add_argument("--keep-tag", type=_tag, action="append", default=[], metavar="K=V", dest="tags")
    p.add_argument("-n", "--dry-run", action="store_true")


def _compact(p: argparse.ArgumentParser) -> None:
    p.add_argument("-n", "--dry-run", action="store_true")
    p.add_argument(
        "--grace",
        type=_duration,
        default=timedelta(0),
        metavar="AGE",
        help="but keep what was deleted less than AGE ago",
    )
    p.add_argument(
        "--level",
        choices=glyd.LEVELS,
        dest="again",
        help="write streams of lower levels again at this one: for the hours in which nothing else is to be done",
    )
    p.add_argument(
        "--parity",
        type=_percent,
        default=0.0,
        metavar="P%",
        help="write parity for what others depend on, where there is none",
    )


def _rebase(p: argparse.ArgumentParser) -> None:
    p.add_argument("objects", nargs="+", metavar="OBJECT")
    p.add_argument("--level", choices=glyd.LEVELS, default="max")


def _check(p: argparse.ArgumentParser) -> None:
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


def _repair(p: argparse.ArgumentParser) -> None:
    p.add_argument("--from", nargs="+", default=[], metavar="PATH", dest="sources")


_VERBS = {
    "put": ("store files, standard input (-) or what a command prints, as newest versions", _put),
    "get": ("write the content of an object", _get),
    "tensors": ("list the tensors of a stored model file, or read one of them", _tensors),
    "list": ("list the newest version of every name", _list),
    "versions": ("list the versions of a name", _versions),
    "find": ("list the names that match a pattern", _find),
    "stats": ("print sums: objects, bytes, ratio", _nothing),
    "du": ("print bytes by name", _nothing),
    "restore": ("write the newest version of every name below a folder", _restore),
    "delete": ("delete objects; compact frees their space", _delete),
    "undelete": ("take deletions back that were not compacted", _undelete),
    "prune": ("delete versions that no rule keeps; the newest of a name always stays", _prune),
    "compact": ("free the space of what was deleted", _compact),
    "rebase": ("store objects alone again, for those read often", _rebase),
    "check": ("look for damage and name all that depends on it", _check),
    "repair": ("write damaged sidecars again; recover contents from files", _repair),
    "rebuild": ("make the index again from the journal", _nothing),
}


def _verb_words(prog: str, name: str, common: Parser) -> dict[str, Any]:
    text = _VERBS[name][0]
    return {
        "prog": f"{prog} STORE {name}",
        "description": text[0].upper() + text[1:] + ".",
        "parents": [common],
        "allow_abbrev": False,
    }


def build_verb_parser(prog: str, name: str) -> Parser:
    """Return the parser of what follows a verb."""
    parser = Parser(**_verb_words(prog, name, _common()))
    _VERBS[name][1](parser)
    return parser


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
    for name, (text, fill) in _VERBS.items():
        fill(verbs.add_parser(name, help=text, **_verb_words(prog, name, common)))
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
    if len(words) > 1 and words[1] in _VERBS and not words[0].startswith("-"):
        # all parsers together take 5 ms to make
        options = _fill(build_verb_parser(prog, words[1]).parse_args(words[2:]), words[1])
        options.store = words[0]
    else:
        options = _fill(build_parser(prog).parse_args(words))
    if options.verb == "put":
        _check_put(options)
    if options.verb == "prune":
        values = {name: getattr(options, name) for name in ("last", "hourly", "daily", "weekly", "monthly", "yearly")}
        from glyd_store._retention import Policy  # noqa: PLC0415 - for this alone

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

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The command line: what may be said and what it means."""

from __future__ import annotations

import argparse
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from glyd_cli.errors import UsageError
from glyd_cli.sources import STDIN

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal, TypeAlias

    Level: TypeAlias = Literal["turbo", "fast", "default", "max", "high", "ultra", "cold"]

SUFFIX = ".glyd"

THREADS_MAX = 256

MODEL_VERBS = ("pack", "unpack", "verify", "fit")
"""First words that are commands on models; a file of that name needs a path."""

SERVE_VERBS = ("run", "serve")
"""First words that are commands of `glyd_cli.serve`, with options of their own."""

OBJECT_VERBS = ("train", "bundle", "unbundle")
"""First words that are commands of `glyd_cli.objects`, with options of their own."""

DENSE_NBYTES = 128 << 20
"""Segments of --dense: as far as matches reach."""

_SIZE_END = 1 << 63  # no file or memory is as large

_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


@dataclass(slots=True)
class Options:
    """A command line, understood.

    Attributes
    ----------
    verb
        "compress", "decompress", "content", "test", "list", "info", "bench", "help", "version", or
        one of `MODEL_VERBS`.
    files
        Inputs as given; ``-`` is standard input.
    bases
        What to compress against, or what inputs were compressed against, in order.
    dictionary
        What ``glyd train`` made: inputs are, or become, objects of it, or frames stored with it.
    frames
        With a dictionary, store frames: a level or what only frames have was asked for.
    threads
        0: one a CPU.
    memory
        Bytes a decoder may take, or None for the limit of the library.
    weights
        As for `glyd.compress`: "auto" or False.
    containers
        As for `glyd.compress`.
    sparse
        True, False, or None to decide by the kind of the output.
    layout, revision
        Of ``pack``; ``revision`` of ``fit``, too.
    gpu, context
        Of ``fit``.
    """

    verb: str = "compress"
    files: list[str] = field(default_factory=list)
    level: Level = "default"
    output: str | None = None
    to_stdout: bool = False
    long: bool = False
    dense: bool = False
    bases: list[str] = field(default_factory=list)
    dictionary: str | None = None
    frames: bool = False
    records: bool = False
    threads: int = 0
    memory: int | None = None
    checksum: bool = True
    weights: Literal["auto", False] = "auto"
    containers: Literal["auto", True, False] = "auto"
    force: bool = False
    remove: bool = False
    sparse: bool | None = None
    quiet: bool = False
    verbose: bool = False
    json: bool = False
    plot: str | None = None
    seconds: float = 3.0
    limit: int | None = None
    layout: Literal["tiered", "mma12"] = "tiered"
    revision: str | None = None
    gpu: str | None = None
    context: int | None = None

    @property
    def segment_nbytes(self) -> int | None:
        """Size of segments, if it is not left to the level."""
        return DENSE_NBYTES if self.dense else None

    @property
    def n_threads(self) -> int:
        """Threads to work with: those asked for, or one for each CPU this process may use."""
        if self.threads:
            return self.threads
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1


class Parser(argparse.ArgumentParser):
    """Raises `UsageError` where argparse would print and exit."""

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong."""
        raise UsageError(message.removeprefix("argument "))


def size(text: str) -> int:
    """Return the bytes that a size such as ``64M`` stands for (K, M, G, T: powers of 1024).

    Raises
    ------
    argparse.ArgumentTypeError
        For anything else.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmgt]?)(?:i?b)?", text.strip().lower())
    number = float(match[1]) * (1 << _UNITS[match[2]]) if match else 0.0
    value = int(number) if number < _SIZE_END else 0  # more digits than a float holds are infinity
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no size (like 500K, 64M, 2G)")
    return value


def _threads(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > THREADS_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of threads (0 … {THREADS_MAX}; 0: one a CPU)")
    return int(text)


def _tokens(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < len(text) < 10 or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of tokens")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds (0 … 3600)")
    return value


def build_parser() -> argparse.ArgumentParser:
    """Return the parser; its destinations are the fields of `Options`."""
    parser = Parser(prog="glyd", add_help=False, allow_abbrev=False)
    add = parser.add_argument
    verbs = parser.add_mutually_exclusive_group()
    for flags, verb in (
        (("-z", "--compress"), "compress"),
        (("-d", "--decompress"), "decompress"),
        (("--content",), "content"),
        (("--test",), "test"),
        (("-l", "--list"), "list"),
        (("--info",), "info"),
        (("-b", "--bench"), "bench"),
        (("-h", "--help"), "help"),
        (("-V", "--version"), "version"),
    ):
        verbs.add_argument(*flags, dest="verb", action="store_const", const=verb)
    for flags, level in (
        (("-t", "--turbo"), "turbo"),
        (("-1", "--fast"), "fast"),
        (("--default",), "default"),
        (("-9", "--max"), "max"),
        (("--high",), "high"),
        (("-19", "--ultra"), "ultra"),
        (("-C", "--cold"), "cold"),
    ):
        add(*flags, dest="level", action="store_const", const=level)
    add("--long", action="store_true")
    add("--dense", action="store_true")
    add("-r", "--records", action="store_true")
    add("--base", dest="bases", metavar="OLD", action="append")
    add("-D", "--dictionary", metavar="DICT")
    add("-o", "--output", metavar="OUT")
    add("-c", "--stdout", dest="to_stdout", action="store_true")
    add("-k", "--keep", dest="remove", action="store_false")
    add("--rm", dest="remove", action="store_true")
    add("-f", "--force", action="store_true")
    add("-T", "--threads", metavar="N", type=_threads)
    add("--memory", metavar="SIZE", type=size)
    add("--no-check", dest="checksum", action="store_false")
    add("--no-weights", dest="weights", action="store_const", const=False)
    add("--open", dest="containers", action="store_const", const=True)
    add("--no-open", dest="containers", action="store_const", const=False)
    add("--sparse", dest="sparse", action="store_true")
    add("--no-sparse", dest="sparse", action="store_false")
    add("-q", "--quiet", action="store_true")
    add("-v", "--verbose", action="store_true")
    add("--json", action="store_true")
    add("--plot", metavar="FILE")
    add("--seconds", metavar="S", type=_seconds)
    add("--limit", metavar="SIZE", type=size)
    add("files", metavar="FILE", nargs="*")
    parser.set_defaults(**dict.fromkeys(("verb", "level", "sparse")), remove=False)
    return parser


def build_model_parser() -> argparse.ArgumentParser:
    """Return the parser of what follows one of `MODEL_VERBS`; destinations as in `build_parser`."""
    parser = Parser(prog="glyd", add_help=False, allow_abbrev=False)
    add = parser.add_argument
    add("--layout", choices=("tiered", "mma12"))
    add("--revision", metavar="REV")
    add("--gpu", metavar="GPU")
    add("--context", metavar="N", type=_tokens)
    add("-T", "--threads", metavar="N", type=_threads)
    add("-q", "--quiet", action="store_true")
    add("-v", "--verbose", action="store_true")
    add("--json", action="store_true")
    add("-h", "--help", dest="help", action="store_true")
    add("files", metavar="PATH", nargs="*")
    return parser


def parse(argv: Sequence[str]) -> Options:
    """Understand a command line.

    Parameters
    ----------
    argv
        Arguments without the name of the program.

    Raises
    ------
    UsageError
        For options that do not exist, contradict each other or lack a value.
    """
    words = list(argv)
    literal: list[str] = []
    if "--" in words:  # all behind it are files, whatever they look like
        cut = words.index("--")
        words, literal = words[:cut], words[cut + 1 :]
    if words and words[0] in MODEL_VERBS:
        return _parse_model(words[0], words[1:], literal)
    try:
        given = vars(build_parser().parse_intermixed_args(words))
    except argparse.ArgumentError as error:
        raise UsageError(str(error).removeprefix("argument ")) from None
    options = Options(**{name: value for name, value in given.items() if value is not None})
    options.files += literal
    _check(options, given)
    return options


def _parse_model(verb: str, words: list[str], literal: list[str]) -> Options:
    try:
        given = vars(build_model_parser().parse_intermixed_args(words))
    except argparse.ArgumentError as error:
        raise UsageError(str(error).removeprefix("argument ")) from None
    if given.pop("help"):
        return Options(verb="help")
    options = Options(verb=verb, **{name: value for name, value in given.items() if value is not None})
    options.files += literal
    names = {"pack": "MODEL and OUT", "unpack": "DIR and OUT", "verify": "DIR", "fit": "MODEL"}[verb]
    if len(options.files) != len(names.split(" and ")):
        raise UsageError(f"{verb} takes {names}; a file named {verb}: ./{verb}")
    if options.quiet and options.verbose:
        raise UsageError("-q and -v contradict each other")
    for name, verbs in (
        ("layout", ("pack",)), ("threads", ("pack", "unpack", "verify")), ("revision", ("pack", "fit")),
        ("gpu", ("fit",)), ("context", ("fit",)),
    ):  # fmt: skip
        if given[name] is not None and verb not in verbs:
            raise UsageError(f"--{name} goes with {', '.join(verbs)}")
    return options


def _check_base(options: Options) -> None:
    if options.verb not in {"compress", "decompress", "test", "bench"}:
        raise UsageError("--base goes with compressing, -d, --test and -b")
    if "" in options.bases:
        raise UsageError("--base needs the name of a file")
    if options.long:
        raise UsageError("--long and --base contradict each other: all of a base is within reach anyway")
    if STDIN in options.bases and (not options.files or STDIN in options.files):
        raise UsageError("standard input cannot be the base and an input")
    if options.bases.count(STDIN) > 1:
        raise UsageError("standard input ('-') can be only one of the bases")


def _check_dictionary(options: Options, given: dict[str, Any]) -> None:
    if options.verb not in {"compress", "decompress", "test", "info"}:
        raise UsageError("-D goes with compressing, -d, --test and --info")
    if options.dictionary in {"", STDIN}:
        raise UsageError("-D needs the name of a file that glyd train made")
    for name, value in (("--base", options.bases), ("--json", options.json)):
        if value:
            raise UsageError(f"-D and {name} contradict each other")
    options.frames = given["level"] is not None or options.records or options.long or options.dense
    options.frames |= options.containers is True


def _check(options: Options, given: dict[str, Any]) -> None:
    verb = options.verb
    if options.to_stdout and options.output is not None:
        raise UsageError("-c and -o name two outputs: leave one out")
    if options.output == "":
        raise UsageError("-o needs the name of a file")
    if options.quiet and options.verbose:
        raise UsageError("-q and -v contradict each other")
    if options.dictionary is not None:
        _check_dictionary(options, given)
    if options.long and verb == "compress" and options.level in {"turbo", "fast", "default"}:
        raise UsageError("--long needs --max (or -9) or a level above it")
    if options.dense and verb == "compress" and options.level not in {"max", "high", "ultra"}:
        raise UsageError("--dense goes with --max, --high and --ultra")
    if options.containers is True and verb != "compress":
        raise UsageError("--open goes with compressing: --content reads what is inside")
    if options.containers is True and options.bases:
        raise UsageError("--open and --base contradict each other")
    if options.bases:
        _check_base(options)
    if options.json and verb not in {"list", "info", "bench"}:
        raise UsageError("--json goes with --list, --info and -b")
    if options.memory is not None and verb not in {"decompress", "content", "test"}:
        raise UsageError("--memory limits reading: it goes with -d, --content and --test")
    for name in ("plot", "seconds", "limit"):
        if given[name] is not None and verb != "bench":
            raise UsageError(f"--{name} goes with -b")
    if options.output is not None and verb not in {"compress", "decompress", "content"}:
        raise UsageError(f"--{verb} has no output file: -o goes with compressing and -d")
    if options.files.count(STDIN) > 1:
        raise UsageError("standard input ('-') can be read only once")

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``glyd train``, ``glyd bundle`` and ``glyd unbundle``: many small objects."""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import sys
from typing import TYPE_CHECKING

import glyd
from glyd_cli.arguments import Parser, size
from glyd_cli.errors import Exit, FileError, UsageError, file_error, os_reason, shown
from glyd_cli.report import print_text, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HELP = """\
glyd train FILE... -o DICT [--size SIZE] [--lines] [-f]
glyd bundle FILE... -o OUT [--level LEVEL] [--lines] [-f]
glyd unbundle BUNDLE [NAME|N...] [--list]

  train     learns what small pieces of content have in common; each FILE is one
            sample, with --lines each line of the files. DICT takes at most SIZE
            (112K), and is for -D DICT, glyd.Dictionary in Python, and C.
  bundle    many small files, or with --lines many lines, in one file of which
            each is read by itself in about a millisecond.
  unbundle  writes objects of a bundle to standard output, by name or by place
            (0 is the first, -1 the last); --list says which there are. All of
            them at once: glyd -d BUNDLE.

      --level LEVEL   turbo, fast, default, max (the default), high, ultra
      --lines         each line is an object, its line end included; - is
                      standard input
  -o, --output FILE   where to write
  -f, --force         replace it if it is there
"""


def _parse(verb: str, words: Sequence[str]) -> argparse.Namespace:
    parser = Parser(prog=f"glyd {verb}", add_help=False, allow_abbrev=False)
    add = parser.add_argument
    if verb == "unbundle":
        add("--list", action="store_true")
        add("files", metavar="BUNDLE [NAME|N...]", nargs="+")
    else:
        add("-o", "--output", metavar="FILE", required=True)
        add("-f", "--force", action="store_true")
        add("--lines", action="store_true")
        add("files", metavar="FILE", nargs="+")
    if verb == "train":
        add("--size", metavar="SIZE", type=size, default=112 << 10)
    if verb == "bundle":
        add("--level", choices=glyd.LEVELS, default="max")
    try:
        return parser.parse_intermixed_args(list(words))
    except argparse.ArgumentError as error:
        raise UsageError(str(error).removeprefix("argument ")) from None


def run_object_verb(verb: str, words: Sequence[str]) -> Exit:
    """Run one of `glyd_cli.arguments.OBJECT_VERBS`.

    Raises
    ------
    UsageError
        The command line is not understood.
    FileError
        A file cannot be read or written, or is there already.
    GlydError
        A bundle is damaged, or an argument is outside its range.
    """
    if "-h" in words or "--help" in words:
        print_text(HELP)
        return Exit.OK
    given = _parse(verb, words)
    if verb == "unbundle":
        _unbundle(given)
        return Exit.OK
    if not given.force and os.path.lexists(given.output):
        raise FileError(given.output, "exists already (-f replaces it)")
    if verb == "train":
        _train(given)
    else:
        _bundle(given)
    return Exit.OK


def _read(name: str) -> bytes:
    try:
        if name == "-":
            return sys.stdin.buffer.read()
        with open(name, "rb") as file:
            return file.read()
    except OSError as error:
        raise FileError(name, os_reason(error)) from error


def _lines(names: Sequence[str]) -> Iterator[bytes]:
    for name in names:
        try:
            with contextlib.nullcontext(sys.stdin.buffer) if name == "-" else open(name, "rb") as file:
                yield from file
        except OSError as error:
            raise FileError(name, os_reason(error)) from error


def _train(given: argparse.Namespace) -> None:
    samples = _lines(given.files) if given.lines else (_read(name) for name in given.files)
    dictionary = glyd.train_dictionary(samples, size=given.size)
    part = f"{given.output}.{secrets.token_hex(4)}.part"  # two writers of one name do not meet
    try:
        with open(part, "xb") as file:
            file.write(dictionary.data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, given.output)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise FileError(given.output, f"cannot write: {os_reason(error)}") from error
    print_text(f"{shown(given.output)}: dictionary {dictionary.id:#010x}, {size_text(dictionary.nbytes)}\n")


def _bundle(given: argparse.Namespace) -> None:
    try:
        if given.lines:
            n = glyd.pack_objects(_lines(given.files), given.output, level=given.level)
        else:
            n = glyd.pack_objects(((name, _read(name)) for name in given.files), given.output, level=given.level)
    except OSError as error:
        raise file_error(error, given.output) from error
    print_text(f"{shown(given.output)}: {n} objects, {size_text(os.path.getsize(given.output))}\n")


def _place(bundle: glyd.Bundle, word: str) -> int | str:
    """Return what a word stands for: a name if there is one, else a place."""
    if word in bundle:
        return word
    try:
        return range(len(bundle))[int(word)]
    except (ValueError, IndexError):
        raise UsageError(f"no object {shown(word)!r}: the bundle has {len(bundle)} (--list)") from None


def _unbundle(given: argparse.Namespace) -> None:
    name, *words = given.files
    try:
        with glyd.Bundle(name) as bundle:
            if given.list == bool(words):
                raise UsageError("unbundle takes --list, or names or places of objects")
            if given.list:
                names = bundle.names or [str(i) for i in range(len(bundle))]
                print_text("".join(f"{shown(one)}\n" for one in names))
                return
            places = [_place(bundle, word) for word in words]
            for place in places:
                sys.stdout.buffer.write(bundle[place])
            sys.stdout.buffer.flush()
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise FileError(name, os_reason(error)) from error

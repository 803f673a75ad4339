# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Which output belongs to which input."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from glyd_cli.arguments import SUFFIX
from glyd_cli.errors import UsageError
from glyd_cli.sources import STDIN

if TYPE_CHECKING:
    from glyd_cli.arguments import Options
    from glyd_cli.sources import Source


_NAMELESS = "is no regular file: name the output with -o or -c"


def output_path(source: Source, options: Options) -> str | None:
    """Return the path of the output of an input, None for standard output.

    Raises
    ------
    UsageError
        There is no telling.
    """
    if options.to_stdout:
        return None
    if options.output == STDIN or (options.verb == "content" and options.output is None):
        return None
    if options.output is not None and not os.path.isdir(options.output):
        return options.output
    if source.path == STDIN:
        if options.output is not None:
            raise UsageError("-o names a folder: standard input has no name of its own for a file in it")
        return None
    if not source.is_regular:
        raise UsageError(_NAMELESS)
    path = _beside(source.path, options)
    if options.output is not None:
        return os.path.join(options.output, os.path.basename(path))
    return path


def _beside(path: str, options: Options) -> str:
    if options.verb == "compress":
        if path.endswith(SUFFIX) and not options.force:
            raise UsageError(f"has the suffix {SUFFIX} already; -f compresses it once more")
        return path + SUFFIX
    name = os.path.basename(path)
    if not name.endswith(SUFFIX) or name == SUFFIX:
        raise UsageError(f"does not end in {SUFFIX}: name the output with -o or -c")
    return path[: -len(SUFFIX)]


def check_before_opening(path: str, options: Options) -> None:
    """Refuse an input for what its name says: opening a pipe may wait for its writer.

    Raises
    ------
    UsageError
        The input is a pipe and nothing says what its output is called, or --rm would
        remove a link and not the file that was read.
    """
    has_output = options.to_stdout or (options.output is not None and not os.path.isdir(options.output))
    if path == STDIN or options.verb == "test":
        return
    try:
        status = os.lstat(path)
        if options.remove and not options.to_stdout and stat.S_ISLNK(status.st_mode):
            raise UsageError("is a symbolic link: --rm removes regular files only")
        if not has_output and stat.S_ISFIFO(os.stat(path).st_mode):
            raise UsageError(_NAMELESS)
    except OSError:
        return  # opening it will say why


def check_several(options: Options) -> None:
    """Refuse one output file for several inputs.

    Raises
    ------
    UsageError
        -o names a file, and there is more than one input.
    """
    output = options.output
    if len(options.files) > 1 and output is not None and output != STDIN and not os.path.isdir(output):
        raise UsageError("several inputs need a folder as -o, or -c to put one after the other")

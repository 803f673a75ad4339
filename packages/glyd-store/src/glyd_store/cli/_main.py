# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Entry point: ``glyd-store`` and ``python -m glyd_store``."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

import glyd
from glyd_store._version import __version__
from glyd_store.cli._arguments import UsageError, parse
from glyd_store.cli._errors import Exit, describe, exit_code
from glyd_store.cli._signals import SIGNALS, Stopped

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None, prog: str = "glyd-store") -> int:
    """Run the command.

    Parameters
    ----------
    argv
        Arguments without the name of the program; None: those of the process.
    prog
        What the user called it.

    Returns
    -------
    int
        Exit code; 128 more than its number when a signal stopped the command.
    """
    try:
        with SIGNALS.listening():
            return _main(sys.argv[1:] if argv is None else argv, prog)
    except Stopped as stop:
        return 128 + stop.number


def script() -> NoReturn:
    """Run the command and end the process.

    Without the walk of the interpreter over everything that it has loaded, which takes longer than
    most of what the command does: files are closed, and nothing waits for the end.
    """
    gc.disable()  # what a command makes, it needs to the end
    code = main()
    with suppress(OSError, ValueError):  # a closed pipe has been told of
        sys.stdout.flush()
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)


def _main(argv: Sequence[str], prog: str) -> int:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    where = ""
    try:
        if not argv:
            raise UsageError(f"say what to do (see {prog} --help)")
        options = parse(argv, prog)
        if options.verb == "version":
            print(f"{prog} {__version__}")
            return Exit.OK
        where = getattr(options, "store", "")
        from glyd_store.cli._verbs import run  # noqa: PLC0415 - not for --help

        code = run(options, prog)
        sys.stdout.flush()
        return code
    except SystemExit as stop:  # --help has printed
        return int(stop.code or 0)
    except BrokenPipeError:
        _forget_output()
        return Exit.BROKEN_PIPE
    except (glyd.GlydError, OSError, MemoryError) as error:
        hint = f" (see {prog} --help)" if isinstance(error, UsageError) else ""
        print(f"{prog}: {describe(error, where)}{hint}", file=sys.stderr)
        return exit_code(error)
    except Exception as error:
        if os.environ.get("GLYD_DEBUG"):
            raise
        message = f"internal error, please report it: {type(error).__name__}: {describe(error)}"
        print(f"{prog}: {message}", file=sys.stderr)
        return Exit.IO


def _forget_output() -> None:
    """Let the interpreter end without a complaint about the closed pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

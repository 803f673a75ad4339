# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Entry point: ``glyd`` and ``python -m glyd_cli``.

Everything heavy is imported inside of `main`, so that a Ctrl-C while it loads ends the
command as quietly as later.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from glyd_cli.signals import GATE, Interrupted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from glyd_cli.arguments import Options
    from glyd_cli.report import Reporter


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv
        Arguments without the name of the program; None: those of the process.

    Returns
    -------
    int
        Exit code, see `glyd_cli.errors.Exit`; 128 more than its number when a signal
        stopped the command.
    """
    try:
        GATE.install()
        return _main(sys.argv[1:] if argv is None else argv)
    except Interrupted as stop:
        return 128 + stop.signum
    finally:
        GATE.retire()


def _main(argv: Sequence[str]) -> int:
    _occupy_descriptors()
    umask = os.umask(0o077)  # the only way to read it
    os.umask(umask)

    import glyd
    from glyd_cli.arguments import OBJECT_VERBS, SERVE_VERBS, parse
    from glyd_cli.errors import Exit, FileError, describe, exit_code
    from glyd_cli.report import Reporter

    reporter = Reporter(quiet=False, verbose=False, bar=False)
    try:
        if argv and argv[0] in SERVE_VERBS:
            return _serve(argv[0], argv[1:])
        if argv and argv[0] == "store":
            return _store(argv[1:])
        if argv and argv[0] == "doctor":
            from glyd_cli.doctor.verb import run_doctor

            return run_doctor(argv[1:])
        if argv and argv[0] in OBJECT_VERBS:
            from glyd_cli.objects import run_object_verb

            return run_object_verb(argv[0], argv[1:])
        options = parse(argv)
        with Reporter(quiet=options.quiet, verbose=options.verbose, bar=not _shows_content(options)) as reporter:
            return _run(options, reporter, umask)
    except BrokenPipeError:
        return Exit.BROKEN_PIPE
    except (glyd.GlydError, OSError, MemoryError) as error:
        GATE.check()
        where = error.path if isinstance(error, FileError) else None
        hint = " (see glyd --help)" if exit_code(error) == Exit.USAGE else ""
        reporter.error(where, describe(error) + hint)
        return exit_code(error)
    except Exception as error:
        GATE.check()
        if os.environ.get("GLYD_DEBUG"):
            raise
        reporter.error(None, f"internal error, please report it: {type(error).__name__}: {describe(error)}")
        return Exit.IO


def _serve(verb: str, words: Sequence[str]) -> int:
    from glyd_cli import serve
    from glyd_cli.report import Reporter, print_text

    options = serve.parse_serve(verb, words)
    if options is None:
        print_text(serve.HELP)
        return 0
    with Reporter(quiet=False, verbose=False, bar=False) as reporter:
        return serve.run_serve_verb(options, reporter)


def _store(words: Sequence[str]) -> int:
    from glyd_cli.errors import UsageError

    try:
        from glyd_store import run_command
    except ImportError:
        text = "'store' needs another package: pip install 'glyd-cli[store]'; a file of that name: ./store"
        raise UsageError(text) from None
    return run_command(words, prog="glyd store")


def _run(options: Options, reporter: Reporter, umask: int) -> int:
    if options.verb == "help":
        from glyd_cli.helptext import HELP
        from glyd_cli.report import print_text

        print_text(HELP)
        return 0
    if options.verb == "version":
        from glyd_cli.version import print_version

        print_version()
        return 0
    if options.verb == "info" and options.dictionary is not None:
        from glyd_cli.dictionaries import print_info

        return print_info(options, reporter)
    if options.verb in {"list", "info"}:
        from glyd_cli.listing import list_files

        return list_files(options, reporter)
    if options.verb == "bench":
        from glyd_cli.bench.verb import bench_files

        return bench_files(options, reporter)
    if options.verb in {"pack", "unpack", "verify"}:
        from glyd_cli.models import run_model_verb

        return run_model_verb(options, reporter)
    if options.verb == "fit":
        from glyd_cli.fit import fit_model

        return fit_model(options)
    from glyd_cli.convert import convert

    return convert(options, reporter, umask)


def _shows_content(options: Options) -> bool:
    """Return whether content may go to a terminal, where a progress bar would disturb it."""
    return options.verb in {"decompress", "content"} and options.output is None and os.isatty(1)


def _occupy_descriptors() -> None:
    """Make sure that no file gets the number of a standard stream that was closed.

    Otherwise a message meant for standard error could end up in an output. The
    substitutes are opened the wrong way round, so that using them fails.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if fd == 0 else os.O_RDONLY)


if __name__ == "__main__":
    sys.exit(main())

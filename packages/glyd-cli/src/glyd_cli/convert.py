# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The way of each input through the command: open, code, name the output, remove, report."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import glyd
from glyd_cli.atomic import same_file
from glyd_cli.bases import explain, identity_of, open_bases
from glyd_cli.compress import compress
from glyd_cli.decompress import check, decompress
from glyd_cli.dictionaries import needs_dictionary, open_dictionary, restore, store
from glyd_cli.errors import Exit, FileError, UsageError, describe, exit_code, os_reason, shown
from glyd_cli.naming import check_before_opening, check_several, output_path
from glyd_cli.opened import describe_streams, read_content
from glyd_cli.report import ratio_text, size_text, speed_text
from glyd_cli.signals import GATE
from glyd_cli.sources import STDIN, open_source
from glyd_cli.targets import open_stdout, open_target

if TYPE_CHECKING:
    from glyd_cli.arguments import Options
    from glyd_cli.report import Job, Reporter
    from glyd_cli.sources import Source
    from glyd_cli.targets import Target


@dataclass(slots=True)
class _Totals:
    n_files: int = 0
    content: int = 0
    stored: int = 0
    seconds: float = 0.0
    worst: Exit = Exit.OK


@dataclass(slots=True)
class _Run:
    """One call of the command over all its inputs."""

    options: Options
    reporter: Reporter
    umask: int
    base: glyd.Base | None
    dictionary: glyd.Dictionary | None
    totals: _Totals = field(default_factory=_Totals)
    taken: dict[tuple[int, int], str] = field(default_factory=dict)
    """Device and inode of every input, and of every output made so far: never an output."""

    def convert_one(self, path: str) -> None:
        options = self.options
        check_before_opening(path, options)
        with open_source(path) as source:
            _check_terminal_input(source, options)
            if options.verb == "test":
                job = self.reporter.job(source.name, source.nbytes)
                self._report(source, None, *self._read(source, None, job), job.seconds)
                return
            target = self._open_target(source)
            try:
                job = self.reporter.job(source.name, source.nbytes)
                if options.verb == "content":
                    content, stored = read_content(source, target, options, job)
                elif options.verb == "decompress":
                    content, stored = self._read(source, target, job)
                elif self.dictionary is not None:
                    content, stored = store(source, target, options, job, self.dictionary)
                else:
                    content, stored = compress(source, target, options, job, self.base)
                target.commit()
            except BaseException as error:
                target.abort()
                is_fault = isinstance(error, Exception) and not isinstance(error, BrokenPipeError)
                if is_fault and target.written and options.to_stdout:
                    raise _PartialOutputError(error) from error
                raise
            self._remember(target.name)
            if options.remove:
                self._remove(source, target)
            self._report(source, target, content, stored, job.seconds)

    def _read(self, source: Source, target: Target | None, job: Job) -> tuple[int, int]:
        """Restore an input into a target, or only check it."""
        if self.dictionary is not None:
            return restore(source, target, self.options, job, self.dictionary)
        if target is None:
            return check(source, self.options, job, self.base)
        return decompress(source, target, self.options, job, self.base)

    def _open_target(self, source: Source) -> Target:
        options = self.options
        path = output_path(source, options)
        if path is None:
            if options.verb == "compress" and not options.force and os.isatty(1):
                raise UsageError(
                    "compressed data is not for a terminal: use -o, redirect the output, or force it with -f"
                )
            return open_stdout(source)
        other = self.taken.get(identity_of(path) or (-1, -1))
        if other is not None:
            raise same_file(path, other)
        return open_target(
            path,
            source,
            umask=self.umask,
            force=options.force,
            sparse=options.verb == "decompress" and options.sparse is not False,
            durable=options.remove,
        )

    def _remember(self, path: str) -> None:
        identity = identity_of(path)
        if identity is not None:
            self.taken[identity] = path

    def _remove(self, source: Source, target: Target) -> None:
        if self.options.to_stdout or source.is_stdin or not source.is_regular:
            return
        if not _is_regular(target.name):
            self.reporter.say(f"{shown(source.name)}: kept, as {shown(target.name)} is no file that could replace it")
            return
        kept = [*self.options.bases, *filter(None, [self.options.dictionary])]
        if identity_of(source.path) in map(identity_of, kept):
            self.reporter.say(f"{shown(source.name)}: kept, as it is the {'base' if self.base else 'dictionary'}")
            return
        now = os.lstat(source.path)
        before = source.status
        same = ("st_dev", "st_ino", "st_size", "st_mtime_ns")
        if any(getattr(now, name) != getattr(before, name) for name in same):
            raise FileError(source.path, "not removed: it changed while it was read")
        try:
            os.unlink(source.path)
        except OSError as error:
            raise FileError(source.path, f"not removed: {os_reason(error)}") from error

    def _report(self, source: Source, target: Target | None, content: int, stored: int, seconds: float) -> None:
        totals = self.totals
        totals.n_files += 1
        totals.content += content
        totals.stored += stored
        totals.seconds += seconds
        options = self.options
        to_stdout = target is not None and target.name == "standard output"
        if to_stdout and not options.verbose:
            return
        name = shown(source.name)
        arrow = "" if target is None else f" → {shown(target.name)}"
        first, second = (content, stored) if options.verb == "compress" else (stored, content)
        share = f", {100 * stored / content:.1f}%" if content else ""
        verdict = "ok, " if target is None else ""
        self.reporter.say(
            f"{name}{arrow}: {verdict}{size_text(first)} → {size_text(second)} "
            f"({ratio_text(content, stored)}{share}), {speed_text(content, seconds)}"
        )
        level = f"level {options.level}, " if options.verb == "compress" else ""
        if self.dictionary is not None:
            level = f"dictionary {self.dictionary.id:#010x}, "
        opens = options.containers is True or (options.containers == "auto" and options.level in {"ultra", "cold"})
        self.reporter.detail(
            f"  {level}{options.n_threads} threads, {content} bytes of content, "
            f"{stored} bytes of frames, {seconds:.3f} s"
        )
        is_told = options.verbose and opens and options.verb == "compress" and source.is_regular
        if is_told and target is not None and _is_regular(target.name):
            for line in describe_streams(source.path, target.name):
                self.reporter.detail(line)


class _PartialOutputError(Exception):
    """Standard output holds the first part of something: nothing may follow it."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(str(cause))
        self.cause = cause


def convert(options: Options, reporter: Reporter, umask: int) -> Exit:
    """Compress, restore or test every input.

    Parameters
    ----------
    options
        The command line.
    reporter
        Says what happens.
    umask
        Mask for the permissions of outputs whose input has none.

    Returns
    -------
    Exit
        The worst of all inputs; each failure has been reported.
    """
    check_several(options)
    dictionary = open_dictionary(options, reporter)
    if isinstance(dictionary, Exit):
        return dictionary
    with open_bases(options.bases) as base:
        return _convert_all(_Run(options, reporter, umask, base, dictionary))


def _convert_all(run: _Run) -> Exit:
    options, reporter = run.options, run.reporter
    files = options.files or [STDIN]
    for path in files:
        identity = identity_of(path) if path != STDIN else None
        if identity is not None:
            run.taken[identity] = f"{path}"
    for base in [*options.bases, *filter(None, [options.dictionary])]:
        identity = identity_of(base) if base != STDIN else None
        if identity is not None:
            run.taken.setdefault(identity, base)
    for path in files:
        error: BaseException
        try:
            run.convert_one(path)
            continue
        except BrokenPipeError:
            raise
        except _PartialOutputError as partial:
            error, stop = partial.cause, True
        except (glyd.GlydError, OSError, MemoryError) as failure:
            GATE.check()  # the failure may have come from stopping
            error, stop = failure, False
        where = error.path if isinstance(error, FileError) else "standard input" if path == STDIN else path
        error = needs_dictionary(error, run.dictionary)
        reporter.error(where, describe(error) + explain(error, run.base, options.bases))
        run.totals.worst = max(run.totals.worst, exit_code(error))
        if stop:
            break
    totals = run.totals
    if totals.n_files > 1 and (options.verbose or not options.to_stdout):
        reporter.say(
            f"{totals.n_files} files: content {size_text(totals.content)}, frames {size_text(totals.stored)} "
            f"({ratio_text(totals.content, totals.stored)}), {speed_text(totals.content, totals.seconds)}"
        )
    return totals.worst


def _check_terminal_input(source: Source, options: Options) -> None:
    if not os.isatty(source.fd):
        return
    if options.verb != "compress":
        raise UsageError("is a terminal: compressed data comes from a file or a pipe")
    if source.is_stdin and STDIN not in options.files:
        raise UsageError("no FILE given, and standard input is a terminal (glyd --help; to type the input: glyd -)")


def _is_regular(path: str) -> bool:
    return os.path.isfile(path) and not os.path.islink(path)


if sys.platform == "win32":
    raise ImportError("glyd-cli needs a POSIX system: Linux, macOS or WSL")

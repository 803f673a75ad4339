# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What the command says: sizes in words, lines on standard error, a progress bar on a terminal."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from typing import TYPE_CHECKING

from glyd_cli.errors import FileError, os_reason, shown

if TYPE_CHECKING:
    from types import TracebackType
    from typing import TextIO

    from rich.progress import Progress, TaskID
    from typing_extensions import Self

BAR_DELAY_S = 0.3
"""Work that is over sooner gets no progress bar: loading it would take longer."""


def size_text(nbytes: int) -> str:
    """Return a size for people: 999 B, 12.3 kB, 4.56 MB (powers of 1000)."""
    if nbytes < 1000:
        return f"{nbytes} B"
    value = float(nbytes)
    for unit in ("kB", "MB", "GB", "TB", "PB"):
        value /= 1000
        if value < 999.5 or unit == "PB":
            break
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f} {unit}"


def speed_text(nbytes: int, seconds: float) -> str:
    """Return a speed in MB/s (10^6 bytes)."""
    return f"{nbytes / max(seconds, 1e-9) / 1e6:,.0f} MB/s"


def ratio_text(content: int, stored: int) -> str:
    """Return how many times smaller the stored form is."""
    return f"{content / stored:.2f}×" if stored else "-"


def print_text(text: str) -> None:
    """Write text to standard output, whatever its encoding can express.

    Raises
    ------
    FileError
        Standard output cannot take it.
    BrokenPipeError
        Its reader has closed it.
    """
    try:
        _write(1, sys.stdout, text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise FileError("standard output", f"write failed: {os_reason(error)}") from error


def _write(fd: int, stream: TextIO | None, text: str) -> None:
    """Write past the buffers of a stream, so that an error shows here and not at exit."""
    encoding = (stream and stream.encoding) or "utf-8"
    data = text.encode(encoding, "backslashreplace")
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:  # a terminal or pipe that somebody set to O_NONBLOCK
            select.select([], [fd], [])


class Reporter:
    """Prints the lines of a run and its progress.

    Parameters
    ----------
    quiet
        Say nothing but errors.
    verbose
        Also say what -v promises.
    bar
        Whether a progress bar may be drawn; it also takes a terminal.
    """

    def __init__(self, *, quiet: bool, verbose: bool, bar: bool = True) -> None:
        self.quiet = quiet
        self.verbose = verbose
        self._may_draw = bar and not quiet and _is_terminal(sys.stderr)
        self._bar: Progress | None = None

    def error(self, path: str | None, what: str) -> None:
        """Print the line of an error."""
        self.stop()
        where = f"{shown(path)}: " if path else ""
        _to_stderr(f"glyd: {where}{what}\n")

    def say(self, text: str) -> None:
        """Print a line, unless -q."""
        if not self.quiet:
            self.stop()
            _to_stderr(f"{text}\n")

    def detail(self, text: str) -> None:
        """Print a line if -v."""
        if self.verbose:
            self.say(text)

    def job(self, name: str, total: int | None) -> Job:
        """Start measuring the work on one input.

        Parameters
        ----------
        name
            Of the input.
        total
            Bytes to read, or None when unknown.
        """
        return Job(self, name, total)

    def draw(self, job: Job) -> None:
        """Show the progress of a job, if there is a terminal to show it on."""
        if not self._may_draw:
            return
        if self._bar is None:
            from rich.console import Console  # noqa: PLC0415 - takes longer than most runs
            from rich.progress import (  # noqa: PLC0415
                BarColumn,
                DownloadColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
                TransferSpeedColumn,
            )

            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                DownloadColumn(),
                TransferSpeedColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
        if job.task is None:
            job.task = self._bar.add_task(shown(job.name)[-40:], total=job.total)
        self._bar.update(job.task, completed=job.done)

    def stop(self) -> None:
        """Take the progress bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class Job:
    """Progress and time of the work on one input."""

    def __init__(self, reporter: Reporter, name: str, total: int | None) -> None:
        self._reporter = reporter
        self._start = time.perf_counter()
        self.name = name
        self.total = total
        self.done = 0
        self.task: TaskID | None = None

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.perf_counter() - self._start

    def advance(self, nbytes: int) -> None:
        """Count bytes that were read."""
        self.done += nbytes
        if self.seconds > BAR_DELAY_S:
            self._reporter.draw(self)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _to_stderr(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody listens: the exit code still says it
        _write(2, sys.stderr, text)

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``glyd pack``, ``unpack`` and ``verify``: model checkpoints, without torch and without a GPU."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import TYPE_CHECKING

import glyd
from glyd_cli.errors import Exit, FileError, os_reason, shown
from glyd_cli.report import print_text, ratio_text, size_text, speed_text
from glyd_cli.signals import Interrupted

if TYPE_CHECKING:
    from collections.abc import Callable

    from glyd_cli.arguments import Options
    from glyd_cli.report import Job, Reporter

_REASONS = {
    "dtype": "not bf16",
    "shape": "no matrix",
    "size": "too small or too irregular to pay",
    "name": "the name of the pack is taken",
}


def run_model_verb(options: Options, reporter: Reporter) -> Exit:
    """Do what the command line says with a model.

    Raises
    ------
    FileError
        A file or directory cannot be read or written.
    GlydError
        The model is broken, or cannot be packed.
    """
    source = options.files[0]
    job = reporter.job(source, None)
    progress = _progress(job)
    try:
        if options.verb == "pack":
            report = glyd.pack_model(
                source,
                options.files[1],
                options.layout,
                revision=options.revision,
                threads=options.threads,
                progress=progress,
            )
            _show_pack(report, options, reporter, job)
        elif options.verb == "unpack":
            _show(glyd.unpack_model(source, options.files[1], threads=options.threads, progress=progress), options, job)
        else:
            _show(glyd.verify_model(source, threads=options.threads, progress=progress), options, job)
    except Interrupted:
        if options.verb == "pack":
            reporter.say("glyd: stopped; the same command goes on from here")
        raise
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        path = os.fsdecode(error.filename) if error.filename is not None else source
        raise FileError(path, _reason(error)) from error
    finally:
        reporter.stop()
    return Exit.OK


def _reason(error: OSError) -> str:
    """Return what went wrong; network libraries raise errors of this kind, with long texts and no number."""
    if isinstance(error, FileExistsError):
        return "is there already, and no empty directory"
    if isinstance(error, BlockingIOError):
        return "another run is writing it"
    if error.errno:
        return os_reason(error)
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _progress(job: Job) -> Callable[[int, int], None]:
    def progress(done: int, total: int) -> None:
        job.total = total
        job.advance(done - job.done)

    return progress


def _show_pack(report: glyd.PackReport, options: Options, reporter: Reporter, job: Job) -> None:
    if report.ignored:
        names = ", ".join(map(shown, report.ignored[:5])) + ", …" * (len(report.ignored) > 5)
        reporter.say(f"glyd: not taken over: {names}")
    if options.json:
        facts = dataclasses.asdict(report)
        facts["verbatim"] = {why: {"n_tensors": n, "nbytes": size} for why, (n, size) in report.verbatim.items()}
        facts |= {"bits_per_weight": report.bits_per_weight, "seconds": job.seconds}
        print_text(json.dumps(facts, indent=2) + "\n")
        return
    if options.quiet:
        return
    rows = [("", "tensors", "before", "after", "bits/weight", "entropy floor")]
    if report.n_packed:
        bits = f"{report.bits_per_weight:.3f}"
        sizes = (size_text(2 * report.n_weights), size_text(report.packed_nbytes))
        rows.append((report.layout, str(report.n_packed), *sizes, bits, f"{report.entropy_bits:.3f}"))
    for why, (n, nbytes) in report.verbatim.items():
        rows.append((f"as it was: {_REASONS[why]}", str(n), size_text(nbytes), size_text(nbytes), "", ""))
    sizes = (size_text(report.original_nbytes), size_text(report.nbytes))
    rows.append(("weight files", str(report.n_tensors), *sizes, "", ""))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]
    ratio = ratio_text(report.original_nbytes, report.nbytes)
    lines.append(f"{ratio} smaller, {job.seconds:.1f} s, {speed_text(report.original_nbytes, job.seconds)}")
    if report.n_resumed:
        lines.append(f"{report.n_resumed} of {report.n_tensors} tensors were done by a run that was stopped")
    if not report.n_packed:
        lines.append("nothing was packed: only bf16 matrices are (convert the model to bf16 first)")
    print_text("\n".join(lines) + "\n")


def _show(report: glyd.ModelReport, options: Options, job: Job) -> None:
    if options.json:
        print_text(json.dumps(dataclasses.asdict(report) | {"seconds": job.seconds}, indent=2) + "\n")
    elif not options.quiet:
        sizes = f"{size_text(report.nbytes)} packed, {size_text(report.original_nbytes)} unpacked"
        tensors = f"{report.n_tensors} tensors, {report.n_packed} of them packed ({report.layout})"
        done = "every byte checked" if options.verb == "verify" else "restored byte for byte"
        print_text(f"{shown(options.files[0])}: {done}: {tensors}, {sizes}, {job.seconds:.1f} s\n")

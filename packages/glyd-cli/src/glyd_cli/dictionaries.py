# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``-D DICT``: inputs stored as objects of a dictionary or as frames with it, and back."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

import glyd
from glyd_cli.compress import compress
from glyd_cli.decompress import pour
from glyd_cli.errors import Exit, FileError, describe, exit_code, os_reason, shown
from glyd_cli.listing import details_of, verdict
from glyd_cli.pipeline import CHUNK_NBYTES, ChunkReader, ReadAhead, WriteBehind, seekable_file
from glyd_cli.report import print_text, ratio_text
from glyd_cli.sources import STDIN, open_source, read_all

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

    from glyd_cli.arguments import Options
    from glyd_cli.report import Job, Reporter
    from glyd_cli.sources import Source
    from glyd_cli.targets import Target

DICTIONARY_NBYTES_MAX = 4 << 20
"""No dictionary is larger; nothing larger is read as one."""

OBJECT_MAGIC = b"\x9d\x4f"
LARGE_LEVEL: Final = "max"
"""Of files too large for an object, if no level is given: that of the blocks in objects."""


def read_dictionary(path: str) -> glyd.Dictionary:
    """Read the dictionary that ``-D`` names.

    Raises
    ------
    FileError
        It cannot be read.
    FormatError
        It is no dictionary, or a damaged one.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(DICTIONARY_NBYTES_MAX + 1)
    except OSError as error:
        raise FileError(path, f"cannot be the dictionary: {os_reason(error)}") from error
    if len(data) > DICTIONARY_NBYTES_MAX:
        raise glyd.FormatError(f"is no dictionary: more than {DICTIONARY_NBYTES_MAX} bytes (glyd train makes them)")
    try:
        return glyd.Dictionary(data)
    except glyd.FormatError as error:
        raise type(error)(f"is no dictionary: {error} (glyd train makes them)") from error


def open_dictionary(options: Options, reporter: Reporter) -> glyd.Dictionary | Exit | None:
    """Return the dictionary of the command line, None if there is none, or how to end when it cannot be read."""
    if options.dictionary is None:
        return None
    try:
        return read_dictionary(options.dictionary)
    except (glyd.GlydError, MemoryError) as error:
        reporter.error(options.dictionary, describe(error))
        return exit_code(error)


def store(source: Source, target: Target, options: Options, job: Job, dictionary: glyd.Dictionary) -> tuple[int, int]:
    """Store an input as an object, as a frame if it is a large file or that was asked for.

    What comes through a pipe becomes several objects if it is large.

    Returns
    -------
    tuple of int
        Bytes of content, bytes of what was stored.

    Raises
    ------
    FileError
        The input could not be read or the output not be written.
    """
    if options.frames:
        return compress(source, target, options, job, dictionary=dictionary)
    small = read_all(source, CHUNK_NBYTES)
    if small is None and (source.nbytes or 0) > CHUNK_NBYTES:
        return compress(source, target, replace(options, level=LARGE_LEVEL), job, dictionary=dictionary)
    if small is not None:
        packed = dictionary.compress(small, checksum=options.checksum)
        job.advance(len(small))
        target.write(memoryview(packed))
        return len(small), len(packed)
    stored = 0
    with ReadAhead(source, CHUNK_NBYTES, job.advance) as ahead, WriteBehind(target) as behind:
        while (chunk := ahead.take()) or not stored:
            packed = dictionary.compress(chunk, checksum=options.checksum)
            stored += len(packed)
            behind.put(memoryview(packed))
            if not chunk:
                break
        behind.finish()
    return job.done, stored


def restore(
    source: Source, target: Target | None, options: Options, job: Job, dictionary: glyd.Dictionary
) -> tuple[int, int]:
    """Restore the content of all objects, or all frames, of an input into a target, or only check it.

    Returns
    -------
    tuple of int
        Bytes of content, bytes of what was stored.

    Raises
    ------
    FormatError
        The input is no whole objects or frames; what was written so far is right, but not all.
    WrongBaseError
        It was stored with another dictionary.
    LimitError
        It needs more memory than allowed.
    FileError
        The input could not be read or the output not be written.
    """
    content = 0
    limits = glyd.Limits(max_memory=options.memory)
    with ReadAhead(source, CHUNK_NBYTES, job.advance) as ahead:
        reader = ChunkReader(ahead)
        if _starts_frame(reader.peek(len(OBJECT_MAGIC))):
            with _open_frames(reader, options, limits, dictionary) as file:
                return pour(file, target), job.done
        if target is None:
            for packed, _ in _objects(reader):
                content += len(dictionary.decompress(packed, limits=limits))
            return content, job.done
        with WriteBehind(target) as behind:
            for packed, _ in _objects(reader):
                data = dictionary.decompress(packed, limits=limits)
                content += len(data)
                behind.put(memoryview(data))
            behind.finish()
    return content, job.done


def _starts_frame(start: bytes) -> bool:
    """Say whether an input that starts so is to be read as frames: what is neither is no object."""
    return len(start) == len(OBJECT_MAGIC) and start[0] == OBJECT_MAGIC[0] and start != OBJECT_MAGIC


def _open_frames(
    reader: ChunkReader, options: Options, limits: glyd.Limits, dictionary: glyd.Dictionary
) -> glyd.GlydFile:
    file = cast("IO[bytes]", reader)  # open needs but read and readinto of it
    return glyd.open(file, "rb", dictionary=dictionary, threads=options.threads, limits=limits)


def needs_dictionary(error: BaseException, dictionary: glyd.Dictionary | None) -> BaseException:
    """Return what to say of an input that could not be read as what it was taken for."""
    if isinstance(error, glyd.MissingBaseError) and dictionary is None and "needs a dictionary" in str(error):
        return glyd.MissingBaseError(f"is stored with dictionary {error.expected:#010x}: -D DICT names it")
    found = getattr(error, "found", None)
    if not isinstance(error, glyd.FormatError) or not isinstance(found, int) or getattr(error, "offset", None):
        return error
    if dictionary is None and found & 0xFFFF == int.from_bytes(OBJECT_MAGIC, "little"):
        return glyd.MissingBaseError("is stored with a dictionary: -D DICT names it")
    return error


def _objects(reader: io.RawIOBase | IO[bytes]) -> Iterator[tuple[memoryview, glyd.ObjectInfo]]:
    """Give each object of a file, and what it says of itself; there is at least one."""
    pending = b""
    at = n = 0
    while True:
        more = reader.read(CHUNK_NBYTES) or b""
        pending = pending[at:] + more
        at = 0
        while at < len(pending) or not (more or n):
            rest = memoryview(pending)[at:]
            if not more and n and bytes(rest[:2]) != OBJECT_MAGIC[: len(rest)]:
                raise glyd.CorruptDataError(f"data after object {n - 1} that is no object")
            try:
                info = glyd.read_object_info(rest)
            except glyd.TruncatedError:
                if more:
                    break
                raise
            yield rest[: info.stored_nbytes], info
            n += 1
            at += info.stored_nbytes
        if not more:
            return


def print_info(options: Options, reporter: Reporter) -> Exit:
    """Say what objects or frames are in every input, on standard output.

    Returns
    -------
    Exit
        The worst of all inputs; each failure has been reported.
    """
    dictionary = open_dictionary(options, reporter)
    if not isinstance(dictionary, glyd.Dictionary):
        return dictionary or Exit.USAGE
    worst = Exit.OK
    for path in options.files or [STDIN]:
        error: BaseException
        try:
            with open_source(path) as source:
                print_text(_details(source, dictionary))
        except (glyd.GlydError, OSError, MemoryError) as failure:
            error = needs_dictionary(failure, dictionary)
            where = error.path if isinstance(error, FileError) else "standard input" if path == STDIN else path
            reporter.error(where, describe(error))
            worst = max(worst, exit_code(error))
    return worst


def _details(source: Source, dictionary: glyd.Dictionary) -> str:
    with seekable_file(source) as file:
        start = file.tell()
        if _starts_frame(file.read(len(OBJECT_MAGIC))):
            file.seek(start)
            return details_of(source, file, dictionary)
        file.seek(start)
        infos = [info for _, info in _objects(file)]
    stored, content = (sum(getattr(info, name) for info in infos) for name in ("stored_nbytes", "content_nbytes"))
    sizes = f"{stored} bytes stored, {content} bytes of content ({ratio_text(content, stored)})"
    lines = [f"{shown(source.name)}: {sizes}, {len(infos)} objects"]
    identities = sorted({info.dictionary_id for info in infos})
    lines += [f"  dictionary  {identity:#010x}, {verdict(identity, dictionary)}" for identity in identities]
    for form in sorted({info.form for info in infos}):
        of_form = [info for info in infos if info.form == form]
        check = ", ".join(str(n) for n in sorted({info.check_nbytes for info in of_form}))
        lines.append(f"  {form}: {len(of_form)} objects, check of {check} bytes")
    return "\n".join(lines) + "\n"

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``glyd FILE``: from an input to a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import glyd
from glyd_cli.errors import FileError
from glyd_cli.pipeline import CHUNK_NBYTES, ReadAhead, WriteBehind
from glyd_cli.sources import read_all

if TYPE_CHECKING:
    from glyd_cli.arguments import Options
    from glyd_cli.report import Job
    from glyd_cli.sources import Source
    from glyd_cli.targets import Target

SMALL_NBYTES = 1 << 20
"""Regular files up to this size are coded in one call, without threads and without an index."""

CHUNK_THREADS_MAX = 8
"""A chunk is a segment for each thread, up to this number: what is read ahead stays bounded."""


def compress(
    source: Source,
    target: Target,
    options: Options,
    job: Job,
    base: glyd.Base | None = None,
    dictionary: glyd.Dictionary | None = None,
) -> tuple[int, int]:
    """Compress an input into a target, against a base or with a dictionary if there is one.

    Returns
    -------
    tuple of int
        Bytes of content, bytes of the frame.

    Raises
    ------
    FileError
        The input could not be read or got shorter meanwhile, or the output could not be
        written.
    """
    small = read_all(source, SMALL_NBYTES)
    if small is None:
        return _compress_stream(source, target, options, job, base, dictionary)
    frame = glyd.compress(
        small,
        options.level,
        base=base,
        dictionary=dictionary,
        threads=1,
        checksum=options.checksum,
        long=options.long,
        segment_size=options.segment_nbytes,
        records=options.records,
        weights=options.weights,
        containers=options.containers,
    )
    job.advance(len(small))
    target.write(memoryview(frame))
    return len(small), len(frame)


def _compress_stream(
    source: Source,
    target: Target,
    options: Options,
    job: Job,
    base: glyd.Base | None,
    dictionary: glyd.Dictionary | None,
) -> tuple[int, int]:
    compressor = glyd.Compressor(
        options.level,
        base=base,
        dictionary=dictionary,
        threads=options.threads,
        checksum=options.checksum,
        long=options.long,
        segment_size=options.segment_nbytes,
        records=options.records,
        weights=options.weights,
        containers=options.containers,
    )
    size = source.nbytes or None  # files of /proc have content and the size 0
    left = size
    if size is not None:
        compressor.set_pledged_input_size(size)
    stored = 0
    chunk_nbytes = CHUNK_NBYTES * min(options.n_threads, CHUNK_THREADS_MAX)
    with ReadAhead(source, chunk_nbytes, job.advance) as ahead, WriteBehind(target) as behind:

        def put(frame: bytes) -> None:
            nonlocal stored
            stored += len(frame)
            behind.put(memoryview(frame))

        while chunk := ahead.take():
            if left is not None and len(chunk) > left:
                # the file grew: what came later becomes a frame of its own, and both are one content
                put(compressor.compress(chunk[:left], compressor.FLUSH_FRAME))
                compressor.set_pledged_input_size(None)
                chunk, left = chunk[left:], None
            put(compressor.compress(chunk))
            if left is not None:
                left -= len(chunk)
        if left:
            raise FileError(source.name, f"got shorter while it was read (expected {size} bytes, found {job.done})")
        put(compressor.flush())
        behind.finish()
    return job.done, stored

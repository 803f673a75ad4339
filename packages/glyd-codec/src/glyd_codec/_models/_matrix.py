# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""One matrix packed or unpacked by all threads, from file to memory and back."""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from glyd_codec._buffers import scratch
from glyd_codec._checksum import checksum
from glyd_codec._errors import ChecksumError, CorruptDataError, FormatError, TruncatedError
from glyd_codec._native import ffi, lib
from glyd_codec._params import check_threads, usable_cpus
from glyd_codec._weights import ALIGN, LAYOUTS, WORKSPACE_NBYTES, check_status, is_shape, native_shape, row_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from typing_extensions import Self

STEP_NBYTES = 1 << 23  # of a file that one task reads or writes
TILE_NBYTES_MIN = 6144  # of the smaller tile: no pack of a matrix of as many bytes pays


def as_matrix(shape: tuple[int, ...]) -> tuple[int, int] | None:
    """Return rows and columns of the pack of a tensor, or None for a shape that has none."""
    if len(shape) not in {2, 3}:
        return None
    rows, cols = (shape[0], shape[1]) if len(shape) == 2 else (shape[0] * shape[1], shape[2])
    return (rows, cols) if is_shape(rows, cols) else None


def can_pay(layout: str, rows: int, cols: int) -> bool:
    """Say whether the fixed part of a pack alone leaves it small enough."""
    if 2 * rows * cols <= TILE_NBYTES_MIN:
        return False
    shape = native_shape(layout, rows, cols)
    return bool(lib.glyd_weights_plan_size(shape) < lib.glyd_weights_pack_bound(shape))


class InFile:
    """A file that threads read at places of their own.

    Parameters
    ----------
    path
        Its path; messages give the last part.
    """

    def __init__(self, path: str) -> None:
        self.name = os.path.basename(path)
        self._fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        status = os.fstat(self._fd)
        self.nbytes = status.st_size
        self._mtime_ns = status.st_mtime_ns

    def read(self, offset: int, out: memoryview) -> None:
        """Fill a buffer.

        Raises
        ------
        TruncatedError
            The file ends before: it was cut while it was being read.
        """
        done = 0
        while done < len(out):
            if hasattr(os, "preadv"):
                n = os.preadv(self._fd, [out[done:]], offset + done)
            else:
                data = os.pread(self._fd, min(len(out) - done, STEP_NBYTES), offset + done)
                n = len(data)
                out[done : done + n] = data
            if not n:
                end = offset + len(out)
                raise TruncatedError(
                    f"{self.name}: ends at byte {offset + done}, not {end}", expected=end, found=offset + done
                )
            done += n

    def map(self) -> mmap.mmap:
        """Return the file in memory, read as it is touched."""
        return mmap.mmap(self._fd, self.nbytes, access=mmap.ACCESS_READ)

    def check_same(self) -> None:
        """Raise `FormatError` when somebody wrote to the file since it was opened."""
        status = os.fstat(self._fd)
        if (status.st_size, status.st_mtime_ns) != (self.nbytes, self._mtime_ns):
            raise FormatError(f"{self.name}: changed while it was being read")

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)


class Engine:
    """Threads, their workspaces and the buffers of a tensor, kept from tensor to tensor.

    Parameters
    ----------
    threads
        0: one a CPU.
    """

    def __init__(self, threads: int) -> None:
        self.threads = check_threads(threads) or usable_cpus()
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="glyd-pack") if self.threads > 1 else None
        self._local = threading.local()
        self._buffers: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        self._buffers.clear()

    def start(self, task: Callable[[], Any]) -> Future[Any]:
        """Run a task on a thread; with one thread, now."""
        if self._pool is not None:
            return self._pool.submit(task)
        done: Future[Any] = Future()
        done.set_result(task())
        return done

    def run(self, tasks: Iterable[Callable[[], Any]], meanwhile: Callable[[], Any] | None = None) -> None:
        """Run tasks on the threads and one more here; raise what the first that failed raised."""
        futures = [self.start(task) for task in tasks]
        try:
            if meanwhile is not None:
                meanwhile()
            for future in futures:
                future.result()
        except BaseException:
            for future in futures:  # none may write to a buffer that the caller has left
                future.cancel()
            for future in futures:
                if not future.cancelled():
                    future.exception()
            raise

    def room(self, name: str, nbytes: int) -> Any:
        """Return a buffer of at least so many bytes, the same one for the same name."""
        buffer = self._buffers.pop(name, None)
        if buffer is None or len(buffer) < nbytes:
            del buffer  # before its successor is there
            memory = mmap.mmap(-1, max(nbytes, mmap.PAGESIZE), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            if hasattr(mmap, "MADV_HUGEPAGE"):  # advice, and 250 ms of page faults a GB without it
                with contextlib.suppress(OSError):  # a kernel without them
                    memory.madvise(mmap.MADV_HUGEPAGE)
            buffer = ffi.from_buffer("char[]", memory)
        self._buffers[name] = buffer
        return buffer

    def _local_room(self, name: str, nbytes: int) -> Any:
        if not hasattr(self._local, name):
            setattr(self._local, name, scratch(nbytes))
        return getattr(self._local, name)

    def _workspace(self) -> Any:
        return self._local_room("workspace", WORKSPACE_NBYTES)

    def sha256(self, file: InFile, offset: int, nbytes: int) -> str:
        """Return the SHA-256 of a part of a file, read piece by piece."""
        total = hashlib.sha256()
        step = 1 << 20  # stays in the cache between reading and hashing
        view = memoryview(ffi.buffer(self._local_room("piece", step), step))
        for at in range(0, nbytes, step):
            part = view[: min(step, nbytes - at)]
            file.read(offset + at, part)
            total.update(part)
        return total.hexdigest()

    def pack(
        self,
        file: InFile,
        offset: int,
        layout: str,
        rows: int,
        cols: int,
        meanwhile: Iterable[Callable[[memoryview], Any]] = (),
    ) -> memoryview | None:
        """Pack a matrix of a file.

        Parameters
        ----------
        file, offset
            Where its rows · cols weights are.
        meanwhile
            Called with the weights while threads pack them; the last one here.

        Returns
        -------
        memoryview or None
            The pack with its padding, valid until the next call. None when it does not pay.
        """
        shape = native_shape(layout, rows, cols)
        nbytes, row_nbytes = rows * cols * 2, cols * 2
        cap = int(lib.glyd_weights_pack_bound(shape)) + ALIGN
        source, out = self.room("source", nbytes), self.room("out", cap)
        view = memoryview(ffi.buffer(source, nbytes))
        ranges = row_ranges(0, rows, row_nbytes, self.threads)

        def plan(first: int, n: int) -> None:
            at, work = first * row_nbytes, self._workspace()
            file.read(offset + at, view[at : at + n * row_nbytes])
            status = lib.glyd_weights_plan_rows(out, cap, shape, first, n, source + at, work, WORKSPACE_NBYTES, 0)
            check_status(status, file.name)

        def fill(first: int, n: int) -> None:
            at, work = source + first * row_nbytes, self._workspace()
            status = lib.glyd_weights_pack_rows(out, cap, shape, first, n, at, work, WORKSPACE_NBYTES, 0)
            check_status(status, file.name)

        self.run(partial(plan, *each) for each in ranges)
        size = ffi.new("size_t *")
        check_status(lib.glyd_weights_plan_end(out, cap, shape, size), file.name)
        if not size[0]:
            return None
        calls = [partial(call, view) for call in meanwhile]
        last = calls.pop() if calls else None
        self.run([*calls, *(partial(fill, *each) for each in ranges)], last)
        packed_nbytes = int(size[0])
        total = -(-packed_nbytes // ALIGN) * ALIGN
        packed = memoryview(ffi.buffer(out, total))
        packed[packed_nbytes:] = bytes(total - packed_nbytes)
        return packed

    def unpack(
        self, file: InFile, offset: int, packed_nbytes: int, layout: str, rows: int, cols: int, check: str, room: str
    ) -> memoryview:
        """Read a pack, check it, and unpack it.

        Parameters
        ----------
        file, offset, packed_nbytes
            Where the pack is.
        layout, rows, cols
            What it must be.
        check
            Its checksum in hexadecimal.
        room
            Name of the buffer for the weights.

        Returns
        -------
        memoryview
            The weights, valid until the next call with this room.

        Raises
        ------
        FormatError
            The pack is not the one that is described.
        """
        packed = self.room("out", packed_nbytes)
        view = memoryview(ffi.buffer(packed, packed_nbytes))
        steps = range(0, packed_nbytes, STEP_NBYTES)
        self.run(partial(file.read, offset + at, view[at : at + STEP_NBYTES]) for at in steps)
        found_check = checksum_text(view)
        if found_check != check:
            raise ChecksumError(
                f"XXH3 is {found_check}, not {check}", expected=int(check, 16), found=int(found_check, 16)
            )
        info = ffi.new("glyd_weights_info *")
        check_status(lib.glyd_weights_read_info(packed, packed_nbytes, info), "pack")
        found = (info.shape.layout, info.shape.rows, info.shape.cols)
        if found != (LAYOUTS[layout], rows, cols):
            raise CorruptDataError(f"the pack is layout, rows, columns {found}, not {LAYOUTS[layout], rows, cols}")
        nbytes, row_nbytes = rows * cols * 2, cols * 2
        out = self.room(room, nbytes)

        def decode(first: int, n: int) -> None:
            part, at, work = n * row_nbytes, out + first * row_nbytes, self._workspace()
            status = lib.glyd_weights_unpack_rows(at, part, packed, packed_nbytes, first, n, work, WORKSPACE_NBYTES, 0)
            check_status(status, f"rows {first} … {first + n - 1}")

        self.run(partial(decode, *each) for each in row_ranges(0, rows, row_nbytes, self.threads))
        return memoryview(ffi.buffer(out, nbytes))


def checksum_text(data: memoryview) -> str:
    """Return the checksum of data as the manifest has it."""
    return f"{checksum(data):016x}"


def check_sha256(data: Any, expected: str, name: str) -> None:
    """Raise `ChecksumError` when data is not what a hash was made of."""
    found = hashlib.sha256(data).hexdigest()
    if found != expected:
        raise mismatch(name, expected, found)


def mismatch(name: str, expected: str, found: str) -> ChecksumError:
    """Return the exception for a hash that differs."""
    return ChecksumError(
        f"{name}: SHA-256 is {found}, not {expected}", expected=int(expected, 16), found=int(found, 16)
    )

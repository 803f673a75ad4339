# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""One matrix packed or unpacked by all threads, from file to memory and back."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from glyd_codec._buffers import scratch
from glyd_codec._errors import (
    ChecksumError,
    CorruptDataError,
    TruncatedError,
)
from glyd_codec._native import ffi, lib
from glyd_codec._params import check_threads, usable_cpus
from glyd_codec._weights import ALIGN, LAYOUTS, WORKSPACE_NBYTES, check_status, is_shape, native_shape, row_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from typing_extensions import Self


def as_matrix(shape: tuple[int, ...]) -> tuple[int, int] | None:
    """Return rows and columns of the pack of a tensor, or None for a shape that has none."""
    if len(shape) not in {2, 3}:
        return None
    rows, cols = (shape[0], shape[1]) if len(shape) == 2 else (shape[0] * shape[1], shape[2])
    return (rows, cols) if is_shape(rows, cols) else None


def can_pay(layout: str, rows: int, cols: int) -> bool:
    """Say whether the fixed part of a pack alone leaves it small enough."""
    shape = native_shape(layout, rows, cols)
    return bool(lib.glyd_weights_plan_size(shape) < lib.glyd_weights_pack_bound(shape))


class Engine:
    """Threads, their workspaces and the two buffers of a tensor, kept from tensor to tensor.

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

    def run(self, tasks: Iterable[Callable[[], None]], meanwhile: Callable[[], None] | None = None) -> None:
        """Run tasks on the threads and one more here; raise what the first that failed raised."""
        if self._pool is None:
            for task in tasks:
                task()
            if meanwhile is not None:
                meanwhile()
            return
        futures = [self._pool.submit(task) for task in tasks]
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
            buffer = scratch(nbytes)
        self._buffers[name] = buffer
        return buffer

    def _workspace(self) -> Any:
        if not hasattr(self._local, "workspace"):
            self._local.workspace = scratch(WORKSPACE_NBYTES)
        return self._local.workspace

    def pack(
        self,
        path: str,
        offset: int,
        layout: str,
        rows: int,
        cols: int,
        look: Callable[[memoryview], None] | None = None,
    ) -> tuple[memoryview, str] | None:
        """Pack a matrix of a file.

        Parameters
        ----------
        path, offset
            Where its rows · cols weights are.
        look
            Called with the weights while threads pack them.

        Returns
        -------
        tuple or None
            The pack with its padding, valid until the next call, and SHA-256 of the weights.
            None when a pack does not pay.
        """
        shape = native_shape(layout, rows, cols)
        nbytes, row_nbytes = rows * cols * 2, cols * 2
        cap = int(lib.glyd_weights_pack_bound(shape)) + ALIGN
        source, out = self.room("source", nbytes), self.room("out", cap)
        view = memoryview(ffi.buffer(source, nbytes))
        ranges = row_ranges(0, rows, row_nbytes, self.threads)

        def plan(first: int, n: int) -> None:
            at = first * row_nbytes
            read_exactly(path, offset + at, view[at : at + n * row_nbytes])
            work = self._workspace()
            check_status(
                lib.glyd_weights_plan_rows(out, cap, shape, first, n, source + at, work, WORKSPACE_NBYTES, 0),
                path,
            )

        def fill(first: int, n: int) -> None:
            work = self._workspace()
            at = source + first * row_nbytes
            check_status(lib.glyd_weights_pack_rows(out, cap, shape, first, n, at, work, WORKSPACE_NBYTES, 0), path)

        self.run([_bind(plan, *each) for each in ranges])
        size = ffi.new("size_t *")
        check_status(lib.glyd_weights_plan_end(out, cap, shape, size), path)
        if not size[0]:
            return None
        source_hash = hashlib.sha256()

        meanwhile = None if look is None else _bind(look, view)
        self.run([_bind(source_hash.update, view), *(_bind(fill, *each) for each in ranges)], meanwhile)
        packed_nbytes = int(size[0])
        total = -(-packed_nbytes // ALIGN) * ALIGN
        packed = memoryview(ffi.buffer(out, total))
        packed[packed_nbytes:] = bytes(total - packed_nbytes)
        return packed, source_hash.hexdigest()

    def unpack(
        self,
        path: str,
        offset: int,
        packed_nbytes: int,
        layout: str,
        rows: int,
        cols: int,
        packed_sha256: str,
        name: str,
    ) -> tuple[memoryview, str]:
        """Read a pack, check it, and unpack it.

        Returns
        -------
        tuple
            The weights, valid until the next call, and their SHA-256.

        Raises
        ------
        FormatError
            The pack is not the one that the manifest describes; ``name`` is in the message.
        """
        packed = self.room("out", packed_nbytes)
        packed_view = memoryview(ffi.buffer(packed, packed_nbytes))
        read_exactly(path, offset, packed_view)
        check_sha256(packed_view, packed_sha256, name)
        info = ffi.new("glyd_weights_info *")
        check_status(lib.glyd_weights_read_info(packed, packed_nbytes, info), name)
        found = (info.shape.layout, info.shape.rows, info.shape.cols)
        if found != (LAYOUTS[layout], rows, cols):
            raise CorruptDataError(
                f"{name}: the pack is layout, rows, columns {found}, not {LAYOUTS[layout], rows, cols}"
            )
        nbytes, row_nbytes = rows * cols * 2, cols * 2
        out = self.room("source", nbytes)

        def decode(first: int, n: int) -> None:
            part = n * row_nbytes
            work = self._workspace()
            at = out + first * row_nbytes
            status = lib.glyd_weights_unpack_rows(at, part, packed, packed_nbytes, first, n, work, WORKSPACE_NBYTES, 0)
            check_status(status, name)

        self.run([_bind(decode, *each) for each in row_ranges(0, rows, row_nbytes, self.threads)])
        view = memoryview(ffi.buffer(out, nbytes))
        return view, hashlib.sha256(view).hexdigest()


def _bind(function: Callable[..., None], *args: Any) -> Callable[[], None]:
    return lambda: function(*args)


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


def read_exactly(path: str, offset: int, out: memoryview) -> None:
    """Fill a buffer from a file.

    Raises
    ------
    TruncatedError
        The file ends before: it was cut while it was being read.
    """
    with open(path, "rb", buffering=0) as file:
        file.seek(offset)
        done = 0
        while done < len(out):
            n = file.readinto(out[done:])
            if not n:
                end = offset + len(out)
                raise TruncatedError(
                    f"{path}: ends at byte {offset + done}, not {end}", expected=end, found=offset + done
                )
            done += n

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Packs of single bf16 matrices in memory (native/src/weights/spec.md)."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from glyd_codec._buffers import BytesOut, borrow, borrow_writable, check_apart, scratch
from glyd_codec._errors import (
    BufferTooSmallError,
    FormatError,
    ParameterError,
    TruncatedError,
    status_error,
    status_text,
)
from glyd_codec._native import ffi, lib
from glyd_codec._params import check_threads, usable_cpus

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal, TypeAlias

    from _typeshed import ReadableBuffer, WriteableBuffer

    WeightsLayout: TypeAlias = Literal["tiered", "mma12"]

LAYOUTS = {"tiered": int(lib.GLYD_WEIGHTS_TIERED), "mma12": int(lib.GLYD_WEIGHTS_MMA12)}
ALIGN = int(lib.GLYD_WEIGHTS_ALIGN)
BLOCK_ROWS = int(lib.GLYD_WEIGHTS_ROWS)
WORKSPACE_NBYTES = int(lib.glyd_weights_workspace())

_LAYOUT_NAMES = {number: name for name, number in LAYOUTS.items()}
_STEP_NBYTES = 1 << 20  # of a range that one thread works on: fits its cache, and is worth handing over
_ROWS_MAX, _COLS_MAX = int(lib.GLYD_WEIGHTS_ROWS_MAX), int(lib.GLYD_WEIGHTS_COLS_MAX) - 1


@dataclass(frozen=True, slots=True)
class WeightsInfo:
    """What a pack holds, and where: all places are bytes from its start.

    Attributes
    ----------
    layout
        "tiered" or "mma12".
    rows, cols
        Of the matrix: output and input features.
    nbytes
        Bytes of the pack.
    n_row_blocks, n_tiles
        Blocks of 64 rows, and tiles of each.
    tile_cols, tile_nbytes
        Columns of a tile, and bytes of its fixed part.
    tile_escape_max
        Bytes of the largest tile's escapes; 0 in mma12.
    block_exc_max
        Most exceptions of a row block.
    n_escape_units, n_exceptions
        Escapes in units of 16 bytes (0 in mma12), and weights that are stored on their own.
    blocks_at, index_at, tiles_at, escapes_at, exc_places_at, exc_values_at
        Where the sections start; those of index and escapes are empty in mma12.
    """

    layout: str
    rows: int
    cols: int
    nbytes: int
    n_row_blocks: int
    n_tiles: int
    tile_cols: int
    tile_nbytes: int
    tile_escape_max: int
    block_exc_max: int
    n_escape_units: int
    n_exceptions: int
    blocks_at: int
    index_at: int
    tiles_at: int
    escapes_at: int
    exc_places_at: int
    exc_values_at: int


def layout_id(layout: str) -> int:
    """Return the number of a layout.

    Raises
    ------
    ParameterError
        For a layout that does not exist.
    """
    number = LAYOUTS.get(layout)
    if number is None:
        raise ParameterError(f"layout must be one of {', '.join(LAYOUTS)}; not {layout!r}")
    return number


def is_shape(rows: int, cols: int) -> bool:
    """Say whether a pack may have this many rows and columns."""
    return 1 <= rows <= _ROWS_MAX and 1 <= cols <= _COLS_MAX and rows * cols <= 1 << 56


def native_shape(layout: str, rows: int, cols: int) -> Any:
    """Return a ``glyd_weights_shape *``."""
    return ffi.new("glyd_weights_shape *", {"layout": LAYOUTS[layout], "rows": rows, "cols": cols})


def row_ranges(first: int, n: int, row_nbytes: int, threads: int) -> list[tuple[int, int]]:
    """Cut rows into ranges that end where row blocks do: first row and number of rows of each."""
    start, end = first // BLOCK_ROWS, -(-(first + n) // BLOCK_ROWS)
    blocks, nbytes = end - start, n * row_nbytes
    pieces = max(1, min(blocks, max(nbytes // _STEP_NBYTES, threads if nbytes > _STEP_NBYTES else 1)))
    step = -(-blocks // pieces)
    edges = [max(first, block * BLOCK_ROWS) for block in range(start, end, step)]
    return [(at, to - at) for at, to in zip(edges, [*edges[1:], first + n], strict=True)]


def check_status(status: int, name: str) -> None:
    """Raise the exception of a status, with the name of what it is about."""
    if status != lib.GLYD_OK:
        error = status_error(status)
        raise type(error)(f"{name}: {status_text(status)}")


def on_threads(threads: int, call: Callable[[int, int], None], ranges: list[tuple[int, int]]) -> None:
    """Call a function for every range, on threads when there are several of both."""
    if min(threads, len(ranges)) <= 1:
        for first, n in ranges:
            call(first, n)
        return
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - 3 ms that few calls need

    with ThreadPoolExecutor(min(threads, len(ranges)), thread_name_prefix="glyd-weights") as pool:
        for future in [pool.submit(call, first, n) for first, n in ranges]:
            future.result()


def pack_weights(
    data: ReadableBuffer, rows: int, cols: int, *, layout: WeightsLayout = "tiered", threads: int = 1
) -> bytes | None:
    """Pack a bf16 matrix in memory into a form that a GPU multiplies from directly.

    Parameters
    ----------
    data
        The weights, bf16 [rows, cols], row-major without gaps, in any C-contiguous
        buffer; read in place. They must not change during the call.
    rows, cols
        Output and input features.
    layout
        "tiered" (smallest) or "mma12" (cheapest to decode).
    threads
        Threads to work with; 0: one a CPU. The result does not depend on it.

    Returns
    -------
    bytes or None
        The pack; None when it would be larger than 15/16 of the matrix, so does not pay.

    Raises
    ------
    ParameterError
        An argument is outside its range, or data is not as large as the shape says.
    TypeError, BufferError
        For data that is no C-contiguous buffer.

    Notes
    -----
    The GIL is released. Any number of threads may call this at once.
    """
    layout_id(layout)
    n_rows, n_cols = operator.index(rows), operator.index(cols)
    if not is_shape(n_rows, n_cols):
        raise ParameterError(
            f"a pack has 1 … {_ROWS_MAX} rows, 1 … {_COLS_MAX} columns and 2^56 weights at most, not {n_rows} × {n_cols}"
        )
    workers = check_threads(threads) or usable_cpus()
    src = borrow(data)
    try:
        if len(src) != 2 * n_rows * n_cols:
            expected = 2 * n_rows * n_cols
            raise ParameterError(
                f"bf16 weights of shape [{n_rows}, {n_cols}] are {expected} bytes, not {len(src)}",
                expected=expected,
                found=len(src),
            )
        return _pack(src, native_shape(layout, n_rows, n_cols), workers)
    finally:
        ffi.release(src)


def _pack(src: Any, shape: Any, threads: int) -> bytes | None:
    row_nbytes = 2 * int(shape.cols)
    cap = int(lib.glyd_weights_plan_size(shape))
    if cap >= lib.glyd_weights_pack_bound(shape):
        return None
    ranges = row_ranges(0, int(shape.rows), row_nbytes, threads)
    plan = scratch(cap)

    def plan_rows(first: int, n: int) -> None:
        work = scratch(WORKSPACE_NBYTES)
        at = src + first * row_nbytes
        check_status(lib.glyd_weights_plan_rows(plan, cap, shape, first, n, at, work, WORKSPACE_NBYTES, 0), "weights")

    on_threads(threads, plan_rows, ranges)
    size = ffi.new("size_t *")
    status = lib.glyd_weights_plan_end(plan, cap, shape, size)
    if status != lib.GLYD_E_BUFFER:  # it says what the whole pack needs
        check_status(status, "weights")
        return None
    nbytes = int(size[0])
    out = BytesOut(nbytes)
    ffi.memmove(out.memory, plan, cap)
    check_status(lib.glyd_weights_plan_end(out.memory, nbytes, shape, size), "weights")

    def pack_rows(first: int, n: int) -> None:
        work = scratch(WORKSPACE_NBYTES)
        at = src + first * row_nbytes
        status = lib.glyd_weights_pack_rows(out.memory, nbytes, shape, first, n, at, work, WORKSPACE_NBYTES, 0)
        check_status(status, "weights")

    on_threads(threads, pack_rows, ranges)
    return out.take()


def _read_info(src: Any) -> Any:
    """Return the checked ``glyd_weights_info *`` of a pack."""
    info = ffi.new("glyd_weights_info *")
    status = lib.glyd_weights_read_info(src, len(src), info)
    if status == lib.GLYD_E_TRUNCATED:
        expected = int(info.size) or int(lib.GLYD_WEIGHTS_HEADER)
        raise TruncatedError(f"pack of {expected} bytes, cut to {len(src)}", expected=expected, found=len(src))
    if status == lib.GLYD_E_MAGIC:
        magic = int(lib.GLYD_WEIGHTS_MAGIC).to_bytes(4, "little").hex()
        raise FormatError(f"no pack of weights: it starts with {bytes(ffi.buffer(src, 4)).hex()}, not {magic}")
    if status == lib.GLYD_E_VERSION:
        check_status(status, f"pack of version {src[4][0]}, not {lib.GLYD_WEIGHTS_VERSION}")
    if status == lib.GLYD_E_FEATURE:
        check_status(status, f"pack of layout {src[5][0]}, not one of {', '.join(map(str, LAYOUTS.values()))}")
    check_status(status, "pack")
    return info


def read_weights_info(pack: ReadableBuffer) -> WeightsInfo:
    """Read and check the header of a pack.

    Parameters
    ----------
    pack
        What `pack_weights` returned, in any C-contiguous buffer; bytes behind it are ignored.

    Returns
    -------
    WeightsInfo
        Layout, shape, sizes and places of its sections.

    Raises
    ------
    FormatError
        It is no pack, of another version, cut, or its sizes contradict each other.
    TypeError, BufferError
        For a pack that is no C-contiguous buffer.
    """
    src = borrow(pack)
    try:
        info = _read_info(src)
    finally:
        ffi.release(src)
    return WeightsInfo(
        layout=_LAYOUT_NAMES[info.shape.layout],
        rows=int(info.shape.rows),
        cols=int(info.shape.cols),
        nbytes=int(info.size),
        n_row_blocks=int(info.row_blocks),
        n_tiles=int(info.tiles),
        tile_cols=int(info.tile_cols),
        tile_nbytes=int(info.tile_bytes),
        tile_escape_max=int(info.tile_escape_max),
        block_exc_max=int(info.block_exc_max),
        n_escape_units=int(info.n_escape_units),
        n_exceptions=int(info.n_exceptions),
        blocks_at=int(info.blocks_at),
        index_at=int(info.index_at),
        tiles_at=int(info.tiles_at),
        escapes_at=int(info.escapes_at),
        exc_places_at=int(info.exc_places_at),
        exc_values_at=int(info.exc_values_at),
    )


@overload
def unpack_weights(
    pack: ReadableBuffer, *, first_row: int = 0, n_rows: int | None = None, out: None = None, threads: int = 1
) -> bytearray: ...


@overload
def unpack_weights(
    pack: ReadableBuffer, *, first_row: int = 0, n_rows: int | None = None, out: WriteableBuffer, threads: int = 1
) -> int: ...


def unpack_weights(
    pack: ReadableBuffer,
    *,
    first_row: int = 0,
    n_rows: int | None = None,
    out: WriteableBuffer | None = None,
    threads: int = 1,
) -> bytearray | int:
    """Return weights of a pack, bit for bit as they were.

    Parameters
    ----------
    pack
        What `pack_weights` returned, in any C-contiguous buffer; read in place. It must
        not change during the call.
    first_row, n_rows
        Rows to unpack; None: all from the first on. Blocks of 64 rows are decoded whole.
    out
        Writable C-contiguous buffer with room for the rows, apart from the pack; it may
        be larger, and bytes past the rows are not written. None: a new bytearray.
    threads
        Threads to work with; 0: one a CPU.

    Returns
    -------
    bytearray or int
        The rows, bf16, row-major; with ``out`` the number of bytes written there.

    Raises
    ------
    FormatError
        It is no pack, or a damaged one. What out then holds is not specified.
    ParameterError
        Rows that it does not have, or buffers that overlap.
    BufferTooSmallError
        When the rows do not fit; ``expected`` of the exception is the room that they need.
    TypeError, BufferError
        For what is no C-contiguous buffer.

    Notes
    -----
    The GIL is released. Any number of threads may call this at once. A pack has no
    checksum: one of the right form with other bits gives other weights.
    """
    first, workers = operator.index(first_row), check_threads(threads) or usable_cpus()
    src = borrow(pack)
    try:
        info = _read_info(src)
        rows, row_nbytes = int(info.shape.rows), 2 * int(info.shape.cols)
        n = rows - first if n_rows is None else operator.index(n_rows)
        if not (0 <= first <= rows and 0 <= n <= rows - first):
            raise ParameterError(f"rows {first} … {first + n - 1} of a pack of {rows} rows", expected=rows, found=n)
        nbytes = n * row_nbytes
        result = bytearray(nbytes) if out is None else None
        dst = borrow_writable(out if result is None else result)  # type: ignore[arg-type]
        try:
            check_apart(src, dst)
            if nbytes > len(dst):
                raise BufferTooSmallError(
                    f"{n} rows of {nbytes} bytes do not fit a buffer of {len(dst)}", expected=nbytes, found=len(dst)
                )

            def unpack_rows(at: int, count: int) -> None:
                work = scratch(WORKSPACE_NBYTES)
                to, size = dst + (at - first) * row_nbytes, count * row_nbytes
                status = lib.glyd_weights_unpack_rows(to, size, src, len(src), at, count, work, WORKSPACE_NBYTES, 0)
                check_status(status, f"pack: rows {at} … {at + count - 1}")

            if n:
                on_threads(workers, unpack_rows, row_ranges(first, n, row_nbytes, workers))
        finally:
            ffi.release(dst)
        return nbytes if result is None else result
    finally:
        ffi.release(src)

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Packed pages of keys and values in memory (native/src/kv/spec.md)."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from glyd_codec._buffers import BytesOut, borrow, borrow_writable, check_apart, scratch
from glyd_codec._errors import BufferTooSmallError, CorruptDataError, FormatError, ParameterError, TruncatedError
from glyd_codec._native import ffi, lib
from glyd_codec._params import check_threads, usable_cpus
from glyd_codec._weights import check_status, on_threads

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from _typeshed import ReadableBuffer, WriteableBuffer

KV_TOKENS = int(lib.GLYD_KV_TOKENS)
_STEP, _MOST = int(lib.GLYD_KV_CHANNELS_STEP), int(lib.GLYD_KV_CHANNELS_MAX)
_WORKSPACE_NBYTES = int(lib.glyd_kv_workspace())
_PAGES_A_STEP = 32  # that one thread takes: about a megabyte


@dataclass(frozen=True, slots=True)
class KvPageInfo:
    """What a page holds.

    Attributes
    ----------
    nbytes
        Bytes of the page.
    channels
        Of the head.
    is_packed
        Whether it is packed; the others hold their values as they are.
    n_exceptions
        Values that are stored on their own.
    """

    nbytes: int
    channels: int
    is_packed: bool
    n_exceptions: int


def kv_page_bound(channels: int) -> int:
    """Return the bytes of the largest page of a head: one that is not packed.

    Parameters
    ----------
    channels
        Of the head: a multiple of 16, at most 512.

    Raises
    ------
    ParameterError
        There are no pages for so many channels.
    """
    count = operator.index(channels)
    nbytes = int(lib.glyd_kv_page_bound(count)) if 0 <= count < 1 << 32 else 0
    if not nbytes:
        raise ParameterError(f"pages have a multiple of {_STEP} channels, {_MOST} at most; not {count}", found=count)
    return nbytes


def _ranges(n: int) -> list[tuple[int, int]]:
    return [(first, min(_PAGES_A_STEP, n - first)) for first in range(0, n, _PAGES_A_STEP)]


def pack_kv_pages(data: ReadableBuffer, channels: int, *, threads: int = 1) -> bytes:
    """Pack keys or values, 128 tokens of one head a page.

    Parameters
    ----------
    data
        bf16 [pages, 128, channels] in any C-contiguous buffer; it must not change during the call.
    channels
        Of a head: a multiple of 16, at most 512.
    threads
        Threads to work with; 0: one a CPU. The result does not depend on it.

    Returns
    -------
    bytes
        The pages, one behind the other; `read_kv_pages` finds them.

    Raises
    ------
    ParameterError
        An argument is outside its range, or data is no whole number of pages.
    TypeError, BufferError
        For data that is no C-contiguous buffer.
    """
    bound = kv_page_bound(channels)
    plain = 2 * KV_TOKENS * channels
    workers = check_threads(threads) or usable_cpus()
    src = borrow(data)
    try:
        n, rest = divmod(len(src), plain)
        if rest:
            raise ParameterError(
                f"a page of {channels} channels takes {plain} bytes: {len(src)} are {rest} too many", found=len(src)
            )
        room = scratch(max(n * bound, 1))
        sizes = [0] * n

        def pack(first: int, count: int) -> None:
            work, size = scratch(_WORKSPACE_NBYTES), ffi.new("size_t *")
            for i in range(first, first + count):
                status = lib.glyd_kv_pack(
                    room + i * bound, bound, src + i * plain, channels, channels, work, _WORKSPACE_NBYTES, 0, size
                )
                check_status(status, "keys or values")
                sizes[i] = int(size[0])

        on_threads(workers, pack, _ranges(n))
        out = BytesOut(sum(sizes))
        at = 0
        for i, nbytes in enumerate(sizes):
            ffi.memmove(out.memory + at, room + i * bound, nbytes)
            at += nbytes
        return out.take()
    finally:
        ffi.release(src)


def _read_info(src: Any, at: int) -> Any:
    """Return the checked ``glyd_kv_info *`` of the page at a place."""
    info = ffi.new("glyd_kv_info *")
    left = len(src) - at
    if at < 0 or left < 0:
        raise ParameterError(f"no page starts at byte {at} of {len(src)}", found=at)
    status = lib.glyd_kv_read_info(src + at, left, info)
    if status == lib.GLYD_E_TRUNCATED:
        expected = int(info.size) or int(lib.GLYD_KV_HEADER)
        raise TruncatedError(
            f"page at byte {at} of {expected} bytes, cut to {left}", expected=expected, found=left, offset=at
        )
    if status == lib.GLYD_E_MAGIC:
        raise FormatError(
            f"no page of keys or values at byte {at}: {bytes(ffi.buffer(src + at, 2)).hex()}, not "
            f"{int(lib.GLYD_KV_MAGIC).to_bytes(2, 'little').hex()}",
            offset=at,
        )
    check_status(status, f"page at byte {at}")
    return info


def read_kv_pages(pages: ReadableBuffer) -> list[KvPageInfo]:
    """Read and check the headers of pages that lie one behind the other.

    Parameters
    ----------
    pages
        What `pack_kv_pages` returned, or several of them together, in any C-contiguous buffer.

    Returns
    -------
    list of KvPageInfo
        Size, channels and form of each.

    Raises
    ------
    FormatError
        There is something else, a page is cut, or its sizes contradict each other.
    """
    src = borrow(pages)
    try:
        found = [info for _, info in _walk(src)]
    finally:
        ffi.release(src)
    return [
        KvPageInfo(int(i.size), int(i.channels), int(i.form) == int(lib.GLYD_KV_PACKED), int(i.n_exceptions))
        for i in found
    ]


def _walk(src: Any) -> list[tuple[int, Any]]:
    found: list[tuple[int, Any]] = []
    at = 0
    while at < len(src):
        info = _read_info(src, at)
        found.append((at, info))
        at += int(info.size)
    return found


def _targets(places: Sequence[int], n: int, plain: int, to: Any) -> list[int]:
    """Return where pages are written, checked: inside the buffer, and apart from each other."""
    targets = [operator.index(at) for at in places]
    if len(targets) != n:
        raise ParameterError(f"out_places has {len(targets)} places for {n} pages", expected=n, found=len(targets))
    before = -plain
    for at in sorted(targets):
        if at < 0 or at > len(to) - plain:
            raise BufferTooSmallError(
                f"a page of {plain} bytes at byte {at} does not fit into out, which has {len(to)}", found=len(to)
            )
        if at < before + plain:
            raise ParameterError(f"pages at bytes {before} and {at} of out overlap: each takes {plain}", found=at)
        before = at
    return targets


def unpack_kv_pages(
    pages: ReadableBuffer,
    channels: int,
    *,
    places: Sequence[int] | None = None,
    out: WriteableBuffer | None = None,
    out_places: Sequence[int] | None = None,
    threads: int = 1,
) -> bytearray | int:
    """Return the keys or values of pages, bit for bit as they were.

    Parameters
    ----------
    pages
        Pages of one head size, one behind the other; they must not change during the call.
    channels
        Of a head.
    places
        Where the pages start that are wanted, in bytes from the start of the buffer; None: all, in order.
    out
        Writable C-contiguous buffer with room for bf16 [pages, 128, channels], apart from the pages; None: a new
        bytearray.
    out_places
        Where in ``out`` the values of each page go, in bytes from its start; no two may overlap. None: one behind
        the other.
    threads
        Threads to work with; 0: one a CPU.

    Returns
    -------
    bytearray or int
        The values; with ``out``, how many bytes were written.

    Raises
    ------
    CorruptDataError, FormatError
        A page is damaged, or of another head size.
    BufferTooSmallError
        ``out`` is too small.
    ParameterError
        An argument is outside its range.
    """
    kv_page_bound(channels)
    plain = 2 * KV_TOKENS * channels
    workers = check_threads(threads) or usable_cpus()
    src = borrow(pages)
    try:
        found = _walk(src) if places is None else [(at, _read_info(src, at)) for at in places]
        for at, info in found:
            if info.channels != channels:
                raise CorruptDataError(
                    f"page at byte {at} has {info.channels} channels, not {channels}",
                    expected=channels,
                    found=int(info.channels),
                    offset=at,
                )
        n = len(found)
        result = bytearray(n * plain if out is None else 0)
        to = borrow_writable(result if out is None else out)
        try:
            targets = range(0, n * plain, plain) if out_places is None else _targets(out_places, n, plain, to)
            if out_places is None and len(to) < n * plain:
                raise BufferTooSmallError(
                    f"{n} pages of {channels} channels take {n * plain} bytes, out has {len(to)}",
                    expected=n * plain,
                    found=len(to),
                )
            check_apart(src, to)

            def unpack(first: int, count: int) -> None:
                work = scratch(_WORKSPACE_NBYTES)
                for i, (at, info) in enumerate(found[first : first + count], first):
                    status = lib.glyd_kv_unpack(
                        to + targets[i], plain, channels, src + at, int(info.size), work, _WORKSPACE_NBYTES, 0
                    )
                    check_status(status, f"page at byte {at}")

            on_threads(workers, unpack, _ranges(n))
        finally:
            ffi.release(to)
    finally:
        ffi.release(src)
    return result if out is None else n * plain

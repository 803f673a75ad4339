# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Pages of keys and values on CUDA devices."""

from __future__ import annotations

import ctypes
import functools
import os

import torch

import glyd_codec
from glyd_gpu import _kv_ops as ops
from glyd_gpu._backend_cuda import check_cuda
from glyd_gpu._errors import CudaError, ShapeError, UnsupportedDeviceError
from glyd_gpu._library import call, load
from glyd_gpu._ops import library

VARIABLE = "GLYD_KV_CUDA"  # set to 0: no packed caches on GPUs
CHANNELS = (64, 96, 128, 256)  # that kernels are compiled for
ROOMY = 227 << 10  # bytes of shared memory a block with which more warps run
WARPS = {True: {True: 16, False: 8}, False: {True: 4, False: 2}}  # of a block: roomy, up to 128 channels
SLAB = 32  # tokens that a warp takes at once
MOST_SPLITS = 256
# microseconds of an H200: what a block takes to start, its warps a slab each, what a last slab takes at least, and putting
# ranges together
START_US, PASS_US, LAST_US, MERGE_US = 9.0, 6.3, 5.0, 5.0


class _on:  # noqa: N801  used like a function
    """Make the device current, as launchers need, and give the stream."""

    def __init__(self, device: torch.device) -> None:
        check_cuda(torch.cuda.current_device() if device.index is None else device.index)
        self.guard = torch.cuda.device(device)
        self.device = device

    def __enter__(self) -> int:
        self.guard.__enter__()
        return int(torch.cuda.current_stream(self.device).cuda_stream)

    def __exit__(self, *args: object) -> None:
        self.guard.__exit__(*args)


def check_device(device: torch.device) -> None:
    """Refuse devices that packed caches do not run on.

    Raises
    ------
    UnsupportedDeviceError
        With what to do.
    """
    if device.type == "cpu" or (device.type == "cuda" and os.environ.get(VARIABLE, "1") != "0"):
        return
    if device.type == "cuda":
        raise UnsupportedDeviceError(f"packed caches are turned off on GPUs ({VARIABLE}=0): the keys are on {device}")
    raise UnsupportedDeviceError(f"packed caches run on the CPU and on CUDA devices, and the keys are on {device}")


def check_channels(channels: int) -> None:
    """Refuse head sizes without kernels.

    Raises
    ------
    ShapeError
        With those that there are.
    """
    if channels not in CHANNELS:
        raise ShapeError(f"kernels for pages are there for heads of {CHANNELS} channels, not {channels}")


class Packing:
    """Pages that the device makes, and whose sizes the host waits for in `finish`.

    Parameters
    ----------
    x
        Keys or values [pages, 128, channels], at least one page.
    """

    def __init__(self, x: torch.Tensor) -> None:
        ops.check_values(x)
        n, _, self._channels = x.shape
        check_channels(self._channels)
        source = x.detach().contiguous()
        if source.data_ptr() % 16:
            source = source.clone()
        with _on(x.device) as stream:
            self._places = torch.zeros(n + 1, dtype=torch.int64, device=x.device)
            nbytes = n * glyd_codec.kv_page_bound(self._channels)
            self._largest = torch.empty(nbytes, dtype=torch.uint8, device=x.device)
            sizes, channels = self._places[1:].data_ptr(), self._channels
            call("glyd_gpu_kv_pack", self._largest.data_ptr(), sizes, source.data_ptr(), n, channels, stream)
            self._places.cumsum_(0)
            self._known = torch.empty(n + 1, dtype=torch.int64, pin_memory=True)
            self._known.copy_(self._places, non_blocking=True)
            self._stream = torch.cuda.current_stream(x.device)
            self._is_known = torch.cuda.Event()
            self._is_known.record(self._stream)

    def finish(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the pages, one behind the other, and where each starts, on the host.

        They are put there on the stream that they were made on; the current one waits for it.
        """
        self._is_known.synchronize()
        known, n, device = self._known, self._known.numel() - 1, self._places.device
        with torch.cuda.stream(self._stream), _on(device) as stream:
            pages = torch.empty(int(known[-1]), dtype=torch.uint8, device=device)
            places, largest = self._places.data_ptr(), self._largest.data_ptr()
            call("glyd_gpu_kv_place", pages.data_ptr(), places, largest, n, self._channels, stream)
        current = torch.cuda.current_stream(device)
        if current != self._stream:
            current.wait_stream(self._stream)
            pages.record_stream(current)
        return pages, known.clone()


def kv_pack(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the pages of keys or values, and where each starts; waits for their sizes."""
    ops.check_values(x)
    check_channels(x.shape[2])
    if not x.shape[0]:
        return torch.empty(0, dtype=torch.uint8, device=x.device), torch.zeros(1, dtype=torch.int64)
    return Packing(x).finish()


def kv_unpack(pages: torch.Tensor, places: torch.Tensor, channels: int) -> torch.Tensor:
    """Return the values [places, 128, channels] of the pages that start at places."""
    ops.check_pages(pages, places, channels)
    check_channels(channels)
    out = torch.empty((places.numel(), ops.TOKENS, channels), dtype=torch.bfloat16, device=pages.device)
    if out.numel():
        with _on(pages.device) as stream:
            addresses = places.to(pages.device, non_blocking=True) + pages.data_ptr()
            call("glyd_gpu_kv_unpack", out.data_ptr(), addresses.data_ptr(), places.numel(), channels, stream)
    return out


def kv_unpack_to(pages: torch.Tensor, places: torch.Tensor, out: torch.Tensor, rows: torch.Tensor) -> None:
    """Write the values of the page that starts at each place to 128 rows of out, from a row on."""
    ops.check_target(out, places, rows)
    decoded = kv_unpack(pages, places, out.shape[1])
    within = torch.arange(ops.TOKENS, device=out.device)
    each = rows.to(out.device, non_blocking=True).view(-1, 1) + within
    out.index_copy_(0, each.view(-1), decoded.view(-1, out.shape[1]))


def division(device: torch.device, pairs: int, slabs: int, channels: int) -> int:
    """Return into how many ranges the slabs of a sequence are divided.

    Parameters
    ----------
    device
        Of CUDA.
    pairs
        Sequences times key heads, times groups of eight query heads.
    slabs
        Of a sequence, 32 tokens each, the newest tokens included.
    channels
        Of a head.
    """
    properties = torch.cuda.get_device_properties(device)
    roomy = properties.shared_memory_per_block_optin >= ROOMY
    return _division(int(properties.multi_processor_count), WARPS[roomy][channels <= 128], pairs, slabs)


@functools.lru_cache(4096)
def _division(blocks: int, warps: int, pairs: int, slabs: int) -> int:
    """Return the cheapest division; costs are microseconds of an H200."""
    best = (float("inf"), 1)
    for splits in range(1, min(slabs, MOST_SPLITS) + 1):
        each, merge = -(-slabs // splits), MERGE_US + 0.03 * splits if splits > 1 else 0
        passes, rest = divmod(each, warps)
        last = LAST_US + (PASS_US - LAST_US) * rest / warps if rest else 0
        cost = -(-pairs * splits // blocks) * (START_US + passes * PASS_US + last) + merge
        best = min(best, (cost, splits))
    return best[1]


def attention(
    q: torch.Tensor,
    pages: tuple[torch.Tensor, torch.Tensor],
    tails: tuple[torch.Tensor, torch.Tensor],
    starts: torch.Tensor | None,
    scale: float,
    splits: int | None = None,
) -> torch.Tensor:
    """Attend with one token a sequence, straight on pages.

    Parameters
    ----------
    q
        bf16 [sequences, heads, channels].
    pages
        Addresses of pages of keys and of values, int64 [sequences, key heads, pages] on the device.
    tails
        The newest keys and values, bf16 [sequences, key heads, fewer than 128, channels].
    starts
        First token that each sequence sees, int32; None: 0.
    scale
        Of scores.
    splits
        Ranges that the tokens of a sequence are divided into; None: what suits the device.
    """
    sequences, heads, channels = q.shape
    check_channels(channels)
    if any(t.shape[3] != channels for t in tails):
        found = ", ".join(str(t.shape[3]) for t in tails)
        raise ShapeError(f"attention on pages: queries have {channels} channels, keys and values {found}")
    key_heads, n_pages = pages[0].shape[1:]
    tail = [t.contiguous() for t in tails]
    tail = [t.clone() if t.data_ptr() % 16 else t for t in tail]
    groups = -(-(heads // key_heads) // 8)
    slabs = -(-(n_pages * ops.TOKENS + tail[0].shape[2]) // SLAB)
    splits = splits or division(q.device, sequences * key_heads * groups, slabs, channels)
    shape = (ctypes.c_int32 * 7)(sequences, heads, key_heads, n_pages, tail[0].shape[2], splits, channels)
    nbytes = load().glyd_gpu_kv_attention_workspace(shape)
    if nbytes < 0:
        raise CudaError(f"glyd_gpu_kv_attention_workspace: status {-nbytes}", found=nbytes)
    source = q.contiguous()
    out = torch.empty_like(source)
    with _on(q.device) as stream:
        workspace = torch.empty(nbytes, dtype=torch.uint8, device=q.device)
        call(
            "glyd_gpu_kv_attention",
            out.data_ptr(),
            source.data_ptr(),
            pages[0].data_ptr(),
            pages[1].data_ptr(),
            tail[0].data_ptr(),
            tail[1].data_ptr(),
            None if starts is None else starts.data_ptr(),
            shape,
            scale,
            workspace.data_ptr(),
            nbytes,
            stream,
        )
    return out


library.impl("kv_pack", kv_pack, "CUDA")
library.impl("kv_unpack", kv_unpack, "CUDA")
library.impl("kv_unpack_to", kv_unpack_to, "CUDA")

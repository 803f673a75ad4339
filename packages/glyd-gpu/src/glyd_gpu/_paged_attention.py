# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Attention of one new token a sequence over the paged cache of continuous batching: plain keys and values.

On CUDA devices a kernel reads lengths and tables where they are, so that a CUDA graph of a step serves whatever they
say; the CPU's form is torch's own attention, a sequence at a time. Layers with a window keep their tokens in a ring.
"""

from __future__ import annotations

import ctypes
import functools

import torch
import torch.nn.functional as F  # noqa: N812

from glyd_gpu._backend_cuda import check_cuda
from glyd_gpu._errors import CudaError, ShapeError
from glyd_gpu._library import call, load
from glyd_gpu._ops import library

CHANNELS_MOST = 256
_HEADS = 8  # query heads of a block
_TOKENS_LEAST = 64  # that a range of tokens should have
_BLOCKS_A_SM = 4

library.define(
    "paged_attention(Tensor q, Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor new_k, Tensor new_v, Tensor tables, "
    "Tensor lengths, int page, int stride, float scale, int window=0) -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag,),
)


def check(
    q: torch.Tensor,
    caches: tuple[torch.Tensor, torch.Tensor],
    new: tuple[torch.Tensor, torch.Tensor],
    tables: torch.Tensor,
    lengths: torch.Tensor,
    page: int,
    window: int,
) -> None:
    """Check types and shapes.

    Raises
    ------
    ShapeError
        With what was expected and found.
    """
    k, v = caches
    if q.dim() != 3 or q.dtype != torch.bfloat16:
        raise ShapeError(f"queries are bf16 [sequences, heads, channels], not {tuple(q.shape)} of {q.dtype}")
    n, heads, channels = q.shape
    if channels % 8 or not 8 <= channels <= CHANNELS_MOST:
        raise ShapeError(f"heads have a multiple of 8 channels up to {CHANNELS_MOST}, not {channels}")
    for name, cache in (("keys", k), ("values", v)):
        right = cache.dim() == 3 and cache.dtype == torch.bfloat16 and cache.shape[2] == channels
        if not right or cache.shape != k.shape or not cache.is_contiguous() or heads % cache.shape[1]:
            raise ShapeError(
                f"the cache of {name} is contiguous bf16 [slots, key heads, {channels}] with key heads that divide "
                f"{heads}, not {tuple(cache.shape)} of {cache.dtype}"
            )
    for name, x in zip(("keys", "values"), new, strict=True):
        if x.shape != (n, k.shape[1], channels) or x.dtype != torch.bfloat16 or x.stride(2) != 1:
            raise ShapeError(f"new {name} are bf16 [{n}, {k.shape[1]}, {channels}], not {tuple(x.shape)} of {x.dtype}")
    if tables.dim() != 2 or tables.shape[0] != n or tables.dtype != torch.int32 or not tables.is_contiguous():
        raise ShapeError(f"tables are int32 [{n}, pages], not {tuple(tables.shape)} of {tables.dtype}")
    if lengths.shape != (n,) or lengths.dtype != torch.int32:
        raise ShapeError(f"lengths are int32 [{n}], not {tuple(lengths.shape)} of {lengths.dtype}")
    if page < 1 or page & (page - 1):
        raise ShapeError(f"pages have a power of two of tokens, not {page}")
    if not 0 <= window <= tables.shape[1] * page:
        raise ShapeError(f"a window of {window} tokens is in tables of as many, these have {tables.shape[1] * page}")


def page_slots(table: torch.Tensor, tokens: torch.Tensor, page: int, stride: int) -> torch.Tensor:
    """Return where tokens of a sequence are in the cache that `torch.ops.glyd.paged_attention` reads.

    Parameters
    ----------
    table
        int [pages], the sequence's pages.
    tokens
        int [n] on the same device, their numbers from 0; of a ring, modulo its window.
    page, stride
        Tokens of a page, and slots from one page to the next.

    Returns
    -------
    torch.Tensor
        int64 [n] slots.
    """
    return table[tokens // page].long() * stride + tokens % page


def _cpu(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    new_k: torch.Tensor,
    new_v: torch.Tensor,
    tables: torch.Tensor,
    lengths: torch.Tensor,
    page: int,
    stride: int,
    scale: float,
    window: int = 0,
) -> torch.Tensor:
    check(q, (k_cache, v_cache), (new_k, new_v), tables, lengths, page, window)
    out = torch.zeros(q.shape, dtype=q.dtype)
    heads = k_cache.shape[1]
    for row, n in enumerate(lengths.tolist()):
        if not n:
            continue
        slots = page_slots(tables[row], torch.arange(min(n, window or n)), page, stride)
        newest = slots[(n - 1) % (window or n)]
        k_cache[newest], v_cache[newest] = new_k[row], new_v[row]
        together = q[row].view(1, heads, -1, q.shape[2])  # the heads that share a key head, as tokens of one
        k, v = (cache[slots].transpose(0, 1).unsqueeze(0) for cache in (k_cache, v_cache))
        out[row] = F.scaled_dot_product_attention(together, k, v, scale=scale).view(q.shape[1:])
    return out


@functools.cache
def _n_blocks(device: torch.device) -> int:
    return _BLOCKS_A_SM * int(torch.cuda.get_device_properties(device).multi_processor_count)


def n_splits(blocks: int, tokens: int, wanted: int) -> int:
    """Return into how many ranges tokens are divided, so that all of a device has work."""
    return max(1, min(-(-tokens // _TOKENS_LEAST), -(-wanted // max(blocks, 1)), 256))


def _cuda(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    new_k: torch.Tensor,
    new_v: torch.Tensor,
    tables: torch.Tensor,
    lengths: torch.Tensor,
    page: int,
    stride: int,
    scale: float,
    window: int = 0,
) -> torch.Tensor:
    check(q, (k_cache, v_cache), (new_k, new_v), tables, lengths, page, window)
    q, new_k, new_v = (_aligned(x) for x in (q, new_k, new_v))
    n, heads, channels = q.shape
    key_heads = k_cache.shape[1]
    check_cuda(torch.cuda.current_device() if q.device.index is None else q.device.index)
    blocks = n * key_heads * -(-(heads // key_heads) // _HEADS)
    splits = n_splits(blocks, tables.shape[1] * page, _n_blocks(q.device))
    strides = (s for x in (q, new_k, new_v) for s in x.stride()[:2])
    shape = (ctypes.c_int64 * 16)(
        n, heads, key_heads, channels, k_cache.shape[0], tables.shape[1], page, stride, splits, window, *strides
    )
    nbytes = load().glyd_gpu_paged_attention_workspace(shape)
    if nbytes < 0:
        raise CudaError(f"glyd_gpu_paged_attention_workspace: status {-nbytes}", found=nbytes)
    out = torch.empty((n, heads, channels), dtype=q.dtype, device=q.device)
    with torch.cuda.device(q.device):
        workspace = torch.empty(nbytes, dtype=torch.uint8, device=q.device)
        call(
            "glyd_gpu_paged_attention",
            out.data_ptr(),
            q.data_ptr(),
            k_cache.data_ptr(),
            v_cache.data_ptr(),
            new_k.data_ptr(),
            new_v.data_ptr(),
            tables.data_ptr(),
            lengths.data_ptr(),
            shape,
            scale,
            workspace.data_ptr(),
            nbytes,
            torch.cuda.current_stream(q.device).cuda_stream,
        )
    return out


def _aligned(x: torch.Tensor) -> torch.Tensor:
    """Return a tensor whose rows and heads can be read 16 bytes at a time."""
    fits = x.data_ptr() % 16 == 0 and x.stride(2) == 1 and not any(s % 8 for s in x.stride()[:2])
    return x if fits else x.contiguous().clone()


def _fake(q: torch.Tensor, *_: object) -> torch.Tensor:
    return torch.empty(q.shape, dtype=q.dtype, device=q.device)


torch.library.register_fake("glyd::paged_attention", _fake, lib=library)
library.impl("paged_attention", _cpu, "CPU")
library.impl("paged_attention", _cuda, "CUDA")

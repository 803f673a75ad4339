# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Operators of pages of keys and values: schemas, what every backend checks, and the CPU's by the codec."""

from __future__ import annotations

import itertools

import torch

import glyd_codec
from glyd_gpu._backend_reference import bytes_of
from glyd_gpu._errors import ShapeError
from glyd_gpu._ops import library

TOKENS = glyd_codec.KV_TOKENS

library.define("kv_pack(Tensor x) -> (Tensor, Tensor)", tags=(torch.Tag.pt2_compliant_tag,))
library.define("kv_unpack(Tensor pages, Tensor places, int channels) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
library.define(
    "kv_unpack_to(Tensor pages, Tensor places, Tensor(a!) out, Tensor rows) -> ()", tags=(torch.Tag.pt2_compliant_tag,)
)


def check_values(x: torch.Tensor) -> None:
    """Check type and shape of what is packed.

    Raises
    ------
    ShapeError
        It is not bf16 [pages, 128, channels].
    ParameterError
        There are no pages for so many channels.
    """
    if x.dtype != torch.bfloat16 or x.dim() != 3 or x.shape[1] != TOKENS:
        raise ShapeError(f"pages are made of bf16 [pages, {TOKENS}, channels], not {tuple(x.shape)} of {x.dtype}")
    glyd_codec.kv_page_bound(x.shape[2])


def check_pages(pages: torch.Tensor, places: torch.Tensor, channels: int) -> None:
    """Check types and ranks of pages and of where they start.

    Raises
    ------
    ShapeError
        With what was expected and found.
    ParameterError
        There are no pages for so many channels.
    """
    if pages.dtype != torch.uint8 or pages.dim() != 1 or not pages.is_contiguous():
        raise ShapeError(
            f"pages are a contiguous one-dimensional tensor of torch.uint8, not {pages.dim()}-dimensional "
            f"of {pages.dtype}"
        )
    if places.dtype != torch.int64 or places.dim() != 1:
        raise ShapeError(f"places are one-dimensional of torch.int64, not {tuple(places.shape)} of {places.dtype}")
    glyd_codec.kv_page_bound(channels)


def check_target(out: torch.Tensor, places: torch.Tensor, rows: torch.Tensor) -> None:
    """Check where pages are unpacked to.

    Raises
    ------
    ShapeError
        It is not contiguous bf16 [rows, channels] with a row for every place.
    """
    if out.dtype != torch.bfloat16 or out.dim() != 2 or not out.is_contiguous():
        raise ShapeError(f"pages are unpacked to contiguous bf16 [rows, channels], not {tuple(out.shape)}, {out.dtype}")
    if rows.dtype != torch.int64 or rows.shape != places.shape:
        raise ShapeError(f"{places.numel()} places need as many rows of torch.int64, not {tuple(rows.shape)}")


def kv_pack(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the pages of keys or values [pages, 128, channels], and where each starts (int64, and the end)."""
    check_values(x)
    source = x.detach().contiguous()
    threads = torch.get_num_threads()
    data = glyd_codec.pack_kv_pages(bytes_of(source), x.shape[2], threads=threads) if x.numel() else b""
    sizes = [page.nbytes for page in glyd_codec.read_kv_pages(data)]
    pages = torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
    return pages, torch.tensor([0, *itertools.accumulate(sizes)], dtype=torch.int64)


def kv_unpack(pages: torch.Tensor, places: torch.Tensor, channels: int) -> torch.Tensor:
    """Return the values [places, 128, channels] of the pages that start at places."""
    check_pages(pages, places, channels)
    out = torch.empty((places.numel(), TOKENS, channels), dtype=torch.bfloat16)
    if out.numel():
        threads = torch.get_num_threads()
        wanted = places.tolist()
        glyd_codec.unpack_kv_pages(bytes_of(pages), channels, places=wanted, out=bytes_of(out), threads=threads)
    return out


def kv_unpack_to(pages: torch.Tensor, places: torch.Tensor, out: torch.Tensor, rows: torch.Tensor) -> None:
    """Write the values of the page that starts at each place to 128 rows of out, from a row on."""
    check_pages(pages, places, out.shape[-1])
    check_target(out, places, rows)
    channels = out.shape[1]
    if places.numel():
        wanted, targets = places.tolist(), (2 * channels * rows).tolist()
        memory = bytes_of(out)
        threads = torch.get_num_threads()
        glyd_codec.unpack_kv_pages(
            bytes_of(pages), channels, places=wanted, out=memory, out_places=targets, threads=threads
        )


def _fake_kv_unpack_to(pages: torch.Tensor, places: torch.Tensor, out: torch.Tensor, rows: torch.Tensor) -> None:
    check_pages(pages, places, out.shape[-1])
    check_target(out, places, rows)


def _fake_kv_pack(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    check_values(x)
    nbytes = torch.library.get_ctx().new_dynamic_size()
    return x.new_empty((nbytes,), dtype=torch.uint8), torch.empty((x.shape[0] + 1,), dtype=torch.int64)


def _fake_kv_unpack(pages: torch.Tensor, places: torch.Tensor, channels: int) -> torch.Tensor:
    check_pages(pages, places, channels)
    return pages.new_empty((places.shape[0], TOKENS, channels), dtype=torch.bfloat16)


torch.library.register_fake("glyd::kv_pack", _fake_kv_pack, lib=library)
torch.library.register_fake("glyd::kv_unpack", _fake_kv_unpack, lib=library)
torch.library.register_fake("glyd::kv_unpack_to", _fake_kv_unpack_to, lib=library)
library.impl("kv_unpack_to", kv_unpack_to, "CPU")
library.impl("kv_pack", kv_pack, "CPU")
library.impl("kv_unpack", kv_unpack, "CPU")

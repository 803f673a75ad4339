# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Keys or values of one layer: full pages packed, the newest tokens plain.

Pages lie in *chunks*, one for each time that pages were made. A table says for
every sequence, head and 128 tokens in which chunk the page is and where. So
sequences share pages (beams, prefixes), and reordering moves numbers only.

On a GPU the host learns late how large new pages are: waiting for that at once
would leave the GPU without work. So they are put in their places when the table
is first asked for, or by `PagedTensor.settle`; until then they are only counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from glyd_gpu import _kv_cuda
from glyd_gpu._kv_ops import TOKENS

_SHIFT = 40  # a table entry is chunk << 40 | place in it
_MASK = (1 << _SHIFT) - 1


@dataclass
class _New:
    """Pages that are made, and not in the table yet."""

    shape: tuple[int, int, int]  # sequences, heads, pages of each
    finish: Callable[[], tuple[torch.Tensor, torch.Tensor]]  # gives the pages and where each starts


@dataclass
class PagedTensor:
    """Keys or values [sequences, heads, tokens, channels] of a layer.

    Attributes
    ----------
    tail
        The newest tokens, plain: [sequences, heads, fewer than 128, channels].
    table
        int64 [sequences, heads, pages], on the CPU.
    chunks
        Pages by the number of their chunk.
    """

    tail: torch.Tensor
    _table: torch.Tensor = field(default_factory=lambda: torch.empty((0, 0, 0), dtype=torch.int64))
    _chunks: dict[int, torch.Tensor] = field(default_factory=dict)
    next_chunk: int = 0
    _addresses: torch.Tensor | None = None
    _new: _New | None = None

    @classmethod
    def empty(cls, like: torch.Tensor) -> PagedTensor:
        """Return one without tokens, for keys or values of this shape."""
        batch, heads, _, channels = like.shape
        tail = like.new_empty((batch, heads, 0, channels))
        return cls(tail, torch.empty((batch, heads, 0), dtype=torch.int64))

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy of it holds."""
        self.settle()
        return self.__dict__

    @property
    def table(self) -> torch.Tensor:
        """Where the pages are; waits until that is known."""
        self.settle()
        return self._table

    @table.setter
    def table(self, table: torch.Tensor) -> None:
        self._table = table

    @property
    def chunks(self) -> dict[int, torch.Tensor]:
        """Pages by the number of their chunk; waits until they are in their places."""
        self.settle()
        return self._chunks

    @chunks.setter
    def chunks(self, chunks: dict[int, torch.Tensor]) -> None:
        self._chunks = chunks

    @property
    def is_settled(self) -> bool:
        """Whether all pages are in their places."""
        return self._new is None

    def settle(self) -> None:
        """Put new pages in their places; waits until their sizes are known."""
        if self._new is None:
            return
        shape, (pages, places) = self._new.shape, self._new.finish()
        self._new = None
        entries = places[:-1].cpu() | self.next_chunk << _SHIFT
        self._table = torch.cat([self._table, entries.view(shape)], dim=2)
        self._chunks[self.next_chunk] = pages
        self.next_chunk += 1
        self._merge()

    @property
    def n_pages(self) -> int:
        """Pages of each sequence and head."""
        return int(self._table.shape[2]) + (self._new.shape[2] if self._new else 0)

    @property
    def n_tokens(self) -> int:
        """Tokens of each sequence."""
        return self.n_pages * TOKENS + int(self.tail.shape[2])

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        held = sum(chunk.numel() for chunk in self.chunks.values())
        return int(held + self.tail.numel() * self.tail.element_size())

    def addresses(self) -> torch.Tensor:
        """Return where in memory each page of the table is, int64 on its device."""
        self.settle()
        if self._addresses is None or self._addresses.shape != self.table.shape:
            starts = {number: chunk.data_ptr() for number, chunk in self.chunks.items()}
            number = self.table >> _SHIFT
            found = self.table & _MASK
            for chunk in torch.unique(number).tolist():
                found += torch.where(number == chunk, starts[chunk], 0)
            self._addresses = found.to(self.tail.device)
        return self._addresses

    def append(self, new: torch.Tensor) -> None:
        """Add tokens; whole pages of the newest ones are packed."""
        tail = torch.cat([self.tail, new], dim=2) if self.tail.shape[2] else new
        n = tail.shape[2] // TOKENS
        if n:
            batch, heads, _, channels = tail.shape
            whole = tail[:, :, : n * TOKENS].reshape(batch * heads * n, TOKENS, channels)
            self.settle()
            self._new = _New((batch, heads, n), _begin(whole))
            tail = tail[:, :, n * TOKENS :]
        self.tail = (
            tail.clone() if n or tail is new else tail
        )  # a view would keep the whole prompt, or what the caller has

    def _merge(self) -> None:
        """Put the newest chunks together while they are of about one size, so that few are left, each moved seldom."""
        while len(self.chunks) > 1:
            before, last = sorted(self.chunks)[-2:]
            first = self.chunks[before]
            if first.numel() > 2 * self.chunks[last].numel():
                return
            self._addresses = None
            self.chunks[before] = torch.cat([first, self.chunks.pop(last)])
            moved = self.table >> _SHIFT == last
            self.table = torch.where(moved, (self.table & _MASK) + first.numel() | before << _SHIFT, self.table)

    def pages(self, entries: torch.Tensor) -> torch.Tensor:
        """Return the values [entries, 128, channels] of table entries."""
        channels = self.tail.shape[3]
        number, places = entries >> _SHIFT, entries & _MASK
        held = torch.unique(number).tolist()
        if len(held) == 1:
            one: torch.Tensor = torch.ops.glyd.kv_unpack(self.chunks[held[0]], places, channels)
            return one
        out = self.tail.new_empty((entries.numel(), TOKENS, channels))
        for chunk in held:
            mine = number == chunk
            out[mine.to(out.device)] = torch.ops.glyd.kv_unpack(self.chunks[chunk], places[mine], channels)
        return out

    def full(self, n: int | None = None, new: torch.Tensor | None = None) -> torch.Tensor:
        """Return the last n tokens, or all, and new ones behind them, as a tensor of its own."""
        n = self.n_tokens if n is None else min(n, self.n_tokens)
        batch, heads, kept, channels = self.tail.shape
        out = self.tail.new_empty((batch, heads, n + (0 if new is None else new.shape[2]), channels))
        if new is not None:
            out[:, :, n:] = new
        n_tail = min(n, kept)
        out[:, :, n - n_tail : n] = self.tail[:, :, kept - n_tail :]
        whole, rest = divmod(n - n_tail, TOKENS)
        if rest:  # of a page that is shown in part
            part = self.pages(self.table[:, :, self.n_pages - whole - 1].reshape(-1))
            out[:, :, :rest] = part.view(batch, heads, TOKENS, channels)[:, :, TOKENS - rest :]
        if whole:
            entries = self.table[:, :, self.n_pages - whole :]
            starts = torch.arange(batch * heads).view(batch, heads, 1) * out.shape[2]
            self._decode(entries, out.view(-1, channels), starts + rest + TOKENS * torch.arange(whole))
        return out

    def _decode(self, entries: torch.Tensor, out: torch.Tensor, rows: torch.Tensor) -> None:
        """Write the values of table entries to 128 rows of out each."""
        number, places = entries >> _SHIFT, entries & _MASK
        held = torch.unique(number).tolist()
        for chunk in held:
            mine = slice(None) if len(held) == 1 else number == chunk
            torch.ops.glyd.kv_unpack_to(self.chunks[chunk], places[mine].reshape(-1), out, rows[mine].reshape(-1))

    def crop(self, n: int) -> None:
        """Remove the last n tokens, or all when there are not so many."""
        keep = max(self.n_tokens - n, 0)
        pages, rest = divmod(keep, TOKENS)
        if pages >= self.n_pages:
            self.tail = self.tail[:, :, : keep - self.n_pages * TOKENS]
            return
        batch, heads, _, channels = self.tail.shape
        last = self.table[:, :, pages].reshape(-1)
        self.tail = self.pages(last).view(batch, heads, TOKENS, channels)[:, :, :rest].clone()
        self.table = self.table[:, :, :pages]
        self._forget()

    def drop_pages(self, n: int) -> None:
        """Remove the oldest n pages."""
        if n:
            self.table = self.table[:, :, n:]
            self._forget()

    def select(self, sequences: torch.Tensor) -> None:
        """Keep these sequences, in this order; one may be there several times, and then shares its pages."""
        self.settle()
        self._addresses = None
        self.tail = self.tail.index_select(0, sequences.to(self.tail.device))
        self.table = self.table.index_select(0, sequences.to("cpu"))
        self._forget()

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> None:
        """Move everything to a device, packed as it is."""
        self._addresses = None
        self.tail = self.tail.to(device, non_blocking=non_blocking)
        self.chunks = {number: chunk.to(device, non_blocking=non_blocking) for number, chunk in self.chunks.items()}

    def gather(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the pages that the table names, each once, and the table [sequences, heads, pages] of their numbers."""
        entries, numbers = torch.unique(self.table, return_inverse=True)
        pieces = []
        for entry in entries.tolist():
            chunk, place = self.chunks[entry >> _SHIFT], entry & _MASK
            pieces.append(chunk[place : place + page_nbytes(chunk, place)])
        pages = torch.cat(pieces) if pieces else torch.empty(0, dtype=torch.uint8, device=self.tail.device)
        return pages, numbers

    @classmethod
    def gathered(
        cls, tail: torch.Tensor, pages: torch.Tensor, places: torch.Tensor, numbers: torch.Tensor
    ) -> PagedTensor:
        """Return what `gather` took apart; places: where each page starts."""
        held = {0: pages} if pages.numel() else {}
        return cls(tail, places[numbers], held, 1)

    def _forget(self) -> None:
        """Let go of chunks that no entry names, and copy what is left of those that are mostly unused."""
        self._addresses = None
        used = torch.unique(self.table)
        numbers = torch.unique(used >> _SHIFT).tolist()
        self.chunks = {number: self.chunks[number] for number in numbers}
        for number in numbers:
            chunk = self.chunks[number]
            places = (used[used >> _SHIFT == number] & _MASK).tolist()
            sizes = [page_nbytes(chunk, place) for place in places]
            if 2 * sum(sizes) > chunk.numel():
                continue
            moved = torch.cat([chunk[p : p + n] for p, n in zip(places, sizes, strict=True)])
            at = 0
            table = self.table.clone()
            for place, size in zip(places, sizes, strict=True):
                table[self.table == (number << _SHIFT | place)] = self.next_chunk << _SHIFT | at
                at += size
            self.table = table
            del self.chunks[number]
            self.chunks[self.next_chunk] = moved
            self.next_chunk += 1


def _begin(whole: torch.Tensor) -> Callable[[], tuple[torch.Tensor, torch.Tensor]]:
    """Pack pages; on a GPU the host goes on, and waits in what is returned."""
    if whole.device.type == "cuda":
        return _kv_cuda.Packing(whole).finish
    made: tuple[torch.Tensor, torch.Tensor] = torch.ops.glyd.kv_pack(whole)
    return lambda: made


def page_nbytes(chunk: torch.Tensor, place: int) -> int:
    """Return the bytes of the page at a place: the u32 at byte 8 of its header."""
    return int.from_bytes(chunk[place + 8 : place + 12].cpu().numpy().tobytes(), "little")


@dataclass(frozen=True)
class KvReport:
    """What a cache holds.

    Attributes
    ----------
    n_tokens
        Tokens of each sequence.
    nbytes
        Bytes held, newest tokens included.
    plain_nbytes
        Bytes that a plain cache of the same tokens takes.
    plain_layers
        Layers that are not packed, by number, with the reason.
    """

    n_tokens: int
    nbytes: int
    plain_nbytes: int
    plain_layers: dict[int, str]

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Keys and values of many requests in blocks of 128 tokens: full blocks packed, those being filled plain.

A scheduler gives every token a *slot*: its block's number times a stride, plus
its place in the block. What it reads and writes is the same for all layers of a
step, so it is worked out once, when the first layer comes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from glyd_gpu._errors import ShapeError
from glyd_gpu._kv_ops import TOKENS
from glyd_gpu._kv_store import KvReport

_LEAST_ROOM = 1 << 16  # bytes that a store begins with


class _Store:
    """Packed pages of one layer in one buffer; a block's pages lie together."""

    def __init__(self, device: torch.device) -> None:
        self.data = torch.empty(0, dtype=torch.uint8, device=device)
        self._places: dict[int, list[int]] = {}  # of a block: where its pages start, and their end
        self._used = 0
        self.nbytes = 0

    def add(self, block: int, pages: torch.Tensor, places: list[int]) -> None:
        """Keep the pages of a block."""
        n = places[-1] - places[0]
        if self._used + n > self.data.numel():
            self._make_room(n)
        self.data[self._used : self._used + n] = pages[places[0] : places[-1]]
        self._places[block] = [self._used + place - places[0] for place in places]
        self._used += n
        self.nbytes += n

    def _make_room(self, n: int) -> None:
        """Move what is kept together, into a larger buffer where that is not enough."""
        capacity = self.data.numel()
        if self.nbytes + n > capacity * 7 // 8:
            capacity = max(_LEAST_ROOM, (self.nbytes + n) * 9 // 8)
        moved = torch.empty(capacity, dtype=torch.uint8, device=self.data.device)
        at = 0
        for block, places in self._places.items():
            n_kept = places[-1] - places[0]
            moved[at : at + n_kept] = self.data[places[0] : places[-1]]
            self._places[block] = [at + place - places[0] for place in places]
            at += n_kept
        self.data, self._used = moved, at

    def places(self, block: int) -> list[int]:
        """Return where the pages of a block start."""
        return self._places[block][:-1]

    def drop(self, block: int) -> None:
        """Let the pages of a block go."""
        places = self._places.pop(block)
        self.nbytes -= places[-1] - places[0]


@dataclass
class _Run:
    """Tokens of a block that are read one after the other; row: where the block lies plain, None: it is packed."""

    block: int
    row: int | None
    first: int
    n: int
    to: int


@dataclass
class _Plan:
    """What a step does in every layer."""

    n_written: int
    n_read: int
    sources: torch.Tensor
    rows: torch.Tensor
    offsets: torch.Tensor
    unpacked: list[tuple[int, int]]  # (block, row) of packed blocks that are written into
    full: list[tuple[int, int]]  # (block, row) of blocks that this step fills
    runs: list[_Run] = field(default_factory=list)
    n_shown: int = 0  # tokens that are read, without padding


class KvBlocks:
    """Keys and values of all layers, and of all requests of a scheduler.

    Parameters
    ----------
    n_layers
        Layers; `update` wants them in order.
    heads, channels
        Of keys and values.
    stride
        Slots from a block to the next, at least 128.
    padding
        Slots that stand for nothing: read as zeros, and not written.
    device
        Where everything is.
    """

    def __init__(
        self, n_layers: int, heads: int, channels: int, *, stride: int, padding: Iterable[int], device: torch.device
    ) -> None:
        self._heads, self._channels, self._stride = heads, channels, stride
        self._padding = set(padding)
        self._stores = [_Store(device) for _ in range(n_layers)]
        shape = (0, 2, heads, TOKENS, channels)
        self._open = [torch.empty(shape, dtype=torch.bfloat16, device=device) for _ in range(n_layers)]
        self._rows: dict[int, int] = {}  # of blocks that are not packed: where in `_open` they lie
        self._n_filled: dict[int, int] = {}
        self._free_rows: list[int] = []
        self._n_rows = 0
        self._packed: set[int] = set()
        self._plan: _Plan | None = None
        self.held = KvReport(0, 0, 0, {})  # made by the thread that works; any may read it

    def forget(self, blocks: Iterable[int]) -> None:
        """Let blocks go that the scheduler has taken back."""
        for block in blocks:
            row = self._rows.pop(block, None)
            if row is not None:
                self._free_rows.append(row)
                del self._n_filled[block]
            if block in self._packed:
                self._packed.remove(block)
                for store in self._stores:
                    store.drop(block)
        self.held = self._report()

    def _report(self) -> KvReport:
        """Return what is held: tokens of all requests, those that are kept for the next ones included."""
        n_tokens = len(self._packed) * TOKENS + sum(self._n_filled.values())
        a_token = 4 * len(self._stores) * self._heads * self._channels
        nbytes = sum(store.nbytes for store in self._stores)
        return KvReport(n_tokens, nbytes + len(self._rows) * TOKENS * a_token, n_tokens * a_token, {})

    @property
    def allocated_nbytes(self) -> int:
        """Bytes of the buffers, with what is free in them."""
        held = [store.data for store in self._stores] + self._open
        return sum(tensor.numel() * tensor.element_size() for tensor in held)

    def update(
        self, layer: int, keys: torch.Tensor, values: torch.Tensor, read: torch.Tensor, write: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Keep new tokens of a layer and return those that are read.

        Parameters
        ----------
        layer
            Its number; 0 begins a step.
        keys, values
            New, bf16 [tokens, heads, channels].
        read, write
            Slots of the tokens that are read, and of the new ones, int64. Nothing read: the new ones are returned.

        Raises
        ------
        ShapeError
            Keys or values are not what was announced.
        """
        shape = (write.numel(), self._heads, self._channels)
        for states in (keys, values):
            if states.dtype != torch.bfloat16 or tuple(states.shape) != shape:
                raise ShapeError(f"packed blocks take bf16 {shape}, found {tuple(states.shape)} of {states.dtype}")
        if layer == 0:
            self._plan = self._make_plan(read, write)
        plan = self._plan
        if plan is None or (plan.n_read, plan.n_written) != (read.numel(), write.numel()):
            raise ShapeError(f"layer {layer} reads {read.numel()} and writes {write.numel()} slots, the first does not")
        self._write(layer, plan, keys, values)
        shown = self._read(layer, plan) if plan.n_read else (keys, values)
        if plan.full:
            self._pack(layer, plan)
        if layer == len(self._stores) - 1:
            self._end(plan)
        return shown

    def _row_of(self, block: int) -> int:
        if block not in self._rows:
            if not self._free_rows:
                self._free_rows.append(self._n_rows)
                self._n_rows += 1
            self._rows[block] = self._free_rows.pop()
            self._n_filled[block] = 0
        return self._rows[block]

    def _make_plan(self, read: torch.Tensor, write: torch.Tensor) -> _Plan:
        sources, rows, offsets = [], [], []
        unpacked, full = [], []
        for source, slot in enumerate(write.tolist()):
            if slot in self._padding:
                continue
            block, offset = divmod(slot, self._stride)
            if block in self._packed:
                if offset == 0:  # another request has it now
                    self.forget([block])
                else:
                    unpacked.append((block, self._row_of(block)))
                    self._packed.remove(block)
            row = self._row_of(block)
            self._n_filled[block] = offset + 1
            sources.append(source)
            rows.append(row)
            offsets.append(offset)
            if offset == TOKENS - 1:
                full.append((block, row))
        device = write.device
        where = torch.tensor([sources, rows, offsets], dtype=torch.int64, device=device)
        plan = _Plan(write.numel(), read.numel(), where[0], where[1], where[2], unpacked, full)
        if plan.n_read:
            self._plan_reads(plan, read)
        return plan

    def _plan_reads(self, plan: _Plan, read: torch.Tensor) -> None:
        """Find runs of slots that follow each other in a block; padding stands at the end."""
        slots = read.to("cpu")
        begins = torch.ones(slots.numel(), dtype=torch.bool)
        # a slot that follows the one before and does not begin a block goes on with its run
        begins[1:] = (slots[1:] != slots[:-1] + 1) | (slots[1:] % self._stride == 0)
        starts = begins.nonzero().flatten()
        ends = torch.cat([starts[1:], torch.tensor([slots.numel()])])
        for to, end, slot in zip(starts.tolist(), ends.tolist(), slots[starts].tolist(), strict=True):
            if slot in self._padding:
                continue
            block, first = divmod(slot, self._stride)
            plan.runs.append(_Run(block, self._rows.get(block), first, end - to, to))
            plan.n_shown = end

    def _write(self, layer: int, plan: _Plan, keys: torch.Tensor, values: torch.Tensor) -> None:
        held = self._open[layer]
        if held.shape[0] < self._n_rows:
            grown = held.new_empty((self._n_rows + self._n_rows // 4, *held.shape[1:]))
            grown[: held.shape[0]] = held
            self._open[layer] = held = grown
        store = self._stores[layer]
        for block, row in plan.unpacked:
            held[row] = self._decode(store, block)
            store.drop(block)
        for which, states in enumerate((keys, values)):
            held[:, which][plan.rows, :, plan.offsets] = states[plan.sources]

    def _decode(self, store: _Store, block: int) -> torch.Tensor:
        """Return a packed block as [2, heads, 128, channels]."""
        places = torch.tensor(store.places(block), dtype=torch.int64)
        decoded: torch.Tensor = torch.ops.glyd.kv_unpack(store.data, places, self._channels)
        return decoded.view(2, self._heads, TOKENS, self._channels)

    def _read(self, layer: int, plan: _Plan) -> tuple[torch.Tensor, torch.Tensor]:
        store, held = self._stores[layer], self._open[layer]
        out = held.new_empty((2, self._heads, plan.n_read, self._channels))
        out[:, :, plan.n_shown :] = 0
        places: list[int] = []
        targets: list[int] = []
        heads = [head * plan.n_read for head in range(2 * self._heads)]
        for run in plan.runs:
            if run.row is not None:
                out[:, :, run.to : run.to + run.n] = held[run.row, :, :, run.first : run.first + run.n]
            elif run.n == TOKENS:
                places += store.places(run.block)
                targets += [head + run.to for head in heads]
            else:
                block = self._decode(store, run.block)
                out[:, :, run.to : run.to + run.n] = block[:, :, run.first : run.first + run.n]
        if places:
            where = torch.tensor(places, dtype=torch.int64), torch.tensor(targets, dtype=torch.int64)
            torch.ops.glyd.kv_unpack_to(store.data, where[0], out.view(-1, self._channels), where[1])
        keys, values = out.transpose(1, 2)
        return keys, values

    def _pack(self, layer: int, plan: _Plan) -> None:
        rows = torch.tensor([row for _, row in plan.full], device=self._open[layer].device)
        pages, found = torch.ops.glyd.kv_pack(self._open[layer][rows].view(-1, TOKENS, self._channels))
        places = found.tolist()
        n = 2 * self._heads
        for number, (block, _) in enumerate(plan.full):
            self._stores[layer].add(block, pages, places[number * n : (number + 1) * n + 1])

    def _end(self, plan: _Plan) -> None:
        """Note that full blocks are packed now in every layer."""
        for block, row in plan.full:
            self._packed.add(block)
            self._free_rows.append(row)
            del self._rows[block], self._n_filled[block]
        self.held = self._report()


class FreedBlocks(deque[int]):
    """A queue of free blocks that says what comes into it."""

    def __init__(self, blocks: Iterable[int], forget: Any) -> None:
        super().__init__(blocks)
        self._forget = forget

    def append(self, block: int) -> None:
        """Take a block back."""
        self._forget([block])
        super().append(block)

    def extend(self, blocks: Iterable[int]) -> None:
        """Take blocks back."""
        for block in blocks:
            self.append(block)

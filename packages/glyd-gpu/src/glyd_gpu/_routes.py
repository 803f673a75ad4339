# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Which kernel multiplies: chosen by layout, shape, tokens and device.

On Hopper the choice is the measured one (`_routes_table`, written by
``bench/bench_products.py --tune``) of the nearest shape; elsewhere the generic
kernel for few tokens and decoding for many. ``GLYD_GPU_ROUTE`` overrides it:
``generic``, ``decode``, ``stream:2,16,1,0``, ``ring:8,3,1,2,0,132,1``,
``pair:256,132,3,8,0``, ``staged:256,2,0,132,8,3,3,0`` or ``split:128,2,3,0,132,1``, with the configurations
of ``kernels/glyd_gpu.h``. The choice depends on nothing that
changes from call to call, so results keep their bits.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
from collections.abc import Sequence
from typing import NamedTuple

import torch

from glyd_gpu._errors import ParameterError
from glyd_gpu._library import architectures, load
from glyd_gpu._meta import LAYOUTS
from glyd_gpu._routes_table import ROUTES

VARIABLE = "GLYD_GPU_ROUTE"
GENERIC_TOKENS = 64  # more are decoded once and multiplied by torch: there the decoded matrix is read often enough
HOPPER, HOPPER_CODE = (9, 0), "sm_90a"
LENGTHS = {"generic": 0, "decode": 0, "stream": 4, "ring": 7, "staged": 8, "split": 6, "pair": 5}
STREAM_TOKENS = 16
# tokens of a tile, warpgroups: kernels of mma12 with a transposed x; their stream-K takes several tiles of tokens
MANY = ((64, 3), (128, 3), (192, 3), (256, 2))
DENSE = 0.005  # exceptions of all weights up to which those are faster than decoding
COUNTERS = (1 << 18) - 16  # row blocks that the counters of stream-K have room for
SPLIT_TOKENS, SPLIT = 16, ((64, 2, 4), (128, 2, 3))  # of tiered
USUAL, MOST = 1.25, 3  # exceptions of a row block for which a ring has room, by their mean; most by the largest number
# layout → tokens from which on a ring takes so many times the exceptions that it has room for, in rounds: measured, up
# to three were faster than decoding (128 tokens) and than the generic kernel (64)
ROUNDS = {2: (64, 4)}
NARROW = {1: 2, 2: 3}  # layout → 64-row blocks of a tile that leave room for more exceptions


PAIR_ROWS, PAIR_TILES, PAIR_PARTS, PAIR_GROUP = 256, (128, 192, 256), 8, 8  # of pairs of blocks, see `pair_plan`
# what a tile takes besides its tokens, in tokens, and a part more, in tokens × columns: fitted to what was measured
TILE_COST, PART_COST = 64, 150_000


class Route(NamedTuple):
    """A kernel and its configuration."""

    kernel: str
    config: tuple[int, ...] = ()


def parse(text: str) -> Route:
    """Read a route, as ``GLYD_GPU_ROUTE`` has it.

    Raises
    ------
    ParameterError
        An unknown kernel, or not its number of integers.
    """
    name, _, numbers = text.partition(":")
    try:
        config = tuple(int(n) for n in numbers.split(",")) if numbers else ()
    except ValueError:
        config = (-1,)
    if LENGTHS.get(name) != len(config) or any(n < 0 for n in config):
        known = ", ".join(f"{k} with {n} integers" if n else k for k, n in LENGTHS.items())
        raise ParameterError(f"{VARIABLE} is {text!r}; a route is one of {known}")
    return Route(name, config)


def token_classes(layout: int) -> list[int]:
    """Return the token counts that were measured, ascending."""
    return sorted(tokens for known, tokens in ROUTES if known == layout)


def _nearest(layout: int, tokens: int, rows: int, cols: int) -> tuple[bool, Route] | None:
    """Find what was fastest on the nearest shape at the next token count; whether it is this very shape."""
    measured = next((n for n in token_classes(layout) if n >= tokens), None)
    if measured is None:
        return None

    def distance(entry: tuple[int, int, str, tuple[int, ...]]) -> float:
        return abs(math.log(rows / entry[0])) + abs(math.log(cols / entry[1]))

    best = min(ROUTES[layout, measured], key=distance)
    return distance(best) == 0, Route(best[2], best[3])


def _as_measured(layout: int, tokens: int, route: Route, processors: int) -> bool:
    """Say whether pairs of blocks have as many tiles of tokens as where they were measured, and blocks enough."""
    tile, workers = route.config[:2]
    measured = next(n for n in token_classes(layout) if n >= tokens)
    return -(-tokens // tile) == -(-measured // tile) and workers <= processors


def pair_plan(rows: int, cols: int, tokens: int, workers: int) -> tuple[int, int]:
    """Return the tokens of a tile for pairs of blocks, and the parts of tiles that do not fill a last round.

    Parameters
    ----------
    rows, cols
        Of the matrix: 256 rows a tile.
    tokens
        Rows of x.
    workers
        Blocks that run at the same time; two for a tile.
    """
    pairs = workers // 2

    def cost(plan: tuple[int, int]) -> float:
        tile, parts = plan
        whole, rest = divmod(-(-rows // PAIR_ROWS) * -(-tokens // tile), pairs)
        rounds = whole + -(-rest * parts // pairs) / parts
        return rounds * (tile + TILE_COST) * cols + (parts * PART_COST if rest and parts > 1 else 0)

    return min(((tile, parts) for tile in reversed(PAIR_TILES) for parts in range(1, PAIR_PARTS + 1)), key=cost)


def _fits(meta: Sequence[int], tokens: int, route: Route) -> bool:
    """Say whether a kernel takes this pack, and its exceptions in one go."""
    layout, rows, cols = meta[:3]
    if not route.config:
        return True
    if route.kernel == "stream":
        return layout == LAYOUTS["mma12"] and tokens <= STREAM_TOKENS and cols % 2 == 0
    if route.kernel == "pair":
        few = meta[4] <= DENSE * rows * cols
        return layout == LAYOUTS["mma12"] and cols % 8 == 0 and rows < 1 << 31 and few
    if route.kernel == "split":  # any number of exceptions
        tile, row_blocks_of_tile = route.config[:2]
        counted = -(-rows // (64 * row_blocks_of_tile)) * row_blocks_of_tile * -(-tokens // tile)
        return layout == LAYOUTS["tiered"] and cols % 8 == 0 and rows < 1 << 31 and counted <= COUNTERS
    tile, row_blocks_of_tile, warpgroups, chunks, cluster, workers, _ = route.config
    blocks, tiles = -(-rows // 64), -(-cols // (64 if layout == LAYOUTS["mma12"] else 128))
    several = tokens > tile
    if cols % 8 or rows >= 1 << 31 or blocks + 4 > COUNTERS:
        return False
    many = layout == LAYOUTS["mma12"] and (tile, row_blocks_of_tile * warpgroups) in MANY
    if several and cluster == 0 and not many:
        return False
    if not meta[4]:
        return True
    if many:
        return meta[4] <= DENSE * rows * cols
    # exceptions of a row block in the columns that one block of threads takes
    steps = -(-tiles // (warpgroups * chunks))
    units = -(-blocks // row_blocks_of_tile) * steps
    share = 1 / cluster if cluster else min(1.0, -(-units // workers) / steps)
    room = load().glyd_gpu_product_ring_exceptions((ctypes.c_int64 * 7)(*meta), (ctypes.c_int32 * 7)(*route.config))
    from_tokens, rounds = ROUNDS.get(layout, (0, 1))
    room *= rounds if tile >= from_tokens else 1
    return bool(room >= meta[4] / blocks * share * USUAL and room >= meta[6] * share / MOST)


def on_hopper(meta: Sequence[int], tokens: int, processors: int) -> Route:
    """Choose for compute capability 9.0.

    Parameters
    ----------
    meta
        The seven integers of a pack.
    tokens
        Rows of x, at least 1.
    processors
        Multiprocessors of the device.

    Returns
    -------
    Route
        The measured choice; for a shape that was not measured one that fills the device.
    """
    layout, rows, cols = meta[:3]
    found = _nearest(layout, tokens, rows, cols)
    if found is not None:
        exact, route = found
        if route.kernel == "ring":
            tile, row_blocks, warpgroups, chunks, cluster, workers, dependent = route.config
            blocks = math.ceil(math.ceil(rows / 64) / row_blocks) * (cluster or 1)
            if cluster == 0 and not (exact and workers <= processors):
                route = Route("ring", (tile, row_blocks, warpgroups, chunks, 0, processors, dependent))
            elif cluster and blocks > processors and tokens <= tile:  # more than one wave: stream-K divides evenly
                route = Route("ring", (tile, row_blocks * warpgroups, 1, chunks, 0, processors, dependent))
            if tokens > tile and blocks * math.ceil(tokens / tile) < processors // 2:
                route = Route("decode")  # several tiles of tokens, and still half of the device would idle
        if route.kernel == "pair" and not (exact and _as_measured(layout, tokens, route, processors)):
            workers = min(route.config[1], processors // 2 * 2)
            tile, parts = pair_plan(rows, cols, tokens, workers)
            route = Route("pair", (tile, workers, parts, *route.config[3:]))
            if -(-rows // PAIR_ROWS) * -(-tokens // tile) * parts < workers // 4:
                few = Route("ring", (256, 2, 1, 1, 0, processors, route.config[-1]))
                route = Route("decode") if tokens > few.config[0] else few  # half of the device would idle
        if route.kernel == "split":
            tile, row_blocks, decoders, cluster, workers, dependent = route.config
            blocks = -(-rows // (64 * row_blocks)) * -(-tokens // tile) * cluster
            if (cluster and blocks > processors) or (not cluster and not (exact and workers <= processors)):
                route = Route("split", (tile, row_blocks, decoders, 0, processors, dependent))
        candidates = [route]
        if route.kernel == "ring":
            tile, dependent = route.config[0], route.config[6]
            rows_of_tile = 2 if tile >= 128 else NARROW[layout]
            candidates.append(Route("ring", (tile, rows_of_tile, 1, 1, 0, processors, dependent)))
            if (tile, 3) in MANY:
                candidates.append(Route("ring", (tile, 3, 1, 2, 0, processors, dependent)))
        if layout == LAYOUTS["mma12"]:
            candidates.append(Route("stream", (2, 16, 1, 0)))  # takes any number of exceptions
        elif tokens > SPLIT_TOKENS:
            candidates.append(Route("split", (*SPLIT[tokens > SPLIT[0][0]], 0, processors, 1)))  # and this
        for candidate in candidates:
            if _fits(meta, tokens, candidate):
                return candidate
    return elsewhere(tokens)


def elsewhere(tokens: int) -> Route:
    """Choose where nothing was measured."""
    return Route("generic") if tokens <= GENERIC_TOKENS else Route("decode")


@functools.lru_cache(maxsize=65536)
def _choose(meta: tuple[int, ...], tokens: int, index: int) -> Route:
    if torch.cuda.get_device_capability(index) != HOPPER or HOPPER_CODE not in architectures():
        return elsewhere(tokens)
    return on_hopper(meta, tokens, torch.cuda.get_device_properties(index).multi_processor_count)


def choose(meta: Sequence[int], tokens: int, device: torch.device) -> Route:
    """Return the kernel for mode ``fast``.

    Parameters
    ----------
    meta
        The seven integers of a pack.
    tokens
        Rows of x, at least 1.
    device
        A CUDA device.

    Returns
    -------
    Route
        ``generic`` (runs everywhere), ``decode`` (to bf16, then torch's product), ``stream``, ``ring``, ``pair`` or
        ``split``.

    Raises
    ------
    ParameterError
        ``GLYD_GPU_ROUTE`` is set to what is no route.
    """
    forced = os.environ.get(VARIABLE)
    if forced:
        return parse(forced)
    index = torch.cuda.current_device() if device.index is None else device.index
    return _choose(tuple(meta), tokens, index)

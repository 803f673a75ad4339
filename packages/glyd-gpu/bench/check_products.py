# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Every product that was compiled, on shapes with odd edges: ``python check_products.py [--quick]``, on a Hopper GPU.

Each configuration with and without dependent launch, with exceptions (also more
than its buffer takes), a bias, infinities and NaN; poisoned outputs, the same
bits five times, once by the way of blocks that find x not transposed yet, within 4e-3 of float64. ``--quick`` is for compute-sanitizer.
Exits non-zero when anything fails.
"""

import argparse
import sys

import torch
from bench_products import LAYOUTS, SPLITS, STREAMS, WARPGROUPS

import glyd_gpu
from glyd_gpu import CudaError, _backend_cuda, _products
from glyd_gpu._routes import Route
from glyd_gpu._same_order import ROW_BLOCKS, SLOTS

LIMIT = 4e-3
MANY = ((3, 64), (3, 128), (3, 192), (2, 256))  # warpgroups, tokens of a tile: stream-K takes several tiles of tokens
PAIRS = ((256, 132, 1, 8), (192, 132, 4, 8), (128, 2, 1, 1), (256, 10, 3, 2), (192, 6, 16, 1), (128, 132, 5, 4))
SHAPES = ((577, 1000, 0.01), (4160, 2176, 0.0), (126, 248, 0.03), (1088, 4224, 0.0005), (320, 8320, 0.002))
TOKENS = (1, 8, 16, 31, 64, 100, 128, 150, 256, 300, 600)


def matrix(rows, cols, share):
    """Gaussian weights; a share of values far from them, some zero."""
    weight = torch.randn(rows, cols, device="cuda") * 0.02
    far = torch.randint(-40, 3, (rows, cols), device="cuda").float().exp2() * torch.randn(rows, cols, device="cuda")
    far[torch.rand(rows, cols, device="cuda") < 0.2] = 0.0
    return torch.where(torch.rand(rows, cols, device="cuda") < share, far, weight).to(torch.bfloat16)


def routes(layout, tokens):
    """Yield every route for a number of tokens."""
    if layout == LAYOUTS["mma12"] and tokens <= 16:
        yield from (Route("stream", (*stream, 0)) for stream in STREAMS)
    if layout == LAYOUTS["mma12"]:
        for tile, slots in SLOTS.items():
            for cluster, workers, group in ((0, 7, 1), (0, 132, 2), (1, 0, 2), (2, 0, 2), (4, 0, 1)):
                yield Route("staged", (tile, ROW_BLOCKS, cluster, workers, group, *slots, 0))
        yield from (Route("pair", (*pair, 0)) for pair in PAIRS)
    for tile, compiled in SPLITS.items() if layout == LAYOUTS["tiered"] else ():
        for row_blocks, decoders in compiled:
            for cluster, workers in ((1, 0), (2, 0), (4, 0), (0, 7), (0, 132)):
                yield Route("split", (tile, row_blocks, decoders, cluster, workers, 0))
    for tile, compiled in WARPGROUPS[layout].items():
        for n in compiled:
            for row_blocks in (k for k in range(1, n + 1) if n % k == 0):
                for chunks in (1, 2):
                    for cluster in (1, 2, 4):
                        if tile >= tokens or tokens <= 4 * tile:  # several tiles of tokens too
                            yield Route("ring", (tile, row_blocks, n // row_blocks, chunks, cluster, 0, 0))
                    if row_blocks == n and (tile >= tokens or (layout == LAYOUTS["mma12"] and (n, tile) in MANY)):
                        for workers in (7, 132):
                            yield Route("ring", (tile, n, 1, chunks, 0, workers, 0))


def miscount(route):
    """Have a ring believe that x is not transposed yet, as when other blocks come late."""
    for _, workspace in _products._workspaces.values():
        if route.kernel == "pair" or (route.kernel == "ring" and route.config[0] >= 64):
            workspace[_products.COUNTERS_NBYTES - 64] = 7  # the last block leaves zeros


class Checker:
    """Counts what was run and what failed."""

    def __init__(self):
        self.n = self.failed = 0
        self.worst = 0.0

    def run(self, weight, layout, tokens, x, bias):
        """Run every route on a matrix."""
        pack = torch.ops.glyd.pack(weight, layout)
        meta = glyd_gpu.PackedMeta.from_tensor(pack).as_list()
        known = _backend_cuda._meta_array(tuple(meta))
        want = x.double() @ weight.double().t() + bias.double()
        finite = want.isfinite()
        for route in routes(layout, tokens):
            outputs = []
            try:
                for dependent in (0, 0, 1, 2, 0):
                    if len(outputs) == 4:
                        miscount(route)
                    torch.full((4 * want.numel(),), float("nan"), dtype=torch.bfloat16, device="cuda")  # freed: poison
                    config = Route(route.kernel, (*route.config[:-1], dependent))
                    stream = torch.cuda.current_stream().cuda_stream
                    outputs.append(_products.product(config, x, pack, meta[1], bias, known, stream))
            except CudaError as error:
                if error.found == -40:  # does not fit
                    continue
                raise
            if route.kernel == "staged":  # plain weights by the same kernel
                outputs.append(_products.product_plain(config, x, weight, bias, stream))
            y = outputs[0].double()
            error = ((y - want)[finite].norm() / want[finite].norm()).item()
            same = all(torch.equal(each.view(torch.int16), outputs[0].view(torch.int16)) for each in outputs)
            special = torch.equal(y[~finite].nan_to_num(1, 2, 3), want[~finite].nan_to_num(1, 2, 3))
            self.n += 1
            self.worst = max(self.worst, error)
            if not (error < LIMIT and same and special):
                self.failed += 1
                print(f"FAILED {route} layout {layout} {tuple(weight.shape)} {tokens} tokens: relative error {error:.2e}, "
                      f"same bits {same}, special values {special}", flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    checker = Checker()
    for rows, cols, share in ((190, 632, 0.01),) if args.quick else SHAPES:
        weight = matrix(rows, cols, share)
        for layout in LAYOUTS.values():
            for tokens in (5, 100) if args.quick else TOKENS:
                x = torch.randn(tokens, cols, device="cuda").to(torch.bfloat16)
                bias = torch.randn(rows, device="cuda").to(torch.bfloat16)
                checker.run(weight, layout, tokens, x, bias)
            print(f"layout {layout} {rows}x{cols}: {checker.n} checks, {checker.failed} failed", flush=True)
    weight = matrix(190, 632, 0.003)
    weight[5, 17], weight[70, 300], weight[133, 631], weight[64] = float("inf"), float("-inf"), float("nan"), 0.0
    for layout in LAYOUTS.values():
        x = torch.randn(16, 632, device="cuda").to(torch.bfloat16)
        checker.run(weight, layout, 16, x, torch.zeros(190, dtype=torch.bfloat16, device="cuda"))
    print(f"{checker.n} checks, {checker.failed} failed, worst relative error {checker.worst:.2e}")
    sys.exit(checker.failed > 0)


if __name__ == "__main__":
    main()

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Speed of packed products beside cuBLAS on bf16, and the tuner of the routes.

``python bench_products.py [--shapes 4096x4096,…] [--tokens 1,16,…] [--layouts mma12,tiered] [--csv FILE]``
times `torch.ops.glyd.linear` in mode fast, that is the kernels that the routes
name. ``--tune JSON`` times every configuration on Hopper instead and adds the
times to a file; ``--write-table JSON [OUT]`` makes ``_routes_table.py`` of it, on
any machine.

Graphs of calls on rotating copies (together more than twice the L2 cache),
medians of replays; torch.mm in the same process; poisoned outputs compared with
float64. The ceiling is the fastest plain reading of the packed bytes that torch
has (a sum).
"""

import argparse
import csv
import itertools
import json
import math
import subprocess
import sys
from pathlib import Path

import torch

import glyd_gpu
from glyd_gpu import CudaError, _backend_cuda, _products, _routes
from glyd_gpu._routes import Route

SHAPES = (
    "4096x4096,6144x4096,24576x4096,4096x12288,151936x4096,10240x5120,5120x8192,51200x5120,5120x25600"  # Qwen3 8B, 32B
)
TOKENS = "1,2,4,8,16,24,32,48,64,96,128,192,256,512,1024,2048,4096,8192"
TUNED = (1, 8, 16, 32, 64, 128, 192, 256, 320, 384, 512, 768, 1024, 2048, 8192)
SEVERAL = 256  # more tokens are cut into tiles of so many
LAYOUTS = {"mma12": 1, "tiered": 2}
L2_NBYTES = 300 << 20  # of all copies: more than twice that of any GPU
# tokens of a tile → warpgroups that were compiled (kernels/ring_*_sm90.cu)
WARPGROUPS = {
    1: {8: (2, 3), 16: (2, 3), 32: (2, 3), 64: (2, 3), 128: (2, 3), 192: (2, 3), 256: (2,)},
    2: {8: (3, 4), 16: (3, 4), 32: (3,), 64: (3,), 128: (2,)},
}
SPLITS = {64: ((2, 4),), 128: ((2, 3),)}  # tokens of a tile → row blocks, decoding warpgroups
STREAMS = ((2, 8, 1), (2, 16, 1), (2, 16, 2))
TABLE = Path(__file__).resolve().parents[1] / "src" / "glyd_gpu" / "_routes_table.py"


def median_us(calls, replays=20):
    """Time a graph of calls; microseconds a call."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in calls:  # all of them: launches may run ahead of a pack's first reader only as far as L2
            call()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            kept = [call() for call in calls]
        for _ in range(3):
            graph.replay()
        events = [torch.cuda.Event(enable_timing=True) for _ in range(replays + 1)]
        events[0].record(stream)
        for event in events[1:]:
            graph.replay()
            event.record(stream)
        stream.synchronize()
    del kept
    times = sorted(a.elapsed_time(b) for a, b in itertools.pairwise(events))
    return times[replays // 2] * 1e3 / len(calls)


def configurations(layout, tokens, rows, cols, processors):
    """Yield (kernel, configuration) to be tried, without dependent launch."""
    if layout == LAYOUTS["mma12"] and tokens <= 16:
        for stream in STREAMS:
            yield "stream", stream
    blocks = -(-rows // 64)
    if tokens >= 128:
        yield "decode", ()
    if layout == LAYOUTS["tiered"] and tokens > 32:
        tile = next((n for n in sorted(SPLITS) if n >= tokens), max(SPLITS))
        for row_blocks, decoders in SPLITS[tile]:
            tiles = -(-blocks // row_blocks) * -(-tokens // tile)
            for workers in {processors, min(processors, tiles * max(1, processors // tiles))}:
                yield "split", (tile, row_blocks, decoders, 0, workers)
            for cluster in (1, 2, 3, 4):
                if processors // 2 <= tiles * cluster <= processors:
                    yield "split", (tile, row_blocks, decoders, cluster, 0)
    if layout == LAYOUTS["mma12"] and tokens >= SEVERAL:
        workers = processors // 2 * 2
        plans = {(256, 1), (256, 2), (256, 3), (192, 1), (128, 1), _routes.pair_plan(rows, cols, tokens, workers)}
        for pair_tile, parts in sorted(plans):
            yield "pair", (pair_tile, workers, parts, _routes.PAIR_GROUP)
    tile = next((n for n in sorted(WARPGROUPS[layout]) if n >= tokens), None)
    if tile is None:
        if SEVERAL in WARPGROUPS[layout]:
            for cluster in (1, 2, 3, 4):
                if processors // 2 <= -(-blocks // 2) * -(-tokens // SEVERAL) * cluster:
                    yield "ring", (SEVERAL, 2, 1, 1, cluster, 0)
            yield "ring", (SEVERAL, 2, 1, 1, 0, processors)
            if tokens <= 2 * SEVERAL:  # more small tiles fill a round better
                yield from (("ring", (tile, 3, 1, chunks, 0, processors)) for tile, chunks in ((128, 2), (192, 1)))
        return
    for n in WARPGROUPS[layout][tile]:
        for row_blocks in (k for k in range(1, n + 1) if n % k == 0):
            tiles = -(-blocks // row_blocks)
            for chunks in (1, 2, 4) if tile <= 16 else (1, 2):
                if row_blocks == n:
                    halves = (2 * tiles // k for k in (1, 3, 5, 7))  # 1/2, 1 1/2, … tiles a worker
                    even = {k for k in halves if processors * 3 // 4 <= k <= processors}
                    parts = tiles * max(1, processors // tiles)  # as many to every tile
                    for workers in {processors, min(processors, parts), -(-tiles // -(-tiles // processors))} | even:
                        yield "ring", (tile, n, 1, chunks, 0, workers)
                for cluster in (1, 2, 3, 4):
                    if processors // 2 <= tiles * cluster <= processors:
                        yield "ring", (tile, row_blocks, n // row_blocks, chunks, cluster, 0)


class Matrix:
    """A random matrix, its copies, and its packs."""

    def __init__(self, rows, cols):
        self.rows, self.cols = rows, cols
        self.weight = torch.empty(rows, cols, device="cuda").normal_(std=0.02).to(torch.bfloat16)
        self.copies = max(2, L2_NBYTES // self.weight.nbytes + 1)

    def inputs(self, tokens):
        return torch.randn(tokens, self.cols, device="cuda").to(torch.bfloat16)

    def cublas_us(self, x):
        weights = [self.weight] + [self.weight.clone() for _ in range(self.copies - 1)]
        return median_us([lambda w=w: x @ w.t() for w in weights])

    def packs(self, layout):
        pack = torch.ops.glyd.pack(self.weight, layout)
        meta = glyd_gpu.PackedMeta.from_tensor(pack).as_list()
        return [pack] + [pack.clone() for _ in range(self.copies - 1)], meta

    def error(self, x, y):
        """Relative error of the first 4096 rows."""
        want = x.double() @ self.weight[:4096].double().t()
        return ((y[:, :4096].double() - want).norm() / want.norm()).item()


def device_state():
    """Clocks and power, as nvidia-smi has them."""
    query = ["nvidia-smi", "--query-gpu=clocks.sm,clocks.mem,power.draw", "--format=csv,noheader"]
    return subprocess.run(query, check=False, capture_output=True, text=True).stdout.strip()


def bench(args):
    """Print a line for every matrix, layout and number of tokens; then geometric means."""
    buffer = torch.empty(1 << 28, dtype=torch.int32, device="cuda").random_()
    ceiling = buffer.nbytes / median_us([lambda: buffer.sum(dtype=torch.int32)]) / 1e6
    print(f"{torch.cuda.get_device_name()}: plain read {ceiling:.2f} TB/s; {device_state()}")
    lines, ratios = [], {}
    for rows, cols in args.shapes:
        matrix = Matrix(rows, cols)
        x = {n: matrix.inputs(n) for n in args.tokens}
        base = {n: matrix.cublas_us(x[n]) for n in args.tokens}
        for layout in args.layouts:
            packs, meta = matrix.packs(LAYOUTS[layout])
            for n in args.tokens:
                us = median_us([lambda p=p, n=n: torch.ops.glyd.linear(x[n], p, meta, None, 0) for p in packs])
                error = matrix.error(x[n], torch.ops.glyd.linear(x[n], packs[0], meta, None, 0))
                if not error < 1e-2:
                    sys.exit(f"{layout} {rows}x{cols}, {n} tokens: relative error {error}")
                share = packs[0].numel() / us / 1e6 / ceiling
                route = _routes.choose(meta, n, packs[0].device)
                name = f"{route.kernel}:{','.join(map(str, route.config))}"
                ratios.setdefault((layout, n), []).append(base[n] / us)
                lines.append((layout, rows, cols, n, base[n], us, base[n] / us, share, error, name))
                print(f"{layout:6} {rows}x{cols} {n:5} tokens: cuBLAS {base[n]:7.1f} µs, {us:7.1f} µs, "
                      f"{base[n] / us:.2f} ×, {100 * share:3.0f}% of read, {name}", flush=True)  # fmt: skip
            del packs
        del matrix
        torch.cuda.empty_cache()
    for (layout, n), each in sorted(ratios.items()):
        mean = math.exp(sum(map(math.log, each)) / len(each))
        print(f"{layout} {n} tokens: geometric mean {mean:.2f} ×, least {min(each):.2f} ×")
    print(device_state())
    if args.csv:
        with Path(args.csv).open("w", encoding="utf-8", newline="") as file:
            header = ("layout", "rows", "cols", "tokens", "cublas_us", "us", "ratio", "of_read", "error", "route")
            csv.writer(file).writerows([header, *lines])


def markdown(source):
    """Print the tables of docs/gpu.md from the lines of a bench."""
    with Path(source).open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    for layout in sorted({line["layout"] for line in lines}):
        cells = {
            (int(line["rows"]), int(line["cols"]), int(line["tokens"])): (float(line["ratio"]), float(line["of_read"]))
            for line in lines
            if line["layout"] == layout
        }
        tokens = sorted({key[2] for key in cells})
        print(f"{layout} by tokens:\n\n| N × K | {' | '.join(map(str, tokens))} |\n| --- |{' --- |' * len(tokens)}")
        for rows, cols in dict.fromkeys(key[:2] for key in cells):
            each = [cells[rows, cols, n] for n in tokens]
            print(f"| {rows} × {cols} |" + "".join(f" {ratio:.2f} ({share:.0%}) |" for ratio, share in each))
        ratios = [[cells[key][0] for key in cells if key[2] == n] for n in tokens]
        means = [math.exp(sum(map(math.log, each)) / len(each)) for each in ratios]
        print(
            "| geometric mean (least) |"
            + "".join(f" {m:.2f} ({min(r):.2f}) |" for m, r in zip(means, ratios, strict=True))
        )
        print()


def tune(args):
    """Time every configuration and add the times to a file."""
    path = Path(args.tune)
    times = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    for rows, cols in args.shapes:
        matrix = Matrix(rows, cols)
        for layout in (LAYOUTS[name] for name in args.layouts):
            packs, meta = matrix.packs(layout)
            known = _backend_cuda._meta_array(tuple(meta))
            for n in (n for n in args.tokens if n in TUNED):
                x, measured = matrix.inputs(n), []
                once, twice = (8, 20) if n <= 512 else (4, 9)  # replays

                def run(pack, route, x=x, known=known, meta=meta):
                    stream = torch.cuda.current_stream().cuda_stream
                    if route.kernel == "decode":
                        return torch.ops.glyd.linear(x, pack, meta, None, glyd_gpu.EXACT)
                    return _products.product(route, x, pack, rows, None, known, stream)

                def time(kernel, config, replays):
                    route = Route(kernel, config)
                    error = matrix.error(x, run(packs[0], route))
                    if not error < 1e-2:
                        sys.exit(f"{route}: relative error {error}")
                    us = median_us([lambda p=p: run(p, route) for p in packs], replays)
                    measured.append((us, kernel, config))

                for kernel, config in configurations(layout, n, rows, cols, processors):
                    try:
                        time(kernel, (*config, 0) if config else (), once)
                    except CudaError as error:
                        if error.found != -40:  # does not fit
                            raise
                for _, kernel, config in sorted(measured)[:3]:
                    for dependent in (0, 1, 2) if config else ():
                        time(kernel, (*config[:-1], dependent), twice)
                times += [[layout, n, rows, cols, us, kernel, list(config)] for us, kernel, config in measured]
                print(layout, n, rows, cols, *sorted(measured)[:1], flush=True)
        path.write_text(json.dumps(times), encoding="utf-8")


def write_table(source, out):
    """Write the fastest of every layout, token count and shape."""
    best = {}
    for layout, n, rows, cols, us, kernel, config in json.loads(Path(source).read_text(encoding="utf-8")):
        key = layout, n, rows, cols
        if key not in best or us < best[key][0]:
            best[key] = us, kernel, config
    lines = []
    for layout, n in sorted({key[:2] for key in best}):
        lines.append(f"    ({layout}, {n}): (")
        lines += [
            f'        ({rows}, {cols}, "{kernel}", ({", ".join(map(str, config))})),'
            for (a, b, rows, cols), (_, kernel, config) in sorted(best.items())
            if (a, b) == (layout, n)
        ]
        lines.append("    ),")
    text = TABLE_HEAD + "\n".join(lines) + "\n}\n"
    Path(out).write_text(text, encoding="utf-8")


TABLE_HEAD = '''# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Fastest product on an H200 by layout and tokens; written by ``bench/bench_products.py --write-table``."""

from __future__ import annotations

# (layout, tokens) → rows, cols, kernel, configuration
ROUTES: dict[tuple[int, int], tuple[tuple[int, int, str, tuple[int, ...]], ...]] = {
'''


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--shapes", type=lambda s: [tuple(map(int, k.split("x"))) for k in s.split(",")], default=SHAPES
    )
    parser.add_argument("--tokens", type=lambda s: list(map(int, s.split(","))), default=TOKENS)
    parser.add_argument("--layouts", type=lambda s: s.split(","), default="mma12,tiered")
    parser.add_argument("--csv")
    parser.add_argument("--markdown", metavar="CSV")
    parser.add_argument("--tune", metavar="JSON")
    parser.add_argument("--write-table", nargs="+", metavar=("JSON", "OUT"))
    args = parser.parse_args()
    if args.write_table:
        write_table(args.write_table[0], args.write_table[1] if args.write_table[1:] else TABLE)
    elif args.markdown:
        markdown(args.markdown)
    elif args.tune:
        tune(args)
    else:
        bench(args)


if __name__ == "__main__":
    main()

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Self-check of the operators: ``python -m glyd_gpu.check``.

Every matrix of the list is packed in both layouts. Its pack must have the bytes
of the codec's packer; unpacked (by the kernels, and by tensor operations of torch alone), looked
up by rows and in mode ``exact`` it must give every bit; in the other modes the product must be within rounding of a
float64 reference, have the same bits at every run, and in mode ``invariant`` for
any number of tokens. A line for each; the exit code is 1 when one fails.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

import glyd_codec
import glyd_gpu
from glyd_gpu import _matrices, _oracle, _routes
from glyd_gpu._library import architectures, library_path
from glyd_gpu._matrices import bits
from glyd_gpu._meta import BLOCK_ROWS
from glyd_gpu._ops import EXACT, FAST, INVARIANT

TOKENS = (1, 2, 7, 8, 9, 16, 17, 32, 33, 64, 65, 100, 128, 200, 256, 600)
QUICK_TOKENS = (1, 9, 65)
LIMIT = 1e-2  # of the relative error in the 2-norm; elements are held tighter, see `close`

# kind, rows, columns: whole and cut tiles, one row block, odd columns, hundreds of thousands of exceptions
MATRICES = (
    ("gaussian", 1024, 4096),
    ("special", 1000, 1000),
    ("scaled_rows", 511, 2048),
    ("heavy_tails", 768, 3072),
    ("many_exceptions", 2048, 4096),
    ("gaussian", 62, 8191),
    ("special", 189, 767),
    ("gaussian", 4096, 1023),
    ("heavy_tails", 64, 16384),
)
QUICK_MATRICES = (
    ("gaussian", 192, 512),
    ("special", 189, 767),
    ("many_exceptions", 128, 640),
    ("heavy_tails", 62, 1000),
)


@dataclass
class Line:
    """One check: what, on which matrix, and how it went."""

    operator: str
    layout: str
    kind: str
    rows: int
    cols: int
    exceptions: int
    tokens: int
    kernel: str
    error: float
    ok: bool
    note: str = ""

    def text(self) -> str:
        """Return the line as printed."""
        error = f"error {self.error:.1e}" if self.error else "every bit"
        where = f"{self.layout:6} {self.kind:15} {self.rows} x {self.cols}, {self.exceptions} exceptions"
        tokens = f", {self.tokens} tokens" if self.tokens else ""
        return (
            f"{'ok  ' if self.ok else 'FAIL'} {self.operator:16} {self.kernel:10} {where}{tokens}: {error} {self.note}"
        )


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Compare bf16 tensors by their bits."""
    return a.shape == b.shape and bool(torch.equal(bits(a), bits(b)))


def close(y: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> tuple[float, bool]:
    """Compare with a float64 product: relative error in the 2-norm, and whether every element is rounding away."""
    wide_x, wide_w = x.double(), weight.double()
    expected = F.linear(wide_x, wide_w, None if bias is None else bias.double())
    magnitude = F.linear(wide_x.abs(), wide_w.abs(), None if bias is None else bias.double().abs())
    off = (y.double() - expected).abs()
    # one rounding to bf16, and sums of fp32 products in any order
    allowed = expected.abs() * 2.0**-8 + magnitude * 2.0**-20
    norm = float(expected.norm())
    return float(off.norm()) / norm if norm else 0.0, bool((off <= allowed).all())


class Checker:
    """Checks of one device.

    Parameters
    ----------
    device
        Where packs and activations lie.
    tokens
        Numbers of tokens of the products.
    mutations
        Broken packs to run through every operator for each matrix: no result is asked for, but no access outside.
    """

    def __init__(self, device: torch.device, tokens: Sequence[int], mutations: int = 0) -> None:
        self.device = device
        self.tokens = tokens
        self.mutations = mutations

    def run(self, matrices: Sequence[tuple[str, int, int]]) -> Iterator[Line]:
        """Run all checks."""
        torch.manual_seed(20261130)
        for kind, rows, cols in matrices:
            weight = _matrices.KINDS[kind](rows, cols)
            for layout in glyd_gpu.LAYOUTS:
                yield from self._matrix(kind, weight, layout)

    def _matrix(self, kind: str, weight: torch.Tensor, layout: str) -> Iterator[Line]:
        rows, cols = weight.shape
        # on the CPU the operator is the codec's packer
        by_codec = torch.ops.glyd.pack(weight, glyd_gpu.LAYOUTS[layout])
        there = weight.to(self.device)
        pack = torch.ops.glyd.pack(there, glyd_gpu.LAYOUTS[layout])
        if not by_codec.numel():
            yield Line("pack", layout, kind, rows, cols, 0, 0, "", 0, pack.numel() == 0, "does not pay")
            return
        meta = glyd_gpu.PackedMeta.from_tensor(by_codec)
        known = meta.as_list()

        def line(operator: str, ok: bool, tokens: int = 0, kernel: str = "", error: float = 0, note: str = "") -> Line:
            return Line(operator, layout, kind, rows, cols, meta.n_exceptions, tokens, kernel, error, ok, note)

        yield line("pack", torch.equal(pack.cpu(), by_codec), note=f"{meta.bits_per_weight:.3f} bits a weight")
        pack = by_codec.to(self.device)
        yield line("unpack", same_bits(torch.ops.glyd.unpack(pack, known).cpu(), weight))
        yield line("oracle", same_bits(_oracle.unpack(pack, known).cpu(), weight))
        verdict = torch.ops.glyd.check_pack(pack, known).tolist()
        yield line("check_pack", verdict[0] == 0, note=f"found {verdict}" if verdict[0] else "")
        ids = torch.cat([torch.randint(0, rows, (33,)), torch.tensor([0, rows - 1])]).to(self.device)
        found = torch.ops.glyd.embedding(ids, pack, known)
        yield line("embedding", same_bits(found.cpu(), weight[ids.cpu()]), tokens=ids.numel())
        for tokens in self.tokens:
            x = torch.randn(tokens, cols).to(torch.bfloat16).to(self.device)
            bias = torch.randn(rows).to(torch.bfloat16).to(self.device) if tokens % 2 else None
            exact = torch.ops.glyd.linear(x, pack, known, bias, EXACT)
            yield line("linear exact", same_bits(exact, F.linear(x, there, bias)), tokens, "decode")
            if kind in _matrices.FINITE:
                yield from self._products(x, there, bias, pack, known, line)
        if kind in _matrices.FINITE and rows % BLOCK_ROWS == 0:
            yield self._experts(there, pack, known, line)
        if self.mutations:
            yield line("broken packs", self._broken(pack, known), note=f"{self.mutations} packs")

    def _products(
        self,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        pack: torch.Tensor,
        meta: list[int],
        line: Any,
    ) -> Iterator[Line]:
        tokens = x.shape[0]
        for name, mode in (("fast", FAST), ("invariant", INVARIANT)):
            y = torch.ops.glyd.linear(x, pack, meta, bias, mode)
            problems = []
            if not all(same_bits(torch.ops.glyd.linear(x, pack, meta, bias, mode), y) for _ in range(2)):
                problems.append("other bits at another run")
            kernel = "reference"
            if self.device.type == "cuda":
                kernel = _routes.choose(meta, tokens, self.device).kernel if mode == FAST else "generic"
            error, good = close(y, x, weight, bias)
            if kernel in {"decode", "reference"}:
                # torch's own product, which may add in less than fp32: its bits, whatever they are
                good = same_bits(y, F.linear(x, weight, bias))
            elif mode == INVARIANT:
                alone = [torch.ops.glyd.linear(x[i : i + 1], pack, meta, bias, mode) for i in range(min(tokens, 5))]
                if not same_bits(torch.cat(alone), y[:5]):
                    problems.append("other bits in another batch")
            ok = good and not problems and error <= LIMIT
            yield line(f"linear {name}", ok, tokens, kernel, error, "; ".join(problems))

    def _experts(self, weight: torch.Tensor, pack: torch.Tensor, meta: list[int], line: Any) -> Line:
        """Multiply rows of x with row blocks of the matrix as experts, some named more than once."""
        rows, cols = weight.shape
        ids = torch.randint(0, rows // BLOCK_ROWS, (9,)).to(self.device)
        x = torch.randn(9, cols).to(torch.bfloat16).to(self.device)
        y = torch.ops.glyd.linear_experts(x, ids, pack, meta, BLOCK_ROWS)
        worst, good = 0.0, same_bits(torch.ops.glyd.linear_experts(x, ids, pack, meta, BLOCK_ROWS), y)
        for slot, expert in enumerate(ids.tolist()):
            mine = weight[expert * BLOCK_ROWS : (expert + 1) * BLOCK_ROWS]
            if self.device.type == "cuda":
                error, close_by = close(y[slot : slot + 1], x[slot : slot + 1], mine, None)
            else:  # torch's own product
                expected = F.linear(x[ids == expert], mine)[int((ids[:slot] == expert).sum())]
                error, close_by = 0.0, same_bits(y[slot], expected)
            worst, good = max(worst, error), good and close_by and error <= LIMIT
        kernel = "generic" if self.device.type == "cuda" else "reference"
        found: Line = line("linear experts", good, ids.numel(), kernel, worst)
        return found

    def _broken(self, pack: torch.Tensor, meta: list[int]) -> bool:
        """Run broken packs; on the CPU each is refused or decoded, on a GPU nothing may fail."""
        generator = torch.Generator().manual_seed(7)
        known = glyd_gpu.PackedMeta.from_list(meta)
        head = known.tiles_at
        for number in range(self.mutations):
            broken = pack.cpu().clone()
            # most of what a kernel takes as a place is before the tiles, in escapes and in places
            limit = head if number % 2 else broken.numel()
            for _ in range(1 + number % 7):
                at = int(torch.randint(0, limit, (1,), generator=generator))
                broken[at] = int(torch.randint(0, 256, (1,), generator=generator))
            if number % 5 == 0:
                broken[128:head] = 0xFF
            if number % 5 == 1 and known.n_escape_units:
                broken[known.escapes_at : known.places_at] = 0xFF
            if number % 5 == 2:
                broken[known.places_at :] = 0xFF
            there = broken.to(self.device)
            if self.device.type == "cuda" and not self._same_verdict(broken, there, meta):
                return False
            x = torch.zeros(9, meta[2], dtype=torch.bfloat16, device=self.device)
            ids = torch.tensor([0, meta[1] - 1], device=self.device)
            ops = torch.ops.glyd
            calls: tuple[tuple[Any, ...], ...] = (
                (ops.unpack, there, meta),
                (ops.embedding, ids, there, meta),
                (ops.linear, x, there, meta, None, FAST),
                (ops.linear, x, there, meta, None, INVARIANT),
            )
            if meta[1] % BLOCK_ROWS == 0:
                experts = torch.arange(9, device=self.device) - 1  # one that the stack does not have, too
                calls = (*calls, (ops.linear_experts, x, experts, there, meta, BLOCK_ROWS))
            for operator, *args in calls:
                try:
                    operator(*args)
                except glyd_codec.FormatError:
                    if self.device.type == "cuda":
                        return False
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return True

    @staticmethod
    def _same_verdict(broken: torch.Tensor, there: torch.Tensor, meta: list[int]) -> bool:
        """Say whether device and codec agree on a broken pack; one whose header is broken is not asked about."""
        try:
            by_codec = torch.ops.glyd.check_pack(broken, meta).tolist()
        except glyd_codec.FormatError:
            return True
        by_device = torch.ops.glyd.check_pack(there, meta).tolist()
        return bool(by_codec[0]) == bool(by_device[0]) and (not by_codec[0] or by_codec[1] == by_device[1])


def describe(device: torch.device) -> dict[str, Any]:
    """Return what is checked, and where."""
    facts: dict[str, Any] = {"glyd_gpu": glyd_gpu.__version__, "torch": torch.__version__, "device": str(device)}
    if device.type == "cuda":
        facts["backend"] = "cuda"
        facts["name"] = torch.cuda.get_device_name(device)
        facts["library"] = str(library_path())
        facts["architectures"] = architectures()
    else:
        facts["backend"] = "reference (the codec's packer and torch on the CPU)"
    return facts


def main(argv: Sequence[str] | None = None) -> int:
    """Run the checks from the command line; 0 when all pass."""
    parser = argparse.ArgumentParser(prog="python -m glyd_gpu.check", description="Check every operator of glyd-gpu.")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--quick", action="store_true", help="small matrices and few token counts")
    parser.add_argument(
        "--mutations", type=int, default=0, metavar="N", help="run N broken packs of every matrix as well"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    parser.add_argument("--failures", action="store_true", help="print failing lines only")
    options = parser.parse_args(argv)
    device = torch.device(options.device)
    facts = describe(device)
    if not options.json:
        print(", ".join(f"{k} {v if not isinstance(v, list) else ' '.join(v)}" for k, v in facts.items()), flush=True)
    started = time.monotonic()
    checker = Checker(device, QUICK_TOKENS if options.quick else TOKENS, options.mutations)
    lines = []
    for line in checker.run(QUICK_MATRICES if options.quick else MATRICES):
        lines.append(line)
        if not options.json and not (options.failures and line.ok):
            print(line.text(), flush=True)
    failed = sum(not line.ok for line in lines)
    if options.json:
        print(json.dumps({**facts, "checks": [asdict(line) for line in lines], "failed": failed}))
    else:
        print(f"{len(lines)} checks, {failed} failed, {time.monotonic() - started:.1f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""How vLLM is started for a model on this machine: GPUs, share of their memory, window, flags."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from glyd_cli.errors import UsageError
from glyd_cli.report import size_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from glyd import FitReport
    from glyd_cli.machine import Card
    from glyd_cli.serve import ServeOptions

CONTEXT_MAX = 32768  # unless asked for, as with the other engine
CONTEXT_MIN = 64
SHARE_MAX = 0.92  # of a GPU's memory: what vLLM's own default is
SHARE_MIN = 0.05
SPARE_NBYTES = 500_000_000  # of the free memory is left to others
RUNTIME_NBYTES = 3_500_000_000  # activations of 8,192 tokens, captured graphs, libraries
SLOTS = 256
TENSOR_PARALLEL = ("--tensor-parallel-size", "-tp")


@dataclass(frozen=True)
class Plan:
    """A start of vLLM.

    Attributes
    ----------
    context
        Window in tokens.
    share
        Of the memory of each GPU; None where vLLM runs on the CPU.
    gpus
        That share the layers.
    layout
        Of the weights.
    weight_nbytes
        Of all GPUs together.
    eager
        No graphs are captured.
    """

    context: int
    share: float | None
    gpus: int
    layout: str
    weight_nbytes: int
    eager: bool = False
    flags: list[str] = field(default_factory=list)

    def command(self, options: ServeOptions, name: str, port: int, entry: Sequence[str]) -> list[str]:
        """Return the command line of vLLM, which begins with ``entry``: Python, a module, and what comes before MODEL."""
        glyd = {"layout": self.layout, "exact": options.exact, "verify": options.verify}
        command = [*entry, options.model]
        command += ["--host", "127.0.0.1", "--port", str(port), "--served-model-name", name]
        command += ["--max-model-len", str(self.context), "--max-num-seqs", str(options.slots or SLOTS)]
        command += ["--quantization", "glyd", "--additional-config", json.dumps({"glyd": glyd})]
        command += ["--generation-config", "vllm"]  # what the model advises is added before
        if self.share is not None:
            command += ["--gpu-memory-utilization", f"{self.share:.3f}"]
        if self.gpus > 1:
            command += ["--tensor-parallel-size", str(self.gpus)]
        if self.eager:
            command += ["--enforce-eager"]
        if options.revision is not None:
            command += ["--revision", options.revision]
        if options.trust_remote_code:
            command += ["--trust-remote-code"]
        return command + self.flags

    def shorter(self, context: int) -> Plan:
        """Return this with another window."""
        return replace(self, context=context)


def wanted_gpus(flags: Sequence[str]) -> int | None:
    """Return the tensor parallel size among vLLM's flags, None when it is not there.

    Raises
    ------
    UsageError
        It is no number.
    """
    for place, word in enumerate(flags):
        name, _, value = word.partition("=")
        if name in TENSOR_PARALLEL:
            text = value or (flags[place + 1] if place + 1 < len(flags) else "")
            if not text.isdigit() or int(text) < 1:
                raise UsageError(f"{name} takes a number of GPUs, found {text!r}")
            return int(text)
    return None


def make_plan(options: ServeOptions, report: FitReport, config: dict[str, Any], cards: Sequence[Card] | None) -> Plan:
    """Work out a start of vLLM.

    Parameters
    ----------
    options
        What the user asked for.
    report
        Sizes of the model.
    config
        Its ``config.json``.
    cards
        The GPUs; None or empty: vLLM's build for the CPU.

    Raises
    ------
    UsageError
        Something does not fit or cannot be divided; the message says what to do.
    """
    flags = list(options.engine_flags)
    asked = wanted_gpus(flags)
    heads = _heads(config)
    if asked is not None and heads is not None and heads % asked:
        good = ", ".join(str(n) for n in range(1, min(heads, 16) + 1) if heads % n == 0)
        raise UsageError(f"{heads} attention heads cannot be divided by {asked} GPUs: one of {good} can")
    own = report.max_context or CONTEXT_MAX
    if options.context is not None and options.context > own:
        raise UsageError(f"--context {options.context} is more than the model's window of {own} tokens")
    context = options.context or min(own, CONTEXT_MAX)
    if not cards:
        layout = report.packed or ("mma12" if options.layout == "auto" else options.layout)
        return Plan(context, None, asked or 1, layout, report.weights[layout].nbytes, flags=_without_gpus(flags))
    if asked is not None and asked > len(cards):
        raise UsageError(
            f"{asked} GPUs were asked for, {len(cards)} are here: use fewer, or more machines (docs/serving.md, Ray)"
        )
    gpus, layout = _choose(options, report, heads, cards, asked)
    used = cards[:gpus]
    weights = report.weights[layout].nbytes
    free = min(card.free_nbytes for card in used)
    total = max(card.total_nbytes for card in used)
    share = min(SHARE_MAX, math.floor(1000 * (free - SPARE_NBYTES) / total) / 1000)
    room = int(share * total) - weights // gpus - RUNTIME_NBYTES
    each = -(-(report.kv_token_nbytes or 0) // gpus)
    least = (options.context or CONTEXT_MIN) * each
    if share < SHARE_MIN or room < least:
        raise UsageError(_too_large(options, weights, gpus, layout, free, least))
    if each:
        context = min(context, room // each)
    return Plan(context, share, gpus, layout, weights, flags=_without_gpus(flags))


def _without_gpus(flags: Sequence[str]) -> list[str]:
    """Return flags without the tensor parallel size, which the command line has from the plan."""
    kept, skip = [], False
    for word in flags:
        if skip:
            skip = False
        elif word in TENSOR_PARALLEL:
            skip = True
        elif word.partition("=")[0] not in TENSOR_PARALLEL:
            kept.append(word)
    return kept


def _heads(config: dict[str, Any]) -> int | None:
    text = config.get("text_config") or config
    heads = text.get("num_attention_heads")
    return int(heads) if heads else None


def _choose(
    options: ServeOptions, report: FitReport, heads: int | None, cards: Sequence[Card], asked: int | None
) -> tuple[int, str]:
    """Return how many GPUs and which layout: the fewest, then the faster."""
    layouts = (
        [report.packed] if report.packed else (["mma12", "tiered"] if options.layout == "auto" else [options.layout])
    )
    counts = [asked] if asked else [n for n in range(1, len(cards) + 1) if heads is None or heads % n == 0]
    context = options.context or CONTEXT_MIN
    for n in counts:
        free = min(card.free_nbytes for card in cards[:n]) - SPARE_NBYTES
        kv = context * (report.kv_token_nbytes or 0) // n
        for layout in layouts:
            weights = report.weights[layout].nbytes // n
            # where both fit, the faster one must leave half of the memory for the KV cache
            crowded = layout == "mma12" and len(layouts) > 1 and weights > free / 2
            if not crowded and weights + RUNTIME_NBYTES + kv <= free:
                return n, layout
    return counts[-1], layouts[-1]


def _too_large(options: ServeOptions, weights: int, gpus: int, layout: str, free: int, kv: int) -> str:
    where = "the GPU" if gpus == 1 else f"each of {gpus} GPUs"
    need = weights // gpus + RUNTIME_NBYTES + kv
    return (
        f"{options.model} takes {size_text(need)} of {where} ({layout}, its KV cache for "
        f"{options.context or CONTEXT_MIN} tokens included), {size_text(free)} are free: glyd fit says what fits"
    )

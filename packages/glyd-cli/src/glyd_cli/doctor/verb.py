# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The command line of ``glyd doctor``, and its table."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from glyd_cli import machine
from glyd_cli.doctor import checks
from glyd_cli.doctor.known import CONTEXT, KNOWN
from glyd_cli.errors import Exit, UsageError, shown
from glyd_cli.report import print_text, size_text

if TYPE_CHECKING:
    from collections.abc import Sequence

HELP = """\
glyd doctor [--json]    what works here, what does not, and what to do about it

  ok  as it should be     !!  works, but could be better     NO  does not work

  Exit status 0 when nothing is NO, else 2. Below the checks: which models fit
  into the memory that is free now, packed; glyd fit MODEL says it of any model.
"""


def run_doctor(words: Sequence[str]) -> Exit:
    """Look at everything and print it.

    Raises
    ------
    UsageError
        The command line is not understood.
    """
    if "-h" in words or "--help" in words:
        print_text(HELP)
        return Exit.OK
    other = [word for word in words if word != "--json"]
    if other:
        raise UsageError(f"doctor takes --json and nothing else, found {other[0]!r}")
    cards = machine.cards()
    facts = checks.gpu_facts()
    found = machine.memory()
    rows = [
        checks.python(),
        checks.path(),
        checks.codec(),
        checks.gpus(cards),
        checks.driver(cards, facts),
        checks.gpu_memory(cards),
        checks.torch(cards, facts),
        checks.kernels(cards, facts),
        checks.hook(),
        checks.engine(facts),
        checks.compiler(),
        checks.memory(found),
        checks.disk(),
        checks.hub(),
        checks.port(),
    ]
    report = [row for row in rows if row is not None]
    where, free = memory_for_models(cards, facts, found)
    models = fitting(free)
    good = all(row.state != checks.NO for row in report)
    if "--json" in words:
        body = {
            "ok": good,
            "checks": [dataclasses.asdict(row) for row in report],
            "memory": {"where": where, "free_nbytes": free},
            "models": models,
        }
        print_text(json.dumps(body, indent=2) + "\n")
    else:
        print_text("\n".join([*_table(report), "", *_models(where, free, models)]) + "\n")
    return Exit.OK if good else Exit.IO


def memory_for_models(
    cards: list[machine.Card] | None, facts: dict[str, Any] | None, found: machine.Memory
) -> tuple[str, int | None]:
    """Return where a model would go now, and the bytes that are free there."""
    usable = bool(((facts or {}).get("cuda") or {}).get("available"))
    if cards and usable:
        best = max(cards, key=lambda c: c.free_nbytes)
        return f"GPU {best.index} ({best.name})", best.free_nbytes
    return "the CPU's memory", found.free_nbytes


def fitting(free_nbytes: int | None) -> list[dict[str, Any]]:
    """Return, for every model of the list, the context that fits packed and as bf16 (0: none)."""
    return [
        {
            "model": one.name,
            "weights_nbytes": one.packed_nbytes,
            "plain_nbytes": one.plain_nbytes,
            "max_context": one.context_in(free_nbytes or 0),
            "plain_max_context": one.context_in(free_nbytes or 0, packed=False),
        }
        for one in KNOWN
    ]


def _table(rows: Sequence[checks.Check]) -> list[str]:
    width = max(len(row.name) for row in rows)
    lines = []
    for row in rows:
        lines.append(f"{row.state:2}  {row.name:{width}}  {shown(row.found)}")
        if row.fix:
            lines.append(f"    {'':{width}}  → {shown(row.fix)}")
    return lines


def _models(where: str, free: int | None, models: Sequence[dict[str, Any]]) -> list[str]:
    if free is None:
        return ["How much memory is free is not known: glyd fit MODEL --gpu SIZE says what fits."]
    lines = [f"What fits now into {where}, {size_text(free)} free, with a window of {CONTEXT:,} tokens or more:"]
    width = max(len(one["model"]) for one in models)
    for one in models:
        if not one["max_context"]:
            continue
        plain = "" if one["plain_max_context"] else "; as bf16 it would not"
        lines.append(
            f"  {one['model']:{width}}  {size_text(one['weights_nbytes']):>7}, "
            f"window up to {one['max_context']:,}{plain}"
        )
    left = [one for one in models if not one["max_context"]]
    if len(left) == len(models):
        lines.append("  none of the list")
    elif left:
        smallest = min(left, key=lambda one: int(one["weights_nbytes"]))
        lines.append(f"  not {smallest['model']} ({size_text(smallest['weights_nbytes'])}) and larger ones")
    lines.append("glyd fit MODEL says it of any model.")
    return lines

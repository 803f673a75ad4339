# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""From a command line to a running vLLM: what fits, then a start, then what the API says of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import transformers

import glyd
from glyd_cli import machine
from glyd_cli.errors import FileError, UsageError, file_error
from glyd_cli.report import size_text
from glyd_cli.serving.causes import cause_of
from glyd_cli.serving.loading import model_name
from glyd_cli.serving.transformers_engine import describe_config
from glyd_cli.serving.vllm_engine import VllmEngine
from glyd_cli.serving.vllm_plan import SLOTS, make_plan
from glyd_cli.serving.vllm_process import VllmProcess

if TYPE_CHECKING:
    from glyd_cli.report import Reporter
    from glyd_cli.serve import ServeOptions


def start_vllm(options: ServeOptions, reporter: Reporter) -> tuple[VllmEngine, Any, str, int]:
    """Return the engine, the tokenizer, where the model is, and how many requests run at once.

    Raises
    ------
    FileError, UsageError, GlydError
        With cause and cure.
    """
    hub: dict[str, Any] = {"trust_remote_code": options.trust_remote_code}
    if options.revision is not None:
        hub["revision"] = options.revision
    try:
        config = transformers.AutoConfig.from_pretrained(options.model, **hub)
        tokenizer = transformers.AutoTokenizer.from_pretrained(options.model, **hub)
    except Exception as error:
        raise FileError(options.model, cause_of(error)) from error
    inner = getattr(tokenizer, "_tokenizer", None)
    if inner is None:
        raise UsageError(f"{options.model} has no fast tokenizer (tokenizer.json): convert its tokenizer first")
    try:
        report = glyd.fit(options.model, context=options.context or 64, revision=options.revision)
    except OSError as error:
        raise file_error(error, options.model) from error
    cards = machine.cards() if options.device is None or options.device != "cpu" else None
    cards = _visible(options, cards)
    plan = make_plan(options, report, config.to_dict(), cards)
    name = model_name(options)
    where = _where(cards, plan.gpus)
    reporter.say(
        f"glyd: vLLM on {where}: {plan.layout} weights {size_text(plan.weight_nbytes)}, window {plan.context} tokens"
        + (f", {plan.share:.0%} of the memory" if plan.share is not None else "")
    )
    process = VllmProcess(options, plan, name, reporter)
    try:
        process.start()
    except BaseException:  # Ctrl-C as well: nothing may go on in the background
        process.stop()
        raise
    generation = None
    folder = Path(options.model)
    if not folder.is_dir() or (folder / "generation_config.json").is_file():
        generation = transformers.GenerationConfig.from_pretrained(options.model, **hub)
    info = describe_config(
        config,
        generation,
        name,
        context=process.plan.context,
        layout=process.plan.layout,
        weight_nbytes=process.plan.weight_nbytes,
    )
    slots = options.slots or SLOTS
    return VllmEngine(process, inner, info, n_slots=slots, n_queue=options.queue), tokenizer, f"{where} (vLLM)", slots


def _visible(options: ServeOptions, cards: list[machine.Card] | None) -> list[machine.Card] | None:
    """Return the cards that may be used: the one that was named, or all."""
    if not cards or options.device is None:
        return cards
    number = options.device.partition(":")[2] or "0"
    found = [card for card in cards if str(card.index) == number]
    if not found:
        raise UsageError(f"there is no GPU {number}, {len(cards)} are here, counted from 0")
    return found


def _where(cards: list[machine.Card] | None, gpus: int) -> str:
    if not cards:
        return "cpu"
    return cards[0].name if gpus == 1 else f"{gpus} × {cards[0].name}"

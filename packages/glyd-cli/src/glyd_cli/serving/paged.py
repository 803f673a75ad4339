# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Steps of the batch with attention on the pages of the cache: no masks, no copies, and CUDA graphs.

transformers schedules requests, hands out pages and shares prefixes. Its own preparation of a step would gather the
cache of all requests into one sequence and mask what is others', in a row of the mask for each token: time and memory
grow with the product of both. Here a step is the newest token of every answer, by a kernel that reads tables of pages
(`torch.ops.glyd.paged_attention`), and prompts, each a call of torch's attention. Where every request has one token,
the step is a CUDA graph for so many rows, whatever the lengths.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch.nn.attention.bias import causal_lower_right
from transformers import AttentionInterface
from transformers.generation.continuous_batching.requests import TMP_TOKEN_ID

from glyd_cli.serving.pages import Pages
from glyd_cli.serving.sampling import draw

if TYPE_CHECKING:
    from collections.abc import Callable

    from glyd_cli.serving.pages import Group
    from glyd_cli.serving.sampling import Draw

ATTENTION = "glyd_paged"
_REFUSED = ("softcap", "position_bias", "s_aux", "dropout")
_QUERIES = 1024  # that see a window at once: the mask has a column for each, and for the window


@dataclass
class Prompt:
    """A prompt, or the part of it that a step runs.

    Attributes
    ----------
    first, n
        Its rows in the step.
    past
        By group, where the tokens before these are that they still see; None: there are none.
    """

    first: int
    n: int
    past: list[torch.Tensor] | None


@dataclass
class Write:
    """Where keys and values of the prompts' rows go, in the layers of a group.

    Attributes
    ----------
    slots
        One for each row that is kept.
    rows
        Which those are; None: all.
    """

    slots: torch.Tensor
    rows: torch.Tensor | None


@dataclass
class Plan:
    """A step: rows of answers first, a token each, then those of prompts."""

    n_answers: int = 0
    tables: list[torch.Tensor] = field(default_factory=list)  # by group
    lengths: torch.Tensor | None = None
    prompts: list[Prompt] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)  # by group


class PagedSteps:
    """Stands where transformers prepares a step, runs the model and samples.

    Parameters
    ----------
    processor
        The batch processor of transformers.
    context
        Most tokens of a request.
    graphs
        Capture steps in CUDA graphs.
    """

    def __init__(self, processor: Any, *, context: int, graphs: bool) -> None:
        io, runner = processor.inputs_and_outputs, processor.model_runner
        self._pages = Pages(processor.cache)
        self._io = io
        self._device = torch.device(io.device)
        self._most = int(runner.cb_config.max_requests_per_batch)
        widths = [group.width(context) for group in self._pages.groups]
        pinned = self._device.type == "cuda"
        # of answers: token, position, length; and tables of pages by group
        self._host = torch.zeros((3, self._most), dtype=torch.int32, pin_memory=pinned)
        self._host_tables = [torch.zeros((self._most, w), dtype=torch.int32, pin_memory=pinned) for w in widths]
        self._rows, self._table_rows = self._host.numpy(), [table.numpy() for table in self._host_tables]
        self._small = torch.zeros((3, self._most), dtype=torch.int32, device=self._device)
        self._tables = [torch.zeros((self._most, w), dtype=torch.int32, device=self._device) for w in widths]
        self._known: list[list[list[int]]] = [[[]] * self._most for _ in widths]  # pages that a row of a table has
        self._pool = torch.cuda.graph_pool_handle() if graphs else None
        self._graphs: dict[int, tuple[Any, torch.Tensor]] = {}
        self._seen: set[int] = set()
        self._draws: list[Draw | None] = []
        self._wanted: list[int] = []
        self._inputs: tuple[list[int], list[int]] = ([], [])
        self._plan = Plan()
        self._update: tuple[list[Any], list[int], None] = ([], [], None)
        runner.pad_inputs = False
        io.prepare_batch_tensors = self.prepare
        io.get_model_kwargs = lambda use_padding=False: {"logits_indices": None}  # noqa: ARG005 - the call's own name
        io.prepare_batch_update = lambda: self._update
        runner._forward_process_and_sample = self.step  # noqa: SLF001 - no public place for it

    def prepare(self, requests_in_batch: list[Any], *_rest: Any, **_named: Any) -> None:
        """Take down what the next step runs; called in place of transformers' own."""
        requests = list(requests_in_batch)
        if not requests:
            raise ValueError("no requests in a batch")
        answers: list[tuple[int, Any]] = []
        prompts: list[tuple[int, Any]] = []
        for number, future in enumerate(requests):
            (answers if future.query_length == 1 else prompts).append((number, future))
        last: dict[int, int] = {}
        for place, (number, future) in enumerate(answers):
            self._note_answer(place, future.state)
            last[number] = place
        tokens: list[int] = []
        positions: list[int] = []
        plan = Plan(n_answers=len(answers))
        for number, future in prompts:
            state, n = future.state, future.query_length
            past = state.position_offset
            first = len(answers) + len(tokens)
            before = [g.slots(state.request_id, g.seen(past), past).to(self._device) for g in self._pages.groups]
            plan.prompts.append(Prompt(first, n, before if past else None))
            tokens += state.tokens_to_process
            positions += range(past, past + n)
            last[number] = first + n - 1
        if prompts:
            plan.writes = [self._writes(group, [future for _, future in prompts]) for group in self._pages.groups]
        wanted = [(number, f) for number, f in enumerate(requests) if f.has_new_token]
        for future in requests:
            future.state.position_offset += future.query_length
        for _, future in wanted:
            future.state.tokens_to_process = [TMP_TOKEN_ID]
        self._wanted = [last[number] for number, _ in wanted]
        self._draws = [f.state.logit_processor_kwargs.get("draw") for _, f in wanted]
        self._plan, self._inputs = plan, (tokens, positions)
        self._update = (requests, [0] * len(wanted), None)
        self._io.requests_in_batch, self._io.num_request_in_batch = requests, len(requests)
        self._io.use_block_table = False

    def _writes(self, group: Group, prompts: list[Any]) -> Write:
        """Return where the tokens of prompts go in the layers of a group."""
        slots, rows, row = [], [], 0
        for future in prompts:
            past, end = future.state.position_offset, future.state.position_offset + future.query_length
            kept = group.kept(past, end)
            slots.append(group.slots(future.state.request_id, kept, end))
            rows.append(torch.arange(row + kept - past, row + end - past))
            row += end - past
        chosen = torch.cat(rows)
        return Write(torch.cat(slots).to(self._device), chosen.to(self._device) if len(chosen) < row else None)

    def _note_answer(self, row: int, state: Any) -> None:
        """Write down a row of the step: a request and its newest token."""
        place = state.position_offset
        self._rows[:, row] = state.tokens_to_process[0], place, place + 1
        for group, table, known in zip(self._pages.groups, self._table_rows, self._known, strict=True):
            pages = group.tables[state.request_id]
            if known[row] != pages:
                table[row, : len(pages)] = pages
                known[row] = pages[:]

    def step(self, model: Any, _batch: Any, _carry: Any, _before: Any, _out: Any) -> None:
        """Run a step, and draw the tokens that `prepare_batch_update` then gives."""
        logits = self._mixed(model) if self._plan.prompts else self._answers(model)
        rows = [row for row, d in enumerate(self._draws) if d is not None]
        if not rows:
            return
        scores = logits if len(rows) == len(logits) else logits[rows]
        drawn = draw(scores.float(), [d for d in self._draws if d is not None])
        tokens = self._update[1]
        for row, token in zip(rows, drawn, strict=True):
            tokens[row] = token

    def _send(self, n_rows: int) -> None:
        """Bring the rows of answers to the device; rows above are padding: of no length."""
        self._rows[:, self._plan.n_answers : n_rows] = 0
        self._small.copy_(self._host, non_blocking=True)
        for table, host in zip(self._tables, self._host_tables, strict=True):
            table[:n_rows].copy_(host[:n_rows], non_blocking=True)

    def _answers(self, model: Any) -> torch.Tensor:
        """Return the logits of a step in which every request has one token."""
        n = self._plan.n_answers
        if self._pool is None:
            self._send(n)
            return self._run(model, n)[self._wanted]
        rows = min(1 << (n - 1).bit_length(), self._most)
        self._send(rows)
        if rows in self._graphs:
            graph, logits = self._graphs[rows]
            graph.replay()
        else:
            logits = self._run(model, rows)
            if rows in self._seen:
                self._capture(model, rows)
            self._seen.add(rows)  # the first time, libraries choose and allocate
        return logits[:n] if self._wanted == list(range(n)) else logits[self._wanted]

    def _run(self, model: Any, n_rows: int) -> torch.Tensor:
        """Return the logits [rows, vocabulary] of the rows of answers."""
        plan = Plan(n_rows, [table[:n_rows] for table in self._tables], self._small[2, :n_rows])
        logits: torch.Tensor = model(
            input_ids=self._small[0:1, :n_rows],
            position_ids=self._small[1:2, :n_rows],
            use_cache=False,
            glyd_pages=(self._pages, plan),
        ).logits
        return logits[0]

    def _capture(self, model: Any, n_rows: int) -> None:
        graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.current_stream()
        with torch.cuda.graph(graph, pool=self._pool, stream=stream, capture_error_mode="thread_local"):
            logits = self._run(model, n_rows)
        self._graphs[n_rows] = graph, logits

    def _mixed(self, model: Any) -> torch.Tensor:
        """Return the logits of a step with prompts."""
        plan, (tokens, positions) = self._plan, self._inputs
        n = plan.n_answers
        self._send(n)
        plan.tables, plan.lengths = [table[:n] for table in self._tables], self._small[2, :n]
        prompts = torch.tensor([tokens, positions], dtype=torch.int32).to(self._device)
        both = torch.cat([self._small[:2, :n], prompts], dim=1)
        wanted = torch.tensor(self._wanted or [0], device=self._device)  # of none, products would have no rows
        keep: dict[str, Any] = {}
        if self._keeps(model):
            keep["logits_to_keep"] = wanted
        logits: torch.Tensor = model(
            input_ids=both[0:1], position_ids=both[1:2], use_cache=False, glyd_pages=(self._pages, plan), **keep
        ).logits
        return logits[0] if keep else logits[0, wanted]

    @staticmethod
    def _keeps(model: Any) -> bool:
        """Say whether a model can be told which logits to make."""
        asked: Callable[[], bool] | None = getattr(model, "_supports_logits_to_keep", None)
        return asked is not None and bool(asked())


def paged_attention(
    module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, _mask: Any, **kwargs: Any
) -> tuple[torch.Tensor, None]:
    """Attend on the pages of a batch; what transformers calls for `ATTENTION`.

    Raises
    ------
    ValueError
        The model attends in a way that is not known here.
    """
    asked = [name for name in _REFUSED if kwargs.get(name)]
    if asked or "glyd_pages" not in kwargs:
        raise ValueError(f"{type(module).__name__} attends with {', '.join(asked) or 'no pages'}: not on pages")
    pages, plan = kwargs["glyd_pages"]
    scale = kwargs.get("scaling") or query.shape[3] ** -0.5
    q, k, v = (x[0].transpose(0, 1) for x in (query, key, value))  # [rows, heads, channels]
    n = plan.n_answers
    number, k_cache, v_cache = pages.layer(module.layer_idx)
    group = pages.groups[number]
    if (kwargs.get("sliding_window") or 0) not in {0, group.window}:
        raise ValueError(
            f"layer {module.layer_idx} sees {kwargs['sliding_window']} tokens, and its pages are of {group.window}"
        )
    parts = []
    if n:
        of_answers = (q[:n], k_cache, v_cache, k[:n], v[:n], plan.tables[number], plan.lengths)
        parts.append(torch.ops.glyd.paged_attention(*of_answers, group.page, group.stride, scale, group.window))
    for prompt in plan.prompts:
        rows = slice(prompt.first, prompt.first + prompt.n)
        keys, values = k[rows], v[rows]
        if prompt.past is not None:  # before the new ones are written, in a ring over the oldest
            past = prompt.past[number]
            keys, values = torch.cat([k_cache[past], keys]), torch.cat([v_cache[past], values])
        parts.append(_causal(q[rows], keys, values, scale, group.window))
    if plan.prompts:
        write = plan.writes[number]
        for cache, new in ((k_cache, k[n:]), (v_cache, v[n:])):
            cache.index_copy_(0, write.slots, new if write.rows is None else new[write.rows])
    out = parts[0] if len(parts) == 1 else torch.cat(parts)
    return out.unsqueeze(0), None


def _causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, window: int) -> torch.Tensor:
    """Return the attention of the last tokens of a sequence, all [tokens, heads, channels]."""
    n, total = len(q), len(k)
    if window and total > window:
        return torch.cat([_windowed(q, k, v, scale, window, first) for first in range(0, n, _QUERIES)])
    mask: Any = None
    if n < total:
        mask = causal_lower_right(n, total)
        if q.device.type == "cpu":
            mask = torch.ones((n, total), dtype=torch.bool).tril(total - n)
    of_all = (x.transpose(0, 1).unsqueeze(0) for x in (q, k, v))
    out = F.scaled_dot_product_attention(*of_all, attn_mask=mask, is_causal=mask is None, scale=scale, enable_gqa=True)
    return out[0].transpose(0, 1)


def _windowed(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, window: int, first: int) -> torch.Tensor:
    """Return the attention of some queries from a number on, each to the newest tokens of a window."""
    past, end = len(k) - len(q), min(first + _QUERIES, len(q))
    least = max(0, past + first - window + 1)
    rows = torch.arange(past + first, past + end, device=q.device).unsqueeze(1)
    columns = torch.arange(least, past + end, device=q.device)
    mask = (columns <= rows) & (columns > rows - window)
    keys, values = (x[least : past + end].repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
    of_all = (x.transpose(0, 1).unsqueeze(0) for x in (q[first:end], keys, values))  # with a mask no heads are shared
    return F.scaled_dot_product_attention(*of_all, attn_mask=mask, scale=scale)[0].transpose(0, 1)


AttentionInterface.register(ATTENTION, paged_attention)

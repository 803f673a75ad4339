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

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch.nn.attention.bias import causal_lower_right
from transformers import AttentionInterface
from transformers.generation.continuous_batching import cache as batch_cache
from transformers.generation.continuous_batching.requests import TMP_TOKEN_ID

from glyd_cli.serving.sampling import draw

if TYPE_CHECKING:
    from collections.abc import Callable

    from glyd_cli.serving.sampling import Draw

ATTENTION = "glyd_paged"
_REFUSED = ("softcap", "position_bias", "s_aux", "dropout", "sliding_window")


def why_not(model: Any) -> str | None:
    """Return why a model cannot attend on pages; None: it can."""
    config = model.config.get_text_config()
    if model.dtype != torch.bfloat16:
        return f"it computes in {model.dtype}"
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    windows = getattr(config, "layer_types", None) is None and getattr(config, "sliding_window", None) is not None
    if kinds != {"full_attention"} or windows:
        return f"its layers are of other kinds: {', '.join(sorted(kinds)) if not windows else 'sliding window'}"
    if getattr(config, "attn_logit_softcapping", None) is not None or getattr(config, "kv_lora_rank", None) is not None:
        return "its attention is of another kind"
    heads = int(config.num_attention_heads)
    channels = int(getattr(config, "head_dim", None) or config.hidden_size // heads)
    if channels % 8 or channels > 256 or heads % int(getattr(config, "num_key_value_heads", None) or heads):
        return f"heads of {channels} channels"
    if not _knows_cache():
        return "this version of transformers keeps its cache in another way"
    if model.config._attn_implementation != "sdpa":  # noqa: SLF001 - no public place for it
        return f"it attends with {model.config._attn_implementation}"  # noqa: SLF001
    return None


def _knows_cache() -> bool:
    """Say whether transformers keeps the cache of a batch as `Pages` reads it."""
    names = set(inspect.unwrap(batch_cache.PagedAttentionCache.__init__).__code__.co_names)
    return "cache_allocators" in names or {"group_cache_managers", "key_cache", "value_cache"} <= names


class Pages:
    """The cache of a batch of transformers: tensors of layers, and the pages of requests.

    Attributes
    ----------
    page, stride
        Tokens of a page, and slots from one page of a layer to the next.
    """

    def __init__(self, cache: Any) -> None:
        self._layers: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        if hasattr(cache, "cache_allocators"):
            (allocator,) = cache.cache_allocators.values()
            self._tables = allocator.block_table
            self.page, self.stride = allocator.tokens_per_page, allocator.block_physical_stride
            for number, (k, v) in allocator._kv_token_views.items():  # noqa: SLF001 - no public place for them
                n = min(len(k), len(v))
                self._layers[number] = k[:n], v[:n]
        else:
            (manager,) = cache.group_cache_managers
            self._tables = manager.block_table
            self.page = self.stride = cache.block_size
            for number, (_, place) in cache.layer_index_to_group_indices.items():
                self._layers[number] = cache.key_cache[place], cache.value_cache[place]

    def layer(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the keys and values of a layer, [slots, key heads, channels]."""
        return self._layers[number]

    def of(self, request: str) -> list[int]:
        """Return the pages of a request."""
        pages: list[int] = self._tables[request]
        return pages

    def slots(self, request: str, n: int) -> torch.Tensor:
        """Return the places of a request's first tokens."""
        tokens = torch.arange(n)
        return torch.tensor(self.of(request))[tokens // self.page] * self.stride + tokens % self.page


@dataclass
class Prompt:
    """A prompt, or the part of it that a step runs.

    Attributes
    ----------
    first, n
        Its rows in the step.
    slots
        Of all its tokens so far where there are some before these; None: there are none.
    """

    first: int
    n: int
    slots: torch.Tensor | None


@dataclass
class Plan:
    """A step: rows of answers first, a token each, then those of prompts."""

    n_answers: int = 0
    tables: torch.Tensor | None = None
    lengths: torch.Tensor | None = None
    prompts: list[Prompt] = field(default_factory=list)
    slots: torch.Tensor | None = None  # where keys and values of the prompts' rows go


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
        width = -(-context // self._pages.page) + 1
        pinned = self._device.type == "cuda"
        # of answers: token, position, length; and tables of pages
        self._host = torch.zeros((3, self._most), dtype=torch.int32, pin_memory=pinned)
        self._host_tables = torch.zeros((self._most, width), dtype=torch.int32, pin_memory=pinned)
        self._rows, self._table_rows = self._host.numpy(), self._host_tables.numpy()
        self._small = torch.zeros((3, self._most), dtype=torch.int32, device=self._device)
        self._tables = torch.zeros((self._most, width), dtype=torch.int32, device=self._device)
        self._known: list[list[int]] = [[]] * self._most  # pages that a row of the tables has
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
        slots: list[torch.Tensor] = []
        plan = Plan(n_answers=len(answers))
        for number, future in prompts:
            state, n = future.state, future.query_length
            past = state.position_offset
            every = self._pages.slots(state.request_id, past + n)
            first = len(answers) + len(tokens)
            plan.prompts.append(Prompt(first, n, every.to(self._device) if past else None))
            slots.append(every[past:])
            tokens += state.tokens_to_process
            positions += range(past, past + n)
            last[number] = first + n - 1
        if slots:
            plan.slots = torch.cat(slots).to(self._device)
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

    def _note_answer(self, row: int, state: Any) -> None:
        """Write down a row of the step: a request and its newest token."""
        place = state.position_offset
        self._rows[:, row] = state.tokens_to_process[0], place, place + 1
        pages = self._pages.of(state.request_id)
        if self._known[row] != pages:
            self._table_rows[row, : len(pages)] = pages
            self._known[row] = pages[:]

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
        self._tables[:n_rows].copy_(self._host_tables[:n_rows], non_blocking=True)

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
        plan = Plan(n_rows, self._tables[:n_rows], self._small[2, :n_rows])
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
        plan.tables, plan.lengths = self._tables[:n], self._small[2, :n]
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
    k_cache, v_cache = pages.layer(module.layer_idx)
    parts = []
    if n:
        of_answers = (q[:n], k_cache, v_cache, k[:n], v[:n], plan.tables, plan.lengths)
        parts.append(torch.ops.glyd.paged_attention(*of_answers, pages.page, pages.stride, scale))
    if plan.prompts:
        k_cache.index_copy_(0, plan.slots, k[n:])
        v_cache.index_copy_(0, plan.slots, v[n:])
    for prompt in plan.prompts:
        rows = slice(prompt.first, prompt.first + prompt.n)
        if prompt.slots is None:
            keys, values = k[rows], v[rows]
        else:
            keys, values = k_cache[prompt.slots], v_cache[prompt.slots]
        parts.append(_causal(q[rows], keys, values, scale))
    out = parts[0] if len(parts) == 1 else torch.cat(parts)
    return out.unsqueeze(0), None


def _causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
    """Return the attention of the last tokens of a sequence, all [tokens, heads, channels]."""
    n, total = len(q), len(k)
    mask: Any = None
    if n < total:
        mask = causal_lower_right(n, total)
        if q.device.type == "cpu":
            mask = torch.ones((n, total), dtype=torch.bool).tril(total - n)
    of_all = (x.transpose(0, 1).unsqueeze(0) for x in (q, k, v))
    out = F.scaled_dot_product_attention(*of_all, attn_mask=mask, is_causal=mask is None, scale=scale, enable_gqa=True)
    return out[0].transpose(0, 1)


AttentionInterface.register(ATTENTION, paged_attention)

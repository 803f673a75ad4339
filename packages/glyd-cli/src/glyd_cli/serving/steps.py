# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""One step of the batch: the model, then our own draws; on CUDA the steps of running answers are captured graphs.

transformers' engine would capture its sampling with the model. Ours asks the
host for grammars and random numbers, so that only the model is captured here, for
the shapes that come again: batches in which every answer gets one token, padded
to `Q_STEP` rows and `KV_STEP` tokens of the cache. Prompts run as they are.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import torch

from glyd_cli.serving.sampling import draw

if TYPE_CHECKING:
    from collections.abc import Callable

    from glyd_cli.serving.sampling import Draw

_KV_LEAST = 256  # tokens that the cache's part of a step is padded to
_ROW_UNIT = 16  # that prompts are padded to
_MOST_GRAPHS = 64


def padded(n_rows: int, n_cached: int, most_cached: int) -> tuple[int, int]:
    """Return the rows and the cached tokens that a step is padded to.

    Attention reads what is padded: on an H200 a step of one request with cached tokens padded to 8,192 took 24 ms
    whatever the weights, which is suspected to be why. So at most an eighth is added; a shape then lasts for as many steps as pay for its graph.

    Parameters
    ----------
    n_rows, n_cached
        Tokens of the step, and tokens that it reads from the cache.
    most_cached
        That the cache holds.
    """
    rows = 1 << (n_rows - 1).bit_length()
    unit = max(_KV_LEAST, (1 << max(n_cached, 1).bit_length()) >> 4)
    return rows, min(-(-n_cached // unit) * unit, most_cached)


class Steps:
    """Stands where transformers runs the model and samples.

    Parameters
    ----------
    runner
        Of transformers; its way of running a batch is replaced.
    draws
        Returns the requests that get a token in this batch, in order.
    graphs
        Capture steps: on CUDA, where the attention takes a mask.
    """

    def __init__(self, runner: Any, draws: Callable[[], list[Draw | None]], *, graphs: bool) -> None:
        self._runner = runner
        self._draws = draws
        self._graphs: OrderedDict[tuple[Any, ...], tuple[Any, torch.Tensor]] = OrderedDict()
        self._seen: set[tuple[Any, ...]] = set()
        self._pool = torch.cuda.graph_pool_handle() if graphs else None
        # shapes come again only when they are padded: for graphs, and on the CPU for oneDNN, which keeps code and
        # memory for each of the last thousand shapes (200 MiB in 1,500 requests to a model of 0.3 MB)
        runner.pad_inputs = True
        runner.maybe_pad_inputs = self._pad
        runner._forward_process_and_sample = self.step  # noqa: SLF001 - no public place for it

    def _pad(self, n_rows: int, n_cached: int, decode_fast_path: bool) -> tuple[int, int]:
        """Return the sizes that transformers pads a batch to."""
        if decode_fast_path:
            return n_rows, 0
        cache, most = self._runner.cache, self._runner.cb_config.max_requests_per_batch
        most_cached = getattr(cache, "max_tokens_read", None) or cache.num_pages
        rows, cached = padded(n_rows, n_cached, most_cached)
        if n_rows > most:  # prompts
            rows = -(-n_rows // _ROW_UNIT) * _ROW_UNIT
        return min(rows, cache.max_batch_tokens), cached

    def step(
        self, model: Any, batch: dict[str, Any], _carry: torch.Tensor, _before: torch.Tensor, out: torch.Tensor
    ) -> None:
        """Run a batch, and write the tokens drawn where transformers reads them.

        Parameters
        ----------
        model
            To run.
        batch
            What transformers gives it; tensors are parts of buffers that stay.
        out
            [1, tokens] int32: the tokens of the batch, in order.
        """
        logits = self._logits(model, batch)
        draws = self._draws()
        rows = [row for row, d in enumerate(draws) if d is not None]
        if not rows:  # transformers tries the model
            return
        scores = logits[: len(draws)]
        tokens = draw(scores[rows].float(), [d for d in draws if d is not None])
        out[0, rows] = torch.tensor(tokens, dtype=out.dtype, device=out.device)

    def _logits(self, model: Any, batch: dict[str, Any]) -> torch.Tensor:
        """Return [rows, vocabulary] logits of the rows that get a token."""
        key = self._key(batch)
        if key is None:
            return self._run(model, batch)
        if key in self._graphs:
            self._graphs.move_to_end(key)
            graph, logits = self._graphs[key]
            graph.replay()
            return logits
        logits = self._run(model, batch)
        if key in self._seen:
            self._capture(key, model, batch)
        self._seen.add(key)  # what comes once is not worth it
        return logits

    def _run(self, model: Any, batch: dict[str, Any]) -> torch.Tensor:
        logits: torch.Tensor = model(**batch).logits
        # models that can are told to make no other logits
        return logits[0] if "logits_to_keep" in batch else logits[0, batch["logits_indices"]]

    def _key(self, batch: dict[str, Any]) -> tuple[Any, ...] | None:
        """Return what makes two batches run the same kernels on the same buffers; None where no graph is made."""
        if self._pool is None or batch.get("attention_mask") is None or batch.get("block_table") is not None:
            return None
        io = self._runner.inputs_and_outputs
        if any(request.query_length != 1 for request in io.requests_in_batch):
            return None
        return tuple(_places(batch))

    def _capture(self, key: tuple[Any, ...], model: Any, batch: dict[str, Any]) -> None:
        """Record a step that has just run; it runs once more only when it is replayed."""
        while len(self._graphs) >= _MOST_GRAPHS:
            self._graphs.popitem(last=False)
        graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.current_stream()
        with torch.cuda.graph(graph, pool=self._pool, stream=stream, capture_error_mode="thread_local"):
            logits = self._run(model, batch)
        self._graphs[key] = graph, logits


def _places(value: Any) -> list[Any]:
    """Return address and shape of every tensor in a batch."""
    if isinstance(value, torch.Tensor):
        return [value.data_ptr(), tuple(value.shape)]
    if isinstance(value, dict):
        return [place for one in value.values() for place in _places(one)]
    if isinstance(value, (list, tuple)):
        return [place for one in value for place in _places(one)]
    return []

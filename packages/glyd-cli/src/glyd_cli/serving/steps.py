# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""One step of the batch as transformers prepares it: the model, then our own draws.

It is padded, so that shapes come again. Where the attention can work on pages, `paged` does all of it instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from glyd_cli.serving.sampling import draw

if TYPE_CHECKING:
    from collections.abc import Callable

    from glyd_cli.serving.sampling import Draw

_KV_LEAST = 256  # tokens that the cache's part of a step is padded to
_ROW_UNIT = 16  # that prompts are padded to


def padded(n_rows: int, n_cached: int, most_cached: int) -> tuple[int, int]:
    """Return the rows and the cached tokens that a step is padded to.

    Attention reads what is padded, so that at most an eighth is added.

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
    """

    def __init__(self, runner: Any, draws: Callable[[], list[Draw | None]]) -> None:
        self._runner = runner
        self._draws = draws
        # shapes come again only when they are padded: oneDNN keeps code and memory for each of the last thousand
        # (200 MiB in 1,500 requests to a model of 0.3 MB)
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
        logits = self._run(model, batch)
        draws = self._draws()
        rows = [row for row, d in enumerate(draws) if d is not None]
        if not rows:  # transformers tries the model
            return
        scores = logits[: len(draws)]
        tokens = draw(scores[rows].float(), [d for d in draws if d is not None])
        out[0, rows] = torch.tensor(tokens, dtype=out.dtype, device=out.device)

    def _run(self, model: Any, batch: dict[str, Any]) -> torch.Tensor:
        logits: torch.Tensor = model(**batch).logits
        # models that can are told to make no other logits
        return logits[0] if "logits_to_keep" in batch else logits[0, batch["logits_indices"]]

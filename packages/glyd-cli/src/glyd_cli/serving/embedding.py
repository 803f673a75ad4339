# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The engine of models that turn texts into vectors: one pass, pooled as the model's own files say.

The files are those of sentence-transformers, the form in which such models are
published: ``modules.json`` names the steps, a file beside it how tokens are pooled.
"""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import normalize
from transformers.utils import cached_file

from glyd_cli.errors import UsageError
from glyd_cli.serving.engine import EngineError, Load, ModelInfo, PromptTooLongError, QueueFullError

if TYPE_CHECKING:
    from pathlib import Path

    from tokenizers import Tokenizer
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

_BATCH = 64  # texts
_BATCH_TOKENS = 8192  # of a batch, padding included
_MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
}
_STEPS = {"Transformer", "Pooling", "Normalize"}


@dataclass(frozen=True, kw_only=True)
class Pooling:
    """How the vectors of a text's tokens become one.

    Attributes
    ----------
    mode
        ``mean``, ``max``, ``cls`` (the first token) or ``lasttoken``.
    normalized
        Vectors have length 1.
    most_tokens
        Of a text; None: as many as the model takes.
    prefix
        Put before every text.
    """

    mode: str = "mean"
    normalized: bool = True
    most_tokens: int | None = None
    prefix: str = ""


def read_pooling(model: str | Path, **hub: Any) -> Pooling | None:
    """Return how a model pools; None when its files do not say.

    Parameters
    ----------
    model
        Directory or id of a model on the hub.
    **hub
        ``revision``, ``local_files_only`` and the like.

    Raises
    ------
    UsageError
        It takes steps that are not known here.
    """

    def read(name: str) -> Any:
        path = cached_file(
            str(model),
            name,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
            **hub,
        )
        if path is None:
            return None
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    modules = read("modules.json")
    if modules is None:
        return None
    steps = {str(m["type"]).rpartition(".")[2]: str(m.get("path", "")) for m in modules}
    others = sorted(set(steps) - _STEPS)
    if others:
        raise UsageError(f"{model} makes vectors with a step that glyd does not know ({', '.join(others)})")
    config = (read(f"{steps['Pooling']}/config.json") if "Pooling" in steps else None) or {}
    named = config.get("pooling_mode")
    found = [named] if isinstance(named, str) else [n for n in config if n.startswith("pooling_mode") and config[n]]
    modes = [_MODES.get(name, name) for name in found] or ["mean"]
    if len(modes) != 1 or modes[0] not in _MODES.values():
        raise UsageError(f"{model} pools tokens in a way that glyd does not know ({', '.join(found)})")
    texts = read("config_sentence_transformers.json") or {}
    return Pooling(
        mode=modes[0],
        normalized="Normalize" in steps,
        most_tokens=(read("sentence_bert_config.json") or {}).get("max_seq_length"),
        prefix=(texts.get("prompts") or {}).get(texts.get("default_prompt_name")) or "",
    )


class EmbeddingEngine:
    """Serve a transformers model that makes vectors, packed or not.

    Parameters
    ----------
    model
        Loaded; its last hidden states are pooled.
    tokenizer
        Its tokenizer; a fast one.
    info
        What to say of it.
    pooling
        How.
    n_queue
        Most requests that wait.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        info: ModelInfo,
        pooling: Pooling,
        *,
        n_queue: int = 256,
    ) -> None:
        self.info = replace(info, task="embed", context=min(pooling.most_tokens or info.context, info.context))
        self.tokenizer: Tokenizer = tokenizer._tokenizer  # noqa: SLF001 - the fast tokenizer inside
        self.pooling = pooling
        self.width = int(model.config.get_text_config().hidden_size)
        self._model = model
        self._pad = int(tokenizer.pad_token_id or 0)
        self._n_queue = n_queue
        self._n_active = 0
        self._worker: ThreadPoolExecutor | None = None

    def start(self) -> None:
        """Begin to work."""
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="glyd-embedding")

    def stop(self) -> None:
        """End all requests."""
        if self._worker is not None:
            self._worker.shutdown(cancel_futures=True)
            self._worker = None

    def load(self) -> Load:
        """Return how much runs and waits."""
        running = min(self._n_active, 1)
        return Load(n_running=running, n_waiting=self._n_active - running)

    async def embed(self, texts: list[list[int]], n_values: int | None = None) -> torch.Tensor:
        """Return the vectors of texts, ``[texts, values]`` float32.

        Parameters
        ----------
        texts
            Token ids of each; none empty.
        n_values
            Keep that many of the first values of each vector, for models trained so that they mean something alone.

        Raises
        ------
        PromptTooLongError
            A text has more tokens than the model takes.
        QueueFullError
            Too many requests wait.
        EngineError
            The model failed.
        """
        for text in texts:
            if len(text) > self.info.context:
                raise PromptTooLongError(len(text), self.info.context, answered=False)
        if self._n_active > self._n_queue:
            raise QueueFullError(f"{self._n_queue} requests wait already")
        if self._worker is None:
            raise EngineError("the engine is not running")
        loop = asyncio.get_running_loop()
        out = torch.empty(len(texts), n_values or self.width)
        self._n_active += 1
        try:
            # a job for each batch: requests take turns, and nothing more runs for a client that went away
            for rows in _batches([len(t) for t in texts]):
                batch = [texts[row] for row in rows]
                out[rows] = await loop.run_in_executor(self._worker, self._run, batch, n_values)
        except RuntimeError as error:
            raise EngineError(str(error).partition("\n")[0]) from error
        finally:
            self._n_active -= 1
        return out

    @torch.inference_mode()
    def _run(self, batch: list[list[int]], n_values: int | None) -> torch.Tensor:
        width = max(map(len, batch))
        ids = torch.tensor([text + [self._pad] * (width - len(text)) for text in batch])
        lengths = torch.tensor([len(text) for text in batch])
        mask = (torch.arange(width) < lengths[:, None]).to(self._model.device)
        kw = {"use_cache": False} if self._model.can_generate() else {}
        hidden = self._model.base_model(
            input_ids=ids.to(self._model.device), attention_mask=mask.long(), **kw
        ).last_hidden_state.float()
        found = pooled(hidden, mask, self.pooling.mode)[:, :n_values]
        return (normalize(found, dim=-1) if self.pooling.normalized else found).cpu()


def pooled(hidden: torch.Tensor, mask: torch.Tensor, mode: str) -> torch.Tensor:
    """Return one vector a text.

    Parameters
    ----------
    hidden
        ``[texts, tokens, values]``.
    mask
        ``[texts, tokens]`` bool: which tokens are of the text; the first always is.
    mode
        See `Pooling`.

    Returns
    -------
    torch.Tensor
        ``[texts, values]``.
    """
    if mode == "cls":
        return hidden[:, 0]
    if mode == "lasttoken":
        return hidden[torch.arange(len(hidden), device=hidden.device), mask.sum(1) - 1]
    if mode == "max":
        return hidden.masked_fill(~mask[:, :, None], float("-inf")).amax(1)
    return (hidden * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)


def _batches(lengths: list[int]) -> list[list[int]]:
    """Return which texts go together: of like lengths, so that little is padding."""
    out: list[list[int]] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if not out or len(out[-1]) >= _BATCH or (len(out[-1]) + 1) * lengths[row] > _BATCH_TOKENS:
            out.append([])
        out[-1].append(row)
    return out

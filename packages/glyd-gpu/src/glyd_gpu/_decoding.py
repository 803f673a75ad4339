# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Greedy decoding with a static cache, its step captured in a CUDA graph.

What times models must not time Python: a step of an 8B model is launched in
more time than a GPU takes for it. The captured step feeds itself, so a replay
is one call. It runs for packed and plain models alike.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

from glyd_gpu._errors import ParameterError

ATTENTION = "glyd_grouped"
_ROUND = 64  # lengths of caches: kernels of attention want multiples of 8


def grouped_attention(
    module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attention_mask: Any, **kwargs: Any
) -> tuple[torch.Tensor, None]:
    """Attend as transformers' "sdpa" does, without a copy of the cache for every query head when there is one token.

    The query heads that share a key head are given as tokens of one head.

    Parameters
    ----------
    module, query, key, value, attention_mask, **kwargs
        As transformers calls attention: query [batch, heads, tokens, dim], key and value [batch, key heads, length,
        dim], mask [batch, 1, tokens, length].
    """
    from transformers.integrations.sdpa_attention import sdpa_attention_forward  # noqa: PLC0415

    batch, heads, tokens, dim = query.shape
    groups = heads // key.shape[1]
    plain = kwargs.get("position_bias") is None and not kwargs.get("dropout")
    if tokens != 1 or groups == 1 or attention_mask is None or not plain:
        out, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)
        return out, None
    together = query.view(batch, heads // groups, groups, dim)
    out = F.scaled_dot_product_attention(together, key, value, attn_mask=attention_mask, scale=kwargs.get("scaling"))
    return out.reshape(batch, 1, heads, value.shape[-1]), None


def _mask(*args: Any, **kwargs: Any) -> torch.Tensor | None:
    """Return the mask of "sdpa"; for one token as what is added, once for all layers."""
    from transformers.masking_utils import sdpa_mask  # noqa: PLC0415

    mask: torch.Tensor | None = sdpa_mask(*args, **kwargs)
    if mask is None or mask.shape[-2] != 1 or mask.dtype != torch.bool:
        return mask
    return torch.zeros(mask.shape, dtype=torch.bfloat16, device=mask.device).masked_fill_(~mask, float("-inf"))


def use_grouped_attention(model: Any) -> None:
    """Make a model attend with `grouped_attention`, where it attends with "sdpa" now."""
    from transformers import AttentionInterface  # noqa: PLC0415
    from transformers.masking_utils import AttentionMaskInterface  # noqa: PLC0415

    AttentionInterface.register(ATTENTION, grouped_attention)
    AttentionMaskInterface.register(ATTENTION, _mask)
    if model.config._attn_implementation == "sdpa" and model.dtype == torch.bfloat16:
        model.set_attn_implementation(ATTENTION)


@functools.cache
def _placed_layer() -> type:
    """Return the class of a static layer that writes where its decoder says, with no sums of its own in every layer."""
    from transformers.cache_utils import StaticLayer  # noqa: PLC0415

    class PlacedLayer(StaticLayer):
        """Keys and values at ``places`` [tokens]; ``cumulative_length`` is the decoder's, one for all layers."""

        places: torch.Tensor

        def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            del args, kwargs
            if not self.is_initialized:
                self.lazy_initialization(key_states, value_states)
            self.keys.index_copy_(2, self.places, key_states)
            self.values.index_copy_(2, self.places, value_states)
            return self.keys, self.values

    return PlacedLayer


class Decoder:
    """Continues a batch of prompts of one length, greedily.

    Parameters
    ----------
    model
        A causal language model of transformers, on one device.
    batch
        Prompts at a time.
    n_tokens
        Of prompt and continuation together, at most.

    Raises
    ------
    ParameterError
        The cache that the model wants cannot be captured (layers with sliding windows keep count on the host).
    """

    def __init__(self, model: Any, batch: int, n_tokens: int) -> None:
        from transformers import StaticCache  # noqa: PLC0415
        from transformers.cache_utils import StaticLayer  # noqa: PLC0415

        self.model = model
        self.device = model.device
        self.cache = StaticCache(config=model.config, max_cache_len=-(-n_tokens // _ROUND) * _ROUND)
        kinds = {type(layer) for layer in self.cache.layers}
        if kinds != {StaticLayer}:
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise ParameterError(
                f"a step of {type(model).__name__} cannot be captured: its cache has layers of {names}"
            )
        self.length = torch.zeros((), dtype=torch.int64, device=self.device)
        for layer in self.cache.layers:
            layer.__class__ = _placed_layer()
            layer.cumulative_length = self.length
        # transformers renames the argument; what the model's forward names is what it takes
        self._cache_name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
        self.ids = torch.zeros(batch, 1, dtype=torch.int64, device=self.device)
        self.position = torch.zeros(1, 1, dtype=torch.int64, device=self.device)
        self.tokens = torch.zeros(batch, n_tokens, dtype=torch.int64, device=self.device)
        self.logits: torch.Tensor | None = None
        self._graph: torch.cuda.CUDAGraph | None = None

    @torch.no_grad()
    def prefill(self, prompt: torch.Tensor) -> None:
        """Start anew with prompts [batch, tokens]: fills the cache and chooses the first token of each."""
        self.cache.reset()
        n = prompt.shape[1]
        places = torch.arange(n, device=self.device).unsqueeze(0)
        self._choose(self._forward(prompt, places))
        self.tokens[:, :n] = prompt
        self.tokens[:, n : n + 1] = self.ids
        self.position.fill_(n)

    def _forward(self, ids: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        for layer in self.cache.layers:
            layer.places = places.view(-1)
        cache = {self._cache_name: self.cache}
        out = self.model(input_ids=ids, position_ids=places, use_cache=True, logits_to_keep=1, **cache)
        self.length.add_(ids.shape[1])
        logits: torch.Tensor = out.logits
        return logits

    def _choose(self, logits: torch.Tensor) -> None:
        self.ids.copy_(logits[:, -1].argmax(-1, keepdim=True))

    @torch.no_grad()
    def step(self) -> None:
        """Run one step as it is."""
        self.logits = self._forward(self.ids, self.position)
        self._choose(self.logits)
        self.position.add_(1)
        self.tokens.scatter_(1, self.position.expand(self.tokens.shape[0], 1), self.ids)

    @torch.no_grad()
    def capture(self) -> None:
        """Capture the step; on the CPU nothing is done. The state must be set anew by `prefill`."""
        if self.device.type != "cuda":
            return
        stream = torch.cuda.Stream(self.device)
        stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(stream):
            for _ in range(2):  # what is made at first use must not be made while capturing
                self.step()
        torch.cuda.current_stream(self.device).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        self._graph = graph

    def rewind(self, n: int) -> None:
        """Go back to where `prefill` with prompts of n tokens left the cache; the last token stays where it is."""
        self.length.fill_(n)
        self.position.fill_(n)

    def run(self, n: int) -> None:
        """Run steps: replays of the captured one, if there is one. Does not wait for the device."""
        for _ in range(n):
            if self._graph is None:
                self.step()
            else:
                self._graph.replay()

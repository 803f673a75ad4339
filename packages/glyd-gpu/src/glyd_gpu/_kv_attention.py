# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Attention of transformers straight on a packed cache: one new token a sequence sees pages, not decoded copies.

A layer of `GlydKVCache` with ``direct`` on hands out the new keys and values
with a mark; the attention that is registered here finds the layer by it. All
else (prompts, other caches) is transformers' "sdpa".
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

from glyd_gpu import _kv_cuda
from glyd_gpu._errors import ParameterError
from glyd_gpu._kv_store import PagedTensor

ATTENTION = "glyd_kv"
MARK = "glyd_layer"
_REFUSED = ("softcap", "position_bias", "s_aux", "dropout")


def attend(
    q: torch.Tensor, keys: PagedTensor, values: PagedTensor, starts: torch.Tensor | None, scale: float
) -> torch.Tensor:
    """Attend with one token a sequence.

    Parameters
    ----------
    q
        bf16 [sequences, heads, channels].
    keys, values
        Of a layer.
    starts
        First token of the store that each sequence sees, int32 [sequences]; None: the first there is.
    scale
        Of scores.
    """
    if q.device.type == "cuda":
        pages = keys.addresses(), values.addresses()
        return _kv_cuda.attention(q, pages, (keys.tail, values.tail), starts, scale)
    k, v = keys.full(), values.full()
    batch, heads, channels = q.shape
    seen = None
    if starts is not None:
        seen = (torch.arange(k.shape[2]) >= starts.view(-1, 1)).view(batch, 1, 1, -1)
    # the query heads that share a key head as tokens of one head
    together = q.view(batch, k.shape[1], heads // k.shape[1], channels)
    out = F.scaled_dot_product_attention(together, k, v, attn_mask=seen, scale=scale)
    return out.reshape(batch, heads, v.shape[3])


def paged_attention(
    module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attention_mask: Any, **kwargs: Any
) -> tuple[torch.Tensor, None]:
    """Attend as transformers' "sdpa" does; on the pages where the cache has left them to us.

    Raises
    ------
    ParameterError
        The model attends in a way that the kernels do not know, or tokens that are not seen lie between others.
    """
    from transformers.integrations.sdpa_attention import sdpa_attention_forward  # noqa: PLC0415

    layer = getattr(key, MARK, None)
    if layer is None:
        out, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)
        return out, None
    asked = [name for name in _REFUSED if kwargs.get(name) is not None and kwargs[name] != 0]
    if asked:
        raise ParameterError(f"{type(module).__name__} attends with {', '.join(asked)}: not on a packed cache")
    keys, values = layer.stores
    hidden = keys.n_tokens - layer.n_seen  # tokens that only wait to be let go
    starts = None
    if attention_mask is not None or hidden:
        starts = torch.full((query.shape[0],), hidden, dtype=torch.int32, device=query.device)
    if attention_mask is not None:
        seen = attention_mask[:, 0, -1]
        first = seen.int().argmax(-1)
        together = (seen.sum(-1) + first == seen.shape[-1]).all()
        torch._assert_async(together, "tokens that are not seen lie between others: only padding on the left is known")
        starts = starts + first.to(torch.int32)
    scale = kwargs.get("scaling") or query.shape[3] ** -0.5
    out = attend(query[:, :, 0], keys, values, starts, scale)
    return out.unsqueeze(1), None


def register(model: Any) -> None:
    """Make a model attend with `paged_attention`, where it attends with "sdpa" now.

    Raises
    ------
    ParameterError
        It attends with something else.
    """
    from transformers import AttentionInterface  # noqa: PLC0415
    from transformers.masking_utils import AttentionMaskInterface, sdpa_mask  # noqa: PLC0415

    found = model.config._attn_implementation
    if found not in {"sdpa", ATTENTION}:
        raise ParameterError(f"the model attends with {found}, not sdpa: its steps cannot run on packed pages")
    AttentionInterface.register(ATTENTION, paged_attention)
    AttentionMaskInterface.register(ATTENTION, sdpa_mask)
    model.set_attn_implementation(ATTENTION)

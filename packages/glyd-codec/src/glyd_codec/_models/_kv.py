# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Memory that a model takes for each token it has read, from its config.json.

Where a configuration leaves a choice, the larger size is taken: what is said to
fit must fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_INNER = ("text_config", "language_config", "llm_config")
_ELEMENT_NBYTES = 2
_PAGE_TOKENS = 16  # caches are taken in pages
_COUNT_MAX = 1 << 31


@dataclass(frozen=True, slots=True)
class KvCache:
    """Bytes of keys and values of one sequence.

    Attributes
    ----------
    per_token_nbytes
        Of layers that keep every token.
    windows
        Tokens that a layer keeps at most, and bytes of each, for groups of layers.
    fixed_nbytes
        Of layers with a state of fixed size.
    basis
        What the sizes were derived from.
    """

    per_token_nbytes: int
    windows: tuple[tuple[int, int], ...]
    fixed_nbytes: int
    basis: str

    def nbytes(self, n_tokens: int) -> int:
        """Return the bytes of a sequence of so many tokens."""
        pages = -(-n_tokens // _PAGE_TOKENS) * _PAGE_TOKENS
        kept = sum(min(pages, -(-window // _PAGE_TOKENS) * _PAGE_TOKENS) * nbytes for window, nbytes in self.windows)
        return pages * self.per_token_nbytes + kept + self.fixed_nbytes


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of a configuration, each None where it has none.

    Attributes
    ----------
    hidden, intermediate, vocab
        Widths; ``intermediate`` is what one token passes through, of all its experts.
    max_context
        Tokens that the model was made for.
    """

    hidden: int | None
    intermediate: int | None
    vocab: int | None
    max_context: int | None


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of a configuration that describes the language model."""
    for name in _INNER:
        inner = config.get(name)
        if isinstance(inner, dict) and _count(inner, "num_hidden_layers", "n_layer"):
            return inner
    return config


def _count(config: Mapping[str, Any], *names: str) -> int | None:
    """Return the first of some numbers that is there."""
    for name in names:
        value = config.get(name)
        if type(value) is int and 0 < value < _COUNT_MAX:
            return value
    return None


def sizes(config: Mapping[str, Any]) -> Sizes:
    """Return the numbers of a configuration."""
    config = text_config(config)
    dense = _count(config, "intermediate_size", "n_inner", "ffn_hidden_size", "ffn_dim") or 0
    expert = _count(config, "moe_intermediate_size") or dense
    routed = expert * (_count(config, "num_experts_per_tok", "num_experts_per_token", "moe_topk", "top_k_experts") or 0)
    shared = _count(config, "shared_expert_intermediate_size") or expert * (_count(config, "n_shared_experts") or 0)
    hidden = _count(config, "hidden_size", "n_embd", "d_model")
    return Sizes(
        hidden,
        max(dense, routed + shared) or (4 * hidden if hidden else None),
        _count(config, "vocab_size"),
        _count(config, "max_position_embeddings", "n_positions", "max_sequence_length", "seq_length", "n_ctx"),
    )


def kv_cache(config: Mapping[str, Any]) -> KvCache | None:
    """Return the cache of a model; None when the configuration does not say enough."""
    config = text_config(config)
    n_layers = _count(config, "num_hidden_layers", "n_layer", "n_layers", "num_layers")
    n_heads = _count(config, "num_attention_heads", "n_head", "n_heads")
    hidden = _count(config, "hidden_size", "n_embd", "d_model")
    if n_layers is None or n_heads is None or n_layers > 10_000:
        return None
    latent = _count(config, "kv_lora_rank")
    if latent is not None:
        rope = _count(config, "qk_rope_head_dim") or 0
        nope, value = _count(config, "qk_nope_head_dim"), _count(config, "v_head_dim")
        if nope is None or value is None:
            return None
        layer = n_heads * (nope + rope + value) * _ELEMENT_NBYTES
        small = n_layers * (latent + rope) * _ELEMENT_NBYTES
        what = f"{n_layers} layers with a latent cache, kept expanded ({n_heads} heads of {nope + rope} + {value})"
        basis = f"{what}; engines that keep it latent take {small} bytes a token"
        return KvCache(n_layers * layer, (), 0, basis)
    n_kv = _count(config, "num_key_value_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num") or n_heads
    if config.get("multi_query") is True and not config.get("new_decoder_architecture"):
        n_kv = 1
    head_dim = _count(config, "head_dim", "kv_channels")
    if head_dim is None:
        if hidden is None:
            return None
        head_dim = -(-hidden // n_heads)
    head_dim = max(head_dim, _count(config, "global_head_dim") or 0)
    layer = 2 * n_kv * head_dim * _ELEMENT_NBYTES
    if config.get("is_encoder_decoder") is True:
        layer *= 2  # the decoder looks at the encoder as well
    basis = f"{n_layers} layers, {n_kv} key-value heads of {head_dim}, 2 bytes"
    return _by_kind(config, n_layers, layer, basis)


def _by_kind(config: Mapping[str, Any], n_layers: int, layer: int, basis: str) -> KvCache:
    """Divide layers into those that keep all tokens, a window of them, or a state."""
    window = _count(config, "sliding_window")
    chunk = _count(config, "attention_chunk_size")
    kinds = config.get("layer_types")
    pattern = _count(config, "sliding_window_pattern")
    if not (isinstance(kinds, list) and len(kinds) == n_layers):
        kinds = ["full_attention"] * n_layers
        if pattern and window:
            kinds = ["full_attention" if (i + 1) % pattern == 0 else "sliding_attention" for i in range(n_layers)]
        elif window and config.get("use_sliding_window") is not False:
            basis += f"; every token counted, although there is a window of {window}"
    state = _state_nbytes(config)
    n_window, n_chunk, n_state = (
        kinds.count(kind) if size else 0
        for kind, size in (("sliding_attention", window), ("chunked_attention", chunk), ("linear_attention", state))
    )
    windows = tuple((size, n * layer) for size, n in ((window, n_window), (chunk, n_chunk)) if size and n)
    for size, n in ((window, n_window), (chunk, n_chunk)):
        basis += f"; {n} of them keep {size} tokens" if n else ""
    basis += f"; {n_state} of them keep a state of {state} bytes" if n_state else ""
    n_full = n_layers - n_window - n_chunk - n_state
    return KvCache(n_full * layer, windows, n_state * (state or 0), basis)


def _state_nbytes(config: Mapping[str, Any]) -> int | None:
    """Return the bytes of the state of a layer of linear attention."""
    n_keys, n_values = _count(config, "linear_num_key_heads"), _count(config, "linear_num_value_heads")
    key, value = _count(config, "linear_key_head_dim"), _count(config, "linear_value_head_dim")
    if n_keys is None or n_values is None or key is None or value is None:
        return None
    kernel = _count(config, "linear_conv_kernel_dim") or 4
    return 4 * (n_values * key * value + kernel * (2 * n_keys * key + n_values * value))

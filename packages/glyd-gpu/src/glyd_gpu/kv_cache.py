# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""A cache of transformers with its full pages packed: every key and value is there, bit for bit.

Attention gets the keys and values decoded, and so gives the bits that it gives with a plain cache.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

import glyd_codec
from glyd_gpu._errors import ParameterError, ShapeError
from glyd_gpu._kv_attention import MARK, register
from glyd_gpu._kv_cuda import check_channels, check_device
from glyd_gpu._kv_ops import TOKENS
from glyd_gpu._kv_store import KvReport, PagedTensor

LEAST_WINDOW = 512  # tokens: shorter windows are a few pages at most, and stay plain


class PackedLayer(DynamicLayer):
    """Keys and values of a layer; what `DynamicLayer` does, packed."""

    def __init__(self, **kwargs: Any) -> None:
        self.stores: tuple[PagedTensor, PagedTensor] | None = None
        self.direct = False
        self.n_seen = 0  # tokens that the newest one sees, itself included; for `direct`
        super().__init__(**kwargs)

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Start without tokens.

        Raises
        ------
        ShapeError, ParameterError
            Such keys and values are not packed.
        UnsupportedDeviceError
            Nor on this device.
        """
        for states in (key_states, value_states):
            if states.dtype != torch.bfloat16 or states.dim() != 4:
                raise ShapeError(
                    "packed caches hold torch.bfloat16 [sequences, heads, tokens, channels], not "
                    f"{tuple(states.shape)} of {states.dtype}: load the model in bf16, or use kv_cache='plain'"
                )
            glyd_codec.kv_page_bound(states.shape[3])
            check_device(states.device)
            if states.device.type == "cuda":
                check_channels(states.shape[3])
        self.device = key_states.device
        self.stores = PagedTensor.empty(key_states), PagedTensor.empty(value_states)
        self.is_initialized = True

    def _full(self, which: int, n: int | None = None) -> torch.Tensor | None:
        return None if self.stores is None else self.stores[which].full(n)

    def _replace(self, which: int, states: torch.Tensor | None) -> None:
        if states is None:
            self.stores = None
        elif self.stores is not None:
            store = PagedTensor.empty(states)
            store.append(states)
            self.stores = (store, self.stores[1]) if which == 0 else (self.stores[0], store)

    # decoded anew each time: for those who look into a cache
    keys = property(lambda self: self._full(0, self._shown()), lambda self, states: self._replace(0, states))
    values = property(lambda self: self._full(1, self._shown()), lambda self, states: self._replace(1, states))

    def _shown(self) -> int | None:
        return None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add tokens and return all keys and values, decoded."""
        del args, kwargs
        if self.stores is None:
            self.lazy_initialization(key_states, value_states)
        kept = self._kept()
        self.n_seen = kept + key_states.shape[2]
        if self.direct and kept and key_states.shape[2] == 1:
            for which, new in enumerate((key_states, value_states)):
                self._of(which).append(new)
            setattr(key_states, MARK, self)
            return key_states, value_states
        return self._add(kept, key_states, value_states)

    def _kept(self) -> int:
        return self._of().n_tokens

    def _of(self, which: int = 0) -> PagedTensor:
        if self.stores is None:
            raise RuntimeError("the layer has no keys yet")
        return self.stores[which]

    def _add(self, kept: int, *states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        full = []
        for which, new in enumerate(states):
            store = self._of(which)
            full.append(store.full(kept, new) if kept else new)
            store.append(new)
        return full[0], full[1]

    def get_seq_length(self) -> int:
        """Return how many tokens there are."""
        return 0 if self.stores is None else self.stores[0].n_tokens

    def crop(self, tokens_to_remove: int) -> None:
        """Remove the last tokens; their number is given negative, as transformers does."""
        if tokens_to_remove > 0 or self.stores is None:
            super().crop(tokens_to_remove)  # refuses, or takes it for a length, as its version does
            return
        for store in self.stores:
            store.crop(-int(tokens_to_remove))

    def reset(self) -> None:
        """Forget all tokens."""
        self.stores = None
        self.is_initialized = False

    def _each(self, act: Callable[[PagedTensor], None]) -> None:
        for store in self.stores or ():
            act(store)

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Give every sequence the pages of another; no page is copied."""
        self._each(lambda store: store.select(beam_idx))

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat every sequence; the copies share their pages."""
        self._each(lambda store: store.select(torch.arange(store.tail.shape[0]).repeat_interleave(repeats)))

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep some sequences: numbers, or a truth value for each."""
        numbers = indices.nonzero().flatten() if indices.dtype == torch.bool else indices.flatten()
        self._each(lambda store: store.select(numbers))

    def offload(self) -> None:
        """Move the layer to the CPU, packed."""
        self._each(lambda store: store.to("cpu"))  # waits: what brings it back runs on another stream

    def prefetch(self) -> None:
        """Move the layer back to its device, packed."""
        self._each(lambda store: store.to(self.device, non_blocking=True))

    def settle(self) -> None:
        """Put new pages in their places."""
        self._each(PagedTensor.settle)

    @property
    def nbytes(self) -> int:
        """Bytes that the layer holds."""
        return sum(store.nbytes for store in self.stores or ())


class PackedSlidingWindowLayer(PackedLayer, DynamicSlidingWindowLayer):
    """Keys and values of a layer that sees the last tokens only; pages that nobody sees any more are let go."""

    _sliding_window_tensor: torch.Tensor

    def __init__(self, sliding_window: int, **kwargs: Any) -> None:
        self._n_shown = 0
        super().__init__(sliding_window=sliding_window, **kwargs)

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Start without tokens; as `PackedLayer` does."""
        super().lazy_initialization(key_states, value_states)
        self._sliding_window_tensor = self._sliding_window_tensor.to(self.device)
        self._n_shown = 0

    def _shown(self) -> int:
        return self._n_shown

    def _kept(self) -> int:
        return self._n_shown

    def _limit(self, n: int) -> None:
        """Show n tokens at most, and let pages before them go; the newest token still sees one more."""
        self._n_shown = min(self._n_shown, n)
        self._each(lambda store: store.drop_pages(max(store.n_tokens - self._n_shown - 1, 0) // TOKENS))

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add tokens and return the keys and values that they see, decoded."""
        n = key_states.shape[2]
        keys, values = super().update(key_states, value_states, *args, **kwargs)
        self.cumulative_length += n
        self._n_shown += n
        if not self.record_past:
            self._limit(self.sliding_window - 1)
            return keys, values
        visible = self.sliding_window - 1 + n
        return keys[:, :, -visible:], values[:, :, -visible:]

    def get_seq_length(self) -> int:
        """Return how many tokens there have been."""
        return int(self.cumulative_length)

    def get_max_length(self) -> int:
        """Return the window."""
        return int(self.sliding_window)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return length and offset of what is seen, for the mask."""
        sizes: tuple[int, int] = DynamicSlidingWindowLayer.get_mask_sizes(self, query_length)
        return sizes

    def crop(self, tokens_to_remove: int) -> None:
        """Remove the last tokens, where what they pushed out is still there (`activate_past_recording`)."""
        is_full = self.get_seq_length() >= self.sliding_window
        if self.stores is None or tokens_to_remove > 0 or (is_full and not self.record_past):
            DynamicSlidingWindowLayer.crop(self, tokens_to_remove)  # refuses, or there is nothing to do
            return
        n = min(-int(tokens_to_remove), self._n_shown)
        self._each(lambda store: store.crop(n))
        self._n_shown -= n
        self.cumulative_length -= n
        if is_full:
            self._limit(self.sliding_window - 1)

    def reset(self) -> None:
        """Forget all tokens."""
        super().reset()
        self._n_shown = 0
        self.cumulative_length = 0


class GlydKVCache(DynamicCache):
    """A `DynamicCache` whose layers keep full pages of 128 tokens packed.

    Parameters
    ----------
    config
        Of the model; tells which layers have a sliding window. None: none has.
    direct
        Leave steps of one token to the attention that `_kv_attention.register` puts into a model: it works on the
        pages, and nothing is decoded to memory. Not with offloading, which takes the pages away before.
    offloading, offload_only_non_sliding
        As in `DynamicCache`: keep layers on the CPU, packed, while they are not used.

    Notes
    -----
    bf16 only; heads of a multiple of 16 channels, 512 at most. Layers with a window
    under 512 tokens, and those that hold something else than keys and values
    (linear attention), are the ones that `DynamicCache` has; `report` names them.
    """

    def __init__(
        self,
        config: Any = None,
        *,
        direct: bool = False,
        offloading: bool = False,
        offload_only_non_sliding: bool = False,
    ) -> None:
        super().__init__(config=config, offloading=offloading, offload_only_non_sliding=offload_only_non_sliding)
        if config is None:
            self.layer_class_to_replicate: Any = PackedLayer
        self.layers: list[Any] = [_packed(layer) for layer in self.layers]
        for layer in self.layers:
            if isinstance(layer, PackedLayer):
                layer.direct = direct and not offloading  # else the pages are gone when the attention comes to them
        self._unsettled: PackedLayer | None = None  # its new pages may not be in their places yet

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add tokens to a layer; new pages of the one before are put in their places now."""
        states: tuple[torch.Tensor, torch.Tensor] = super().update(key_states, value_states, layer_idx, *args, **kwargs)
        before, layer = self._unsettled, self.layers[layer_idx]
        if before is not None and before is not layer:
            before.settle()
        self._unsettled = layer if isinstance(layer, PackedLayer) else None
        return states

    def save(self, path: str | os.PathLike[str], *, ids: torch.Tensor | None = None) -> None:
        """Write the cache to a file, packed as it is, with SHA-256 of every part.

        Parameters
        ----------
        path
            The file; replaced at once when all is written.
        ids
            Tokens [sequences, tokens] that the cache is of: `load` can then compare them.

        Raises
        ------
        ParameterError
            A layer holds something else than keys and values, or nothing yet.
        OSError
            The file cannot be written; what was there stays.
        """
        from glyd_gpu._kv_saving import save  # noqa: PLC0415

        save(self, path, ids)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        config: Any = None,
        *,
        device: str | torch.device = "cpu",
        ids: torch.Tensor | None = None,
    ) -> GlydKVCache:
        """Read a cache that `save` wrote, without decoding it; hashes and sizes are compared.

        Parameters
        ----------
        path
            The file.
        config
            Of the model that goes on with it: its layers must be those of the file.
        device
            Where the cache goes.
        ids
            Tokens that must begin with those that were saved with the cache.

        Raises
        ------
        CorruptDataError, UnsupportedVersionError
            The file is damaged, or of a newer version.
        ParameterError
            It is of another model or of other tokens.
        """
        from glyd_gpu._kv_saving import load  # noqa: PLC0415

        return load(path, config, device, ids)

    def report(self) -> KvReport:
        """Say what the cache holds."""
        nbytes = plain_nbytes = 0
        plain: dict[int, str] = {}
        for number, layer in enumerate(self.layers):
            if isinstance(layer, PackedLayer):
                nbytes += layer.nbytes
                for store in layer.stores or ():
                    batch, heads, _, channels = store.tail.shape
                    shown = layer._shown()
                    plain_nbytes += 2 * batch * heads * channels * (store.n_tokens if shown is None else shown)
                continue
            window = getattr(layer, "sliding_window", None)
            plain[number] = type(layer).__name__ if window is None else f"a window of {int(window)} tokens"
            held = [t for t in (getattr(layer, "keys", None), getattr(layer, "values", None)) if t is not None]
            nbytes += sum(t.numel() * t.element_size() for t in held)
            plain_nbytes += sum(t.numel() * t.element_size() for t in held)
        return KvReport(self.get_seq_length() if self.layers else 0, nbytes, plain_nbytes, plain)


def _packed(layer: Any) -> Any:
    """Return the packed form of a layer that has one; else the layer."""
    if type(layer) is DynamicLayer:
        return PackedLayer()
    if type(layer) is DynamicSlidingWindowLayer and layer.sliding_window >= LEAST_WINDOW:
        return PackedSlidingWindowLayer(layer.sliding_window)
    return layer


def install(model: Any, *, direct: bool = False) -> None:
    """Make a model's ``generate`` use packed caches where it would make a `DynamicCache`.

    Parameters
    ----------
    model
        Of transformers.
    direct
        Run steps of one token on the pages.

    Raises
    ------
    ParameterError
        The model makes caches of its own.
    """
    if model.config.is_encoder_decoder or not model._supports_default_dynamic_cache():
        raise ParameterError(f"{type(model).__name__} has caches of its own: kv_cache='packed' is for decoders")
    if direct:
        register(model)
    prepare = model._prepare_cache_for_generation

    def prepared(generation_config: Any, model_kwargs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        result = prepare(generation_config, model_kwargs, *args, **kwargs)
        for name, cache in model_kwargs.items():
            if type(cache) is DynamicCache and not getattr(cache, "_is_user_defined", False):
                packed = GlydKVCache(
                    model.config.get_text_config(decoder=True), direct=direct, offloading=cache.offloading
                )
                if any(getattr(layer, "record_past", False) for layer in cache.layers):
                    packed.activate_past_recording()
                model_kwargs[name] = packed
        return result

    model._prepare_cache_for_generation = prepared

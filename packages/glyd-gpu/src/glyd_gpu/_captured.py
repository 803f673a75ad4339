# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``generate`` of transformers with its decoding step captured in a CUDA graph, without compiling anything.

The forward of a model is replaced by one that looks at its arguments: a step of
one token a sequence with a static cache is run as it is the first time, captured
the second, and replayed from then on. Everything else runs as before, and so
does a step that cannot be captured.
"""

from __future__ import annotations

import inspect
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

_KEPT = 2  # captured steps: each holds the memory of its activations
_PLAIN = (bool, int, float, str, type(None))


class CapturedForward:
    """The forward of a model, decoding steps captured.

    Parameters
    ----------
    model
        A causal language model on one CUDA device; not changed. `install` makes this its forward.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.__signature__ = inspect.signature(type(model).forward.__get__(model))
        self.n_replayed = 0
        self._steps: dict[Any, _Step | None] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"model": self.model}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["model"])  # type: ignore[misc]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do what the model's own forward does."""
        forward = type(self.model).forward.__get__(self.model)
        cache = None if args else _static_cache(kwargs)
        if cache is None or torch.is_grad_enabled() or torch.compiler.is_compiling():
            return forward(*args, **kwargs)
        leaves, spec = pytree.tree_flatten({k: v for k, v in kwargs.items() if v is not cache})
        if not all(isinstance(leaf, (torch.Tensor, *_PLAIN)) for leaf in leaves):
            return forward(**kwargs)
        # a graph knows addresses only, and beams reorder a cache into other memory
        places = (t.data_ptr() for layer in cache.layers for t in (layer.keys, layer.values, layer.cumulative_length))
        key = (id(cache), str(spec), *(_kind(leaf) for leaf in leaves), *places)
        step = self._steps.get(key)
        if key not in self._steps or (step is not None and step.cache() is not cache):
            self._forget()
            self._steps[key] = _Step(cache)
            return forward(**kwargs)
        if step is None:
            return forward(**kwargs)
        if step.replay is None:
            try:
                step.capture(forward, kwargs, cache)
            except Exception as error:  # noqa: BLE001 - whatever a model does that cannot be captured, it still runs
                warnings.warn(f"decoding is not captured in a CUDA graph: {error}", RuntimeWarning, stacklevel=2)
                self._steps[key] = None
                return forward(**kwargs)
        self.n_replayed += 1
        return step.run(leaves)

    def reset(self) -> None:
        """Forget all captured steps: the model computes in another way from now on."""
        self._steps.clear()

    def _forget(self) -> None:
        """Drop steps whose cache is gone, and the oldest."""
        alive = {key: step for key, step in self._steps.items() if step is None or step.cache() is not None}
        self._steps = dict(list(alive.items())[-(_KEPT - 1) :])


class _Step:
    """A step that was captured, or will be when it comes again."""

    def __init__(self, cache: Any) -> None:
        self.cache = weakref.ref(cache)
        self.replay: Callable[[], Any] | None = None
        self.inputs: list[Any] = []
        self.output: Any = None

    def capture(self, forward: Callable[..., Any], kwargs: dict[str, Any], cache: Any) -> None:
        given = {name: value for name, value in kwargs.items() if value is not cache}
        (name,) = (name for name, value in kwargs.items() if value is cache)
        leaves, spec = pytree.tree_flatten(given)
        self.inputs = [leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        static = pytree.tree_unflatten(self.inputs, spec)

        def work() -> Any:
            return forward(**static, **{name: cache})

        replay, output = captured(work)
        # without the cache, which must be able to go
        self.output = {k: v for k, v in output.items() if v is not cache}, type(output), [*output.keys()]
        self.replay = replay

    def run(self, leaves: list[Any]) -> Any:
        for mine, leaf in zip(self.inputs, leaves, strict=True):
            if isinstance(leaf, torch.Tensor):
                mine.copy_(leaf)
        if self.replay is not None:
            self.replay()
        values, kind, names = self.output
        # the next replay writes to the same memory
        fresh = pytree.tree_map(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, values)
        return kind(**{name: fresh[name] if name in fresh else self.cache() for name in names})


def captured(work: Callable[[], Any]) -> tuple[Callable[[], Any], Any]:
    """Capture work in a CUDA graph, not running it; return what replays it, and its output, which replays fill."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = work()
    return graph.replay, output


def _kind(leaf: Any) -> Any:
    return (tuple(leaf.shape), leaf.dtype) if isinstance(leaf, torch.Tensor) else leaf


def _static_cache(kwargs: dict[str, Any]) -> Any:
    """Return the cache of a step that can be captured: one token a sequence, places counted on the device."""
    from transformers import StaticCache  # noqa: PLC0415
    from transformers.cache_utils import StaticLayer  # noqa: PLC0415

    ids = kwargs.get("input_ids")
    caches = [value for value in kwargs.values() if isinstance(value, StaticCache)]
    if not isinstance(ids, torch.Tensor) or ids.dim() != 2 or ids.shape[1] != 1 or len(caches) != 1:
        return None
    if not all(type(layer) is StaticLayer and layer.is_initialized for layer in caches[0].layers):
        return None
    return caches[0]


def forget(model: Any) -> None:
    """Drop the captured steps of a model whose forward is captured: what it computes, or how, has changed."""
    captured = model.__dict__.get("forward")
    if isinstance(captured, CapturedForward):
        captured.reset()


def install(model: Any) -> None:
    """Make ``generate`` use a static cache and capture its steps, where all of a model is on one device.

    A model whose forward somebody has replaced already (hooks that move or offload layers) stays as it is.
    """
    if len({parameter.device for parameter in model.parameters()}) != 1 or "forward" in model.__dict__:
        return
    model.generation_config.cache_implementation = "static"
    model.generation_config.disable_compile = True
    model.forward = CapturedForward(model)

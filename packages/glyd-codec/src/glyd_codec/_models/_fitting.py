# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Sizes of weights in every layout, what running takes besides, and GPUs to compare them with."""

from __future__ import annotations

import math
import operator
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from glyd_codec._errors import FormatError, ParameterError
from glyd_codec._fit import FitReport, GpuFit, WeightsFit
from glyd_codec._models._kv import kv_cache, sizes
from glyd_codec._models._manifest import MANIFEST_MAX, parse_manifest
from glyd_codec._models._matrix import TILE_NBYTES_MIN, as_matrix
from glyd_codec._models._remote import find_place
from glyd_codec._models._safetensors import BITS, json_object
from glyd_codec._models._source import CONFIG, CONFIG_MAX, MANIFEST
from glyd_codec._native import lib
from glyd_codec._weights import ALIGN, LAYOUTS, native_shape

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from glyd_codec._models._kv import KvCache, Sizes
    from glyd_codec._models._manifest import Manifest
    from glyd_codec._models._remote import Place
    from glyd_codec._models._safetensors import Header, Tensor

GB = 10**9

GPUS = {
    "RTX 4060": 8, "RTX 3060": 12, "RTX 4070": 12, "RTX 4080": 16, "RTX 5080": 16, "RTX 3090": 24, "RTX 4090": 24,
    "L4": 24, "A10": 24, "RTX 5090": 32, "A100 40GB": 40, "RTX A6000": 48, "L40S": 48, "A100": 80, "H100": 80,
    "RTX PRO 6000": 96, "H200": 141, "B200": 180,
}  # fmt: skip
"""Memory in 10^9 bytes as it is sold; all have a little more."""

_SHOWN = ("RTX 4060", "RTX 4070", "RTX 4080", "RTX 4090", "RTX 5090", "L40S", "H100", "H200")

_SPARE = 0.04  # of the memory: fragments, and what the driver keeps
_RUNTIME_NBYTES = 1_200_000_000  # CUDA context, kernels of the libraries and their workspaces, captured graphs
_PREFILL_TOKENS = 8192  # that go through the model at once, at most
_CONTEXT = 8192
_CONTEXT_MAX = 1 << 27

# Beyond the fixed part of a pack, bits a weight; more than on any model measured (native/src/weights/spec.md)
_ESCAPE_BITS = {"mma12": 0.05, "tiered": 0.84}
_FIXED_COLS = {"mma12": (64, 6144), "tiered": (128, 10240)}

_FLOATS = frozenset(("F16", "F32", "F64"))


@dataclass(slots=True)
class _Model:
    tensors: list[Tensor]
    config: dict[str, Any] | None
    manifest: Manifest | None
    packed_nbytes: int = 0


def fit_model(
    model: str, gpu: str | int | None, context: int | None, revision: str | None, token: str | bool | None
) -> FitReport:
    """Do what `glyd_codec.fit` says."""
    wanted = None if context is None else operator.index(context)
    if wanted is not None and not 1 <= wanted <= _CONTEXT_MAX:
        raise ParameterError(f"context must be 1 … {_CONTEXT_MAX} tokens, not {wanted}", found=wanted)
    gpus = common_gpus() if gpu is None else [parse_gpu(gpu)]
    place, file = find_place(model, revision, token)
    found = _look(place, file, model)
    notes: list[str] = []
    numbers = sizes(found.config) if found.config is not None else None
    cache = kv_cache(found.config) if found.config is not None else None
    limit = numbers.max_context if numbers else None
    tokens = wanted or min(_CONTEXT, limit or _CONTEXT)
    if limit and tokens > limit:
        notes.append(f"the model was made for {limit} tokens, not {tokens}")
    if found.config is None:
        notes.append(f"no {CONFIG}: KV cache, and so what fits, cannot be said")
    elif cache is None or numbers is None or not numbers.hidden:
        notes.append(f"{CONFIG} does not say what the KV cache takes, so not what fits")
    dtypes: dict[str, int] = {}
    for tensor in found.tensors:
        dtypes[tensor.dtype] = dtypes.get(tensor.dtype, 0) + tensor.nbytes
    if not dtypes.get("BF16"):
        notes.append("no tensor is bf16, so nothing would be packed: rewrite the model as bf16 first")
    needs = _Needs(found, cache, numbers)
    weights = {}
    for layout in ("bf16", *LAYOUTS):
        nbytes, basis = _weights_nbytes(found, layout)
        overhead, total = needs.overhead(layout, tokens), needs.total(layout, nbytes, tokens)
        weights[layout] = WeightsFit(layout, nbytes, basis, overhead, total)
    return FitReport(
        model=model,
        packed=found.manifest.layout if found.manifest else None,
        n_parameters=sum(math.prod(tensor.shape) for tensor in found.tensors),
        dtypes=dict(sorted(dtypes.items())),
        context=tokens,
        max_context=limit,
        kv_token_nbytes=cache.per_token_nbytes if cache else None,
        kv_nbytes=cache.nbytes(tokens) if cache else None,
        kv_basis=cache.basis if cache else None,
        weights=weights,
        gpus=tuple(_gpu_fit(name, nbytes, needs, weights, limit) for name, nbytes in gpus),
        notes=tuple(notes),
    )


def common_gpus() -> list[tuple[str, int]]:
    """Return name and bytes of GPUs that many have."""
    return [(name, GPUS[name] * GB) for name in _SHOWN]


def parse_gpu(text: str | int) -> tuple[str, int]:
    """Return name and bytes of the GPU that a text stands for.

    Raises
    ------
    ParameterError
        It is neither a known name nor a size.
    """
    if not isinstance(text, str):
        nbytes = operator.index(text)
        name = f"{nbytes} bytes"
    else:
        name = text.strip()
        key = re.sub(r"[\s_-]|nvidia|geforce|rtx", "", name.lower())
        for known, size in GPUS.items():
            if (
                key == re.sub(r"[\s_-]|rtx", "", known.lower())
                or key == f"{re.sub(r'[ ]|rtx', '', known.lower())}{size}gb"
            ):
                return known, size * GB
        match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)\s*(gb|g|gib|mib|mb)?", name.lower())
        unit = {None: GB, "g": GB, "gb": GB, "mb": 10**6, "gib": 1 << 30, "mib": 1 << 20}
        nbytes = int(float(match[1]) * unit[match[2]]) if match else 0
    if not 0 < nbytes < 1 << 60:
        raise ParameterError(f"gpu must be a size (48GB, 80GiB) or one of {', '.join(GPUS)}; not {text!r}")
    return name, nbytes


def _look(place: Place, file: str | None, model: str) -> _Model:
    """Read configuration, index and headers."""
    raw_config = place.small_file(CONFIG, CONFIG_MAX)
    config = json_object(raw_config, CONFIG) if raw_config is not None else None
    method = (config or {}).get("quantization_config")
    is_packed = isinstance(method, dict) and method.get("quant_method") == "glyd"
    raw = place.small_file(MANIFEST, MANIFEST_MAX) if file is None and (is_packed or config is None) else None
    if raw is not None:
        manifest = parse_manifest(raw)
        tensors = [tensor for shard in manifest.shards for tensor in shard.header.tensors]
        return _Model(tensors, config, manifest, _packed_nbytes(manifest, place))
    if is_packed and file is None:
        raise FormatError(f"{model}: packed, and without {MANIFEST}, which says of what: glyd.seal_model writes it")
    headers = _headers(place, file, model)
    return _Model([tensor for header in headers for tensor in header.tensors], config, None)


def _packed_nbytes(manifest: Manifest, place: Place) -> int:
    """Return the bytes of all tensors of a packed model, from the headers of its files."""
    names = [shard.file for shard in manifest.shards]
    with ThreadPoolExecutor(8, thread_name_prefix="glyd-fit") as pool:
        return sum(header.data_nbytes for header in pool.map(place.header, names))


def _headers(place: Place, file: str | None, model: str) -> list[Header]:
    if file is not None:
        return [place.header(file)]
    names = place.weight_files()
    if names == ["model.safetensors"]:
        try:
            return [place.header(names[0])]
        except FileNotFoundError:
            raise ParameterError(f"{model}: no safetensors file is there, with or without an index") from None
    with ThreadPoolExecutor(8, thread_name_prefix="glyd-fit") as pool:
        headers = list(pool.map(place.header, names))
    owners: dict[str, str] = {}
    for name, header in zip(names, headers, strict=True):
        for tensor in header.tensors:
            if tensor.name in owners:
                raise FormatError(f"{name}: tensor {tensor.name!r} is in {owners[tensor.name]} too")
            owners[tensor.name] = name
    return headers


def _weights_nbytes(found: _Model, layout: str) -> tuple[int, str]:
    """Return the bytes of all tensors in a layout, and what that rests on."""
    if layout == "bf16":
        narrowed = any(tensor.dtype in _FLOATS for tensor in found.tensors)
        basis = "headers (exact); fp32 and fp16 counted as bf16" if narrowed else "headers (exact)"
        return sum(_bf16_nbytes(tensor) for tensor in found.tensors), basis
    if found.manifest is not None and found.manifest.layout == layout:
        return found.packed_nbytes, "headers (exact)"
    total = sum(_estimate(tensor, layout) for tensor in found.tensors)
    return total, f"estimate: exact fixed part, {_ESCAPE_BITS[layout]} bits a weight for the rest"


def _bf16_nbytes(tensor: Tensor) -> int:
    return 2 * math.prod(tensor.shape) if tensor.dtype in _FLOATS else tensor.nbytes


def _estimate(tensor: Tensor, layout: str) -> int:
    """Return the bytes of a tensor: its pack if that pays, else as it is."""
    matrix = as_matrix(tensor.shape) if tensor.dtype == "BF16" and tensor.nbytes > TILE_NBYTES_MIN else None
    if matrix is None:
        return tensor.nbytes
    rows, cols = matrix
    shape = native_shape(layout, rows, cols)
    tile_cols, tile_nbytes = _FIXED_COLS[layout]
    tiles = -(-rows // 64) * -(-cols // tile_cols)
    fixed = int(lib.glyd_weights_plan_size(shape)) + tiles * tile_nbytes
    size = -(-int(fixed + rows * cols * _ESCAPE_BITS[layout] / 8) // ALIGN) * ALIGN
    return size if size <= lib.glyd_weights_pack_bound(shape) else tensor.nbytes


class _Needs:
    """What running a model takes besides its weights."""

    def __init__(self, found: _Model, cache: KvCache | None, numbers: Sizes | None) -> None:
        self._cache = cache
        self._numbers = numbers
        matrices = [_bf16_nbytes(t) for t in found.tensors if len(t.shape) == 2 and t.dtype in BITS]
        self._largest = max(matrices, default=0)

    def overhead(self, layout: str, tokens: int) -> int | None:
        """Return the bytes of libraries, activations, and of the scratch for one matrix of a packed model."""
        numbers = self._numbers
        if numbers is None or not numbers.hidden:
            return None
        wide = 8 * numbers.hidden + 3 * (numbers.intermediate or 4 * numbers.hidden)
        activations = 2 * wide * min(tokens, _PREFILL_TOKENS) + 8 * (numbers.vocab or 0) * 64
        return _RUNTIME_NBYTES + activations + (0 if layout == "bf16" else self._largest)

    def total(self, layout: str, weights: int, tokens: int) -> int | None:
        """Return the bytes of everything."""
        overhead = self.overhead(layout, tokens)
        if overhead is None or self._cache is None:
            return None
        return weights + overhead + self._cache.nbytes(tokens)

    def most_tokens(self, layout: str, weights: int, room: int, limit: int) -> int | None:
        """Return the largest context that fits, in steps of 16."""
        if self.total(layout, weights, 1) is None:
            return None
        low, high = 0, limit // 16
        while low < high:
            middle = (low + high + 1) // 2
            if (self.total(layout, weights, 16 * middle) or 0) <= room:
                low = middle
            else:
                high = middle - 1
        return 16 * low


def _gpu_fit(name: str, nbytes: int, needs: _Needs, weights: Mapping[str, WeightsFit], limit: int | None) -> GpuFit:
    room = int(nbytes * (1 - _SPARE))
    most = {
        layout: needs.most_tokens(layout, fit.nbytes, room, limit or _CONTEXT_MAX) for layout, fit in weights.items()
    }
    fits = {layout: None if fit.total_nbytes is None else fit.total_nbytes <= room for layout, fit in weights.items()}
    return GpuFit(name, nbytes, most, fits)

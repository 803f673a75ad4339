# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""glyd as a quantizer of transformers, though it quantizes nothing: how models are loaded and saved packed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from typing import Any, Literal, TypeAlias

import torch
from torch import nn
from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING, AUTO_QUANTIZER_MAPPING
from transformers.quantizers.base import HfQuantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from glyd_gpu._checkpoint import Source, check_dtypes, read_sources, warn_of_rounding
from glyd_gpu._errors import ParameterError, UnsupportedVersionError
from glyd_gpu._meta import LAYOUTS
from glyd_gpu._plan import Plan, make_plan, prepare
from glyd_gpu._reading import ParallelReads
from glyd_gpu._verify import verify_packs
from glyd_gpu.modules import PackedModule

READ_DEVICES = {"cuda"}  # where packs are read to by our own reader; on the CPU they stay mapped
VERIFIED_DEVICES = {"cuda"}  # on the CPU the codec looks at every byte that it decodes
Layout: TypeAlias = Literal["tiered", "mma12"]
METHOD = "glyd"
KNOWN_SOURCES: ContextVar[dict[str, Source] | None] = ContextVar("KNOWN_SOURCES", default=None)  # of a load in progress
VERSION = 1  # of packed models


class GlydConfig(QuantizationConfigMixin):
    """The entry ``quantization_config`` of packed models.

    Parameters
    ----------
    layout
        "tiered" or "mma12".
    version
        Of packed models.
    """

    def __init__(self, layout: Layout = "tiered", version: int = VERSION, **unknown: Any) -> None:
        unknown.pop("quant_method", None)
        if unknown:
            raise ParameterError(f"quantization_config of a packed model has unknown entries: {', '.join(unknown)}")
        if version != VERSION:
            raise UnsupportedVersionError(
                f"packed model of version {version}; this glyd-gpu reads version {VERSION}: update it",
                expected=VERSION,
                found=version,
            )
        if layout not in LAYOUTS:
            raise ParameterError(f"layout must be one of {', '.join(LAYOUTS)}; not {layout!r}")
        self.quant_method = METHOD
        self.version = version
        self.layout: Layout = layout


class GlydQuantizer(HfQuantizer):
    """Loads packed models as they are saved, and packs bf16 checkpoints as they load."""

    requires_calibration = False
    quantization_config: GlydConfig

    def __init__(self, quantization_config: GlydConfig, **kwargs: Any) -> None:
        super().__init__(quantization_config, **kwargs)
        self.plan = Plan()
        self._files: list[str] = []
        self._conversions: list[Any] = []
        self._model: Any = None
        self._asked: torch.dtype | None = None
        self._device: torch.device | None = None
        self._reads: ParallelReads | None = None

    # ---- what transformers asks

    def is_serializable(self) -> bool:
        """Say that packed models can be saved."""
        return True

    @property
    def is_trainable(self) -> bool:
        """Say that adapters beside packed layers can be trained."""
        return True

    @property
    def is_compileable(self) -> bool:
        """Say that ``generate`` may compile the model."""
        return True

    def update_dtype(self, dtype: torch.dtype | None) -> torch.dtype | None:
        """Return bf16 for weights that are packed as they load; what is packed already decides when it is seen."""
        self._asked = dtype if self.pre_quantized else torch.bfloat16
        return self._asked

    def get_new_dtype(self, converter: Any, param: Any, dtype: torch.dtype | None) -> torch.dtype | None:
        """Leave the bytes of packs alone."""
        if isinstance(converter, _converter_class()):
            return None
        found: torch.dtype | None = super().get_new_dtype(converter, param, dtype)
        return found

    def param_needs_quantization(self, model: Any, param_name: str, **kwargs: Any) -> bool:
        """Say whether a parameter gets a size when it is loaded, not before."""
        del model, kwargs
        return param_name in self.plan.groups

    def get_quantize_ops(self) -> None:
        """Return nothing: `_converter_class` does it."""
        return

    def _process_model_before_weight_loading(self, model: Any, **kwargs: Any) -> Any:
        self._files = [str(path) for path in kwargs.get("checkpoint_files") or ()]
        self._model = model
        found = kwargs.get("device_map")
        devices = (
            {torch.device("cuda", d) if isinstance(d, int) else d for d in found.values()}
            if isinstance(found, dict)
            else ()
        )
        self._device = torch.device(next(iter(devices))) if len(devices) == 1 and "disk" not in devices else None
        return model

    def update_weight_conversions(self, weight_conversions: Sequence[Any], model: Any = None) -> list[Any]:
        """Plan, make modules packed, and put our own conversion before those of the model.

        Raises
        ------
        ParameterError
            The checkpoint is not bf16, or cannot be loaded packed.
        FormatError
            It is damaged.
        """
        model = model or self._model  # older versions of transformers do not pass it
        self._model = None
        wrong = [path for path in self._files if not path.endswith(".safetensors")]
        if wrong:
            raise ParameterError(f"{wrong[0]}: only safetensors files are read: save_pretrained(...) writes them")
        sources = KNOWN_SOURCES.get() or read_sources(self._files)
        layout = None
        if not self.pre_quantized:
            check_dtypes(sources.values())
            layout = self.quantization_config.layout
        elif model.dtype == torch.bfloat16:
            warn_of_rounding(sources.values())
        packed = next((source for source in sources.values() if source.meta), None)
        if packed is not None and self._asked not in {None, torch.bfloat16}:
            raise ParameterError(
                f"{packed.path}: {packed.key} is packed bf16 and cannot be loaded as {self._asked}: "
                "leave dtype out, or pass dtype=torch.bfloat16"
            )
        kept = list(model._get_dtype_plan(torch.bfloat16))
        self._conversions = list(weight_conversions)
        self.plan = make_plan(model, sources.values(), weight_conversions, layout, kept)
        prepare(model, self.plan)
        device, self._device = self._device, None
        if device is not None and device.type in READ_DEVICES and KNOWN_SOURCES.get() is None:
            self._reads = ParallelReads(sources, device)
        return conversions(self.plan, self._conversions, self._reads)

    def _process_model_after_weight_loading(self, model: Any, **kwargs: Any) -> Any:
        del kwargs
        # saving names packs as the checkpoint did and reverts the other conversions itself
        model._weight_conversions = []
        model.glyd_conversions = [c for c in self._conversions if c.was_used()]
        self.plan = Plan()
        if self._reads is not None:
            self._reads.close()
            self._reads = None
        if self.pre_quantized:
            _verify(model)
        return model

    def get_state_dict_and_metadata(self, model: Any) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
        """Return what is saved: packs of the checkpoint's tensors under their names, the rest as it is."""
        from glyd_gpu._saving import checkpoint_tensors  # noqa: PLC0415 - imports modeling code

        tensors, shapes = checkpoint_tensors(model)
        return tensors, {"glyd_shapes": json.dumps(shapes)} if shapes else {}

    def _dequantize(self, model: Any, dtype: torch.dtype | None = None) -> Any:
        from glyd_gpu._loading import unpack_modules  # noqa: PLC0415

        unpack_modules(model)
        return model if dtype in {None, torch.bfloat16} else model.to(dtype)


def _verify(model: nn.Module) -> None:
    """Hold the packs of a file to their rules, where kernels will not: they only stay inside of them.

    Raises
    ------
    CorruptDataError
        Names the tensors of the checkpoint that are damaged.
    """
    packs = {}
    for module in model.modules():
        if isinstance(module, PackedModule):
            for name, tensor in module.glyd_tensors.items():
                data = module.packed_data(name)
                if data.device.type in VERIFIED_DEVICES:
                    for piece in tensor.pieces:
                        if piece.meta is not None:
                            packs[piece.source] = data.narrow(0, piece.offset, piece.nbytes), list(piece.meta)
    verify_packs(packs)


# ---- conversions: what transformers' loader calls -----------------------------


def conversions(plan: Plan, natives: Sequence[Any], reads: ParallelReads | None = None) -> list[Any]:
    """Return conversions that load packs by a plan, and everything else as the model's own ones do.

    Parameters
    ----------
    plan
        What becomes of the tensors.
    natives
        The model's own conversions.
    reads
        Reads packs instead of transformers, where it can.
    """
    from transformers.core_model_loading import WeightRenaming  # noqa: PLC0415

    renamings = [c for c in natives if isinstance(c, WeightRenaming)]
    others = [c for c in natives if not isinstance(c, WeightRenaming)]
    return [_renamings_class()(plan, renamings), _converter_class()(plan, reads), *others]


_classes: dict[str, Any] = {}


def _renamings_class() -> Any:
    """Return the class of renamings; made late, as it derives from a part of transformers that imports models."""
    if "renamings" in _classes:
        return _classes["renamings"]
    from transformers.core_model_loading import WeightRenaming  # noqa: PLC0415

    class PackedRenamings(WeightRenaming):
        """The model's renamings, from which packs are kept away."""

        __slots__ = ("natives", "plan")

        def __init__(self, plan: Plan, natives: list[Any]) -> None:
            super().__init__("glyd", "glyd")
            self.plan = plan
            self.natives = natives

        def rename_source_key(self, source_key: str) -> tuple[str, str | None]:
            if source_key in self.plan.keys:
                return source_key, None
            for renaming in self.natives:
                source_key, _ = renaming.rename_source_key(source_key)
            return source_key, None

    _classes["renamings"] = PackedRenamings
    return PackedRenamings


def _converter_class() -> Any:
    """Return the class that puts packs together."""
    if "converter" in _classes:
        return _classes["converter"]
    from transformers.core_model_loading import WeightConverter  # noqa: PLC0415

    from glyd_gpu._assemble import assemble  # noqa: PLC0415

    class PackedConverter(WeightConverter):
        """Collects the tensors of a group and makes the packed parameter of them."""

        __slots__ = ("plan", "reads", "source_keys")

        def __init__(self, plan: Plan, reads: ParallelReads | None) -> None:
            super().__init__("glyd", "glyd", operations=[_Nothing()])
            self.plan = plan
            self.reads = reads
            self.source_keys: list[str] = []

        def __deepcopy__(self, memo: dict[int, Any]) -> Any:
            return PackedConverter(self.plan, self.reads)

        def rename_source_key(self, source_key: str) -> tuple[str, str | None]:
            key = self.plan.keys.get(source_key)
            return (source_key, None) if key is None else (key, "glyd")

        def add_tensor(self, target_key: str, source_key: str, source_pattern: str, future: Future[Any]) -> None:
            if self.reads is not None:
                future = self.reads.instead(source_key, future)
            super().add_tensor(target_key, source_key, source_pattern, future)
            self.source_keys.append(source_key)

        def convert(self, layer_name: str, model: Any = None, loading_info: Any = None, **_: Any) -> dict[str, Any]:
            tensors = self.materialize_tensors()["glyd"]
            by_key = dict(zip(self.source_keys, tensors, strict=True))
            return assemble(model, self.plan, self.plan.groups[layer_name], by_key, loading_info)

    _classes["converter"] = PackedConverter
    return PackedConverter


class _Nothing:
    """Stands where a converter wants an operation."""

    supports_many_to_many = True


# ---- registration ---------------------------------------------------------------


def owner(model: nn.Module) -> GlydQuantizer | None:
    """Return the quantizer that a model was loaded with, if it is ours."""
    found = getattr(model, "hf_quantizer", None)
    return found if isinstance(found, GlydQuantizer) else None


# importing this module is what makes transformers know packed models
AUTO_QUANTIZATION_CONFIG_MAPPING[METHOD] = GlydConfig
AUTO_QUANTIZER_MAPPING[METHOD] = GlydQuantizer

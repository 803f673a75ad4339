# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""glyd as a quantization method of vLLM, though it quantizes nothing: which layers are packed, and how."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
from torch import nn
from vllm.logger import init_logger
from vllm.model_executor.layers.quantization.base_config import QuantizationConfig

from glyd_gpu._errors import ParameterError, UnsupportedVersionError
from glyd_gpu._meta import LAYOUTS
from glyd_gpu._ops import EXACT, FAST, INVARIANT
from glyd_gpu.integrations.vllm import METHOD, installed_version
from glyd_gpu.integrations.vllm_loading import Filling, install
from glyd_gpu.integrations.vllm_options import Options, read_options

VERSION = 1  # of packed models
LOADERS = ("auto", "hf", "safetensors", "fastsafetensors", "instanttensor", "dummy", "mistral")
_SPEED_SHARE = 0.5  # of a device's memory: where mma12 weights take no more, their speed is worth 11% more bytes
_MMA12_SHARE = 0.76  # of the bytes of bf16
_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.")

logger = init_logger("vllm.glyd")


class GlydConfig(QuantizationConfig):
    """Which layers of a model are packed.

    Parameters
    ----------
    layout
        Of a packed directory; None for a checkpoint that is packed as it loads.
    """

    def __init__(self, layout: str | None = None) -> None:
        super().__init__()
        self.checkpoint_layout = layout
        self.packed_modules_mapping: dict[str, list[str]] = {}
        self._options: Options | None = None
        self._layout = ""
        self._dummy = False
        self._n_layers = 0
        self._open: list[Filling] = []
        self._closed: list[Filling] = []

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to the process that loads the model."""
        return self.__dict__ | {"_options": None, "_open": [], "_closed": []}

    def __repr__(self) -> str:
        return f"GlydConfig(layout={self.checkpoint_layout!r})"

    # ---- what vLLM asks

    @classmethod
    def get_name(cls) -> str:
        """Return the name of the method."""
        return METHOD

    @classmethod
    def get_supported_act_dtypes(cls) -> list[torch.dtype]:
        """Return the types that models may compute in."""
        return [torch.bfloat16]

    @classmethod
    def get_min_capability(cls) -> int:
        """Return the oldest compute capability."""
        return 80

    @staticmethod
    def get_config_filenames() -> list[str]:
        """Return nothing: ``config.json`` says it."""
        return []

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> GlydConfig:
        """Read the entry ``quantization_config`` of a packed model.

        Raises
        ------
        UnsupportedVersionError, ParameterError
            It is of another version, or has an unknown layout.
        """
        version, layout = config.get("version", VERSION), config.get("layout")
        if version != VERSION:
            raise UnsupportedVersionError(
                f"packed model of version {version}; this glyd-gpu reads version {VERSION}: update it",
                expected=VERSION,
                found=version if isinstance(version, int) else None,
            )
        if layout is not None and layout not in LAYOUTS:
            raise ParameterError(f"glyd: layout of the packed model is {layout!r}, not one of {', '.join(LAYOUTS)}")
        return cls(layout)

    def get_quant_method(self, layer: nn.Module, prefix: str) -> Any:
        """Return how a layer is held, or None to leave it to vLLM."""
        self._prepare()
        from vllm.model_executor.layers.linear import LinearBase, UnquantizedLinearMethod  # noqa: PLC0415
        from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding  # noqa: PLC0415

        from glyd_gpu.integrations import vllm_layers  # noqa: PLC0415

        if isinstance(layer, LinearBase):
            if layer.params_dtype != torch.bfloat16:
                return UnquantizedLinearMethod()
            return vllm_layers.GlydLinearMethod(self, prefix)
        if isinstance(layer, VocabParallelEmbedding):
            return vllm_layers.GlydEmbeddingMethod(self, prefix)
        return self._experts(layer, prefix)

    def _experts(self, layer: Any, prefix: str) -> Any:
        from vllm.model_executor.layers import fused_moe  # noqa: PLC0415

        found = [getattr(fused_moe, name, None) for name in ("RoutedExperts", "FusedMoE")]
        kinds: Any = tuple(kind for kind in found if isinstance(kind, type))
        if not isinstance(layer, kinds):
            return None
        try:
            from glyd_gpu.integrations.vllm_experts import GlydExpertsMethod  # noqa: PLC0415
        except ImportError as error:
            logger.warning_once(
                "glyd: experts stay bf16, as those of vLLM %s are not known (%s)", installed_version(), error
            )
            return None
        return GlydExpertsMethod(self, prefix, layer.moe_config)

    # ---- what our methods ask

    def _prepare(self) -> None:
        """Read the options of the engine that builds a model, once a process."""
        if self._options is not None:
            return
        from vllm.config import get_current_vllm_config  # noqa: PLC0415
        from vllm.platforms import current_platform  # noqa: PLC0415

        current = get_current_vllm_config()
        options = read_options(current.additional_config)
        load_format = str(getattr(current.load_config.load_format, "value", current.load_config.load_format))
        if load_format not in LOADERS:
            raise ParameterError(
                f"glyd: --load-format {load_format} does not go through packed weights; one of {', '.join(LOADERS)} does"
            )
        self._dummy = load_format == "dummy"
        if self.checkpoint_layout is not None and options.layout not in {"auto", self.checkpoint_layout}:
            raise ParameterError(
                f"glyd: the model is packed as {self.checkpoint_layout}, layout {options.layout} was asked for: "
                "leave the option out, or pack the original again with glyd pack --layout"
            )
        self._n_layers = int(getattr(current.model_config.hf_text_config, "num_hidden_layers", 0) or 0)
        self._layout = self.checkpoint_layout or options.layout
        if self._layout == "auto":
            self._layout = _choose_layout(current, on_cuda=current_platform.is_cuda())
        install()
        self._options = options

    @property
    def options(self) -> Options:
        """The options in force.

        Raises
        ------
        ParameterError
            No model is being built.
        """
        if self._options is None:
            raise ParameterError("glyd: options are known while a model is built, not before")
        return self._options

    def mode(self) -> int:
        """Return the mode of products."""
        from vllm import envs  # noqa: PLC0415

        if self.options.exact:
            return EXACT
        return INVARIANT if getattr(envs, "VLLM_BATCH_INVARIANT", False) else FAST

    def filling(
        self, layer: nn.Module, name: str, prefix: str, shape: tuple[int, ...], attributes: dict[str, Any]
    ) -> Filling:
        """Return what loads a parameter."""
        made = Filling(
            layer,
            name,
            prefix or type(layer).__name__,
            shape,
            attributes,
            device=torch.empty(0).device,  # vLLM builds models with the target as default device
            layout=self._layout if self._is_packed(prefix) else None,
            mode=self.mode(),
            verify=self.options.verify,
        )
        self._open.append(made)
        return made

    def _is_packed(self, prefix: str) -> bool:
        found = _LAYER.search(prefix)
        if found is None or not self._n_layers:
            return True
        return int(found.group(1)) < self.options.share * self._n_layers

    def forget(self, filling: Filling) -> None:
        """Drop a parameter that is tied to another."""
        self._open.remove(filling)

    def close(self, filling: Filling) -> None:
        """Finish a parameter; after the last say what was packed."""
        filling.close(dummy=self._dummy)
        if filling in self._open:
            self._open.remove(filling)
            self._closed.append(filling)
        if self._closed and not self._open:
            self._report()

    def _report(self) -> None:
        packed = [f for f in self._closed if f.is_packed]
        rest = [f for f in self._closed if not f.is_packed]
        mode = {FAST: "", EXACT: ", exact", INVARIANT: ", batch invariant"}[self.mode()]
        logger.info(
            "glyd: %d matrices packed as %s%s%s: %.3f GB of bf16 in %.3f GB; %d stay bf16 (%.3f GB)",
            len(packed),
            self._layout,
            mode,
            ", each compared with its bf16 form" if self.options.verify else "",
            sum(f.plain_nbytes for f in packed) / 1e9,
            sum(f.nbytes for f in packed) / 1e9,
            len(rest),
            sum(f.nbytes for f in rest) / 1e9,
        )
        self._closed = []


def _choose_layout(config: Any, *, on_cuda: bool) -> str:
    """Return mma12, the faster, unless weights would take most of the memory then."""
    folder = Path(config.model_config.model)
    if not on_cuda or not folder.is_dir():
        return "mma12"
    nbytes = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    nbytes //= config.parallel_config.tensor_parallel_size * config.parallel_config.pipeline_parallel_size
    total = torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
    return "mma12" if nbytes * _MMA12_SHARE <= _SPEED_SHARE * total else "tiered"

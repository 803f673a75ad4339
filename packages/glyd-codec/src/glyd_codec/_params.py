# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Levels and the other parameters, checked and passed to the native core."""

from __future__ import annotations

import operator
import os
from typing import TYPE_CHECKING

from glyd_codec._errors import ParameterError
from glyd_codec._native import ffi, lib

if TYPE_CHECKING:
    from typing import Any, Literal, TypeAlias

    from glyd_codec._limits import Limits
    from glyd_codec._references import References

    Level: TypeAlias = Literal["turbo", "fast", "default", "max", "high", "ultra", "cold"]
    Weights: TypeAlias = Literal["auto", True, False]
    Containers: TypeAlias = Literal["auto", True, False]
    Records: TypeAlias = Literal[True, False, "auto"]

_LEVEL_IDS = {
    "turbo": lib.GLYD_LEVEL_TURBO,
    "fast": lib.GLYD_LEVEL_FAST,
    "default": lib.GLYD_LEVEL_DEFAULT,
    "max": lib.GLYD_LEVEL_MAX,
    "high": lib.GLYD_LEVEL_HIGH,
    "ultra": lib.GLYD_LEVEL_ULTRA,
    "cold": lib.GLYD_LEVEL_COLD,
}

_RECORDS: dict[object, int] = {False: 0, True: 1, "auto": 2}  # GLYD_RECORDS_*

LEVELS: tuple[str, ...] = tuple(_LEVEL_IDS)
"""Names of the levels, from the fastest to the one that saves most."""

LEVEL_NAMES = {number: name for name, number in _LEVEL_IDS.items()}

SEGMENT_SIZE_MIN = 1 << lib.GLYD_SEGMENT_LOG_MIN
SEGMENT_SIZE_MAX = 1 << lib.GLYD_SEGMENT_LOG_MAX
COLD_SEGMENT_SIZE_MAX = 1 << 26

STREAM_THREADS_MAX = 8  # threads=0 of streaming objects stops here: each thread holds a segment


def native_limits(limits: Limits | None) -> Any:
    """Return limits as a ``glyd_limits *``, NULL for the defaults."""
    if limits is None:
        return ffi.NULL
    out = ffi.new("glyd_limits *")
    out.max_output = limits.max_output or 0
    out.max_memory = limits.max_memory or 0
    out.max_segments = limits.max_segments or 0
    return out


def level_id(level: str) -> int:
    """Return the number of a level.

    Raises
    ------
    ParameterError
        For a level that does not exist.
    """
    number = _LEVEL_IDS.get(level)
    if number is None:
        raise ParameterError(f"level must be one of {', '.join(LEVELS)}; not {level!r}")
    return number


def weights_mode(weights: Weights) -> int:
    """Return the number of a choice about model weights.

    Raises
    ------
    ParameterError
        For anything but "auto", True and False.
    """
    return _mode("weights", weights, lib.GLYD_WEIGHTS_AUTO, lib.GLYD_WEIGHTS_ON, lib.GLYD_WEIGHTS_OFF)


def containers_mode(containers: Containers) -> int:
    """Return the number of a choice about containers.

    Raises
    ------
    ParameterError
        For anything but "auto", True and False.
    """
    return _mode("containers", containers, lib.GLYD_CONTAINERS_AUTO, lib.GLYD_CONTAINERS_ON, lib.GLYD_CONTAINERS_OFF)


def _mode(name: str, value: object, auto: int, on: int, off: int) -> int:
    if value == "auto":
        return int(auto)
    if value is True:
        return int(on)
    if value is False:
        return int(off)
    raise ParameterError(f"{name} must be 'auto', True or False, not {value!r}")


def usable_cpus() -> int:
    """Return the number of CPUs that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1


def check_threads(threads: int) -> int:
    """Return the number of threads asked for; 0 still stands for one a CPU.

    Raises
    ------
    ParameterError
        For a number outside 0 … 1024.
    """
    number = operator.index(threads)
    if not 0 <= number <= 1024:
        raise ParameterError(f"threads must be 0 (one a CPU) or 1 … 1024, not {number}", found=number)
    return number


def stream_threads(threads: int) -> int:
    """Return the number of threads of a streaming object: for 0 one a CPU, at most 8."""
    return check_threads(threads) or min(usable_cpus(), STREAM_THREADS_MAX)


def native_params(
    level: str,
    threads: int,
    *,
    checksum: bool,
    long: bool,
    segment_size: int | None,
    records: Records = False,
    content_size: int | None = None,
    references: References | None = None,
    weights: Weights = "auto",
    containers: Containers = "auto",
) -> Any:
    """Return a checked ``glyd_params *``.

    Raises
    ------
    ParameterError
        For an unknown level, a segment size outside 2^10 … 2^30, or ``long`` with a level below max
        or with a base, level cold with ``long``, a base or records, ``containers`` or a dictionary with a base.
    """
    base = references.base if references else None
    params = ffi.new("glyd_params *")
    lib.glyd_params_init(params, level_id(level))
    if long and level_id(level) < lib.GLYD_LEVEL_MAX:
        raise ParameterError(f"long needs level 'max' or above, not {level!r}")
    if long and base:
        raise ParameterError("long and base exclude each other: copies reach over all of a base anyway")
    if level == "cold" and (long or base or records is True):
        named = "long" if long else "base" if base else "records"
        raise ParameterError(f"level 'cold' takes no {named}: its model finds repeats and rows by itself")
    if segment_size is not None:
        size = operator.index(segment_size)
        if level == "cold" and size > COLD_SEGMENT_SIZE_MAX:
            raise ParameterError(
                f"segment_size must be at most {COLD_SEGMENT_SIZE_MAX} bytes at level 'cold', not {size}", found=size
            )
        if not SEGMENT_SIZE_MIN <= size <= SEGMENT_SIZE_MAX:
            raise ParameterError(
                f"segment_size must be {SEGMENT_SIZE_MIN} … {SEGMENT_SIZE_MAX} bytes, not {size}", found=size
            )
        params.segment_size = size
    if content_size is not None:
        params.content_size = content_size
    params.threads = threads
    params.checksum = bool(checksum)
    params.long_distance = bool(long)
    if records not in _RECORDS:
        raise ParameterError(f"records must be True, 'auto' or False, not {records!r}")
    params.records = _RECORDS[records]
    if base:
        params.base = base  # the caller holds the handles
    if references and references.dictionary:
        if base:
            raise ParameterError("base and dictionary exclude each other: a base holds what a dictionary would")
        params.dictionary = references.dictionary
    params.weights = weights_mode(weights)
    mode = containers_mode(containers)
    if containers is True and base:
        raise ParameterError("containers and base exclude each other: streams are opened to be stored by themselves")
    if containers != "auto":  # else as the level says
        params.containers = mode
    return params

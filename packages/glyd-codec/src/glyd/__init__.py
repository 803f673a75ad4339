# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""glyd: everything that the installed packages of glyd offer, under one name.

What the codec offers is here. Other names come from packages that announce them
in the entry-point group ``glyd.api``, and are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import glyd_codec as _codec
from glyd_codec import __all__ as _codec_names
from glyd_codec import __version__ as __version__

if TYPE_CHECKING:
    from typing import Any

    from glyd_codec import *  # noqa: F403

__all__ = list(_codec_names)

_GROUP = "glyd.api"
_DISTRIBUTIONS = {  # where a name comes from, to say what to install
    "Store": "glyd-store",
    "from_pretrained": "glyd-gpu",
    "save_pretrained": "glyd-gpu",
}


def __getattr__(name: str) -> Any:
    if name in _codec_names:
        value = globals()[name] = getattr(_codec, name)
        return value
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import entry_points  # noqa: PLC0415  costs 10 ms, and most users never get here

    for entry in entry_points(group=_GROUP, name=name):
        value = entry.load()
        globals()[name] = value
        return value
    distribution = _DISTRIBUTIONS.get(name)
    if distribution is not None:
        raise AttributeError(f"glyd.{name} comes with another package: pip install {distribution}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from importlib.metadata import entry_points  # noqa: PLC0415

    return sorted({*globals(), *__all__, *(entry.name for entry in entry_points(group=_GROUP))})

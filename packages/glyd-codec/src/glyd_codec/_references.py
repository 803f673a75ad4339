# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""What frames are stored against or with: a base, a dictionary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glyd_codec._base import native_base
from glyd_codec._native import ffi

if TYPE_CHECKING:
    from glyd_codec._base import BaseLike
    from glyd_codec._dictionary import Dictionary


class References:
    """Handles of a base and a dictionary for the native core, valid as long as this object.

    Parameters
    ----------
    base, dictionary
        As for `compress`; None: there is none.
    for_writing
        Prepare the base for writing, too.

    Raises
    ------
    TypeError
        When dictionary is no `Dictionary`.
    """

    __slots__ = ("base", "dictionary", "native")

    def __init__(
        self, base: BaseLike | None = None, dictionary: Dictionary | None = None, *, for_writing: bool = False
    ) -> None:
        self.base = native_base(base, for_writing=for_writing)
        self.dictionary = native_dictionary(dictionary)
        self.native = ffi.new("glyd_references *", {"base": self.base, "dictionary": self.dictionary})


def native_dictionary(dictionary: Dictionary | None) -> object:
    """Return a ``glyd_dictionary *``, NULL for None; to be held as long as it is used."""
    if dictionary is None:
        return ffi.NULL
    from glyd_codec._dictionary import Dictionary  # noqa: PLC0415 - only where there is one

    if not isinstance(dictionary, Dictionary):
        raise TypeError(
            f"dictionary must be a glyd.Dictionary (made of the bytes of a trained one), not {type(dictionary).__name__}"
        )
    return dictionary.native()

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Texts or token ids, one or several: how OpenAI's older endpoints take them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from glyd_cli.serving.api_errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable


def token_lists(
    given: Any, encode: Callable[[str], list[int]], *, n_vocabulary: int, most: int, name: str
) -> list[list[int]]:
    """Return the token ids of each text.

    Parameters
    ----------
    given
        A text, texts, token ids, or lists of them.
    encode
        Returns the token ids of a text.
    n_vocabulary
        Ids are below it.
    most
        Texts at once.
    name
        Of the field, for errors.

    Raises
    ------
    ApiError
        Too many, none, an empty one, or an id outside the vocabulary.
    """
    many = isinstance(given, list) and (not given or not isinstance(given[0], int))
    texts = given if many else [given]
    if not 1 <= len(texts) <= most:
        raise ApiError(400, f"1 to {most} {name}s, found {len(texts)}", param=name)
    out = []
    for text in texts:
        ids = encode(text) if isinstance(text, str) else list(text)
        if not ids:
            raise ApiError(400, f"the {name} is empty", param=name)
        outside = [t for t in ids if not 0 <= t < n_vocabulary]
        if outside:
            raise ApiError(400, f"{name}: token ids are from 0 to {n_vocabulary - 1}, found {outside[0]}", param=name)
        out.append(ids)
    return out

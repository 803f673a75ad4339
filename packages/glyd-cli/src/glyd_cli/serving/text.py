# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""From token ids to text as it can be shown: whole characters, nothing of a stop string.

Characters may be split over tokens and stop strings over any number of them.
What may still become part of either is held back until the next token, or the
end, decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenizers.decoders import DecodeStream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokenizers import Tokenizer


class StopStrings:
    """Finds the first of several strings in text that comes in pieces.

    Parameters
    ----------
    strings
        Not empty ones.
    keep
        Leave the string found in the text.
    """

    def __init__(self, strings: Sequence[str], *, keep: bool = False) -> None:
        self._strings = [s for s in strings if s]
        self._keep = keep
        self._held = ""
        self.found: str | None = None

    def push(self, piece: str) -> str:
        """Return what can be shown now; after a string was found, ""."""
        if self.found is not None:
            return ""
        text = self._held + piece
        places = [(text.find(s), s) for s in self._strings]
        # the earliest match; of several at one place the longest, so that nothing of it is left
        hits = sorted(((at, -len(s), s) for at, s in places if at >= 0))
        if hits:
            at, _, string = hits[0]
            self.found = string
            self._held = ""
            return text[: at + len(string)] if self._keep else text[:at]
        n_held = max((_overlap(text, s) for s in self._strings), default=0)
        self._held = text[len(text) - n_held :]
        return text[: len(text) - n_held]

    @property
    def held(self) -> str:
        """What was held back so far."""
        return self._held

    def end(self) -> str:
        """Return what was held back: no more text comes."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, string: str) -> int:
    """Return the length of the longest end of text that begins string."""
    for n in range(min(len(text), len(string) - 1), 0, -1):
        if string.startswith(text[-n:]):
            return n
    return 0


class Detokenizer:
    """Text of one answer.

    Parameters
    ----------
    tokenizer
        Of the model.
    skip_special
        Leave special tokens out.
    """

    def __init__(self, tokenizer: Tokenizer, *, skip_special: bool = True) -> None:
        self._tokenizer = tokenizer
        self._skip = skip_special
        self._stream = DecodeStream(skip_special_tokens=skip_special)
        self._pending: list[int] = []

    def push(self, token: int) -> str:
        """Return the characters that a token completes, often none."""
        self._pending.append(token)
        piece = self._stream.step(self._tokenizer, token)
        if piece is None:
            return ""
        self._pending.clear()
        return str(piece)

    def end(self) -> str:
        """Return what tokens of an incomplete character stand for: replacement characters."""
        text = self._tokenizer.decode(self._pending, skip_special_tokens=self._skip) if self._pending else ""
        self._pending.clear()
        return text

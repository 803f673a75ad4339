# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Signals that ask the command to end, as an exception that can be held back for a moment."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """A signal asks the command to end; what was begun is taken back on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Signals:
    """The handler of this process."""

    def __init__(self) -> None:
        self._is_holding = False
        self._came = 0

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        """Raise `Stopped`, now or at the end of `held`."""
        if self._is_holding:
            self._came = number
        else:
            raise Stopped(number)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take the signals over, but for those that the parent had ignored (nohup), and give them back."""
        self._came = 0
        old = {n: signal.getsignal(n) for n in _NUMBERS}
        old = {n: handler for n, handler in old.items() if handler is not signal.SIG_IGN}
        for number in old:
            signal.signal(number, self)
        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let signals wait: a process that was started, and is not known yet, would be left behind."""
        self._is_holding = True
        try:
            yield
        finally:
            self._is_holding = False
        if self._came:
            raise Stopped(self._came)


SIGNALS = Signals()

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Stop signals as one exception that never interrupts a step that must be whole."""

from __future__ import annotations

import math
import signal
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType, TracebackType

_REPEAT_S = 2.0
"""A signal is raised again when it comes this long after the last one: cleaning up hangs."""

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A stop signal came in. Not an `Exception`: nothing but cleaning up may follow.

    Parameters
    ----------
    signum
        Number of the signal; the exit code is 128 more.
    """

    def __init__(self, signum: int) -> None:
        super().__init__(f"stopped by {signal.Signals(signum).name}")
        self.signum = signum


class StopGate:
    """Turns stop signals into `Interrupted`, at once or at the end of a ``with`` block.

    Creating a temporary file and remembering its name is one step, and so is giving a
    finished output its name: a signal between the halves would leave a stray file. Such
    steps run inside ``with gate:``, where a signal waits. The first signal raises; those
    that follow it closely are ignored, so that an impatient second Ctrl-C cannot cut the
    cleaning up short.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._pending: int | None = None
        self._raised_at = -math.inf
        self.signum: int | None = None
        """The signal that stopped the command. `Interrupted` may be lost on its way, when code
        that it passes through fails in cleaning up after itself; this stays."""

    def install(self) -> None:
        """Take over the stop signals, except those the parent process had set to be ignored."""
        for signum in _STOP_SIGNALS:
            if signal.getsignal(signum) is not signal.SIG_IGN:
                signal.signal(signum, self._on_signal)

    def check(self) -> None:
        """Raise `Interrupted` again if it has been raised and was lost.

        Raises
        ------
        Interrupted
            A stop signal came in before.
        """
        if self.signum is not None:
            raise Interrupted(self.signum)

    def retire(self) -> None:
        """Ignore stop signals from now on: everything is done, only the exit is left."""
        for signum in _STOP_SIGNALS:
            signal.signal(signum, signal.SIG_IGN)

    def _on_signal(self, signum: int, _frame: FrameType | None) -> None:
        if self._depth:
            self._pending = signum
        else:
            self._raise(signum)

    def _raise(self, signum: int) -> None:
        now = time.monotonic()
        if now < self._raised_at + _REPEAT_S:
            return
        self._raised_at = now
        self.signum = signum
        raise Interrupted(signum)

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if self._depth == 0 and self._pending is not None:
            signum, self._pending = self._pending, None
            self._raise(signum)


GATE = StopGate()
"""The gate of this process; `StopGate.install` connects it."""

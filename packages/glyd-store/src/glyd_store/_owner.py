# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Who holds a lock, in words that outlive the process."""

from __future__ import annotations

import json
import os
import sys
from typing import NamedTuple


class Owner(NamedTuple):
    """A process that holds, or held, a lock.

    Attributes
    ----------
    host, boot
        The machine, and which of its boots; boot is empty where the system does not say.
    pid, start
        The process, and when it was started (in the words of the system): numbers of
        processes come again.
    """

    host: str
    boot: str
    pid: int
    start: str

    def to_json(self) -> bytes:
        """Return it as a line of JSON."""
        return json.dumps(self._asdict()).encode() + b"\n"

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def _start_of(pid: int) -> str:
    """Return when a process was started, empty where that is not known."""
    if sys.platform == "linux":
        text = _read(f"/proc/{pid}/stat")
        return text.rpartition(")")[2].split()[19] if ")" in text else ""
    return ""


def current_owner() -> Owner:
    """Return this process as an owner."""
    pid = os.getpid()
    return Owner(os.uname().nodename, _read("/proc/sys/kernel/random/boot_id"), pid, _start_of(pid))


def parse_owner(text: bytes) -> Owner | None:
    """Return the owner that a lock names; None when it is free, or names nobody that can be made out."""
    try:
        found = json.loads(text)
        return Owner(str(found["host"]), str(found["boot"]), int(found["pid"]), str(found["start"]))
    except (ValueError, KeyError, TypeError):
        return None


def is_dead(owner: Owner) -> bool:
    """Say whether an owner is certainly no more: only processes of this machine can be judged."""
    here = current_owner()
    if owner.host != here.host:
        return False
    if owner.boot != here.boot:
        return True
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    start = _start_of(owner.pid)
    return bool(start and owner.start and start != owner.start)

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What this machine has: memory, NVIDIA cards and who holds theirs; without torch."""

from __future__ import annotations

import contextlib
import ctypes
import glob
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_TIMEOUT_S = 20  # of nvidia-smi, which waits for a driver that hangs
_MIB = 1 << 20
_NVIDIA = "0x10de"  # the vendor's number on the PCI bus
_DISPLAY = "0x03"  # the class of display and 3D controllers begins so
# of plain bytes: keys and values of trained models took 10.97 of 16 bits at most; pages being filled are plain
PACKED_KV_SHARE = 0.7


@dataclass(frozen=True)
class Memory:
    """Memory of the machine, or of the container that this process is in.

    Attributes
    ----------
    total_nbytes, free_nbytes
        All, and what programs can have now; None where the system does not say.
    """

    total_nbytes: int | None
    free_nbytes: int | None


@dataclass(frozen=True)
class Card:
    """A GPU as the driver sees it."""

    index: int
    name: str
    capability: str
    driver: str
    total_nbytes: int
    free_nbytes: int


@dataclass(frozen=True)
class Holder:
    """A process that holds memory of a GPU."""

    pid: int
    name: str
    nbytes: int


def memory() -> Memory:
    """Return the memory that there is and that is free: the least of the machine's and its container's."""
    total, free = _of_system()
    limit, used = _of_container()
    if limit is not None and (total is None or limit < total):
        room = limit - (used or 0)
        return Memory(limit, room if free is None else min(free, room))
    return Memory(total, free)


def _of_system() -> tuple[int | None, int | None]:
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        sizes = {line.partition(":")[0]: int(line.split()[1]) * 1024 for line in lines}
        return sizes.get("MemTotal"), sizes.get("MemAvailable")
    with contextlib.suppress(ImportError):
        import psutil  # noqa: PLC0415 - of the extra serve; other systems say it in other ways

        found = psutil.virtual_memory()
        return int(found.total), int(found.available)
    return None, None


def _of_container() -> tuple[int | None, int | None]:
    """Return limit and use of the control group; page cache that can be dropped does not count as used."""
    root = Path("/sys/fs/cgroup")
    with contextlib.suppress(OSError, ValueError):
        limit = (root / "memory.max").read_text(encoding="ascii").strip()
        if limit == "max":
            return None, None
        used = int((root / "memory.current").read_text(encoding="ascii"))
        stat = (root / "memory.stat").read_text(encoding="ascii").splitlines()
        cache = sum(int(line.split()[1]) for line in stat if line.startswith("inactive_file "))
        return int(limit), max(used - cache, 0)
    return None, None


def cards() -> list[Card] | None:
    """Return the GPUs that nvidia-smi lists; None when it is not there or fails."""
    rows = _smi("--query-gpu=index,name,compute_cap,driver_version,memory.total,memory.free")
    if rows is None:
        return None
    found = []
    for row in rows:
        with contextlib.suppress(ValueError):  # a card that fell off the bus has [N/A] everywhere
            index, name, capability, driver, total, free = row
            found.append(Card(int(index), name, capability, driver, int(total) * _MIB, int(free) * _MIB))
    return found


def holders() -> list[Holder]:
    """Return who holds memory of GPUs, the largest first; empty inside of most containers."""
    found = []
    for row in _smi("--query-compute-apps=pid,process_name,used_memory") or []:
        with contextlib.suppress(ValueError):
            pid, name, used = row
            found.append(Holder(int(pid), os.path.basename(name), int(used) * _MIB))
    return sorted(found, key=lambda h: -h.nbytes)


def _smi(query: str) -> list[list[str]] | None:
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    command = [program, query, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    return [[cell.strip() for cell in line.split(",")] for line in lines if line.strip()]


def has_card() -> bool:
    """Say whether there is a card of NVIDIA's, with a driver or without."""
    if os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/dxg"):  # the latter: Windows' subsystem for Linux
        return True
    for device in glob.glob("/sys/bus/pci/devices/*"):
        with contextlib.suppress(OSError):
            vendor = Path(device, "vendor").read_text(encoding="ascii").strip()
            if vendor == _NVIDIA and Path(device, "class").read_text(encoding="ascii").startswith(_DISPLAY):
                return True
    return False


def cuda_of_driver() -> tuple[int, int] | None:
    """Return the newest CUDA that the driver runs, for instance (13, 0); None without a driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    version = ctypes.c_int()
    if driver.cuDriverGetVersion(ctypes.byref(version)) != 0:
        return None
    return version.value // 1000, version.value % 1000 // 10


def newer_driver(built: str) -> str:
    """Return what to do when the driver is older than the CUDA that a PyTorch was built for."""
    oldest = {"12": "525", "13": "580"}.get(built.partition(".")[0])
    driver = f"NVIDIA's driver to {oldest} or newer" if oldest else "NVIDIA's driver"
    return f"update {driver}, or install a PyTorch built for an older CUDA"


def hub_cache() -> str:
    """Return the folder that models of the hub are kept in."""
    home = os.environ.get("HF_HOME") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "huggingface"
    )
    return os.environ.get("HF_HUB_CACHE") or os.path.join(home, "hub")


def disk_free(folder: str) -> int | None:
    """Return the free bytes of the disk that a folder is on, or will be on when it is made."""
    place = Path(folder).absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        return shutil.disk_usage(place).free
    except OSError:
        return None

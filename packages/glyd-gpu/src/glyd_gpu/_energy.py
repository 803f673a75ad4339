# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Energy and clocks of an NVIDIA GPU, as its driver's management library counts them."""

from __future__ import annotations

import ctypes
from typing import Any

import torch

_CLOCK_SM = 1  # NVML_CLOCK_SM


class Meter:
    """Reads the energy counter of a device; `joules` is None where there is no counter.

    Parameters
    ----------
    device
        A CUDA device; any other has no counter.
    """

    def __init__(self, device: torch.device) -> None:
        self._library: Any = None
        self._handle = ctypes.c_void_p()
        if device.type != "cuda":
            return
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        # torch and the driver may number devices in their own ways: the bus address is the same
        found = torch.cuda.get_device_properties(device)
        bus = f"{found.pci_domain_id:08x}:{found.pci_bus_id:02x}:{found.pci_device_id:02x}.0"
        if library.nvmlInit_v2() or library.nvmlDeviceGetHandleByPciBusId_v2(bus.encode(), ctypes.byref(self._handle)):
            return
        self._library = library

    def joules(self) -> float | None:
        """Return the energy that the device has used since its driver was loaded; the counter steps every 0.1 s."""
        value = ctypes.c_ulonglong()
        if self._library is None or self._library.nvmlDeviceGetTotalEnergyConsumption(
            self._handle, ctypes.byref(value)
        ):
            return None
        return value.value / 1e3

    def state(self) -> str:
        """Return clock and power now, or nothing."""
        power, clock = ctypes.c_uint(), ctypes.c_uint()
        if self._library is None:
            return ""
        self._library.nvmlDeviceGetPowerUsage(self._handle, ctypes.byref(power))
        self._library.nvmlDeviceGetClockInfo(self._handle, _CLOCK_SM, ctypes.byref(clock))
        return f"{power.value / 1e3:.0f} W, {clock.value} MHz"

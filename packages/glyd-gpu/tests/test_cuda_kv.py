# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Pages of keys and values on a GPU: the checks of bench/check_kv.py; and what says so where they are not on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from glyd_gpu import ShapeError, UnsupportedDeviceError, _kv_cuda, kv_cache

CHECK = Path(__file__).resolve().parents[1] / "bench" / "check_kv.py"


@pytest.mark.gpu
@pytest.mark.skipif(not CHECK.is_file(), reason="bench is in a checkout only, not in an sdist")
def test_checks_pass():
    environment = os.environ | {kv_cache.VARIABLE: "1"}
    done = subprocess.run(
        [sys.executable, str(CHECK)], env=environment, capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "\n0 failed" in done.stdout


def test_kernels_are_off_unless_asked_for(monkeypatch):
    monkeypatch.delenv(kv_cache.VARIABLE, raising=False)
    for device in ("cuda", "cuda:1", "meta"):
        with pytest.raises(UnsupportedDeviceError, match=f"GLYD_KV_CUDA=1 tries them.*on {device}"):
            kv_cache.check_device(torch.device(device))
    monkeypatch.setenv(kv_cache.VARIABLE, "1")
    kv_cache.check_device(torch.device("cuda"))
    with pytest.raises(UnsupportedDeviceError):
        kv_cache.check_device(torch.device("meta"))
    kv_cache.check_device(torch.device("cpu"))


def test_head_sizes_without_kernels():
    for channels in _kv_cuda.CHANNELS:
        _kv_cuda.check_channels(channels)
    with pytest.raises(ShapeError, match=r"heads of \(64, 96, 128, 256\) channels, not 80"):
        _kv_cuda.check_channels(80)

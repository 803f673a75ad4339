# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Pages of keys and values on a GPU: the checks of bench/check_kv.py; and what says so where they are turned off."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from glyd_gpu import ShapeError, UnsupportedDeviceError, _kv_cuda

CHECK = Path(__file__).resolve().parents[1] / "bench" / "check_kv.py"


@pytest.mark.gpu
@pytest.mark.skipif(not CHECK.is_file(), reason="bench is in a checkout only, not in an sdist")
def test_checks_pass():
    environment = {name: value for name, value in os.environ.items() if name != _kv_cuda.VARIABLE}
    done = subprocess.run(
        [sys.executable, str(CHECK)], env=environment, capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "\n0 failed" in done.stdout


def test_devices(monkeypatch):
    monkeypatch.delenv(_kv_cuda.VARIABLE, raising=False)
    for device in ("cpu", "cuda", "cuda:1"):
        _kv_cuda.check_device(torch.device(device))
    with pytest.raises(UnsupportedDeviceError, match=r"on the CPU and on CUDA devices.*on meta"):
        _kv_cuda.check_device(torch.device("meta"))
    monkeypatch.setenv(_kv_cuda.VARIABLE, "0")
    _kv_cuda.check_device(torch.device("cpu"))
    with pytest.raises(UnsupportedDeviceError, match=r"turned off on GPUs \(GLYD_KV_CUDA=0\).*on cuda:1"):
        _kv_cuda.check_device(torch.device("cuda:1"))


def test_head_sizes_without_kernels():
    for channels in _kv_cuda.CHANNELS:
        _kv_cuda.check_channels(channels)
    with pytest.raises(ShapeError, match=r"heads of \(64, 96, 128, 256\) channels, not 80"):
        _kv_cuda.check_channels(80)


def test_how_slabs_are_divided():
    """Every multiprocessor of 132 has a block where there are slabs for all warps, and few have a round less to do."""
    for pairs, slabs in ((8, 32), (8, 256), (8, 4096), (64, 64), (128, 256), (512, 32), (1, 1), (3, 12000)):
        splits = _kv_cuda._division(132, 16, pairs, slabs)
        assert 1 <= splits <= slabs
        if pairs * slabs >= 132 * 64:  # four slabs for every warp
            rounds = -(-pairs * splits // 132)
            assert pairs * splits > 0.9 * 132 * rounds


def test_heads_of_two_sizes_are_refused():
    tails = torch.zeros((1, 1, 1, 64)), torch.zeros((1, 1, 1, 128))
    addresses = torch.zeros((1, 1, 0), dtype=torch.int64)
    with pytest.raises(ShapeError, match="queries have 64 channels, keys and values 64, 128"):
        _kv_cuda.attention(torch.zeros((1, 1, 64)), (addresses, addresses), tails, None, 1.0)

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
import ctypes
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

HAS_GPU = torch.cuda.is_available()
HERE = Path(__file__).resolve().parent
KERNELS = HERE.parent / "src" / "glyd_gpu" / "kernels"
INCLUDES = [HERE.parent / "native" / "include", HERE.parents[2] / "native" / "include"]


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs a CUDA device and the kernels")


def pytest_collection_modifyitems(items):
    if HAS_GPU:
        return
    skip = pytest.mark.skip(reason="no CUDA device here")
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(skip)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(1234)


@pytest.fixture(scope="session")
def compile_kernels(tmp_path_factory):
    """Return a function that compiles a file of tests/emulation as C++, with options, and loads it."""

    def compiled(name, *options):
        named = os.environ.get("CXX")
        compiler = shlex.split(named) if named else [shutil.which("c++") or shutil.which("g++") or ""]
        include = next((path for path in INCLUDES if (path / "glyd" / "format_kv.h").is_file()), None)
        if not compiler[0]:
            pytest.skip("no C++ compiler: the kernels cannot be compiled for the CPU")
        if include is None or not (KERNELS / "kv_page.cuh").is_file():
            pytest.skip("no sources of the kernels here")
        out = tmp_path_factory.mktemp("emulated") / "kernels.so"
        folders = [f"-I{path}" for path in (HERE / "emulation", KERNELS, include)]
        # a GPU takes no word that is not aligned: here it is a trap
        traps = ["-fsanitize=alignment,shift,bounds", "-fsanitize-undefined-trap-on-error"]
        command = [*compiler, "-std=c++17", "-O1", "-shared", "-fPIC", *traps, *options, *folders]
        subprocess.run([*command, str(HERE / "emulation" / name), "-o", str(out)], check=True, timeout=600)
        return ctypes.CDLL(str(out))

    return compiled

#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
#
# Make an environment for packed models on NVIDIA GPUs, as an ordinary user:
#
#   scripts/setup_gpu_env.sh DIR
#
# DIR becomes a virtual environment of Python 3.12 with PyTorch for CUDA 13 and
# the nvcc of the CUDA that this PyTorch was built with, all from PyPI, by uv.
# The last lines say what is there: PyTorch, its CUDA, the GPUs, nvcc's build.
#
#   GLYD_TORCH           what to install, for instance torch==2.13.0 (default: torch)
#   GLYD_TORCH_BACKEND   index of PyTorch's own, as uv names it: cu130, cu132 … (default: PyPI)
#   GLYD_CUDA            which CUDA PyTorch must be for: 13 (default), 12, or none for a machine without a GPU
#   GLYD_PYTHON          version of Python (default: 3.12)
set -euo pipefail

UV_VERSION=0.13.9

say() { printf '%s\n' "$*" >&2; }
fail() { say "setup_gpu_env.sh: $*"; exit 1; }

find_uv() {
  if command -v uv > /dev/null; then
    command -v uv
    return
  fi
  command -v python3 > /dev/null || fail "neither uv nor python3 is on PATH: install uv (https://docs.astral.sh/uv)"
  say "no uv on PATH: uv $UV_VERSION goes to $1/.uv"
  python3 -m venv "$1/.uv" || fail "python3 -m venv does not work here (on Debian: apt install python3-venv)"
  "$1/.uv/bin/python" -m pip install -q "uv==$UV_VERSION" || fail "uv $UV_VERSION could not be installed from PyPI"
  printf '%s\n' "$1/.uv/bin/uv"
}

main() {
  [ $# -eq 1 ] && [ "${1#-}" = "$1" ] || fail "usage: $0 DIR"
  [ "$(uname -s)" = Linux ] || fail "this is $(uname -s); GPUs are used on Linux only"
  local dir=$1 python uv cuda wanted=${GLYD_CUDA:-13}
  if [ -e "$dir" ] && [ ! -e "$dir/pyvenv.cfg" ] && [ -n "$(ls -A "$dir" 2> /dev/null)" ]; then
    fail "$dir is there already, and no virtual environment"
  fi
  mkdir -p "$dir"
  dir=$(cd "$dir" && pwd)
  uv=$(find_uv "$dir")
  python=$dir/bin/python
  [ -x "$python" ] || "$uv" venv -q --allow-existing --python "${GLYD_PYTHON:-3.12}" "$dir"
  say "PyTorch: some gigabytes the first time"
  "$uv" pip install -q --python "$python" ${GLYD_TORCH_BACKEND:+--torch-backend "$GLYD_TORCH_BACKEND"} \
    "${GLYD_TORCH:-torch}" numpy
  cuda=$("$python" -c 'import torch; print(torch.version.cuda or "none")')
  [ "${cuda%%.*}" = "$wanted" ] || fail "PyTorch is for CUDA $cuda, not $wanted: GLYD_TORCH_BACKEND=cu130 names PyTorch's own index"
  if [ "$cuda" != none ]; then
    # the compiler of another CUDA may make code that this PyTorch's runtime does not load
    "$uv" pip install -q --python "$python" "nvidia-cuda-nvcc==$cuda.*" "nvidia-cuda-runtime==$cuda.*" "nvidia-cuda-cccl==$cuda.*"
  fi
  "$python" - << 'END'
import glob
import os
import subprocess
import sysconfig

import torch

n = torch.cuda.device_count()
nvcc = sorted(glob.glob(os.path.join(sysconfig.get_paths()["purelib"], "nvidia", "cu*", "bin", "nvcc")))
build = "none"
if nvcc:
    said = subprocess.run([nvcc[-1], "--version"], check=True, capture_output=True, text=True).stdout
    build = f"{said.split()[-1]} ({nvcc[-1]})"
print(f"PyTorch {torch.__version__}")
print(f"CUDA {torch.version.cuda or 'none'}")
print(f"GPUs {n}" + (f": {torch.cuda.get_device_name(0)}" if n else ""))
print(f"nvcc {build}")
END
  say "next: $python -m pip install glyd-gpu, or with uv: uv pip install --python $python glyd-gpu"
}

main "$@"

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What packed models need and what is here: ``python -m glyd_gpu [--json]``."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Any

PACKAGES = ("glyd-gpu", "glyd-codec", "torch", "transformers", "accelerate", "safetensors", "vllm", "peft")
OPTIONAL = {"vllm", "peft"}


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def _kernels() -> tuple[dict[str, Any], list[str]]:
    """Return facts about the library of kernels, and what to do when it is not there."""
    from glyd_gpu import _library  # noqa: PLC0415  only when torch is there
    from glyd_gpu._errors import KernelsUnavailableError  # noqa: PLC0415

    facts: dict[str, Any] = {"path": str(_library.library_path()), "loaded": False, "architectures": []}
    try:
        _library.load()
    except KernelsUnavailableError as error:
        return facts, [str(error)]
    facts.update(loaded=True, architectures=_library.architectures())
    return facts, []


def _runs_on(capability: tuple[int, int], architectures: Sequence[str]) -> str | None:
    """Return the code in the library that a device runs: its own, of its family, or PTX; None when there is none."""
    number = capability[0] * 10 + capability[1]
    best: tuple[int, str] | None = None
    for name in architectures:
        kind, _, version = name.partition("_")
        known = int(version.rstrip("a"))
        same_family = known // 10 == capability[0] and known <= number
        exact = version.endswith("a") and known == number
        if kind == "sm" and (exact or (same_family and not version.endswith("a"))):
            rank = known + 1000
        elif kind == "compute" and known <= number:
            rank = known
        else:
            continue
        if best is None or rank > best[0]:
            best = rank, name
    return best[1] if best else None


def _devices(torch: Any, kernels: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    devices, missing = [], []
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        capability = (properties.major, properties.minor)
        code = _runs_on(capability, kernels["architectures"])
        devices.append(
            {
                "index": index,
                "name": properties.name,
                "capability": f"sm_{properties.major}{properties.minor}",
                "memory_nbytes": properties.total_memory,
                "multiprocessors": properties.multi_processor_count,
                "runs": code,
            }
        )
        if capability < (8, 0):
            missing.append(f"device {index} ({properties.name}) is older than sm_80: packed weights run on newer ones")
        elif kernels["loaded"] and code is None:
            missing.append(f"no kernels for device {index} ({properties.name}): build glyd-gpu where nvcc is")
    return devices, missing


def diagnose() -> dict[str, Any]:
    """Return all facts; ``missing`` lists what stands in the way, each with what to do."""
    facts: dict[str, Any] = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": _versions(),
    }
    missing = [
        f"{name} is not installed: pip install {name}"
        for name, version in facts["packages"].items()
        if version is None and name not in OPTIONAL
    ]
    try:
        import torch  # noqa: PLC0415
    except ImportError as error:
        facts.update(kernels=None, cuda=None, devices=[], missing=[*missing, f"torch cannot be imported: {error}"])
        return facts
    facts["cuda"] = {"torch_built_for": torch.version.cuda, "available": torch.cuda.is_available(), "driver": _driver()}
    facts["kernels"], problems = _kernels()
    missing += problems
    facts["devices"], problems = _devices(torch, facts["kernels"]) if torch.cuda.is_available() else ([], [])
    missing += problems
    if torch.version.cuda is None:
        missing.append(
            "this torch is built for the CPU: install one for CUDA (https://pytorch.org/get-started/locally)"
        )
    elif not torch.cuda.is_available():
        missing.append(
            "torch sees no CUDA device: is there an NVIDIA GPU and a driver (nvidia-smi), and is it visible here?"
        )
    facts["missing"] = missing
    return facts


def _driver() -> str | None:
    """Return the version of CUDA that the driver knows, for instance 13.0."""
    import ctypes  # noqa: PLC0415

    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    version = ctypes.c_int()
    if driver.cuDriverGetVersion(ctypes.byref(version)) != 0:
        return None
    return f"{version.value // 1000}.{version.value % 1000 // 10}"


def _text(facts: dict[str, Any]) -> str:
    lines = [f"Python {facts['python']}, {facts['platform']}"]
    lines += [f"  {name:13} {version or 'not installed'}" for name, version in facts["packages"].items()]
    if facts["cuda"]:
        cuda = facts["cuda"]
        lines.append(f"CUDA: torch built for {cuda['torch_built_for'] or 'the CPU'}, driver {cuda['driver'] or 'none'}")
    if facts["kernels"]:
        kernels = facts["kernels"]
        state = ", ".join(kernels["architectures"]) if kernels["loaded"] else "not loaded"
        lines.append(f"kernels: {state} ({kernels['path']})")
    for device in facts["devices"]:
        gib = device["memory_nbytes"] / 2**30
        lines.append(
            f"device {device['index']}: {device['name']}, {device['capability']}, {gib:.0f} GiB, runs {device['runs']}"
        )
    lines += [f"missing: {problem}" for problem in facts["missing"]]
    if not facts["missing"]:
        lines.append("all there; python -m glyd_gpu.check tries every kernel")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the diagnosis; 0 when a GPU can be used, 1 when something is missing."""
    parser = argparse.ArgumentParser(
        prog="python -m glyd_gpu", description="Say what packed models need and what is here."
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    facts = diagnose()
    print(json.dumps(facts, indent=2) if options.json else _text(facts))
    return 1 if facts["missing"] else 0


if __name__ == "__main__":
    sys.exit(main())

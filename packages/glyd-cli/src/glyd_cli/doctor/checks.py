# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The checks of ``glyd doctor``: each looks at one thing, and says what to do when it is not as it should be."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import glyd
from glyd_cli import machine
from glyd_cli.report import size_text
from glyd_cli.serve_checks import DEFAULT_PORT, missing_packages

OK, WARN, NO = "ok", "!!", "NO"

_OLDEST = (3, 10)  # Python
_OLDEST_GPU = 8.0  # compute capability that the kernels are for
_FEW_NBYTES = 1_000_000_000  # of disk: nothing can be done with less
_SOME_NBYTES = 20_000_000_000  # a model of 8 G weights and room to pack it
_PROBE_S = 3.0  # for the hub to answer
_FACTS_S = 120  # for torch to be imported from a slow disk


@dataclass(frozen=True)
class Check:
    """One row.

    Attributes
    ----------
    name
        What was looked at.
    state
        `OK`, `WARN` (works, but not as well as it could) or `NO` (does not work).
    found
        What is there.
    fix
        What to do; empty when nothing is to be done.
    """

    name: str
    state: str
    found: str
    fix: str = ""


def gpu_facts() -> dict[str, Any] | None:
    """Return what ``python -m glyd_gpu --json`` says, None without glyd-gpu: a process of its own, as torch may crash."""
    if importlib.util.find_spec("glyd_gpu") is None:
        return None
    command = [sys.executable, "-m", "glyd_gpu", "--json"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_FACTS_S, check=False)
        facts: dict[str, Any] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return {"error": f"{type(error).__name__}: {str(error)[:200]}"}
    return facts


def python() -> Check:
    """Look at the Python that this runs on."""
    found = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info[:2] < _OLDEST:
        return Check("Python", NO, found, f"install Python {_OLDEST[0]}.{_OLDEST[1]} or newer")
    return Check("Python", OK, found)


def path() -> Check:
    """Look whether the command that a shell finds is this one."""
    own = Path(sys.executable).parent / "glyd"
    found = shutil.which("glyd")
    if found is None:
        return Check("PATH", WARN, "no glyd on PATH", f"add {own.parent} to PATH")
    if own.exists() and not Path(found).samefile(own) and Path(found).resolve() != own.resolve():
        return Check("PATH", WARN, f"{found} is another installation", f"put {own.parent} first on PATH, or remove it")
    return Check("PATH", OK, found)


def codec() -> Check:
    """Look whether the codec restores what it compresses."""
    data = bytes(range(256)) * 64 + os.urandom(1000)
    try:
        for level in ("turbo", "max"):
            if glyd.decompress(glyd.compress(data, level)) != data:
                raise ValueError(f"level {level} restores other bytes")
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        return Check(
            "codec", NO, str(error)[:200], "install it again: python -m pip install --force-reinstall glyd-codec"
        )
    return Check("codec", OK, f"glyd-codec {metadata.version('glyd-codec')}, restores what it compresses")


def gpus(cards: list[machine.Card] | None) -> Check:
    """Look for GPUs that packed models run on."""
    if not cards:
        if cards is None and machine.has_card():
            return Check(
                "GPU", NO, "an NVIDIA card, without a driver that works", "install NVIDIA's driver, then nvidia-smi"
            )
        return Check("GPU", WARN, "none", "models run on the CPU: right, and many times slower")
    text = "; ".join(f"{c.name} ({size_text(c.total_nbytes)}, {size_text(c.free_nbytes)} free)" for c in cards)
    old = [c for c in cards if _number(c.capability) < _OLDEST_GPU]
    if len(old) == len(cards):
        return Check(
            "GPU", WARN, f"{text}: older than Ampere", "packed weights need compute capability 8.0; --device cpu"
        )
    return Check("GPU", OK, text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return _OLDEST_GPU  # not said by old versions of nvidia-smi


def driver(cards: list[machine.Card] | None, facts: dict[str, Any] | None) -> Check | None:
    """Look whether the driver is new enough for this PyTorch; None without GPUs."""
    if not cards:
        return None
    runs = machine.cuda_of_driver()
    found = cards[0].driver + (f" (CUDA {runs[0]}.{runs[1]})" if runs else "")
    built = str(((facts or {}).get("cuda") or {}).get("torch_built_for") or "")
    if runs and built and int(built.partition(".")[0]) > runs[0]:
        return Check("driver", NO, f"{found}; PyTorch was built for CUDA {built}", machine.newer_driver(built))
    return Check("driver", OK, found)


def torch(cards: list[machine.Card] | None, facts: dict[str, Any] | None) -> Check:
    """Look whether PyTorch can be imported and sees the GPUs."""
    if facts is None:
        return Check("PyTorch", WARN, "not looked at: glyd-gpu is not installed", _install_serve())
    if "error" in facts:
        return Check("PyTorch", NO, facts["error"], "python -m glyd_gpu says more")
    version = facts["packages"].get("torch")
    if version is None or facts.get("cuda") is None:
        why = next((m for m in facts["missing"] if "torch" in m), "not installed")
        return Check("PyTorch", NO, why, "python -m pip install torch")
    cuda = facts["cuda"]
    built = cuda["torch_built_for"]
    text = f"{version}, built for {'CUDA ' + built if built else 'the CPU'}"
    if cards and not built:
        fix = "install the build for CUDA: https://pytorch.org/get-started/locally"
        return Check("PyTorch", NO, f"{text}; there is a GPU", fix)
    if cards and not cuda["available"]:
        return Check("PyTorch", NO, f"{text}, sees no GPU", "is CUDA_VISIBLE_DEVICES set? see the driver above")
    return Check("PyTorch", OK, text)


def kernels(cards: list[machine.Card] | None, facts: dict[str, Any] | None) -> Check | None:
    """Look for kernels for these GPUs; None without GPUs or without glyd-gpu."""
    if not cards or facts is None or not facts.get("kernels"):
        return None
    known = facts["kernels"]
    if not known["loaded"]:
        why = next((m for m in facts["missing"] if "kernels" in m), "not loaded")
        return Check(
            "kernels", NO, why.partition(". ")[0], "install the wheel for this platform, or build where nvcc is"
        )
    without = [d["name"] for d in facts["devices"] if d["runs"] is None]
    if without:
        return Check("kernels", NO, f"none for {', '.join(without)}", "build glyd-gpu where nvcc is")
    return Check("kernels", OK, ", ".join(d["runs"] for d in facts["devices"]) or ", ".join(known["architectures"]))


def engine(facts: dict[str, Any] | None) -> Check:
    """Look for all that ``glyd run`` and ``glyd serve`` need."""
    missing = missing_packages()
    if missing:
        return Check("engine", WARN, f"without {', '.join(missing)} there is no glyd run and serve", _install_serve())
    packages = (facts or {}).get("packages") or {}
    text = f"transformers {packages.get('transformers')}"
    return Check("engine", OK, text + (f", vLLM {packages['vllm']}" if packages.get("vllm") else ""))


def hook() -> Check | None:
    """Look whether transformers loads packed models without an import of ours; None without glyd-gpu."""
    if importlib.util.find_spec("glyd_gpu") is None:
        return None
    if os.environ.get("GLYD_NO_AUTO") == "1":
        return Check("transformers", WARN, "packed models load after import glyd_gpu only", "unset GLYD_NO_AUTO")
    if "glyd_gpu_auto" not in sys.modules:
        return Check(
            "transformers", WARN, "packed models load after import glyd_gpu only", "install glyd-gpu from a wheel"
        )
    return Check("transformers", OK, "loads packed models by itself")


def compiler() -> Check | None:
    """Look for a C compiler, which torch.compile and Triton call; None without glyd-gpu."""
    if importlib.util.find_spec("glyd_gpu") is None:
        return None
    named = os.environ.get("CC")
    found = shutil.which(named) if named else next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if found is None:
        return Check("compiler", WARN, "no C compiler", "install gcc or clang: torch.compile and Triton call one")
    nvcc = shutil.which("nvcc")
    return Check("compiler", OK, found + (f", {nvcc}" if nvcc else ""))


def gpu_memory(cards: list[machine.Card] | None) -> Check | None:
    """Look who holds memory of the GPUs; None without GPUs."""
    if not cards:
        return None
    used = sum(c.total_nbytes - c.free_nbytes for c in cards)
    total = sum(c.total_nbytes for c in cards)
    text = f"{size_text(total - used)} of {size_text(total)} free"
    if used <= total // 10:
        return Check("GPU memory", OK, text)
    names = ", ".join(f"{h.name} (process {h.pid}) {size_text(h.nbytes)}" for h in machine.holders()[:3])
    fix = "stop what is not needed" if names else "programs outside of this container hold the rest"
    return Check("GPU memory", WARN, f"{text}; {names or 'holders unknown'}", fix)


def memory(found: machine.Memory) -> Check:
    """Look at the memory that is free."""
    if found.total_nbytes is None or found.free_nbytes is None:
        return Check("memory", WARN, "the system does not say", "python -m pip install psutil")
    text = f"{size_text(found.free_nbytes)} of {size_text(found.total_nbytes)} free"
    if found.free_nbytes < _FEW_NBYTES:
        return Check("memory", WARN, text, "close other programs, or give the container more")
    return Check("memory", OK, text)


def disk() -> Check:
    """Look for room where models of the hub go."""
    folder = machine.hub_cache()
    free = machine.disk_free(folder)
    if free is None:
        return Check("disk", WARN, f"{folder} cannot be looked at", "set HF_HOME to a folder that can be written")
    text = f"{size_text(free)} free for {folder}"
    if free < _FEW_NBYTES:
        return Check("disk", NO, text, "make room, or set HF_HOME to a larger disk")
    if free < _SOME_NBYTES:
        return Check("disk", WARN, text, "a model of 8 G weights takes 16.4 GB: make room, or set HF_HOME")
    return Check("disk", OK, text)


def hub() -> Check:
    """Look whether models can be downloaded."""
    if importlib.util.find_spec("huggingface_hub") is None:
        return Check("hub", WARN, "no huggingface_hub: only models on disk", "python -m pip install 'glyd-cli[models]'")
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
        return Check("hub", OK, "offline by HF_HUB_OFFLINE: models on disk and in the cache")
    url = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    try:
        if not url.startswith(("http://", "https://")):
            raise ValueError("not http")
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=_PROBE_S):  # noqa: S310 - checked
            pass
    except urllib.error.HTTPError:
        pass  # it answered
    except (OSError, ValueError) as error:
        why = str(getattr(error, "reason", None) or error)[:100]
        return Check("hub", WARN, f"{url} cannot be reached ({why})", "models on disk and in the cache still run")
    return Check("hub", OK, url)


def port() -> Check:
    """Look whether the port is free that the API takes by default."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", DEFAULT_PORT))
        except OSError:
            return Check("port", WARN, f"another program listens on {DEFAULT_PORT}", "glyd serve --port N")
    return Check("port", OK, f"{DEFAULT_PORT} is free")


def _install_serve() -> str:
    return "to run models: python -m pip install 'glyd-cli[serve]'"

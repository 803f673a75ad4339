# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What vLLM's log says when it does not start: the cause in a line, what to do, and what can be tried at once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

Heal = Literal["context", "share", "eager", "port"]


@dataclass(frozen=True)
class Cause:
    """Why vLLM did not start.

    Attributes
    ----------
    text
        Cause and cure, one line.
    heal
        What a second start may change: a shorter window, a smaller share of memory, no captured graphs, or
        the port alone.
    value
        For the window: the longest that vLLM says will fit. For the share: the largest that is free.
    """

    text: str
    heal: Heal | None = None
    value: float | None = None


class _Rule(NamedTuple):
    pattern: str
    text: str
    heal: Heal | None = None


# in the order of what says most; {1} and on are groups of the pattern
_RULES = (
    _Rule(r"No module named '?vllm'?", "vLLM is not installed in this Python: python -m pip install vllm"),
    _Rule(
        r"glyd-gpu cannot register with vLLM (\S+),.*?\((.+?)\)",
        "glyd-gpu does not know vLLM {1} ({2}): update glyd-gpu, or install an older vLLM",
    ),
    _Rule(
        r"(?:Unknown|Invalid) quantization method: glyd",
        "vLLM does not find glyd's plugin: install glyd-gpu beside vLLM, and leave VLLM_PLUGINS unset or add glyd to it",
    ),
    _Rule(
        r"quantization method glyd is not supported for the current GPU\. *Minimum capability: (\d+)\. *"
        r"Current capability: (\d+)",
        "this GPU has compute capability {2}, packed weights need {1} or newer (A100, RTX 30 and later): "
        "--engine transformers --device cpu works everywhere",
    ),
    _Rule(
        r"no kernel image is available for execution on the device",
        "vLLM or glyd-gpu was built without code for this GPU: install builds for it (python -m glyd_gpu says more)",
    ),
    _Rule(
        r"KernelsUnavailableError: (.+)",
        "{1}",
    ),
    _Rule(
        r"(?:NVIDIA driver on your system is too old|CUDA driver version is insufficient for CUDA runtime version)",
        "NVIDIA's driver is older than the CUDA that this vLLM was built for: update the driver (glyd doctor says more)",
    ),
    _Rule(
        r"Total number of attention heads \((\d+)\) must be divisible by tensor parallel size \((\d+)\)",
        "{1} attention heads cannot be divided by {2} GPUs: use a number that divides {1} (-- --tensor-parallel-size N)",
    ),
    _Rule(
        r"AssertionError: (\d+) is not divisible by (\d+)",
        "a layer of {1} rows cannot be divided by {2} GPUs: use fewer (-- --tensor-parallel-size N)",
    ),
    _Rule(
        r"[Ww]orld size \((\d+)\) is larger than the number of available GPUs \((\d+)\)",
        "{1} GPUs were asked for, {2} are here: use fewer, or more machines (docs/serving.md, Ray)",
    ),
    _Rule(
        r"max seq len \((\d+)\),? .*?\(?([\d.]+) GiB KV cache is needed, which is larger than the available KV cache "
        r"memory \(([\d.]+) GiB\)\.(?: Based on the available memory, the estimated maximum model length is (\d+))?",
        "a window of {1} tokens takes {2} GiB of KV cache, {3} are left: name a smaller --context",
        "context",
    ),
    _Rule(
        r"No available memory for the cache blocks",
        "the weights leave no memory for a KV cache: --layout tiered is smallest, more GPUs "
        "(-- --tensor-parallel-size N) share them; glyd fit says what fits",
    ),
    _Rule(
        r"Free memory on device \S+ \(([\d.]+)/([\d.]+) GiB\) on startup is less than desired GPU memory utilization",
        "other programs hold memory of the GPU, {1} of {2} GiB are free: end them (glyd doctor lists them)",
        "share",
    ),
    _Rule(
        r"max_model_len \((\d+)\) is greater than the derived max_model_len \([^0-9]*(\d+)",
        "the window of {1} tokens is more than the model's of {2}: name a smaller --context",
    ),
    _Rule(
        r"Model architectures (\[[^\]]*\]) (?:are not supported for now|failed to be inspected)",
        "this vLLM does not know the architecture {1}: update it, or --engine transformers",
    ),
    _Rule(
        r"torch\.float16 is not supported for quantization method glyd",
        "packed weights compute in bf16, not fp16: leave --dtype out",
    ),
    _Rule(r"\[Errno 98\]|[Aa]ddress already in use", "the port for vLLM was taken meanwhile: start again", "port"),
    _Rule(r"gated repo|401 Client Error", "the model must be asked for on the hub: then log in with hf auth login"),
    _Rule(
        r"LocalEntryNotFoundError|couldn't connect to '?https://huggingface",
        "the hub cannot be reached and the model is not in the cache: check the network, or name a directory",
    ),
    _Rule(r"No space left on device", "a disk is full (the log says which; /dev/shm counts as one): make room"),
    _Rule(r"ncclUnhandledCudaError|NCCL error", "the GPUs cannot talk to one another: NCCL_DEBUG=WARN says more"),
    _Rule(
        r"(?:ParameterError|CorruptDataError|UnsupportedVersionError|ChecksumError|FormatError): (?:glyd: )?(.+)",
        "{1}",
    ),
    _Rule(
        r"unrecognized arguments: (.+)",
        "vLLM does not know {1}: flags after -- are those of vllm serve --help",
    ),
)

_OUT_OF_MEMORY = re.compile(r"OutOfMemoryError|CUDA out of memory|CUDA error: out of memory")
_CAPTURE = re.compile(r"Capturing CUDA graphs?|capture_model|warming up sampler")
_OUTER = re.compile(r"(?:Engine core|WorkerProc) initialization failed")  # one process of another that has the cause
_PREFIX = re.compile(r"^(?:\(\w[^)]*\) )?(?:[A-Z]+ [\d: -]+\[[^\]]*\] )?")


def classify(log: str, *, code: int | None = None) -> Cause:
    """Return why vLLM ended.

    Parameters
    ----------
    log
        All that it wrote.
    code
        Its exit code; negative: the signal that ended it.
    """
    for rule in _RULES:
        found = re.search(rule.pattern, log)
        if found is None:
            continue
        text = rule.text
        for number, group in enumerate(found.groups(), 1):
            text = text.replace(f"{{{number}}}", (group or "?").strip())
        return Cause(text, rule.heal, _value(rule, found))
    if _OUT_OF_MEMORY.search(log):
        before = log[: _OUT_OF_MEMORY.search(log).start()]  # type: ignore[union-attr]
        if _CAPTURE.search(before) or _CAPTURE.search(log):
            text = "the GPU ran out of memory while graphs were captured: -- --enforce-eager takes less, and is slower"
            return Cause(text, "eager")
        text = (
            "the GPU ran out of memory while weights were loaded: --layout tiered is smallest; glyd fit says what fits"
        )
        return Cause(text)
    if code == -9:
        return Cause(
            "vLLM was killed, most likely since the machine ran out of memory: glyd doctor says how much is free"
        )
    errors = [line for line in log.splitlines() if "Error" in line]
    causes = [line for line in errors if not _OUTER.search(line)] or errors
    message = _PREFIX.sub("", causes[-1]).strip() if causes else ""
    return Cause(message[:300] or (f"it ended with code {code}" if code else "no reason in its log"))


def _value(rule: _Rule, found: re.Match[str]) -> float | None:
    if rule.heal == "context" and found.group(4):
        return float(found.group(4))
    if rule.heal == "share":
        return float(found.group(1)) / float(found.group(2))
    return None

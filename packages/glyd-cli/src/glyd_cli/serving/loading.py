# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""A model and its engine: whether they fit is said before anything is read, and every fault with what to do."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

import glyd
import glyd_gpu
from glyd_cli import machine
from glyd_cli.errors import FileError, UsageError, file_error
from glyd_cli.report import size_text
from glyd_cli.serving.causes import UNREACHABLE, cause_of, load_tokenizer
from glyd_cli.serving.embedding import EmbeddingEngine, Pooling, read_pooling
from glyd_cli.serving.kv_room import PAGE, kv_bytes_a_token, kv_room
from glyd_cli.serving.pages import why_not
from glyd_cli.serving.prefixes import Prefixes
from glyd_cli.serving.transformers_engine import TransformersEngine, describe_model

if TYPE_CHECKING:
    from collections.abc import Callable

    from transformers import PreTrainedTokenizerFast

    from glyd_cli.report import Reporter
    from glyd_cli.serve import ServeOptions
    from glyd_cli.serving.engine import ModelInfo

_KV_SHARE = {"cpu": 0.25, "cuda": 0.8}  # of the memory that is free once the weights are there
_CONTEXT_MAX = 32768  # unless asked for: longer windows cost memory that most chats never use
_CONTEXT_MIN = 64  # less is no chat
SLOTS = 8  # requests at once, unless asked for
SLOTS_MOST = {"cpu": 256, "cuda": 4096}  # each has a token in a step, for which memory is counted
_RUNTIME_NBYTES = {"cpu": 0, "cuda": 700_000_000}  # of libraries, once the first product ran


class NoRoomError(UsageError):
    """Memory does not hold the model now."""


class OfflineError(Exception):
    """The hub does not answer."""


def load(options: ServeOptions, reporter: Reporter) -> tuple[Any, PreTrainedTokenizerFast, Pooling | None]:
    """Return model, tokenizer, and how it makes vectors (None: it writes text).

    Raises
    ------
    FileError, UsageError, GlydError
        With cause and cure.
    """
    device = choose_device(options, reporter)
    hub: dict[str, Any] = {"trust_remote_code": options.trust_remote_code}
    try:
        check_room(options, device)
    except OfflineError:
        if cached_folder(options) is None:
            raise FileError(options.model, UNREACHABLE) from None
        reporter.say("glyd: the hub cannot be reached: this is the copy in the cache")
        hub["local_files_only"] = True
    if options.revision is not None:
        hub["revision"] = options.revision
    tokenizer = load_tokenizer(options, hub)
    try:
        model = glyd_gpu.from_pretrained(
            options.model,
            device=options.device,
            layout=options.layout,
            exact=options.exact,
            verify=options.verify,
            **hub,
        )
        pooling = read_pooling(options.model, **hub)
    except torch.OutOfMemoryError as error:
        raise NoRoomError(
            f"not enough GPU memory for {options.model}: glyd fit says what fits; --device cpu needs none"
        ) from error
    except glyd.GlydError:
        raise  # they say so already
    except MemoryError:
        raise
    except Exception as error:
        if os.environ.get("GLYD_DEBUG"):
            raise
        raise FileError(options.model, cause_of(error)) from error
    if pooling is None and not model.can_generate():
        if type(model) is not type(model.base_model):  # an encoder with a task of its own
            raise UsageError(f"{options.model} neither writes text nor makes embeddings ({type(model).__name__})")
        pooling = Pooling()
    return model, tokenizer, pooling


def choose_device(options: ServeOptions, reporter: Reporter) -> torch.device:
    """Return where the model will be.

    Raises
    ------
    UsageError, FileError
        A device was asked for that does not exist or cannot be used.
    """
    seen = torch.cuda.is_available()
    if options.device is None:
        if not seen and machine.has_card():
            reporter.say(f"glyd: on the CPU, since {why_no_gpu()}")
        return torch.device("cuda", torch.cuda.current_device()) if seen else torch.device("cpu")
    try:
        device = torch.device(options.device)
    except RuntimeError:  # which lists two dozen names
        device = None
    if device is None or device.type not in {"cpu", "cuda"}:
        raise UsageError(f"--device is cpu or cuda, perhaps with a number (cuda:1), found {options.device!r}")
    if device.type == "cuda" and not seen:
        raise FileError(options.device, why_no_gpu())
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise FileError(options.device, f"there are {torch.cuda.device_count()} GPUs here, counted from 0")
    return device


def why_no_gpu() -> str:
    """Return why PyTorch sees no GPU, and what to do."""
    built = torch.version.cuda
    if not machine.has_card():
        return "there is no NVIDIA GPU here: --device cpu works everywhere"
    if built is None:
        return "this PyTorch is built for the CPU: install the build for CUDA (https://pytorch.org/get-started/locally)"
    runs = machine.cuda_of_driver()
    if runs is None:
        return "the GPU has no driver that works: install NVIDIA's, until nvidia-smi lists the GPU"
    if runs[0] < int(built.partition(".")[0]):
        found = f"the driver runs CUDA {runs[0]}.{runs[1]}, and this PyTorch was built for {built}"
        return f"{found}: {machine.newer_driver(built)}"
    return "PyTorch sees no GPU: is CUDA_VISIBLE_DEVICES set to hide it? glyd doctor says more"


def check_room(options: ServeOptions, device: torch.device) -> None:
    """See whether disk and memory hold the model, from its configuration and headers alone.

    Raises
    ------
    UsageError, FileError
        They do not.
    GlydError
        The model is damaged, or no safetensors one.
    OfflineError
        The hub does not answer.
    """
    local = os.path.isdir(options.model)
    try:
        report = glyd.fit(options.model, context=options.context or _CONTEXT_MIN, revision=options.revision)
    except glyd.ParameterError:
        if local:
            raise
        return  # loading says more about models of the hub
    except OSError as error:
        if local:
            raise file_error(error, options.model) from error
        if isinstance(error, (FileNotFoundError, PermissionError)):
            return
        raise OfflineError(str(error)) from error  # and would be asked again and again for a minute
    if not report.dtypes.get("BF16"):
        return  # loading says what to do
    if not local:
        stored = report.weights[report.packed].nbytes if report.packed else sum(report.dtypes.values())
        check_disk(options, stored)
    if options.context is not None and report.max_context is not None and options.context > report.max_context:
        raise UsageError(_longer_than_model(options.context, report.max_context))
    layout = report.packed or ("mma12" if options.layout == "mma12" else "tiered")
    weights = report.weights[layout].nbytes + _RUNTIME_NBYTES[device.type]
    free = free_nbytes(device, mapped=bool(report.packed))
    if free is None:
        return
    where = "of the GPU's memory" if device.type == "cuda" else "of memory"
    if weights > free:
        cure = "glyd fit says what fits" + ("; --device cpu takes none of it" if device.type == "cuda" else "")
        raise NoRoomError(
            f"{options.model} takes {size_text(weights)} {where} ({layout}), {size_text(free)} are free: {cure}"
        )
    if options.context is not None and report.kv_token_nbytes is not None:
        need = options.context * report.kv_token_nbytes
        room = int((free - weights) * _KV_SHARE[device.type])
        if need > room:
            most = room // report.kv_token_nbytes
            raise NoRoomError(_too_long(options.context, need, room, most))


def _longer_than_model(context: int, own: int) -> str:
    return f"--context {context} is more than the model's window of {own} tokens"


def _too_long(context: int, need: int, room: int, most: int) -> str:
    return (
        f"--context {context} takes {size_text(need)} for its KV cache, {size_text(room)} are left for it: "
        f"name {most} or less"
    )


def free_nbytes(device: torch.device, *, mapped: bool = False) -> int | None:
    """Return the memory that a model can have now; None where the system does not say.

    Parameters
    ----------
    device
        Where it will be.
    mapped
        The weights lie in a file as they are used: on the CPU all memory can hold them, as far as it is not held.
    """
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    found = machine.memory()
    return found.total_nbytes if mapped else found.free_nbytes


def check_disk(options: ServeOptions, nbytes: int) -> None:
    """See whether a download fits on the disk.

    Raises
    ------
    FileError
        It does not.
    """
    found = cached_folder(options)
    if found is not None and any(found.glob("*.safetensors")):
        return  # at least partly there: what is missing is not known from here
    folder = machine.hub_cache()
    free = machine.disk_free(folder)
    if free is not None and nbytes > free:
        text = f"the download takes {size_text(nbytes)}, {size_text(free)} are free: make room, or set HF_HOME"
        raise FileError(folder, text)


def cached_folder(options: ServeOptions) -> Path | None:
    """Return where the hub's cache holds a model, None when it does not."""
    from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415 - not needed for directories

    config = try_to_load_from_cache(options.model, "config.json", revision=options.revision)
    return Path(config).parent if isinstance(config, str) else None


def model_name(options: ServeOptions) -> str:
    """Return the id of the model in the API."""
    return options.name or (Path(options.model).resolve().name if os.path.isdir(options.model) else options.model)


def make_engine(
    options: ServeOptions,
    model: Any,
    tokenizer: PreTrainedTokenizerFast,
    pooling: Pooling | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> TransformersEngine | EmbeddingEngine:
    """Return an engine whose window and KV cache fit into memory; with ``pooling``, one that makes vectors.

    ``say`` is told which prefixes cannot be kept or put back.

    Raises
    ------
    UsageError
        The window asked for does not fit, or the model has a smaller one.
    """
    if pooling is not None:
        return _embedding_engine(options, model, tokenizer, pooling)
    info = _describe(options, model)
    slots = options.slots or SLOTS
    most = SLOTS_MOST[model.device.type]
    if slots > most:
        raise UsageError(f"--slots {slots}: {most} at most on {model.device.type}")
    free = free_nbytes(model.device)
    left = slots * info.context * kv_bytes_a_token(model) if free is None else free
    left = int(left * _KV_SHARE[model.device.type])
    kv = chosen_kv(options, model)
    paged = attends_on_pages(options, model, kv)
    room = kv_room(model, left, kv=kv, n_slots=slots, paged=paged)
    wanted = options.context or _CONTEXT_MIN
    if room < wanted:
        raise UsageError(_too_long(wanted, wanted * kv_bytes_a_token(model), left, room))
    if options.context is None and room < info.context:
        info = replace(info, context=room)
    tokens = min(room, slots * info.context)
    return TransformersEngine(
        model,
        tokenizer,
        info,
        n_slots=slots,
        n_queue=options.queue,
        kv_tokens=tokens,
        paged=paged,
        graphs=options.graphs is not False,
        parts=paged and not options.exact,
        kv=kv,
        prefixes=_prefixes(options, model, say),
    )


def _prefixes(options: ServeOptions, model: Any, say: Callable[[str], None]) -> Prefixes | None:
    """Return the files of prefixes that a model has.

    Raises
    ------
    UsageError, FileError
        It can have none, or they cannot be written.
    """
    if options.prefix_dir is None:
        return None
    try:
        return Prefixes(Path(options.prefix_dir), model, page=PAGE["plain"], exact=options.exact, say=say)
    except (glyd.ParameterError, glyd_gpu.UnsupportedDeviceError) as error:
        raise UsageError(f"--prefix-dir: {error}") from error


def attends_on_pages(options: ServeOptions, model: Any, kv: str) -> bool:
    """Say whether steps attend on the pages of the cache: on CUDA, where the model's attention is known.

    Raises
    ------
    UsageError
        Graphs are asked for, and it is not.
    """
    if model.device.type != "cuda" or kv == "packed":
        return False
    reason = why_not(model)
    if reason is not None and options.graphs:
        raise UsageError(f"--graphs: steps of {options.model} cannot be captured, since {reason}")
    return reason is None


def chosen_kv(options: ServeOptions, model: Any) -> Literal["plain", "packed"]:
    """Return how keys and values are held: plain unless packed is asked for, since its steps take longer.

    Raises
    ------
    UsageError
        They cannot be packed: the model's are of another kind, or graphs are to be captured.
    """
    if options.kv != "packed":
        return "plain"
    if options.graphs:
        raise UsageError("--kv packed runs without --graphs: its pages grow with every step")
    try:
        glyd_gpu.check_packable(model)
    except (glyd.ParameterError, glyd_gpu.UnsupportedDeviceError) as error:
        raise UsageError(f"--kv packed: {error}; --kv plain runs everywhere") from error
    return "packed"


def _describe(options: ServeOptions, model: Any) -> ModelInfo:
    layouts = glyd_gpu.report(model).layouts
    layout = max(layouts, key=layouts.__getitem__) if layouts else "bf16"
    info = describe_model(model, model_name(options), context=options.context or _CONTEXT_MAX, layout=layout)
    if options.context is not None and options.context > info.context:
        raise UsageError(_longer_than_model(options.context, info.context))
    return info


def _embedding_engine(
    options: ServeOptions, model: Any, tokenizer: PreTrainedTokenizerFast, pooling: Pooling
) -> EmbeddingEngine:
    if options.verb == "run":
        raise UsageError(f"{options.model} makes embeddings and writes no text: serve it (/v1/embeddings)")
    return EmbeddingEngine(model, tokenizer, _describe(options, model), pooling, n_queue=options.queue)

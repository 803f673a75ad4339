# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Models loaded packed, saved packed, and unpacked again."""

from __future__ import annotations

import errno
import os
import tempfile
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

import psutil
import torch
from torch import nn

import glyd_codec
from glyd_gpu import _captured
from glyd_gpu._checkpoint import read_sources
from glyd_gpu._errors import CorruptDataError, ParameterError, UnsupportedDeviceError
from glyd_gpu._merge import join_experts, merge_modules, unmerge_modules
from glyd_gpu._meta import LAYOUTS
from glyd_gpu._reading import FileTensor, Reader, local_files
from glyd_gpu.modules import PackedModule, restore, set_exact

_FROM_HUB = ("cache_dir", "force_download", "local_files_only", "revision", "subfolder", "token", "trust_remote_code")
MERGED_DEVICES = {"cuda"}  # on the CPU nothing is won, and packs that lie in the page cache would be copied
COMPILED = (2, 13)  # torch from which on transformers' compiled decoding is used
_SPEED_SHARE = 0.75  # of a device's free memory: where mma12 fits into it, its speed is worth 11% more bytes


def from_pretrained(
    name_or_path: str | os.PathLike[str],
    *,
    device: str | int | torch.device | None = None,
    layout: Literal["auto", "tiered", "mma12"] = "auto",
    exact: bool | Literal["fast"] = False,
    merge: bool = True,
    compile: bool = True,  # noqa: A002 - what it does
    verify: bool = False,
    kv_cache: Literal["plain", "packed"] = "plain",
    **hf: Any,
) -> Any:
    """Load a model with its weights packed, from a packed directory or a bf16 checkpoint.

    Parameters
    ----------
    name_or_path
        A directory, or a name of the Hugging Face hub.
    device
        Where the model goes; by default a CUDA device when there is one, else the CPU.
        ``device_map`` may be given instead, as transformers takes it.
    layout
        Of weights that are not packed yet. "auto": "mma12" when it leaves a quarter of the device's free
        memory, else "tiered". A packed directory has its own.
    exact
        True: decode each layer and multiply as torch does, so that logits have the bits of the bf16 model's. "fast", on
        Hopper: multiply from the packed form at full speed; logits have the bits of the bf16 model's after
        `use_same_order`, and a sequence has the same in every batch.
    merge
        On CUDA, run q, k, v and gate, up as one product each, and few tokens with the packs of their
        experts; not with ``exact``.
    compile
        Let ``generate`` run from CUDA graphs on CUDA, with a static cache: those of transformers' compiled code from
        PyTorch 2.13 on, before that our own, for which nothing is compiled. ``GLYD_COMPILE=0`` turns it off.
    verify
        Check every byte of a packed directory first.
    kv_cache
        "packed": ``generate`` keeps keys and values packed, a third smaller and bit for bit (`GlydKVCache`). Slower on
        the CPU; on GPUs steps attend on the packed pages, with sums in another order than torch's. Not together with a
        static cache, so ``compile`` counts as False.
    **hf
        For transformers' ``from_pretrained``.

    Returns
    -------
    transformers.PreTrainedModel
        The model that transformers makes; `glyd_gpu.report` says what is packed.

    Raises
    ------
    ParameterError
        The checkpoint is no bf16 one (the message says what to do), or an argument is outside its range.
    UnsupportedDeviceError
        The device is not there, or none that packed models run on.
    FormatError
        The checkpoint is damaged.
    """
    import transformers  # noqa: PLC0415 - seconds
    from transformers import AutoConfig  # noqa: PLC0415

    from glyd_gpu.integrations.transformers import GlydConfig  # noqa: PLC0415

    path = os.fspath(name_or_path)
    if kv_cache not in {"plain", "packed"}:
        raise ParameterError(f"kv_cache must be 'plain' or 'packed', not {kv_cache!r}")
    if layout != "auto" and layout not in LAYOUTS:
        raise ParameterError(f"layout must be one of auto, {', '.join(LAYOUTS)}; not {layout!r}")
    if device is not None and "device_map" in hf:
        raise ParameterError("give device or device_map, not both")
    config = hf.pop("config", None)
    if config is None:
        config = AutoConfig.from_pretrained(path, **{key: hf[key] for key in _FROM_HUB if key in hf})
    found = getattr(config, "quantization_config", None)
    method = found.get("quant_method") if isinstance(found, dict) else getattr(found, "quant_method", None)
    if found is not None and method != "glyd":
        raise ParameterError(f"{path} is quantized ({method}): load the bf16 checkpoint that it was made from")
    if verify:
        _verify(path, packed=found is not None)
    target = _device(device)
    if kv_cache == "packed":
        from glyd_gpu._kv_cuda import check_device  # noqa: PLC0415
        from glyd_gpu.kv_cache import install  # noqa: PLC0415

        check_device(target)
    wanted = hf.get("dtype", hf.get("torch_dtype"))
    if found is None and not isinstance(wanted, dict) and wanted not in (None, "auto", "bfloat16", torch.bfloat16):
        raise ParameterError(f"packed weights are bf16 and cannot be loaded as {wanted}: leave dtype out")
    if "device_map" not in hf and target.type != "cpu":
        hf["device_map"] = {"": target}
    if found is None:
        hf["quantization_config"] = GlydConfig(layout=_choose(path, layout, target, hf))
    elif layout not in {"auto", _layout_of(found)}:
        raise ParameterError(
            f"{path} is packed as {_layout_of(found)}: load it so, or pack its original with layout={layout!r}"
        )
    kind = _class_for(transformers, config, hf)
    if found is not None and target.type == "cuda" and _is_plain_directory(path, hf):
        model = _read_to_device(kind, path, config, target, hf)
    else:
        model, info = kind.from_pretrained(path, config=config, output_loading_info=True, **hf)
        _refuse_missing(path, model, info)
    set_exact(model, exact)
    if merge and not exact and {p.device.type for p in model.parameters()} <= MERGED_DEVICES:
        merge_modules(model)
        join_experts(model)
    if kv_cache == "packed":
        install(model, direct=target.type == "cuda")
    elif compile and os.environ.get("GLYD_COMPILE") != "0" and _is_cuda(model) and model.can_generate():
        if _torch_version() < COMPILED:
            _captured.install(model)
        else:
            model.generation_config.cache_implementation = "static"
    return model


def _is_plain_directory(path: str, hf: dict[str, Any]) -> bool:
    """Say whether a packed directory can be read by `Reader`: on one device, with nothing special asked for."""
    special = {"subfolder", "variant", "key_mapping", "state_dict", "generation_config"}
    return os.path.isdir(path) and not special & hf.keys() and isinstance(hf.get("device_map"), dict)


def _read_to_device(kind: Any, path: str, config: Any, device: torch.device, hf: dict[str, Any]) -> Any:
    """Load a packed directory with our own reader of files; all else is transformers' loading."""
    from transformers import GenerationConfig  # noqa: PLC0415

    from glyd_gpu.integrations.transformers import KNOWN_SOURCES  # noqa: PLC0415

    sources = read_sources(local_files(path))
    reader = Reader(device)
    if os.path.isfile(os.path.join(path, "generation_config.json")):
        hf["generation_config"] = GenerationConfig.from_pretrained(path)
    token = KNOWN_SOURCES.set(sources)
    try:
        tensors = {key: FileTensor(source, reader) for key, source in sources.items()}
        model, info = kind.from_pretrained(None, config=config, state_dict=tensors, output_loading_info=True, **hf)
    finally:
        KNOWN_SOURCES.reset(token)
    _refuse_missing(path, model, info)
    model.config.name_or_path = model.name_or_path = path
    return model


def _refuse_missing(path: str, model: Any, info: dict[str, Any]) -> None:
    """Refuse a model that writes text with weights that no file has, which transformers makes up.

    Encoders may lack what their task does not need, as the pooling of a sentence-transformer.
    """
    missing = sorted(info["missing_keys"])
    if missing and model.can_generate():
        names = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        raise CorruptDataError(f"{path}: {len(missing)} weights of the model are in none of its files: {names}")


def _verify(path: str, *, packed: bool) -> None:
    if not packed or not os.path.isdir(path):
        raise ParameterError(f"verify=True is for packed directories; {path} is none")
    glyd_codec.verify_model(path)


def _device(device: str | int | torch.device | None) -> torch.device:
    if device is None:
        return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")
    try:
        found = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
    except RuntimeError:  # torch lists two dozen names
        raise ParameterError(f"device must be 'cpu' or 'cuda', perhaps with a number; not {device!r}") from None
    if found.type not in {"cpu", "cuda"}:
        raise UnsupportedDeviceError(f"packed models run on cpu and cuda, not on {found}")
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise UnsupportedDeviceError(
            f"no device {found} here: torch {torch.__version__} sees {torch.cuda.device_count()} CUDA devices "
            "(python -m glyd_gpu says more); device='cpu' works everywhere"
        )
    return found


def _is_cuda(model: Any) -> bool:
    return all(parameter.device.type == "cuda" for parameter in model.parameters())


def _torch_version() -> tuple[int, ...]:
    return tuple(int(part) for part in torch.__version__.split(".")[:2])


def _layout_of(found: Any) -> str:
    return str(found.get("layout") if isinstance(found, dict) else found.layout)


def _class_for(transformers: Any, config: Any, hf: dict[str, Any]) -> Any:
    """Return the class that the checkpoint names, else the one for language models."""
    names = getattr(config, "architectures", None) or ()
    found = getattr(transformers, names[0], None) if names and not hf.get("trust_remote_code") else None
    return transformers.AutoModelForCausalLM if found is None else found


def _choose(
    path: str, layout: Literal["auto", "tiered", "mma12"], device: torch.device, hf: dict[str, Any]
) -> Literal["tiered", "mma12"]:
    """Return the layout for weights that are packed as they load."""
    if layout != "auto":
        return layout
    if not os.path.isdir(path) or isinstance(hf.get("device_map"), str):
        return "tiered"
    names = [entry.path for entry in os.scandir(path) if entry.name.endswith(".safetensors")]
    nbytes = sum(os.path.getsize(name) for name in names) * 3 // 4
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else psutil.virtual_memory().available
    return "mma12" if nbytes <= _SPEED_SHARE * free else "tiered"


def save_pretrained(model: Any, path: str | os.PathLike[str]) -> glyd_codec.PackReport:
    """Save a packed model as a packed directory, which ``glyd unpack`` and ``glyd verify`` read too.

    ``model.save_pretrained(path)`` saves the packs as well, and loads the same, but without the
    manifest that unpacking and verifying take.

    Parameters
    ----------
    model
        Of `from_pretrained`.
    path
        The directory to write. Must not exist, or be empty.

    Returns
    -------
    glyd.PackReport
        Sizes, as `glyd.pack_model` returns them.

    Raises
    ------
    ParameterError
        The model is not packed.
    FileExistsError
        ``path`` is there already.

    Notes
    -----
    The bf16 checkpoint is written beside ``path`` and removed at the end: there must be room for it.
    """
    from glyd_gpu._saving import write_checkpoint  # noqa: PLC0415 - imports safetensors
    from glyd_gpu.integrations.transformers import owner  # noqa: PLC0415

    quantizer = owner(model)
    if quantizer is None:
        raise ParameterError("the model is not packed: model.save_pretrained(path), then glyd.pack_model(path, out)")
    target = os.path.abspath(os.fspath(path))
    if os.path.lexists(target) and (not os.path.isdir(target) or os.listdir(target)):
        raise FileExistsError(errno.EEXIST, "is there already, and not as an empty directory", target)
    parent, name = os.path.split(target)
    with tempfile.TemporaryDirectory(prefix=f".{name[:200]}.", suffix=".glyd-tmp", dir=parent) as folder:
        write_checkpoint(model, folder)
        return glyd_codec.pack_model(folder, target, quantizer.quantization_config.layout)


def unpack_modules(model: nn.Module) -> None:
    """Give every packed module its bf16 parameters back, in place."""
    memo: dict[Any, nn.Parameter] = {}
    for module in list(model.modules()):
        if isinstance(module, PackedModule):
            restore(module, memo)


def dequantize(model: Any) -> Any:
    """Unpack a model in place: ordinary modules with bf16 weights, bit for bit those that were packed.

    Parameters
    ----------
    model
        Of `from_pretrained`, or any model with packed modules.

    Returns
    -------
    transformers.PreTrainedModel
        The same model.
    """
    from glyd_gpu.integrations.transformers import owner  # noqa: PLC0415

    unpack_modules(model)
    tied = getattr(model, "all_tied_weights_keys", None)
    if tied:
        model.all_tied_weights_keys = {t.removesuffix("_packed"): s.removesuffix("_packed") for t, s in tied.items()}
    quantizer = owner(model)
    if quantizer is not None:
        kept = getattr(model, "glyd_conversions", None)
        quantizer.remove_quantization_config(model)
        if kept is not None:
            model._weight_conversions = kept
            del model.glyd_conversions
    return model


@dataclass(frozen=True)
class Report:
    """What of a model is packed.

    Attributes
    ----------
    n_weights, nbytes
        Packed weights, and the bytes of their packs.
    plain_nbytes
        Bytes of all other parameters.
    layouts
        Packed weights by layout.
    plain
        Parameters that are not packed, with the reason.
    """

    n_weights: int
    nbytes: int
    plain_nbytes: int
    layouts: dict[str, int]
    plain: dict[str, str]

    @property
    def bits_per_weight(self) -> float:
        """Bits of a packed weight, all that a pack needs included; 0.0 without any."""
        return 8 * self.nbytes / self.n_weights if self.n_weights else 0.0


def report(model: nn.Module) -> Report:
    """Say what of a model is packed, and why the rest is not.

    Parameters
    ----------
    model
        Any.
    """
    names = {number: name for name, number in LAYOUTS.items()}
    layouts: Counter[str] = Counter()
    plain: dict[str, str] = {}
    seen: set[int] = set()
    n_weights = nbytes = plain_nbytes = 0
    for path, module in model.named_modules():
        for name, parameter in module.named_parameters(recurse=False):
            if id(parameter) in seen:
                continue
            seen.add(id(parameter))
            full = f"{path}.{name}" if path else name
            own = name.removesuffix("_packed")
            if not isinstance(module, PackedModule) or own not in module.glyd_tensors:
                plain[full] = _reason(parameter)
                plain_nbytes += parameter.numel() * parameter.element_size()
                continue
            tensor = module.glyd_tensors[own]
            for piece in tensor.pieces:
                if piece.meta is None:
                    plain[f"{full.removesuffix('_packed')} ({piece.source})"] = "packing does not pay"
                    plain_nbytes += piece.nbytes
                else:
                    layouts[names[piece.meta[0]]] += piece.rows * tensor.cols
                    n_weights += piece.rows * tensor.cols
                    nbytes += piece.nbytes
    return Report(n_weights, nbytes, plain_nbytes, dict(layouts), plain)


def _reason(parameter: torch.Tensor) -> str:
    if parameter.dtype != torch.bfloat16:
        return f"{str(parameter.dtype).removeprefix('torch.')}, not bf16"
    if parameter.dim() < 2 or parameter.dim() > 3:
        return f"{parameter.dim()} dimension{'s' * (parameter.dim() != 1)}"
    return "packing does not pay"


__all__ = ["Report", "dequantize", "from_pretrained", "report", "save_pretrained", "unmerge_modules"]

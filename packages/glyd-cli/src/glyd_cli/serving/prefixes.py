# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Prefixes of prompts in files: what a system prompt's keys and values took to compute is kept for the next start.

A prefix is whole pages of the cache's, and is written when a second request begins with it. Files are those of
`glyd_gpu.GlydKVCache`: packed pages with SHA-256 of every part, named by the SHA-256 of their tokens, in a folder for
each model as it is held. They are put back through the batch itself: a request of the prefix gets its pages from
transformers, keys and values are copied there instead of computed, and its pages stay to be shared, as those of any
prompt that ended.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import queue
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from safetensors import safe_open

import glyd
import glyd_gpu
from glyd_cli.errors import FileError, file_error
from glyd_cli.serving.engine import Sampling
from glyd_cli.serving.pages import Pages
from glyd_cli.serving.sampling import Draw

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

LEAST = 128  # tokens: fewer are computed as fast as they are read
MOST = 16  # files of a model; the one that was not used for longest goes
_KNOWN = 256  # prefixes that are counted
_SAMPLE = 1024  # bytes of a weight that tell it from another's, at its start and in its middle
_SUFFIX = ".safetensors"


@dataclass(frozen=True)
class Prefix:
    """Keys and values of the first tokens of a prompt.

    Attributes
    ----------
    ids
        The tokens.
    layers
        Keys and values of each layer, bf16 [tokens, key heads, channels], on the CPU.
    """

    ids: list[int]
    layers: list[tuple[torch.Tensor, torch.Tensor]]


class Restore(Draw):
    """A request whose prompt is copied to the cache instead of computed; its tokens are nobody's."""

    def __init__(self, prefix: Prefix) -> None:
        super().__init__(prefix.ids, Sampling(max_tokens=2, temperature=0.0))
        self.prefix = prefix
        self.done = threading.Event()


def key_of(ids: Sequence[int]) -> str:
    """Return the name of a prefix: of its tokens alone."""
    return hashlib.sha256(torch.tensor(ids, dtype=torch.int64).numpy().tobytes()).hexdigest()[:32]


def fingerprint(model: Any, *, exact: bool = False) -> str:
    """Return what tells a model, as it is held, from others: its configuration, and samples of every weight.

    Parameters
    ----------
    model
        Loaded, packed or not.
    exact
        Its products are computed in the order of bf16's.
    """
    text = model.config.get_text_config()
    facts = f"{type(model).__name__} {model.device.type} {exact} {sorted(text.to_dict().items(), key=str)}"
    found = hashlib.sha256(facts.encode("utf-8", "backslashreplace"))
    for name, tensor in sorted({**model.state_dict()}.items()):
        if not isinstance(tensor, torch.Tensor):
            continue
        flat = tensor.detach().reshape(-1)
        n = max(1, _SAMPLE // flat.element_size())
        middle = flat.numel() // 2
        samples = [part.to("cpu").contiguous().view(torch.uint8) for part in (flat[:n], flat[middle : middle + n])]
        found.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        for sample in samples:
            found.update(sample.numpy().tobytes())
    return found.hexdigest()[:32]


class Prefixes:
    """The prefixes of a model in a folder.

    Parameters
    ----------
    folder
        Where the files of all models are; it is made when it is not there.
    model
        Whose they are.
    page
        Tokens of a page of the cache.
    exact
        See `fingerprint`.
    say
        Told what cannot be read or written.

    Raises
    ------
    FileError
        The folder cannot be made or written to.
    ParameterError
        The model's keys and values cannot be packed.
    """

    def __init__(
        self, folder: Path, model: Any, *, page: int, exact: bool, say: Callable[[str], None] = lambda _: None
    ) -> None:
        glyd_gpu.check_packable(model)
        self.folder = folder / fingerprint(model, exact=exact)
        self._config = model.config
        self._page = page
        self._say = say
        self._counts: OrderedDict[str, int] = OrderedDict()
        self._kept: set[str] = set()
        self._pages: Pages | None = None
        self._to_write: queue.Queue[Prefix | None] = queue.Queue()
        self._writer: threading.Thread | None = None
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise file_error(error, str(folder)) from error
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise FileError(str(self.folder), "prefixes cannot be written there: change its permissions")

    # ---- what is there ------------------------------------------------------

    def stored(self) -> list[Path]:
        """Return the files, the one used last first."""
        found = []
        for path in self.folder.glob(f"*{_SUFFIX}"):
            with contextlib.suppress(OSError):  # another server may remove it meanwhile
                found.append((path.stat().st_mtime, path))
        return [path for _, path in sorted(found, reverse=True)]

    def read(self, path: Path) -> Prefix:
        """Return a prefix; everything that the file says is compared with what is in it.

        Raises
        ------
        GlydError, OSError
            It is damaged, of another model, or gone.
        """
        cache = glyd_gpu.GlydKVCache.load(path, self._config)
        with safe_open(path, framework="pt") as file:
            if "ids" not in file.keys():  # noqa: SIM118 - no mapping
                raise glyd.CorruptDataError(f"{path}: the tokens are missing")
            tokens = file.get_tensor("ids")
        if tokens.dtype != torch.int64:
            raise glyd.CorruptDataError(f"{path}: tokens are {tokens.dtype}, expected {torch.int64}")
        ids: list[int] = tokens.flatten().tolist()
        n = cache.get_seq_length()
        if len(ids) != n or n % self._page or path.name != key_of(ids) + _SUFFIX:
            raise glyd.CorruptDataError(f"{path}: {len(ids)} tokens of a cache of {n}, or a file of another name")
        read = [(layer.keys, layer.values) for layer in cache.layers]  # [1, heads, tokens, channels]
        layers = [(k[0].transpose(0, 1), v[0].transpose(0, 1)) for k, v in read]
        text = self._config.get_text_config()
        heads = int(getattr(text, "num_key_value_heads", None) or text.num_attention_heads)
        shape = (n, heads, int(getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads))
        odd = next((tuple(x.shape) for layer in layers for x in layer if tuple(x.shape) != shape), None)
        if odd is not None:
            raise glyd.CorruptDataError(f"{path}: keys or values {odd}, expected {shape}")
        return Prefix(ids, layers)

    def known(self, prefix: Prefix) -> None:
        """Note that a prefix is in the cache and in a file."""
        self._kept.add(key_of(prefix.ids))

    def wanted(self, prompt: Sequence[int], n_shared: int) -> int:
        """Return how many of a prompt's first tokens are to be kept now; 0: none.

        Parameters
        ----------
        prompt
            Token ids.
        n_shared
            So many are a beginning that others have too.
        """
        n = n_shared - n_shared % self._page
        if n < LEAST:
            return 0
        key = key_of(prompt[:n])
        if key in self._kept:
            with contextlib.suppress(OSError):  # gone, or another's
                os.utime(self.folder / (key + _SUFFIX))
            return 0
        self._counts[key] = self._counts.pop(key, 0) + 1
        if len(self._counts) > _KNOWN:
            self._counts.popitem(last=False)
        return n if self._counts[key] > 1 else 0

    # ---- in the engine's thread ---------------------------------------------

    def connect(self, processor: Any) -> None:
        """Lead the steps of a batch processor of transformers through `_step`."""
        self._pages = Pages(processor.cache)
        runner, io = processor.model_runner, processor.inputs_and_outputs
        run = runner._forward_process_and_sample  # noqa: SLF001 - no public place for it

        def step(*args: Any) -> None:
            futures = list(io.requests_in_batch)
            draws = [future.state.logit_processor_kwargs.get("draw") for future in futures]
            if draws and all(isinstance(draw, Restore) for draw in draws):
                args[-1].zero_()
                for future, draw in zip(futures, draws, strict=True):
                    self._put(future, draw.prefix)
            else:  # beside others a prefix is computed as they are
                run(*args)
            for future, draw in zip(futures, draws, strict=True):
                n_there = future.state.position_offset
                if isinstance(draw, Restore):
                    if n_there >= len(draw.prefix.ids):
                        draw.done.set()
                elif draw is not None and 0 < draw.keep <= n_there:
                    self._take(future.state, draw.keep)
                    draw.keep = 0

        runner._forward_process_and_sample = step  # noqa: SLF001

    def _put(self, future: Any, prefix: Prefix) -> None:
        """Copy what a step would compute of a prefix."""
        state = future.state
        first, end = state.position_offset - future.query_length, min(state.position_offset, len(prefix.ids))
        if first >= end:  # the token after it
            return
        for number, layer in enumerate(prefix.layers):
            group, *caches = self._layer(number)
            slots = group.slots(state.request_id, first, end).to(caches[0].device)
            for cache, new in zip(caches, layer, strict=True):
                cache.index_copy_(0, slots, new[first:end].to(cache.device))

    def _take(self, state: Any, n: int) -> None:
        """Copy the first tokens of a request, to be written by another thread."""
        ids = state.initial_tokens[:n]
        key = key_of(ids)
        if key in self._kept:  # two requests at once
            return
        self._kept.add(key)
        layers = []
        for number in range(int(self._config.get_text_config().num_hidden_layers)):
            group, k, v = self._layer(number)
            slots = group.slots(state.request_id, 0, n).to(k.device)
            layers.append((k[slots].to("cpu"), v[slots].to("cpu")))
        if self._writer is None:
            self._writer = threading.Thread(target=self._write_all, name="glyd-prefixes", daemon=True)
            self._writer.start()
        self._to_write.put(Prefix(ids, layers))

    def _layer(self, number: int) -> Any:
        if self._pages is None:
            raise RuntimeError("not connected")
        group, k, v = self._pages.layer(number)
        return self._pages.groups[group], k, v

    # ---- in a thread of its own ---------------------------------------------

    def _write_all(self) -> None:
        while (prefix := self._to_write.get()) is not None:
            try:
                self.write(prefix)
            except (OSError, glyd.GlydError) as error:
                self._say(f"a prefix of {len(prefix.ids)} tokens cannot be kept: {error}")

    def write(self, prefix: Prefix) -> Path:
        """Write a prefix, and remove what was not used for longest.

        Raises
        ------
        OSError
            It cannot be written.
        """
        cache = glyd_gpu.GlydKVCache(self._config)
        for number, layer in enumerate(prefix.layers):
            cache.update(*(x.transpose(0, 1).unsqueeze(0) for x in layer), number)
        path = self.folder / (key_of(prefix.ids) + _SUFFIX)
        cache.save(path, ids=torch.tensor([prefix.ids]))
        for old in self.stored()[MOST:]:
            old.unlink(missing_ok=True)
        return path

    def stop(self) -> None:
        """Return when all that was taken is written."""
        if self._writer is not None:
            self._to_write.put(None)
            self._writer.join()
            self._writer = None


def restore(prefixes: Prefixes, manager: Any, room: int) -> tuple[int, float]:
    """Put the prefixes in files back into a batch that runs and has no requests yet.

    Parameters
    ----------
    prefixes
        Connected to its processor.
    manager
        Of transformers.
    room
        Tokens that may be filled.

    Returns
    -------
    tuple[int, float]
        Tokens put back, and the seconds that it took.
    """
    start, n_tokens = time.monotonic(), 0
    for number, path in enumerate(prefixes.stored()):
        try:
            prefix = prefixes.read(path)
        except (OSError, glyd.GlydError) as error:
            prefixes._say(f"a prefix is left out: {error}")  # noqa: SLF001 - of this file
            continue
        if n_tokens + len(prefix.ids) > room:
            break
        draw = Restore(prefix)
        # of two tokens: transformers gives no name to the pages of a prompt that ends with its first
        manager.add_request(prefix.ids, f"glyd-prefix-{number}", max_new_tokens=2, eos_token_id=-1, draw=draw)
        while not draw.done.wait(0.2):
            if not manager.is_running():
                return n_tokens, time.monotonic() - start
        prefixes.known(prefix)
        n_tokens += len(prefix.ids)
    return n_tokens, time.monotonic() - start

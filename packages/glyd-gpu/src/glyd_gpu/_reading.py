# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Tensors read from files straight to a device.

transformers asks for tensors from a few threads. Each thread here reads a piece
of a file into memory that the device can copy from on its own (pinned), and
reads the next piece while that is copied. From the page cache the device's bus
is the limit then, not the copy from mapped to pageable to device memory.
"""

from __future__ import annotations

import functools
import json
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch

from glyd_codec import FormatError, TruncatedError
from glyd_gpu._checkpoint import Source
from glyd_gpu._errors import ParameterError

_THREADS = 4  # as transformers has; more are no faster from the page cache
PIECE = 16 << 20  # of a file at a time: long enough for the bus, short enough to start early

_TYPES = {
    "BF16": torch.bfloat16, "BOOL": torch.bool, "F16": torch.float16, "F32": torch.float32, "F64": torch.float64,
    "I16": torch.int16, "I32": torch.int32, "I64": torch.int64, "I8": torch.int8, "U8": torch.uint8,
}  # fmt: skip


class Reader:
    """Reads tensors to one device; each thread has buffers of its own."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._local = threading.local()

    def read(self, path: str, offset: int, nbytes: int) -> torch.Tensor:
        """Return bytes of a file as a uint8 tensor on the device.

        Raises
        ------
        TruncatedError
            The file ends before.
        """
        out = torch.empty(nbytes, dtype=torch.uint8, device=self.device)
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        try:
            if self.device.type == "cuda":
                self._through_pinned(fd, path, offset, out)
            else:
                _fill(fd, path, offset, out)
        finally:
            os.close(fd)
        return out

    def _through_pinned(self, fd: int, path: str, offset: int, out: torch.Tensor) -> None:
        local = self._local
        if not hasattr(local, "buffers"):
            with torch.cuda.device(self.device):
                local.buffers = [torch.empty(PIECE, dtype=torch.uint8, pin_memory=True) for _ in range(2)]
                local.copied = [torch.cuda.Event() for _ in range(2)]
                local.stream = torch.cuda.Stream(self.device)
        local.stream.wait_stream(torch.cuda.current_stream(self.device))  # whose memory `out` may have been
        for i, at in enumerate(range(0, out.numel(), PIECE)):
            part = out[at : at + PIECE]
            local.copied[i % 2].synchronize()
            buffer = local.buffers[i % 2][: part.numel()]
            _fill(fd, path, offset + at, buffer)
            with torch.cuda.stream(local.stream):
                part.copy_(buffer, non_blocking=True)
                local.copied[i % 2].record(local.stream)
        local.stream.synchronize()


def _fill(fd: int, path: str, offset: int, out: torch.Tensor) -> None:
    view = memoryview(out.numpy())
    done = 0
    while done < len(view):
        n = os.preadv(fd, [view[done:]], offset + done)
        if not n:
            end = offset + len(view)
            raise TruncatedError(f"{path}: ends at byte {offset + done}, not {end}", expected=end, found=offset + done)
        done += n


class ParallelReads:
    """Reads packs to a device, a few at a time: what transformers' loader would copy through memory of its own.

    Parameters
    ----------
    sources
        The tensors of the checkpoint by their names in the files.
    device
        Where packs go.
    """

    def __init__(self, sources: Mapping[str, Source], device: torch.device) -> None:
        self._sources = sources
        self._reader = Reader(device)
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="glyd-read")

    def instead(self, key: str, future: Future[Any] | Callable[[], Any]) -> Any:
        """Return a read of a pack in place of one that has not started; else that one."""
        source = self._sources[key]
        if source.meta is None or (isinstance(future, Future) and not future.cancel()):
            return future
        read = functools.partial(self._reader.read, source.path, source.offset, source.nbytes)
        return self._pool.submit(read) if isinstance(future, Future) else read

    def close(self) -> None:
        """Let the threads end."""
        self._pool.shutdown(wait=False)


class FileTensor:
    """A tensor of a file, as transformers' loader takes them: read when it is asked for."""

    def __init__(self, source: Source, reader: Reader) -> None:
        self.source = source
        self._reader = reader
        self._shape = [source.nbytes] if source.meta is not None else list(source.shape)
        if source.dtype not in _TYPES:
            raise ParameterError(f"{source.path}: {source.key} is {source.dtype}, which no packed model has")

    def get_dtype(self) -> str:
        """Return the type as safetensors names it."""
        return self.source.dtype

    def get_shape(self) -> list[int]:
        """Return the shape."""
        return self._shape

    def __getitem__(self, key: Any) -> torch.Tensor:
        """Return the tensor on the reader's device; only ``[...]`` is asked for."""
        if key is not Ellipsis:
            raise NotImplementedError(f"tensors of packed models are read whole, not {key!r} of them")
        data = self._reader.read(self.source.path, self.source.offset, self.source.nbytes)
        return data.view(_TYPES[self.source.dtype]).view(self._shape)


def local_files(folder: str) -> list[str]:
    """Return the weight files of a directory: those that the index names, else the only one.

    Raises
    ------
    FormatError
        A file is missing, or the index names none.
    """
    index = os.path.join(folder, "model.safetensors.index.json")
    names: list[Any] = ["model.safetensors"]
    if os.path.isfile(index):
        try:
            with open(index, encoding="utf-8") as file:
                names = sorted(set(json.load(file)["weight_map"].values()), key=str)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise FormatError(f"{index}: no index of weights ({error!r:.100})") from None
    for name in names:
        if (
            not isinstance(name, str)
            or os.path.basename(name) != name
            or not os.path.isfile(os.path.join(folder, name))
        ):
            raise FormatError(f"{folder}: {name}: no such weight file")
    return [os.path.join(folder, name) for name in names]

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""`save_file`: tensors as a safetensors file in a frame."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from glyd_codec._errors import ParameterError
from glyd_codec._models._safetensors import BITS, Tensor, entry_text, header_bytes
from glyd_codec._stream import Compressor
from glyd_codec._tensors._frameworks import describe_tensor, tensor_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from glyd_codec._params import Level

SEGMENT_NBYTES = 1 << 20
"""Small, as fields gain nothing by larger segments, and a tensor is read by whole ones."""

_PIECE_NBYTES = 1 << 26


def save_file(
    tensors: Mapping[str, Any],
    path: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
    *,
    level: Level = "max",
    threads: int = 0,
    segment_size: int | None = None,
) -> None:
    """Write tensors as a safetensors file in a frame.

    Parameters
    ----------
    tensors
        From names to numpy arrays or torch tensors, which may be mixed.
    path
        File to write; one that is there is replaced when the new one is complete.
    metadata
        Texts to go with them.
    level, threads, segment_size
        As for `Compressor`; segments are 1 MiB unless set.

    Raises
    ------
    ParameterError
        For a name, type or metadata that the form does not know.
    TypeError
        For values that are neither arrays nor tensors.
    OSError
        When the file cannot be written.

    Notes
    -----
    The content is what ``glyd -d`` restores: a file that every safetensors library reads,
    its tensors ordered by the size of their elements, then by name.
    """
    entries, order = _layout(tensors)
    texts: dict[Any, Any] | None = None if metadata is None else dict(metadata)
    if texts is not None and not all(isinstance(k, str) and isinstance(v, str) for k, v in texts.items()):
        raise ParameterError("metadata must map names to texts")
    header = header_bytes([entry_text(entry) for entry in entries], texts, align=8)
    compressor = Compressor(level, threads=threads, segment_size=segment_size or SEGMENT_NBYTES, weights=True)
    compressor.set_pledged_input_size(len(header) + (entries[-1].end if entries else 0))
    target = Path(path)
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(6)}.glyd-tmp")
    try:
        with temporary.open("xb") as file:
            file.write(compressor.compress(header))
            for key in order:
                data = tensor_bytes(tensors[key])
                starts = range(0, len(data), _PIECE_NBYTES)
                file.writelines(compressor.compress(data[at : at + _PIECE_NBYTES]) for at in starts)
            file.write(compressor.flush())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _layout(tensors: Mapping[Any, Any]) -> tuple[list[Tensor], list[str]]:
    """Return what the header says of each tensor, and the names, both in the order of the data."""
    described = {}
    for name, value in tensors.items():
        if not isinstance(name, str) or name == "__metadata__":
            raise ParameterError(f"a tensor cannot be named {name!r}")
        described[name] = describe_tensor(value, name)
    order = sorted(described, key=lambda name: (-BITS[described[name][0]], name))
    entries = []
    at = 0
    for name in order:
        code, shape = described[name]
        size = BITS[code] // 8
        for n in shape:
            size *= n
        entries.append(Tensor(name, code, shape, at, at + size))
        at += size
    return entries, order

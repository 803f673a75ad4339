# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Packed models: bf16 checkpoints a third smaller, every byte restorable (docs/packed-models.md).

What is called here is loaded when it is called: ``import glyd`` stays quick.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from glyd_codec._models._manifest import Manifest
    from glyd_codec._models._reading import PackedModel
    from glyd_codec._weights import WeightsLayout


@dataclass(frozen=True, slots=True)
class PackReport:
    """What `pack_model` made.

    Attributes
    ----------
    layout
        Of the packs.
    n_tensors, n_packed
        Tensors of the model, and how many of them are packed.
    n_resumed
        Tensors that an earlier run, which was stopped, had done.
    original_nbytes, nbytes
        Bytes of the weight files before and after.
    n_weights
        Weights in packs.
    packed_nbytes
        Bytes of the packs.
    entropy_bits
        Mean over the packed weights of 8 + the entropy of the exponents of their tensor,
        estimated from a sample: bits a weight that no code of single weights goes below.
    verbatim
        Why tensors stayed as they were ("dtype", "shape", "size", "name"), with their number and bytes.
    ignored
        Files that were not taken over.
    """

    layout: str
    n_tensors: int
    n_packed: int
    n_resumed: int
    original_nbytes: int
    nbytes: int
    n_weights: int
    packed_nbytes: int
    entropy_bits: float
    verbatim: dict[str, tuple[int, int]]
    ignored: tuple[str, ...]

    @property
    def bits_per_weight(self) -> float:
        """Bits of a packed weight, all that a pack needs included; 0.0 without any."""
        return 8 * self.packed_nbytes / self.n_weights if self.n_weights else 0.0


@dataclass(frozen=True, slots=True)
class ModelReport:
    """What `unpack_model` and `verify_model` found.

    Attributes
    ----------
    layout
        Of the packs.
    n_tensors, n_packed
        Tensors of the model, and how many of them are packed.
    original_nbytes, nbytes
        Bytes of the original weight files and of the packed ones.
    """

    layout: str
    n_tensors: int
    n_packed: int
    original_nbytes: int
    nbytes: int


def pack_model(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    layout: WeightsLayout = "tiered",
    *,
    revision: str | None = None,
    token: str | bool | None = None,
    threads: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> PackReport:
    """Pack the bf16 matrices of a checkpoint.

    Parameters
    ----------
    src
        A directory with safetensors files, or the name of a model of the Hugging Face hub
        (needs ``glyd-codec[models]``; its cache is read, and works offline).
    dst
        The directory to write. Must not exist, or be empty.
    layout
        "tiered" (smallest) or "mma12" (cheapest to decode).
    revision, token
        Of the hub.
    threads
        Threads to work with; 0: one a CPU. The result does not depend on it.
    progress
        Called with the bytes of tensors that are done, and of all.

    Returns
    -------
    PackReport
        Sizes, and what stayed as it was.

    Raises
    ------
    FormatError
        The checkpoint is broken: weight files and index contradict each other, or a file is no safetensors file.
    ParameterError
        An argument is outside its range, or the source cannot be packed: quantized, packed
        already, or without safetensors files. Pickle files are never read.
    FileExistsError
        ``dst`` is there already.
    BlockingIOError
        Another run is writing ``dst``.

    Notes
    -----
    Memory: the largest tensor and its pack. ``dst`` appears when it is complete, and a run
    that fails leaves nothing. One that is stopped (`KeyboardInterrupt`, a signal, the power)
    leaves what it has done in ``.NAME.glyd-tmp`` beside ``dst``; the same call goes on from
    there, once it has compared those bytes with their hashes.
    """
    from glyd_codec._models._pack import pack_directory  # noqa: PLC0415

    source, totals, nbytes = pack_directory(
        src, dst, layout, revision=revision, token=token, threads=threads, progress=progress
    )
    headers = source.shards.values()
    return PackReport(
        layout=layout,
        n_tensors=sum(len(header.tensors) for header in headers),
        n_packed=totals.n_packed,
        n_resumed=totals.n_resumed,
        original_nbytes=sum(len(header.raw) + header.data_nbytes for header in headers),
        nbytes=nbytes,
        n_weights=totals.n_weights,
        packed_nbytes=totals.packed_nbytes,
        entropy_bits=totals.entropy_bits / totals.n_weights if totals.n_weights else 0.0,
        verbatim={reason: (count, size) for reason, (count, size) in sorted(totals.verbatim.items())},
        ignored=tuple(source.ignored),
    )


def unpack_model(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    *,
    threads: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> ModelReport:
    """Restore the files that a packed model was made from, byte for byte.

    Parameters
    ----------
    src
        A packed model.
    dst
        The directory to write. Must not exist, or be empty.
    threads
        Threads to work with; 0: one a CPU.
    progress
        Called with the bytes of tensors that are done, and of all.

    Returns
    -------
    ModelReport
        Sizes.

    Raises
    ------
    FormatError
        ``src`` is no packed model, or damaged. Every hash is checked; nothing is written then.
    ParameterError
        ``threads`` is outside its range.
    FileExistsError
        ``dst`` is there already.
    """
    from glyd_codec._models._unpack import unpack_directory  # noqa: PLC0415

    return _report(unpack_directory(os.fspath(src), dst, threads=threads, progress=progress))


def verify_model(
    path: str | os.PathLike[str],
    *,
    threads: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> ModelReport:
    """Check every byte of a packed model, and that every tensor unpacks to its original.

    Parameters
    ----------
    path
        A packed model.
    threads
        Threads to work with; 0: one a CPU.
    progress
        Called with the bytes of tensors that are done, and of all.

    Returns
    -------
    ModelReport
        Sizes.

    Raises
    ------
    FormatError
        It is no packed model, or damaged: the message names file and tensor.
    ParameterError
        ``threads`` is outside its range.
    """
    from glyd_codec._models._unpack import verify_directory  # noqa: PLC0415

    return _report(verify_directory(os.fspath(path), threads=threads, progress=progress))


def open_model(path: str | os.PathLike[str]) -> PackedModel:
    """Open a packed model to read tensors of it, without unpacking the rest.

    Parameters
    ----------
    path
        Its directory.

    Returns
    -------
    PackedModel
        With ``names``, ``info(name)`` and ``read(name, first_row=0, n_rows=None, out=None)``;
        to be closed, or used in a ``with`` block.

    Raises
    ------
    FormatError
        It is no packed model, or its manifest is damaged.
    """
    from glyd_codec._models._reading import PackedModel  # noqa: PLC0415

    return PackedModel(path)


def seal_model(path: str | os.PathLike[str], *, threads: int = 0) -> ModelReport:
    """Give a directory of packs, as another program saved it, the manifest of a packed model.

    Parameters
    ----------
    path
        A directory with safetensors files that hold packs, named ``NAME_packed``, and other
        tensors, and no manifest. None of its files is changed.
    threads
        Threads to work with; 0: one a CPU.

    Returns
    -------
    ModelReport
        Sizes.

    Raises
    ------
    FormatError
        A file is broken.
    ParameterError
        There are no packs, or packs of both layouts.
    FileExistsError
        There is a manifest already.

    Notes
    -----
    Every pack is unpacked, for the hash of what is in it. The originals, which `unpack_model`
    then writes, are weight files with the same tensors in the same order, unpacked. Shapes of
    three dimensions are taken from ``glyd_shapes`` in the metadata of the weight files.
    """
    from glyd_codec._models._seal import seal_directory  # noqa: PLC0415

    return _report(seal_directory(os.fspath(path), threads))


def _report(manifest: Manifest) -> ModelReport:
    headers = [shard.header for shard in manifest.shards]
    return ModelReport(
        layout=manifest.layout,
        n_tensors=len(manifest.tensors),
        n_packed=sum(entry["layout"] != "verbatim" for entry in manifest.tensors.values()),
        original_nbytes=sum(len(header.raw) + header.data_nbytes for header in headers),
        nbytes=sum(shard.nbytes for shard in manifest.shards),
    )

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Tensors of a packed model one by one, whole or in ranges of rows."""

from __future__ import annotations

import math
import operator
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from glyd_codec._buffers import borrow_writable
from glyd_codec._errors import BufferTooSmallError, ChecksumError, CorruptDataError, FormatError, ParameterError
from glyd_codec._models._manifest import read_manifest
from glyd_codec._models._matrix import InFile, as_matrix, check_sha256, checksum_text
from glyd_codec._models._safetensors import BITS
from glyd_codec._models._source import read_header
from glyd_codec._native import ffi
from glyd_codec._weights import read_weights_info, unpack_weights

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
    from typing_extensions import Self

    from glyd_codec._models._manifest import Shard
    from glyd_codec._models._safetensors import Tensor


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """A tensor of a packed model, as the original has it.

    Attributes
    ----------
    name, dtype, shape
        As in the original's header ("BF16", "F32" …).
    nbytes
        Bytes of the original.
    layout
        "tiered" or "mma12", or "verbatim" for one that is stored as it was.
    file
        The weight file that holds it.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    layout: str
    file: str

    @property
    def n_rows(self) -> int:
        """Rows, all dimensions but the last one together; 1 for what has only one or none."""
        return math.prod(self.shape[:-1])


class _Stored:
    """A weight file: where its tensors are, by the names they have in it."""

    def __init__(self, folder: str, shard: Shard) -> None:
        self.file = InFile(os.path.join(folder, shard.file))
        try:
            if self.file.nbytes != shard.nbytes:
                raise CorruptDataError(
                    f"{shard.file}: {self.file.nbytes} bytes, not {shard.nbytes}",
                    expected=shard.nbytes,
                    found=self.file.nbytes,
                )
            header = read_header(folder, shard.file)
            check_sha256(header.raw, shard.header_sha256, f"{shard.file}: header")
        except BaseException:
            self.file.close()
            raise
        self.places: dict[str, tuple[int, Tensor]] = {
            tensor.name: (len(header.raw) + tensor.begin, tensor) for tensor in header.tensors
        }


class PackedModel:
    """A packed model that is open for reading.

    Parameters
    ----------
    path
        Its directory.

    Raises
    ------
    FormatError
        It is no packed model, or its manifest is damaged.

    Notes
    -----
    Files are opened when a tensor of theirs is first read, and closed by `close` or the end
    of a ``with`` block. Not to be used by several threads at once.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._manifest = read_manifest(self._path)
        self._tensors = {
            tensor.name: (tensor, number)
            for number, shard in enumerate(self._manifest.shards)
            for tensor in shard.header.tensors
        }
        self._open: dict[int, _Stored] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all files."""
        for stored in self._open.values():
            stored.file.close()
        self._open.clear()

    @property
    def layout(self) -> str:
        """Layout of the packs."""
        return self._manifest.layout

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tensors: file by file, in the order of their data."""
        return tuple(self._tensors)

    def info(self, name: str) -> TensorInfo:
        """Describe a tensor.

        Raises
        ------
        KeyError
            The model has none of this name.
        """
        tensor, number = self._tensors[name]
        entry = self._manifest.tensors[name]
        file = self._manifest.shards[number].file
        return TensorInfo(name, tensor.dtype, tensor.shape, tensor.nbytes, entry["layout"], file)

    @overload
    def read(
        self, name: str, *, first_row: int = 0, n_rows: int | None = None, out: None = None, threads: int = 1
    ) -> bytearray: ...

    @overload
    def read(
        self, name: str, *, first_row: int = 0, n_rows: int | None = None, out: WriteableBuffer, threads: int = 1
    ) -> int: ...

    def read(
        self,
        name: str,
        *,
        first_row: int = 0,
        n_rows: int | None = None,
        out: WriteableBuffer | None = None,
        threads: int = 1,
    ) -> bytearray | int:
        """Return a tensor, or some of its rows, as the original has them.

        Parameters
        ----------
        name
            Of the tensor.
        first_row, n_rows
            Rows of `TensorInfo.n_rows`; None: all from the first on. Of a pack, only the
            blocks of 64 rows that hold them are read.
        out
            Writable C-contiguous buffer with room for them; None: a new bytearray.
        threads
            Threads to work with; 0: one a CPU.

        Returns
        -------
        bytearray or int
            The bytes; with ``out`` the number of bytes written there.

        Raises
        ------
        KeyError
            The model has no tensor of this name.
        ParameterError
            Rows that it does not have, or rows of a tensor whose element type is not known.
        FormatError
            The file is damaged. A whole tensor is checked against its hash, rows are not.
        BufferTooSmallError
            When they do not fit ``out``.
        """
        tensor, number = self._tensors[name]
        info = self.info(name)
        first = operator.index(first_row)
        n = info.n_rows - first if n_rows is None else operator.index(n_rows)
        if not (0 <= first <= info.n_rows and 0 <= n <= info.n_rows - first):
            raise ParameterError(
                f"rows {first} … {first + n - 1} of tensor {name!r}, which has {info.n_rows}",
                expected=info.n_rows,
                found=n,
            )
        whole = n == info.n_rows
        if not whole and tensor.dtype not in BITS:
            raise ParameterError(f"tensor {name!r} is of type {tensor.dtype}, whose rows are not known")
        row_nbytes = tensor.nbytes // info.n_rows if info.n_rows else 0
        if number not in self._open:
            self._open[number] = _Stored(self._path, self._manifest.shards[number])
        stored = self._open[number]
        entry = self._manifest.tensors[name]
        where = f"{info.file}: tensor {name!r}"
        nbytes = tensor.nbytes if whole else n * row_nbytes
        result = bytearray(nbytes) if out is None else None
        with memoryview(_as_bytes(out if result is None else result)) as target:  # type: ignore[arg-type]
            if len(target) < nbytes:
                raise BufferTooSmallError(
                    f"{where}: {nbytes} bytes do not fit a buffer of {len(target)}", expected=nbytes, found=len(target)
                )
            view = target[:nbytes]
            if entry["layout"] == "verbatim":
                begin, found = stored.places.get(name, (0, None))
                if found is None or (found.dtype, found.shape) != (tensor.dtype, tensor.shape):
                    raise CorruptDataError(f"{where}: not stored as the manifest says")
                stored.file.read(begin + first * row_nbytes, view)
                if whole:
                    check_sha256(view, entry["sha256"], where)
            elif nbytes:
                self._read_pack(stored, tensor, (first, n), view, where, threads)
        return nbytes if result is None else result

    def _read_pack(
        self, stored: _Stored, tensor: Tensor, rows: tuple[int, int], view: memoryview, where: str, threads: int
    ) -> None:
        entry = self._manifest.tensors[tensor.name]
        begin, found = stored.places.get(entry["packed"], (0, None))
        if found is None or found.dtype != "U8":
            raise CorruptDataError(f"{where}: its pack {entry['packed']!r} is not stored")
        with stored.file.map() as mapped, memoryview(mapped) as data, data[begin : begin + found.nbytes] as pack:
            if rows == (0, as_matrix(tensor.shape)[0]):  # type: ignore[index]
                check = checksum_text(pack)
                if check != entry["packed_xxh3"]:
                    expected = entry["packed_xxh3"]
                    raise ChecksumError(
                        f"{where}: XXH3 is {check}, not {expected}", expected=int(expected, 16), found=int(check, 16)
                    )
            try:
                info = read_weights_info(pack)
                if (info.layout, (info.rows, info.cols)) != (entry["layout"], as_matrix(tensor.shape)):
                    raise CorruptDataError(f"the pack is {info.layout}, {info.rows} × {info.cols}")
                unpack_weights(pack, first_row=rows[0], n_rows=rows[1], out=view, threads=threads)
            except FormatError as error:
                raise type(error)(f"{where}: {error}", expected=error.expected, found=error.found) from None


def _as_bytes(out: WriteableBuffer) -> memoryview:
    """Return a writable buffer as bytes.

    Raises
    ------
    TypeError, BufferError
        It is none, or not C-contiguous.
    """
    memory = borrow_writable(out)
    return memoryview(ffi.buffer(memory))

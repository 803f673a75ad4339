# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""`open_tensors`: single tensors, and rows of them, of a safetensors, GGUF or PyTorch file in frames."""

from __future__ import annotations

import builtins
import math
import operator
from typing import TYPE_CHECKING

from glyd_codec._errors import FormatError, ParameterError, TruncatedError
from glyd_codec._models._safetensors import BITS, Tensor, header_length, parse
from glyd_codec._native import lib
from glyd_codec._reader import RawReader
from glyd_codec._references import References
from glyd_codec._source import FileSource, is_path
from glyd_codec._tensors._frameworks import framework_name, make_strided, make_tensor
from glyd_codec._tensors._gguf import MAGIC, UNKNOWN, parse_gguf
from glyd_codec._tensors._torch import MAGIC as ZIP_MAGIC
from glyd_codec._tensors._torch import OLD_MAGIC, TorchHeader

if TYPE_CHECKING:
    from types import TracebackType
    from typing import IO, Any

    from glyd_codec._base import BaseLike
    from glyd_codec._limits import Limits
    from glyd_codec._source import Path

_FRAME_MAGICS = (lib.GLYD_FRAME_MAGIC.to_bytes(4, "little"), lib.GLYD_SKIPPABLE_MAGIC.to_bytes(4, "little"))


class _Plain:
    """A file without frames, read at places."""

    def __init__(self, source: FileSource) -> None:
        self._source = source
        self.nbytes = source.end()

    def readinto_at(self, offset: int, out: memoryview) -> int:
        return self._source.readinto_at(offset, out)

    def close(self) -> None:
        self._source.close()


class _Framed:
    """Content of frames, read at places through their index."""

    def __init__(self, source: FileSource, references: References, threads: int, limits: Limits | None) -> None:
        self._reader = RawReader(source, references, threads, limits)
        self.nbytes = self._reader.index.content_nbytes
        self._reader.seek(self.nbytes)  # leaves the stream: from now on by the index alone

    def readinto_at(self, offset: int, out: memoryview) -> int:
        self._reader.seek(offset)
        done = 0
        while done < len(out) and (n := self._reader.readinto(out[done:])):
            done += n
        return done

    def close(self) -> None:
        self._reader.close()


class TensorSlice:
    """A tensor of which parts are read, as `TensorFile.get_slice` returns it.

    Notes
    -----
    Indexing reads the range that its leading dimensions name and nothing else: of
    ``s[100:200]`` 100 rows, of ``s[3, 100:200]`` 100 rows of the third matrix. What
    is left out of further dimensions is read and dropped.
    """

    def __init__(self, file: TensorFile, tensor: Tensor, block_format: str | None = None) -> None:
        self._file = file
        self._tensor = tensor
        self._block_format = block_format

    def get_shape(self) -> list[int]:
        """Return the shape."""
        return list(self._tensor.shape)

    def get_dtype(self) -> str:
        """Return the type as safetensors names it, such as "BF16"; of blocks of GGUF their format, such as "Q8_0"."""
        return self._block_format or self._tensor.dtype

    def __getitem__(self, key: Any) -> Any:
        keys = list(key) if isinstance(key, tuple) else [key]
        shape = self._tensor.shape
        if keys.count(Ellipsis) > 1:
            raise IndexError("an index can have one ellipsis ('...')")
        if Ellipsis in keys:
            at = keys.index(Ellipsis)
            keys[at : at + 1] = [slice(None)] * (len(shape) - len(keys) + 1)
        if len(keys) > len(shape):
            raise IndexError(f"{len(keys)} indices for tensor {self._tensor.name!r} of {len(shape)} dimensions")
        first, depth = 0, 0  # element that the range starts with; dimensions fixed by a number
        for size, one in zip(shape, keys, strict=False):
            if isinstance(one, slice):
                break
            number = operator.index(one)
            if not -size <= number < size:
                raise IndexError(f"index {number} is out of a dimension of {size} (tensor {self._tensor.name!r})")
            depth += 1
            first += number % size * math.prod(shape[depth:])
        rest = list(shape[depth:])
        left = keys[depth:]
        if left:
            row = math.prod(rest[1:])
            rows = range(rest[0])[left[0]]
            low, high = (min(rows[0], rows[-1]), max(rows[0], rows[-1]) + 1) if rows else (0, 0)
            first += low * row
            rest[0] = high - low
            left[0] = slice(None) if rows.step == 1 else slice(None, None, rows.step)
        whole = all(one == slice(None) for one in left)
        if not whole and self._file.framework == "bytes":
            raise ParameterError("framework='bytes' reads ranges of the leading dimension only, in steps of 1")
        part = self._file._read_part(self._tensor, first, tuple(rest))  # noqa: SLF001  a part of it
        return part if whole else part[tuple(left)]


class TensorFile:
    """Tensors of a safetensors, GGUF or PyTorch file, in frames or plain, each read when asked for.

    Has the shape of what `safetensors.safe_open` returns. Made by `open_tensors`. Threads
    may share it: reads run one at a time.

    Attributes
    ----------
    framework
        "numpy", "torch" or "bytes".
    """

    def __init__(self, reader: _Plain | _Framed, name: str, framework: str, device: str) -> None:
        self.framework = framework
        self._device = device
        self._name = name
        self._reader = reader
        first = self._read(0, min(len(OLD_MAGIC), reader.nbytes))
        if first == OLD_MAGIC:
            raise FormatError(f"{name}: torch.save wrote this before its version 1.6: load and save it again")
        self._types: dict[str, str] = {}  # of tensors in block formats
        self._strides: dict[str, tuple[int, ...]] = {}  # of tensors whose elements do not lie in order
        self._metadata: dict[str, str] | None = None
        self._data_start: int | None = None
        tensors: tuple[Tensor, ...]
        if first[:4] == ZIP_MAGIC:
            self._torch = TorchHeader(self._read, reader.nbytes, name)
            tensors, self._types, self._strides = self._torch.tensors, self._torch.types, self._torch.strided
        elif first[:4] == MAGIC:
            gguf = parse_gguf(self._read, reader.nbytes, name)
            self._data_start, tensors = gguf.data_start, gguf.tensors
            self._types, self._metadata = gguf.types, gguf.metadata
        else:
            raw = self._read(0, 8 + header_length(first[:8], reader.nbytes, name))
            header = parse(raw, reader.nbytes - len(raw), name)
            self._data_start, tensors, self._metadata = len(raw), header.tensors, header.metadata
        self._tensors = {tensor.name: tensor for tensor in tensors}

    def keys(self) -> list[str]:
        """Return the names of the tensors, sorted."""
        return sorted(self._tensors)

    def offset_keys(self) -> list[str]:
        """Return the names of the tensors in the order of their data."""
        return list(self._tensors)

    def metadata(self) -> dict[str, str] | None:
        """Return the texts that the file carries, or None; of GGUF its values, as texts, without arrays; of PyTorch None."""
        return None if self._metadata is None else dict(self._metadata)

    def get_tensor(self, name: str) -> Any:
        """Read a tensor.

        Returns
        -------
        numpy.ndarray, torch.Tensor or bytearray
            As the framework of the file says. Its memory is its own.

        Raises
        ------
        KeyError
            There is none of that name.
        ImportError
            The framework, or ml_dtypes for types that numpy lacks, is not installed.
        ParameterError
            The framework has no such type.
        FormatError
            The file is damaged where the tensor is.
        """
        tensor = self._find(name)
        return self._read_part(tensor, 0, tensor.shape)

    def get_slice(self, name: str) -> TensorSlice:
        """Return a `TensorSlice`, which reads parts of a tensor; raises as `get_tensor`."""
        return TensorSlice(self, self._find(name), self._types.get(name))

    def _read_part(self, tensor: Tensor, first: int, shape: tuple[int, ...]) -> Any:
        """Read elements of a tensor, from one on, as a tensor of this shape."""
        if tensor.dtype == UNKNOWN:
            raise ParameterError(f"tensor {tensor.name!r}: {self._types[tensor.name]} is unknown to this version")
        if tensor.name in self._strides:
            return self._read_strided(tensor, first, shape)
        if first == 0 and shape == tensor.shape:
            begin, size = tensor.begin, tensor.nbytes
        elif tensor.dtype in BITS:
            width = BITS[tensor.dtype] // 8
            begin, size = tensor.begin + first * width, math.prod(shape) * width
        else:
            raise ParameterError(f"tensor {tensor.name!r}: elements of {tensor.dtype} have no known size")
        data = bytearray(size)
        if size:
            self._fill(self._start_of(tensor) + begin, data)
        return make_tensor(data, tensor.dtype, shape, tensor.name, self.framework, self._device)

    def _read_strided(self, tensor: Tensor, first: int, shape: tuple[int, ...]) -> Any:
        data = bytearray(tensor.nbytes)
        self._fill(self._start_of(tensor) + tensor.begin, data)
        flat = make_tensor(data, tensor.dtype, (-1,), tensor.name, self.framework, self._device)
        whole = make_strided(flat, tensor.shape, self._strides[tensor.name], tensor.name, self.framework)
        return whole if shape == tensor.shape else whole.reshape(-1)[first : first + math.prod(shape)].reshape(shape)

    def _start_of(self, tensor: Tensor) -> int:
        return self._torch.start_of(tensor) if self._data_start is None else self._data_start

    def close(self) -> None:
        """Close the file, if it was opened here."""
        self._reader.close()

    def __enter__(self) -> TensorFile:  # noqa: PYI034  Self is there from Python 3.11 on
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _find(self, name: str) -> Tensor:
        tensor = self._tensors.get(name)
        if tensor is None:
            raise KeyError(f"{self._name} has no tensor {name!r}")
        return tensor

    def _read(self, offset: int, size: int) -> bytes:
        out = bytearray(size)
        self._fill(offset, out)
        return bytes(out)

    def _fill(self, offset: int, out: bytearray) -> None:
        found = self._reader.readinto_at(offset, memoryview(out))
        if found != len(out):
            raise TruncatedError(
                f"{self._name}: content ends at byte {offset + found}", offset=offset, expected=len(out), found=found
            )


def open_tensors(
    file: Path | IO[bytes],
    framework: str = "numpy",
    device: str = "cpu",
    *,
    base: BaseLike | None = None,
    threads: int = 0,
    limits: Limits | None = None,
) -> TensorFile:
    """Open the tensors of a safetensors, GGUF or PyTorch file without reading them.

    Parameters
    ----------
    file
        Path, or binary file object that can seek: frames whose content is a safetensors or
        GGUF file or a zip of `torch.save`, or such a file as it is.
    framework
        What tensors become: "numpy" ("np"), "torch" ("pt") or "bytes".
    device
        Where torch puts them.
    base
        What the frames were stored against, as for `decompress`.
    threads
        Segments to decode at once; 0: one a CPU, at most 8.
    limits
        Limits for hostile input.

    Returns
    -------
    TensorFile
        With ``keys``, ``get_tensor``, ``get_slice`` and ``metadata``; a context manager.

    Raises
    ------
    FormatError
        The content is none of these, or frames are damaged.
    ParameterError
        For an unknown framework.
    OSError, TypeError
        When the file cannot be read so; UnsupportedOperation if it cannot seek.

    Notes
    -----
    Reads the index of the frames and the header. A tensor then takes the segments it lies
    in, and no others; up to 64 MiB of content that was decoded last are kept. Tensors of
    GGUF in a block format such as Q8_0 are bytes (uint8), their last dimension the blocks
    of a row; shapes are those of numpy, the reverse of what GGUF writes. The pickle of a
    PyTorch file is read without running anything of it: tensors have the keys that lead to
    them as names, with dots between them; what else there is, is left out.
    """
    framework = framework_name(framework)
    if is_path(file):
        source = FileSource(builtins.open(file, "rb", buffering=0), owns=True)  # type: ignore[arg-type]  # noqa: PTH123, SIM115
    elif hasattr(file, "read") and hasattr(file, "seek"):
        source = FileSource(file, owns=False)  # type: ignore[arg-type]
    else:
        raise TypeError(f"file must be a path or a binary file object that can seek, not {type(file).__name__}")
    name = str(file) if is_path(file) else str(getattr(file, "name", "the file"))
    try:
        is_framed = source.read_at(0, 4) in _FRAME_MAGICS
        source.rewind()
        reader: _Plain | _Framed = _Framed(source, References(base), threads, limits) if is_framed else _Plain(source)
        return TensorFile(reader, name, framework, device)
    except BaseException:
        source.close()
        raise


def load_file(
    file: Path | IO[bytes],
    framework: str = "numpy",
    device: str = "cpu",
    *,
    base: BaseLike | None = None,
    threads: int = 0,
    limits: Limits | None = None,
) -> dict[str, Any]:
    """Read all tensors of a safetensors, GGUF or PyTorch file, in frames or plain.

    Parameters
    ----------
    file, framework, device, base, threads, limits
        As for `open_tensors`.

    Returns
    -------
    dict
        From names to tensors, in the order of their data.

    Raises
    ------
    FormatError, ParameterError, ImportError, OSError, TypeError
        As `open_tensors` and `TensorFile.get_tensor`.
    """
    with open_tensors(file, framework, device, base=base, threads=threads, limits=limits) as tensors:
        return {name: tensors.get_tensor(name) for name in tensors.offset_keys()}

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Files that `torch.save` wrote: a zip with a pickle and one file for each storage, all of them uncompressed."""

from __future__ import annotations

import math
import zipfile
from typing import TYPE_CHECKING

from glyd_codec._errors import FormatError, ParameterError, TruncatedError
from glyd_codec._models._safetensors import BITS, Tensor
from glyd_codec._tensors._pickle import StoredTensor, Unknown, read_pickle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

MAGIC = b"PK\x03\x04"

OLD_MAGIC = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")
"""Start of what `torch.save` wrote before version 1.6: a pickle, its number, and more pickles."""

LONE_NAME = "tensor"
"""Name of a tensor that was saved by itself."""

_READ_MAX = 1 << 28  # of the directory of the zip, or of the pickle
_LOCAL_HEADER = 30
_NAMES_SPARE, _NAMES_SHARE = 1 << 20, 16  # characters of all names together, and of them a byte of the pickle

_MODULE_PARTS = ("_parameters", "_buffers", "_modules")

_TYPES = {
    "BoolStorage": "BOOL", "ByteStorage": "U8", "CharStorage": "I8", "ShortStorage": "I16", "IntStorage": "I32",
    "LongStorage": "I64", "HalfStorage": "F16", "BFloat16Storage": "BF16", "FloatStorage": "F32",
    "DoubleStorage": "F64", "ComplexFloatStorage": "C64", "UntypedStorage": "U8",
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "float16": "F16",
    "bfloat16": "BF16", "float32": "F32", "float64": "F64", "complex64": "C64", "uint16": "U16", "uint32": "U32",
    "uint64": "U64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0",
}  # fmt: skip


class _Seekable:
    """What `zipfile` needs of a file, over content that is read at places."""

    def __init__(self, read: Callable[[int, int], bytes], nbytes: int, name: str) -> None:
        self._read, self._nbytes, self._name = read, nbytes, name
        self._at = 0

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        at = offset + (0, self._at, self._nbytes)[whence]
        if at < 0:
            raise OSError(f"place {at} of a file")
        self._at = at
        return at

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._nbytes - self._at)
        size = left if size < 0 else min(size, left)
        if size > _READ_MAX:
            raise FormatError(f"{self._name}: a directory or pickle of {size} bytes, at most {_READ_MAX} expected")
        data = self._read(self._at, size)
        self._at += size
        return data


class TorchHeader:
    """What a file holds, and where.

    Parameters
    ----------
    read
        Gives the bytes from a place on, exactly as many as are asked for.
    nbytes
        Of the file.
    name
        Of the file, for messages.

    Attributes
    ----------
    tensors
        In the order of their data; ``begin`` and ``end`` count from the start of their storage.
    strided
        From the names of those whose elements do not lie in order to their strides.
    types
        From the names of those of types that are unknown here to the names of these.

    Raises
    ------
    FormatError
        A rule of the form is broken; the message says where.
    """

    def __init__(self, read: Callable[[int, int], bytes], nbytes: int, name: str) -> None:
        self._read, self._nbytes, self._name = read, nbytes, name
        self._starts: dict[str, int] = {}  # of storages
        self._keys: dict[str, str] = {}  # from tensors to storages
        self.strided: dict[str, tuple[int, ...]] = {}
        self.types: dict[str, str] = {}
        try:
            with zipfile.ZipFile(_Seekable(read, nbytes, name)) as archive:
                self._infos = {info.filename: info for info in archive.infolist()}
                if len(self._infos) != len(archive.infolist()):
                    raise FormatError(f"{name}: a file of the zip is there twice")
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            if isinstance(error, FormatError):
                raise
            raise FormatError(f"{name}: no readable zip: {error}") from None
        pickles = [path for path in self._infos if path.count("/") == 1 and path.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise FormatError(f"{name}: a zip with {len(pickles)} files data.pkl, which torch.save did not write")
        self._folder = pickles[0].removesuffix("data.pkl")
        order = f"{self._folder}byteorder"
        if order in self._infos and self._content(order) != b"little":
            raise ParameterError(f"{name}: its numbers are big-endian, which is not read")
        data = self._content(pickles[0])
        found: dict[str, StoredTensor] = {}
        for label, tensor in self._walk(read_pickle(data, name), _NAMES_SPARE + _NAMES_SHARE * len(data)):
            if label in found:
                raise FormatError(f"{name}: tensor {label!r} is there twice")
            found[label] = tensor
        tensors = [self._tensor(label, tensor) for label, tensor in found.items()]
        self.tensors = tuple(sorted(tensors, key=self._place_of))

    def start_of(self, tensor: Tensor) -> int:
        """Return the byte of the file that the tensor's storage starts at."""
        key = self._keys[tensor.name]
        if key not in self._starts:
            self._starts[key] = self._start(f"{self._folder}data/{key}")
        return self._starts[key]

    def _place_of(self, tensor: Tensor) -> tuple[int, int, int]:
        return self._infos[f"{self._folder}data/{self._keys[tensor.name]}"].header_offset, tensor.begin, tensor.end

    def _start(self, path: str) -> int:
        """Return where the content of a file of the zip starts: its own header says it, the directory does not."""
        info = self._infos[path]
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 or info.compress_size != info.file_size:
            raise FormatError(f"{self._name}: {path} is compressed or encrypted, which torch.save does not do")
        if info.header_offset + _LOCAL_HEADER > self._nbytes:
            raise TruncatedError(f"{self._name}: {path} starts at byte {info.header_offset} of {self._nbytes}")
        header = self._read(info.header_offset, _LOCAL_HEADER)
        if header[:4] != MAGIC:
            raise FormatError(f"{self._name}: {path} has no header at byte {info.header_offset}")
        lengths = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        start = info.header_offset + _LOCAL_HEADER + lengths
        if start + info.file_size > self._nbytes:
            raise TruncatedError(
                f"{self._name}: {path} ends at byte {start + info.file_size} of a file of {self._nbytes}",
                expected=start + info.file_size,
                found=self._nbytes,
            )
        return start

    def _content(self, path: str) -> bytes:
        size = self._infos[path].file_size
        if size > _READ_MAX:
            raise FormatError(f"{self._name}: {path} of {size} bytes, at most {_READ_MAX} expected")
        return self._read(self._start(path), size)

    def _walk(self, root: Any, budget: int) -> Iterator[tuple[str, StoredTensor]]:
        """Give all tensors with their names: keys and numbers from the root on, with dots between them.

        A pickle may refer to a part of itself from many places, so names may grow without
        limit: budget is how many characters they may have together.
        """
        todo = [("", root)]
        while todo:
            path, value = todo.pop()
            if isinstance(value, StoredTensor):
                yield path or LONE_NAME, value
                continue
            parts: list[tuple[Any, Any]] = []
            if isinstance(value, Unknown):
                parts = [("", value.state), *value.items.items(), *enumerate(value.elements)]
                if isinstance(value.state, dict):  # the parts of a module are named as in its state_dict
                    parts[:1] = [("" if key in _MODULE_PARTS else key, part) for key, part in value.state.items()]
            elif isinstance(value, dict):
                parts = list(value.items())
            elif isinstance(value, (list, tuple)):
                parts = list(enumerate(value))
            for key, part in reversed(parts):
                if isinstance(part, (StoredTensor, Unknown, dict, list, tuple)):
                    name = str(key) if isinstance(key, (str, int)) else "?"
                    longer = f"{path}.{name}" if path and name else path or name
                    budget -= len(longer) + 1
                    if budget < 0:
                        raise FormatError(f"{self._name}: its pickle refers to itself, or too often to the same")
                    todo.append((longer, part))

    def _tensor(self, label: str, tensor: StoredTensor) -> Tensor:
        path = f"{self._folder}data/{tensor.storage.key}"
        if path not in self._infos:
            raise FormatError(f"{self._name}: tensor {label!r} lies in {path}, which is not there")
        self._keys[label] = tensor.storage.key
        size = self._infos[path].file_size
        code = _TYPES.get(tensor.type_name)
        if code is None:
            self.types[label] = tensor.type_name
            return Tensor(label, "?", tensor.shape, 0, 0)
        width = BITS[code] // 8
        end = (tensor.offset + tensor.span) * width
        if end > size:
            raise TruncatedError(f"{self._name}: tensor {label!r} ends at byte {end} of {path}, which has {size}")
        if not tensor.is_contiguous:
            if math.prod(tensor.shape) > tensor.span:
                raise FormatError(f"{self._name}: elements of tensor {label!r} lie upon each other")
            self.strided[label] = tensor.strides
        return Tensor(label, code, tensor.shape, tensor.offset * width, end)

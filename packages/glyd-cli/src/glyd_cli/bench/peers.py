# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""lz4 and zstd through the C functions inside their Python modules.

The Python functions of these modules allocate each result, and that of lz4 also copies
it, which takes about as long as decoding. Calling the C library with a buffer that is
there already measures the compressor alone, as `glyd.decompress_into` does for glyd.
Builds of the modules that hide the C functions are measured through their Python ones.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Compress: TypeAlias = Callable[[bytes], bytes]
    Decompress: TypeAlias = Callable[[bytes, bytearray], bytes | bytearray]


def lz4_functions() -> tuple[Compress, Decompress]:
    """Return compress and decompress of lz4's block format, at its default speed."""
    library = _library("lz4.block._block", "LZ4_compressBound", "LZ4_compress_default", "LZ4_decompress_safe")
    if library is None:
        module = importlib.import_module("lz4.block")
        return (
            lambda data: bytes(module.compress(data, store_size=False)),
            lambda data, out: bytes(module.decompress(data, uncompressed_size=len(out))),
        )
    for function in (library.LZ4_compress_default, library.LZ4_decompress_safe):
        function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]

    def compress(data: bytes) -> bytes:
        room = _Room(library.LZ4_compressBound(len(data)))
        n = library.LZ4_compress_default(_address(data), room.address, len(data), room.size)
        if n <= 0:
            raise ValueError(f"LZ4_compress_default gave {n} for {len(data)} bytes")
        return room.take(n)

    def decompress(data: bytes, out: bytearray) -> bytearray:
        n = library.LZ4_decompress_safe(_address(data), _writable(out), len(data), len(out))
        if n != len(out):
            raise ValueError(f"LZ4_decompress_safe gave {n} of {len(out)} bytes")
        return out

    return compress, decompress


def zstd_functions(level: int) -> tuple[Compress, Decompress]:
    """Return compress and decompress of zstd at a level."""
    needed = ("ZSTD_compressBound", "ZSTD_createCCtx", "ZSTD_compressCCtx", "ZSTD_createDCtx", "ZSTD_decompressDCtx")
    library = _library("zstandard._cffi", *needed)
    if library is None:
        module = importlib.import_module("zstandard")
        writer, reader = module.ZstdCompressor(level=level), module.ZstdDecompressor()
        return (
            lambda data: bytes(writer.compress(data)),
            lambda data, out: bytes(reader.decompress(data, max_output_size=len(out))),
        )
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    library.ZSTD_createCCtx.restype = library.ZSTD_createDCtx.restype = pointer
    for name in ("ZSTD_compressBound", "ZSTD_compressCCtx", "ZSTD_decompressDCtx"):
        getattr(library, name).restype = size
    library.ZSTD_compressBound.argtypes = [size]
    library.ZSTD_compressCCtx.argtypes = [pointer, pointer, size, pointer, size, ctypes.c_int]
    library.ZSTD_decompressDCtx.argtypes = [pointer, pointer, size, pointer, size]
    writing, reading = library.ZSTD_createCCtx(), library.ZSTD_createDCtx()  # one a level, for the whole run

    def compress(data: bytes) -> bytes:
        room = _Room(library.ZSTD_compressBound(len(data)))
        n = library.ZSTD_compressCCtx(writing, room.address, room.size, _address(data), len(data), level)
        if n > room.size:
            raise ValueError(f"ZSTD_compressCCtx failed for {len(data)} bytes")
        return room.take(n)

    def decompress(data: bytes, out: bytearray) -> bytearray:
        n = library.ZSTD_decompressDCtx(reading, _writable(out), len(out), _address(data), len(data))
        if n != len(out):
            raise ValueError(f"ZSTD_decompressDCtx gave {n} of {len(out)} bytes")
        return out

    return compress, decompress


class _Room:
    """Memory that nothing has cleared, for a result whose size is not known before."""

    def __init__(self, size: int) -> None:
        new = ctypes.pythonapi.PyBytes_FromStringAndSize
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_ssize_t]
        self.size = size
        self._bytes: bytes = new(None, size)
        self.address = _address(self._bytes)

    def take(self, size: int) -> bytes:
        return self._bytes[:size]


def _address(data: bytes) -> int:
    get = ctypes.pythonapi.PyBytes_AsString
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object]
    address: int = get(data)
    return address


def _writable(out: bytearray) -> Any:
    return (ctypes.c_char * len(out)).from_buffer(out) if out else None


def _library(module: str, *needed: str) -> ctypes.CDLL | None:
    """Load the shared library behind a module, if it has the functions."""
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.origin:
        return None
    library = ctypes.CDLL(spec.origin)
    return library if all(hasattr(library, name) for name in needed) else None

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The compressors that are measured, all called in process through the same two functions."""

from __future__ import annotations

import importlib.util
import lzma
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import glyd
from glyd_cli.bench.peers import lz4_functions, zstd_functions

if TYPE_CHECKING:
    from glyd_cli.bench.peers import Compress, Decompress

ZSTD_LEVELS = (1, 3, 9, 19)
RECORD_LEVELS = ("max", "ultra")


@dataclass(frozen=True, slots=True)
class Codec:
    """A compressor at a level.

    Attributes
    ----------
    name
        As shown: "glyd max", "zstd -3".
    family
        "glyd", "zstd", "lz4", "xz" or "zlib".
    threads
        Threads it may use.
    compress
        From content to compressed bytes.
    decompress
        From compressed bytes, and a buffer of the size of the content, to the content: the
        buffer, filled, or an object of its own where a library cannot use the buffer.
    """

    name: str
    family: str
    threads: int
    compress: Compress
    decompress: Decompress


def find_codecs(
    threads: int, base: glyd.Base | None = None, *, records: bool = False
) -> tuple[list[Codec], dict[str, str]]:
    """Return what can be measured here.

    Parameters
    ----------
    threads
        Threads of the second row of each level of glyd; 1: no second row.
    base
        Content to compress against: then only what can is returned.
    records
        Levels that store tables and logs as columns as well.

    Returns
    -------
    tuple of list and dict
        The codecs, and for each library that is missing what to install.
    """
    levels = [level for level in glyd.LEVELS if base is None or level != "cold"]  # its model takes no base
    codecs = [_glyd(level, 1, base) for level in levels]
    if threads > 1:
        codecs += [_glyd(level, threads, base) for level in levels]
    if records:
        codecs += [_glyd(level, 1, base, records=True) for level in RECORD_LEVELS]
    missing: dict[str, str] = {}
    if base is not None:
        return codecs, missing
    if importlib.util.find_spec("lz4"):
        codecs.append(Codec("lz4", "lz4", 1, *lz4_functions()))
    else:
        missing["lz4"] = "pip install lz4"
    if importlib.util.find_spec("zstandard"):
        codecs += [Codec(f"zstd -{level}", "zstd", 1, *zstd_functions(level)) for level in ZSTD_LEVELS]
    else:
        missing["zstd"] = "pip install zstandard"
    codecs += [_zlib(6), _xz("-6", 6), _xz("-9e", 9 | lzma.PRESET_EXTREME)]
    return codecs, missing


def versions() -> dict[str, str]:
    """Return the versions of the libraries that are measured."""
    found = {"glyd": glyd.__version__, "zlib": zlib.ZLIB_RUNTIME_VERSION}
    if importlib.util.find_spec("lz4"):
        import lz4  # noqa: PLC0415 - an extra

        found["lz4"] = lz4.library_version_string()
    if importlib.util.find_spec("zstandard"):
        import zstandard  # noqa: PLC0415 - an extra

        found["zstd"] = ".".join(map(str, zstandard.ZSTD_VERSION))
    return found


def _glyd(level: str, threads: int, base: glyd.Base | None = None, *, records: bool = False) -> Codec:
    def compress(data: bytes) -> bytes:
        return glyd.compress(data, level, base=base, threads=threads, records=records)  # type: ignore[arg-type]

    def decompress(data: bytes, out: bytearray) -> bytearray:
        glyd.decompress_into(data, out, base=base, threads=threads)
        return out

    suffix = ("" if threads == 1 else f" T{threads}") + (" -r" if records else "")
    return Codec(f"glyd {level}{suffix}", "glyd", threads, compress, decompress)


def _zlib(level: int) -> Codec:
    return Codec(
        f"zlib -{level}",
        "zlib",
        1,
        lambda data: zlib.compress(data, level),
        lambda data, out: zlib.decompress(data, bufsize=max(len(out), 1)),
    )


def _xz(name: str, preset: int) -> Codec:
    return Codec(
        f"xz {name}",
        "xz",
        1,
        lambda data: lzma.compress(data, preset=preset),
        lambda data, _out: lzma.decompress(data),
    )

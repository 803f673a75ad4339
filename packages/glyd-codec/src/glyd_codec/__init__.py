# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Lossless compression that reads in parallel and at any offset.

In one call: `compress`, `decompress`, `decompress_into`. As a file: `open`,
`GlydFile`. Piece by piece: `Compressor`, `Decompressor`. Without decoding:
`get_frame_info`, `iter_frames`, `iter_segments`; the columns of tables and logs: `iter_records`;
what is inside opened gzip, zip and PNG content: `iter_opened`, `iter_inside`, `survey_streams`; and such content
opened for what stores it next: `open_streams`, `close_streams`.
Against an older version: `Base`. Many small objects: `Dictionary`, `train_dictionary`, `Bundle`,
`pack_objects`. Model checkpoints: `pack_model`, `unpack_model`, `verify_model`; single bf16 matrices:
`pack_weights`, `unpack_weights`, `read_weights_info`; keys and values of a model: `pack_kv_pages`,
`unpack_kv_pages`, `read_kv_pages`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from glyd_codec._version import __version__

if TYPE_CHECKING:
    from typing import Any

    from glyd_codec._base import Base
    from glyd_codec._bundle import Bundle, pack_objects
    from glyd_codec._checksum import checksum, checksum128
    from glyd_codec._dictionary import Dictionary, ObjectInfo, read_object_info, train_dictionary
    from glyd_codec._errors import (
        BufferTooSmallError,
        ChecksumError,
        CorruptDataError,
        FormatError,
        GlydError,
        LimitError,
        MissingBaseError,
        ParameterError,
        TruncatedError,
        UnsupportedVersionError,
        WrongBaseError,
    )
    from glyd_codec._file import GlydFile
    from glyd_codec._fingerprints import Fingerprinter
    from glyd_codec._fit import FitReport, GpuFit, WeightsFit, fit
    from glyd_codec._inspect import FrameInfo, SegmentInfo, get_frame_info, iter_frames, iter_segments
    from glyd_codec._kv import KV_TOKENS, KvPageInfo, kv_page_bound, pack_kv_pages, read_kv_pages, unpack_kv_pages
    from glyd_codec._limits import Limits
    from glyd_codec._models import (
        ModelReport,
        PackReport,
        open_model,
        pack_model,
        seal_model,
        unpack_model,
        verify_model,
    )
    from glyd_codec._oneshot import compress, decompress, decompress_into
    from glyd_codec._open import open  # noqa: A004
    from glyd_codec._opened import (
        OpenedInfo,
        StreamInfo,
        close_streams,
        iter_inside,
        iter_opened,
        open_streams,
        survey_streams,
    )
    from glyd_codec._params import LEVELS
    from glyd_codec._records import ColumnInfo, RecordsInfo, iter_records
    from glyd_codec._stream import Compressor, Decompressor
    from glyd_codec._tensors import TensorFile, TensorSlice, load_file, open_tensors, save_file
    from glyd_codec._weights import WeightsInfo, pack_weights, read_weights_info, unpack_weights

__all__ = [
    "KV_TOKENS",
    "LEVELS",
    "Base",
    "BufferTooSmallError",
    "Bundle",
    "ChecksumError",
    "ColumnInfo",
    "Compressor",
    "CorruptDataError",
    "Decompressor",
    "Dictionary",
    "Fingerprinter",
    "FitReport",
    "FormatError",
    "FrameInfo",
    "GlydError",
    "GlydFile",
    "GpuFit",
    "KvPageInfo",
    "LimitError",
    "Limits",
    "MissingBaseError",
    "ModelReport",
    "ObjectInfo",
    "OpenedInfo",
    "PackReport",
    "ParameterError",
    "RecordsInfo",
    "SegmentInfo",
    "StreamInfo",
    "TensorFile",
    "TensorSlice",
    "TruncatedError",
    "UnsupportedVersionError",
    "WeightsFit",
    "WeightsInfo",
    "WrongBaseError",
    "__version__",
    "checksum",
    "checksum128",
    "close_streams",
    "compress",
    "decompress",
    "decompress_into",
    "fit",
    "get_frame_info",
    "iter_frames",
    "iter_inside",
    "iter_opened",
    "iter_records",
    "iter_segments",
    "kv_page_bound",
    "load_file",
    "open",
    "open_model",
    "open_streams",
    "open_tensors",
    "pack_kv_pages",
    "pack_model",
    "pack_objects",
    "pack_weights",
    "read_kv_pages",
    "read_object_info",
    "read_weights_info",
    "save_file",
    "seal_model",
    "survey_streams",
    "train_dictionary",
    "unpack_kv_pages",
    "unpack_model",
    "unpack_weights",
    "verify_model",
]

_NAMES = {  # what each module has; it is loaded when one of them is first used
    "_base": ("Base",),
    "_bundle": ("Bundle", "pack_objects"),
    "_checksum": ("checksum", "checksum128"),
    "_dictionary": ("Dictionary", "ObjectInfo", "read_object_info", "train_dictionary"),
    "_errors": (
        "BufferTooSmallError",
        "ChecksumError",
        "CorruptDataError",
        "FormatError",
        "GlydError",
        "LimitError",
        "MissingBaseError",
        "ParameterError",
        "TruncatedError",
        "UnsupportedVersionError",
        "WrongBaseError",
    ),
    "_file": ("GlydFile",),
    "_fingerprints": ("Fingerprinter",),
    "_fit": ("FitReport", "GpuFit", "WeightsFit", "fit"),
    "_inspect": ("FrameInfo", "SegmentInfo", "get_frame_info", "iter_frames", "iter_segments"),
    "_kv": ("KV_TOKENS", "KvPageInfo", "kv_page_bound", "pack_kv_pages", "read_kv_pages", "unpack_kv_pages"),
    "_models": ("ModelReport", "PackReport", "open_model", "pack_model", "seal_model", "unpack_model", "verify_model"),
    "_oneshot": ("compress", "decompress", "decompress_into"),
    "_open": ("open",),
    "_opened": (
        "OpenedInfo",
        "StreamInfo",
        "close_streams",
        "iter_inside",
        "iter_opened",
        "open_streams",
        "survey_streams",
    ),
    "_limits": ("Limits",),
    "_params": ("LEVELS",),
    "_records": ("ColumnInfo", "RecordsInfo", "iter_records"),
    "_stream": ("Compressor", "Decompressor"),
    "_tensors": ("TensorFile", "TensorSlice", "load_file", "open_tensors", "save_file"),
    "_weights": ("WeightsInfo", "pack_weights", "read_weights_info", "unpack_weights"),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - an import at the top shows in dir()

    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The C interface: declared once in the header, once in Python."""

import ctypes
import re
from pathlib import Path

import pytest

from glyd_gpu import KernelsUnavailableError, _library

KERNELS = Path(__file__).resolve().parents[1] / "src" / "glyd_gpu" / "kernels"
TYPES = {
    "float": ctypes.c_float,
    "int": ctypes.c_int,
    "const char *": ctypes.c_char_p,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "const int64_t *": _library.Meta,
    "const int32_t *": _library.Config,
    "const void *": ctypes.c_void_p,
    "const void *const *": _library.Pointers,
    "void *": ctypes.c_void_p,
}


def declared():
    """Read the header: name → result and arguments."""
    text = re.sub(r"/\*.*?\*/", "", (KERNELS / "glyd_gpu.h").read_text(encoding="utf-8"), flags=re.DOTALL)
    found = {}
    for result, name, arguments in re.findall(r"^GLYD_GPU_API ([\w ]+?[ *]+)(\w+)\(([^)]*)\);", text, re.MULTILINE):
        types = []
        for argument in arguments.split(","):
            if argument.strip() != "void":
                types.append(TYPES[re.fullmatch(r"(.*?[ *]+)\w+", argument.strip())[1].strip()])
        found[name] = (TYPES[result.strip()], types)
    return found


def test_table_is_what_the_header_declares():
    header = declared()
    assert len(header) >= 3
    assert {name: (result, list(types)) for name, (result, types) in _library.FUNCTIONS.items()} == header


def test_versions_agree():
    text = (KERNELS / "glyd_gpu.h").read_text(encoding="utf-8")
    assert int(re.search(r"GLYD_GPU_ABI_VERSION (\d+)", text)[1]) == _library.ABI_VERSION


def test_no_kernels_say_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv(_library.VARIABLE, str(tmp_path / "none.so"))
    _library.load.cache_clear()
    with pytest.raises(KernelsUnavailableError, match=r"no kernels.*none\.so.*Install a wheel"):
        _library.load()
    (tmp_path / "none.so").write_bytes(b"not a library")
    with pytest.raises(ImportError, match="cannot be loaded"):
        _library.load()
    _library.load.cache_clear()

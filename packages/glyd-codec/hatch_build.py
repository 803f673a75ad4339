# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Compile the native core and its cffi wrapper into the wheel.

cffi (API mode) writes the wrapper from ``_native.cdef.h``; one call of the C
compiler then builds it together with every ``native/src/**/*.c``. ``CC``,
``CFLAGS``, ``LDFLAGS`` and, on macOS, ``ARCHFLAGS`` are honoured.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MODULE = "glyd_codec._native"
LIMITED_API = 0x030A0000  # Python 3.10: the tag cp310-abi3 promises it


def find_native(root: Path) -> Path:
    """Return the folder of the C sources: beside us in an sdist, two levels up in a checkout.

    Raises
    ------
    RuntimeError
        When neither exists.
    """
    candidates = (root / "native", root.parents[1] / "native")
    for path in candidates:
        if (path / "include" / "glyd").is_dir():
            return path
    raise RuntimeError("no C sources: looked for include/glyd in " + " and ".join(map(str, candidates)))


def has_limited_api() -> bool:
    """Say whether this interpreter can load (and so should build) an abi3 module."""
    return sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")


def write_wrapper(cdef: Path, out: Path) -> None:
    """Let cffi write the C source of the extension module."""
    from cffi import FFI  # noqa: PLC0415  only there in the build environment

    ffi = FFI()
    ffi.cdef(cdef.read_text(encoding="utf-8"))
    ffi.set_source(
        MODULE,
        "".join(f'#include "glyd/{name}.h"\n' for name in ("base", "dictionary", "glyd", "kv", "records", "weights")),
    )
    ffi.emit_c_code(str(out))


def compile_command(native: Path, wrapper: Path, out: Path) -> list[str]:
    """Return the one compiler call that builds the extension module."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    shared = ["-shared"]
    if sys.platform == "darwin":
        shared = ["-bundle", "-undefined", "dynamic_lookup", *shlex.split(os.environ.get("ARCHFLAGS", ""))]
    limited = [f"-DPy_LIMITED_API={LIMITED_API:#x}"] if has_limited_api() else []
    return [
        *compiler,
        *shared,
        "-std=c11",
        "-O3",
        "-DNDEBUG",
        "-fPIC",
        "-fvisibility=hidden",
        "-pthread",
        "-Wall",
        "-Wextra",
        f"-I{native / 'include'}",
        f"-I{native / 'src'}",
        f"-I{sysconfig.get_path('include')}",
        *limited,
        *shlex.split(os.environ.get("CFLAGS", "")),
        str(wrapper),
        *sorted(map(str, (native / "src").rglob("*.c"))),
        "-o",
        str(out),
        *shlex.split(os.environ.get("LDFLAGS", "")),
    ]


class NativeBuildHook(BuildHookInterface[Any]):
    """Hatchling hook: add the compiled module to the wheel and set the wheel's tag."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, for a wheel into a temporary folder, for an editable install beside the sources."""
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        native = find_native(root)
        package = root / "src" / "glyd_codec"
        editable = version == "editable"
        work = Path(tempfile.mkdtemp(prefix="glyd-native-"))
        suffix = ".abi3.so" if has_limited_api() else sysconfig.get_config_var("EXT_SUFFIX")
        library = (package if editable else work) / f"_native{suffix}"
        wrapper = work / "_native.c"

        write_wrapper(package / "_native.cdef.h", wrapper)
        command = compile_command(native, wrapper, library)
        try:
            subprocess.run(command, check=True)
        except FileNotFoundError as error:
            raise RuntimeError(f"no C compiler {command[0]!r}: install one, or name it in CC") from error

        build_data["pure_python"] = False
        if has_limited_api():
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"cp310-abi3-{platform}"
        else:
            build_data["infer_tag"] = True
        if not editable:
            build_data["force_include"][str(library)] = f"glyd_codec/{library.name}"

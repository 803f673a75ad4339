# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Hold rules about symbols of compiled code, with ``nm`` of the binutils.

``check_exports.py wheel FILE.whl…``
    Every extension module exports its ``PyInit_*`` function and nothing else.
``check_exports.py kernels LIBRARY``
    The library of kernels exports its C interface and nothing else, loads
    without a GPU, and a launch on a machine without a driver is an error.
``check_exports.py state OBJECT``
    A relocatable object of C files has no mutable global state.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

MUTABLE = set("bBdDcC")  # types of nm: .bss, .data, common


def symbols(path: Path, *options: str) -> list[tuple[str, str]]:
    """Return (type, name) of the symbols that a file defines."""
    command = ["nm", "--defined-only", *options, str(path)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [(fields[-2], fields[-1]) for fields in map(str.split, out.splitlines()) if len(fields) >= 2]


def check_wheel(wheel: Path) -> list[str]:
    """Return what the extension modules of a wheel export beyond ``PyInit_*``."""
    problems = []
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        modules = [name for name in archive.namelist() if name.endswith(".so")]
        if not modules:
            problems.append(f"{wheel.name}: holds no extension module")
        for module in modules:
            names = [name for _, name in symbols(Path(archive.extract(module, folder)), "-D")]
            wanted = "PyInit_" + Path(module).name.split(".", 1)[0]
            if names != [wanted]:
                problems.append(f"{wheel.name}: {module} exports {names}, expected only {wanted}")
    return problems


def check_kernels(library: Path) -> list[str]:
    """Return what the library of kernels exports beyond ``glyd_gpu_*``."""
    names = [name for _, name in symbols(library, "-D")]
    problems = [f"{library.name}: exports {name}" for name in names if not name.startswith("glyd_gpu_")]
    if not names:
        return [f"{library.name}: exports nothing"]
    loaded = ctypes.CDLL(str(library.resolve()))
    meta = (ctypes.c_int64 * 7)(1, 64, 64, 0, 0, 0, 0)
    buffer = ctypes.create_string_buffer(1 << 16)
    at = ctypes.c_void_p((ctypes.addressof(buffer) + 127) // 128 * 128)
    nbytes, zero = ctypes.c_uint64(1 << 15), ctypes.c_int64(0)
    status = loaded.glyd_gpu_unpack(at, at, nbytes, meta, zero, zero, None)
    if status != 0:
        problems.append(f"{library.name}: unpacking no rows gives {status}, not 0")
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        status = loaded.glyd_gpu_unpack(at, at, nbytes, meta, zero, ctypes.c_int64(64), None)
        if status <= 0:
            problems.append(f"{library.name}: a launch without a driver gives {status}, not an error of CUDA")
    return problems


def check_state(path: Path) -> list[str]:
    """Return the mutable global objects of a relocatable object."""
    return [
        f"{path.name}: mutable global state {name!r} (type {kind})" for kind, name in symbols(path) if kind in MUTABLE
    ]


def main() -> int:
    """Run the check that the first argument names on the files after it."""
    checks = {"wheel": check_wheel, "kernels": check_kernels, "state": check_state}
    if len(sys.argv) < 3 or sys.argv[1] not in checks:
        print(__doc__, file=sys.stderr)
        return 2
    check = checks[sys.argv[1]]
    files = [Path(name) for name in sys.argv[2:]]
    problems = [problem for path in files for problem in check(path)]
    for problem in problems:
        print(problem)
    print(f"check_exports: {len(files)} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

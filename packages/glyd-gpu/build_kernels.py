# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Compile ``kernels/*.cu`` into one library with a C interface; needs the standard library only.

``python build_kernels.py OUT [--arch 90a …] [--report FILE] [--cache DIR]``.
Every file is compiled once for each architecture that it is for: those named
``*_sm90.cu`` for 90a alone, others for all, and PTX of the oldest. Objects are
kept in a cache under a hash of the preprocessed truth: source, headers,
compiler and options.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent
KERNELS = ROOT / "src" / "glyd_gpu" / "kernels"
LIBRARY = "libglyd_gpu.so"
ARCHITECTURES = ("80", "86", "89", "90a", "100", "120")
PTX = "80"  # for what comes after the newest: the driver compiles it
OPTIONS = ("-O3", "-std=c++17", "-Xptxas=-v", "-Xcompiler=-fPIC,-fvisibility=hidden", "--extra-device-vectorization")


class BuildError(RuntimeError):
    """Kernels were asked for and cannot be built."""


@dataclass
class Kernel:
    """What ptxas says of one kernel on one architecture."""

    file: str
    architecture: str
    name: str
    registers: int = 0
    stack_nbytes: int = 0
    spill_nbytes: int = 0
    shared_nbytes: int = 0


@dataclass
class Compiler:
    """An nvcc and how it was found."""

    path: Path
    source: str
    version: str = ""
    flags: list[str] = field(default_factory=list)


def native_include() -> Path:
    """Return the folder of the format's headers: beside us in an sdist, two levels up in a checkout.

    Raises
    ------
    BuildError
        When neither exists.
    """
    candidates = (ROOT / "native" / "include", ROOT.parents[1] / "native" / "include")
    for path in candidates:
        if (path / "glyd" / "format_weights.h").is_file():
            return path
    raise BuildError("no glyd/format_weights.h: looked in " + " and ".join(map(str, candidates)))


def find_nvcc(*, wheel_only: bool = False) -> Compiler:
    """Find nvcc: GLYD_NVCC, CUDA_HOME or CUDA_PATH, PATH, then the wheels of PyPI.

    Raises
    ------
    BuildError
        When there is none, with what to do.
    """
    found: tuple[Path, str] | None = None
    if not wheel_only:
        if named := os.environ.get("GLYD_NVCC"):
            found = Path(named), "GLYD_NVCC"
            if not found[0].is_file():
                raise BuildError(f"GLYD_NVCC is {named!r}, where no file is")
        for variable in ("CUDA_HOME", "CUDA_PATH"):
            home = os.environ.get(variable)
            if found is None and home and (nvcc := Path(home, "bin", "nvcc")).is_file():
                found = nvcc, variable
        if found is None and (on_path := shutil.which("nvcc")):
            found = Path(on_path), "PATH"
    if found is None and (spec := importlib.util.find_spec("nvidia")) is not None:
        for base in spec.submodule_search_locations or []:
            for nvcc in sorted(Path(base).glob("cu*/bin/nvcc"), reverse=True):
                found = found or (nvcc, "the wheel nvidia-cuda-nvcc")
    if found is None:
        raise BuildError(
            "no nvcc: set GLYD_NVCC or CUDA_HOME, put nvcc on PATH, or pip install nvidia-cuda-nvcc "
            "nvidia-cuda-runtime nvidia-cuda-cccl; GLYD_GPU_KERNELS=off builds without kernels"
        )
    text = subprocess.run([str(found[0]), "--version"], check=True, capture_output=True, text=True).stdout
    version = re.search(r"V(\d+\.\d+\.\d+)", text)
    compiler = Compiler(*found, version=version[1] if version else "unknown")
    if compiler.source.startswith("the wheel"):
        # the wheels have no lib64, and their runtime lies in lib
        compiler.flags.append(f"-L{found[0].parents[1] / 'lib'}")
    return compiler


def architectures_of(source: Path, wanted: tuple[str, ...]) -> list[str]:
    """Return the architectures that a file is compiled for."""
    if match := re.search(r"_sm(\d+)\.cu$", source.name):
        return [a for a in wanted if a.rstrip("a") == match[1]]
    return list(wanted)


def generate_code(architectures: list[str], *, ptx: bool) -> list[str]:
    """Return nvcc's options for architectures, and PTX of the oldest."""
    codes = [f"-gencode=arch=compute_{a},code=sm_{a}" for a in architectures]
    return codes + ([f"-gencode=arch=compute_{PTX},code=compute_{PTX}"] if ptx else [])


def parse_report(text: str, file: str) -> list[Kernel]:
    """Read what ``ptxas -v`` prints."""
    kernels: list[Kernel] = []
    for line in text.splitlines():
        if match := re.search(r"Compiling entry function '(\S+)' for 'sm_(\w+)'", line):
            kernels.append(Kernel(file, match[2], match[1]))
        elif not kernels:
            continue
        elif match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            kernels[-1].stack_nbytes = int(match[1])
            kernels[-1].spill_nbytes = int(match[2]) + int(match[3])
        elif match := re.search(r"Used (\d+) registers", line):
            kernels[-1].registers = int(match[1])
            shared = re.search(r"(\d+) bytes smem", line)
            kernels[-1].shared_nbytes = int(shared[1]) if shared else 0
    return kernels


def compile_file(
    compiler: Compiler, source: Path, architectures: list[str], cache: Path, *, ptx: bool, defines: list[str]
) -> tuple[Path, list[Kernel]]:
    """Compile one file for some architectures, or take it from the cache; return object and report.

    Raises
    ------
    BuildError
        When nvcc fails; what it printed is in the message.
    """
    include = native_include()
    options = [*OPTIONS, *generate_code(architectures, ptx=ptx), *defines]
    key = hashlib.sha256(f"{compiler.version} {options} {source.name}".encode())
    headers = [*KERNELS.glob("*.h"), *KERNELS.glob("*.cuh"), *(include / "glyd").glob("format_*.h")]
    for path in sorted([source, *headers, include / "glyd" / "status.h"]):
        key.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    out = cache / f"{source.stem}-{key.hexdigest()[:20]}.o"
    report = out.with_suffix(".json")
    if not (out.is_file() and report.is_file()):
        with tempfile.TemporaryDirectory(dir=cache) as work:
            made = Path(work, "out.o")
            command = [str(compiler.path), *options, f"-I{include}", f"-I{KERNELS}", "-c", str(source), "-o", str(made)]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            if done.returncode:
                raise BuildError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
            kernels = parse_report(done.stdout + done.stderr, source.name)
            report.write_text(json.dumps([vars(k) for k in kernels]), encoding="utf-8")
            made.replace(out)
    return out, [Kernel(**k) for k in json.loads(report.read_text(encoding="utf-8"))]


def build(
    out: Path,
    architectures: tuple[str, ...] = ARCHITECTURES,
    *,
    wheel_only: bool = False,
    cache: Path | None = None,
    jobs: int = 0,
) -> list[Kernel]:
    """Build the library; return what ptxas says of every kernel.

    Parameters
    ----------
    out
        The library to write.
    architectures
        For instance ``("90a",)``.
    wheel_only
        Take nvcc from the wheels of PyPI and from nowhere else.
    cache
        Folder of compiled objects; ``GLYD_GPU_CACHE`` or ``~/.cache/glyd-gpu`` when None.
    jobs
        Compilers at a time; 0: one a CPU.

    Raises
    ------
    BuildError
        When there is no compiler, or it fails.
    """
    compiler = find_nvcc(wheel_only=wheel_only)
    cache = cache or Path(os.environ.get("GLYD_GPU_CACHE") or Path.home() / ".cache" / "glyd-gpu")
    cache.mkdir(parents=True, exist_ok=True)
    sources = sorted(KERNELS.glob("*.cu"))
    if not sources:
        raise BuildError(f"no *.cu in {KERNELS}")
    print(f"nvcc {compiler.version}: {compiler.path} (from {compiler.source})", file=sys.stderr)
    tasks: list[tuple[Path, list[str], bool, list[str]]] = []
    for source in sources:
        own = architectures_of(source, architectures)
        if not own:
            print(f"left out {source.name}: none of {', '.join(architectures)}", file=sys.stderr)
            continue
        ptx = len(own) == len(architectures) and not source.stem.endswith("_sm90")
        defines: list[str] = []
        if source.stem == "abi":
            names = ",".join([*(f"sm_{a}" for a in architectures), f"compute_{PTX}"])
            defines.append(f'-DGLYD_GPU_ARCHITECTURES="{names}"')
        if any(a == "90a" for a in architectures):
            defines.append("-DGLYD_GPU_HAS_SM90=1")
        tasks.append((source, own, ptx, defines))
    with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        futures = [
            pool.submit(compile_file, compiler, source, own, cache, ptx=ptx, defines=defines)
            for source, own, ptx, defines in tasks
        ]
        results = [future.result() for future in futures]
    command = [str(compiler.path), "-shared", "-cudart=static", "-Xcompiler=-fPIC", "-Xlinker=--exclude-libs,ALL"]
    command += [*compiler.flags, *(str(made) for made, _ in results), "-o", str(out)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return [kernel for _, kernels in results for kernel in kernels]


def write_report(kernels: list[Kernel], out: Path) -> None:
    """Write registers, stack, spills and shared memory of every kernel as a table."""
    names = {k.name for k in kernels}
    filt = shutil.which("c++filt")
    plain = dict.fromkeys(names, "")
    if filt:
        listed = sorted(names)
        text = subprocess.run([filt, "-p"], input="\n".join(listed), check=True, capture_output=True, text=True).stdout
        plain = dict(zip(listed, text.splitlines(), strict=True))
    lines = ["| file | kernel | architecture | registers | stack | spills | shared |", "| --- " * 7 + "|"]
    lines += [
        f"| {k.file} | {plain[k.name] or k.name} | {k.architecture} | {k.registers} | {k.stack_nbytes} "
        f"| {k.spill_nbytes} | {k.shared_nbytes} |"
        for k in sorted(kernels, key=lambda k: (k.file, plain[k.name], k.name, k.architecture))
    ]
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> int:
    """Build from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--arch", nargs="+", default=ARCHITECTURES)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--jobs", type=int, default=0)
    options = parser.parse_args()
    try:
        kernels = build(options.out, tuple(options.arch), cache=options.cache, jobs=options.jobs)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    if options.report:
        write_report(kernels, options.report)
    spilled = [k for k in kernels if k.spill_nbytes]
    print(f"{options.out}: {len(kernels)} kernels, {len(spilled)} with spills, {options.out.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: Apache-2.0
"""The main job of glyd on real files: compress, verify, restore, read in place.

``python demo.py REPOSITORY FOLDER`` works on a tar of the repository's sources
and on data that make_data.py makes, with the installed ``glyd`` command. Every
step is checked; the first one that fails ends the demo with an exit code.
"""

from __future__ import annotations

import importlib.util
import json
import random
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from types import ModuleType

import glyd

COMMAND = Path(sys.executable).with_name("glyd")
SKIPPED = {".git", ".nox", "build", "dist", "__pycache__"}


def load(path: Path) -> ModuleType:
    """Import a script that lies beside this one."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        sys.exit(f"demo: cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(*arguments: str | Path, expect: int = 0) -> str:
    """Run glyd and return its standard output; any other exit code ends the demo."""
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != expect:
        sys.exit(f"demo: glyd {arguments} ended with {done.returncode}, expected {expect}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def pack_sources(repository: Path, out: Path) -> Path:
    """Write a tar of the repository's own text files."""

    def keep(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        parts = Path(member.name).parts
        dropped = any(part in SKIPPED or part.endswith((".so", ".egg-info")) for part in parts)
        return None if dropped else member

    with tarfile.open(out, "w") as archive:
        for name in ("native", "packages", "docs", "tools", "examples"):
            archive.add(repository / name, arcname=name, filter=keep)
    return out


def zstd_size(data: bytes) -> int | None:
    """Return what zstd level 3 makes of the data, or None without zstandard."""
    try:
        import zstandard  # noqa: PLC0415  optional
    except ImportError:
        return None
    return len(zstandard.ZstdCompressor(level=3).compress(data))


def step(number: int, text: str) -> None:
    """Print a headline."""
    print(f"\n{number}. {text}", flush=True)


def compress_all(files: list[Path]) -> None:
    """Compress every file at two levels and print the sizes."""
    print(f"   {'file':<14} {'original':>12} {'glyd':>12} {'glyd --max':>12} {'zstd -3':>12}")
    for path in files:
        fast, small = path.with_name(path.name + ".default.glyd"), path.with_name(path.name + ".glyd")
        run("-q", path, "-o", fast)
        run("-q", "--max", path, "-o", small)
        peer = zstd_size(path.read_bytes())
        sizes = [path.stat().st_size, fast.stat().st_size, small.stat().st_size]
        cells = [f"{size:>12,}" for size in sizes] + [f"{peer:>12,}" if peer is not None else f"{'–':>12}"]
        print(f"   {path.name:<14} " + " ".join(cells), flush=True)


def restore_all(files: list[Path], folder: Path) -> None:
    """Restore every file and compare it byte for byte."""
    for path in files:
        back = folder / path.name
        run("-q", "-d", path.with_name(path.name + ".glyd"), "-o", back)
        if back.read_bytes() != path.read_bytes():
            sys.exit(f"demo: {back} differs from {path}")
    print(f"   {len(files)} files restored, all equal to their originals")


def read_in_place(path: Path) -> None:
    """Read a few ranges out of the middle of a compressed file."""
    packed = path.with_name(path.name + ".glyd")
    (facts,) = json.loads(run("--list", "--json", packed))
    print(f"   {packed.name}: {facts['content_nbytes']:,} bytes in {facts['n_segments']} segments")
    original = path.read_bytes()
    rng = random.Random(1)
    for _ in range(5):
        offset = rng.randrange(len(original) - 4096)
        start = time.perf_counter()
        with glyd.open(packed) as file:
            file.seek(offset)
            chunk = file.read(4096)
        spent = time.perf_counter() - start
        if chunk != original[offset : offset + 4096]:
            sys.exit(f"demo: wrong bytes at offset {offset} of {path}")
        print(f"   open and read 4,096 bytes at offset {offset:>10,}: {spent * 1e3:5.1f} ms")


def damage(path: Path, folder: Path) -> None:
    """Flip one bit of a compressed file; glyd has to refuse it."""
    broken = folder / "broken.glyd"
    data = bytearray(path.with_name(path.name + ".glyd").read_bytes())
    data[len(data) // 2] ^= 1
    broken.write_bytes(data)
    said = run("--test", broken, expect=3)
    print("   " + said.strip().replace(f"{folder}/", ""))


def main() -> None:
    """Run the demo."""
    repository, folder = (Path(name).resolve() for name in sys.argv[1:3])
    start = time.perf_counter()
    shutil.rmtree(folder / "demo", ignore_errors=True)
    work, restored = folder / "demo", folder / "demo" / "restored"
    restored.mkdir(parents=True)

    step(1, "Files: this repository's sources, and data of everyday kinds")
    make_data = load(repository / "examples" / "make_data.py")
    files = [pack_sources(repository, work / "sources.tar"), *make_data.make(work, scale=6)]
    print("   " + " ".join(path.name for path in files))

    step(2, f"Compress, with {run('--version').strip()}; sizes in bytes")
    compress_all(files)

    step(3, "Verify: glyd --test reads everything and writes nothing")
    run("-q", "--test", *(path.with_name(path.name + ".glyd") for path in files))
    print(f"   {len(files)} files are sound")

    step(4, "Restore")
    restore_all(files, restored)

    step(5, "Read in place: a range decodes one or two segments, not the file")
    read_in_place(files[1])

    step(6, "One flipped bit is found, not passed on")
    damage(files[1], work)

    print(
        f"\ndemo: passed, {len(files)} files compressed, verified and restored in {time.perf_counter() - start:.1f} s"
    )


if __name__ == "__main__":
    main()

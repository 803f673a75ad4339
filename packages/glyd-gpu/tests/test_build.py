# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The build of the kernels: which nvcc, what it is asked, and that failures are failures."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1]

PTXAS = """\
ptxas info    : Compiling entry function '_Z3fooi' for 'sm_90a'
ptxas info    : Function properties for _Z3fooi
    8 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 8 bytes cumulative stack size, 4108 bytes smem
ptxas info    : Compiling entry function '_Z3bari' for 'sm_80'
ptxas info    : Function properties for _Z3bari
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers
"""


@pytest.fixture
def build():
    spec = importlib.util.spec_from_file_location("build_kernels_under_test", PACKAGE / "build_kernels.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(autouse=True)
def _no_nvcc(monkeypatch, tmp_path):
    for name in ("GLYD_NVCC", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"/usr/bin{os.pathsep}/bin" if not Path("/usr/bin/nvcc").exists() else str(tmp_path))


def fake_nvcc(folder, version="13.0.88", fails=False):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "nvcc"
    body = (
        "echo no such architecture >&2; exit 3"
        if fails
        else 'while [ $# -gt 1 ]; do [ "$1" = -o ] && : > "$2"; shift; done'
    )
    path.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then echo "release 13.0, V{version}"; exit 0; fi\n{body}\n')
    path.chmod(0o755)
    return path


def test_where_nvcc_is_looked_for(build, monkeypatch, tmp_path):
    monkeypatch.setattr(build.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(build.BuildError, match=r"no nvcc: set GLYD_NVCC.*GLYD_GPU_KERNELS=off"):
        build.find_nvcc()
    fake_nvcc(tmp_path / "path")
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}{os.pathsep}{os.environ['PATH']}")
    assert build.find_nvcc().source == "PATH"
    fake_nvcc(tmp_path / "home" / "bin", version="12.9.41")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    found = build.find_nvcc()
    assert (found.source, found.version) == ("CUDA_HOME", "12.9.41")
    named = fake_nvcc(tmp_path / "named")
    monkeypatch.setenv("GLYD_NVCC", str(named))
    assert build.find_nvcc().path == named
    with pytest.raises(build.BuildError, match="no nvcc"):
        build.find_nvcc(wheel_only=True)
    monkeypatch.setenv("GLYD_NVCC", str(tmp_path / "nowhere"))
    with pytest.raises(build.BuildError, match="where no file is"):
        build.find_nvcc()


def test_a_compiler_that_fails_fails_the_build(build, monkeypatch, tmp_path):
    monkeypatch.setenv("GLYD_NVCC", str(fake_nvcc(tmp_path, fails=True)))
    with pytest.raises(build.BuildError, match="no such architecture"):
        build.build(tmp_path / "out.so", cache=tmp_path / "cache")


def test_objects_are_compiled_once(build, monkeypatch, tmp_path):
    monkeypatch.setenv("GLYD_NVCC", str(fake_nvcc(tmp_path)))
    build.build(tmp_path / "out.so", ("80", "90a"), cache=tmp_path / "cache")
    made = sorted((tmp_path / "cache").glob("*.o"))
    assert len(made) == len(list(build.KERNELS.glob("*.cu")))
    times = [path.stat().st_mtime_ns for path in made]
    build.build(tmp_path / "out.so", ("80", "90a"), cache=tmp_path / "cache")
    assert [path.stat().st_mtime_ns for path in made] == times
    build.build(tmp_path / "out.so", ("90a",), cache=tmp_path / "cache")
    assert len(list((tmp_path / "cache").glob("*.o"))) > len(made)


def test_which_files_for_which_architectures(build):
    wanted = build.ARCHITECTURES
    assert build.architectures_of(Path("unpack.cu"), wanted) == list(wanted)
    assert build.architectures_of(Path("mid_sm90.cu"), wanted) == ["90a"]
    assert build.architectures_of(Path("mid_sm90.cu"), ("80",)) == []
    codes = build.generate_code(["80", "90a"], ptx=True)
    assert codes == [
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_90a,code=sm_90a",
        "-gencode=arch=compute_80,code=compute_80",
    ]


def test_report(build, tmp_path):
    kernels = build.parse_report(PTXAS, "a.cu")
    assert [vars(k) for k in kernels] == [
        {"file": "a.cu", "architecture": "90a", "name": "_Z3fooi", "registers": 40, "stack_nbytes": 8, "spill_nbytes": 12, "shared_nbytes": 4108},
        {"file": "a.cu", "architecture": "80", "name": "_Z3bari", "registers": 255, "stack_nbytes": 0, "spill_nbytes": 0, "shared_nbytes": 0},
    ]  # fmt: skip
    build.write_report(kernels, tmp_path / "report.md")
    assert "| 90a | 40 | 8 | 12 | 4108 |" in (tmp_path / "report.md").read_text()


def test_values_of_the_variable(monkeypatch):
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build_under_test", PACKAGE / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setenv("GLYD_GPU_KERNELS", "yes")
    with pytest.raises(RuntimeError, match="'yes'"):
        module.asked()
    for value in module.CHOICES:
        monkeypatch.setenv("GLYD_GPU_KERNELS", value)
        assert module.asked() == value

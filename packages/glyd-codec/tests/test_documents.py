# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""What people and type checkers read agrees with what is there."""

from __future__ import annotations

import ast
import inspect
import re
from importlib.resources import files
from pathlib import Path

import pytest

import glyd
from glyd_codec._native import ffi, lib  # noqa: TID251  its stub is what is tested

README = Path(__file__).parent.parent / "README.md"


def test_examples_of_the_readme_run(tmp_path, monkeypatch, text, tools):
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    monkeypatch.chdir(tmp_path)
    with glyd.open("table.glyd", "wb") as f:
        f.write(text)
    (tmp_path / "Qwen3-8B").mkdir()
    weights = tools.make_safetensors({"w": ("BF16", (64, 512), tools.make_bf16(64 * 512))})
    (tmp_path / "Qwen3-8B" / "model.safetensors").write_bytes(weights)
    (tmp_path / "dump-monday.sql").write_bytes(text[:-3000])
    scope = {"data": glyd.compress(text[:5000]), "path": "table.glyd", "weights": tools.make_bf16(256 * 1024)}
    scope |= {"old": text[:-3000], "new": text[1000:], "tuesday": text}
    numpy = pytest.importorskip("numpy")
    scope["array"] = numpy.arange(4000, dtype=numpy.float32).reshape(1000, 4)
    for block in blocks:
        exec(compile(block, "README.md", "exec"), scope)
    assert scope["tail"] == text[-65536:]
    assert scope["n"] == len(scope["data"])
    assert glyd.decompress(scope["part"] + scope["rest"]) == scope["data"]
    assert scope["rows"] == scope["weights"][2 * 64 * 1024 : 2 * 192 * 1024]
    numpy.testing.assert_array_equal(scope["some"], scope["array"][100:200])
    numpy.testing.assert_array_equal(scope["everything"]["head"], scope["head"])
    assert glyd.open("log.glyd").read() == b"a line\n"
    assert len(scope["delta"]) < len(glyd.compress(text)) // 2
    assert glyd.open("dump-tuesday.sql.glyd", base="dump-monday.sql").read() == text
    assert (tmp_path / "Qwen3-8B-again" / "model.safetensors").read_bytes() == weights


def test_the_readme_names_everything():
    text = README.read_text(encoding="utf-8")
    for name in glyd.__all__:
        if name not in {"LEVELS", "__version__", "FrameInfo", "SegmentInfo"}:
            assert re.search(rf"\b{name}\b", text), name
    for level in glyd.LEVELS:
        assert f'"{level}"' in text


def test_the_stub_of_the_native_module():
    tree = ast.parse((files("glyd_codec") / "_native.pyi").read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for name, real in (("_Lib", lib), ("_FFI", ffi)):
        for node in classes[name].body:
            member = node.name if isinstance(node, ast.FunctionDef) else node.target.id
            assert hasattr(real, member), member
    in_stub = {n.name if isinstance(n, ast.FunctionDef) else n.target.id for n in classes["_Lib"].body}
    assert in_stub == {name for name in dir(lib) if not name.startswith("_")}


def public_callables():
    for name in glyd.__all__:
        thing = getattr(glyd, name)
        if inspect.isfunction(thing):
            yield name, thing
        elif inspect.isclass(thing) and not issubclass(thing, Exception):
            yield name, thing
            for member, value in vars(thing).items():
                if inspect.isfunction(value) and not member.startswith("_"):
                    yield f"{name}.{member}", value


@pytest.mark.parametrize(("name", "thing"), list(public_callables()))
def test_docstrings(name, thing):
    doc = inspect.getdoc(thing)
    assert doc, name
    assert doc.split("\n")[0].endswith("."), name
    if inspect.isclass(thing):
        return
    parameters = [p for p in inspect.signature(thing).parameters if p != "self"]
    if len(parameters) > 2:
        section = doc.partition("Parameters\n")[2]
        assert all(re.search(rf"^(.*, )?{p}(,|$)", section, re.MULTILINE) for p in parameters), name

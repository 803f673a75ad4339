# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Keys that clients may send: of the environment and of a file."""

import pytest

from glyd_cli.errors import FileError
from glyd_cli.serve_checks import read_keys


def test_keys_in_a_file(tmp_path, monkeypatch):
    monkeypatch.delenv("GLYD_API_KEY", raising=False)
    path = tmp_path / "keys"
    with pytest.raises(FileError, match="no such file"):
        read_keys(str(path))
    path.write_text("\n# nobody\n  \n", encoding="utf-8")
    with pytest.raises(FileError, match="has no key: write one a line"):
        read_keys(str(path))
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(FileError, match="no text of keys"):
        read_keys(str(path))
    path.write_text("# of the team\n one \ntwo\n", encoding="utf-8")
    assert read_keys(str(path)) == ["one", "two"]
    monkeypatch.setenv("GLYD_API_KEY", "three")
    assert read_keys(str(path)) == ["three", "one", "two"]
    assert read_keys(None) == ["three"]

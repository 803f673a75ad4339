# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What can be checked of ``run`` and ``serve`` before anything heavy is imported: packages, keys, directory, address."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import glyd
from glyd_cli.errors import FileError, file_error, os_reason

if TYPE_CHECKING:
    from glyd_cli.serve import ServeOptions

_NEEDED = ("torch", "transformers", "fastapi", "httpx", "uvicorn", "llguidance", "prometheus_client", "glyd_gpu")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_TOKENIZERS = {"tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json"}
_CONFIGURATIONS = {"generation_config.json", "tokenizer.json", "tokenizer_config.json"}
DEFAULT_PORT = 8000


def read_keys(path: str | None) -> list[str]:
    """Return the keys that clients may send: of the environment, and of a file with one a line.

    Raises
    ------
    FileError
        The file cannot be read, or has no key.
    """
    keys = [key for key in [os.environ.get("GLYD_API_KEY", "").strip()] if key]
    if path is None:
        return keys
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise FileError(path, "no text of keys, one a line") from error
    except OSError as error:
        raise file_error(error, path) from error
    found = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not found:
        raise FileError(path, "has no key: write one a line")
    return keys + found


def missing_packages() -> list[str]:
    """Return what of the extra ``serve`` is not installed."""
    return [name for name in _NEEDED if importlib.util.find_spec(name) is None]


def check_model(options: ServeOptions) -> None:
    """See whether the model can be there, before anything heavy is loaded.

    Raises
    ------
    FileError, UsageError
        With the reason and what to do.
    """
    path = Path(options.model)
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise FileError(options.model, "no config.json there: not a model directory")
        named = {p.name for p in path.iterdir()}
        if not any(n.endswith(".safetensors") for n in named):
            other = next((n for n in sorted(named) if n.endswith((".gguf", ".bin", ".pt", ".pth"))), None)
            text = f"no .safetensors files there{f', only {other}' if other else ''}: save the model as safetensors"
            raise FileError(options.model, text)
        if not named & _TOKENIZERS:
            raise FileError(options.model, "no tokenizer.json there: copy the tokenizer files of the model beside it")
        for name in sorted(named & _CONFIGURATIONS):
            _check_json(path / name)
        return
    if path.exists():
        hint = "GGUF files hold quantized weights" if path.suffix == ".gguf" else "a model is a directory"
        raise FileError(options.model, f"{hint}: give the directory of a bf16 checkpoint, or a packed one")
    looks_local = options.model.startswith((".", "/", "~")) or options.model.count("/") > 1
    if looks_local or not _HUB_ID.fullmatch(options.model):
        raise FileError(options.model, "no such directory")


def _check_json(path: Path) -> None:
    """See whether a configuration can be read: transformers goes on without some that cannot."""
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise glyd.CorruptDataError(f"{path.name}: no valid JSON: {error}") from error
    except OSError as error:
        raise file_error(error, str(path)) from error
    if not isinstance(found, dict):
        raise glyd.CorruptDataError(f"{path.name}: a JSON object is expected, not {type(found).__name__}")


def listen(options: ServeOptions) -> socket.socket:
    """Return a socket bound to where the API will be, so that a taken port is known before a model loads.

    Raises
    ------
    FileError
        The address cannot be had.
    """
    wanted = DEFAULT_PORT if options.port is None else options.port
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    server = socket.socket(family, socket.SOCK_STREAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        try:
            server.bind((options.host, wanted))
        except OSError as error:
            # run picks another port when nobody named one: the chat does not need a certain one
            if error.errno != errno.EADDRINUSE or options.port is not None or options.verb == "serve":
                raise
            server.bind((options.host, 0))
        server.listen(1024)
    except OSError as error:
        server.close()
        place = f"{options.host}:{wanted}"
        if error.errno == errno.EADDRINUSE:
            raise FileError(place, "another program listens there: name another port with --port") from error
        if isinstance(error, socket.gaierror):
            raise FileError(place, "cannot listen there: no address and no host name that is known") from error
        reason = os_reason(error) if isinstance(error.errno, int) else str(error)
        raise FileError(place, f"cannot listen there: {reason}") from error
    return server

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""From names, which are any text, to paths below a folder, which are safe."""

from __future__ import annotations

import hashlib
import os

_NAME_NBYTES_MAX = 200  # leaves room below the 255 of file systems for a temporary suffix
_PATH_NBYTES_MAX = 1800  # and below the 4,096 of paths (macOS: 1,024) for the folder


def safe_path(name: str) -> str:
    """Return a relative path for a name.

    Parts that are empty, ``.`` or ``..`` and characters that are not printable become ``%``
    and hexadecimal digits; what is too long is cut and gets a hash. Ordinary names stay
    what they are.
    """
    raw_parts = name.encode("utf-8", "surrogateescape").split(b"/")
    parts = [_safe_part(part) for part in raw_parts]
    path = os.path.join(*parts)
    if len(os.fsencode(path)) > _PATH_NBYTES_MAX:
        mark = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return f"{_cut(parts[-1], 100)}~{mark}"
    return path


def _safe_part(raw: bytes) -> str:
    if raw == b"":
        return "%"
    if raw in {b".", b".."}:
        return "%2E" * len(raw)
    text = "".join(_safe_character(c) for c in raw.decode("utf-8", "surrogateescape"))
    if len(os.fsencode(text)) > _NAME_NBYTES_MAX:
        return f"{_cut(text, 120)}~{hashlib.sha256(raw).hexdigest()[:32]}"
    return text


def _safe_character(c: str) -> str:
    if c.isprintable() and c not in {"%", "\\"}:
        return c
    return "".join(f"%{byte:02X}" for byte in c.encode("utf-8", "surrogateescape"))


def _cut(text: str, nbytes: int) -> str:
    while len(os.fsencode(text)) > nbytes:
        text = text[:-1]
    return text


def restore_paths(names: list[tuple[int, str]]) -> dict[int, str]:
    """Return a relative path for each object; no two meet, not even one as the folder of the other.

    Parameters
    ----------
    names
        Ids and names.
    """
    wanted = {number: safe_path(name) for number, name in names}
    folders: set[str] = set()
    for path in wanted.values():
        while path := os.path.dirname(path):
            folders.add(path.casefold())
    taken: set[str] = set()
    out: dict[int, str] = {}
    for number, path in wanted.items():
        # casefold: on file systems that take "A" for "a" neither may overwrite the other
        free = path if path.casefold() not in folders and path.casefold() not in taken else f"{path}%~{number}"
        taken.add(free.casefold())
        out[number] = free
    return out

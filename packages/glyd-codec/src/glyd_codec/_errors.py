# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""The exceptions of the codec, and how a status of the native core becomes one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glyd_codec._native import ffi, lib

if TYPE_CHECKING:
    from typing import Any


class GlydError(Exception):
    """Base of every exception of glyd.

    Parameters
    ----------
    message
        What happened, with the values that matter.
    offset
        Byte of the input at which the item starts that could not be used.
    expected, found
        What the rule asks for and what was there: sizes, limits or checks, as the message says.
    """

    offset: int | None
    expected: int | None
    found: int | None

    def __init__(
        self,
        message: str = "",
        *,
        offset: int | None = None,
        expected: int | None = None,
        found: int | None = None,
    ) -> None:
        super().__init__(message)
        self.offset = offset
        self.expected = expected
        self.found = found


class FormatError(GlydError, ValueError):
    """The input is not what a glyd frame looks like."""


class CorruptDataError(FormatError):
    """The input breaks a rule of the format, or other bytes follow its last frame."""


class ChecksumError(FormatError):
    """Content was decoded, and its checksum differs from the stored one."""


class TruncatedError(FormatError, EOFError):
    """The input ends before its last frame does."""


class UnsupportedVersionError(FormatError):
    """The frame is of a newer format, or needs a feature that this version does not know."""


class ParameterError(GlydError, ValueError):
    """An argument is outside its documented range."""


class BufferTooSmallError(GlydError, ValueError):
    """The output does not fit the buffer given; ``expected`` says how many bytes it needs."""


class LimitError(GlydError, ValueError):
    """Decoding would exceed a limit of the caller.

    Attributes
    ----------
    limit
        Name of the limit: a field of `Limits`, or ``max_size``.
    """

    limit: str

    def __init__(
        self,
        message: str = "",
        *,
        limit: str = "",
        offset: int | None = None,
        expected: int | None = None,
        found: int | None = None,
    ) -> None:
        super().__init__(message, offset=offset, expected=expected, found=found)
        self.limit = limit


class MissingBaseError(GlydError, LookupError):
    """The frame needs a base or a dictionary, and none was given."""


class WrongBaseError(GlydError, ValueError):
    """The base or dictionary given is not the one that the frame names."""


_CLASSES: dict[int, type[GlydError]] = {
    lib.GLYD_E_MAGIC: FormatError,
    lib.GLYD_E_VERSION: UnsupportedVersionError,
    lib.GLYD_E_FEATURE: UnsupportedVersionError,
    lib.GLYD_E_HEADER: CorruptDataError,
    lib.GLYD_E_CORRUPT: CorruptDataError,
    lib.GLYD_E_CHECKSUM: ChecksumError,
    lib.GLYD_E_TRUNCATED: TruncatedError,
    lib.GLYD_E_TRAILING: CorruptDataError,
    lib.GLYD_E_BASE_MISSING: MissingBaseError,
    lib.GLYD_E_BASE_WRONG: WrongBaseError,
    lib.GLYD_E_DICT_MISSING: MissingBaseError,
    lib.GLYD_E_DICT_WRONG: WrongBaseError,
    lib.GLYD_E_PARAMETER: ParameterError,
    lib.GLYD_E_BUFFER: BufferTooSmallError,
}
_LIMITS: dict[int, str] = {
    lib.GLYD_E_LIMIT_OUTPUT: "max_output",
    lib.GLYD_E_LIMIT_MEMORY: "max_memory",
    lib.GLYD_E_LIMIT_SEGMENTS: "max_segments",
}
_BASES = {lib.GLYD_E_BASE_MISSING, lib.GLYD_E_BASE_WRONG}
_HEX = {
    lib.GLYD_E_CHECKSUM,
    lib.GLYD_E_MAGIC,
    lib.GLYD_E_TRAILING,
    lib.GLYD_E_HEADER,
    lib.GLYD_E_DICT_MISSING,
    lib.GLYD_E_DICT_WRONG,
}


def status_text(status: int) -> str:
    """Return the phrase of the native core for a status."""
    return ffi.string(lib.glyd_status_text(status)).decode()


def status_error(status: int, error: Any = None, *, shift: int = 0) -> Exception:
    """Return the exception for a status of the native core.

    Parameters
    ----------
    status
        A ``glyd_status`` other than ``GLYD_OK``.
    error
        The ``glyd_error *`` that the call filled, or None where there is none.
    shift
        Added to the offset: where the input of the call lies in the input of the caller.
    """
    text = status_text(status)
    if status == lib.GLYD_E_MEMORY:
        return MemoryError(text)
    if error is None:
        return _CLASSES.get(status, GlydError)(text)
    offset, expected, found = int(error.offset) + shift, int(error.expected), int(error.found)
    if status in _LIMITS:
        name = _LIMITS[status]
        return limit_error(name, expected, found, offset=offset)
    if status == lib.GLYD_E_MAGIC and found & 0xFFFF == lib.GLYD_OBJECT_MAGIC:
        text = "no frame but an object, which Dictionary.decompress reads with the dictionary it was stored with,"
    if status in _BASES:
        found_text = f"the one given has {found:016x}" if found else "none was given"
        text = f"{text} at byte {offset} (a base whose XXH3-128 starts with {expected:016x}; {found_text})"
        return _CLASSES[status](text, offset=offset, expected=expected, found=found)
    values = ""
    if expected != found:
        form = "#x" if status in _HEX else "d"
        values = f" (expected {expected:{form}}, found {found:{form}})"
    kind = _CLASSES.get(status, GlydError)
    return kind(f"{text} at byte {offset}{values}", offset=offset, expected=expected, found=found)


def limit_error(name: str, allowed: int, wanted: int, *, offset: int | None = None) -> LimitError:
    """Return the exception for a limit that the input asks to exceed."""
    where = "" if offset is None else f" at byte {offset}"
    return LimitError(
        f"limit {name} exceeded{where} (allowed {allowed}, needed {wanted})",
        limit=name,
        offset=offset,
        expected=allowed,
        found=wanted,
    )


def truncated(offset: int, what: str) -> TruncatedError:
    """Return the exception for an input that ends at ``offset``, inside of ``what``."""
    return TruncatedError(f"input ends at byte {offset}, within {what}", offset=offset, found=offset)

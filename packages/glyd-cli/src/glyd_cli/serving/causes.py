# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What errors of the libraries that load models mean for a user, and the tokenizer, which meets most of them first."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import transformers

from glyd_cli.errors import FileError, UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from glyd_cli.serve import ServeOptions

UNREACHABLE = "the hub cannot be reached and the model is not in the cache: check the network, or name a directory"

# words of other libraries' errors → cause and cure
_CAUSES = (
    (
        ("gated repo", "awaiting a review", "401 Client", "403 Client"),
        "access to it must be asked for on the hub: ask on its page, then log in with hf auth login",
    ),
    (
        ("trust_remote_code",),
        "it comes with code of its own: --trust-remote-code runs it, if you trust its authors",
    ),
    (
        ("is not a local folder and is not a valid model", "404 Client", "RepositoryNotFound"),
        "no such model on the hub: check the name, and log in with hf auth login if it is private",
    ),
    (
        ("couldn't connect", "offline mode", "Max retries", "Name or service not known", "LocalEntryNotFound"),
        UNREACHABLE,
    ),
    (
        ("is not a valid git identifier", "RevisionNotFound"),
        "no such revision on the hub: check --revision",
    ),
    (
        ("does not recognize this architecture", "model type"),
        "this version of transformers does not know its architecture: update it",
    ),
    (
        ("ignore_mismatched_sizes",),
        "its weights have other sizes than config.json says: they are not of one model",
    ),
    (("No space left",), "the disk is full: make room, or set HF_HOME to a larger one"),
)


def load_tokenizer(options: ServeOptions, hub: dict[str, Any]) -> PreTrainedTokenizerFast:
    """Return the tokenizer of a model.

    Parameters
    ----------
    options
        What names the model.
    hub
        How transformers looks for it.

    Raises
    ------
    FileError, UsageError
        With cause and cure.
    """
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(options.model, **hub)
    except MemoryError:
        raise
    except Exception as error:
        if os.environ.get("GLYD_DEBUG"):
            raise
        raise FileError(options.model, cause_of(error, "its tokenizer")) from error
    if getattr(tokenizer, "_tokenizer", None) is None:
        raise UsageError(f"{options.model} has no fast tokenizer (tokenizer.json): convert its tokenizer first")
    return tokenizer


def cause_of(error: Exception, what: str = "") -> str:
    """Return what to do about an error of the libraries that load models.

    Parameters
    ----------
    error
        Of any kind.
    what
        Is loaded, where it is not the model.
    """
    text = f"{type(error).__name__}: {error}"
    for words, cause in _CAUSES:
        if any(word in text for word in words):
            return cause
    if isinstance(error, PermissionError):
        return f"{error.filename or 'a file'} may not be read: change its permissions"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    first = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]  # the second says what is meant
    if isinstance(error, (ArithmeticError, AttributeError, LookupError, TypeError)):  # not made to be read by users
        first = f"{first} ({type(error).__name__}): is its configuration right?"
    return f"{what} cannot be loaded: {first[:300] or type(error).__name__}".lstrip()

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Tensors of stored model files, each read without the rest of its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import glyd

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, BinaryIO

    from typing_extensions import Self


class StoredTensors:
    """Tensors of an object, as `safetensors.safe_open` gives those of a file; made by `Store.open_tensors`.

    Parameters
    ----------
    file
        The content of the object; closed with this.
    framework, device
        As for `glyd.open_tensors`.

    Notes
    -----
    Threads may share it: reads run one at a time.
    """

    def __init__(self, file: BinaryIO, framework: str, device: str) -> None:
        self._file = file
        try:
            self._tensors = glyd.open_tensors(file, framework, device)
        except BaseException:
            file.close()
            raise

    def keys(self) -> list[str]:
        """Return the names of the tensors, sorted."""
        return self._tensors.keys()

    def offset_keys(self) -> list[str]:
        """Return the names of the tensors in the order of their data."""
        return self._tensors.offset_keys()

    def metadata(self) -> dict[str, str] | None:
        """Return the texts that the file carries, or None."""
        return self._tensors.metadata()

    def get_tensor(self, name: str) -> Any:
        """Read a tensor: its memory is its own. KeyError: there is none of that name."""
        return self._tensors.get_tensor(name)

    def get_slice(self, name: str) -> glyd.TensorSlice:
        """Return what reads parts of a tensor, and knows its shape and type. KeyError: there is none of that name."""
        return self._tensors.get_slice(name)

    def close(self) -> None:
        """Close it."""
        self._tensors.close()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

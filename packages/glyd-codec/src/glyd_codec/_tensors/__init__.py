# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Tensors of safetensors files in frames: opened one by one, read whole, written."""

from __future__ import annotations

from glyd_codec._tensors._file import TensorFile, TensorSlice, load_file, open_tensors
from glyd_codec._tensors._save import save_file

__all__ = ["TensorFile", "TensorSlice", "load_file", "open_tensors", "save_file"]

# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Holding packs from a file to the rules of their format, where they lie, before they are multiplied with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from glyd_codec import CorruptDataError

BREACHES = {
    1: "header of a row block",
    2: "starts and counts of exceptions",
    4: "base of a row",
    8: "index of escapes",
    16: "escapes of a tile",
    32: "row of zeros, or a zero with a mantissa",
    64: "place of an exception",
    128: "refused by the codec",
}


def verify_packs(packs: Mapping[str, tuple[torch.Tensor, Sequence[int]]]) -> None:
    """Check that packs keep every rule of their specification; waits for the device once.

    Kernels never read outside of a pack, whatever its bytes are; this finds the
    packs that would give wrong weights. Bytes that are another valid pack are
    found by the hashes of a packed directory only.

    Parameters
    ----------
    packs
        Name → pack and meta, on any device. Names are for messages.

    Raises
    ------
    CorruptDataError
        Names the packs that break a rule, the kind of rule and the first row block.
    """
    verdicts = {name: torch.ops.glyd.check_pack(pack, meta) for name, (pack, meta) in packs.items()}
    problems = []
    for name, verdict in verdicts.items():
        found, block = verdict.tolist()
        if found:
            kinds = ", ".join(text for bit, text in BREACHES.items() if found & bit)
            problems.append(f"{name}: {kinds}; first in rows {block * 64} … {block * 64 + 63}")
    if problems:
        raise CorruptDataError("packed weights break the rules of their format: " + "; ".join(problems))

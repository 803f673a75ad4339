# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Record segments against the reference decoder (tools/), which was written from their specification."""

from __future__ import annotations

import importlib
import random
import sys
from pathlib import Path

import pytest
from record_tables import CLEAN, RECORD_LEVELS

import glyd

TOOLS = Path(__file__).resolve().parents[3] / "tools"
if not (TOOLS / "reference_decoder.py").is_file():
    pytest.skip(f"the reference decoder is in a checkout only, not in an sdist: no {TOOLS}", allow_module_level=True)

sys.path.insert(0, str(TOOLS))
reference = importlib.import_module("reference_decoder")
sys.path.remove(str(TOOLS))

N_DAMAGED = 60  # of each table: the reference is slow
HEADER_NBYTES = 22


@pytest.mark.parametrize("name", CLEAN)
@pytest.mark.parametrize("level", RECORD_LEVELS)
def test_both_read_the_same(name, level):
    data = CLEAN[name][:9000]
    assert reference.decode(glyd.compress(data, level, records=True)) == data


@pytest.mark.parametrize("name", CLEAN)
def test_both_say_the_same_of_damage(name):
    rng = random.Random(name)
    frame = glyd.compress(CLEAN[name][:2500], records=True, checksum=False)
    n_refused = 0
    for _ in range(N_DAMAGED):
        damaged = bytearray(frame)
        damaged[rng.randrange(HEADER_NBYTES, len(frame))] ^= rng.choice([1 << rng.randrange(8), rng.randrange(1, 256)])
        try:
            want = reference.decode(bytes(damaged))
        except reference.FormatError:
            n_refused += 1
            with pytest.raises(glyd.FormatError):
                glyd.decompress(bytes(damaged))
        else:
            assert glyd.decompress(bytes(damaged)) == want
    assert 0 < n_refused < N_DAMAGED

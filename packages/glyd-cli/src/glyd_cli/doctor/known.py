# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Models that many use, with what `glyd.fit` says of them, so that no network is needed to say what fits.

A test computes every row again, from the shapes of the model and `glyd.fit`.
"""

from __future__ import annotations

from dataclasses import dataclass

_SPARE = 0.04  # of the memory, as `glyd.fit` keeps it
CONTEXT = 8192  # tokens that must fit


@dataclass(frozen=True)
class Known:
    """A model.

    Attributes
    ----------
    name
        On the hub.
    n_parameters
        Weights.
    plain_nbytes, packed_nbytes
        Bytes of the weights as bf16 and packed (tiered).
    overhead_nbytes
        What running takes besides weights and KV cache.
    kv_token_nbytes
        Bytes of the KV cache for one token.
    max_context
        Tokens that it was made for.
    """

    name: str
    n_parameters: int
    plain_nbytes: int
    packed_nbytes: int
    overhead_nbytes: int
    kv_token_nbytes: int
    max_context: int

    def context_in(self, free_nbytes: int, *, packed: bool = True) -> int:
        """Return the largest context that fits into memory: 0 when not even `CONTEXT` tokens do."""
        weights = self.packed_nbytes if packed else self.plain_nbytes
        room = int(free_nbytes * (1 - _SPARE)) - weights - self.overhead_nbytes
        tokens = min(room // self.kv_token_nbytes // 16 * 16, self.max_context)
        return tokens if tokens >= CONTEXT else 0


KNOWN = (
    Known("Qwen/Qwen3-0.6B", 596049920, 1192099840, 809056512, 1874168832, 114688, 40960),
    Known("HuggingFaceTB/SmolLM2-1.7B-Instruct", 1711376384, 3422752768, 2321264768, 2097581056, 196608, 8192),
    Known("Qwen/Qwen3-1.7B", 1720574976, 3441149952, 2333832448, 2470546432, 114688, 40960),
    Known("meta-llama/Llama-3.2-3B-Instruct", 3212749824, 6425499648, 4356862592, 2858978304, 114688, 131072),
    Known("Qwen/Qwen3-4B", 4022468096, 8044936192, 5455187328, 2869398528, 147456, 40960),
    Known("meta-llama/Llama-3.1-8B-Instruct", 8030261248, 16060522496, 10888504576, 3557854208, 131072, 131072),
    Known("Qwen/Qwen3-8B", 8190735360, 16381470720, 11106209536, 3663301632, 147456, 40960),
    Known("Qwen/Qwen3-14B", 14768307200, 29536614400, 20023538944, 4360342528, 163840, 40960),
    Known(
        "mistralai/Mistral-Small-24B-Instruct-2501", 23572403200, 47144806400, 31959745536, 4890987520, 163840, 32768
    ),
    Known("Qwen/Qwen3-30B-A3B", 30532122624, 61064245248, 41435683328, 2470546432, 98304, 40960),
    Known("Qwen/Qwen3-32B", 32762123264, 65524246528, 44419294464, 4762995712, 262144, 40960),
    Known("meta-llama/Llama-3.3-70B-Instruct", 70553706496, 141107412992, 95650073856, 5850041344, 327680, 131072),
)

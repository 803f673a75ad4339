# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""XXH3-64 and XXH3-128 with seed 0 in plain Python: slow, for the reference decoder and the frame generator.

Written from the public specification of XXH3; names follow it.
"""

from __future__ import annotations

import struct
from typing import Final

MASK: Final = (1 << 64) - 1

PRIME32_1: Final = 0x9E3779B1
PRIME32_2: Final = 0x85EBCA77
PRIME32_3: Final = 0xC2B2AE3D
PRIME64_1: Final = 0x9E3779B185EBCA87
PRIME64_2: Final = 0xC2B2AE3D27D4EB4F
PRIME64_3: Final = 0x165667B19E3779F9
PRIME64_4: Final = 0x85EBCA77C2B2AE63
PRIME64_5: Final = 0x27D4EB2F165667C5
PRIME_MX1: Final = 0x165667919E3779F9
PRIME_MX2: Final = 0x9FB21C651E98DF25

SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)

STRIPE: Final = 64
STRIPES_A_BLOCK: Final = 16  # (192 bytes of secret - one stripe) / 8 bytes that the secret moves on
BLOCK: Final = STRIPE * STRIPES_A_BLOCK


def _u32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _u64(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _rotate(value: int, count: int) -> int:
    return ((value << count) | (value >> (64 - count))) & MASK


def _swap(value: int) -> int:
    return int.from_bytes(value.to_bytes(8, "little"), "big")


def _fold(a: int, b: int) -> int:
    """Multiply to 128 bits; exclusive-or of the halves."""
    product = a * b
    return (product & MASK) ^ (product >> 64)


def _avalanche(h: int) -> int:
    h ^= h >> 37
    h = (h * PRIME_MX1) & MASK
    return h ^ (h >> 32)


def _avalanche_xxh64(h: int) -> int:
    h ^= h >> 33
    h = (h * PRIME64_2) & MASK
    h ^= h >> 29
    h = (h * PRIME64_3) & MASK
    return h ^ (h >> 32)


def _mix(data: bytes, at: int, secret_at: int) -> int:
    return _fold(_u64(data, at) ^ _u64(SECRET, secret_at), _u64(data, at + 8) ^ _u64(SECRET, secret_at + 8))


def _up_to_16(data: bytes) -> int:
    n = len(data)
    if n == 0:
        return _avalanche_xxh64(_u64(SECRET, 56) ^ _u64(SECRET, 64))
    if n <= 3:
        combined = data[-1] | n << 8 | data[0] << 16 | data[n >> 1] << 24
        return _avalanche_xxh64(_u32(SECRET, 0) ^ _u32(SECRET, 4) ^ combined)
    if n <= 8:
        combined = _u32(data, n - 4) | _u32(data, 0) << 32
        value = _u64(SECRET, 8) ^ _u64(SECRET, 16) ^ combined
        value ^= _rotate(value, 49) ^ _rotate(value, 24)
        value = (value * PRIME_MX2) & MASK
        value ^= (value >> 35) + n
        value = (value * PRIME_MX2) & MASK
        return value ^ (value >> 28)
    low = _u64(SECRET, 24) ^ _u64(SECRET, 32) ^ _u64(data, 0)
    high = _u64(SECRET, 40) ^ _u64(SECRET, 48) ^ _u64(data, n - 8)
    return _avalanche((n + _swap(low) + high + _fold(low, high)) & MASK)


def _up_to_240(data: bytes) -> int:
    n = len(data)
    acc = n * PRIME64_1
    if n <= 128:
        for i in range((n - 1) >> 5, -1, -1):
            acc += _mix(data, i * 16, i * 32)
            acc += _mix(data, n - i * 16 - 16, i * 32 + 16)
        return _avalanche(acc & MASK)
    for i in range(8):
        acc += _mix(data, i * 16, i * 16)
    acc = _avalanche(acc & MASK)
    for i in range(8, n >> 4):
        acc += _mix(data, i * 16, (i - 8) * 16 + 3)
    acc += _mix(data, n - 16, 136 - 17)
    return _avalanche(acc & MASK)


def _accumulate(acc: list[int], data: bytes, at: int, secret_at: int) -> None:
    lanes = struct.unpack_from("<8Q", data, at)
    keys = struct.unpack_from("<8Q", SECRET, secret_at)
    for i in range(8):
        value = lanes[i] ^ keys[i]
        acc[i ^ 1] = (acc[i ^ 1] + lanes[i]) & MASK
        acc[i] = (acc[i] + (value & 0xFFFFFFFF) * (value >> 32)) & MASK


def _scramble(acc: list[int]) -> None:
    keys = struct.unpack_from("<8Q", SECRET, len(SECRET) - STRIPE)
    for i in range(8):
        acc[i] = (((acc[i] ^ (acc[i] >> 47)) ^ keys[i]) * PRIME32_1) & MASK


def _lanes(data: bytes) -> list[int]:
    n = len(data)
    acc = [PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1]
    n_stripes = (n - 1) // STRIPE  # the last stripe is another, below
    for i in range(n_stripes):
        _accumulate(acc, data, i * STRIPE, i % STRIPES_A_BLOCK * 8)
        if i % STRIPES_A_BLOCK == STRIPES_A_BLOCK - 1:
            _scramble(acc)
    _accumulate(acc, data, n - STRIPE, len(SECRET) - STRIPE - 7)
    return acc


def _merge(acc: list[int], secret_at: int, result: int) -> int:
    for i in range(secret_at, secret_at + 64, 16):
        lane = (i - secret_at) // 8
        result += _fold(acc[lane] ^ _u64(SECRET, i), acc[lane + 1] ^ _u64(SECRET, i + 8))
    return _avalanche(result & MASK)


def xxh3_64(data: bytes) -> int:
    """Return XXH3-64 of the bytes, seed 0."""
    data = bytes(data)
    if len(data) <= 16:
        return _up_to_16(data)
    if len(data) <= 240:
        return _up_to_240(data)
    return _merge(_lanes(data), 11, len(data) * PRIME64_1)


def _up_to_16_in_128(data: bytes) -> tuple[int, int]:
    n = len(data)
    if n == 0:
        return _avalanche_xxh64(_u64(SECRET, 64) ^ _u64(SECRET, 72)), _avalanche_xxh64(
            _u64(SECRET, 80) ^ _u64(SECRET, 88)
        )
    if n <= 3:
        low = data[-1] | n << 8 | data[0] << 16 | data[n >> 1] << 24
        swapped = int.from_bytes(low.to_bytes(4, "little"), "big")
        high = (swapped << 13 | swapped >> 19) & 0xFFFFFFFF
        return (
            _avalanche_xxh64(low ^ _u32(SECRET, 0) ^ _u32(SECRET, 4)),
            _avalanche_xxh64(high ^ _u32(SECRET, 8) ^ _u32(SECRET, 12)),
        )
    if n <= 8:
        value = (_u32(data, 0) | _u32(data, n - 4) << 32) ^ _u64(SECRET, 16) ^ _u64(SECRET, 24)
        product = value * ((PRIME64_1 + (n << 2)) & MASK)
        low, high = product & MASK, product >> 64
        high = (high + (low << 1)) & MASK
        low ^= high >> 3
        low = ((low ^ (low >> 35)) * PRIME_MX2) & MASK
        return low ^ (low >> 28), _avalanche(high)
    low, high = _u64(data, 0), _u64(data, n - 8)
    product = (low ^ high ^ _u64(SECRET, 32) ^ _u64(SECRET, 40)) * PRIME64_1
    high ^= _u64(SECRET, 48) ^ _u64(SECRET, 56)
    high = ((product >> 64) + high + (high & 0xFFFFFFFF) * (0x85EBCA77 - 1)) & MASK
    low = ((product + ((n - 1) << 54)) & MASK) ^ _swap(high)
    product = low * PRIME64_2
    return _avalanche(product & MASK), _avalanche(((product >> 64) + high * PRIME64_2) & MASK)


def _up_to_240_in_128(data: bytes) -> tuple[int, int]:
    n = len(data)
    low, high = (n * PRIME64_1) & MASK, 0

    def mix(first: int, second: int, secret_at: int) -> None:
        nonlocal low, high
        low = (low + _mix(data, first, secret_at)) & MASK
        low ^= (_u64(data, second) + _u64(data, second + 8)) & MASK
        high = (high + _mix(data, second, secret_at + 16)) & MASK
        high ^= (_u64(data, first) + _u64(data, first + 8)) & MASK

    if n <= 128:
        for i in range((n - 1) >> 5, -1, -1):
            mix(16 * i, n - 16 * i - 16, 32 * i)
    else:
        for i in range(4):
            mix(32 * i, 32 * i + 16, 32 * i)
        low, high = _avalanche(low), _avalanche(high)
        for i in range(4, n >> 5):
            mix(32 * i, 32 * i + 16, 32 * (i - 4) + 3)
        mix(n - 16, n - 32, 136 - 17 - 16)
    last = (low * PRIME64_1 + high * PRIME64_4 + n * PRIME64_2) & MASK
    return _avalanche((low + high) & MASK), -_avalanche(last) & MASK


def xxh3_128(data: bytes) -> int:
    """Return XXH3-128 of the bytes, seed 0."""
    data = bytes(data)
    n = len(data)
    if n <= 16:
        low, high = _up_to_16_in_128(data)
    elif n <= 240:
        low, high = _up_to_240_in_128(data)
    else:
        acc = _lanes(data)
        low = _merge(acc, 11, n * PRIME64_1)
        high = _merge(acc, len(SECRET) - STRIPE - 11, ~(n * PRIME64_2) & MASK)
    return high << 64 | low

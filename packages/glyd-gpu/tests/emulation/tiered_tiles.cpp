/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BUSL-1.1
 *
 * Decoding of tiered tiles in the ring products as a function for the CPU;
 * tests/test_tiered_tiles.py.
 */
#include "emulated_sm90.h"

#include "ring_tiered_sm90.cuh"

#define EXPORT extern "C" __attribute__((visibility("default")))

constexpr uint32_t kTable = 256 * glyd::kTableRow, kTile = 10240;

/* A tile and its escapes, in a slot of so many bytes, to the A registers [128 threads][32] of its k16 steps. */
EXPORT void emulated_tiered_tile(uint32_t *out, const uint8_t *tile, const uint8_t *escapes, uint32_t escape_nbytes,
                                 uint32_t slot, uint32_t order) {
  emulation::order = order;
  emulation::launch({1, 1, 1}, 128, kTable + kTile + slot, [&] {
    const int thread = (int)threadIdx.x, lane = thread % 32;
    for (int half = 0; half < 2; half++) glyd::build_table(thread + 128 * half, lane);
    for (uint32_t i = (uint32_t)thread; i < kTile; i += 128) emulated_shared()[kTable + i] = tile[i];
    for (uint32_t i = (uint32_t)thread; i < escape_nbytes; i += 128) emulated_shared()[kTable + kTile + i] = escapes[i];
    __syncthreads();
    const uint32_t at = kTable + kTile;
    glyd::decode_tiered(kTable + (uint32_t)thread * 16, at, at + slot - 12, glyd::in_register(glyd::kTier3Low), thread, lane,
                        [&](int v, const uint32_t *a) { memcpy(out + thread * 32 + v * 8, a, 32); });
  });
}

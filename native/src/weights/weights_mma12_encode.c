/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Layout mma12: bases and tiles.
 */
#include "weights/weights_mma12_encode.h"

#include "weights/weights_tile_encode.h"

uint8_t glyd_weights_mma12_base(const uint32_t *counts, uint64_t cols, uint64_t *exceptions) {
  uint64_t in = 0; /* weights with base <= exponent / 2 <= base + 7 */
  for (unsigned e = 2; e < 18; e++) in += counts[e];
  uint64_t most = in;
  unsigned best = 1;
  for (unsigned base = 2; base <= GLYD_WEIGHTS_MMA12_BASE_MAX; base++) {
    in += counts[2 * base + 14] + counts[2 * base + 15];
    in -= counts[2 * base - 2] + counts[2 * base - 1];
    if (in > most) {
      most = in;
      best = base;
    }
  }
  *exceptions += cols - most;
  return (uint8_t)best;
}

void glyd_weights_mma12_encode_tile(uint8_t *tile, const uint8_t *src, size_t stride, const uint8_t *bases,
                                    uint64_t *exceptions, int avx2) {
  if (avx2)
    glyd_weights_tile_mma12_avx2(tile, src, stride, bases, exceptions);
  else
    glyd_weights_tile_mma12_scalar(tile, src, stride, bases, exceptions);
}

/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Layout tiered: bases, sizes and tiles.
 */
#include "weights/weights_tiered_encode.h"

#include "weights/weights_tile_encode.h"

uint8_t glyd_weights_tiered_commonest(const uint32_t *counts) {
  uint64_t most = 0;
  unsigned best = GLYD_WEIGHTS_TIERED_BASE_MIN;
  for (unsigned base = GLYD_WEIGHTS_TIERED_BASE_MIN; base <= GLYD_WEIGHTS_TIERED_BASE_MAX; base++) {
    const uint64_t in = (uint64_t)counts[base] + counts[base + 1] + counts[base + 2];
    if (in > most) {
      most = in;
      best = base;
    }
  }
  return (uint8_t)best;
}

/* What tiers code are windows around the base, each in the next, and a step of the base changes them by two counts. */
uint8_t glyd_weights_tiered_base(const uint32_t *counts) {
  const uint32_t *at = counts + GLYD_WEIGHTS_TIERED_BASE_MIN - 1;
  uint64_t first = 0, second = 0, all = 0, most = 0;
  unsigned best = GLYD_WEIGHTS_TIERED_BASE_MIN;
  for (int d = 0; d < 3; d++) first += at[d];
  for (int d = 0; d < GLYD_WEIGHTS_TIER2_SPAN; d++) second += at[d - GLYD_WEIGHTS_TIER2_BELOW];
  for (int d = 0; d < GLYD_WEIGHTS_SPAN; d++) all += at[d - GLYD_WEIGHTS_BELOW];
  for (unsigned base = best; base <= GLYD_WEIGHTS_TIERED_BASE_MAX; base++, at++) {
    first += (uint64_t)at[3] - at[0];
    second += (uint64_t)at[GLYD_WEIGHTS_TIER2_SPAN - GLYD_WEIGHTS_TIER2_BELOW] - at[-GLYD_WEIGHTS_TIER2_BELOW];
    all += (uint64_t)at[GLYD_WEIGHTS_SPAN - GLYD_WEIGHTS_BELOW] - at[-GLYD_WEIGHTS_BELOW];
    const uint64_t saved = GLYD_WEIGHTS_TIERED_SAVED(first, second, all);
    if (saved > most) {
      most = saved;
      best = base;
    }
  }
  return (uint8_t)best;
}

uint64_t glyd_weights_tiered_count(uint8_t *index, const uint8_t *row, size_t cols, uint8_t base, int avx2) {
  return avx2 ? glyd_weights_tile_count_avx2(index, row, cols, base)
              : glyd_weights_tile_count_scalar(index, row, cols, base);
}

void glyd_weights_tiered_sizes(uint8_t *index, uint64_t tiles) {
  uint32_t at = 0;
  for (uint64_t t = 0; t < tiles; t++) {
    const uint32_t counts = glyd_load32(index + 4 * t);
    glyd_store32(index + 4 * t, at);
    at += glyd_weights_escape_bytes(counts & 0xFFFF, counts >> 16) / GLYD_WEIGHTS_ESCAPE_UNIT;
  }
  glyd_store32(index + 4 * tiles, at);
}

void glyd_weights_tiered_encode_tile(uint8_t *tile, uint8_t *escapes, size_t escapes_len, const uint8_t *src,
                                     size_t stride, const uint8_t *bases, glyd_weights_scratch *scratch, int avx2) {
  if (avx2) {
    glyd_weights_tile_tiered_avx2(tile, scratch->symbols, src, stride, bases, scratch->exceptions);
    glyd_weights_tile_escapes_avx2(escapes, escapes_len, scratch->symbols, scratch->bytes);
  } else {
    glyd_weights_tile_tiered_scalar(tile, scratch->symbols, src, stride, bases, scratch->exceptions);
    glyd_weights_tile_escapes_scalar(escapes, escapes_len, scratch->symbols, scratch->bytes);
  }
}

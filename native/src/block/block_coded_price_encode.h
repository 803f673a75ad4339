/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * What the writer of coded blocks and the parse that prices them share.
 */
#ifndef GLYD_BLOCK_CODED_PRICE_ENCODE_H
#define GLYD_BLOCK_CODED_PRICE_ENCODE_H

#include "block/block_coded_common.h"
#include "match/match_common.h"

/* Choose the 15 most frequent match lengths if that saves escapes; returns 1
 * and fills lengths (ascending) if so, or if a fine block needs them. */
int glyd_coded_choose_lengths(const glyd_sequence *seqs, size_t n, int fine, uint8_t lengths[GLYD_CODED_LENGTHS]);

/* Whether a Huffman coded plane of the n low offset bytes is clearly smaller
 * than 8 bits each. */
int glyd_coded_low_bytes_pay(const uint8_t *low, size_t n);

/* Prices of new offsets, in 1/256 of a bit. */
typedef struct glyd_coded_offset_prices {
  int32_t code[256]; /* by code, its extra bits included */
  int32_t low[256];  /* by the low byte of offset + bias, from 8 extra bits on */
} glyd_coded_offset_prices;

/* How a new offset is written: its code, and the value of the extra bits. */
typedef struct glyd_coded_offset {
  uint32_t code, extra;
} glyd_coded_offset;

GLYD_INLINE glyd_coded_offset glyd_coded_far_offset(uint32_t offset) {
  const uint32_t v = offset + GLYD_CODED_OFFSET_BIAS;
  const unsigned bits = glyd_log2_32(v) - 3;
  return (glyd_coded_offset){bits << 3 | (v >> bits & 7), v & ((1u << bits) - 1)};
}

/* An offset that is not that of the slot, but no farther from it than NEAR_MOST. */
GLYD_INLINE glyd_coded_offset glyd_coded_near_offset(uint32_t offset, uint32_t repeat, unsigned slot) {
  const int below = offset < repeat;
  const uint32_t d = below ? repeat - offset : offset - repeat;
  const unsigned class = d == 1 ? 0 : glyd_log2_32(d - 1) + 1;
  return (glyd_coded_offset){GLYD_CODED_OFFSET_CODES + GLYD_CODED_NEAR_SLOT * slot +
                                 (below ? GLYD_CODED_NEAR_SIGN : 0) + class,
                             class < 2 ? 0
                             : below   ? (1u << class) - d
                                       : d - (1u << (class - 1)) - 1};
}

GLYD_INLINE int32_t glyd_coded_price_far(const glyd_coded_offset_prices *p, uint32_t offset) {
  const glyd_coded_offset how = glyd_coded_far_offset(offset);
  return p->code[how.code] + (how.code >> 3 >= 8 ? p->low[(offset + GLYD_CODED_OFFSET_BIAS) & 255] : 0);
}

/* The cheapest way to write a new offset, and what it costs. */
GLYD_INLINE int32_t glyd_coded_price_offset(const glyd_coded_offset_prices *p, uint32_t offset,
                                            const uint32_t repeat[GLYD_CODED_REPEATS], glyd_coded_offset *how) {
  *how = glyd_coded_far_offset(offset);
  int32_t least = glyd_coded_price_far(p, offset);
  for (unsigned k = 0; k < GLYD_CODED_REPEATS; k++) {
    if (offset - repeat[k] + GLYD_CODED_NEAR_MOST > 2 * GLYD_CODED_NEAR_MOST || offset == repeat[k]) continue;
    const glyd_coded_offset near = glyd_coded_near_offset(offset, repeat[k], k);
    if (p->code[near.code] >= least) continue;
    least = p->code[near.code];
    *how = near;
  }
  return least;
}

#endif

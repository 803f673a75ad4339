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

/* Repeat slot of the offset (3: none), which moves to the front. */
GLYD_INLINE unsigned glyd_coded_use_offset(uint32_t repeat[GLYD_CODED_REPEATS], uint32_t offset) {
  const uint32_t r0 = repeat[0], r1 = repeat[1], r2 = repeat[2];
  unsigned slot = offset == r2 ? 2 : 3;
  slot = offset == r1 ? 1 : slot;
  slot = offset == r0 ? 0 : slot;
  repeat[2] = slot >= 2 ? r1 : r2;
  repeat[1] = slot >= 1 ? r0 : r1;
  repeat[0] = offset;
  return slot;
}

#endif

/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Layout tiered: bases, sizes and tiles.
 */
#ifndef GLYD_WEIGHTS_TIERED_ENCODE_H
#define GLYD_WEIGHTS_TIERED_ENCODE_H

#include "weights/weights_common.h"

/* From exponent counts, the smallest base with the most weights in tier 1. */
uint8_t glyd_weights_tiered_commonest(const uint32_t *counts);

/* From exponent counts, the smallest base that takes the fewest bits. */
uint8_t glyd_weights_tiered_base(const uint32_t *counts);

/* Add a row's digits and tier 3 codes to the entries of the index; gives its number of exceptions. */
uint64_t glyd_weights_tiered_count(uint8_t *index, const uint8_t *row, size_t cols, uint8_t base, int avx2);

/* Turn the counts of a row block's index into the places of its tiles' escapes. */
void glyd_weights_tiered_sizes(uint8_t *index, uint64_t tiles);

void glyd_weights_tiered_encode_tile(uint8_t *tile, uint8_t *escapes, size_t escapes_len, const uint8_t *src,
                                     size_t stride, const uint8_t *bases, glyd_weights_scratch *scratch, int avx2);

#endif

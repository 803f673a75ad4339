/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Layout tiered: a tile back to rows.
 */
#ifndef GLYD_WEIGHTS_TIERED_DECODE_H
#define GLYD_WEIGHTS_TIERED_DECODE_H

#include "weights/weights_common.h"

/* Decode a tile into scratch->tile as [64][128] weights; escapes_len is 16 …
 * GLYD_WEIGHTS_ESCAPE_TILE_MAX. CORRUPT when escapes and codes disagree, a
 * tier 3 code is not in use or a row of zeros holds anything else. */
glyd_status glyd_weights_tiered_decode_tile(glyd_weights_scratch *scratch, const uint8_t *tile, const uint8_t *escapes,
                                            uint32_t escapes_len, const uint8_t *bases, int avx2);

#endif

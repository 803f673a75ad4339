/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Kernels from tiles back to rows: pure loops over whole tiles. Each gives 0,
 * or what is not 0 when the tile breaks a rule. Every variant gives the same
 * bytes and refuses the same tiles; the caller asks for AVX2 only where the
 * CPU has it.
 */
#ifndef GLYD_WEIGHTS_TILE_DECODE_H
#define GLYD_WEIGHTS_TILE_DECODE_H

#include "weights/weights_common.h"

/* out: [64][64] weights. A row of zeros must hold nothing else. */
unsigned glyd_weights_rows_mma12_scalar(uint16_t *out, const uint8_t *tile, const uint8_t *bases);
unsigned glyd_weights_rows_mma12_avx2(uint16_t *out, const uint8_t *tile, const uint8_t *bases);

/* out: [64][128] weights, from sign and mantissa bytes and symbols in thread order. */
unsigned glyd_weights_rows_tiered_scalar(uint16_t *out, const uint8_t *tile, const uint8_t *symbols,
                                         const uint8_t *bases);
unsigned glyd_weights_rows_tiered_avx2(uint16_t *out, const uint8_t *tile, const uint8_t *symbols,
                                       const uint8_t *bases);

/* Symbols (code | digit << 2 | tier 3 code << 4) of a tile's 8192 weights.
 * n_digits is the number of codes that are 3; escapes has room for any counts
 * (GLYD_WEIGHTS_ESCAPE_ROOM bytes), of which the first escapes_len are the tile's. */
#define GLYD_WEIGHTS_ESCAPE_ROOM (GLYD_WEIGHTS_ESCAPE_TILE_MAX + 16)
unsigned glyd_weights_symbols_scalar(uint8_t *symbols, const uint8_t *codes, const uint8_t *escapes,
                                     uint32_t escapes_len, uint32_t n_digits);
unsigned glyd_weights_symbols_avx2(uint8_t *symbols, const uint8_t *codes, const uint8_t *escapes, uint32_t escapes_len,
                                   uint32_t n_digits);

#endif

/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Kernels over whole tiles: pure loops, no checks, no allocation. Source rows
 * are stride weights apart; base holds 64 bases. Every variant gives the same
 * bytes; the caller asks for AVX2 only where the CPU has it.
 */
#ifndef GLYD_WEIGHTS_TILE_ENCODE_H
#define GLYD_WEIGHTS_TILE_ENCODE_H

#include "weights/weights_common.h"

/* Write one 64 x 64 tile. A weight outside its row's window sets bit row of
 * exceptions[column] and is stored as code 0, low byte 0. */
void glyd_weights_tile_mma12_scalar(uint8_t *out, const uint8_t *src, size_t stride, const uint8_t *base,
                                    uint64_t *exceptions);
void glyd_weights_tile_mma12_avx2(uint8_t *out, const uint8_t *src, size_t stride, const uint8_t *base,
                                  uint64_t *exceptions);

/* Base of a row (0: only zeros) without counting its exponents; adds what lies
 * outside the window to exceptions. 0 when this row takes counting. */
int glyd_weights_tile_mma12_base_avx2(const uint8_t *row, size_t cols, uint8_t *base, uint64_t *exceptions);

/* Write the fixed part of one 64 x 128 tile and its symbols (code | digit << 2
 * | tier 3 code << 4) in thread order. Exceptions as above, stored as +0. */
void glyd_weights_tile_tiered_scalar(uint8_t *out, uint8_t *symbols, const uint8_t *src, size_t stride,
                                     const uint8_t *base, uint64_t *exceptions);
void glyd_weights_tile_tiered_avx2(uint8_t *out, uint8_t *symbols, const uint8_t *src, size_t stride,
                                   const uint8_t *base, uint64_t *exceptions);

/* Add to counts[column / 128] the digits (low half) and tier 3 codes (high
 * half) of one row, whose base is not 0; gives the number of exceptions. */
uint64_t glyd_weights_tile_count_scalar(uint8_t *counts, const uint8_t *row, size_t cols, uint8_t base);
uint64_t glyd_weights_tile_count_avx2(uint8_t *counts, const uint8_t *row, size_t cols, uint8_t base);

/* Write digits and tier 3 codes of 8192 symbols behind a header of 16 bytes;
 * codes3 is room for the latter. out has as many bytes as the counts say. */
void glyd_weights_tile_escapes_scalar(uint8_t *out, size_t out_len, const uint8_t *symbols, uint8_t *codes3);
void glyd_weights_tile_escapes_avx2(uint8_t *out, size_t out_len, const uint8_t *symbols, uint8_t *codes3);

/* Symbol of exponent - base + 9, for 0..13. */
extern const uint8_t glyd_weights_symbols[16];
#define GLYD_WEIGHTS_SYMBOL_ZERO 0x8Fu /* code 3, digit 3, tier 3 code 8 */

#endif

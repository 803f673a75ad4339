/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Geometry of packs, and the order of weights in a tile: thread t = 32 w +
 * 4 g + q of 128 holds rows 16 w + g and 16 w + 8 + g; of every k16 step s it
 * holds columns 16 s + 8 kh + 2 q + p, in the order (s, kh, row half h, p).
 */
#ifndef GLYD_WEIGHTS_COMMON_H
#define GLYD_WEIGHTS_COMMON_H

#include <stddef.h>
#include <stdint.h>

#include "common/mem.h"
#include "glyd/weights.h"

#define GLYD_WEIGHTS_TILE_WEIGHTS (GLYD_WEIGHTS_ROWS * GLYD_WEIGHTS_TIERED_COLS) /* of the larger tile */

/* One thread's memory for one row block; byte planes in thread order. */
typedef struct glyd_weights_scratch {
  uint64_t exceptions[GLYD_WEIGHTS_TIERED_COLS]; /* a bit a row, by column of the tile */
  uint32_t counts[4][256];                       /* exponents of a row, in four interleaved histograms */
  uint16_t tile[GLYD_WEIGHTS_TILE_WEIGHTS];      /* a tile as rows: padded input, or decoded output */
  uint8_t symbols[GLYD_WEIGHTS_TILE_WEIGHTS];    /* code | digit << 2 | tier 3 code << 4 */
  uint8_t bytes[GLYD_WEIGHTS_TILE_WEIGHTS + 64]; /* tier 3 codes one a byte, or a tile's escapes */
} glyd_weights_scratch;

GLYD_INLINE uint64_t glyd_weights_align(uint64_t n) {
  return (n + GLYD_WEIGHTS_ALIGN - 1) / GLYD_WEIGHTS_ALIGN * GLYD_WEIGHTS_ALIGN;
}

GLYD_INLINE uint8_t glyd_weights_high(uint16_t w) { return (uint8_t)((w >> 8) & 0x7F); } /* exponent bits 7..1 */
GLYD_INLINE uint8_t glyd_weights_exponent(uint16_t w) { return (uint8_t)(w >> 7); }
GLYD_INLINE uint8_t glyd_weights_sign_mantissa(uint16_t w) { return (uint8_t)(((w >> 8) & 0x80) | (w & 0x7F)); }

/* Row of the tile, and column of its k16 step, of a thread's weight j (0..7 within the step). */
GLYD_INLINE unsigned glyd_weights_row_of(unsigned thread, unsigned j) {
  return (thread / 32) * 16 + ((j / 2) & 1) * 8 + (thread / 4) % 8;
}
GLYD_INLINE unsigned glyd_weights_col_of(unsigned thread, unsigned j) { return (j / 4) * 8 + (thread % 4) * 2 + j % 2; }

/* Bytes of workspace a call needs. */
size_t glyd_weights_scratch_size(void);

/* Workspace as scratch, aligned; NULL when it is too small. */
glyd_weights_scratch *glyd_weights_scratch_in(void *workspace, size_t len);

/* 1 when the shape is in range. */
int glyd_weights_shape_check(const glyd_weights_shape *shape);

/* Fill info from shape, escape units and number of exceptions (the shape was checked). 0 when sizes overflow. */
int glyd_weights_geometry(const glyd_weights_shape *shape, uint64_t escape_units, uint64_t n_exceptions,
                          glyd_weights_info *info);

/* Bytes of a tile's escapes with n2 digits and n3 tier 3 codes, a multiple of 16. */
GLYD_INLINE uint32_t glyd_weights_escape_bytes(uint32_t n2, uint32_t n3) {
  const uint32_t bytes = GLYD_WEIGHTS_ESCAPE_HEADER + ((n2 + 1) / 2 + n3 + 1) / 2;
  return (bytes + GLYD_WEIGHTS_ESCAPE_UNIT - 1) / GLYD_WEIGHTS_ESCAPE_UNIT * GLYD_WEIGHTS_ESCAPE_UNIT;
}

#endif

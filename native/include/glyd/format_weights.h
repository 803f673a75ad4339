/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Constants of packed weights, as native/src/weights/spec.md defines them.
 * Compiles as C, C++ and CUDA. F: a value here only ever changes with the
 * version of the pack.
 */
#ifndef GLYD_FORMAT_WEIGHTS_H
#define GLYD_FORMAT_WEIGHTS_H

#define GLYD_WEIGHTS_MAGIC 0x574C479Du /* bytes 9D 47 4C 57, little-endian */
#define GLYD_WEIGHTS_VERSION 1

#define GLYD_WEIGHTS_MMA12 1
#define GLYD_WEIGHTS_TIERED 2

#define GLYD_WEIGHTS_HEADER 128       /* bytes of the pack header */
#define GLYD_WEIGHTS_BLOCK_HEADER 128 /* bytes of a row block's header */
#define GLYD_WEIGHTS_ALIGN 128        /* every section starts at a multiple of it */
#define GLYD_WEIGHTS_ROWS 64          /* rows of a row block and of a tile */
#define GLYD_WEIGHTS_COLS_MAX (1u << 26)
#define GLYD_WEIGHTS_ROWS_MAX (1ull << 36)

/* mma12: 64 x 64 tile: low bytes [2][128 threads][16], then codes [128][16] */
#define GLYD_WEIGHTS_MMA12_COLS 64
#define GLYD_WEIGHTS_MMA12_TILE 6144
#define GLYD_WEIGHTS_MMA12_BASE_MAX 119 /* base of a row: 1 to this, or 0 for a row of zeros */
#define GLYD_WEIGHTS_MMA12_BIAS 64      /* what a product decodes to: high byte = sign | 64 | code */

/* tiered: 64 x 128 tile: sign and mantissa bytes [4][128 threads][16], then codes [128][16] */
#define GLYD_WEIGHTS_TIERED_COLS 128
#define GLYD_WEIGHTS_TIERED_TILE 10240
#define GLYD_WEIGHTS_TIERED_BASE_MIN 10 /* base of a row: 10 to 250, or 0 for a row of zeros */
#define GLYD_WEIGHTS_TIERED_BASE_MAX 250
#define GLYD_WEIGHTS_ESCAPE_HEADER 16 /* bytes before a tile's digits */
#define GLYD_WEIGHTS_ESCAPE_UNIT 16
#define GLYD_WEIGHTS_ESCAPE_TILE_MAX 6160 /* header + 8192 digits of 2 bits + 8192 codes of 4 bits */

/* Exponent minus base, by tier. Codes 0..2 of tier 1 are 0..2; code 3 goes on to tier 2, its digit 3 to tier 3. */
#define GLYD_WEIGHTS_TIER2 \
  { -1, 3, -2 }
#define GLYD_WEIGHTS_TIER3 \
  { -3, 4, -4, -5, -6, -7, -8, -9 }
#define GLYD_WEIGHTS_TIER3_ZERO 8 /* tier 3 code of +0, -0 and of the place of an exception; 9..15 are not used */
#define GLYD_WEIGHTS_BELOW 9      /* most a coded exponent lies below its base */
#define GLYD_WEIGHTS_SPAN 14      /* coded exponents: base - 9 to base + 4 */

/* Bits that a base saves a row against exceptions alone (56 bits each), from the weights that tier 1 codes, that
 * tiers 1 and 2 code (2, 4 bits) and that all tiers code (8). Writers take the smallest base that saves most. */
#define GLYD_WEIGHTS_TIER2_BELOW 2 /* exponents of tiers 1 and 2: base - 2 to base + 3 */
#define GLYD_WEIGHTS_TIER2_SPAN 6
#define GLYD_WEIGHTS_TIERED_SAVED(first, second, all) (2 * (first) + 4 * (second) + 48 * (all))

/* byte offsets in the pack header */
#define GLYD_WEIGHTS_AT_MAGIC 0            /* u32 */
#define GLYD_WEIGHTS_AT_VERSION 4          /* u8 */
#define GLYD_WEIGHTS_AT_LAYOUT 5           /* u8 */
#define GLYD_WEIGHTS_AT_ROWS 8             /* u64 */
#define GLYD_WEIGHTS_AT_COLS 16            /* u64 */
#define GLYD_WEIGHTS_AT_SIZE 24            /* u64, bytes of the pack */
#define GLYD_WEIGHTS_AT_ESCAPES 32         /* u64, units of 16 bytes; 0 in mma12 */
#define GLYD_WEIGHTS_AT_EXCEPTIONS 40      /* u64 */
#define GLYD_WEIGHTS_AT_TILE_ESCAPE_MAX 48 /* u32, bytes of the largest tile's escapes */
#define GLYD_WEIGHTS_AT_BLOCK_EXC_MAX 52   /* u32, most exceptions of a row block */

/* byte offsets in a row block's header */
#define GLYD_WEIGHTS_BLOCK_AT_LAYOUT 0    /* u8 */
#define GLYD_WEIGHTS_BLOCK_AT_VERSION 1   /* u8 */
#define GLYD_WEIGHTS_BLOCK_AT_ROWS 2      /* u16, 1..64 rows in use */
#define GLYD_WEIGHTS_BLOCK_AT_EXC_COUNT 4 /* u32 */
#define GLYD_WEIGHTS_BLOCK_AT_EXC_FIRST 8 /* u64, index of the first exception */
#define GLYD_WEIGHTS_BLOCK_AT_ESCAPES 16  /* u64, first 16-byte unit of the escapes */
#define GLYD_WEIGHTS_BLOCK_AT_BASES 64    /* u8[64] */

#endif

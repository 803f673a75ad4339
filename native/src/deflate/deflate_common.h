/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Streams of RFC 1951 as tokens and blocks, and the numbers of that format.
 */
#ifndef GLYD_DEFLATE_COMMON_H
#define GLYD_DEFLATE_COMMON_H

#include "common/mem.h"

#define GLYD_DEFLATE_WINDOW 32768u
#define GLYD_DEFLATE_MATCH_MIN 3u
#define GLYD_DEFLATE_MATCH_MAX 258u
#define GLYD_DEFLATE_LITLENS 286u /* codes of literals, the end and lengths that may occur */
#define GLYD_DEFLATE_DISTANCES 30u
#define GLYD_DEFLATE_LENGTHS (GLYD_DEFLATE_LITLENS + GLYD_DEFLATE_DISTANCES)
#define GLYD_DEFLATE_CODE_MAX 15u     /* bits of a code */
#define GLYD_DEFLATE_HEADER_CODES 19u /* codes of a header's code lengths */
#define GLYD_DEFLATE_HEADER_CODE_MAX 7u
#define GLYD_DEFLATE_END 256u

#define GLYD_DEFLATE_STORED 0u
#define GLYD_DEFLATE_FIXED 1u
#define GLYD_DEFLATE_DYNAMIC 2u

/* Blocks of more tokens stay closed: bounds what a reader keeps. */
#define GLYD_DEFLATE_TOKENS_MAX (1u << 20)

/* Below 256: a literal; else length << 16 | distance. */
typedef uint32_t glyd_deflate_token;

GLYD_INLINE uint32_t glyd_deflate_token_size(glyd_deflate_token t) { return t < 256 ? 1 : t >> 16; }

/* An item of a dynamic block's header: a length, or a repeat with its count. */
typedef struct glyd_deflate_item {
  uint8_t symbol; /* 0 … 18 */
  uint8_t extra;  /* value of the bits after it */
} glyd_deflate_item;

/* The header of a block. */
typedef struct glyd_deflate_block {
  uint32_t type, is_last;
  uint32_t n_tokens; /* but the end; of a stored block its bytes */
  uint32_t padding;  /* bits before the length of a stored block */
  uint32_t n_litlens, n_distances, n_header_codes, n_items;
  uint8_t lengths[GLYD_DEFLATE_LENGTHS];             /* of litlens, then of distances */
  uint8_t header_lengths[GLYD_DEFLATE_HEADER_CODES]; /* by symbol */
  glyd_deflate_item items[GLYD_DEFLATE_LENGTHS];
} glyd_deflate_block;

/* In which order a header gives the lengths of its own codes. */
extern const uint8_t glyd_deflate_header_order[GLYD_DEFLATE_HEADER_CODES];

/* Bits after a header symbol. */
GLYD_INLINE unsigned glyd_deflate_item_bits(unsigned symbol) {
  return symbol < 16 ? 0 : symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
}

/* Code number, extra bits and their value of a length 3 … 258. */
GLYD_INLINE unsigned glyd_deflate_length_code(uint32_t length, unsigned *bits, uint32_t *extra) {
  const uint32_t v = length - GLYD_DEFLATE_MATCH_MIN;
  *bits = 0;
  *extra = 0;
  if (length == GLYD_DEFLATE_MATCH_MAX) return 285;
  if (v < 8) return 257 + v;
  *bits = glyd_log2_32(v) - 2;
  *extra = v & ((1u << *bits) - 1);
  return 257 + 4 * *bits + (v >> *bits);
}

/* The same of a distance 1 … 32768. */
GLYD_INLINE unsigned glyd_deflate_distance_code(uint32_t distance, unsigned *bits, uint32_t *extra) {
  const uint32_t v = distance - 1;
  *bits = 0;
  *extra = 0;
  if (v < 4) return v;
  *bits = glyd_log2_32(v) - 1;
  *extra = v & ((1u << *bits) - 1);
  return 2 * *bits + (v >> *bits);
}

#endif

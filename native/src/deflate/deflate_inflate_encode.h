/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Reading streams of RFC 1951 to content and tokens, block by block. Only
 * writers need that: readers make streams from content.
 */
#ifndef GLYD_DEFLATE_INFLATE_ENCODE_H
#define GLYD_DEFLATE_INFLATE_ENCODE_H

#include "deflate/deflate_common.h"

typedef enum glyd_inflate_result {
  GLYD_INFLATE_OK,
  GLYD_INFLATE_SHORT,   /* the input ends inside the block */
  GLYD_INFLATE_INVALID, /* it is none, or one that no description can give */
  GLYD_INFLATE_FULL     /* no room for its content */
} glyd_inflate_result;

typedef struct glyd_inflate_code {
  uint16_t fast[1u << 10]; /* by the next 10 bits: symbol << 4 | length; 0: longer */
  uint16_t first[GLYD_DEFLATE_CODE_MAX + 2], used[GLYD_DEFLATE_CODE_MAX + 2], index[GLYD_DEFLATE_CODE_MAX + 2];
  uint16_t symbols[288];
} glyd_inflate_code;

typedef struct glyd_inflate {
  const uint8_t *in;
  size_t len;
  uint64_t bit; /* place in the input; after a block: its end */
  uint8_t *out;
  size_t at, cap; /* content so far, and room for it */
  glyd_inflate_code litlens, distances;
} glyd_inflate;

void glyd_inflate_begin(glyd_inflate *s, const uint8_t *in, size_t len, uint8_t *out, size_t cap);

/* Read a block. tokens: room for GLYD_DEFLATE_TOKENS_MAX, or NULL. What fails changes nothing but content past at. */
glyd_inflate_result glyd_inflate_block(glyd_inflate *s, glyd_deflate_block *block, glyd_deflate_token *tokens);

#endif

/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * What zlib would do next: its search for matches (spec.md), so that only
 * tokens on which an encoder differs need to be stored.
 */
#ifndef GLYD_DEFLATE_MODEL_H
#define GLYD_DEFLATE_MODEL_H

#include "deflate/deflate_common.h"

#define GLYD_DEFLATE_LITERALS 0u /* level: no matches */
#define GLYD_DEFLATE_RUNS 10u    /* level: matches of distance 1 */
#define GLYD_DEFLATE_LEVELS 11u

/* How a stream was made. */
typedef struct glyd_deflate_settings {
  uint8_t level;       /* 1 … 9: zlib's; GLYD_DEFLATE_LITERALS, GLYD_DEFLATE_RUNS */
  uint8_t is_filtered; /* 1: matches of up to 5 bytes are not taken */
  uint8_t memory;      /* 1 … 9, zlib's memLevel: size of the hash table and of blocks */
  uint8_t window_log;  /* 9 … 15 */
  uint8_t is_gzip;     /* 1: blocks end by the rule of the gzip program */
} glyd_deflate_settings;

typedef struct glyd_deflate_model {
  glyd_deflate_settings settings;
  const uint8_t *in;
  uint32_t n;
  uint32_t good, lazy, nice, chain; /* of the level */
  uint32_t hash_shift, hash_mask, window_mask, reach;
  uint32_t inserted;               /* positions below have been seen */
  int has_match;                   /* match is that of the next position */
  glyd_deflate_token match, later; /* 0: none; later: of the position after the next */
  uint64_t steps;                  /* candidates looked at: bounds the work */
  uint32_t head[1u << 16];
  uint32_t before[GLYD_DEFLATE_WINDOW]; /* by position: the one before it with its hash; 0: none */
} glyd_deflate_model;

/* Once, before the first content. */
void glyd_deflate_model_init(glyd_deflate_model *m);

/* Begin with the content in[0..n), n < 2^31, and end with it: work in proportion to what was looked at. */
void glyd_deflate_model_begin(glyd_deflate_model *m, const glyd_deflate_settings *settings, const uint8_t *in,
                              uint32_t n);
void glyd_deflate_model_end(glyd_deflate_model *m);

/* The next token; at < n. */
glyd_deflate_token glyd_deflate_model_predict(glyd_deflate_model *m, uint32_t at);

/* The token that is there; predicted: what predict said. */
void glyd_deflate_model_accept(glyd_deflate_model *m, uint32_t at, glyd_deflate_token predicted,
                               glyd_deflate_token token);

/* Bytes of a stored block went by. */
void glyd_deflate_model_skip(glyd_deflate_model *m);

/* The k-th nearest match (from 0) of at least so many bytes: its distance, or 0. */
uint32_t glyd_deflate_model_find(glyd_deflate_model *m, uint32_t at, uint32_t length, uint32_t k);

/* Where in that order a distance is; UINT32_MAX: it is not found there. */
uint32_t glyd_deflate_model_rank(glyd_deflate_model *m, uint32_t at, uint32_t length, uint32_t distance);

/* Tokens after which a block ends. */
uint32_t glyd_deflate_model_block_tokens(const glyd_deflate_settings *settings);

/* The gzip program ends a block early that compresses well and has few matches, asked after every
 * 4,096 tokens: size is the content of the block so far. */
int glyd_deflate_model_block_ends(const glyd_deflate_settings *settings, const glyd_deflate_token *tokens, uint32_t n,
                                  uint64_t size);

#endif

/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Texts of a record segment that are coded as one, for what they have in common.
 */
#ifndef GLYD_SEGMENT_POOL_ENCODE_H
#define GLYD_SEGMENT_POOL_ENCODE_H

#include <stddef.h>
#include <stdint.h>

typedef struct glyd_pool_text {
  const uint8_t *data; /* in the pool's memory */
  size_t n;
  size_t before;   /* bytes of other streams that were written before it */
  uint32_t shared; /* samples that it has in common with other texts */
  int pooled;
} glyd_pool_text;

typedef struct glyd_text_pool {
  uint8_t *bytes; /* of all texts, in their order */
  size_t n, cap;
  glyd_pool_text *texts;
  uint32_t n_texts, cap_texts;
  uint32_t *seen; /* samples: where each was seen last */
} glyd_text_pool;

/* Bytes of memory, aligned to 64, for content of at most n bytes. */
uint64_t glyd_segment_pool_memory(uint64_t n);

void glyd_segment_pool_init(glyd_text_pool *pool, void *memory, uint64_t n);

/* Add a text. 0: no room. */
int glyd_segment_pool_add(glyd_text_pool *pool, const uint8_t *data, size_t n, size_t before);

/* Choose the texts that are to be coded as one; returns how many bytes they have, 0: none. */
size_t glyd_segment_pool_choose(glyd_text_pool *pool);

#endif

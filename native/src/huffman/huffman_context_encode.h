/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Writing fine planes (spec.md, "Fine planes").
 */
#ifndef GLYD_HUFFMAN_CONTEXT_ENCODE_H
#define GLYD_HUFFMAN_CONTEXT_ENCODE_H

#include "huffman/huffman_common.h"
#include "huffman/huffman_encode.h"

/* Codes of a plane by context; also the "last tables" of a kind of fine plane. */
typedef struct glyd_huffman_context_codes {
  glyd_huffman_code code[GLYD_CONTEXTS_TABLES_MAX]; /* valid 2: of one symbol, in no bits */
  uint8_t map[GLYD_CONTEXTS_MAX];                   /* context: number of its code */
  unsigned tables;                                  /* 0: none yet; set it at the start of a segment */
  int mixed;                                        /* some contexts are given */
} glyd_huffman_context_codes;

#define GLYD_CONTEXTS_CLUSTERS 16u /* to begin with */

typedef struct glyd_context_work {
  uint32_t counts[GLYD_CONTEXTS_MAX][256]; /* by context, then symbol */
  uint32_t totals[GLYD_CONTEXTS_MAX];      /* by context */
  uint32_t sums[GLYD_CONTEXTS_CLUSTERS][256];
  uint32_t prices[GLYD_CONTEXTS_CLUSTERS][256];
  uint64_t joined[GLYD_CONTEXTS_CLUSTERS][GLYD_CONTEXTS_CLUSTERS]; /* bits of two clusters in one code */
  glyd_huffman_context_codes fresh, best, changed;
} glyd_context_work;

/* Write the fine plane of n (at most 2^18) bytes at in; returns the end. how:
 * GLYD_CONTEXTS_ARE_…; contexts: one for each byte, below GLYD_CONTEXTS_GIVEN where
 * they are given, 0 or GLYD_CONTEXTS_LISTED where some are; these are used where they
 * save more than price bytes. most: tables, at most. Else as glyd_huffman_encode_plane. */
uint8_t *glyd_huffman_encode_fine_plane(unsigned cpu, uint8_t *out, const uint8_t *in, size_t n, int how,
                                        const uint8_t *contexts, uint64_t price, unsigned most, glyd_huffman_code *last,
                                        glyd_huffman_context_codes *last_contexts, glyd_context_work *work);

#endif

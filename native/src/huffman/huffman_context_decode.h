/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Reading fine planes (spec.md, "Fine planes").
 */
#ifndef GLYD_HUFFMAN_CONTEXT_DECODE_H
#define GLYD_HUFFMAN_CONTEXT_DECODE_H

#include "huffman/huffman_decode.h"

/* Tables of a kind of fine plane; also its "last tables". Their entries are
 * apart: 1 << GLYD_HUFFMAN_BITS for each of the tables that there may be. */
typedef struct glyd_context_tables {
  uint32_t place[256]; /* of the table of a context: first entry << 8 | bits of its index */
  glyd_huffman_lengths code[GLYD_CONTEXTS_TABLES_MAX]; /* of each table; of no symbols where it is one symbol */
  unsigned n;                                          /* tables; 0: none yet, set it at the start of a segment */
} glyd_context_tables;

/* As glyd_huffman_decode_plane, of a fine plane with at most `most` tables.
 * given: the contexts, below GLYD_CONTEXTS_GIVEN, of n_contexts bytes are in out;
 * else that of a byte is the one before. A plane that needs more contexts is corrupt. */
glyd_status glyd_huffman_decode_fine_plane(unsigned cpu, glyd_huffman_table *table, glyd_context_tables *tables,
                                           uint16_t *entries, unsigned most, int given, size_t n_contexts,
                                           glyd_plane_input *in, uint8_t *out, size_t max_n, size_t slack,
                                           const uint8_t **data, size_t *n);

#endif

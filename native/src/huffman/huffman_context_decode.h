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
  uint32_t place[GLYD_CONTEXTS_MAX]; /* of the table of a context: first entry << 8 | bits of its index */
  glyd_huffman_lengths code[GLYD_CONTEXTS_TABLES_MAX]; /* of each table; of no symbols where it is one symbol */
  unsigned n;                                          /* tables; 0: none yet, set it at the start of a segment */
  int mixed;                                           /* some contexts are given */
} glyd_context_tables;

/* Whether the fine plane at input is one whose contexts are given for some bytes; *n: its
 * bytes. tables: those before. */
int glyd_huffman_wants_some(const glyd_plane_input *in, const glyd_context_tables *tables, size_t *n);

/* As glyd_huffman_decode_plane, of a fine plane with at most `most` tables. how:
 * GLYD_CONTEXTS_ARE_…; where they are given those of n_contexts bytes are in out, below
 * GLYD_CONTEXTS_GIVEN; where some are, 0 or GLYD_CONTEXTS_LISTED. A plane that needs
 * more of them is corrupt. */
glyd_status glyd_huffman_decode_fine_plane(unsigned cpu, glyd_huffman_table *table, glyd_context_tables *tables,
                                           uint16_t *entries, unsigned most, int how, size_t n_contexts,
                                           glyd_plane_input *in, uint8_t *out, size_t max_n, size_t slack,
                                           const uint8_t **data, size_t *n);

#endif

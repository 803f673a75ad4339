/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Columns of few values that stand side by side in a row as one piece of it: a
 * table has the text of all their values together. Flags and codes of one digit
 * are a fifth of the pieces then, and a row is as fast as it has few pieces.
 */
#ifndef GLYD_RECORD_FUSE_DECODE_H
#define GLYD_RECORD_FUSE_DECODE_H

#include "record/record_decode.h"
#include "record/record_rebuild.h"

/* Columns that will be one piece, if they are two or more. */
typedef struct glyd_record_group {
  uint32_t first, n; /* place of the first one's piece; columns */
  uint32_t entries;
  unsigned len; /* of the longest text */
  const glyd_record_field *fields[GLYD_RECORD_FUSED_MAX];
} glyd_record_group;

/* May a column with one table of slots, whose texts have so many bytes with what follows them, be in the group, and
 * in any? */
int glyd_record_group_takes(const glyd_record_group *group, const glyd_record_table *table, const glyd_record_field *f,
                            unsigned len);

/* The next column, whose piece will be at place `at`. */
void glyd_record_group_add(glyd_record_group *group, const glyd_record_field *f, unsigned len, uint32_t at);

/* Make one piece of those of the group, if more of the memory than `reserve` is left for it, and end the group. n:
 * pieces there are; returns how many there are then. */
uint32_t glyd_record_group_close(glyd_record_group *group, glyd_record_arena *arena, uint64_t reserve,
                                 glyd_record_table *table, glyd_record_piece *pieces, uint32_t n);

#endif

/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Match finder of level high: rows of the last places where five bytes stood,
 * with a byte of their hash each to tell strangers by, and lazy steps two bytes
 * on. Matches are at least 4 bytes long and reach back over the whole segment.
 */
#ifndef GLYD_MATCH_ROW_H
#define GLYD_MATCH_ROW_H

#include "match/match_common.h"

#define GLYD_MATCH_ROW_AHEAD 8 /* rows are fetched so many bytes before they are looked at */

typedef struct glyd_match_row {
  uint32_t *positions;                   /* rows of 16, the last unused */
  uint8_t *tags;                         /* rows of 15 and the place of the latest */
  unsigned bits;                         /* log2 of the number of rows */
  unsigned cpu;                          /* GLYD_CPU_*; what is found does not depend on it */
  uint32_t repeat[3];                    /* last three different offsets */
  int literal;                           /* what a literal costs, in the units of gains */
  size_t next;                           /* first position that is not in its row */
  uint32_t hashes[GLYD_MATCH_ROW_AHEAD]; /* of the positions from next on */
} glyd_match_row;

/* Bytes of memory, aligned to 64, for segments of at most segment_size bytes. */
size_t glyd_match_row_workspace(uint64_t segment_size);

/* Start a segment of len bytes; memory as glyd_match_row_workspace(len or more) says. */
void glyd_match_row_reset(glyd_match_row *m, unsigned cpu, void *memory, size_t len);

/* From now on literals cost as much as these n, n > 0, that take so many bits. */
void glyd_match_row_price(glyd_match_row *m, uint64_t bits, size_t n);

/* As glyd_match_double_parse. */
size_t glyd_match_row_parse(glyd_match_row *m, const uint8_t *segment, size_t start, size_t end, glyd_sequence *seqs);

/* As glyd_match_double_skip. */
void glyd_match_row_skip(glyd_match_row *m, const uint8_t *segment, size_t from, size_t to, size_t segment_len,
                         uint32_t offset);

/* As glyd_match_double_prime. */
void glyd_match_row_prime(glyd_match_row *m, const uint8_t *segment, size_t to);

#endif

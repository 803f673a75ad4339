/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Match finder of level max: two hash tables (8 and 5 bytes), a lazy step,
 * repeat offsets. Matches are at least 4 bytes long and reach back at most
 * 2^22 - 1 bytes.
 */
#ifndef GLYD_MATCH_DOUBLE_H
#define GLYD_MATCH_DOUBLE_H

#include "match/match_common.h"

typedef struct glyd_match_double {
  uint32_t *long_table; /* entry: position (low 22 bits) << 10 | tag, see match_double.c */
  uint32_t *short_table;
  unsigned long_bits;
  unsigned short_bits;
  unsigned cpu;       /* GLYD_CPU_*; what is found does not depend on it */
  uint32_t repeat[2]; /* last two different offsets */
} glyd_match_double;

/* Bytes of memory for segments of at most segment_size bytes. */
size_t glyd_match_double_workspace(uint64_t segment_size);

/* Start a segment of len bytes; memory as glyd_match_double_workspace(len or more) says. */
void glyd_match_double_reset(glyd_match_double *m, unsigned cpu, void *memory, size_t len);

/* Parse [start, end) of the segment; blocks must be parsed in order. Matches
 * reach back to segment but end at end. seqs has room for (end - start) / 4 + 1.
 * Returns the number of sequences; what they leave of the block are literals. */
size_t glyd_match_double_parse(glyd_match_double *m, const uint8_t *segment, size_t start, size_t end,
                               glyd_sequence *seqs);

/* Take [from, to), which another finder has matched at this offset, as known:
 * content to copy from later, and the offset as the last used. */
void glyd_match_double_skip(glyd_match_double *m, const uint8_t *segment, size_t from, size_t to, size_t segment_len,
                            uint32_t offset);

/* Take [0, to), which the reader has before the content, as known. */
void glyd_match_double_prime(glyd_match_double *m, const uint8_t *segment, size_t to);

#endif

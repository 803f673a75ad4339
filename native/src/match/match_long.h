/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Finder of long matches far back, over a whole segment. A rolling hash of the
 * last 64 bytes marks about one position in 128 as an anchor, by content: the
 * same 64 bytes are an anchor wherever they are. Only anchors are kept, and
 * what two of them have in common is compared byte by byte.
 */
#ifndef GLYD_MATCH_LONG_H
#define GLYD_MATCH_LONG_H

#include "match/match_common.h"

#define GLYD_MATCH_LONG_MIN 64                    /* bytes of a match */
#define GLYD_MATCH_LONG_NEAREST ((size_t)1 << 20) /* nearer ones are left to other finders */
#define GLYD_MATCH_LONG_FARTHEST ((size_t)1 << 27)

typedef struct glyd_anchor {
  uint32_t position; /* after the 64 bytes; 0: none */
  uint32_t check;
} glyd_anchor;

typedef struct glyd_match_long {
  glyd_anchor *table;
  unsigned bits;
  uint64_t hash; /* of the bytes before the next block */
  uint64_t gear[256];
} glyd_match_long;

typedef struct glyd_long_match {
  size_t position, length, offset;
} glyd_long_match;

/* Bytes of memory for segments of at most segment_size bytes. */
size_t glyd_match_long_workspace(uint64_t segment_size);

/* Start a segment of len bytes, below 2^32. */
void glyd_match_long_reset(glyd_match_long *m, void *memory, size_t len);

/* Matches in [start, end) of the segment, apart and in order; blocks come in
 * order. matches has room for (end - start) / GLYD_MATCH_LONG_MIN. Returns how
 * many there are. */
size_t glyd_match_long_find(glyd_match_long *m, const uint8_t *segment, size_t start, size_t end,
                            glyd_long_match *matches);

#endif

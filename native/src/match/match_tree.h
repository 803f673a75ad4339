/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Match finder of level ultra: the places of a segment in binary trees, one for
 * each hash of four bytes, ordered by the bytes from there on. Walking down one
 * finds for every length the latest place that matches for so long, and makes
 * the current place the new root.
 */
#ifndef GLYD_MATCH_TREE_H
#define GLYD_MATCH_TREE_H

#include "match/match_common.h"

#define GLYD_MATCH_TREE_NICE 256 /* longer matches end a search; all of it is compared nevertheless */
#define GLYD_MATCH_TREE_MOST 32  /* matches of one place */

typedef struct glyd_tree_match {
  uint32_t length, offset;
} glyd_tree_match;

typedef struct glyd_match_tree {
  uint32_t *roots;       /* position + 1 of the latest place, 0: none */
  uint32_t *short_table; /* the same for three bytes */
  uint32_t *children;    /* two a position: the places with smaller and larger bytes */
  unsigned bits, short_bits;
  unsigned depth; /* places looked at in one search */
  unsigned cpu;
  size_t end; /* bytes of the segment */
} glyd_match_tree;

/* Bytes of memory, aligned to 64, for segments of at most segment_size bytes. */
uint64_t glyd_match_tree_workspace(uint64_t segment_size);

/* Start a segment of len bytes; memory as glyd_match_tree_workspace(segment_size >= len) says. */
void glyd_match_tree_reset(glyd_match_tree *m, unsigned cpu, void *memory, size_t len, unsigned depth);

/* Matches of [start, end) that end at end or before: those of position p are
 * at[p - start] … at[p - start + 1] of matches, by length, the longest last. Positions inside a match
 * of GLYD_MATCH_TREE_NICE or more have none. at has room for end - start + 1,
 * matches for most, at least end - start. */
void glyd_match_tree_find(const glyd_match_tree *m, const uint8_t *segment, size_t start, size_t end,
                          glyd_tree_match *matches, size_t most, uint32_t *at);

/* Take [0, to), which the reader has before the content, as known. */
void glyd_match_tree_prime(const glyd_match_tree *m, const uint8_t *segment, size_t to);

#endif

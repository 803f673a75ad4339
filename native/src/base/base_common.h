/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * What writers and readers of base segments share: copies, and the excerpts of
 * the base that lie before the rest (spec.md).
 */
#ifndef GLYD_BASE_COMMON_H
#define GLYD_BASE_COMMON_H

#include "common/mem.h"

#define GLYD_BASE_COPY_MIN 16u  /* bytes of a copy; so there are few, whatever a payload says */
#define GLYD_BASE_GROUP 4096u   /* copies whose numbers are stored together */
#define GLYD_BASE_NUMBER_MAX 5u /* bytes of a gap or length: below 2^35 */
#define GLYD_BASE_PLACE_MAX 10u

/* Planes of a group; each has its own "last table" (huffman/spec.md). */
enum { GLYD_BASE_PLANE_GAPS, GLYD_BASE_PLANE_LENGTHS, GLYD_BASE_PLANE_PLACES, GLYD_BASE_PLANES };

/* gap bytes of the rest, then length bytes of the base from position on. */
typedef struct glyd_base_copy {
  uint64_t position;
  uint32_t gap;
  uint32_t length;
} glyd_base_copy;

/* A shift is how far behind its place in the content a copy's place in the base
 * is, modulo 2^64. The last ones that differ are kept, the last used first. */
#define GLYD_BASE_SHIFTS 3u
typedef struct glyd_base_shifts {
  uint64_t slot[GLYD_BASE_SHIFTS]; /* zeros at the start of a segment */
} glyd_base_shifts;

/* The shift becomes the first; returns the slot it had, or GLYD_BASE_SHIFTS. */
static inline unsigned glyd_base_shifts_use(glyd_base_shifts *s, uint64_t shift) {
  unsigned slot = 0;
  while (slot < GLYD_BASE_SHIFTS && s->slot[slot] != shift) slot++;
  for (unsigned k = slot < GLYD_BASE_SHIFTS ? slot : GLYD_BASE_SHIFTS - 1; k > 0; k--) s->slot[k] = s->slot[k - 1];
  s->slot[0] = shift;
  return slot;
}

static inline uint64_t glyd_base_zigzag(uint64_t d) { return (d << 1) ^ (0 - (d >> 63)); }
static inline uint64_t glyd_base_unzigzag(uint64_t v) { return (v >> 1) ^ (0 - (v & 1)); }

/* How much of the base lies around a gap: two bytes of the payload. */
typedef struct glyd_base_reach {
  uint8_t around; /* log of the bytes on either side of a gap, 0 … 20 */
  uint8_t gap;    /* log of the longest gap in the base that is taken whole, 0 … 20 */
} glyd_base_reach;
#define GLYD_BASE_REACH_MAX 20u

#endif

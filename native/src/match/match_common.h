/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * What match finders share.
 */
#ifndef GLYD_MATCH_COMMON_H
#define GLYD_MATCH_COMMON_H

#include "common/mem.h"

/* Literals, then a match. */
typedef struct glyd_sequence {
  uint32_t literals; /* bytes before the match */
  uint32_t length;   /* of the match */
  uint32_t offset;   /* back from where the match is copied to */
} glyd_sequence;

/* How many bytes at a equal those at b, b < a, before end. */
GLYD_INLINE size_t glyd_match_count(const uint8_t *a, const uint8_t *b, const uint8_t *end) {
  const uint8_t *const start = a;
  while (end - a >= 8) {
    uint64_t x = glyd_load64(a) ^ glyd_load64(b);
    if (x != 0) return (size_t)(a - start) + (glyd_ctz64(x) >> 3);
    a += 8;
    b += 8;
  }
  while (a < end && *a == *b) {
    a++;
    b++;
  }
  return (size_t)(a - start);
}

/* Repeat slot of the offset (3: none), which moves to the front. */
GLYD_INLINE unsigned glyd_match_use_offset(uint32_t repeat[3], uint32_t offset) {
  const uint32_t r0 = repeat[0], r1 = repeat[1], r2 = repeat[2];
  unsigned slot = offset == r2 ? 2 : 3;
  slot = offset == r1 ? 1 : slot;
  slot = offset == r0 ? 0 : slot;
  repeat[2] = slot >= 2 ? r1 : r2;
  repeat[1] = slot >= 1 ? r0 : r1;
  repeat[0] = offset;
  return slot;
}

#endif

/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Hash tables of the plain levels: buckets of one or two 32-bit entries.
 *
 * An entry is the low 22 bits of a position under 10 bits of its hash. The
 * difference of a new entry and an old one is then the distance when the hash
 * bits agree and a number above 2^22 when they do not, so one subtraction and
 * one comparison throw out strangers and matches beyond the window without
 * touching the content. Positions wrap every 4 MiB: an aliased entry is only
 * ever a wrong guess, since content decides; matches across a wrap are lost.
 */
#ifndef GLYD_MATCH_BUCKET_H
#define GLYD_MATCH_BUCKET_H

#include "common/mem.h"

#define GLYD_BUCKET_POS_BITS 22
#define GLYD_BUCKET_POS_MASK ((1u << GLYD_BUCKET_POS_BITS) - 1)
#define GLYD_BUCKET_TAG_BITS (32 - GLYD_BUCKET_POS_BITS)
/* Largest window: a distance must stay below 2^22 to tell it from other tags. */
#define GLYD_BUCKET_WINDOW_MAX ((1u << GLYD_BUCKET_POS_BITS) - 1)

/* Hash of the low `bytes` (4 … 8) bytes of v; the high bits are the good ones. */
GLYD_INLINE uint64_t glyd_bucket_hash(uint64_t v, unsigned bytes) {
  return (v << (64 - 8 * bytes)) * 0x9E3779B185EBCA87u;
}

GLYD_INLINE uint32_t glyd_bucket_index(uint64_t hash, unsigned log) { return (uint32_t)(hash >> (64 - log)); }

/* Entry of the position pos with this hash. */
GLYD_INLINE uint32_t glyd_bucket_entry(uint64_t hash, unsigned log, size_t pos) {
  return ((uint32_t)(hash >> (64 - GLYD_BUCKET_TAG_BITS - log)) << GLYD_BUCKET_POS_BITS) |
         ((uint32_t)pos & GLYD_BUCKET_POS_MASK);
}

/* Equal bytes at a and b, b before a; reads up to end. */
GLYD_INLINE size_t glyd_bucket_count(const uint8_t *a, const uint8_t *b, const uint8_t *end) {
  const uint8_t *start = a;
  while (end - a >= 8) {
    uint64_t x = glyd_load64(a) ^ glyd_load64(b);
    if (x) return (size_t)(a - start) + (glyd_ctz64(x) >> 3);
    a += 8;
    b += 8;
  }
  while (a < end && *a == *b) {
    a++;
    b++;
  }
  return (size_t)(a - start);
}

#endif

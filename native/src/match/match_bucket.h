/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Hash tables of the plain levels: one 32-bit entry a place.
 *
 * An entry is the position plus 10 bits of its hash in the top bits. The
 * difference of a new entry and an old one is then the distance when the hash
 * bits agree and, but for distances of 4 MiB and more, a number above 2^22 when
 * they do not: one subtraction and one comparison throw out strangers and
 * matches beyond the window without touching the content. Content decides in
 * the end, so the rest is only ever a wrong guess.
 */
#ifndef GLYD_MATCH_BUCKET_H
#define GLYD_MATCH_BUCKET_H

#include "common/mem.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define GLYD_BUCKET_TAG_BITS 10
/* Largest window: a distance must stay below the tag. */
#define GLYD_BUCKET_WINDOW_MAX ((1u << (32 - GLYD_BUCKET_TAG_BITS)) - 1)

/* Hash of the low `bytes` (4 … 8) bytes of v; the high bits are the good ones. */
GLYD_INLINE uint64_t glyd_bucket_hash(uint64_t v, unsigned bytes) {
  return (v << (64 - 8 * bytes)) * 0x9E3779B185EBCA87u;
}

/* Entry of the position pos with this hash. The tag lies below the highest
 * GLYD_BUCKET_LOG_MAX bits of the hash, so it never repeats index bits. */
#define GLYD_BUCKET_LOG_MAX 18
GLYD_INLINE uint32_t glyd_bucket_entry(uint64_t hash, size_t pos) {
  return ((uint32_t)(hash >> (64 - GLYD_BUCKET_LOG_MAX - 32)) & ~GLYD_BUCKET_WINDOW_MAX) + (uint32_t)pos;
}

/* Bit i: byte i of a and b is equal, of 16. */
GLYD_INLINE uint32_t glyd_bucket_equal16(const uint8_t *a, const uint8_t *b) {
#ifdef __SSE2__
  __m128i x = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)a),
                             _mm_loadu_si128((const __m128i *)(const void *)b));
  return (uint32_t)_mm_movemask_epi8(x);
#else
  uint32_t mask = 0;
  for (unsigned i = 0; i < 16; i++) mask |= (uint32_t)(a[i] == b[i]) << i;
  return mask;
#endif
}

/* Equal bytes at a and b, at most 16. */
GLYD_INLINE size_t glyd_bucket_count16(const uint8_t *a, const uint8_t *b) {
#ifdef __SSE2__
  return glyd_ctz64(~(uint64_t)glyd_bucket_equal16(a, b) | 0x10000u);
#else
  uint64_t x = glyd_load64(a) ^ glyd_load64(b), y = glyd_load64(a + 8) ^ glyd_load64(b + 8);
  return x ? glyd_ctz64(x) >> 3 : y ? 8 + (glyd_ctz64(y) >> 3) : 16;
#endif
}

/* Equal bytes at a and b, b before a; reads a up to end only. The steps do not
 * depend on each other's count, only on the branch. */
GLYD_INLINE size_t glyd_bucket_count(const uint8_t *a, const uint8_t *b, const uint8_t *end) {
  const uint8_t *start = a;
  while (end - a >= 16) {
    uint64_t x = glyd_load64(a) ^ glyd_load64(b), y = glyd_load64(a + 8) ^ glyd_load64(b + 8);
    if (x | y) return (size_t)(a - start) + (x ? glyd_ctz64(x) >> 3 : 8 + (glyd_ctz64(y) >> 3));
    a += 16;
    b += 16;
  }
  while (a < end && *a == *b) {
    a++;
    b++;
  }
  return (size_t)(a - start);
}

#endif

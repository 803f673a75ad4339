/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "filter/filter_decode_avx2.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "filter/filter_code.h"

#define TARGET __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))

TARGET static inline __m256i equal(__m256i v, unsigned bits, unsigned value) {
  return _mm256_cmpeq_epi8(_mm256_and_si256(v, _mm256_set1_epi8((char)bits)), _mm256_set1_epi8((char)value));
}

TARGET static inline uint64_t mask(__m256i v, unsigned at) { return (uint64_t)(uint32_t)_mm256_movemask_epi8(v) << at; }

TARGET static size_t find(const uint8_t *p, size_t steps, glyd_filter_x86_list *list) {
  size_t n = 0;
  for (uint32_t at = 0; at < steps * GLYD_FILTER_X86_STEP; at += GLYD_FILTER_X86_STEP) {
    glyd_filter_x86_places m = {0, 0, 0};
    for (unsigned i = 0; i < GLYD_FILTER_X86_STEP; i += 32) {
      const uint8_t *const q = p + at + i;
      const __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)q);
      const __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(q + 1));
      const __m256i c = _mm256_loadu_si256((const __m256i *)(const void *)(q + 2));
      const __m256i moves = _mm256_or_si256(_mm256_cmpeq_epi8(b, _mm256_set1_epi8((char)0x8B)),
                                            _mm256_cmpeq_epi8(b, _mm256_set1_epi8((char)0x8D)));
      m.all |= mask(equal(a, 0xFE, 0xE8), i);
      m.two |= mask(_mm256_and_si256(_mm256_cmpeq_epi8(a, _mm256_set1_epi8(0x0F)), equal(b, 0xF0, 0x80)), i);
      m.three |= mask(_mm256_and_si256(equal(a, 0xFB, 0x48), _mm256_and_si256(moves, equal(c, 0xC7, 0x05))), i);
    }
    m.all |= m.two | m.three;
    n = glyd_filter_x86_append(m, at, list->place, n);
  }
  return n;
}

TARGET void glyd_filter_undo_x86_avx2(uint8_t *data, size_t n) { glyd_filter_x86_walk(data, n, 0, find); }

#endif

/* A translation unit must declare something. */
typedef int glyd_filter_decode_avx2_unit;

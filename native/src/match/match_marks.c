/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "match/match_marks.h"

#include "common/cpu.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Odd, with bits spread evenly: the upper bits of a product depend on all bits
 * of the four bytes. */
#define LOW 0x9E3779B1u
#define HIGH 0x85EBCA77u

/* Zeros give 0, which is no mark: they would be one in each place. */
GLYD_INLINE unsigned is_mark(const uint8_t *p, uint32_t below) {
  return (glyd_load32(p) * LOW + glyd_load32(p + 4) * HIGH + 0x80000000u) < below;
}

uint64_t glyd_match_marks_first(const uint8_t *p, unsigned n, unsigned spacing_log) {
  const uint32_t below = (uint32_t)1 << (32 - spacing_log);
  uint64_t marks = 0;
  for (unsigned i = 0; i < n; i++) marks |= (uint64_t)is_mark(p + i, below) << i;
  return marks;
}

/* Put the places of the bits behind the n that are listed. There is seldom more than one: that takes no branch. */
GLYD_INLINE size_t list_bits(uint64_t marks, size_t at, uint16_t *places, size_t n) {
  places[n] = (uint16_t)(at + (marks ? glyd_ctz64(marks) : 0));
  n += marks != 0;
  for (marks &= marks - 1; marks; marks &= marks - 1) places[n++] = (uint16_t)(at + glyd_ctz64(marks));
  return n;
}

#if defined(__x86_64__)
#define AVX2_CODE __attribute__((target("avx2,bmi,bmi2,lzcnt")))

/* Places p, p + 4, … p + 28. */
AVX2_CODE static inline __m256i marks_by_fours(const uint8_t *p, __m256i below) {
  const __m256i low = _mm256_loadu_si256((const void *)p), high = _mm256_loadu_si256((const void *)(p + 4));
  const __m256i h = _mm256_add_epi32(_mm256_mullo_epi32(low, _mm256_set1_epi32((int)LOW)),
                                     _mm256_mullo_epi32(high, _mm256_set1_epi32((int)HIGH)));
  return _mm256_cmpgt_epi32(below, h);
}

AVX2_CODE static inline uint64_t marks_avx2(const uint8_t *p, unsigned spacing_log) {
  const __m256i below = _mm256_set1_epi32((int)(0x80000000u + ((uint32_t)1 << (32 - spacing_log))));
  uint64_t marks = 0;
  for (unsigned half = 0; half < 64; half += 32) {
    /* byte k of each 32-bit lane for place 4 lane + k */
    const __m256i byte = _mm256_set1_epi32(0xFF);
    __m256i m = _mm256_and_si256(marks_by_fours(p + half, below), byte);
    m = _mm256_or_si256(m, _mm256_and_si256(marks_by_fours(p + half + 1, below), _mm256_slli_epi32(byte, 8)));
    m = _mm256_or_si256(m, _mm256_and_si256(marks_by_fours(p + half + 2, below), _mm256_slli_epi32(byte, 16)));
    m = _mm256_or_si256(m, _mm256_and_si256(marks_by_fours(p + half + 3, below), _mm256_slli_epi32(byte, 24)));
    marks |= (uint64_t)(uint32_t)_mm256_movemask_epi8(m) << half;
  }
  return marks;
}

#define AHEAD 2048 /* bytes: callers use what was listed in between, which makes the processor's own guess late */

AVX2_CODE static size_t list_avx2(const uint8_t *p, size_t blocks, unsigned spacing_log, uint16_t *places) {
  size_t n = 0;
  for (size_t i = 0; i < blocks; i++) {
    __builtin_prefetch(p + i * GLYD_MARKS_AT_ONCE + AHEAD);
    n = list_bits(marks_avx2(p + i * GLYD_MARKS_AT_ONCE, spacing_log), i * GLYD_MARKS_AT_ONCE, places, n);
  }
  return n;
}

#define AVX512_CODE __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512vl,avx512vbmi2")))

/* Put the places of 32 bits behind the n that are listed, and anything behind these: at most 32 in all. */
AVX512_CODE static inline size_t list_32(uint32_t marks, __m512i at, uint16_t *places, size_t n) {
  _mm512_storeu_si512(places + n, _mm512_maskz_compress_epi16(marks, at));
  return n + (size_t)__builtin_popcount(marks);
}

/* No branch depends on where marks are: half of the blocks have one. */
AVX512_CODE static size_t list_avx512(const uint8_t *p, size_t blocks, unsigned spacing_log, uint16_t *places) {
  static const uint16_t first[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                     16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
  __m512i at = _mm512_loadu_si512(first);
  const __m512i half = _mm512_set1_epi16(32);
  size_t n = 0;
  for (size_t i = 0; i < blocks; i++) {
    __builtin_prefetch(p + i * GLYD_MARKS_AT_ONCE + AHEAD);
    const uint64_t marks = marks_avx2(p + i * GLYD_MARKS_AT_ONCE, spacing_log);
    n = list_32((uint32_t)marks, at, places, n);
    at = _mm512_add_epi16(at, half);
    n = list_32((uint32_t)(marks >> 32), at, places, n);
    at = _mm512_add_epi16(at, half);
  }
  return n;
}
#endif

uint64_t glyd_match_marks(unsigned cpu, const uint8_t *p, unsigned spacing_log) {
#if defined(__x86_64__)
  if (cpu & GLYD_CPU_AVX2) return marks_avx2(p, spacing_log);
#endif
  (void)cpu;
  return glyd_match_marks_first(p, 64, spacing_log);
}

size_t glyd_match_marks_list(unsigned cpu, const uint8_t *p, size_t blocks, unsigned spacing_log, uint16_t *places) {
#if defined(__x86_64__)
  if (cpu & GLYD_CPU_AVX512) return list_avx512(p, blocks, spacing_log, places);
  if (cpu & GLYD_CPU_AVX2) return list_avx2(p, blocks, spacing_log, places);
#endif
  (void)cpu;
  size_t n = 0;
  for (size_t i = 0; i < blocks; i++)
    n = list_bits(glyd_match_marks_first(p + i * GLYD_MARKS_AT_ONCE, 64, spacing_log), i * GLYD_MARKS_AT_ONCE, places,
                  n);
  return n;
}

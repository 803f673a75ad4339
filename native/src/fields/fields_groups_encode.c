/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "fields/fields_groups_encode.h"

#include "common/cpu.h"

#define FEW 4096u /* numbers for which the tables are not worth making */

/* Numbers i … n - 1, of which k go on at to. */
GLYD_INLINE size_t drop_zeros(uint8_t *to, uint8_t *bitmap, const uint8_t *numbers, size_t i, size_t n, size_t k,
                              const size_t p) {
  memset(bitmap + i / 8, 0, (n + 7) / 8 - i / 8);
  for (; i < n; i++) { /* k <= i: nothing is written past n numbers */
    unsigned is = 0;
    if (p == 1) {
      is = numbers[i] != 0;
      to[k] = (uint8_t)(numbers[i] - 1u);
    } else if (p == 2) {
      is = glyd_load16(numbers + 2 * i) != 0;
      glyd_store16(to + 2 * k, (uint16_t)(glyd_load16(numbers + 2 * i) - 1u));
    } else if (p == 4) {
      is = glyd_load32(numbers + 4 * i) != 0;
      glyd_store32(to + 4 * k, glyd_load32(numbers + 4 * i) - 1u);
    } else {
      is = glyd_load64(numbers + 8 * i) != 0;
      glyd_store64(to + 8 * k, glyd_load64(numbers + 8 * i) - 1u);
    }
    bitmap[i / 8] |= (uint8_t)(is << i % 8);
    k += is;
  }
  return k;
}

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,popcnt")))

static void make_picks(glyd_fields_picks *picks) {
  if (picks->made) return;
  picks->made = 1;
  memset(picks->of_2, 0, sizeof picks->of_2);
  memset(picks->of_4, 0, sizeof picks->of_4);
  for (unsigned b = 0; b < 256; b++) {
    unsigned n = 0;
    for (unsigned i = 0; i < 8; i++) {
      if (!(b >> i & 1)) continue;
      picks->of_2[b][2 * n] = (uint8_t)(2 * i);
      picks->of_2[b][2 * n + 1] = (uint8_t)(2 * i + 1);
      picks->of_4[b][n++] = (uint8_t)i;
    }
  }
}

/* Those of eight numbers whose bits are set; returns where the next one goes. */
AVX2 static inline uint8_t *put_2(const glyd_fields_picks *picks, uint8_t *to, __m128i numbers, unsigned bits) {
  const __m128i which = _mm_loadu_si128((const void *)picks->of_2[bits]);
  _mm_storeu_si128((void *)to, _mm_shuffle_epi8(numbers, which));
  return to + 2 * (size_t)__builtin_popcount(bits);
}

AVX2 static size_t split_2_avx2(const glyd_fields_picks *picks, uint8_t **to, const uint8_t *numbers,
                                const uint8_t *group, size_t n) {
  size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m128i which = _mm_loadu_si128((const void *)(group + i));
    const __m128i low = _mm_loadu_si128((const void *)(numbers + 2 * i));
    const __m128i high = _mm_loadu_si128((const void *)(numbers + 2 * i + 16));
    for (unsigned g = 0; g < GLYD_FIELDS_GROUPS_MAX; g++) {
      const unsigned bits = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(which, _mm_set1_epi8((char)g)));
      to[g] = put_2(picks, put_2(picks, to[g], low, bits & 255), high, bits >> 8);
    }
  }
  return i;
}

AVX2 static size_t drop_zeros_2_avx2(const glyd_fields_picks *picks, uint8_t *to, uint8_t *bitmap,
                                     const uint8_t *numbers, size_t n) {
  uint8_t *const start = to;
  const __m128i zero = _mm_setzero_si128(), one = _mm_set1_epi16(1);
  size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m128i low = _mm_loadu_si128((const void *)(numbers + 2 * i));
    const __m128i high = _mm_loadu_si128((const void *)(numbers + 2 * i + 16));
    const __m128i zeros = _mm_packs_epi16(_mm_cmpeq_epi16(low, zero), _mm_cmpeq_epi16(high, zero));
    const unsigned bits = ~(unsigned)_mm_movemask_epi8(zeros) & 0xFFFF;
    glyd_store16(bitmap + i / 8, (uint16_t)bits);
    to = put_2(picks, to, _mm_sub_epi16(low, one), bits & 255);
    to = put_2(picks, to, _mm_sub_epi16(high, one), bits >> 8);
  }
  return drop_zeros(start, bitmap, numbers, i, n, (size_t)(to - start) / 2, 2);
}

AVX2 static size_t drop_zeros_4_avx2(const glyd_fields_picks *picks, uint8_t *to, uint8_t *bitmap,
                                     const uint8_t *numbers, size_t n) {
  uint8_t *const start = to;
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256i v = _mm256_loadu_si256((const void *)(numbers + 4 * i));
    const __m256i zeros = _mm256_cmpeq_epi32(v, _mm256_setzero_si256());
    const unsigned bits = ~(unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(zeros)) & 255;
    const __m256i which = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)picks->of_4[bits]));
    bitmap[i / 8] = (uint8_t)bits;
    _mm256_storeu_si256((void *)to, _mm256_permutevar8x32_epi32(_mm256_sub_epi32(v, _mm256_set1_epi32(1)), which));
    to += 4 * (size_t)__builtin_popcount(bits);
  }
  return drop_zeros(start, bitmap, numbers, i, n, (size_t)(to - start) / 4, 4);
}
#endif

void glyd_fields_groups_split(unsigned cpu, glyd_fields_picks *picks, uint8_t *const to[GLYD_FIELDS_GROUPS_MAX],
                              const uint8_t *numbers, const uint8_t *group, size_t n) {
  uint8_t *next[GLYD_FIELDS_GROUPS_MAX];
  size_t i = 0;
  memcpy(next, to, sizeof next);
#if defined(__x86_64__)
  if ((cpu & GLYD_CPU_AVX2) && n >= FEW) {
    make_picks(picks);
    i = split_2_avx2(picks, next, numbers, group, n);
  }
#endif
  (void)cpu;
  (void)picks;
  uint64_t counts = 0;
  for (; i < n; i++) {
    const size_t k = glyd_fields_groups_next(&counts, group[i]);
    glyd_store16(next[group[i]] + 2 * k, glyd_load16(numbers + 2 * i));
  }
}

size_t glyd_fields_drop_zeros(unsigned cpu, glyd_fields_picks *picks, uint8_t *to, uint8_t *bitmap,
                              const uint8_t *numbers, size_t n, size_t period) {
#if defined(__x86_64__)
  if ((cpu & GLYD_CPU_AVX2) && n >= FEW && (period == 2 || period == 4)) {
    make_picks(picks);
    return period == 2 ? drop_zeros_2_avx2(picks, to, bitmap, numbers, n)
                       : drop_zeros_4_avx2(picks, to, bitmap, numbers, n);
  }
#endif
  (void)cpu;
  (void)picks;
  switch (period) {
  case 1: return drop_zeros(to, bitmap, numbers, 0, n, 0, 1);
  case 2: return drop_zeros(to, bitmap, numbers, 0, n, 0, 2);
  case 4: return drop_zeros(to, bitmap, numbers, 0, n, 0, 4);
  default: return drop_zeros(to, bitmap, numbers, 0, n, 0, 8);
  }
}

/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "fields/fields_join_decode.h"

#include "common/cpu.h"
#include "common/mem.h"

/* The sign back to its place: rotate h right by one bit if moved is 1. */
GLYD_INLINE uint32_t sign_back(uint32_t h, unsigned moved) { return (h >> moved | (h << 15 & (0u - moved))) & 0xFFFF; }

static void join_2(uint8_t *out, const uint8_t *lo, const uint8_t *hi, size_t n, unsigned moved) {
  for (size_t i = 0; i < n; i++) glyd_store16(out + 2 * i, (uint16_t)sign_back((uint32_t)hi[i] << 8 | lo[i], moved));
}

static void join_4(uint8_t *out, const uint8_t *const p[4], size_t from, size_t n, unsigned moved) {
  for (size_t i = from; i < n; i++) {
    const uint32_t h = sign_back((uint32_t)p[3][i] << 8 | p[2][i], moved);
    glyd_store32(out + 4 * i, h << 16 | (uint32_t)p[1][i] << 8 | p[0][i]);
  }
}

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2_INLINE static inline __attribute__((target("avx2"), always_inline))
#define AVX2 __attribute__((target("avx2")))

AVX2_INLINE __m256i load(const uint8_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
AVX2_INLINE void store(uint8_t *p, __m256i v) { _mm256_storeu_si256((__m256i *)p, v); }

/* 32 bytes of two planes as 16-bit numbers in order: a the first 16, b the others. */
AVX2_INLINE void pair(const uint8_t *lo, const uint8_t *hi, unsigned moved, __m256i *a, __m256i *b) {
  const __m256i l = _mm256_permute4x64_epi64(load(lo), 0xD8), h = _mm256_permute4x64_epi64(load(hi), 0xD8);
  *a = _mm256_unpacklo_epi8(l, h);
  *b = _mm256_unpackhi_epi8(l, h);
  if (moved) {
    *a = _mm256_or_si256(_mm256_srli_epi16(*a, 1), _mm256_slli_epi16(*a, 15));
    *b = _mm256_or_si256(_mm256_srli_epi16(*b, 1), _mm256_slli_epi16(*b, 15));
  }
}

AVX2 static void join_2_avx2(uint8_t *out, const uint8_t *lo, const uint8_t *hi, size_t n, unsigned moved) {
  size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    __m256i a, b;
    pair(lo + i, hi + i, moved, &a, &b);
    store(out + 2 * i, a);
    store(out + 2 * i + 32, b);
  }
  join_2(out + 2 * i, lo + i, hi + i, n - i, moved);
}

/* 16 numbers of 32 bits from their halves. */
AVX2_INLINE void put_halves(uint8_t *out, __m256i low, __m256i high) {
  low = _mm256_permute4x64_epi64(low, 0xD8);
  high = _mm256_permute4x64_epi64(high, 0xD8);
  store(out, _mm256_unpacklo_epi16(low, high));
  store(out + 32, _mm256_unpackhi_epi16(low, high));
}

AVX2 static void join_4_avx2(uint8_t *out, const uint8_t *const p[4], size_t n, unsigned moved) {
  size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    __m256i low_a, low_b, high_a, high_b;
    pair(p[0] + i, p[1] + i, 0, &low_a, &low_b);
    pair(p[2] + i, p[3] + i, moved, &high_a, &high_b);
    put_halves(out + 4 * i, low_a, high_a);
    put_halves(out + 4 * i + 64, low_b, high_b);
  }
  join_4(out, p, i, n, moved);
}
#endif

static void join_runs(const glyd_fields_layout *layout, uint8_t *out, const uint8_t *const *plane, size_t n) {
  const size_t period = layout->period;
  size_t at = 0;
  for (unsigned j = 0; j < layout->n_runs; j++) {
    const size_t run = layout->run[j];
    const uint8_t *from = plane[j];
    uint8_t *to = out + at;
    if (run == 1) {
      for (size_t i = 0; i < n; i++) to[i * period] = from[i];
    } else if (run == 32) { /* a call costs more than it copies */
      for (size_t i = 0; i < n; i++) memcpy(to + i * period, from + i * 32, 32);
    } else {
      for (size_t i = 0; i < n; i++) memcpy(to + i * period, from + i * run, run);
    }
    at += run;
  }
  for (size_t i = 0; i < n && layout->sign_moved; i++) {
    uint8_t *h = out + i * period + period - 2;
    glyd_store16(h, (uint16_t)sign_back(glyd_load16(h), 1));
  }
}

void glyd_fields_join(unsigned cpu, const glyd_fields_layout *layout, uint8_t *out,
                      const uint8_t *const plane[GLYD_FIELDS_RUNS_MAX], size_t n) {
  const unsigned moved = layout->sign_moved;
  switch (glyd_fields_shape(layout)) {
  case GLYD_FIELDS_SHAPE_2:
#if defined(__x86_64__)
    if (cpu & GLYD_CPU_AVX2) {
      join_2_avx2(out, plane[0], plane[1], n, moved);
      return;
    }
#endif
    join_2(out, plane[0], plane[1], n, moved);
    return;
  case GLYD_FIELDS_SHAPE_4:
#if defined(__x86_64__)
    if (cpu & GLYD_CPU_AVX2) {
      join_4_avx2(out, plane, n, moved);
      return;
    }
#endif
    join_4(out, plane, 0, n, moved);
    return;
  default: (void)cpu; join_runs(layout, out, plane, n);
  }
}

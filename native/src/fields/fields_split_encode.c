/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "fields/fields_split_encode.h"

#include "common/cpu.h"
#include "common/mem.h"

/* The sign to the end: rotate h left by one bit if moved is 1. */
GLYD_INLINE uint32_t move_sign(uint32_t h, unsigned moved) { return (h << moved | (h >> 15 & moved)) & 0xFFFF; }

static void split_2(uint8_t *lo, uint8_t *hi, const uint8_t *in, size_t from, size_t n, unsigned moved) {
  for (size_t i = from; i < n; i++) {
    const uint32_t h = move_sign(glyd_load16(in + 2 * i), moved);
    lo[i] = (uint8_t)h;
    hi[i] = (uint8_t)(h >> 8);
  }
}

static void split_4(uint8_t *const p[4], const uint8_t *in, size_t from, size_t n, unsigned moved) {
  for (size_t i = from; i < n; i++) {
    const uint32_t v = glyd_load32(in + 4 * i), h = move_sign(v >> 16, moved);
    p[0][i] = (uint8_t)v;
    p[1][i] = (uint8_t)(v >> 8);
    p[2][i] = (uint8_t)h;
    p[3][i] = (uint8_t)(h >> 8);
  }
}

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2_INLINE static inline __attribute__((target("avx2"), always_inline))
#define AVX2 __attribute__((target("avx2")))

AVX2_INLINE __m256i load(const uint8_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
AVX2_INLINE void store(uint8_t *p, __m256i v) { _mm256_storeu_si256((__m256i *)p, v); }

/* 32 numbers of 16 bits, a before b, as 32 low and 32 high bytes. */
AVX2_INLINE void put_pair(uint8_t *lo, uint8_t *hi, __m256i a, __m256i b, unsigned moved) {
  if (moved) {
    a = _mm256_or_si256(_mm256_slli_epi16(a, 1), _mm256_srli_epi16(a, 15));
    b = _mm256_or_si256(_mm256_slli_epi16(b, 1), _mm256_srli_epi16(b, 15));
  }
  const __m256i mask = _mm256_set1_epi16(0xFF);
  const __m256i l = _mm256_packus_epi16(_mm256_and_si256(a, mask), _mm256_and_si256(b, mask));
  const __m256i h = _mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
  store(lo, _mm256_permute4x64_epi64(l, 0xD8));
  store(hi, _mm256_permute4x64_epi64(h, 0xD8));
}

AVX2 static void split_2_avx2(uint8_t *lo, uint8_t *hi, const uint8_t *in, size_t n, unsigned moved) {
  size_t i = 0;
  for (; i + 32 <= n; i += 32) put_pair(lo + i, hi + i, load(in + 2 * i), load(in + 2 * i + 32), moved);
  split_2(lo, hi, in, i, n, moved);
}

/* The 16-bit halves of 16 numbers of 32 bits, in order. */
AVX2_INLINE void get_halves(const uint8_t *in, __m256i *low, __m256i *high) {
  const __m256i a = load(in), b = load(in + 32), mask = _mm256_set1_epi32(0xFFFF);
  *low = _mm256_permute4x64_epi64(_mm256_packus_epi32(_mm256_and_si256(a, mask), _mm256_and_si256(b, mask)), 0xD8);
  *high = _mm256_permute4x64_epi64(_mm256_packus_epi32(_mm256_srli_epi32(a, 16), _mm256_srli_epi32(b, 16)), 0xD8);
}

AVX2 static void split_4_avx2(uint8_t *const p[4], const uint8_t *in, size_t n, unsigned moved) {
  size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    __m256i low_a, low_b, high_a, high_b;
    get_halves(in + 4 * i, &low_a, &high_a);
    get_halves(in + 4 * i + 64, &low_b, &high_b);
    put_pair(p[0] + i, p[1] + i, low_a, low_b, 0);
    put_pair(p[2] + i, p[3] + i, high_a, high_b, moved);
  }
  split_4(p, in, i, n, moved);
}
#endif

static void split_runs(const glyd_fields_layout *layout, uint8_t *out, const uint8_t *in, size_t n) {
  const size_t period = layout->period;
  size_t at = 0;
  for (unsigned j = 0; j < layout->n_runs; j++) {
    const size_t run = layout->run[j];
    const uint8_t *from = in + at;
    if (run == 1) {
      for (size_t i = 0; i < n; i++) out[i] = from[i * period];
    } else if (run == 32) { /* a call costs more than it copies */
      for (size_t i = 0; i < n; i++) memcpy(out + i * 32, from + i * period, 32);
    } else {
      for (size_t i = 0; i < n; i++) memcpy(out + i * run, from + i * period, run);
    }
    out += n * run;
    at += run;
  }
  uint8_t *const hi = out - n, *const lo = hi - n; /* the last two planes, where the sign is moved */
  for (size_t i = 0; i < n && layout->sign_moved; i++) {
    const uint32_t h = move_sign((uint32_t)hi[i] << 8 | lo[i], 1);
    lo[i] = (uint8_t)h;
    hi[i] = (uint8_t)(h >> 8);
  }
}

void glyd_fields_split(unsigned cpu, const glyd_fields_layout *layout, uint8_t *out, const uint8_t *in, size_t n) {
  const unsigned moved = layout->sign_moved;
  uint8_t *const p[4] = {out, out + n, out + 2 * n, out + 3 * n};
  switch (glyd_fields_shape(layout)) {
  case GLYD_FIELDS_SHAPE_1: memcpy(out, in, n); return;
  case GLYD_FIELDS_SHAPE_2:
#if defined(__x86_64__)
    if (cpu & GLYD_CPU_AVX2) {
      split_2_avx2(p[0], p[1], in, n, moved);
      return;
    }
#endif
    split_2(p[0], p[1], in, 0, n, moved);
    return;
  case GLYD_FIELDS_SHAPE_4:
#if defined(__x86_64__)
    if (cpu & GLYD_CPU_AVX2) {
      split_4_avx2(p, in, n, moved);
      return;
    }
#endif
    split_4(p, in, 0, n, moved);
    return;
  default: (void)cpu; split_runs(layout, out, in, n);
  }
}

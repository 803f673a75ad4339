/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "fields/fields_groups_decode.h"

#include "common/cpu.h"

#define FEW 4096u /* numbers for which the tables are not worth making */

GLYD_INLINE uint32_t unzigzag(uint32_t z) { return z >> 1 ^ (0u - (z & 1u)); }

/* ---- plain ---------------------------------------------------------------------- */

/* Numbers i … n - 1, the first of which is at from. */
GLYD_INLINE void spread(uint8_t *out, const uint8_t *from, const uint8_t *bitmap, size_t i, size_t n, const size_t p) {
  for (; i < n; i++) { /* there is slack: the number behind the last one is read, and not used */
    const unsigned is = (unsigned)bitmap[i / 8] >> i % 8 & 1u;
    if (p == 1) out[i] = (uint8_t)((from[0] + 1u) & (0u - is));
    if (p == 2) glyd_store16(out + 2 * i, (uint16_t)((glyd_load16(from) + 1u) & (0u - is)));
    if (p == 4) glyd_store32(out + 4 * i, (glyd_load32(from) + 1u) & (0u - is));
    if (p == 8) glyd_store64(out + 8 * i, (glyd_load64(from) + 1u) & ((uint64_t)0 - is));
    from += is * p;
  }
}

/* Whether all bits of one of k numbers are set. */
GLYD_INLINE int has_largest(const uint8_t *from, size_t k, const size_t p) {
  unsigned found = 0;
  for (size_t i = 0; i < k; i++) {
    if (p == 1) found |= from[i] == UINT8_MAX;
    if (p == 2) found |= glyd_load16(from + 2 * i) == UINT16_MAX;
    if (p == 4) found |= glyd_load32(from + 4 * i) == UINT32_MAX;
    if (p == 8) found |= glyd_load64(from + 8 * i) == UINT64_MAX;
  }
  return found != 0;
}

/* Numbers i … n - 1; next: where each group goes on. */
GLYD_INLINE void merge(uint8_t *out, const uint8_t *older, const uint8_t *grouped, const uint8_t *group,
                       const uint32_t *next, size_t i, size_t n, const size_t p) {
  uint64_t counts = 0;
  for (; i < n; i++) {
    const size_t from = next[group[i]] + glyd_fields_groups_next(&counts, group[i]);
    if (p == 2) {
      const uint32_t z = glyd_load16(grouped + 2 * from);
      glyd_store16(out + 2 * i, (uint16_t)(glyd_load16(older + 2 * i) + unzigzag(z)));
    } else {
      const uint32_t z = glyd_load32(grouped + 4 * from);
      glyd_store32(out + 4 * i, glyd_load32(older + 4 * i) + unzigzag(z));
    }
  }
}

/* ---- eight or more at once -------------------------------------------------------- */

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,popcnt")))

static void make_ranks(glyd_fields_ranks *ranks) {
  if (ranks->made) return;
  ranks->made = 1;
  for (unsigned b = 0; b < 256; b++) {
    unsigned rank = 0;
    for (unsigned i = 0; i < 8; i++) {
      const unsigned is = b >> i & 1;
      ranks->of_2[b][2 * i] = (uint8_t)(is ? 2 * rank : 255);
      ranks->of_2[b][2 * i + 1] = (uint8_t)(is ? 2 * rank + 1 : 255);
      ranks->of_4[b][i] = (uint8_t)(is ? rank : 255);
      rank += is;
    }
  }
}

AVX2 static inline __m128i get_2(const glyd_fields_ranks *ranks, const uint8_t *from, unsigned bits) {
  return _mm_shuffle_epi8(_mm_loadu_si128((const void *)from), _mm_loadu_si128((const void *)ranks->of_2[bits]));
}

AVX2 static void spread_2_avx2(const glyd_fields_ranks *ranks, uint8_t *out, const uint8_t *from, const uint8_t *bitmap,
                               size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const unsigned bits = bitmap[i / 8];
    const __m128i z = get_2(ranks, from, bits);
    /* those that are there are 1 larger: the others have no bit of their shuffle free */
    const __m128i none = _mm_cmpeq_epi16(_mm_loadu_si128((const void *)ranks->of_2[bits]), _mm_set1_epi16(-1));
    _mm_storeu_si128((void *)(out + 2 * i), _mm_add_epi16(z, _mm_add_epi16(none, _mm_set1_epi16(1))));
    from += 2 * (size_t)__builtin_popcount(bits);
  }
  spread(out, from, bitmap, i, n, 2);
}

AVX2 static void spread_4_avx2(const glyd_fields_ranks *ranks, uint8_t *out, const uint8_t *from, const uint8_t *bitmap,
                               size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const unsigned bits = bitmap[i / 8];
    const __m256i rank = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)ranks->of_4[bits]));
    const __m256i is = _mm256_cmpgt_epi32(rank, _mm256_set1_epi32(-1));
    const __m256i z = _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const void *)from), rank);
    _mm256_storeu_si256((void *)(out + 4 * i), _mm256_and_si256(_mm256_sub_epi32(z, is), is));
    from += 4 * (size_t)__builtin_popcount(bits);
  }
  spread(out, from, bitmap, i, n, 4);
}

AVX2 static void merge_2_avx2(const glyd_fields_ranks *ranks, uint8_t *out, const uint8_t *older,
                              const uint8_t *grouped, const uint8_t *group, const uint32_t *start, size_t n) {
  uint32_t next[GLYD_FIELDS_GROUPS_MAX];
  memcpy(next, start, sizeof next);
  size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m128i which = _mm_loadu_si128((const void *)(group + i));
    __m128i low = _mm_setzero_si128(), high = low;
    for (unsigned g = 0; g < GLYD_FIELDS_GROUPS_MAX; g++) {
      const unsigned bits = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(which, _mm_set1_epi8((char)g)));
      const uint8_t *const from = grouped + 2 * (size_t)next[g];
      const unsigned first = (unsigned)__builtin_popcount(bits & 255);
      low = _mm_or_si128(low, get_2(ranks, from, bits & 255));
      high = _mm_or_si128(high, get_2(ranks, from + 2 * first, bits >> 8));
      next[g] += (uint32_t)__builtin_popcount(bits);
    }
    const __m256i z = _mm256_set_m128i(high, low), one = _mm256_set1_epi16(1);
    const __m256i d =
        _mm256_xor_si256(_mm256_srli_epi16(z, 1), _mm256_sub_epi16(_mm256_setzero_si256(), _mm256_and_si256(z, one)));
    const __m256i before = _mm256_loadu_si256((const void *)(older + 2 * i));
    _mm256_storeu_si256((void *)(out + 2 * i), _mm256_add_epi16(before, d));
  }
  merge(out, older, grouped, group, next, i, n, 2);
}
#endif

int glyd_fields_spread(unsigned cpu, glyd_fields_ranks *ranks, uint8_t *out, const uint8_t *from, const uint8_t *bitmap,
                       size_t n, size_t k, size_t period) {
#if defined(__x86_64__)
  if ((cpu & GLYD_CPU_AVX2) && n >= FEW && (period == 2 || period == 4)) {
    make_ranks(ranks);
    if (period == 2)
      spread_2_avx2(ranks, out, from, bitmap, n);
    else
      spread_4_avx2(ranks, out, from, bitmap, n);
    return period == 2 ? !has_largest(from, k, 2) : !has_largest(from, k, 4);
  }
#endif
  (void)cpu;
  (void)ranks;
  switch (period) {
  case 1: spread(out, from, bitmap, 0, n, 1); return !has_largest(from, k, 1);
  case 2: spread(out, from, bitmap, 0, n, 2); return !has_largest(from, k, 2);
  case 4: spread(out, from, bitmap, 0, n, 4); return !has_largest(from, k, 4);
  default: spread(out, from, bitmap, 0, n, 8); return !has_largest(from, k, 8);
  }
}

void glyd_fields_groups_merge(unsigned cpu, glyd_fields_ranks *ranks, uint8_t *out, const uint8_t *older,
                              const uint8_t *grouped, const uint8_t *group,
                              const uint32_t start[GLYD_FIELDS_GROUPS_MAX + 1], size_t n, size_t period) {
#if defined(__x86_64__)
  if ((cpu & GLYD_CPU_AVX2) && n >= FEW && period == 2) {
    make_ranks(ranks);
    merge_2_avx2(ranks, out, older, grouped, group, start, n);
    return;
  }
#endif
  (void)cpu;
  (void)ranks;
  if (period == 2)
    merge(out, older, grouped, group, start, 0, n, 2);
  else
    merge(out, older, grouped, group, start, 0, n, 4);
}

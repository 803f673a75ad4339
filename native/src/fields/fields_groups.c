/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "fields/fields_groups.h"

#include "common/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,popcnt")))

AVX2 static void find_avx2(const glyd_fields_groups *groups, const uint8_t *older, size_t n, uint8_t *group,
                           uint32_t *start) {
  uint32_t from[GLYD_FIELDS_GROUPS_MAX] = {(uint32_t)n}; /* numbers of this group and those after it */
  size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const __m256i mask = _mm256_set1_epi16(255);
    const __m256i a = _mm256_loadu_si256((const void *)(older + 2 * i));
    const __m256i b = _mm256_loadu_si256((const void *)(older + 2 * i + 32));
    const __m256i c = _mm256_permute4x64_epi64(_mm256_packus_epi16(_mm256_and_si256(_mm256_srli_epi16(a, 7), mask),
                                                                   _mm256_and_si256(_mm256_srli_epi16(b, 7), mask)),
                                               0xD8);
    __m256i which = _mm256_setzero_si256();
    for (unsigned g = 1; g < groups->n; g++) {
      const __m256i is = _mm256_cmpeq_epi8(_mm256_max_epu8(c, _mm256_set1_epi8((char)groups->bounds[g - 1])), c);
      which = _mm256_sub_epi8(which, is);
      from[g] += (uint32_t)__builtin_popcount((unsigned)_mm256_movemask_epi8(is));
    }
    _mm256_storeu_si256((void *)(group + i), which);
  }
  for (; i < n; i++) {
    group[i] = groups->of[glyd_fields_class(older + 2 * i, 2)];
    for (unsigned g = 1; g < groups->n; g++) from[g] += group[i] >= g;
  }
  start[0] = 0;
  for (unsigned g = 1; g <= GLYD_FIELDS_GROUPS_MAX; g++) start[g] = (uint32_t)n - (g < groups->n ? from[g] : 0);
}
#endif

void glyd_fields_groups_find(unsigned cpu, const glyd_fields_groups *groups, const uint8_t *older, size_t n,
                             size_t period, uint8_t *group, uint32_t start[GLYD_FIELDS_GROUPS_MAX + 1]) {
#if defined(__x86_64__)
  if ((cpu & GLYD_CPU_AVX2) && period == 2) {
    find_avx2(groups, older, n, group, start);
    return;
  }
#endif
  (void)cpu;
  uint32_t size[GLYD_FIELDS_GROUPS_MAX] = {0};
  for (size_t at = 0; at < n;) {
    const size_t end = n - at < 1u << 15 ? n : at + (1u << 15);
    uint64_t counts = 0; /* none of them gets full */
    for (; at < end; at++) {
      group[at] = groups->of[glyd_fields_class(older + at * period, period)];
      counts += (uint64_t)1 << (16 * group[at]);
    }
    for (unsigned g = 0; g < GLYD_FIELDS_GROUPS_MAX; g++) size[g] += (uint32_t)(counts >> (16 * g)) & 0xFFFF;
  }
  start[0] = 0;
  for (unsigned g = 0; g < GLYD_FIELDS_GROUPS_MAX; g++) start[g + 1] = start[g] + size[g];
}

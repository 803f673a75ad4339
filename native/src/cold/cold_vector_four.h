/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * What the forms for AVX2 and AVX-512 have in common: four numbers of 32 bits.
 */
typedef __m128i four;

/* What is stored as a vector is read one by one from memory: compilers would take it from registers, by
 * more instructions. */
#define KEEP_IN_MEMORY(array) __asm__("" : "+m"(array))

GLYD_INLINE four clamp_four(four v, int32_t most) {
  return _mm_max_epi32(_mm_min_epi32(v, _mm_set1_epi32(most)), _mm_set1_epi32(-most));
}

/* Sums of products to logits. */
GLYD_INLINE four logits_of(__m256i sums) {
  const __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  return clamp_four(_mm_srai_epi32(sum, 14), GLYD_COLD_LOGIT_MAX);
}

GLYD_INLINE int32_t weigh(four logits, const int32_t *weights) {
  __m128i sum = _mm_mullo_epi32(logits, _mm_load_si128((const __m128i *)(const void *)weights));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4E));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xB1));
  return _mm_cvtsi128_si32(sum);
}

GLYD_INLINE four errors_of(const glyd_cold_model *m, four logits, int32_t target) {
  const int *const squash = (const int *)(const void *)(m->squash + GLYD_COLD_LOGIT_MAX);
  const __m128i p = _mm_and_si128(_mm_i32gather_epi32(squash, logits, 2), _mm_set1_epi32(65535));
  return _mm_srai_epi32(_mm_mullo_epi32(_mm_sub_epi32(_mm_set1_epi32(target), p), _mm_set1_epi32(MIXER_RATE)), 12);
}

/* The number of mixer i comes to be the first. */
#define one_of(v, i) _mm_srli_si128(v, 4 * (i))

GLYD_INLINE void train_final(int32_t *weights, four logits, int32_t error) {
  __m128i *const at = (__m128i *)(void *)weights;
  __m128i step = _mm_mullo_epi32(logits, _mm_set1_epi32(error));
  step = _mm_srai_epi32(_mm_add_epi32(step, _mm_set1_epi32(1 << 15)), 16);
  _mm_store_si128(at, clamp_four(_mm_add_epi32(_mm_load_si128(at), step), FINAL_MAX));
}

/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Inputs, sums of products and learning by 256 bits, for cold_kernel.h.
 */
#include "cold/cold_vector_four.h"
#include "cold/cold_vector_plain.h"

typedef __m256i vector;
#define N_VECTORS 2u

GLYD_INLINE vector load_row(const int16_t *row, unsigned i) {
  return _mm256_load_si256((const __m256i *)(const void *)(row + 16 * i));
}
GLYD_INLINE void store_row(int16_t *row, unsigned i, vector v) {
  _mm256_store_si256((__m256i *)(void *)(row + 16 * i), v);
}

GLYD_INLINE vector inputs(vector e) {
  const __m256i logit = _mm256_srai_epi16(_mm256_slli_epi16(e, 4), 4);
  const __m256i p = _mm256_srai_epi16(_mm256_xor_si256(e, _mm256_set1_epi32(INT32_MIN)), 5);
  return _mm256_blend_epi16(logit, p, 0xAA);
}

GLYD_INLINE uint32_t entry_at(nibble *half, const glyd_cold_model *m, uint32_t node, unsigned i) {
  half->from[i] = i * GLYD_COLD_STATES + m->slots[i][node];
  return m->maps[half->from[i]];
}

/* Entries go to registers one by one: a wide load of what was stored in small pieces would wait. */
GLYD_INLINE __m128i four_entries(nibble *half, const glyd_cold_model *m, uint32_t node, unsigned i) {
  const uint32_t a = entry_at(half, m, node, i), b = entry_at(half, m, node, i + 1);
  const uint32_t c = entry_at(half, m, node, i + 2), d = entry_at(half, m, node, i + 3);
  return _mm_set_epi32((int)d, (int)c, (int)b, (int)a);
}

GLYD_INLINE void look_up(nibble *half, const glyd_cold_model *m, uint32_t node, uint32_t one, uint32_t two,
                         vector *entries) {
  half->from[13] = one;
  half->from[14] = two;
  const __m128i a = four_entries(half, m, node, 0), b = four_entries(half, m, node, 4);
  const __m128i c = four_entries(half, m, node, 8);
  const __m128i d =
      _mm_set_epi32((int)GLYD_COLD_BIAS, (int)m->maps[two], (int)m->maps[one], (int)entry_at(half, m, node, 12));
  entries[0] = _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
  entries[1] = _mm256_inserti128_si256(_mm256_castsi128_si256(c), d, 1);
}

GLYD_INLINE __m256i products(const vector *x, const int16_t *w) {
  return _mm256_add_epi32(_mm256_madd_epi16(x[0], load_row(w, 0)), _mm256_madd_epi16(x[1], load_row(w, 1)));
}

GLYD_INLINE four dot_four(const vector *x, const vector *w0, const int16_t *w1, const int16_t *w2, const int16_t *w3) {
  const __m256i a = _mm256_add_epi32(_mm256_madd_epi16(x[0], w0[0]), _mm256_madd_epi16(x[1], w0[1]));
  const __m256i b = products(x, w1), c = products(x, w2), d = products(x, w3);
  const __m256i ab = _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
  const __m256i cd = _mm256_add_epi32(_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
  return logits_of(_mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd)));
}

GLYD_INLINE vector trained(vector x, vector w, __m128i error) {
  return _mm256_adds_epi16(w, _mm256_mulhrs_epi16(x, _mm256_broadcastw_epi16(error)));
}

/* As glyd_cold_entry, eight at once: bits of floats are the logs. */
GLYD_INLINE __m256i entry_of(__m256i p) {
  const __m256i twice = _mm256_or_si256(_mm256_slli_epi32(p, 1), _mm256_set1_epi32(1));
  const __m256i rest = _mm256_sub_epi32(_mm256_set1_epi32(1 << 21), twice);
  const __m256i log = _mm256_castps_si256(_mm256_cvtepi32_ps(twice)),
                log_rest = _mm256_castps_si256(_mm256_cvtepi32_ps(rest));
  __m256i logit = _mm256_srai_epi32(_mm256_sub_epi32(log, log_rest), 11);
  logit = _mm256_srai_epi32(_mm256_mullo_epi32(logit, _mm256_set1_epi32(177)), 12);
  logit = _mm256_max_epi32(_mm256_min_epi32(logit, _mm256_set1_epi32(2047)), _mm256_set1_epi32(-2047));
  return _mm256_or_si256(_mm256_slli_epi32(p, 12), _mm256_and_si256(logit, _mm256_set1_epi32(4095)));
}

GLYD_INLINE void learn(nibble *half, glyd_cold_model *m, uint32_t node, uint32_t step, uint32_t bit,
                       uint32_t is_expected, uint32_t shift, const vector *entries) {
  (void)step;
  (void)is_expected;
  uint32_t learnt[GLYD_COLD_ENTRIES] __attribute__((aligned(32)));
  const __m256i target = _mm256_set1_epi32(bit ? (1 << 20) - 1 : 0);
  for (unsigned i = 0; i < N_VECTORS; i++) {
    __m256i p = _mm256_srli_epi32(entries[i], 12);
    p = _mm256_add_epi32(p, _mm256_sra_epi32(_mm256_sub_epi32(target, p), _mm_cvtsi32_si128((int)shift)));
    const __m256i entry = entry_of(p);
    _mm256_store_si256((__m256i *)(void *)(learnt + 8 * i), entry);
  }
  KEEP_IN_MEMORY(learnt);
  keep_learnt(half, m, node, bit, learnt);
}

GLYD_INLINE void train_row(const vector *x, int16_t *row, __m128i error) {
  for (unsigned i = 0; i < N_VECTORS; i++) store_row(row, i, trained(x[i], load_row(row, i), error));
}

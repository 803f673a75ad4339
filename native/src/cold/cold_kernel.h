/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * The hot loops of a bit, compiled once for each kind of CPU. All forms give
 * the same numbers: sums of products wrap at 32 bits, weights saturate at 16.
 *
 * A context costs five loads and stores to look up and seven to learn; the
 * arithmetic between is done for 8 or 16 of them at once.
 */
#include "cold/cold_common.h"

#define MIXER_RATE 750 /* of an error of 16 bits, which is then divided by 4096 */
#define SSE_SHIFT 6
#define VECTORS (GLYD_COLD_INPUTS / PER_VECTOR)
#define FINAL_MAX 65535 /* of weights of the second layer, in units of 1 / 16384 */

/* ---- inputs, sums of products, learning: by 512 bits -------------------------- */

#if defined(GLYD_COLD_AVX512)

typedef __m512i vector;
#define PER_VECTOR 32u /* inputs */

GLYD_INLINE vector load(const void *p) { return _mm512_load_si512(p); }

/* Entries to inputs: the logit, and the probability itself. */
GLYD_INLINE vector inputs(const uint32_t *entries) {
  const __m512i e = load(entries);
  const __m512i logit = _mm512_srai_epi16(_mm512_slli_epi16(e, 4), 4);
  const __m512i p = _mm512_srai_epi16(_mm512_xor_si512(e, _mm512_set1_epi32(INT32_MIN)), 5);
  return _mm512_mask_blend_epi16(0xAAAAAAAAu, logit, p);
}

GLYD_INLINE __m256i dot(const vector *x, const int16_t *w) {
  const __m512i sum = _mm512_madd_epi16(x[0], load(w));
  return _mm256_add_epi32(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));
}

GLYD_INLINE void train(const vector *x, int16_t *w, int32_t error) {
  const __m512i e = _mm512_set1_epi16((int16_t)error);
  for (unsigned i = 0; i < VECTORS; i++)
    _mm512_store_si512(w + i * PER_VECTOR, _mm512_adds_epi16(load(w + i * PER_VECTOR), _mm512_mulhrs_epi16(x[i], e)));
}

GLYD_INLINE void learn(uint32_t *out, const uint32_t *entries, uint32_t bit, unsigned shift, const int16_t *stretch) {
  const __m512i target = _mm512_set1_epi32(bit ? (1 << 20) - 1 : 0);
  for (unsigned i = 0; i < GLYD_COLD_ENTRIES; i += 16) {
    __m512i p = _mm512_srli_epi32(load(entries + i), 12);
    p = _mm512_add_epi32(p, _mm512_sra_epi32(_mm512_sub_epi32(target, p), _mm_cvtsi32_si128((int)shift)));
    const __m512i logit = _mm512_i32gather_epi32(_mm512_srli_epi32(p, 8), stretch, 2);
    const __m512i low = _mm512_set1_epi32(4095);
    _mm512_store_si512(out + i, _mm512_or_si512(_mm512_slli_epi32(p, 12), _mm512_and_si512(logit, low)));
  }
}

/* ---- the same by 256 bits ------------------------------------------------------- */

#elif defined(GLYD_COLD_AVX2)

typedef __m256i vector;
#define PER_VECTOR 16u

GLYD_INLINE vector load(const void *p) { return _mm256_load_si256((const __m256i *)p); }
GLYD_INLINE void store(void *p, vector v) { _mm256_store_si256((__m256i *)p, v); }

GLYD_INLINE vector inputs(const uint32_t *entries) {
  const __m256i e = load(entries);
  const __m256i logit = _mm256_srai_epi16(_mm256_slli_epi16(e, 4), 4);
  const __m256i p = _mm256_srai_epi16(_mm256_xor_si256(e, _mm256_set1_epi32(INT32_MIN)), 5);
  return _mm256_blend_epi16(logit, p, 0xAA);
}

GLYD_INLINE __m256i dot(const vector *x, const int16_t *w) {
  __m256i sum = _mm256_madd_epi16(x[0], load(w));
  for (unsigned i = 1; i < VECTORS; i++) sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x[i], load(w + i * PER_VECTOR)));
  return sum;
}

GLYD_INLINE void train(const vector *x, int16_t *w, int32_t error) {
  const __m256i e = _mm256_set1_epi16((int16_t)error);
  for (unsigned i = 0; i < VECTORS; i++)
    store(w + i * PER_VECTOR, _mm256_adds_epi16(load(w + i * PER_VECTOR), _mm256_mulhrs_epi16(x[i], e)));
}

GLYD_INLINE void learn(uint32_t *out, const uint32_t *entries, uint32_t bit, unsigned shift, const int16_t *stretch) {
  const __m256i target = _mm256_set1_epi32(bit ? (1 << 20) - 1 : 0);
  for (unsigned i = 0; i < GLYD_COLD_ENTRIES; i += 8) {
    __m256i p = _mm256_srli_epi32(load(entries + i), 12);
    p = _mm256_add_epi32(p, _mm256_sra_epi32(_mm256_sub_epi32(target, p), _mm_cvtsi32_si128((int)shift)));
    const __m256i logit = _mm256_i32gather_epi32((const int *)(const void *)stretch, _mm256_srli_epi32(p, 8), 2);
    store(out + i, _mm256_or_si256(_mm256_slli_epi32(p, 12), _mm256_and_si256(logit, _mm256_set1_epi32(4095))));
  }
}

/* ---- plain C ---------------------------------------------------------------------- */

#else

typedef struct vector {
  int16_t of[32];
} vector;
#define PER_VECTOR 32u

GLYD_INLINE vector inputs(const uint32_t *entries) {
  vector x;
  for (unsigned i = 0; i < 16; i++) {
    const int32_t logit = (int32_t)(entries[i] << 20) >> 20;
    x.of[2 * i] = (int16_t)logit;
    x.of[2 * i + 1] = (int16_t)(((int32_t)(entries[i] >> 16) - 32768) >> 5);
  }
  return x;
}

GLYD_INLINE int32_t dot(const vector *x, const int16_t *w) {
  uint32_t sum = 0;
  for (unsigned v = 0; v < VECTORS; v++)
    for (unsigned i = 0; i < PER_VECTOR; i++) sum += (uint32_t)(x[v].of[i] * w[v * PER_VECTOR + i]);
  return (int32_t)sum >> 14;
}

GLYD_INLINE void train(const vector *x, int16_t *w, int32_t error) {
  for (unsigned v = 0; v < VECTORS; v++)
    for (unsigned i = 0; i < PER_VECTOR; i++) {
      const int32_t next = w[v * PER_VECTOR + i] + ((x[v].of[i] * error + (1 << 14)) >> 15);
      w[v * PER_VECTOR + i] = (int16_t)(next > INT16_MAX ? INT16_MAX : next < INT16_MIN ? INT16_MIN : next);
    }
}

GLYD_INLINE void learn(uint32_t *out, const uint32_t *entries, uint32_t bit, unsigned shift, const int16_t *stretch) {
  const int32_t target = bit ? (1 << 20) - 1 : 0;
  for (unsigned i = 0; i < GLYD_COLD_ENTRIES; i++) {
    const int32_t before = (int32_t)(entries[i] >> 12);
    const uint32_t p = (uint32_t)(before + ((target - before) >> shift));
    out[i] = p << 12 | ((uint32_t)stretch[p >> 8] & 4095);
  }
}

#endif

/* ---- the four mixers and the one that weighs them -------------------------------- */

#if defined(GLYD_COLD_AVX512) || defined(GLYD_COLD_AVX2)

GLYD_INLINE __m128i load4(const int32_t *p) { return _mm_load_si128((const __m128i *)(const void *)p); }
GLYD_INLINE void store4(int32_t *p, __m128i v) { _mm_store_si128((__m128i *)(void *)p, v); }
GLYD_INLINE __m128i clamp4(__m128i v, int32_t most) {
  return _mm_max_epi32(_mm_min_epi32(v, _mm_set1_epi32(most)), _mm_set1_epi32(-most));
}

/* Logits and probabilities of the four; the weighted sum of the logits. */
GLYD_INLINE int32_t mix(glyd_cold_model *restrict m, const vector *x) {
  const __m256i low = _mm256_hadd_epi32(dot(x, m->weights[0]), dot(x, m->weights[1]));
  const __m256i high = _mm256_hadd_epi32(dot(x, m->weights[2]), dot(x, m->weights[3]));
  const __m256i all = _mm256_hadd_epi32(low, high);
  __m128i logit = _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
  logit = clamp4(_mm_srai_epi32(logit, 14), GLYD_COLD_LOGIT_MAX);
  store4(m->logit, logit);
  const int *const squash = (const int *)(const void *)(m->squash + GLYD_COLD_LOGIT_MAX);
  store4(m->p_of, _mm_and_si128(_mm_i32gather_epi32(squash, logit, 2), _mm_set1_epi32(65535)));
  __m128i sum = _mm_mullo_epi32(logit, load4(m->final_weights));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4E));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xB1));
  return _mm_cvtsi128_si32(sum);
}

GLYD_INLINE void unmix(glyd_cold_model *restrict m, int32_t target, int32_t final_error) {
  const __m128i error = _mm_sub_epi32(_mm_set1_epi32(target), load4(m->p_of));
  store4(m->error, _mm_srai_epi32(_mm_mullo_epi32(error, _mm_set1_epi32(MIXER_RATE)), 12));
  __m128i step = _mm_mullo_epi32(load4(m->logit), _mm_set1_epi32(final_error));
  step = _mm_srai_epi32(_mm_add_epi32(step, _mm_set1_epi32(1 << 15)), 16);
  store4(m->final_weights, clamp4(_mm_add_epi32(load4(m->final_weights), step), FINAL_MAX));
}

#else

GLYD_INLINE int32_t mix(glyd_cold_model *restrict m, const vector *x) {
  int32_t sum = 0;
  for (unsigned s = 0; s < GLYD_COLD_SETS; s++) {
    m->logit[s] = glyd_cold_clamp(dot(x, m->weights[s]));
    m->p_of[s] = m->squash[m->logit[s] + GLYD_COLD_LOGIT_MAX];
    sum += m->logit[s] * m->final_weights[s];
  }
  return sum;
}

GLYD_INLINE void unmix(glyd_cold_model *restrict m, int32_t target, int32_t final_error) {
  for (unsigned s = 0; s < GLYD_COLD_SETS; s++) {
    m->error[s] = ((target - m->p_of[s]) * MIXER_RATE) >> 12;
    const int32_t w = m->final_weights[s] + ((m->logit[s] * final_error + (1 << 15)) >> 16);
    m->final_weights[s] = w > FINAL_MAX ? FINAL_MAX : w < -FINAL_MAX ? -FINAL_MAX : w;
  }
}

#endif

_Static_assert(GLYD_COLD_SETS *(int64_t)GLYD_COLD_LOGIT_MAX *FINAL_MAX < INT32_MAX, "sums of mix()");

/* ---- one bit ------------------------------------------------------------------ */

/* The entries of all contexts. On x86 they go to registers one by one and are
 * stored by fours: a wide load of what was stored in small pieces would wait. */
GLYD_INLINE uint32_t entry_of(glyd_cold_model *restrict m, unsigned i, uint32_t node) {
  const uint32_t from = i * GLYD_COLD_STATES + m->slots[i][node];
  m->from[i] = from;
  return m->maps[from];
}

GLYD_INLINE void look_up(glyd_cold_model *restrict m, uint32_t node) {
  unsigned i = 0;
#if defined(GLYD_COLD_AVX512) || defined(GLYD_COLD_AVX2)
#pragma GCC unroll 3
  for (; i + 4 <= GLYD_COLD_CONTEXTS; i += 4) {
    const uint32_t e0 = entry_of(m, i, node), e1 = entry_of(m, i + 1, node);
    const uint32_t e2 = entry_of(m, i + 2, node), e3 = entry_of(m, i + 3, node);
    store4((int32_t *)&m->entries[i], _mm_set_epi32((int)e3, (int)e2, (int)e1, (int)e0));
  }
#endif
  for (; i < GLYD_COLD_CONTEXTS; i++) m->entries[i] = entry_of(m, i, node);
}

/* What the expected byte says: entries i and i + 1; the row of its mixer. */
GLYD_INLINE uint32_t look_at_expected(glyd_cold_model *restrict m) {
  const uint32_t bits = m->bits, shift = m->shift;
  const unsigned i = GLYD_COLD_CONTEXTS;
  const uint32_t expected = m->expected;
  uint32_t row = bits, one = GLYD_COLD_MAP_NONE, two = GLYD_COLD_MAP_NONE;
  m->is_expected = expected >> (shift + 1) == bits;
  if (m->is_expected) {
    const uint32_t byte = expected & 255;
    const uint32_t bit = byte >> shift & 1;
    one = m->failed ? GLYD_COLD_MAP_FAILED + shift * 2 + bit : GLYD_COLD_MAP_LENGTH + m->length_class * 2 + bit;
    two = GLYD_COLD_MAP_EXPECTED + ((m->failed << 8 | byte) << 3 | shift);
    row = m->failed ? 2048 + (byte << 3 | shift) : bits + 256 * (1 + m->grade * 2 + bit);
  }
  m->from[i] = one;
  m->from[i + 1] = two;
  m->entries[i] = m->maps[one];
  m->entries[i + 1] = m->maps[two];
  return row;
}

GLYD_INLINE void expand(const glyd_cold_model *m, vector *x) {
  for (unsigned i = 0; i < VECTORS; i++) x[i] = inputs(m->entries + i * (PER_VECTOR / 2));
}

static uint32_t predict(glyd_cold_model *restrict m) {
  /* Final stages: what really came when the model said so, after one byte and two. Their rows are
   * asked for before the rest is done: waiting for them was a fifth of all time. */
  const uint32_t c1 = m->last4 & 255;
  const uint32_t sse[GLYD_COLD_SSE] = {glyd_cold_mix(c1 << 8 | m->bits) >> (32 - m->final_log),
                                       glyd_cold_mix((m->last4 & 0xFFFF) << 8 | m->bits) >> (32 - m->final_log)};
  for (unsigned s = 0; s < GLYD_COLD_SSE; s++) {
    const uint16_t *const row = &m->sse[s][sse[s] * GLYD_COLD_SSE_STEPS];
    __builtin_prefetch(row);
    __builtin_prefetch(row + 32);
  }
  const uint32_t node = m->node;
  look_up(m, node);
  const uint32_t row = look_at_expected(m);
  m->weights[0] = m->mixer + (size_t)(GLYD_COLD_ROW_ORDER + (m->order << 8 | c1)) * GLYD_COLD_INPUTS;
  m->weights[1] = m->mixer + (size_t)(GLYD_COLD_ROW_EXPECTED + row) * GLYD_COLD_INPUTS;
  m->weights[2] = m->mixer + (size_t)(GLYD_COLD_ROW_PLACE + (m->select_place << 3 | m->shift)) * GLYD_COLD_INPUTS;
  m->weights[3] = m->mixer + (size_t)(GLYD_COLD_ROW_ABOVE + (m->select_above << 3 | m->shift)) * GLYD_COLD_INPUTS;
  m->final_weights = &m->final_mixer[(m->is_expected << 8 | m->bits) * GLYD_COLD_SETS];
  vector x[GLYD_COLD_INPUTS / PER_VECTOR];
  expand(m, x);
  const int32_t logit = glyd_cold_clamp(mix(m, x) >> 14);
  const uint32_t p_final = m->squash[logit + GLYD_COLD_LOGIT_MAX];
  m->p_final = p_final;
  const uint32_t place = (uint32_t)(logit + GLYD_COLD_LOGIT_MAX + 1) * 368u; /* 32 · 65536 / 5696 */
  const uint32_t part = place >> 4 & 4095;
  m->sse_part = part;
  uint32_t p = 2 * p_final;
  for (unsigned s = 0; s < GLYD_COLD_SSE; s++) {
    uint16_t *const at = &m->sse[s][sse[s] * GLYD_COLD_SSE_STEPS + (place >> 16)];
    m->sse_at[s] = at;
    p += (at[0] * (4096 - part) + at[1] * part) >> 12;
  }
  p = p >> 2;
  return p < 1 ? 1 : p > 65535 ? 65535 : p;
}

static void update(glyd_cold_model *restrict m, uint32_t bit) {
  const int32_t target = (int32_t)(bit << 16);
  const int32_t final_error = (target - (int32_t)m->p_final) >> 4;
  vector x[GLYD_COLD_INPUTS / PER_VECTOR];
  expand(m, x);
  unmix(m, target, final_error);
  for (unsigned s = 0; s < GLYD_COLD_SETS; s++) train(x, m->weights[s], m->error[s]);
  learn(m->learnt, m->entries, bit, m->learn_shift, m->stretch);
  const uint32_t node = m->node;
  const uint8_t *const next = m->next[bit];
#pragma GCC unroll 13
  for (unsigned i = 0; i < GLYD_COLD_CONTEXTS; i++) {
    const uint32_t from = m->from[i];
    m->maps[from] = m->learnt[i];
    m->slots[i][node] = next[from & 255];
  }
  for (unsigned i = GLYD_COLD_CONTEXTS; i < GLYD_COLD_CONTEXTS + 2; i++) m->maps[m->from[i]] = m->learnt[i];
  m->maps[GLYD_COLD_MAP_NONE] = GLYD_COLD_NEUTRAL;
  const int32_t reached = bit ? 65535 : 0;
  const int32_t part = (int32_t)m->sse_part;
  for (unsigned s = 0; s < GLYD_COLD_SSE; s++) {
    uint16_t *const at = m->sse_at[s];
    const int32_t a = at[0], b = at[1];
    at[0] = (uint16_t)(a + (((reached - a) * (4096 - part)) >> (12 + SSE_SHIFT)));
    at[1] = (uint16_t)(b + (((reached - b) * part) >> (12 + SSE_SHIFT)));
  }
  m->bits = m->bits << 1 | bit;
  m->node = node << 1 | bit;
  m->shift--;
}

static void spread(glyd_cold_model *m) {
  uint32_t hash[GLYD_COLD_CONTEXTS];
  const uint32_t shift = 32 - (m->table_log - 6);
  for (unsigned i = 0; i < GLYD_COLD_CONTEXTS; i++) hash[i] = glyd_cold_mix(m->hash[i] * 0x9E3779B1u + i * 0x632BE5ABu);
  memcpy(m->hash, hash, sizeof hash);
  for (unsigned i = 1; i < GLYD_COLD_CONTEXTS; i++) {
    const size_t line = hash[i] >> shift;
    const uint8_t *const table = m->tables + ((size_t)(i - 1) << m->table_log);
    __builtin_prefetch(table + line * 64);
    __builtin_prefetch(table + (line ^ 1) * 64);
  }
}

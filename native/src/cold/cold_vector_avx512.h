/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Inputs, sums of products and learning by 512 bits, for cold_kernel.h.
 */
#include "cold/cold_vector_four.h"

typedef __m512i vector;
#define N_VECTORS 1u

GLYD_INLINE vector load_row(const int16_t *row, unsigned i) { return _mm512_load_si512(row + 32 * i); }
GLYD_INLINE void store_row(int16_t *row, unsigned i, vector v) { _mm512_store_si512(row + 32 * i, v); }

/* Entries to inputs: the logit, and the probability itself. */
GLYD_INLINE vector inputs(vector e) {
  const __m512i logit = _mm512_srai_epi16(_mm512_slli_epi16(e, 4), 4);
  const __m512i p = _mm512_srai_epi16(_mm512_xor_si512(e, _mm512_set1_epi32(INT32_MIN)), 5);
  return _mm512_mask_blend_epi16(0xAAAAAAAAu, logit, p);
}

/* The states of half a byte: the slots of all contexts, four to a register, and what becomes of the
 * states of its four bits, 16 to a bit. They go back to memory at its end. */
typedef struct nibble {
  __m512i slots[4];
  __m512i changed;
  __m512i states;                                                /* of this bit */
  uint32_t from[GLYD_COLD_ENTRIES] __attribute__((aligned(64))); /* which entries it is coded with */
} nibble;

GLYD_INLINE __m128i slot_at(const glyd_cold_model *m, unsigned i) {
  return _mm_load_si128((const __m128i *)(const void *)m->slots[i]);
}

GLYD_INLINE void begin_nibble(nibble *half, const glyd_cold_model *m) {
#pragma GCC unroll 3
  for (unsigned i = 0; i < 3; i++) {
    __m512i four_slots = _mm512_castsi128_si512(slot_at(m, 4 * i));
    four_slots = _mm512_inserti32x4(four_slots, slot_at(m, 4 * i + 1), 1);
    four_slots = _mm512_inserti32x4(four_slots, slot_at(m, 4 * i + 2), 2);
    half->slots[i] = _mm512_inserti32x4(four_slots, slot_at(m, 4 * i + 3), 3);
  }
  half->slots[3] = _mm512_zextsi128_si512(slot_at(m, 12));
  half->changed = _mm512_setzero_si512();
}

/* Bytes of three vectors, by which a byte of the last one is found: byte i is that of slot i at 0. */
GLYD_INLINE __m512i slot_starts(void) {
  return _mm512_castsi128_si512(_mm_set_epi8(112, 96, 80, 64, 48, 32, 16, 0, 112, 96, 80, 64, 48, 32, 16, 0));
}

/* Entries go to registers one by one: gathering them takes longer. */
GLYD_INLINE __m128i four_entries(const nibble *half, const glyd_cold_model *m, unsigned i) {
  const uint32_t a = m->maps[half->from[i]], b = m->maps[half->from[i + 1]];
  const uint32_t c = m->maps[half->from[i + 2]], d = m->maps[half->from[i + 3]];
  return _mm_set_epi32((int)d, (int)c, (int)b, (int)a);
}

GLYD_INLINE void look_up(nibble *half, const glyd_cold_model *m, uint32_t node, uint32_t one, uint32_t two,
                         vector *entries) {
  const __m512i at = _mm512_add_epi8(slot_starts(), _mm512_set1_epi8((char)node));
  const __m512i low = _mm512_permutex2var_epi8(half->slots[0], at, half->slots[1]);
  const __m512i high = _mm512_permutex2var_epi8(half->slots[2], at, half->slots[3]);
  half->states = _mm512_mask_blend_epi8(0xFF00, low, high);
  const __m512i starts = _mm512_set_epi32(GLYD_COLD_MAP_BIAS, 0, 0, 12 * 256, 11 * 256, 10 * 256, 9 * 256, 8 * 256,
                                          7 * 256, 6 * 256, 5 * 256, 4 * 256, 3 * 256, 2 * 256, 256, 0);
  __m512i from = _mm512_add_epi32(_mm512_cvtepu8_epi32(_mm512_castsi512_si128(half->states)), starts);
  from = _mm512_mask_set1_epi32(from, 1 << 13, (int)one);
  from = _mm512_mask_set1_epi32(from, 1 << 14, (int)two);
  _mm512_store_si512(half->from, from);
  KEEP_IN_MEMORY(half->from);
  const __m128i a = four_entries(half, m, 0), b = four_entries(half, m, 4), c = four_entries(half, m, 8),
                d = four_entries(half, m, 12);
  const __m256i ab = _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
  const __m256i cd = _mm256_inserti128_si256(_mm256_castsi128_si256(c), d, 1);
  entries[0] = _mm512_inserti64x4(_mm512_castsi256_si512(ab), cd, 1);
}

GLYD_INLINE four dot_four(const vector *x, const vector *w0, const int16_t *w1, const int16_t *w2, const int16_t *w3) {
  const __m512i a = _mm512_madd_epi16(x[0], w0[0]), b = _mm512_madd_epi16(x[0], load_row(w1, 0));
  const __m512i c = _mm512_madd_epi16(x[0], load_row(w2, 0)), d = _mm512_madd_epi16(x[0], load_row(w3, 0));
  const __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
  const __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
  const __m512i all = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
  return logits_of(_mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1)));
}

GLYD_INLINE vector trained(vector x, vector w, __m128i error) {
  return _mm512_adds_epi16(w, _mm512_mulhrs_epi16(x, _mm512_broadcastw_epi16(error)));
}

GLYD_INLINE void learn(nibble *half, glyd_cold_model *m, uint32_t node, uint32_t step, uint32_t bit,
                       uint32_t is_expected, uint32_t shift, const vector *entries) {
  (void)node;
  const __m512i target = _mm512_set1_epi32(bit ? (1 << 20) - 1 : 0);
  __m512i p = _mm512_srli_epi32(entries[0], 12);
  p = _mm512_add_epi32(p, _mm512_sra_epi32(_mm512_sub_epi32(target, p), _mm_cvtsi32_si128((int)shift)));
  const __m512i twice = _mm512_or_si512(_mm512_slli_epi32(p, 1), _mm512_set1_epi32(1));
  const __m512i rest = _mm512_sub_epi32(_mm512_set1_epi32(1 << 21), twice);
  /* as glyd_cold_entry: bits of floats are the logs */
  const __m512i logs =
      _mm512_sub_epi32(_mm512_castps_si512(_mm512_cvtepi32_ps(twice)), _mm512_castps_si512(_mm512_cvtepi32_ps(rest)));
  __m512i logit = _mm512_mullo_epi32(_mm512_srai_epi32(logs, 11), _mm512_set1_epi32(177));
  logit = _mm512_min_epi32(_mm512_srai_epi32(logit, 12), _mm512_set1_epi32(2047));
  logit = _mm512_max_epi32(logit, _mm512_set1_epi32(-2047));
  const __m512i learnt = _mm512_or_si512(_mm512_slli_epi32(p, 12), _mm512_and_si512(logit, _mm512_set1_epi32(4095)));
  (void)is_expected;
  uint32_t out[GLYD_COLD_ENTRIES] __attribute__((aligned(64)));
  _mm512_store_si512(out, learnt);
  KEEP_IN_MEMORY(out);
#pragma GCC unroll 15
  for (unsigned i = 0; i < 15; i++) m->maps[half->from[i]] = out[i];
  m->maps[GLYD_COLD_MAP_NONE] = GLYD_COLD_NEUTRAL;
  const uint8_t *const next = m->next[bit];
  const __m512i low = _mm512_permutex2var_epi8(_mm512_load_si512(next), half->states, _mm512_load_si512(next + 64));
  const __m512i high =
      _mm512_permutex2var_epi8(_mm512_load_si512(next + 128), half->states, _mm512_load_si512(next + 192));
  const __m512i states = _mm512_mask_blend_epi8(_mm512_movepi8_mask(half->states), low, high);
  half->changed =
      _mm512_mask_broadcast_i32x4(half->changed, (__mmask16)(15u << (4 * step)), _mm512_castsi512_si128(states));
}

/* The nodes of the four bits that led to this one, and which of the changed states are theirs: for the
 * first slot, as byte 16 · bit. */
GLYD_INLINE void end_nibble(const nibble *half, const glyd_cold_model *m, uint32_t node) {
  const uint32_t at[4] = {1, node >> 3, node >> 2, node >> 1};
  const uint64_t mask16 = 1u << at[0] | 1u << at[1] | 1u << at[2] | 1u << at[3];
  const __mmask64 mask = mask16 * 0x0001000100010001u;
  const __m512i lanes =
      _mm512_set_epi32(0x03030303, 0x03030303, 0x03030303, 0x03030303, 0x02020202, 0x02020202, 0x02020202, 0x02020202,
                       0x01010101, 0x01010101, 0x01010101, 0x01010101, 0, 0, 0, 0);
  const __m128i bit_of = _mm_set_epi8(48, 48, 48, 48, 48, 48, 48, 48, 32, 32, 32, 32, 16, 16, 0, 0);
  __m512i from = _mm512_add_epi8(lanes, _mm512_broadcast_i32x4(bit_of));
#pragma GCC unroll 3
  for (unsigned i = 0; i < 3; i++) {
    const __m512i slots = _mm512_mask_permutexvar_epi8(half->slots[i], mask, from, half->changed);
    _mm_store_si128((__m128i *)(void *)m->slots[4 * i], _mm512_castsi512_si128(slots));
    _mm_store_si128((__m128i *)(void *)m->slots[4 * i + 1], _mm512_extracti32x4_epi32(slots, 1));
    _mm_store_si128((__m128i *)(void *)m->slots[4 * i + 2], _mm512_extracti32x4_epi32(slots, 2));
    _mm_store_si128((__m128i *)(void *)m->slots[4 * i + 3], _mm512_extracti32x4_epi32(slots, 3));
    from = _mm512_add_epi8(from, _mm512_set1_epi8(4));
  }
  const __m512i slots = _mm512_mask_permutexvar_epi8(half->slots[3], mask, from, half->changed);
  _mm_store_si128((__m128i *)(void *)m->slots[12], _mm512_castsi512_si128(slots));
}

GLYD_INLINE void train_row(const vector *x, int16_t *row, __m128i error) {
  store_row(row, 0, trained(x[0], load_row(row, 0), error));
}

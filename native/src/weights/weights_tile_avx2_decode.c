/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * From tiles back to rows for AVX2 and BMI2: the steps of
 * weights_tile_avx2_encode.c backwards, PDEP for PEXT.
 */
#include "weights/weights_tile_decode.h"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2,popcnt,lzcnt")
#endif

GLYD_INLINE __m256i load(const uint8_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
GLYD_INLINE void store(uint16_t *p, __m256i v) { _mm256_storeu_si256((__m256i *)(void *)p, v); }
GLYD_INLINE __m256i two(const uint8_t *low, const uint8_t *high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)low)),
                                 _mm_loadu_si128((const __m128i *)(const void *)high), 1);
}

/* 32 bytes of a row and of the row 8 below it; lane kh holds k16 steps 0 and 1 of k half kh. */
typedef struct row_pair {
  __m256i upper;
  __m256i lower;
} row_pair;

/* 16 bytes of each thread q, in the order (step, kh, h, p), to rows. */
GLYD_INLINE row_pair row_order(__m256i q01, __m256i q23) {
  const __m256i halves = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
  const __m256i even = _mm256_permute2x128_si256(q01, q23, 0x20); /* q0 | q2 */
  const __m256i odd = _mm256_permute2x128_si256(q01, q23, 0x31);  /* q1 | q3 */
  const __m256i s0 = _mm256_permutevar8x32_epi32(_mm256_unpacklo_epi64(even, odd), halves);
  const __m256i s1 = _mm256_permutevar8x32_epi32(_mm256_unpackhi_epi64(even, odd), halves);
  /* pairs of bytes: rows alternate; split them within each lane */
  const __m256i split =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
  const __m256i a = _mm256_shuffle_epi8(s0, split);
  const __m256i b = _mm256_shuffle_epi8(s1, split);
  row_pair r;
  r.upper = _mm256_unpacklo_epi64(a, b);
  r.lower = _mm256_unpackhi_epi64(a, b);
  return r;
}

/* Weights from low and high bytes, 32 columns. */
GLYD_INLINE void store_row(uint16_t *out, __m256i low, __m256i high) {
  store(out, _mm256_unpacklo_epi8(low, high));
  store(out + 16, _mm256_unpackhi_epi8(low, high));
}

/* Two words a thread -> codes of its 16 weights, one a byte. */
GLYD_INLINE __m256i spread_codes(const uint8_t *words) {
  const __m256i w = _mm256_setr_epi64x((int64_t)glyd_load64(words), 0, (int64_t)glyd_load64(words + 16), 0);
  const __m256i twice = _mm256_shuffle_epi32(w, 0x50); /* word 0, 0, 1, 1 */
  const __m256i turned = _mm256_or_si256(_mm256_slli_epi32(twice, 4), _mm256_srli_epi32(twice, 28));
  return _mm256_and_si256(_mm256_blend_epi32(twice, turned, 0xAA), _mm256_set1_epi8((char)0x87));
}

unsigned glyd_weights_rows_mma12_avx2(uint16_t *out, const uint8_t *tile, const uint8_t *bases) {
  __m256i bad = _mm256_setzero_si256();
  for (unsigned i = 0; i < 32; i++) {
    const unsigned row = (i / 8) * 16 + i % 8;
    const unsigned thread = (i / 8) * 32 + (i % 8) * 4;
    const __m256i base0 = _mm256_set1_epi8((char)bases[row]);
    const __m256i base1 = _mm256_set1_epi8((char)bases[row + 8]);
    const __m256i zero0 = _mm256_cmpeq_epi8(base0, _mm256_setzero_si256());
    const __m256i zero1 = _mm256_cmpeq_epi8(base1, _mm256_setzero_si256());
    for (unsigned v = 0; v < 2; v++) {
      const uint8_t *at = tile + v * 2048 + thread * 16;
      const uint8_t *words = tile + 4096 + thread * 16 + v * 8;
      const row_pair low = row_order(load(at), load(at + 32));
      const row_pair code = row_order(spread_codes(words), spread_codes(words + 32));
      const __m256i seven = _mm256_set1_epi8(0x7F);
      bad = _mm256_or_si256(bad,
                            _mm256_and_si256(zero0, _mm256_or_si256(low.upper, _mm256_and_si256(code.upper, seven))));
      bad = _mm256_or_si256(bad,
                            _mm256_and_si256(zero1, _mm256_or_si256(low.lower, _mm256_and_si256(code.lower, seven))));
      /* base + code < 128: no carry into the sign */
      store_row(out + row * 64 + 32 * v, low.upper, _mm256_add_epi8(code.upper, base0));
      store_row(out + (row + 8) * 64 + 32 * v, low.lower, _mm256_add_epi8(code.lower, base1));
    }
  }
  return !_mm256_testz_si256(bad, bad);
}

GLYD_INLINE void tiered_row(uint16_t *out, __m256i sm, __m256i symbol, uint8_t base, __m256i *bad) {
  /* by code | digit << 2; 15 is tier 3's, the combinations that no tile has are 0 */
  const __m256i tier12 = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, -1, 0, 0, 0, 3, 0, 0, 0, -2, 0, 0, 0, 0));
  const __m256i tier3 =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(-3, 4, -4, -5, -6, -7, -8, -9, 0, 0, 0, 0, 0, 0, 0, 0));
  const __m256i nibble = _mm256_set1_epi8(15);
  const __m256i low4 = _mm256_and_si256(symbol, nibble);
  const __m256i high4 = _mm256_and_si256(_mm256_srli_epi16(symbol, 4), nibble);
  const __m256i third = _mm256_cmpeq_epi8(low4, nibble);
  const __m256i d = _mm256_blendv_epi8(_mm256_shuffle_epi8(tier12, low4), _mm256_shuffle_epi8(tier3, high4), third);
  const __m256i zero = _mm256_cmpeq_epi8(symbol, _mm256_set1_epi8((char)(15 | GLYD_WEIGHTS_TIER3_ZERO << 4)));
  const __m256i e = _mm256_andnot_si256(zero, _mm256_add_epi8(d, _mm256_set1_epi8((char)base)));
  const __m256i sign = _mm256_set1_epi8((char)0x80);
  const __m256i mantissa = _mm256_andnot_si256(sign, sm);
  *bad = _mm256_or_si256(*bad, _mm256_and_si256(zero, mantissa));
  if (base == 0) *bad = _mm256_or_si256(*bad, _mm256_or_si256(symbol, mantissa));
  const __m256i high = _mm256_and_si256(_mm256_srli_epi16(e, 1), _mm256_set1_epi8(0x7F));
  const __m256i low = _mm256_and_si256(_mm256_slli_epi16(e, 7), sign);
  store_row(out, _mm256_or_si256(mantissa, low), _mm256_or_si256(_mm256_and_si256(sm, sign), high));
}

unsigned glyd_weights_rows_tiered_avx2(uint16_t *out, const uint8_t *tile, const uint8_t *symbols,
                                       const uint8_t *bases) {
  __m256i bad = _mm256_setzero_si256();
  for (unsigned i = 0; i < 32; i++) {
    const unsigned row = (i / 8) * 16 + i % 8;
    const unsigned thread = (i / 8) * 32 + (i % 8) * 4;
    for (unsigned v = 0; v < 4; v++) {
      const uint8_t *at = tile + v * 2048 + thread * 16;
      const uint8_t *from = symbols + thread * 64 + v * 16;
      const row_pair sm = row_order(load(at), load(at + 32));
      const row_pair symbol = row_order(two(from, from + 64), two(from + 128, from + 192));
      tiered_row(out + row * 128 + 32 * v, sm.upper, symbol.upper, bases[row], &bad);
      tiered_row(out + (row + 8) * 128 + 32 * v, sm.lower, symbol.lower, bases[row + 8], &bad);
    }
  }
  return !_mm256_testz_si256(bad, bad);
}

unsigned glyd_weights_symbols_avx2(uint8_t *symbols, const uint8_t *codes, const uint8_t *escapes, uint32_t escapes_len,
                                   uint32_t n_digits) {
  const uint64_t ones = 0x0101010101010101u;
  const uint8_t *digits = escapes + GLYD_WEIGHTS_ESCAPE_HEADER;
  uint32_t at2 = 0;
  uint32_t at3 = (n_digits + 1) / 2;
  uint64_t above = 0;
  unsigned bad = 0;
  for (unsigned t = 0; t < 128; t++) {
    if (t % 32 == 0) bad |= glyd_load16(escapes + t / 16) != at2 || glyd_load16(escapes + 8 + t / 16) != at3;
    for (unsigned j = 0; j < 64; j += 8) {
      uint64_t x = _pdep_u64(glyd_load16(codes + t * 16 + j / 4), ones * 3);
      const uint64_t escaped = x & (x >> 1) & ones;
      const uint64_t digit = _pdep_u64(glyd_load32(digits + at2 / 4) >> (2 * (at2 % 4)), escaped * 3);
      const uint64_t third = digit & (digit >> 1) & ones;
      at2 += (uint32_t)__builtin_popcountll(escaped);
      x |= digit << 2;
      if (third != 0) {
        const uint64_t code = _pdep_u64(glyd_load64(digits + at3 / 2) >> (4 * (at3 % 2)), third * 15);
        at3 += (uint32_t)__builtin_popcountll(third);
        above |= (code + ones * (15 - GLYD_WEIGHTS_TIER3_ZERO)) & (ones * 16);
        x |= code << 4;
      }
      glyd_store64(symbols + t * 64 + j, x);
    }
  }
  return bad | (above != 0) | (glyd_weights_escape_bytes(n_digits, at3 - (n_digits + 1) / 2) != escapes_len);
}

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

/* Never chosen off x86-64; here so that one list of sources serves every target. */
unsigned glyd_weights_rows_mma12_avx2(uint16_t *out, const uint8_t *tile, const uint8_t *bases) {
  return glyd_weights_rows_mma12_scalar(out, tile, bases);
}
unsigned glyd_weights_rows_tiered_avx2(uint16_t *out, const uint8_t *tile, const uint8_t *symbols,
                                       const uint8_t *bases) {
  return glyd_weights_rows_tiered_scalar(out, tile, symbols, bases);
}
unsigned glyd_weights_symbols_avx2(uint8_t *symbols, const uint8_t *codes, const uint8_t *escapes, uint32_t escapes_len,
                                   uint32_t n_digits) {
  return glyd_weights_symbols_scalar(symbols, codes, escapes, escapes_len, n_digits);
}

#endif

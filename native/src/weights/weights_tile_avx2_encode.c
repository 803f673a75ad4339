/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Tile kernels for AVX2 and BMI2. A step takes 32 columns of rows g and g + 8,
 * one byte a weight (two PACKUS: lane kh holds k16 steps 0 and 1 of k half
 * kh), and brings them into thread order: 16 bytes for each of the four
 * threads q, next to each other in a tile.
 */
#include "weights/weights_tile_encode.h"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2,popcnt,lzcnt")
#endif

/* 64 bytes: 16 of each thread q, in the order (step, kh, h, p). */
typedef struct quad {
  __m256i q01;
  __m256i q23;
} quad;

GLYD_INLINE quad thread_order(__m256i upper, __m256i lower) {
  const __m256i pairs = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i s0 = _mm256_permutevar8x32_epi32(_mm256_unpacklo_epi16(upper, lower), pairs);
  const __m256i s1 = _mm256_permutevar8x32_epi32(_mm256_unpackhi_epi16(upper, lower), pairs);
  const __m256i even = _mm256_unpacklo_epi64(s0, s1);
  const __m256i odd = _mm256_unpackhi_epi64(s0, s1);
  quad r;
  r.q01 = _mm256_permute2x128_si256(even, odd, 0x20);
  r.q23 = _mm256_permute2x128_si256(even, odd, 0x31);
  return r;
}

GLYD_INLINE __m256i load(const uint8_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
GLYD_INLINE void store(uint8_t *p, __m256i v) { _mm256_storeu_si256((__m256i *)(void *)p, v); }

/* Low and high bytes of 32 weights. */
GLYD_INLINE __m256i low_bytes(__m256i a, __m256i b) {
  const __m256i m = _mm256_set1_epi16(0xFF);
  return _mm256_packus_epi16(_mm256_and_si256(a, m), _mm256_and_si256(b, m));
}
GLYD_INLINE __m256i high_bytes(__m256i a, __m256i b) {
  return _mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
}
/* Exponents of 32 weights. */
GLYD_INLINE __m256i exponents(__m256i low, __m256i high) {
  const __m256i twice = _mm256_add_epi8(high, high); /* exponent bits 7..1, one up; the sign falls off */
  const __m256i bit0 = _mm256_and_si256(_mm256_srli_epi16(low, 7), _mm256_set1_epi8(1));
  return _mm256_or_si256(twice, bit0);
}

/* Bits of a mask of packed bytes -> exception bits of a row, 32 columns. */
static void note(uint64_t *exceptions, uint32_t mask, unsigned row) {
  while (mask != 0) {
    const unsigned i = (unsigned)__builtin_ctz(mask);
    mask &= mask - 1;
    exceptions[(i / 8 % 2) * 16 + (i / 16) * 8 + i % 8] |= (uint64_t)1 << row;
  }
}

/* Codes "sign, 000, offset" of 32 weights; what lies outside the window gives low byte and code 0. */
GLYD_INLINE __m256i mma12_codes(const uint8_t *src, __m256i base, uint64_t *exceptions, unsigned row, __m256i *low) {
  const __m256i a = load(src);
  const __m256i b = load(src + 32);
  const __m256i high = high_bytes(a, b);
  const __m256i code = _mm256_sub_epi8(_mm256_and_si256(high, _mm256_set1_epi8(0x7F)), base);
  const __m256i in = _mm256_cmpeq_epi8(_mm256_min_epu8(code, _mm256_set1_epi8(7)), code);
  *low = _mm256_and_si256(low_bytes(a, b), in);
  const uint32_t out = ~(uint32_t)_mm256_movemask_epi8(in);
  if (GLYD_UNLIKELY(out != 0)) note(exceptions, out, row);
  return _mm256_and_si256(_mm256_or_si256(code, _mm256_and_si256(high, _mm256_set1_epi8((char)0x80))), in);
}

/* Words of two k16 steps for two threads: first half as it is, second turned by 4 bits. */
GLYD_INLINE void store_codes(uint8_t *out, __m256i v) {
  const __m256i turned = _mm256_or_si256(_mm256_srli_epi32(v, 4), _mm256_slli_epi32(v, 28));
  const __m256i words = _mm256_shuffle_epi32(_mm256_or_si256(v, _mm256_srli_epi64(turned, 32)), 0x88);
  const __m128i first = _mm256_castsi256_si128(words);
  const __m128i second = _mm256_extracti128_si256(words, 1);
  _mm_storel_epi64((__m128i *)(void *)out, first);
  _mm_storel_epi64((__m128i *)(void *)(out + 16), second);
}

void glyd_weights_tile_mma12_avx2(uint8_t *out, const uint8_t *src, size_t stride, const uint8_t *base,
                                  uint64_t *exceptions) {
  for (unsigned i = 0; i < 32; i++) {
    const unsigned row = (i / 8) * 16 + i % 8;
    const unsigned thread = (i / 8) * 32 + (i % 8) * 4;
    const uint8_t *upper = src + 2 * row * stride;
    const uint8_t *lower = src + 2 * (row + 8) * stride;
    const __m256i base0 = _mm256_set1_epi8((char)base[row]);
    const __m256i base1 = _mm256_set1_epi8((char)base[row + 8]);
    for (unsigned v = 0; v < 2; v++) {
      __m256i l0;
      __m256i l1;
      const __m256i c0 = mma12_codes(upper + 64 * v, base0, exceptions + 32 * v, row, &l0);
      const __m256i c1 = mma12_codes(lower + 64 * v, base1, exceptions + 32 * v, row + 8, &l1);
      const quad low = thread_order(l0, l1);
      store(out + v * 2048 + thread * 16, low.q01);
      store(out + v * 2048 + thread * 16 + 32, low.q23);
      const quad code = thread_order(c0, c1);
      store_codes(out + 4096 + thread * 16 + v * 8, code.q01);
      store_codes(out + 4096 + thread * 16 + v * 8 + 32, code.q23);
    }
  }
}

/* Sum of 16 counters of 16 bits, none over 32767. */
GLYD_INLINE uint64_t sum_counters(__m256i v) {
  const __m256i pairs = _mm256_madd_epi16(v, _mm256_set1_epi16(1));
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
  const __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
  return (uint32_t)_mm_cvtsi128_si32(two) + (uint64_t)(uint32_t)_mm_extract_epi32(two, 1);
}

int glyd_weights_tile_mma12_base_avx2(const uint8_t *row, size_t cols, uint8_t *base, uint64_t *exceptions) {
  const __m256i magnitude = _mm256_set1_epi16(0x7FFF);
  __m256i largest = _mm256_setzero_si256();
  const size_t whole = cols / 16 * 16;
  for (size_t c = 0; c < whole; c += 16)
    largest = _mm256_max_epi16(largest, _mm256_and_si256(load(row + 2 * c), magnitude));
  __m128i most = _mm_max_epi16(_mm256_castsi256_si128(largest), _mm256_extracti128_si256(largest, 1));
  most = _mm_xor_si128(_mm_minpos_epu16(_mm_xor_si128(most, _mm_set1_epi16(-1))), _mm_set1_epi16(-1));
  unsigned max = (unsigned)_mm_extract_epi16(most, 0);
  for (size_t c = whole; c < cols; c++) {
    const unsigned w = glyd_load16(row + 2 * c) & 0x7FFFu;
    max = w > max ? w : max;
  }
  *base = 0;
  if (max == 0) return 1;
  const unsigned top = max >> 8; /* of the values that a window holds 8 of */
  if (top == 127) return 0;
  const unsigned lowest = top > 8 ? top - 7 : 1;
  const __m256i low = _mm256_set1_epi16((short)(lowest << 8));
  const __m256i high = _mm256_set1_epi16((short)((top << 8) - 1));
  uint64_t below = 0;
  uint64_t at_top = 0;
  for (size_t c = 0; c < whole;) {
    const size_t end = whole - c < 16 * 32767 ? whole : c + 16 * 32767;
    __m256i n_below = _mm256_setzero_si256();
    __m256i n_top = _mm256_setzero_si256();
    for (; c < end; c += 16) {
      const __m256i w = _mm256_and_si256(load(row + 2 * c), magnitude);
      n_below = _mm256_sub_epi16(n_below, _mm256_cmpgt_epi16(low, w));
      n_top = _mm256_sub_epi16(n_top, _mm256_cmpgt_epi16(w, high));
    }
    below += sum_counters(n_below);
    at_top += sum_counters(n_top);
  }
  for (size_t c = whole; c < cols; c++) {
    const unsigned w = glyd_load16(row + 2 * c) & 0x7FFFu;
    below += w < lowest << 8;
    at_top += w >= top << 8;
  }
  /* a lower window loses at_top weights at least, a higher one gains none */
  if (top > 8 && below >= at_top) return 0;
  *base = (uint8_t)lowest;
  *exceptions += below;
  return 1;
}

GLYD_INLINE __m256i tiered_symbols(const uint8_t *src, __m256i base, uint64_t *exceptions, unsigned row, __m256i *sm) {
  const __m256i table =
      _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)glyd_weights_symbols));
  const __m256i a = load(src);
  const __m256i b = load(src + 32);
  const __m256i low = low_bytes(a, b);
  const __m256i high = high_bytes(a, b);
  const __m256i place = _mm256_sub_epi8(exponents(low, high), base); /* base is the row's less 9 */
  /* 14 and 15 give the symbol of zero; so does what lies further off */
  const __m256i symbol = _mm256_shuffle_epi8(table, _mm256_min_epu8(place, _mm256_set1_epi8(15)));
  const __m256i sign = _mm256_set1_epi8((char)0x80);
  *sm = _mm256_or_si256(_mm256_and_si256(high, sign), _mm256_andnot_si256(sign, low));
  const __m256i in = _mm256_cmpeq_epi8(_mm256_min_epu8(place, _mm256_set1_epi8(GLYD_WEIGHTS_SPAN - 1)), place);
  if (GLYD_UNLIKELY(~(uint32_t)_mm256_movemask_epi8(in) != 0)) {
    const __m256i magnitude = _mm256_or_si256(_mm256_andnot_si256(sign, high), low);
    const __m256i keep = _mm256_or_si256(in, _mm256_cmpeq_epi8(magnitude, _mm256_setzero_si256()));
    *sm = _mm256_and_si256(*sm, keep);
    note(exceptions, ~(uint32_t)_mm256_movemask_epi8(keep), row);
  }
  return symbol;
}

/* Two threads' 16 codes each, packed to 32 bits. */
GLYD_INLINE void store_words(uint8_t *out, __m256i symbols) {
  const __m256i codes = _mm256_and_si256(symbols, _mm256_set1_epi8(3));
  const __m256i nibbles = _mm256_maddubs_epi16(codes, _mm256_set1_epi16(0x0401));
  const __m256i bytes = _mm256_madd_epi16(nibbles, _mm256_set1_epi32(0x00100001));
  const __m256i gather = _mm256_set1_epi32(0x0C080400);
  const __m256i words = _mm256_shuffle_epi8(bytes, gather);
  const uint32_t first = (uint32_t)_mm256_extract_epi32(words, 0);
  const uint32_t second = (uint32_t)_mm256_extract_epi32(words, 4);
  glyd_store32(out, first);
  glyd_store32(out + 16, second);
}

void glyd_weights_tile_tiered_avx2(uint8_t *out, uint8_t *symbols, const uint8_t *src, size_t stride,
                                   const uint8_t *base, uint64_t *exceptions) {
  for (unsigned i = 0; i < 32; i++) {
    const unsigned row = (i / 8) * 16 + i % 8;
    const unsigned thread = (i / 8) * 32 + (i % 8) * 4;
    const uint8_t *upper = src + 2 * row * stride;
    const uint8_t *lower = src + 2 * (row + 8) * stride;
    const __m256i base0 = _mm256_set1_epi8((char)(base[row] - GLYD_WEIGHTS_BELOW));
    const __m256i base1 = _mm256_set1_epi8((char)(base[row + 8] - GLYD_WEIGHTS_BELOW));
    for (unsigned v = 0; v < 4; v++) {
      __m256i m0;
      __m256i m1;
      const __m256i s0 = tiered_symbols(upper + 64 * v, base0, exceptions + 32 * v, row, &m0);
      const __m256i s1 = tiered_symbols(lower + 64 * v, base1, exceptions + 32 * v, row + 8, &m1);
      const quad sm = thread_order(m0, m1);
      store(out + v * 2048 + thread * 16, sm.q01);
      store(out + v * 2048 + thread * 16 + 32, sm.q23);
      const quad s = thread_order(s0, s1);
      uint8_t *to = symbols + thread * 64 + v * 16;
      _mm_storeu_si128((__m128i *)(void *)to, _mm256_castsi256_si128(s.q01));
      _mm_storeu_si128((__m128i *)(void *)(to + 64), _mm256_extracti128_si256(s.q01, 1));
      _mm_storeu_si128((__m128i *)(void *)(to + 128), _mm256_castsi256_si128(s.q23));
      _mm_storeu_si128((__m128i *)(void *)(to + 192), _mm256_extracti128_si256(s.q23, 1));
      store_words(out + 8192 + thread * 16 + v * 4, s.q01);
      store_words(out + 8192 + thread * 16 + v * 4 + 32, s.q23);
    }
  }
}

uint64_t glyd_weights_tile_count_avx2(uint8_t *counts, const uint8_t *row, size_t cols, uint8_t base) {
  const __m256i least = _mm256_set1_epi8((char)(base - GLYD_WEIGHTS_BELOW));
  uint64_t exceptions = 0;
  size_t c = 0;
  for (; c + GLYD_WEIGHTS_TIERED_COLS <= cols; c += GLYD_WEIGHTS_TIERED_COLS) {
    uint32_t n2 = GLYD_WEIGHTS_TIERED_COLS;
    uint32_t n3 = GLYD_WEIGHTS_TIERED_COLS;
    for (unsigned v = 0; v < 4; v++) {
      const __m256i a = load(row + 2 * c + 64 * v);
      const __m256i b = load(row + 2 * c + 64 * v + 32);
      const __m256i low = low_bytes(a, b);
      const __m256i high = high_bytes(a, b);
      const __m256i place = _mm256_sub_epi8(exponents(low, high), least);
      const __m256i tier1 = _mm256_sub_epi8(place, _mm256_set1_epi8(9));
      const __m256i tier2 = _mm256_sub_epi8(place, _mm256_set1_epi8(7));
      const __m256i in1 = _mm256_cmpeq_epi8(_mm256_min_epu8(tier1, _mm256_set1_epi8(2)), tier1);
      const __m256i in2 = _mm256_cmpeq_epi8(_mm256_min_epu8(tier2, _mm256_set1_epi8(5)), tier2);
      const __m256i in3 = _mm256_cmpeq_epi8(_mm256_min_epu8(place, _mm256_set1_epi8(GLYD_WEIGHTS_SPAN - 1)), place);
      n2 -= (uint32_t)__builtin_popcount((uint32_t)_mm256_movemask_epi8(in1));
      n3 -= (uint32_t)__builtin_popcount((uint32_t)_mm256_movemask_epi8(in2));
      const uint32_t out = ~(uint32_t)_mm256_movemask_epi8(in3);
      if (GLYD_UNLIKELY(out != 0)) {
        const __m256i magnitude = _mm256_or_si256(_mm256_and_si256(high, _mm256_set1_epi8(0x7F)), low);
        const uint32_t zero = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(magnitude, _mm256_setzero_si256()));
        exceptions += (uint32_t)__builtin_popcount(out & ~zero);
      }
    }
    uint8_t *at = counts + 4 * (c / GLYD_WEIGHTS_TIERED_COLS);
    glyd_store32(at, glyd_load32(at) + n2 + (n3 << 16));
  }
  if (c < cols)
    exceptions +=
        glyd_weights_tile_count_scalar(counts + 4 * (c / GLYD_WEIGHTS_TIERED_COLS), row + 2 * c, cols - c, base);
  return exceptions;
}

/* PEXT takes the digits of 8 symbols at once: 2 bits where the code is 3. */
void glyd_weights_tile_escapes_avx2(uint8_t *out, size_t out_len, const uint8_t *symbols, uint8_t *codes3) {
  const uint64_t ones = 0x0101010101010101u;
  uint8_t *const end = out + out_len;
  uint8_t *at = out + GLYD_WEIGHTS_ESCAPE_HEADER;
  uint64_t bits = 0;
  unsigned fill = 0;
  uint32_t n2 = 0;
  uint32_t n3 = 0;
  uint32_t first3[4];
  for (unsigned w = 0; w < 4; w++) {
    glyd_store16(out + 2 * w, (uint16_t)n2);
    first3[w] = n3;
    for (unsigned i = 0; i < 2048; i += 8) {
      const uint64_t x = glyd_load64(symbols + w * 2048 + i);
      const uint64_t escaped = x & (x >> 1) & ones;
      const unsigned n = (unsigned)__builtin_popcountll(escaped);
      bits |= _pext_u64(x, escaped * 12) << fill;
      fill += 2 * n;
      n2 += n;
      if (fill >= 32) {
        glyd_store32(at, (uint32_t)bits);
        at += 4;
        bits >>= 32;
        fill -= 32;
      }
      const uint64_t third = escaped & (x >> 2) & (x >> 3);
      if (third != 0) {
        /* up to 8 codes are stored, those found count */
        uint64_t codes = _pext_u64(x, third * 0xF0);
        codes = _pdep_u64(codes, ones * 15);
        glyd_store64(codes3 + n3, codes);
        n3 += (uint32_t)__builtin_popcountll(third);
      }
    }
  }
  while (at < end) {
    *at++ = (uint8_t)bits;
    bits >>= 8;
  }
  const uint32_t start3 = (n2 + 1) / 2;
  for (unsigned w = 0; w < 4; w++) glyd_store16(out + 8 + 2 * w, (uint16_t)(start3 + first3[w]));
  uint8_t *digits = out + GLYD_WEIGHTS_ESCAPE_HEADER;
  for (uint32_t i = 0; i < n3; i++) {
    uint8_t *to = digits + (start3 + i) / 2;
    *to = (uint8_t)(*to | codes3[i] << (4 * ((start3 + i) % 2)));
  }
}

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

/* Never chosen off x86-64; here so that one list of sources serves every target. */
void glyd_weights_tile_mma12_avx2(uint8_t *out, const uint8_t *src, size_t stride, const uint8_t *base,
                                  uint64_t *exceptions) {
  glyd_weights_tile_mma12_scalar(out, src, stride, base, exceptions);
}
int glyd_weights_tile_mma12_base_avx2(const uint8_t *row, size_t cols, uint8_t *base, uint64_t *exceptions) {
  (void)row, (void)cols, (void)base, (void)exceptions;
  return 0;
}
void glyd_weights_tile_tiered_avx2(uint8_t *out, uint8_t *symbols, const uint8_t *src, size_t stride,
                                   const uint8_t *base, uint64_t *exceptions) {
  glyd_weights_tile_tiered_scalar(out, symbols, src, stride, base, exceptions);
}
uint64_t glyd_weights_tile_count_avx2(uint8_t *counts, const uint8_t *row, size_t cols, uint8_t base) {
  return glyd_weights_tile_count_scalar(counts, row, cols, base);
}
void glyd_weights_tile_escapes_avx2(uint8_t *out, size_t out_len, const uint8_t *symbols, uint8_t *codes3) {
  glyd_weights_tile_escapes_scalar(out, out_len, symbols, codes3);
}

#endif

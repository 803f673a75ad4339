/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Execution of plain blocks with AVX2: 16 tokens a step.
 */
#include "block/block_plain_exec.h"

#ifdef GLYD_PLAIN_AVX2

#include <immintrin.h>

#define AVX2_CODE __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))
#define AVX2_INLINE static inline __attribute__((always_inline, target("avx2,bmi,bmi2,lzcnt,popcnt")))
#define BATCH_INLINE AVX2_INLINE
#define BATCH_TYPES
#include "block/block_plain_batch.h"

/* SPREAD[m]: pshufb control that moves byte r to the place of the r-th set bit
 * of m, and zero to the others. */
#define BIT(m, i) ((unsigned)(m) >> (i)&1u)
#define RANK(m, i)                                                                                                 \
  (((i) > 0 ? BIT(m, 0) : 0) + ((i) > 1 ? BIT(m, 1) : 0) + ((i) > 2 ? BIT(m, 2) : 0) + ((i) > 3 ? BIT(m, 3) : 0) + \
   ((i) > 4 ? BIT(m, 4) : 0) + ((i) > 5 ? BIT(m, 5) : 0) + ((i) > 6 ? BIT(m, 6) : 0))
#define PLACE(m, i) ((uint64_t)(BIT(m, i) ? RANK(m, i) : 0x80u) << (8 * (i)))
#define SPREAD1(m) \
  PLACE(m, 0) | PLACE(m, 1) | PLACE(m, 2) | PLACE(m, 3) | PLACE(m, 4) | PLACE(m, 5) | PLACE(m, 6) | PLACE(m, 7)
#define SPREAD4(m) SPREAD1(m), SPREAD1((m) + 1), SPREAD1((m) + 2), SPREAD1((m) + 3)
#define SPREAD16(m) SPREAD4(m), SPREAD4((m) + 4), SPREAD4((m) + 8), SPREAD4((m) + 12)
#define SPREAD64(m) SPREAD16(m), SPREAD16((m) + 16), SPREAD16((m) + 32), SPREAD16((m) + 48)
static const uint64_t SPREAD[256] = {SPREAD64(0), SPREAD64(64), SPREAD64(128), SPREAD64(192)};

/* pshufb controls that repeat the first off bytes (off < 16), and the largest
 * multiple of off up to 16. */
#define MOD8(n, o)                                                                                                 \
  (n) % (o), ((n) + 1) % (o), ((n) + 2) % (o), ((n) + 3) % (o), ((n) + 4) % (o), ((n) + 5) % (o), ((n) + 6) % (o), \
      ((n) + 7) % (o)
#define CYCLE(o) \
  { MOD8(0, o), MOD8(8, o) }
static const uint8_t PATTERN[16][16] = {CYCLE(1),  CYCLE(1),  CYCLE(2),  CYCLE(3), CYCLE(4),  CYCLE(5),
                                        CYCLE(6),  CYCLE(7),  CYCLE(8),  CYCLE(9), CYCLE(10), CYCLE(11),
                                        CYCLE(12), CYCLE(13), CYCLE(14), CYCLE(15)};
static const uint8_t STRIDE[16] = {16, 16, 16, 15, 16, 15, 12, 14, 16, 9, 10, 11, 12, 13, 14, 15};

AVX2_INLINE void copy32(uint8_t *d, const uint8_t *s) {
  _mm256_storeu_si256((__m256i *)(void *)d, _mm256_loadu_si256((const __m256i *)(const void *)s));
}
AVX2_INLINE __m128i load128(const void *p) { return _mm_loadu_si128((const __m128i *)p); }

/* Match with 1 <= off < 32; writes at most n + 31 bytes. */
AVX2_INLINE void copy_near(uint8_t *op, size_t off, size_t n) {
  const uint8_t *m = op - off;
  if (off >= 16) {
    for (size_t i = 0; i < n; i += 16) glyd_copy16(op + i, m + i);
    return;
  }
  __m128i pattern = _mm_shuffle_epi8(load128(m), load128(PATTERN[off]));
  size_t stride = STRIDE[off];
  for (size_t i = 0; i < n; i += stride) _mm_storeu_si128((__m128i *)(void *)(op + i), pattern);
}

/* Move the bytes at *p to the lanes set in mask; *p advances past them. */
AVX2_INLINE __m128i spread16(const uint8_t **p, unsigned mask) {
  const uint8_t *q = *p;
  __m128i low = _mm_shuffle_epi8(_mm_loadl_epi64((const __m128i *)(const void *)q),
                                 _mm_cvtsi64_si128((long long)SPREAD[mask & 255]));
  q += _mm_popcnt_u32(mask & 255);
  __m128i high = _mm_shuffle_epi8(_mm_loadl_epi64((const __m128i *)(const void *)q),
                                  _mm_cvtsi64_si128((long long)SPREAD[mask >> 8]));
  *p = q + _mm_popcnt_u32(mask >> 8);
  return _mm_unpacklo_epi64(low, high);
}

/* The same for eight 16-bit values. */
AVX2_INLINE __m128i spread8_16(const uint8_t **p, unsigned mask) {
  __m128i c = _mm_cvtsi64_si128((long long)SPREAD[mask]);
  c = _mm_unpacklo_epi8(c, c);
  c = _mm_adds_epu8(_mm_adds_epu8(c, c), _mm_set1_epi16(0x0100));
  __m128i v = _mm_shuffle_epi8(load128(*p), c);
  *p += 2 * (size_t)_mm_popcnt_u32(mask);
  return v;
}

AVX2_INLINE uint64_t sum64(__m128i v) { return (uint64_t)_mm_cvtsi128_si64(v) + (uint64_t)_mm_extract_epi64(v, 1); }

AVX2_INLINE void expand(const glyd_plain_view *view, batch_cursors *c, batch *b, size_t k, const int repeat,
                        batch_sums *sums) {
  const __m128i zero = _mm_setzero_si128(), seven = _mm_set1_epi8(7), fifteen = _mm_set1_epi8(15);
  const __m128i all = _mm_set1_epi8(-1), lengths = load128(view->length);
  const __m128i lane = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  __m128i any = zero, sum_ll = zero, sum_ml = zero;
  __m256i most = _mm256_setzero_si256();
  unsigned n_zero = 0, n_repeat = 0;
  for (size_t i = 0; i < k; i += 16) {
    __m128i t = load128(c->token + i), valid = all;
    if (i + 16 > k) {
      valid = _mm_cmpgt_epi8(_mm_set1_epi8((char)(k - i)), lane);
      t = _mm_and_si128(t, valid);
    }
    __m128i l = _mm_and_si128(t, seven), code = _mm_and_si128(_mm_srli_epi16(t, GLYD_PLAIN_ML_SHIFT), fifteen);
    unsigned l_mask = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(l, seven));
    unsigned m_mask = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(code, fifteen));
    unsigned f_mask = (unsigned)_mm_movemask_epi8(t);
    l = _mm_adds_epu8(l, spread16(&c->ll, l_mask));
    __m128i m = _mm_adds_epu8(_mm_shuffle_epi8(lengths, code), spread16(&c->ml, m_mask));
    m = _mm_and_si128(m, valid);
    any = _mm_or_si128(any, _mm_or_si128(_mm_cmpeq_epi8(l, all), _mm_cmpeq_epi8(m, all)));
    sum_ll = _mm_add_epi64(sum_ll, _mm_sad_epu8(l, zero));
    sum_ml = _mm_add_epi64(sum_ml, _mm_sad_epu8(m, zero));
    _mm_storeu_si128((__m128i *)(void *)(b->ll + i), l);
    _mm_storeu_si128((__m128i *)(void *)(b->ml + i), m);
    __m128i w0, w1, h;
    if (repeat) {
      unsigned new_mask = ~f_mask & (unsigned)_mm_movemask_epi8(valid);
      w0 = spread8_16(&c->offset, new_mask & 255);
      w1 = spread8_16(&c->offset, new_mask >> 8);
      h = spread16(&c->far, (unsigned)_mm_movemask_epi8(_mm_packs_epi16(w0, w1)));
      n_repeat += 16 - (unsigned)_mm_popcnt_u32(new_mask);
      w0 = _mm_and_si128(w0, _mm_set1_epi16(0x7FFF));
      w1 = _mm_and_si128(w1, _mm_set1_epi16(0x7FFF));
    } else {
      w0 = load128(c->offset + 2 * i);
      w1 = load128(c->offset + 2 * i + 16);
      h = spread16(&c->far, f_mask);
      if (i + 16 > k) {
        w0 = _mm_and_si128(w0, _mm_unpacklo_epi8(valid, valid));
        w1 = _mm_and_si128(w1, _mm_unpackhi_epi8(valid, valid));
        n_repeat += 16 - (unsigned)(k - i);
      }
    }
    const int shift = repeat ? 15 : 16;
    __m256i o0 = _mm256_or_si256(_mm256_cvtepu16_epi32(w0), _mm256_slli_epi32(_mm256_cvtepu8_epi32(h), shift));
    __m256i o1 = _mm256_or_si256(_mm256_cvtepu16_epi32(w1),
                                 _mm256_slli_epi32(_mm256_cvtepu8_epi32(_mm_srli_si128(h, 8)), shift));
    most = _mm256_max_epu32(most, _mm256_max_epu32(o0, o1));
    __m256i z = _mm256_packs_epi32(_mm256_cmpeq_epi32(o0, _mm256_setzero_si256()),
                                   _mm256_cmpeq_epi32(o1, _mm256_setzero_si256()));
    n_zero += (unsigned)_mm_popcnt_u32((unsigned)_mm256_movemask_epi8(z));
    _mm256_storeu_si256((__m256i *)(void *)(b->off + i), o0);
    _mm256_storeu_si256((__m256i *)(void *)(b->off + i + 8), o1);
  }
  c->token += k;
  if (!repeat) c->offset += 2 * k;
  __m128i top = _mm_max_epu32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
  top = _mm_max_epu32(top, _mm_shuffle_epi32(top, 0x4E));
  top = _mm_max_epu32(top, _mm_shuffle_epi32(top, 0xB1));
  sums->reach = (uint32_t)_mm_cvtsi128_si32(top);
  sums->literals = sum64(sum_ll);
  sums->matches = sum64(sum_ml);
  sums->any_long = _mm_movemask_epi8(any);
  sums->bad_offset = n_zero != 2 * n_repeat;
}

#include "block/block_plain_batch.h"

static GLYD_NOINLINE AVX2_CODE glyd_status exec_offsets(const glyd_plain_view *view) { return exec(view, 0); }
static GLYD_NOINLINE AVX2_CODE glyd_status exec_repeat(const glyd_plain_view *view) { return exec(view, 1); }

AVX2_CODE glyd_status glyd_plain_exec_avx2(const glyd_plain_view *view) {
  return view->repeat ? exec_repeat(view) : exec_offsets(view);
}

#else
typedef int glyd_plain_avx2_unused; /* a translation unit must not be empty */
#endif

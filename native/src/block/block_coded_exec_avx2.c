/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Execution for AVX2 and BMI2, a batch of 128 sequences at a time:
 *   lengths  16 commands a step: fields split, match lengths looked up, escape
 *            bytes spread to the commands that have one; totals on the way
 *   resolve  repeat slots and the next new offset are four lanes of a register,
 *            one shuffle moves the one used to the front; matches are prefetched
 *   checks   one comparison each for the whole batch
 *   copies   nothing but copies, all of a fixed size unless a length is rare
 */
#include "block/block_coded_exec.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))
#define TARGET_INLINE static inline __attribute__((always_inline, target("avx2,bmi,bmi2,lzcnt,popcnt")))

#define BATCH GLYD_CODED_BATCH
/* worth 1% in the resolve loop, nothing in the copy loop */
#if defined(__clang__)
#define UNROLL4 _Pragma("unroll 4")
#else
#define UNROLL4 _Pragma("GCC unroll 4")
#endif
#define ROOM 128      /* copies write at most this far past the end of a batch */
#define ROOM_EXACT 32 /* and near the end of the output past a sequence */
_Static_assert(GLYD_CODED_LITERALS_SLACK >= 32, "literals are copied by 16");
_Static_assert(GLYD_CODED_PLANE_SLACK >= BATCH + 16, "a batch may run past escapes, a load past commands");

/* Shuffles that move 4-byte lane i to the front. */
static const uint8_t to_front[4][16]
    __attribute__((aligned(64))) = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                    {4, 5, 6, 7, 0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15},
                                    {8, 9, 10, 11, 0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15},
                                    {12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}};

/* Shuffles that move a lane to the front as those above do, and then put the slot
 * that the next new offset is near, or zeros, into the last lane. */
#define LANE(i) 4 * (i), 4 * (i) + 1, 4 * (i) + 2, 4 * (i) + 3
#define NEAR_ROW(a, b, c)                                                                \
  {LANE(a), LANE(b), LANE(c), 128, 128, 128, 128}, {LANE(a), LANE(b), LANE(c), LANE(a)}, \
      {LANE(a), LANE(b), LANE(c), LANE(b)}, {                                            \
    LANE(a), LANE(b), LANE(c), LANE(c)                                                   \
  }
static const uint8_t near_front[16][16]
    __attribute__((aligned(64))) = {NEAR_ROW(0, 1, 2), NEAR_ROW(1, 0, 2), NEAR_ROW(2, 0, 1), NEAR_ROW(3, 0, 1)};

/* And what is to be taken from it. */
#define NEAR_UNIT(slot) (0u - (((slot) + 1u) << GLYD_CODED_NEAR_SHIFT) - GLYD_CODED_NEAR_MOST)
static const uint32_t near_unit[4][4]
    __attribute__((aligned(64))) = {{0}, {0, 0, 0, NEAR_UNIT(0)}, {0, 0, 0, NEAR_UNIT(1)}, {0, 0, 0, NEAR_UNIT(2)}};

/* Shuffles that repeat the first n bytes, and the largest multiple of n in 16. */
#define R16(n)                                                                                                    \
  {                                                                                                               \
    0 % n, 1 % n, 2 % n, 3 % n, 4 % n, 5 % n, 6 % n, 7 % n, 8 % n, 9 % n, 10 % n, 11 % n, 12 % n, 13 % n, 14 % n, \
        15 % n                                                                                                    \
  }
static const uint8_t repeat_first[16][16]
    __attribute__((aligned(64))) = {R16(16), R16(1), R16(2),  R16(3),  R16(4),  R16(5),  R16(6),  R16(7),
                                    R16(8),  R16(9), R16(10), R16(11), R16(12), R16(13), R16(14), R16(15)};
static const uint8_t repeat_step[16] = {16, 16, 16, 15, 16, 15, 12, 14, 16, 9, 10, 11, 12, 13, 14, 15};

/* Shuffles that spread the next bytes to the places of the bits of a mask. */
#define SPREAD1(m, i) ((uint64_t)((m) >> (i)&1 ? SPREAD_COUNT(m, i) : 0x80u) << (8 * (i)))
#define SPREAD_BIT(m, i, k) ((k) < (i) ? (m) >> (k)&1u : 0u)
#define SPREAD_COUNT(m, i)                                                                                       \
  (SPREAD_BIT(m, i, 0) + SPREAD_BIT(m, i, 1) + SPREAD_BIT(m, i, 2) + SPREAD_BIT(m, i, 3) + SPREAD_BIT(m, i, 4) + \
   SPREAD_BIT(m, i, 5) + SPREAD_BIT(m, i, 6))
#define SPREAD(m)                                                                                                  \
  (SPREAD1(m, 0) | SPREAD1(m, 1) | SPREAD1(m, 2) | SPREAD1(m, 3) | SPREAD1(m, 4) | SPREAD1(m, 5) | SPREAD1(m, 6) | \
   SPREAD1(m, 7))
#define SPREAD4(m) SPREAD(m), SPREAD(m + 1), SPREAD(m + 2), SPREAD(m + 3)
#define SPREAD16(m) SPREAD4(m), SPREAD4(m + 4), SPREAD4(m + 8), SPREAD4(m + 12)
#define SPREAD64(m) SPREAD16(m), SPREAD16(m + 16), SPREAD16(m + 32), SPREAD16(m + 48)
static const uint64_t spread[256]
    __attribute__((aligned(64))) = {SPREAD64(0u), SPREAD64(64u), SPREAD64(128u), SPREAD64(192u)};

/* The sixteen escape bytes, or zeros, of commands whose bits in mask are set;
 * *at moves past those used. */
TARGET_INLINE __m128i take_escapes(const uint8_t **at, uint32_t mask) {
  const uint8_t *p = *at;
  __m128i low = _mm_shuffle_epi8(_mm_loadl_epi64((const __m128i *)p), _mm_cvtsi64_si128((long long)spread[mask & 255]));
  p += _mm_popcnt_u32(mask & 255);
  __m128i high = _mm_shuffle_epi8(_mm_loadl_epi64((const __m128i *)p), _mm_cvtsi64_si128((long long)spread[mask >> 8]));
  *at = p + _mm_popcnt_u32(mask >> 8);
  return _mm_unpacklo_epi64(low, high);
}

TARGET_INLINE void copy32(uint8_t *d, const uint8_t *s) {
  _mm256_storeu_si256((__m256i *)d, _mm256_loadu_si256((const __m256i *)s));
}

/* Any offset from 1 on; writes at most 31 bytes past the match. */
TARGET GLYD_NOINLINE static void copy_match_near(uint8_t *op, size_t off, size_t len) {
  uint8_t *const end = op + len;
  const uint8_t *m = op - off;
  if (off >= 32) {
    do {
      copy32(op, m);
      op += 32;
      m += 32;
    } while (op < end);
  } else if (off >= 16) {
    do {
      glyd_copy16(op, m);
      op += 16;
      m += 16;
    } while (op < end);
  } else {
    __m128i v =
        _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)m), _mm_load_si128((const __m128i *)repeat_first[off]));
    const size_t step = repeat_step[off];
    do {
      _mm_storeu_si128((__m128i *)op, v);
      op += step;
    } while (op < end);
  }
}

typedef struct batch {
  uint8_t literals[BATCH + 16]; /* lengths; 255: the next long length */
  uint8_t match[BATCH + 16];
  uint8_t lane[BATCH + 16];  /* 16 times the offset field: byte offset in to_front */
  uint8_t fresh[BATCH + 16]; /* 4 where a new offset is used, else 0 */
  uint32_t offset[BATCH + 8];
} batch;

/* The copies of a batch of k sequences. wide: 64 match bytes are copied at
 * once, or 128 if 2, not 32; checked: offsets may reach before the segment. */
TARGET_INLINE int copy_batch(const int wide, const int checked, const batch *b, size_t k, uint8_t **op_at,
                             const uint8_t **lit_at, const uint32_t *longs, const uint8_t *segment) {
  uint8_t *op = *op_at;
  const uint8_t *lit = *lit_at;
  for (size_t i = 0; i < k; i++) {
    size_t ll = b->literals[i], ml = b->match[i], off = b->offset[i];
    glyd_copy16(op, lit);
    if (GLYD_UNLIKELY(ll > 16)) {
      if (ll == GLYD_CODED_LONG) ll = *longs++;
      uint8_t *d = op + 16;
      const uint8_t *s = lit + 16;
      do {
        glyd_copy16(d, s);
        d += 16;
        s += 16;
      } while (d < op + ll);
    }
    op += ll;
    lit += ll;
    if (checked && off - 1 >= (size_t)(op - segment)) return 0;
    const uint8_t *m = op - off;
    /* Narrow copies are two of 16 bytes: offsets of 16 to 31 need no branch of
     * their own, and loads are forwarded from earlier stores more often. */
    const size_t first = wide == 2 ? 128 : wide ? 64 : 32;
    if (GLYD_UNLIKELY(off < (wide ? 32 : 16))) {
      if (ml == GLYD_CODED_LONG) ml = *longs++;
      copy_match_near(op, off, ml);
      op += ml;
      continue;
    }
    if (wide) {
      copy32(op, m);
      copy32(op + 32, m + 32);
      if (wide == 2) {
        copy32(op + 64, m + 64);
        copy32(op + 96, m + 96);
      }
    } else {
      glyd_copy16(op, m);
      glyd_copy16(op + 16, m + 16);
    }
    if (GLYD_UNLIKELY(ml > first)) {
      if (ml == GLYD_CODED_LONG) ml = *longs++;
      uint8_t *d = op + first;
      m += first;
      if (wide || off >= 32) {
        do {
          copy32(d, m);
          d += 32;
          m += 32;
        } while (d < op + ml);
      } else {
        do {
          glyd_copy16(d, m);
          glyd_copy16(d + 16, m + 16);
          d += 32;
          m += 32;
        } while (d < op + ml);
      }
    }
    op += ml;
  }
  *op_at = op;
  *lit_at = lit;
  return 1;
}

/* Near the end of the output, which is out_end: a sequence with room behind it
 * is still copied in pieces, others byte by byte. */
TARGET static int copy_batch_exact(const batch *b, size_t k, uint8_t **op_at, const uint8_t **lit_at,
                                   const uint32_t *longs, const uint8_t *segment, const uint8_t *out_end) {
  uint8_t *op = *op_at;
  const uint8_t *lit = *lit_at;
  for (size_t i = 0; i < k; i++) {
    size_t ll = b->literals[i], ml = b->match[i], off = b->offset[i];
    if (ll == GLYD_CODED_LONG) ll = *longs++;
    if (ml == GLYD_CODED_LONG) ml = *longs++;
    if (off - 1 >= (size_t)(op - segment) + ll) return 0;
    if ((size_t)(out_end - op) >= ll + ml + ROOM_EXACT) {
      for (size_t c = 0; c < ll; c += 16) glyd_copy16(op + c, lit + c);
      op += ll;
      lit += ll;
      if (off >= 16)
        for (size_t c = 0; c < ml; c += 16) glyd_copy16(op + c, op + c - off);
      else
        copy_match_near(op, off, ml);
    } else {
      for (size_t c = 0; c < ll; c++) op[c] = lit[c];
      op += ll;
      lit += ll;
      for (size_t c = 0; c < ml; c++) op[c] = op[(ptrdiff_t)c - (ptrdiff_t)off];
    }
    op += ml;
  }
  *op_at = op;
  *lit_at = lit;
  return 1;
}

/* Lengths of k commands; returns whether there is a long length. */
TARGET_INLINE int expand_lengths(batch *b, const uint8_t *cmd, size_t k, __m128i match_lengths, const uint8_t **lesc,
                                 const uint8_t **mesc, uint64_t *literals, uint64_t *matched) {
  const __m128i three = _mm_set1_epi8(3), fifteen = _mm_set1_epi8(15), ones = _mm_set1_epi8(-1);
  const __m128i zero = _mm_setzero_si128();
  __m128i any = zero, lsum = zero, msum = zero;
  for (size_t i = 0; i < k; i += 16) {
    __m128i c = _mm_loadu_si128((const __m128i *)(cmd + i));
    if (i + 16 > k)
      c = _mm_and_si128(c, _mm_cmpgt_epi8(_mm_set1_epi8((char)(k - i)),
                                          _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)));
    __m128i l = _mm_and_si128(c, three), m = _mm_and_si128(_mm_srli_epi16(c, 2), fifteen);
    uint32_t lmask = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(l, three));
    uint32_t mmask = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(m, fifteen));
    l = _mm_adds_epu8(l, take_escapes(lesc, lmask));
    m = _mm_adds_epu8(_mm_shuffle_epi8(match_lengths, m), take_escapes(mesc, mmask));
    any = _mm_or_si128(any, _mm_or_si128(_mm_cmpeq_epi8(l, ones), _mm_cmpeq_epi8(m, ones)));
    lsum = _mm_add_epi64(lsum, _mm_sad_epu8(l, zero));
    msum = _mm_add_epi64(msum, _mm_sad_epu8(m, zero));
    _mm_storeu_si128((__m128i *)(b->literals + i), l);
    _mm_storeu_si128((__m128i *)(b->match + i), m);
    const __m128i field = _mm_set1_epi8((char)0xC0), offset = _mm_and_si128(c, field);
    _mm_storeu_si128((__m128i *)(b->lane + i), _mm_and_si128(_mm_srli_epi16(c, 2), _mm_set1_epi8(0x30)));
    _mm_storeu_si128((__m128i *)(b->fresh + i), _mm_and_si128(_mm_cmpeq_epi8(offset, field), _mm_set1_epi8(4)));
  }
  *literals = (uint64_t)_mm_cvtsi128_si64(lsum) + (uint64_t)_mm_extract_epi64(lsum, 1);
  *matched = (uint64_t)_mm_cvtsi128_si64(msum) + (uint64_t)_mm_extract_epi64(msum, 1);
  return _mm_movemask_epi8(any) != 0;
}

typedef struct resolve_state {
  __m128i repeat; /* lanes: three slots, and one for the next new offset */
  const uint32_t *offsets;
  const uint32_t *longs, *longs_end;
  uint8_t *at; /* where the output of the sequences so far ends */
  uint64_t literals;
} resolve_state;

/* Slots, and the next new offset, which may be near one of them. */
TARGET_INLINE __m128i take_near(__m128i r, size_t lane, const uint32_t *offsets) {
  const size_t row = *offsets >> (GLYD_CODED_NEAR_SHIFT - 2) << 2; /* far ones have nothing there */
  const __m128i distance = _mm_add_epi32(_mm_insert_epi32(_mm_setzero_si128(), (int)*offsets, 3),
                                         _mm_load_si128((const __m128i *)((const uint8_t *)near_unit + row)));
  r = _mm_shuffle_epi8(r, _mm_load_si128((const __m128i *)((const uint8_t *)near_front + 4 * lane + row)));
  return _mm_add_epi32(r, distance);
}

/* Offsets of k sequences, prefetching what they copy. Returns 0 when long
 * lengths run out. */
TARGET_INLINE int resolve(const int with_longs, const int two_lines, const int near, batch *b, size_t k,
                          resolve_state *s) {
  __m128i r = s->repeat;
  const uint32_t *offsets = s->offsets;
  uint8_t *at = s->at;
  if (near) r = take_near(r, 0, offsets);
  UNROLL4
  for (size_t i = 0; i < k; i++) {
    size_t ll = b->literals[i], ml = b->match[i];
    if (with_longs) {
      if (ll == GLYD_CODED_LONG) {
        if (s->longs == s->longs_end) return 0;
        ll = *s->longs++;
        s->literals += ll - GLYD_CODED_LONG;
      }
      if (ml == GLYD_CODED_LONG) {
        if (s->longs == s->longs_end) return 0;
        ml = *s->longs++;
      }
    }
    uint32_t off;
    if (near) { /* one shuffle and a sum wait for the sequence before, as two shuffles do else */
      const size_t lane = b->lane[i];
      off = (uint32_t)_mm_cvtsi128_si32(
          _mm_shuffle_epi8(r, _mm_load_si128((const __m128i *)((const uint8_t *)to_front + lane))));
      offsets = (const uint32_t *)(const void *)((const uint8_t *)offsets + b->fresh[i]);
      r = take_near(r, lane, offsets);
    } else {
      r = _mm_insert_epi32(r, (int)*offsets, 3);
      r = _mm_shuffle_epi8(r, _mm_load_si128((const __m128i *)((const uint8_t *)to_front + b->lane[i])));
      offsets = (const uint32_t *)(const void *)((const uint8_t *)offsets + b->fresh[i]);
      off = (uint32_t)_mm_cvtsi128_si32(r);
    }
    at += ll;
    _mm_prefetch((const char *)((uintptr_t)at - off), _MM_HINT_T0);
    if (two_lines) _mm_prefetch((const char *)((uintptr_t)at - off + 63), _MM_HINT_T0);
    b->offset[i] = off;
    at += ml;
  }
  s->repeat = r;
  s->offsets = offsets;
  s->at = at;
  return 1;
}

/* The largest offset, less 1: an offset of 0 is larger than any. */
TARGET_INLINE uint32_t largest_offset(const batch *b, size_t k) {
  __m256i most = _mm256_setzero_si256();
  const __m256i less = _mm256_set1_epi32(-1);
  for (size_t i = 0; i < k; i += 8)
    most = _mm256_max_epu32(most, _mm256_add_epi32(less, _mm256_loadu_si256((const __m256i *)(b->offset + i))));
  __m128i m = _mm_max_epu32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
  m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4e));
  m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xb1));
  return (uint32_t)_mm_cvtsi128_si32(m);
}

TARGET glyd_status glyd_coded_exec_avx2(const glyd_coded_planes *planes, uint32_t repeat[GLYD_CODED_REPEATS],
                                        const uint8_t *segment, uint8_t *op, uint8_t *op_end, uint8_t *out_end) {
  batch b;
  for (size_t i = 0; i < BATCH + 8; i++) b.offset[i] = 1; /* more than a batch holds is looked at for the largest */
  const uint8_t *lit = planes->literals, *cmd = planes->commands;
  const uint8_t *lesc = planes->literal_escapes, *mesc = planes->match_escapes;
  const __m128i match_lengths = _mm_loadu_si128((const __m128i *)planes->lengths);
  resolve_state s;
  s.repeat = _mm_setr_epi32((int)repeat[0], (int)repeat[1], (int)repeat[2], 0);
  s.offsets = planes->offsets;
  s.longs = planes->longs;
  s.longs_end = planes->longs_end;
  while (cmd < planes->commands_end) {
    const size_t left = (size_t)(planes->commands_end - cmd), k = left < BATCH ? left : BATCH;
    const uint32_t *const longs = s.longs;
    uint64_t matched;
    int any_long = expand_lengths(&b, cmd, k, match_lengths, &lesc, &mesc, &s.literals, &matched);
    s.at = op;
    int ok = 1;
    const int long_matches = matched > 22 * k;
    if (GLYD_LIKELY(!any_long)) {
      if (planes->near)
        resolve(0, 0, 1, &b, k, &s);
      else if (long_matches)
        resolve(0, 1, 0, &b, k, &s);
      else
        resolve(0, 0, 0, &b, k, &s);
    } else {
      ok = planes->near ? resolve(1, 1, 1, &b, k, &s) : resolve(1, 1, 0, &b, k, &s);
    }
    cmd += k;
    if (!ok || s.offsets > planes->offsets_end || lesc > planes->literal_escapes_end ||
        mesc > planes->match_escapes_end || s.literals > (uint64_t)(planes->literals_end - lit) || s.at > op_end)
      return GLYD_E_CORRUPT;
    if (GLYD_LIKELY(out_end - s.at >= ROOM)) {
      if (GLYD_LIKELY(largest_offset(&b, k) < (size_t)(op - segment))) {
        if ((size_t)(s.at - op) > 64 * k)
          copy_batch(2, 0, &b, k, &op, &lit, longs, segment);
        else if ((size_t)(s.at - op) > 26 * k)
          copy_batch(1, 0, &b, k, &op, &lit, longs, segment);
        else
          copy_batch(0, 0, &b, k, &op, &lit, longs, segment);
      } else {
        ok = copy_batch(0, 1, &b, k, &op, &lit, longs, segment);
      }
    } else {
      ok = copy_batch_exact(&b, k, &op, &lit, longs, segment, out_end);
    }
    if (!ok) return GLYD_E_CORRUPT;
  }
  const size_t rest = (size_t)(planes->literals_end - lit);
  if (rest != (size_t)(op_end - op) || lesc != planes->literal_escapes_end || mesc != planes->match_escapes_end ||
      s.longs != planes->longs_end || s.offsets != planes->offsets_end)
    return GLYD_E_CORRUPT;
  if (lit != op) memcpy(op, lit, rest); /* all literals may be there already */
  repeat[0] = (uint32_t)_mm_extract_epi32(s.repeat, 0);
  repeat[1] = (uint32_t)_mm_extract_epi32(s.repeat, 1);
  repeat[2] = (uint32_t)_mm_extract_epi32(s.repeat, 2);
  return GLYD_OK;
}

#endif

/* A translation unit must declare something. */
typedef int glyd_coded_exec_avx2_unit;

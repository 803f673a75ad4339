/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Execution of plain blocks, a batch of sequences at a time: first the tokens
 * become arrays of lengths and offsets, and their sums are checked; then a loop
 * without checks copies. Template: the file that includes it defines
 * BATCH_INLINE and, after BATCH_TYPES, these functions:
 *   void copy32(uint8_t *d, const uint8_t *s)
 *   void copy_near(uint8_t *op, size_t off, size_t n)  1 <= off < 32; may write
 *     31 bytes more than n
 *   void expand(view, cursors, batch, k, repeat, sums)  k <= BATCH sequences;
 *     may read up to GLYD_PLAIN_OVERREAD bytes past the end of the planes
 * It is included twice: with BATCH_TYPES defined for the types alone, then
 * without.
 */
#ifdef BATCH_TYPES
#undef BATCH_TYPES

#include "block/block_plain_common.h"
#include "block/block_plain_exec.h"
#include "common/mem.h"

/* Sequences a batch. A batch reads at most BATCH + 8 bytes of an escape plane
 * and 2 * BATCH + 16 of the offsets past their ends. */
#define BATCH 128
_Static_assert(2 * BATCH + 16 <= GLYD_PLAIN_OVERREAD, "over-read of a batch");
/* Bytes that the copy loop may read or write past the end of a batch. */
#define ROOM 128
/* Means of a batch from which on it copies 32 or 64 literals, 64 or 96 match
 * bytes at once: mispredicted branches cost more than stores for nothing. Measured in
 * spec.md. */
#define LITERAL_32_MEAN 4
#define LITERAL_64_MEAN 12
#define MATCH_64_MEAN 16
#define MATCH_96_MEAN 40

typedef struct batch_cursors {
  const uint8_t *token, *offset, *ll, *ml, *far;
} batch_cursors;

typedef struct batch {
  uint8_t ll[BATCH + 16], ml[BATCH + 16]; /* 255: the rest is a long length */
  uint32_t off[BATCH + 16];               /* 0: that of the sequence before */
} batch;

typedef struct batch_sums {
  size_t literals, matches; /* without long lengths */
  size_t reach;             /* largest offset */
  int any_long;
  int bad_offset; /* an offset of 0 that is no repeat */
} batch_sums;

#else

/* Next long length; 0 when there is none (a value of 0 is returned as 255). */
BATCH_INLINE size_t next_long(const uint8_t **longs, const uint8_t *end) {
  uint64_t v;
  const uint8_t *p = glyd_get_varint(*longs, end, &v);
  if (p == NULL || v > GLYD_BLOCK_MAX) return 0;
  *longs = p;
  return (size_t)v + GLYD_PLAIN_LONG;
}

/* Short matches are copied as two pieces of 16 bytes, which serves offsets from
 * 16 on without a branch; long ones by 32. */
#define NEAR(WIDE) ((WIDE) > 32 ? 32 : 16)
BATCH_INLINE void copy_piece(uint8_t *d, const uint8_t *s, const unsigned near) {
  if (near == 32) {
    copy32(d, s);
  } else {
    glyd_copy16(d, s);
    glyd_copy16(d + 16, s + 16);
  }
}

/* One batch of the copy loop. LIT, WIDE: bytes of literals and of a match copied
 * at once; CHECK: offsets may reach before the segment. */
#define COPY_LOOP(LIT, WIDE, CHECK)                                                   \
  for (size_t i = 0; i < k; i++) {                                                    \
    size_t ll = b.ll[i], ml = b.ml[i], off = b.off[i];                                \
    if (repeat) last = off = off ? off : last;                                        \
    if ((LIT) > 16)                                                                   \
      copy32(op, lit);                                                                \
    else                                                                              \
      glyd_copy16(op, lit);                                                           \
    if ((LIT) > 32) copy32(op + 32, lit + 32);                                        \
    if (GLYD_UNLIKELY(ll > (LIT))) {                                                  \
      if (ll == GLYD_PLAIN_LONG) ll = *long_next++;                                   \
      for (size_t j = (LIT); j < ll; j += 32) copy32(op + j, lit + j);                \
    }                                                                                 \
    op += ll;                                                                         \
    lit += ll;                                                                        \
    if ((CHECK) && off > (size_t)(op - view->seg)) return GLYD_E_CORRUPT;             \
    const uint8_t *m = op - off;                                                      \
    if (GLYD_UNLIKELY(off < NEAR(WIDE))) {                                            \
      if (ml == GLYD_PLAIN_LONG) ml = *long_next++;                                   \
      copy_near(op, off, ml);                                                         \
      op += ml;                                                                       \
      continue;                                                                       \
    }                                                                                 \
    copy_piece(op, m, NEAR(WIDE));                                                    \
    if ((WIDE) > 32) copy32(op + 32, m + 32);                                         \
    if ((WIDE) > 64) copy32(op + 64, m + 64);                                         \
    if (GLYD_UNLIKELY(ml > (WIDE))) {                                                 \
      if (ml == GLYD_PLAIN_LONG) ml = *long_next++;                                   \
      for (size_t j = (WIDE); j < ml; j += 32) copy_piece(op + j, m + j, NEAR(WIDE)); \
    }                                                                                 \
    op += ml;                                                                         \
  }

BATCH_INLINE glyd_status exec(const glyd_plain_view *view, const int repeat) {
  batch_cursors c = {view->token, view->offset, view->ll, view->ml, view->far};
  const uint8_t *longs = view->longs, *lit = view->literal, *const token_end = view->token + view->n;
  const uint8_t *const offset_end = view->token, *const ll_end = view->ml, *const ml_end = view->far;
  const uint8_t *const far_end = view->longs, *const longs_end = view->literal, *const lit_end = view->literal_end;
  uint8_t *op = view->op, *const op_end = view->op_end, *const out_end = view->out_end;
  size_t last = 1;
  batch b;
  uint32_t long_lengths[2 * BATCH];

  while (c.token < token_end) {
    const size_t k = token_end - c.token < BATCH ? (size_t)(token_end - c.token) : BATCH;
    batch_sums sums = {0, 0, 0, 0, 0};
    expand(view, &c, &b, k, repeat, &sums);
    size_t literals = sums.literals, total = literals + sums.matches;
    const uint32_t *long_next = long_lengths;
    if (sums.any_long) {
      uint32_t *out = long_lengths;
      for (size_t i = 0; i < k; i++) {
        if (b.ll[i] == GLYD_PLAIN_LONG) {
          size_t v = next_long(&longs, longs_end);
          if (v == 0) return GLYD_E_CORRUPT;
          literals += v - GLYD_PLAIN_LONG;
          total += v - GLYD_PLAIN_LONG;
          *out++ = (uint32_t)v;
        }
        if (b.ml[i] == GLYD_PLAIN_LONG) {
          size_t v = next_long(&longs, longs_end);
          if (v == 0) return GLYD_E_CORRUPT;
          total += v - GLYD_PLAIN_LONG;
          *out++ = (uint32_t)v;
        }
      }
    }
    if (c.ll > ll_end || c.ml > ml_end || c.far > far_end || c.offset > offset_end || sums.bad_offset ||
        literals > (size_t)(lit_end - lit) || total > (size_t)(op_end - op)) {
      return GLYD_E_CORRUPT;
    }
    size_t reach = sums.reach;
    if (repeat && last > reach) reach = last;

    if (GLYD_LIKELY((size_t)(out_end - op) >= total + ROOM && (size_t)(view->readable_end - lit) >= literals + ROOM)) {
      const size_t matches = total - literals;
      if (GLYD_UNLIKELY(reach > (size_t)(op - view->seg))) {
        COPY_LOOP(16, 32, 1)
      } else if (literals > LITERAL_64_MEAN * k) {
        COPY_LOOP(64, 64, 0)
      } else if (matches > MATCH_96_MEAN * k) {
        COPY_LOOP(32, 96, 0)
      } else if (matches > MATCH_64_MEAN * k) {
        if (literals > LITERAL_32_MEAN * k) {
          COPY_LOOP(32, 64, 0)
        } else {
          COPY_LOOP(16, 64, 0)
        }
      } else if (literals > LITERAL_32_MEAN * k) {
        COPY_LOOP(32, 32, 0)
      } else {
        COPY_LOOP(16, 32, 0)
      }
    } else {
      for (size_t i = 0; i < k; i++) {
        size_t ll = b.ll[i], ml = b.ml[i], off = b.off[i];
        if (repeat) last = off = off ? off : last;
        if (ll == GLYD_PLAIN_LONG) ll = *long_next++;
        if (ml == GLYD_PLAIN_LONG) ml = *long_next++;
        memcpy(op, lit, ll);
        op += ll;
        lit += ll;
        if (off > (size_t)(op - view->seg)) return GLYD_E_CORRUPT;
        for (size_t j = 0; j < ml; j++) op[j] = op[(ptrdiff_t)j - (ptrdiff_t)off];
        op += ml;
      }
    }
  }
  if (c.offset != offset_end || c.ll != ll_end || c.ml != ml_end || c.far != far_end || longs != longs_end ||
      lit_end - lit != op_end - op) {
    return GLYD_E_CORRUPT;
  }
  memcpy(op, lit, (size_t)(lit_end - lit));
  return GLYD_OK;
}

#endif

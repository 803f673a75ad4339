/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Execution of plain blocks in portable C, without branches on tokens.
 */
#include "block/block_plain_exec.h"

#define BATCH_INLINE GLYD_INLINE
#define BATCH_TYPES
#include "block/block_plain_batch.h"

GLYD_INLINE void copy32(uint8_t *d, const uint8_t *s) {
  glyd_copy16(d, s);
  glyd_copy16(d + 16, s + 16);
}

GLYD_INLINE void copy_near(uint8_t *op, size_t off, size_t n) {
  if (off >= 16) {
    for (size_t i = 0; i < n; i += 16) glyd_copy16(op + i, op + i - off);
    return;
  }
  /* the first 16 bytes as two words, then from a multiple of the offset that is
   * at least 16 and below 32 */
  size_t half = off; /* likewise for 8 */
  if (off >= 8) {
    glyd_store64(op, glyd_load64(op - off));
  } else {
    const unsigned bits = 8 * (unsigned)off;
    uint64_t word = glyd_load64(op - off) & (((uint64_t)1 << bits) - 1);
    for (unsigned have = bits; have < 64; have *= 2) word |= word << have;
    glyd_store64(op, word);
    half = (7 + off) / off * off;
  }
  glyd_store64(op + 8, glyd_load64(op + 8 - half));
  const size_t multiple = (15 + off) / off * off;
  for (size_t i = 16; i < n; i += 16) glyd_copy16(op + i, op + i - multiple);
}

/* In two loops, because one has more live values than x86-64 has registers. */
GLYD_INLINE void expand(const glyd_plain_view *view, batch_cursors *c, batch *b, size_t k, const int repeat,
                        batch_sums *sums) {
  const uint8_t *token = c->token, *ll_in = c->ll, *ml_in = c->ml;
  uint64_t sum = 0; /* literals low, matches high */
  unsigned any = 0;
  for (size_t i = 0; i < k; i++) {
    unsigned t = token[i], l = t & 7, code = t >> GLYD_PLAIN_ML_SHIFT & 15, m = view->length[code];
    unsigned l_escape = (l + 1) >> 3, m_escape = (code + 1) >> 4; /* 1 for 7 and 15 */
    l += *ll_in & (0u - l_escape);
    m += *ml_in & (0u - m_escape);
    ll_in += l_escape;
    ml_in += m_escape;
    l = l < GLYD_PLAIN_LONG ? l : GLYD_PLAIN_LONG;
    m = m < GLYD_PLAIN_LONG ? m : GLYD_PLAIN_LONG;
    any |= (l + 1) | (m + 1); /* bit 8 for 255 */
    sum += l | (uint64_t)m << 32;
    b->ll[i] = (uint8_t)l;
    b->ml[i] = (uint8_t)m;
  }
  const uint8_t *far_in = c->far, *offset_in = c->offset;
  uint32_t reach = 0, bad = 0;
  for (size_t i = 0; i < k; i++) {
    uint32_t f = token[i] >> GLYD_PLAIN_F_SHIFT, off = glyd_load16(offset_in), wide;
    if (repeat) {
      off &= f - 1u;
      offset_in += 2 * (f ^ 1u);
      wide = off >> 15;
      off = (off & 0x7FFF) | (*far_in & (0u - wide)) << 15;
      bad |= (off | f) - 1; /* all ones for an offset of 0 that is no repeat */
    } else {
      offset_in += 2;
      wide = f;
      off |= (*far_in & (0u - wide)) << 16;
      bad |= off - 1;
    }
    far_in += wide;
    reach = off > reach ? off : reach;
    b->off[i] = off;
  }
  c->token += k;
  c->offset = offset_in;
  c->ll = ll_in;
  c->ml = ml_in;
  c->far = far_in;
  sums->literals = (uint32_t)sum;
  sums->matches = (size_t)(sum >> 32);
  sums->reach = reach;
  sums->any_long = (any & 256) != 0;
  sums->bad_offset = bad >> 31 != 0;
}

#include "block/block_plain_batch.h"

static GLYD_NOINLINE glyd_status exec_offsets(const glyd_plain_view *view) { return exec(view, 0); }
static GLYD_NOINLINE glyd_status exec_repeat(const glyd_plain_view *view) { return exec(view, 1); }

glyd_status glyd_plain_exec_portable(const glyd_plain_view *view) {
  return view->repeat ? exec_repeat(view) : exec_offsets(view);
}

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
  /* the first 16 bytes one by one, then from a multiple of the offset that is
   * at least 16 and below 32 */
  for (size_t i = 0; i < 16; i++) op[i] = op[(ptrdiff_t)i - (ptrdiff_t)off];
  size_t multiple = off;
  while (multiple < 16) multiple += off;
  for (size_t i = 16; i < n; i += 16) glyd_copy16(op + i, op + i - multiple);
}

GLYD_INLINE void expand(const glyd_plain_view *view, batch_cursors *c, batch *b, size_t k, const int repeat,
                        batch_sums *sums) {
  const uint8_t *ll_in = c->ll, *ml_in = c->ml, *far_in = c->far, *offset_in = c->offset;
  size_t literals = 0, matches = 0;
  uint32_t reach = 0, zeros = 0;
  unsigned any = 0;
  for (size_t i = 0; i < k; i++) {
    unsigned t = c->token[i], l = t & 7, code = t >> GLYD_PLAIN_ML_SHIFT & 15, f = t >> GLYD_PLAIN_F_SHIFT;
    unsigned l_escape = l == GLYD_PLAIN_LL_ESCAPE, m_escape = code == GLYD_PLAIN_ML_ESCAPE;
    unsigned m = view->length[code] + (*ml_in & (0u - m_escape));
    l += *ll_in & (0u - l_escape);
    ll_in += l_escape;
    ml_in += m_escape;
    l = l < GLYD_PLAIN_LONG ? l : GLYD_PLAIN_LONG;
    m = m < GLYD_PLAIN_LONG ? m : GLYD_PLAIN_LONG;
    any |= (l == GLYD_PLAIN_LONG) | (m == GLYD_PLAIN_LONG);
    literals += l;
    matches += m;
    b->ll[i] = (uint8_t)l;
    b->ml[i] = (uint8_t)m;
    uint32_t off = glyd_load16(offset_in), wide;
    if (repeat) {
      off &= f - 1u;
      offset_in += 2 * (f ^ 1u);
      wide = off >> 15;
      off &= 0x7FFF;
      off |= (uint32_t)(*far_in & (0u - wide)) << 15;
      zeros |= (uint32_t)(off == 0) & (f ^ 1u);
    } else {
      wide = f;
      offset_in += 2;
      off |= (uint32_t)(*far_in & (0u - wide)) << 16;
      zeros |= off == 0;
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
  sums->literals = literals;
  sums->matches = matches;
  sums->reach = reach;
  sums->any_long = any != 0;
  sums->bad_offset = zeros != 0;
}

#include "block/block_plain_batch.h"

static GLYD_NOINLINE glyd_status exec_offsets(const glyd_plain_view *view) { return exec(view, 0); }
static GLYD_NOINLINE glyd_status exec_repeat(const glyd_plain_view *view) { return exec(view, 1); }

glyd_status glyd_plain_exec_portable(const glyd_plain_view *view) {
  return view->repeat ? exec_repeat(view) : exec_offsets(view);
}

/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Decoder of plain blocks: header, choice of the variant.
 */
#include "block/block_plain_decode.h"

#include "block/block_plain_common.h"
#include "block/block_plain_exec.h"
#include "common/cpu.h"
#include "common/mem.h"

/* Bodies up to this size are copied when too few bytes may be read after the
 * planes; larger ones without that room (few literals, end of the input) take
 * exec_careful, which reads nothing past a plane. */
#define COPY_MAX ((size_t)1 << 16)

size_t glyd_plain_decode_workspace(void) { return COPY_MAX + GLYD_PLAIN_OVERREAD; }

/* Next header field, at most max; NULL when it is not there. */
static const uint8_t *get_count(const uint8_t *p, const uint8_t *end, size_t max, size_t *v) {
  uint64_t u;
  p = glyd_get_varint(p, end, &u);
  if (p == NULL || u > max) return NULL;
  *v = (size_t)u;
  return p;
}

/* Add the next long length. */
GLYD_INLINE int add_long(const uint8_t **longs, const uint8_t *end, size_t *length) {
  uint64_t v;
  const uint8_t *p = glyd_get_varint(*longs, end, &v);
  if (p == NULL || v > GLYD_BLOCK_MAX) return 0;
  *longs = p;
  *length += (size_t)v;
  return 1;
}

/* One sequence after the other, every access checked: for the rare block that
 * has no room for the over-reads of the variants. */
static GLYD_NOINLINE glyd_status exec_careful(const glyd_plain_view *view) {
  const uint8_t *token = view->token, *token_end = token + view->n;
  const uint8_t *offset = view->offset, *ll_esc = view->ll, *ml_esc = view->ml, *far = view->far;
  const uint8_t *longs = view->longs, *lit = view->literal;
  const uint8_t *const offset_end = view->token, *const ll_end = view->ml, *const ml_end = view->far;
  const uint8_t *const far_end = view->longs, *const longs_end = view->literal, *const lit_end = view->literal_end;
  uint8_t *op = view->op, *const op_end = view->op_end;
  const unsigned far_shift = view->repeat ? 15 : 16;
  size_t last = 1;
  while (token < token_end) {
    unsigned t = *token++;
    size_t ll = t & 7, ml = view->length[t >> GLYD_PLAIN_ML_SHIFT & 15], off;
    if (ll == GLYD_PLAIN_LL_ESCAPE) {
      if (ll_esc == ll_end) return GLYD_E_CORRUPT;
      ll += *ll_esc++;
      if (GLYD_UNLIKELY(ll >= GLYD_PLAIN_LONG)) {
        ll = GLYD_PLAIN_LONG;
        if (!add_long(&longs, longs_end, &ll)) return GLYD_E_CORRUPT;
      }
    }
    if ((t >> GLYD_PLAIN_ML_SHIFT & 15) == GLYD_PLAIN_ML_ESCAPE) {
      if (ml_esc == ml_end) return GLYD_E_CORRUPT;
      ml += *ml_esc++;
    }
    if (GLYD_UNLIKELY(ml >= GLYD_PLAIN_LONG)) {
      ml = GLYD_PLAIN_LONG;
      if (!add_long(&longs, longs_end, &ml)) return GLYD_E_CORRUPT;
    }
    unsigned f = t >> GLYD_PLAIN_F_SHIFT;
    if (view->repeat && f) {
      off = last;
    } else {
      if (offset == offset_end) return GLYD_E_CORRUPT;
      off = glyd_load16(offset);
      offset += 2;
      if (view->repeat) {
        f = (unsigned)(off >> 15);
        off &= 0x7FFF;
      }
      if (f) {
        if (far == far_end) return GLYD_E_CORRUPT;
        off |= (size_t)*far++ << far_shift;
      }
      last = off;
    }
    if (ll > (size_t)(lit_end - lit) || ll + ml > (size_t)(op_end - op)) return GLYD_E_CORRUPT;
    if (off == 0 || off > (size_t)(op - view->seg) + ll) return GLYD_E_CORRUPT;
    memcpy(op, lit, ll);
    for (size_t i = ll; i < ll + ml; i++) op[i] = op[(ptrdiff_t)i - (ptrdiff_t)off];
    op += ll + ml;
    lit += ll;
  }
  if (offset != offset_end || ll_esc != ll_end || ml_esc != ml_end || far != far_end || longs != longs_end ||
      lit_end - lit != op_end - op) {
    return GLYD_E_CORRUPT;
  }
  memcpy(op, lit, (size_t)(lit_end - lit));
  return GLYD_OK;
}

glyd_status glyd_plain_block_decode(unsigned cpu, void *workspace, uint8_t *seg, uint8_t *op, size_t len,
                                    uint8_t *out_end, unsigned flags, const uint8_t *in, size_t in_len,
                                    size_t in_slack) {
  if (flags & GLYD_PLAIN_FLAG_RESERVED) return GLYD_E_CORRUPT;
  glyd_plain_view view;
  const uint8_t *p = in, *end = in + in_len;
  size_t n, n_ll, n_ml, n_offset, n_far, n_long;
  view.repeat = (flags & GLYD_PLAIN_FLAG_REPEAT) != 0;
  if ((p = get_count(p, end, GLYD_PLAIN_SEQUENCES_MAX, &n)) == NULL || n == 0) return GLYD_E_CORRUPT;
  if ((p = get_count(p, end, n, &n_ll)) == NULL) return GLYD_E_CORRUPT;
  if ((p = get_count(p, end, n, &n_ml)) == NULL) return GLYD_E_CORRUPT;
  if ((p = get_count(p, end, n, &n_offset)) == NULL || (n_offset != n && !view.repeat)) return GLYD_E_CORRUPT;
  if ((p = get_count(p, end, n_offset, &n_far)) == NULL) return GLYD_E_CORRUPT;
  if ((p = get_count(p, end, 6 * n, &n_long)) == NULL) return GLYD_E_CORRUPT;
  size_t fixed = flags & GLYD_PLAIN_FLAG_TABLE ? 16 : 1;
  if (fixed + 2 * n_offset + n + n_ll + n_ml + n_far + n_long > (size_t)(end - p)) return GLYD_E_CORRUPT;
  unsigned base = *p++;
  if (base == 0) return GLYD_E_CORRUPT;
  if (flags & GLYD_PLAIN_FLAG_TABLE) {
    for (unsigned i = 0; i < 15; i++) {
      view.length[i] = *p++;
      if (view.length[i] == 0) return GLYD_E_CORRUPT;
    }
    view.length[15] = (uint8_t)base;
  } else {
    for (unsigned i = 0; i < 16; i++) view.length[i] = (uint8_t)(base + i < 255 ? base + i : 255);
  }
  size_t planes = (size_t)(end - p), head = 2 * n_offset + n + n_ll + n_ml + n_far + n_long;
  int roomy = 1;
  if (planes - head + in_slack < GLYD_PLAIN_OVERREAD) {
    roomy = planes <= COPY_MAX;
    if (roomy) {
      memcpy(workspace, p, planes);
      memset((uint8_t *)workspace + planes, 0, GLYD_PLAIN_OVERREAD);
      p = workspace;
      end = p + planes;
      in_slack = GLYD_PLAIN_OVERREAD;
    }
  }
  view.n = n;
  view.n_offset = n_offset;
  view.offset = p;
  view.token = view.offset + 2 * n_offset;
  view.ll = view.token + n;
  view.ml = view.ll + n_ll;
  view.far = view.ml + n_ml;
  view.longs = view.far + n_far;
  view.literal = view.longs + n_long;
  view.literal_end = end;
  view.readable_end = end + in_slack;
  view.seg = seg;
  view.op = op;
  view.op_end = op + len;
  view.out_end = out_end;
  if (!roomy) return exec_careful(&view);
#ifdef GLYD_PLAIN_AVX2
  if (cpu & GLYD_CPU_AVX2) return glyd_plain_exec_avx2(&view);
#else
  (void)cpu;
#endif
  return glyd_plain_exec_portable(&view);
}

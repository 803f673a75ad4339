/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "base/base_excerpts.h"

typedef struct excerpts {
  const glyd_base *base;
  uint8_t *out;
  uint64_t start, end; /* of the last one */
  size_t left;         /* bytes that may still come */
  glyd_status status;  /* of the base */
} excerpts;

/* [from, to) as the next one, less what the last one has and what is too much. */
static void add(excerpts *x, uint64_t from, uint64_t to) {
  if (to > x->base->size) to = x->base->size;
  if (from >= x->start && from < x->end) from = x->end;
  if (from >= to) return;
  const size_t size = to - from < x->left ? (size_t)(to - from) : x->left;
  if (size == 0 || x->status != GLYD_OK) return;
  x->status = glyd_base_source_copy(x->base, from, x->out, size);
  x->out += size;
  x->left -= size;
  x->start = from;
  x->end = from + size;
}

/* Places are in the base, which has less than 2^63 bytes. */
static uint64_t before(uint64_t place, uint64_t by) { return place < by ? 0 : place - by; }

glyd_status glyd_base_lay_excerpts(const glyd_base *base, glyd_base_reach reach, const glyd_base_copy *copies, size_t n,
                                   size_t last_gap, size_t limit, uint8_t *out, size_t *size) {
  const uint64_t around = (uint64_t)1 << reach.around, whole = (uint64_t)1 << reach.gap;
  excerpts x = {.base = base, .out = out, .left = limit};
  for (size_t i = 0; i <= n; i++) {
    const uint64_t gap = i < n ? copies[i].gap : last_gap;
    if (gap == 0) continue;
    const uint64_t left = i > 0 ? copies[i - 1].position + copies[i - 1].length : 0;
    const uint64_t right = i < n ? copies[i].position : 0;
    if (i > 0 && i < n && left <= right && right - left <= whole) {
      add(&x, before(left, around), right + around);
      continue;
    }
    if (i > 0) add(&x, before(left, around), left + gap + around);
    if (i < n) add(&x, before(right, gap + around), right + around);
  }
  *size = limit - x.left;
  return x.status;
}

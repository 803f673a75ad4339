/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "match/match_long.h"

#define ANCHOR_LOG 7 /* one position in 2^7 */
#define BITS_MIN 10
#define BITS_MAX 20 /* 128 MiB hold 2^20 anchors */

static unsigned table_bits(uint64_t len) {
  unsigned bits = BITS_MIN;
  while (bits < BITS_MAX && (uint64_t)1 << (bits + ANCHOR_LOG) < len) bits++;
  return bits;
}

size_t glyd_match_long_workspace(uint64_t segment_size) {
  return ((size_t)1 << table_bits(segment_size)) * sizeof(glyd_anchor);
}

void glyd_match_long_reset(glyd_match_long *m, void *memory, size_t len) {
  m->table = memory;
  m->bits = table_bits(len);
  m->hash = 0;
  memset(memory, 0, sizeof(glyd_anchor) << m->bits);
  uint64_t x = 0x9E3779B97F4A7C15u; /* any odd start does: xorshift* */
  for (unsigned i = 0; i < 256; i++) {
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    m->gear[i] = x * 0x2545F4914F6CDD1Du;
  }
}

size_t glyd_match_long_find(glyd_match_long *m, const uint8_t *segment, size_t start, size_t end,
                            glyd_long_match *matches) {
  uint64_t h = m->hash;
  size_t n = 0, free_from = start; /* where the last match ends */
  for (size_t pos = start; pos < end;) {
    h = (h << 1) + m->gear[segment[pos++]]; /* a byte is shifted out after 64 */
    if (GLYD_LIKELY(h >> (64 - ANCHOR_LOG) != 0) || pos < 64) continue;
    const uint64_t mixed = h * 0x9E3779B185EBCA87u;
    glyd_anchor *const a = m->table + (mixed >> (64 - m->bits));
    const glyd_anchor old = *a;
    a->position = (uint32_t)pos;
    a->check = (uint32_t)mixed;
    if (old.position == 0 || old.check != (uint32_t)mixed || pos - old.position < GLYD_MATCH_LONG_NEAREST ||
        pos - old.position > GLYD_MATCH_LONG_FARTHEST || pos <= free_from)
      continue;
    const size_t off = pos - old.position;
    size_t from = pos;
    while (from > free_from && from > off && segment[from - 1] == segment[from - 1 - off]) from--;
    const size_t to = pos + glyd_match_count(segment + pos, segment + pos - off, segment + end);
    if (to - from < GLYD_MATCH_LONG_MIN) continue;
    matches[n++] = (glyd_long_match){from, to - from, off};
    free_from = to;
  }
  m->hash = h;
  return n;
}

/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Portable execution: one sequence after the other, every check in its place.
 */
#include "block/block_coded_exec.h"

#define ROOM 32 /* the fast copies of a sequence write at most this far past its end */

/* Copy len bytes from off back, writing at most 15 bytes too many. */
static void copy_match_wild(uint8_t *op, size_t off, size_t len) {
  const uint8_t *m = op - off;
  uint8_t *const end = op + len;
  if (off < 16) {
    /* Lay down one period at a time until it is 8 bytes or more. */
    for (unsigned i = 0; i < 8; i++) op[i] = m[i];
    size_t period = off;
    while (period < 8) period += off;
    for (op += 8; op < end; op += 8) glyd_store64(op, glyd_load64(op - period));
    return;
  }
  do {
    glyd_copy16(op, m);
    op += 16;
    m += 16;
  } while (op < end);
}

glyd_status glyd_coded_exec_scalar(const glyd_coded_planes *planes, uint32_t repeat[GLYD_CODED_REPEATS],
                                   const uint8_t *segment, uint8_t *op, uint8_t *op_end, uint8_t *out_end) {
  const uint8_t *lit = planes->literals;
  const uint8_t *lesc = planes->literal_escapes, *mesc = planes->match_escapes;
  const uint32_t *longs = planes->longs, *offsets = planes->offsets;
  uint32_t r0 = repeat[0], r1 = repeat[1], r2 = repeat[2];
  for (const uint8_t *cmd = planes->commands; cmd < planes->commands_end; cmd++) {
    size_t ll = *cmd & 3, ml = planes->lengths[*cmd >> 2 & 15], off;
    if (ll == GLYD_CODED_LITERALS_ESCAPE) {
      if (lesc == planes->literal_escapes_end) return GLYD_E_CORRUPT;
      ll += *lesc++;
      if (ll >= GLYD_CODED_LONG) {
        if (longs == planes->longs_end) return GLYD_E_CORRUPT;
        ll = *longs++;
      }
    }
    if ((*cmd >> 2 & 15) == GLYD_CODED_LENGTHS) {
      if (mesc == planes->match_escapes_end) return GLYD_E_CORRUPT;
      ml += *mesc++;
      if (ml >= GLYD_CODED_LONG) {
        if (longs == planes->longs_end) return GLYD_E_CORRUPT;
        ml = *longs++;
      }
    }
    switch (*cmd >> 6) {
    case 0: off = r0; break;
    case 1:
      off = r1;
      r1 = r0;
      break;
    case 2:
      off = r2;
      r2 = r1;
      r1 = r0;
      break;
    default:
      if (offsets == planes->offsets_end) return GLYD_E_CORRUPT;
      off = *offsets++;
      if (planes->near && off >> GLYD_CODED_NEAR_SHIFT != 0) {
        const unsigned slot = (unsigned)(off >> GLYD_CODED_NEAR_SHIFT) - 1;
        const uint32_t distance = ((uint32_t)off & ((1u << GLYD_CODED_NEAR_SHIFT) - 1)) - GLYD_CODED_NEAR_MOST;
        off = (uint32_t)((slot == 0 ? r0 : slot == 1 ? r1 : r2) + distance);
      }
      r2 = r1;
      r1 = r0;
    }
    r0 = (uint32_t)off;
    if (ll > (size_t)(planes->literals_end - lit) || ll + ml > (size_t)(op_end - op) ||
        off - 1 >= (size_t)(op - segment) + ll)
      return GLYD_E_CORRUPT;
    if ((size_t)(out_end - op) >= ll + ml + ROOM) {
      uint8_t *const match = op + ll;
      do { /* the literal plane can be read past its end */
        glyd_copy16(op, lit);
        if (GLYD_LIKELY(ll <= 16)) break;
        ll -= 16;
        op += 16;
        lit += 16;
      } while (1);
      lit += ll;
      copy_match_wild(match, off, ml);
      op = match + ml;
    } else {
      memcpy(op, lit, ll);
      op += ll;
      lit += ll;
      for (size_t i = 0; i < ml; i++) op[i] = op[(ptrdiff_t)i - (ptrdiff_t)off];
      op += ml;
    }
  }
  const size_t rest = (size_t)(planes->literals_end - lit);
  if (rest != (size_t)(op_end - op) || lesc != planes->literal_escapes_end || mesc != planes->match_escapes_end ||
      longs != planes->longs_end || offsets != planes->offsets_end)
    return GLYD_E_CORRUPT;
  if (lit != op) memcpy(op, lit, rest); /* all literals may be there already */
  repeat[0] = r0;
  repeat[1] = r1;
  repeat[2] = r2;
  return GLYD_OK;
}

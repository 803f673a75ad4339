/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Binary arithmetic coder, writing: bits by their chances. The code lies in
 * low … high; bytes on which both agree are written.
 */
#ifndef GLYD_BITSTREAM_ARITH_WRITER_H
#define GLYD_BITSTREAM_ARITH_WRITER_H

#include "common/mem.h"

#define GLYD_ARITH_TAIL 4u /* bytes that end a code */

typedef struct glyd_arith_writer {
  uint32_t low, high;
  uint8_t *at, *end;
  int is_full; /* 1: there was no room for a byte */
} glyd_arith_writer;

GLYD_INLINE void glyd_arith_writer_init(glyd_arith_writer *w, uint8_t *out, uint8_t *end) {
  *w = (glyd_arith_writer){0, UINT32_MAX, out, end, 0};
}

GLYD_INLINE void glyd_arith_writer_byte(glyd_arith_writer *w, uint8_t byte) {
  if (w->at == w->end)
    w->is_full = 1;
  else
    *w->at++ = byte;
}

/* p: the chance of 1 in 65536ths, 1 … 65535. */
GLYD_INLINE void glyd_arith_writer_put(glyd_arith_writer *w, uint32_t p, uint32_t bit) {
  const uint32_t range = w->high - w->low;
  const uint32_t middle = w->low + (uint32_t)(((uint64_t)range * p) >> 16);
  if (bit)
    w->high = middle;
  else
    w->low = middle + 1;
  while ((w->low ^ w->high) < 1u << 24) {
    glyd_arith_writer_byte(w, (uint8_t)(w->high >> 24));
    w->low <<= 8;
    w->high = w->high << 8 | 255;
  }
}

/* The last GLYD_ARITH_TAIL bytes. */
GLYD_INLINE void glyd_arith_writer_end(glyd_arith_writer *w) {
  for (unsigned i = 0; i < GLYD_ARITH_TAIL; i++) glyd_arith_writer_byte(w, (uint8_t)(w->low >> (24 - 8 * i)));
}

#endif

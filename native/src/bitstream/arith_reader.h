/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Binary arithmetic coder, reading. low … high as in the writer; code is where
 * in there the content lies.
 */
#ifndef GLYD_BITSTREAM_ARITH_READER_H
#define GLYD_BITSTREAM_ARITH_READER_H

#include "common/mem.h"

typedef struct glyd_arith_reader {
  uint32_t low, high, code;
  const uint8_t *at, *end;
  int is_short; /* 1: read past the end */
} glyd_arith_reader;

GLYD_INLINE uint32_t glyd_arith_reader_byte(glyd_arith_reader *r) {
  if (r->at < r->end) return *r->at++;
  r->is_short = 1;
  return 0;
}

GLYD_INLINE void glyd_arith_reader_init(glyd_arith_reader *r, const uint8_t *in, const uint8_t *end) {
  *r = (glyd_arith_reader){0, UINT32_MAX, 0, in, end, 0};
  for (unsigned i = 0; i < 4; i++) r->code = r->code << 8 | glyd_arith_reader_byte(r);
}

/* Hide what a number is from the compiler. */
#define GLYD_ARITH_OPAQUE(x) __asm__("" : "+r"(x))

/* The bit is the outcome of a branch and no number that was computed: a CPU that guesses it goes on
 * with what comes next before the chance is known. Most bits are guessed right.
 * p: the chance of 1 in 65536ths, 1 … 65535. */
GLYD_INLINE uint32_t glyd_arith_reader_get(glyd_arith_reader *r, uint32_t p) {
  const uint32_t range = r->high - r->low;
  const uint32_t middle = r->low + (uint32_t)(((uint64_t)range * p) >> 16);
  uint32_t bit;
  if (r->code <= middle) {
    r->high = middle;
    bit = 1;
    GLYD_ARITH_OPAQUE(bit);
  } else {
    r->low = middle + 1;
    bit = 0;
    GLYD_ARITH_OPAQUE(bit);
  }
  while ((r->low ^ r->high) < 1u << 24) {
    r->low <<= 8;
    r->high = r->high << 8 | 255;
    r->code = r->code << 8 | glyd_arith_reader_byte(r);
  }
  return bit;
}

#endif

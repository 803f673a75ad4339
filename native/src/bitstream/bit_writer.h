/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Writing bits, least significant first, into memory with 8 bytes to spare.
 */
#ifndef GLYD_BITSTREAM_BIT_WRITER_H
#define GLYD_BITSTREAM_BIT_WRITER_H

#include "common/mem.h"

typedef struct glyd_bit_writer {
  uint64_t acc;   /* bits not yet moved past p, low bits first */
  unsigned count; /* how many: below 8 between calls */
  uint8_t *p;     /* where acc is stored */
} glyd_bit_writer;

GLYD_INLINE void glyd_bit_writer_init(glyd_bit_writer *w, uint8_t *p) {
  w->acc = 0;
  w->count = 0;
  w->p = p;
}

/* Append the n (at most 56) low bits of v; the bits above must be 0. Stores 8
 * bytes at p. */
GLYD_INLINE void glyd_bit_writer_put(glyd_bit_writer *w, uint64_t v, unsigned n) {
  w->acc |= v << w->count;
  w->count += n;
  glyd_store64(w->p, w->acc);
  unsigned bytes = w->count >> 3;
  w->p += bytes;
  w->acc >>= bytes * 8;
  w->count &= 7;
}

/* Pad with zeros to a byte; returns the end. */
GLYD_INLINE uint8_t *glyd_bit_writer_end(glyd_bit_writer *w) {
  if (w->count != 0) {
    *w->p++ = (uint8_t)w->acc;
    w->acc = 0;
    w->count = 0;
  }
  return w->p;
}

#endif

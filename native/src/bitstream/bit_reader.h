/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Reading bits, least significant first, from memory that ends anywhere.
 */
#ifndef GLYD_BITSTREAM_BIT_READER_H
#define GLYD_BITSTREAM_BIT_READER_H

#include "common/mem.h"

/* The up to 8 bytes at p before end; zeros stand for those past it. */
static inline uint64_t glyd_load64_until(const uint8_t *p, const uint8_t *end) {
  if (end - p >= 8) return glyd_load64(p);
  uint64_t v = 0;
  for (unsigned i = 0; p + i < end; i++) v |= (uint64_t)p[i] << (8 * i);
  return v;
}

typedef struct glyd_bit_reader {
  const uint8_t *start;
  const uint8_t *end;
  size_t pos; /* in bits from start; may pass the end, where zeros are read */
} glyd_bit_reader;

/* The next bits: at least 57, zeros past the end. */
static inline uint64_t glyd_bit_reader_peek(const glyd_bit_reader *r) {
  size_t byte = r->pos >> 3;
  if (byte >= (size_t)(r->end - r->start)) return 0;
  return glyd_load64_until(r->start + byte, r->end) >> (r->pos & 7);
}

/* First whole byte not yet touched; past end when too much was read. */
static inline size_t glyd_bit_reader_bytes(const glyd_bit_reader *r) { return (r->pos + 7) >> 3; }

#endif

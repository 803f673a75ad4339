/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Entropy of sampled bytes in integer arithmetic: the same on every machine.
 */
#ifndef GLYD_FIELDS_ENTROPY_ENCODE_H
#define GLYD_FIELDS_ENTROPY_ENCODE_H

#include <stdint.h>

#include "common/mem.h"

#define GLYD_ENTROPY_ONE 256u /* a bit */

/* 256 times log2(v), v >= 1, to about 2: log2(1 + f) is taken as f + 0.344 f (1 - f). */
static inline uint32_t glyd_entropy_log2(uint32_t v) {
  const unsigned k = glyd_log2_32(v);
  const uint32_t f = (uint32_t)((((uint64_t)v << 8) >> k) & 255);
  return (k << 8) + f + (f * (256 - f) * 88 >> 16);
}

/* Bits (times 256) that n bytes with these counts take, all of them, with what a
 * sample of that size lets one expect for the rest of the data: the estimate of
 * Miller and Madow adds (symbols - 1) / (2 ln 2) bits. */
static inline uint64_t glyd_entropy_bits(const uint16_t counts[256], uint32_t n) {
  if (n == 0) return 0;
  const uint32_t log_n = glyd_entropy_log2(n);
  uint64_t bits = 0;
  uint32_t symbols = 0;
  for (unsigned s = 0; s < 256; s++) {
    if (counts[s] == 0) continue;
    symbols++;
    const uint32_t l = glyd_entropy_log2(counts[s]);
    if (l < log_n) bits += (uint64_t)counts[s] * (log_n - l);
  }
  return bits + (symbols - 1) * 185u; /* 256 / (2 ln 2) */
}

#endif

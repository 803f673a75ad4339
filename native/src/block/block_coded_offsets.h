/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Offsets of a coded block from their codes and raw bits. The loop is compiled
 * once per CPU variant: without BMI2 its variable shifts cost twice as much.
 */
#ifndef GLYD_BLOCK_CODED_OFFSETS_H
#define GLYD_BLOCK_CODED_OFFSETS_H

#include "bitstream/bit_reader.h"
#include "block/block_coded_common.h"
#include "glyd/status.h"

/* base << 8 | number of extra bits, for each code. */
extern const uint64_t glyd_coded_offset_entry[256];

/* Offsets of n codes; raw bits are [raw, raw_end), readable on to readable.
 * The bits must be used up to the byte. */
GLYD_INLINE glyd_status glyd_coded_read_offsets(const uint8_t *codes, size_t n, const uint8_t *raw,
                                                const uint8_t *raw_end, const uint8_t *readable, uint32_t *out) {
  size_t pos = 0, i = 0;
  const size_t limit = (size_t)(raw_end - raw) * 8, load_end = (size_t)(readable - raw);
  for (;;) {
    /* Two codes take at most 48 bits: so many pairs are safe whatever they are. */
    size_t pairs = (n - i) / 2;
    if ((pos >> 3) + 8 > load_end) break;
    size_t safe = (load_end - 8 - (pos >> 3)) / 6 + 1;
    if (safe < pairs) pairs = safe;
    if (pairs == 0) break;
    for (size_t end = i + 2 * pairs; i < end; i += 2) {
      uint64_t v = glyd_load64(raw + (pos >> 3)) >> (pos & 7);
      uint64_t e = glyd_coded_offset_entry[codes[i]], f = glyd_coded_offset_entry[codes[i + 1]];
      out[i] = (uint32_t)(e >> 8) + ((uint32_t)v & ((1u << (e & 31)) - 1));
      v >>= e & 31;
      out[i + 1] = (uint32_t)(f >> 8) + ((uint32_t)v & ((1u << (f & 31)) - 1));
      pos += (uint8_t)(e + f);
    }
    if (pos > limit) return GLYD_E_CORRUPT;
  }
  for (; i < n; i++) {
    if (pos > limit) return GLYD_E_CORRUPT;
    uint64_t v = glyd_load64_until(raw + (pos >> 3), readable) >> (pos & 7), e = glyd_coded_offset_entry[codes[i]];
    out[i] = (uint32_t)(e >> 8) + ((uint32_t)v & ((1u << (e & 31)) - 1));
    pos += (uint8_t)e;
  }
  return (pos + 7) >> 3 == limit >> 3 ? GLYD_OK : GLYD_E_CORRUPT;
}

/* The same with a plane of as many low bytes as the codes have, readable for one more. It may lie behind out. */
GLYD_INLINE glyd_status glyd_coded_read_offsets_low(const uint8_t *codes, size_t n, const uint8_t *low, size_t n_low,
                                                    const uint8_t *raw, const uint8_t *raw_end, const uint8_t *readable,
                                                    uint32_t *out) {
  size_t pos = 0;
  const size_t limit = (size_t)(raw_end - raw) * 8, load_end = (size_t)(readable - raw);
  const uint8_t *const low_end = low + n_low;
  for (size_t i = 0; i < n; i++) {
    if (GLYD_UNLIKELY(pos > limit)) return GLYD_E_CORRUPT;
    const uint8_t *at = raw + (pos >> 3);
    uint64_t v =
        (GLYD_LIKELY((pos >> 3) + 8 <= load_end) ? glyd_load64(at) : glyd_load64_until(at, readable)) >> (pos & 7);
    const uint64_t e = glyd_coded_offset_entry[codes[i]];
    const unsigned bits = (unsigned)(e & 31), has_low = bits >= 8, shift = has_low << 3, take = bits - shift;
    uint32_t x = ((uint32_t)v & ((1u << take) - 1)) << shift | (*low & (0u - has_low));
    low += has_low;
    out[i] = (uint32_t)(e >> 8) + x;
    pos += take;
  }
  return (pos + 7) >> 3 == limit >> 3 && low == low_end ? GLYD_OK : GLYD_E_CORRUPT;
}

/* low: NULL without a plane of low bytes. */
glyd_status glyd_coded_offsets_scalar(const uint8_t *codes, size_t n, const uint8_t *low, size_t n_low,
                                      const uint8_t *raw, const uint8_t *raw_end, const uint8_t *readable,
                                      uint32_t *out);
#if defined(__x86_64__)
glyd_status glyd_coded_offsets_avx2(const uint8_t *codes, size_t n, const uint8_t *low, size_t n_low,
                                    const uint8_t *raw, const uint8_t *raw_end, const uint8_t *readable, uint32_t *out);
#endif

#endif

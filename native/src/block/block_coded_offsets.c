/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "block/block_coded_offsets.h"

/* base << 8 | number of extra bits. A corrupt code gives an offset that no
 * segment can hold, which execution refuses. */
#define CODE1(c) ((uint64_t)(((8u + ((c)&7u)) << ((c) >> 3)) - GLYD_CODED_OFFSET_BIAS) << 8 | ((c) >> 3))
#define CODE8(c) \
  CODE1(c), CODE1(c + 1), CODE1(c + 2), CODE1(c + 3), CODE1(c + 4), CODE1(c + 5), CODE1(c + 6), CODE1(c + 7)
#define BAD8 BAD1, BAD1, BAD1, BAD1, BAD1, BAD1, BAD1, BAD1
#define BAD1 ((uint64_t)0xFFFFFFF0u << 8)
const uint64_t glyd_coded_offset_entry[256] = {
    CODE8(0u),   CODE8(8u),   CODE8(16u),  CODE8(24u),  CODE8(32u),  CODE8(40u),  CODE8(48u),  CODE8(56u),
    CODE8(64u),  CODE8(72u),  CODE8(80u),  CODE8(88u),  CODE8(96u),  CODE8(104u), CODE8(112u), CODE8(120u),
    CODE8(128u), CODE8(136u), CODE8(144u), CODE8(152u), CODE8(160u), CODE8(168u), CODE8(176u), CODE8(184u),
    CODE8(192u), BAD8,        BAD8,        BAD8,        BAD8,        BAD8,        BAD8,        BAD8};
_Static_assert(GLYD_CODED_OFFSET_CODES == 200, "25 rows of good codes");

glyd_status glyd_coded_offsets_scalar(const uint8_t *codes, size_t n, const uint8_t *raw, const uint8_t *raw_end,
                                      const uint8_t *readable, uint32_t *out) {
  return glyd_coded_read_offsets(codes, n, raw, raw_end, readable, out);
}

#if defined(__x86_64__)
__attribute__((target("avx2,bmi,bmi2"))) glyd_status glyd_coded_offsets_avx2(const uint8_t *codes, size_t n,
                                                                             const uint8_t *raw, const uint8_t *raw_end,
                                                                             const uint8_t *readable, uint32_t *out) {
  return glyd_coded_read_offsets(codes, n, raw, raw_end, readable, out);
}
#endif

glyd_status glyd_coded_offsets_low(const uint8_t *codes, size_t n, const uint8_t *low, size_t n_low, const uint8_t *raw,
                                   const uint8_t *raw_end, uint32_t *out) {
  size_t pos = 0;
  const size_t limit = (size_t)(raw_end - raw) * 8;
  const uint8_t *const low_end = low + n_low;
  for (size_t i = 0; i < n; i++) {
    if (pos > limit) return GLYD_E_CORRUPT;
    uint64_t v = glyd_load64_until(raw + (pos >> 3), raw_end) >> (pos & 7), e = glyd_coded_offset_entry[codes[i]];
    unsigned bits = (unsigned)(e & 31);
    uint32_t x;
    if (bits >= 8) {
      if (low == low_end) return GLYD_E_CORRUPT;
      bits -= 8;
      x = ((uint32_t)v & ((1u << bits) - 1)) << 8 | *low++;
    } else {
      x = (uint32_t)v & ((1u << bits) - 1);
    }
    out[i] = (uint32_t)(e >> 8) + x;
    pos += bits;
  }
  return (pos + 7) >> 3 == limit >> 3 && low == low_end ? GLYD_OK : GLYD_E_CORRUPT;
}

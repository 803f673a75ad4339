/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "block/block_coded_offsets.h"

/* base << 8 | number of extra bits. A corrupt code gives an offset that no
 * segment can hold, which execution refuses; one near a slot does so too where
 * execution does not expect it. */
#define CODE1(c) ((uint64_t)(((8u + ((c)&7u)) << ((c) >> 3)) - GLYD_CODED_OFFSET_BIAS) << 8 | ((c) >> 3))
#define CODE8(c) \
  CODE1(c), CODE1(c + 1), CODE1(c + 2), CODE1(c + 3), CODE1(c + 4), CODE1(c + 5), CODE1(c + 6), CODE1(c + 7)
/* Of the class of distances from 2^(c-1) + 1 to 2^c on either side of a slot, the least. */
#define NEAR1(slot, c, distance)                                                                      \
  ((uint64_t)(((slot) << GLYD_CODED_NEAR_SHIFT) + GLYD_CODED_NEAR_MOST + (uint32_t)(distance)) << 8 | \
   (uint64_t)GLYD_CODED_NEAR_BITS(c))
#define ABOVE1(slot, c) NEAR1(slot, c, (c) == 0 ? 1 : (1 << (c) >> 1) + 1)
#define BELOW1(slot, c) NEAR1(slot, c, -(1 << (c)))
#define NEAR9(one, slot)                                                                                          \
  one(slot, 0), one(slot, 1), one(slot, 2), one(slot, 3), one(slot, 4), one(slot, 5), one(slot, 6), one(slot, 7), \
      one(slot, 8)
#define NEAR18(slot) NEAR9(ABOVE1, slot), NEAR9(BELOW1, slot)
#define BAD1 ((uint64_t)0xFFFFFFF0u << 8)
const uint64_t glyd_coded_offset_entry[256] = {
    CODE8(0u),   CODE8(8u),   CODE8(16u),  CODE8(24u),  CODE8(32u),  CODE8(40u),  CODE8(48u),  CODE8(56u),
    CODE8(64u),  CODE8(72u),  CODE8(80u),  CODE8(88u),  CODE8(96u),  CODE8(104u), CODE8(112u), CODE8(120u),
    CODE8(128u), CODE8(136u), CODE8(144u), CODE8(152u), CODE8(160u), CODE8(168u), CODE8(176u), CODE8(184u),
    CODE8(192u), NEAR18(1u),  NEAR18(2u),  NEAR18(3u),  BAD1,        BAD1};
_Static_assert(GLYD_CODED_OFFSET_CODES == 200, "25 rows of good codes");
_Static_assert(GLYD_CODED_NEAR_CODES == 3 * 18 && GLYD_CODED_NEAR_MOST == 1 << 8, "3 slots, 2 sides, 9 classes");

#define PARAMETERS                                                                                              \
  const uint8_t *codes, size_t n, const uint8_t *low, size_t n_low, const uint8_t *raw, const uint8_t *raw_end, \
      const uint8_t *readable, uint32_t *out

glyd_status glyd_coded_offsets_scalar(PARAMETERS) {
  if (low != NULL) return glyd_coded_read_offsets_low(codes, n, low, n_low, raw, raw_end, readable, out);
  return glyd_coded_read_offsets(codes, n, raw, raw_end, readable, out);
}

#if defined(__x86_64__)
__attribute__((target("avx2,bmi,bmi2"))) glyd_status glyd_coded_offsets_avx2(PARAMETERS) {
  if (low != NULL) return glyd_coded_read_offsets_low(codes, n, low, n_low, raw, raw_end, readable, out);
  return glyd_coded_read_offsets(codes, n, raw, raw_end, readable, out);
}
#endif

/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 *
 * Unaligned little-endian loads and stores, small integer helpers, compiler hints.
 */
#ifndef GLYD_COMMON_MEM_H
#define GLYD_COMMON_MEM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "glyd needs a little-endian target"
#endif

#define GLYD_LIKELY(x) __builtin_expect(!!(x), 1)
#define GLYD_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define GLYD_INLINE static inline __attribute__((always_inline))
#define GLYD_NOINLINE __attribute__((noinline))

GLYD_INLINE uint16_t glyd_load16(const void *p) {
  uint16_t v;
  memcpy(&v, p, 2);
  return v;
}
GLYD_INLINE uint32_t glyd_load32(const void *p) {
  uint32_t v;
  memcpy(&v, p, 4);
  return v;
}
GLYD_INLINE uint64_t glyd_load64(const void *p) {
  uint64_t v;
  memcpy(&v, p, 8);
  return v;
}
GLYD_INLINE void glyd_store16(void *p, uint16_t v) { memcpy(p, &v, 2); }
GLYD_INLINE void glyd_store32(void *p, uint32_t v) { memcpy(p, &v, 4); }
GLYD_INLINE void glyd_store64(void *p, uint64_t v) { memcpy(p, &v, 8); }
GLYD_INLINE void glyd_copy16(void *d, const void *s) { memcpy(d, s, 16); }

/* v must not be 0 */
GLYD_INLINE unsigned glyd_ctz64(uint64_t v) { return (unsigned)__builtin_ctzll(v); }
GLYD_INLINE unsigned glyd_log2_32(uint32_t v) { return 31u - (unsigned)__builtin_clz(v); }
GLYD_INLINE unsigned glyd_log2_64(uint64_t v) { return 63u - (unsigned)__builtin_clzll(v); }

/* Canonical varint (docs/format.md). Writes at most 10 bytes; returns the end. */
GLYD_INLINE uint8_t *glyd_put_varint(uint8_t *p, uint64_t v) {
  while (v >= 128) {
    *p++ = (uint8_t)(v | 128);
    v >>= 7;
  }
  *p++ = (uint8_t)v;
  return p;
}

/* Returns the byte after the varint; NULL when it does not end before end (*v
 * is then 1) or is not canonical (*v is then 0). */
static inline const uint8_t *glyd_get_varint(const uint8_t *p, const uint8_t *end, uint64_t *v) {
  uint64_t r = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    if (p == end) {
      *v = 1;
      return NULL;
    }
    uint64_t b = *p++;
    if (shift == 63 && b > 1) break;
    r |= (b & 127) << shift;
    if (b < 128) {
      if (b == 0 && shift != 0) break;
      *v = r;
      return p;
    }
  }
  *v = 0;
  return NULL;
}

#endif

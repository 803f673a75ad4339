/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "fields/fields_difference_encode.h"

#include "common/mem.h"
#include "fields/fields_common.h"
#include "huffman/huffman_common.h"
#include "huffman/huffman_encode.h"

#define GAIN_SHIFT 7 /* planes that gain less than 0.8% stay raw */
/* One number in so many may be an escape: what a plane of zeros costs at least,
 * a bit, pays for escapes of 24 bits. */
#define ESCAPES_MAX_SHARE 24u
#define BLOCK_BOUND (2 * GLYD_FIELDS_DIFFERENCE_BLOCK + 17 * GLYD_HUFFMAN_PLANE_BOUND((size_t)0) + 1)

typedef struct difference_encoder {
  glyd_huffman_code dense[8], escape[8];
  uint8_t difference[GLYD_FIELDS_DIFFERENCE_BLOCK];
  uint8_t plane[GLYD_FIELDS_DIFFERENCE_BLOCK];
  uint8_t escapes[8][GLYD_FIELDS_DIFFERENCE_BLOCK / 2];
  uint8_t block[BLOCK_BOUND];
} difference_encoder;

size_t glyd_fields_difference_encode_workspace(void) { return sizeof(difference_encoder); }

void glyd_fields_difference_subtract(uint8_t *out, const uint8_t *in, const uint8_t *older, size_t len, size_t period) {
  switch (period) {
  case 1:
    for (size_t i = 0; i < len; i++) {
      const uint32_t d = (uint8_t)(in[i] - older[i]);
      out[i] = (uint8_t)(d << 1 ^ (0u - (d >> 7)));
    }
    return;
  case 2:
    for (size_t i = 0; i < len; i += 2) {
      const uint32_t d = (uint16_t)(glyd_load16(in + i) - glyd_load16(older + i));
      glyd_store16(out + i, (uint16_t)(d << 1 ^ (0u - (d >> 15))));
    }
    return;
  case 4:
    for (size_t i = 0; i < len; i += 4) {
      const uint32_t d = glyd_load32(in + i) - glyd_load32(older + i);
      glyd_store32(out + i, d << 1 ^ (0u - (d >> 31)));
    }
    return;
  default:
    for (size_t i = 0; i < len; i += 8) {
      const uint64_t d = glyd_load64(in + i) - glyd_load64(older + i);
      glyd_store64(out + i, d << 1 ^ ((uint64_t)0 - (d >> 63)));
    }
  }
}

/* How many low bytes of the numbers have a plane. */
static size_t dense_bytes(const uint8_t *z, size_t n, size_t period) {
  for (size_t m = 1; m < period; m++) {
    const uint64_t limit = (uint64_t)255 << (8 * (m - 1));
    size_t escapes = 0;
    switch (period) {
    case 2:
      for (size_t i = 0; i < n; i++) escapes += glyd_load16(z + 2 * i) >= limit;
      break;
    case 4:
      for (size_t i = 0; i < n; i++) escapes += glyd_load32(z + 4 * i) >= limit;
      break;
    default:
      for (size_t i = 0; i < n; i++) escapes += glyd_load64(z + 8 * i) >= limit;
      break;
    }
    if (escapes <= n / ESCAPES_MAX_SHARE) return m;
  }
  return period;
}

static uint8_t *put_block(unsigned cpu, difference_encoder *e, size_t n, size_t period, uint8_t *out) {
  const uint8_t *z = e->difference;
  const size_t m = dense_bytes(z, n, period), k = period - m + 1;
  *out++ = (uint8_t)m;
  for (size_t j = 0; j + 1 < m; j++) {
    for (size_t i = 0; i < n; i++) e->plane[i] = z[i * period + j];
    out = glyd_huffman_encode_plane_above(cpu, out, e->plane, n, NULL, &e->dense[j], GAIN_SHIFT);
  }
  size_t escapes = 0;
  for (size_t i = 0; i < n; i++) {
    const uint64_t t = glyd_fields_difference_number(z + i * period + m - 1, k);
    if (m == period || t < 255) {
      e->plane[i] = (uint8_t)t;
      continue;
    }
    e->plane[i] = 255;
    for (size_t j = 0; j < k; j++) e->escapes[j][escapes] = (uint8_t)((t - 255) >> (8 * j));
    escapes++;
  }
  out = glyd_huffman_encode_plane_above(cpu, out, e->plane, n, NULL, &e->dense[m - 1], GAIN_SHIFT);
  for (size_t j = 0; j < k && m < period; j++)
    out = glyd_huffman_encode_plane_above(cpu, out, e->escapes[j], escapes, NULL, &e->escape[j], GAIN_SHIFT);
  return out;
}

glyd_status glyd_fields_difference_encode(unsigned cpu, void *workspace, size_t period, const uint8_t *in,
                                          const uint8_t *older, size_t len, uint8_t *out, size_t cap, size_t *out_len) {
  difference_encoder *e = workspace;
  *out_len = 0;
  if (cap == 0) return GLYD_E_BUFFER;
  uint8_t *p = out, *const end = out + cap;
  *p++ = (uint8_t)period;
  for (size_t j = 0; j < 8; j++) e->dense[j].valid = e->escape[j].valid = 0;
  for (size_t at = 0; at < len;) {
    const size_t size = len - at < GLYD_FIELDS_DIFFERENCE_BLOCK ? len - at : GLYD_FIELDS_DIFFERENCE_BLOCK;
    glyd_fields_difference_subtract(e->difference, in + at, older + at, size, period);
    const size_t n = (size_t)(put_block(cpu, e, size / period, period, e->block) - e->block);
    if (n > (size_t)(end - p)) return GLYD_E_BUFFER;
    memcpy(p, e->block, n);
    p += n;
    at += size;
  }
  *out_len = (size_t)(p - out);
  return GLYD_OK;
}

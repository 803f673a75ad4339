/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "cold/cold_decode.h"

#include "cold/cold_common.h"

/* low … high as in the writer; code is where in there the content lies. */
typedef struct reader {
  uint32_t low, high, code;
  const uint8_t *at, *end;
  int is_short; /* 1: read past the end */
} reader;

GLYD_INLINE uint32_t get_byte(reader *r) {
  if (r->at < r->end) return *r->at++;
  r->is_short = 1;
  return 0;
}

GLYD_INLINE uint32_t get_bit(reader *r, uint32_t p) {
  const uint32_t range = r->high - r->low;
  const uint32_t middle = r->low + (uint32_t)(((uint64_t)range * p) >> 16);
  const uint32_t bit = r->code <= middle;
  if (bit)
    r->high = middle;
  else
    r->low = middle + 1;
  while ((r->low ^ r->high) < 1u << 24) {
    r->low <<= 8;
    r->high = r->high << 8 | 255;
    r->code = r->code << 8 | get_byte(r);
  }
  return bit;
}

uint64_t glyd_cold_decode_workspace(uint64_t content) { return glyd_cold_memory(content); }

glyd_status glyd_cold_decode(unsigned cpu, void *workspace, uint8_t *out, size_t out_len, const uint8_t *in,
                             size_t in_len) {
  if (in_len < GLYD_COLD_HEADER + GLYD_COLD_CODE_TAIL || out_len > GLYD_COLD_CONTENT_MAX) return GLYD_E_CORRUPT;
  glyd_cold_model *const m = glyd_cold_model_begin(cpu, workspace, in[0], out, out_len);
  if (!m) return GLYD_E_CORRUPT;
  reader r = {0, UINT32_MAX, 0, in + GLYD_COLD_HEADER, in + in_len, 0};
  for (unsigned i = 0; i < GLYD_COLD_CODE_TAIL; i++) r.code = r.code << 8 | get_byte(&r);
  for (size_t i = 0; i < out_len; i++) {
    const uint32_t gate = glyd_cold_match_gate(m);
    if (gate && get_bit(&r, gate)) {
      out[i] = (uint8_t)m->expected;
    } else {
      glyd_cold_model_byte(m, gate != 0);
      for (unsigned shift = 8; shift-- > 0;) {
        const uint32_t bit = get_bit(&r, m->kernel->predict(m));
        m->kernel->update(m, bit);
        if (shift == 4) glyd_cold_model_half(m);
      }
      out[i] = (uint8_t)m->bits;
    }
    glyd_cold_match_advance(m);
    if (r.is_short) return GLYD_E_CORRUPT;
  }
  return r.at == r.end ? GLYD_OK : GLYD_E_CORRUPT;
}

/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "cold/cold_encode.h"

#include "cold/cold_common.h"

#define SAMPLE_SHARE 32u /* each profile is tried on this part of the content */
#define SAMPLE_MIN ((size_t)16 << 10)
#define SAMPLE_MAX ((size_t)512 << 10)

/* Arithmetic coder: the code lies in low … high. */
typedef struct writer {
  uint32_t low, high;
  uint8_t *at, *end;
  int is_full;
} writer;

GLYD_INLINE void put_byte(writer *w, uint8_t byte) {
  if (w->at == w->end)
    w->is_full = 1;
  else
    *w->at++ = byte;
}

GLYD_INLINE void put_bit(writer *w, uint32_t p, uint32_t bit) {
  const uint32_t range = w->high - w->low;
  const uint32_t middle = w->low + (uint32_t)(((uint64_t)range * p) >> 16);
  if (bit)
    w->high = middle;
  else
    w->low = middle + 1;
  while ((w->low ^ w->high) < 1u << 24) {
    put_byte(w, (uint8_t)(w->high >> 24));
    w->low <<= 8;
    w->high = w->high << 8 | 255;
  }
}

static glyd_status encode(unsigned cpu, void *workspace, unsigned profile, const uint8_t *in, size_t len, uint8_t *out,
                          size_t cap, size_t *out_len) {
  if (cap < GLYD_COLD_HEADER + GLYD_COLD_CODE_TAIL) return GLYD_E_BUFFER;
  writer w = {0, UINT32_MAX, out, out + cap - GLYD_COLD_CODE_TAIL, 0};
  put_byte(&w, (uint8_t)profile);
  glyd_cold_model *const m = glyd_cold_model_begin(cpu, workspace, profile, in, len);
  for (size_t i = 0; i < len; i++) {
    const uint32_t gate = glyd_cold_match_gate(m);
    const uint32_t hit = gate && (m->expected & 255) == in[i];
    if (gate) put_bit(&w, gate, hit);
    if (!hit) {
      glyd_cold_model_byte(m, gate != 0);
      for (unsigned shift = 8; shift-- > 0;) {
        const uint32_t bit = in[i] >> shift & 1u;
        put_bit(&w, m->kernel->predict(m), bit);
        m->kernel->update(m, bit);
        if (shift == 4) glyd_cold_model_half(m);
      }
    }
    glyd_cold_match_advance(m);
    if (w.is_full) return GLYD_E_BUFFER;
  }
  w.end += GLYD_COLD_CODE_TAIL;
  for (unsigned i = 0; i < GLYD_COLD_CODE_TAIL; i++) put_byte(&w, (uint8_t)(w.low >> (24 - 8 * i)));
  *out_len = (size_t)(w.at - out);
  return GLYD_OK;
}

uint64_t glyd_cold_encode_workspace(uint64_t content) { return glyd_cold_memory(content); }

glyd_status glyd_cold_encode(unsigned cpu, void *workspace, const uint8_t *in, size_t len, uint8_t *out, size_t cap,
                             size_t *out_len) {
  size_t sample = len / SAMPLE_SHARE;
  sample = sample < SAMPLE_MIN ? SAMPLE_MIN : sample > SAMPLE_MAX ? SAMPLE_MAX : sample;
  if (sample > len) sample = len;
  const uint8_t *const middle = in + (len - sample) / 2;
  unsigned best = GLYD_COLD_BINARY;
  size_t least = SIZE_MAX;
  for (unsigned profile = 0; profile < GLYD_COLD_PROFILES; profile++) {
    size_t size;
    if (encode(cpu, workspace, profile, middle, sample, out, cap, &size) == GLYD_OK && size < least) {
      least = size;
      best = profile;
    }
  }
  return encode(cpu, workspace, best, in, len, out, cap, out_len);
}

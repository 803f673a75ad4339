/* SPDX-FileCopyrightText: 2026 The glyd authors
 * SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
 */
#include "cold/cold_encode.h"

#include "cold/cold_common.h"

#define SAMPLE_SHARE 48u /* each profile is tried on this part of the content */
#define SAMPLE_MIN ((size_t)16 << 10)
#define SAMPLE_MAX ((size_t)512 << 10)

static glyd_status encode(unsigned cpu, void *workspace, unsigned profile, const uint8_t *in, size_t history,
                          size_t len, uint8_t *out, size_t cap, size_t *out_len) {
  if (cap < GLYD_COLD_HEADER + GLYD_COLD_CODE_TAIL) return GLYD_E_BUFFER;
  glyd_cold_model *const m = glyd_cold_model_begin(cpu, workspace, profile, in, history + len);
  glyd_cold_model_learn(m, history);
  in += history;
  out[0] = (uint8_t)profile;
  glyd_arith_writer w;
  glyd_arith_writer_init(&w, out + GLYD_COLD_HEADER, out + cap - GLYD_COLD_CODE_TAIL);
  for (size_t i = 0; i < len; i++) {
    const uint32_t gate = glyd_cold_match_gate(m);
    const uint32_t hit = gate && (m->expected & 255) == in[i];
    if (gate) glyd_arith_writer_put(&w, gate, hit);
    if (!hit) m->kernel->encode(m, &w, gate != 0, in[i]);
    glyd_cold_match_advance(m);
    if (w.is_full) return GLYD_E_BUFFER;
  }
  w.end += GLYD_COLD_CODE_TAIL;
  glyd_arith_writer_end(&w);
  *out_len = (size_t)(w.at - out);
  return GLYD_OK;
}

uint64_t glyd_cold_encode_workspace(uint64_t content) { return glyd_cold_memory(content); }

glyd_status glyd_cold_encode(unsigned cpu, void *workspace, const uint8_t *in, size_t len, uint8_t *out, size_t cap,
                             size_t *out_len) {
  return glyd_cold_encode_after(cpu, workspace, in, 0, len, out, cap, out_len);
}

glyd_status glyd_cold_encode_after(unsigned cpu, void *workspace, const uint8_t *in, size_t history, size_t len,
                                   uint8_t *out, size_t cap, size_t *out_len) {
  size_t sample = len / SAMPLE_SHARE;
  sample = sample < SAMPLE_MIN ? SAMPLE_MIN : sample > SAMPLE_MAX ? SAMPLE_MAX : sample;
  if (sample > len) sample = len;
  const uint8_t *const middle = in + history + (len - sample) / 2;
  unsigned best = GLYD_COLD_BINARY;
  size_t least = SIZE_MAX;
  for (unsigned profile = 0; profile < GLYD_COLD_PROFILES; profile++) {
    size_t size;
    if (encode(cpu, workspace, profile, middle, 0, sample, out, cap, &size) == GLYD_OK && size < least) {
      least = size;
      best = profile;
    }
  }
  return encode(cpu, workspace, best, in, history, len, out, cap, out_len);
}
